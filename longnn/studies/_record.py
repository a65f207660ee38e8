"""What an experiment has found so far: one JSON file of parts, each computed once.

A part is written as soon as it is there, so that an interrupted experiment goes on where it was.
Knows nothing of what the parts mean.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from longnn._base.files import write_json
from longnn._base.provenance import describe_code, environment
from longnn.training import choose_device

#: Of a machine's description, what does not change from one part to the next.
_PASSING = ("load", "threads")


class Record:
    """Parts of an experiment by key, kept in a file.

    Args:
        path: of the JSON file; what it holds is taken up.
        settings: what all parts share. A file that was begun with others is refused: its numbers
            would not belong together.
        commit: of the code, where it runs outside a checkout.
    """

    def __init__(
        self, path: Path, settings: Mapping[str, Any], *, commit: str | None = None
    ) -> None:
        self.path, self.commit = path, commit
        shared = json.loads(json.dumps(dict(settings)))  # as the file gives it back
        self._record: dict[str, Any] = {"settings": shared, "machines": [], "parts": {}}
        if path.exists():
            self._record = json.loads(path.read_text(encoding="utf-8"))
            before = self._record["settings"]
            if before != shared:
                changed = sorted(k for k in {*before, *shared} if before.get(k) != shared.get(k))
                raise ValueError(
                    f"Expected the settings that {path} was begun with (changed: "
                    f"{', '.join(changed)}); choose another folder, or remove the file"
                )

    @property
    def parts(self) -> dict[str, Any]:
        return self._record["parts"]

    @property
    def settings(self) -> dict[str, Any]:
        return self._record["settings"]

    def take(self, key: str, part: dict[str, Any], machine: dict[str, Any]) -> None:
        """Take over a part of another record, with the machine that it was made on."""
        made = {**part["made"], "machine": self._number(machine)}
        self.parts[key] = {**part, "made": made}
        self._write()

    def part(
        self, key: str, compute: Callable[[], dict[str, Any]], *, device: str = "cpu"
    ) -> dict[str, Any]:
        """The part of this key; computed, timed and written down where it is not there yet."""
        if key not in self.parts:
            started = time.perf_counter()
            value = compute()
            made = {
                "seconds": round(time.perf_counter() - started, 3),
                "machine": self._machine(choose_device(device)),
                **describe_code(self.commit),
            }
            self.parts[key] = {**value, "made": made}
            self._write()
        return dict(self.parts[key])

    def _machine(self, device: torch.device) -> int:
        """The number of this machine among those that the record names."""
        here = {k: v for k, v in environment(device).items() if k not in _PASSING}
        return self._number(here)

    def _number(self, machine: dict[str, Any]) -> int:
        machines: list[dict[str, Any]] = self._record["machines"]
        if machine not in machines:
            machines.append(machine)
        return machines.index(machine)

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, self._record)


def read_record(path: Path) -> dict[str, Any]:
    """The whole record: settings, machines and parts."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record
