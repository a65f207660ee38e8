"""The graph of a run as a dataset: the one that was given, or the one that its files name."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from longnn.config import Config
from longnn.data import DataError, NodeDataset, Source, from_data
from longnn.data._tensors import is_graph_data
from longnn.store._disk import ON_DISK, load_source
from longnn.store._ranks import Ranks, join_ranks
from longnn.training import choose_device

OnNote = Callable[[str], None]
#: A graph: its name or path, where it comes from, or the thing itself.
GraphLike: TypeAlias = str | Path | Source | NodeDataset | Any  # a PyG Data, or tensors by name


def as_dataset(
    data: GraphLike,
    data_dir: str | Path | None,
    memory: int | None,
    ranks: Ranks,
    on_note: OnNote | None,
    cache: str | Path | None = None,
) -> NodeDataset:
    """What was given, loaded; files that are too large for memory are prepared first."""
    if isinstance(data, NodeDataset):
        dataset = data
    elif is_graph_data(data):
        dataset = from_data(data)
    else:
        source = data if isinstance(data, Source) else Source.resolve(data)
        dataset = load_source(
            source, data_dir, memory=memory, cache=cache, ranks=ranks, on_note=on_note
        )
    require_rows(dataset, ranks)
    return dataset


def join(config: Config | Mapping[str, Any] | None) -> Ranks:
    """This process among those of ``torchrun``; alone without it."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Ranks()
    given = config.device if isinstance(config, Config) else (config or {}).get("device", "auto")
    return join_ranks(choose_device(given).type)


def require_rows(dataset: NodeDataset, ranks: Ranks) -> None:
    """Raise where ranks would all train the same: what they can share are rows.

    Raises:
        ValueError: for a graph in memory.
    """
    if ranks.count > 1 and not dataset.backing.by_rows:
        raise ValueError(
            "Expected a prepared folder, or files to prepare, under torchrun: its processes share "
            f"the rows of a graph on disk (got {dataset.name!r} in memory); start longnn without it"
        )


def read_source(fields: Mapping[str, Any], file: Path) -> Source:
    """Where a graph comes from, as a file of a run says it; an error names the file."""
    try:
        return Source.from_dict(fields)
    except ValueError as error:
        raise DataError(f"{file}: {error}") from error


def load_graph(source: Source, file: Path, fingerprint: str, **options: Any) -> NodeDataset:
    """The graph of a run; an error that names no other file names the one that asks for it.

    Its fingerprint says whether it was on disk; ``options`` are those of :func:`load_source`.
    """
    try:
        return load_source(source, rows=fingerprint.startswith(ON_DISK), **options)
    except DataError as error:
        if error.path is not None:
            raise
        raise DataError(str(error), path=file) from error
