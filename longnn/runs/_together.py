"""A run that several processes of ``torchrun`` train together: who takes part, and who goes on.

All of them train, on rows; the first alone writes and describes. If one dies, ``torchrun`` starts
the same command again in all of them: it then goes on with the run that it had begun.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longnn.config import Config
from longnn.data import NodeDataset
from longnn.records import RUN, Request
from longnn.runs._folder import is_complete
from longnn.store import Ranks, StoredDataset, join_ranks
from longnn.training import choose_device


def join(config: Config | Mapping[str, Any] | None) -> Ranks:
    """This process among those of ``torchrun``; alone without it."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Ranks()
    given = config.device if isinstance(config, Config) else (config or {}).get("device", "auto")
    return join_ranks(device=choose_device(given).type)


def require_rows(dataset: NodeDataset, ranks: Ranks) -> None:
    """Raise where ranks would all train the same: what they can share are rows.

    Raises:
        ValueError: for a graph in memory.
    """
    if ranks.count > 1 and not isinstance(dataset, StoredDataset):
        raise ValueError(
            "Expected a prepared folder, or files to prepare, under torchrun: its processes share "
            f"the rows of a graph on disk (got {dataset.name!r} in memory); start longnn without it"
        )


def begun_before(folder: Path, request: Request, ranks: Ranks) -> Request | None:
    """The request of the run in a folder, if it is the same run, begun by earlier ranks.

    A finished one counts where ``torchrun`` has started these ranks again.
    """
    if ranks.count == 1:
        return None
    found: Request | None = ranks.agree(_same_run(folder, request) if ranks.first else None)
    return found


def _same_run(folder: Path, request: Request) -> Request | None:
    if not (folder / RUN).exists():
        return None
    found = Request.read(folder)
    same = all(_plain(getattr(found, k)) == _plain(getattr(request, k)) for k in _SAME)
    again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    return found if same and (again or not is_complete(folder)) else None


_SAME = ("source", "fingerprint", "config")


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
