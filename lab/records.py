"""The record of a study: one JSON file of cells, each a plain table that was computed once.

A cell is written as soon as it is there, so that an interrupted study continues where it stopped.

.. code-block:: json

    {"plan": {}, "machines": [{}], "cells": {"KEY": {"test": [0.5], "made": {"machine": 0}}}}
"""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TypedDict

import longnn
from longnn._base.files import write_json
from longnn._base.schema import Node
from longnn.config import Config
from longnn.registry import model_options

_PACKAGE = Path(longnn.__file__).resolve().parent
#: Hardware and versions, as :func:`longnn._base.provenance.environment` describes them.
Machine = Mapping[str, str | int | float | None]
#: A :class:`~longnn.config.Config` as a flat table, whole or some of it.
ConfigTable = Mapping[str, Any]

#: Names that configurations no longer have, each with the one value that was ever recorded: it does
#: nothing, so that a configuration without the name trains the same model.
RETIRED: dict[str, object] = {
    "wd_basis": 0.0,  # weight decay of a and b
    "reversed_sign": False,  # JacobiConv's recurrence with the slip of its authors' code
}


class Code(TypedDict):
    """A commit and whether files differ from it; None where that is not known."""

    commit: str | None
    dirty: bool | None


def describe_code(commit: str | None = None) -> Code:
    """The commit of this checkout and whether files differ from it; None outside a checkout.

    ``commit`` names the commit of a copy that is not a checkout.
    """
    if commit is not None:
        return {"commit": commit, "dirty": None}
    top = _git("rev-parse", "--show-toplevel")
    # An installed copy may lie inside somebody else's repository.
    if top is None or Path(top).resolve() / "longnn" != _PACKAGE:
        return {"commit": None, "dirty": None}
    status = _git("status", "--porcelain")
    return {"commit": _git("rev-parse", "HEAD"), "dirty": None if status is None else status != ""}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(_PACKAGE), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def without_retired(value: Any) -> Any:
    """Plain data without the names that are :data:`RETIRED`, at any depth.

    >>> without_retired({"config": {"degree": 4, "wd_basis": 0.0}})
    {'config': {'degree': 4}}
    """
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [without_retired(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: without_retired(item)
        for key, item in value.items()
        if key not in RETIRED or item != RETIRED[key]
    }


def config_of(table: ConfigTable) -> Config:
    """A recorded configuration; what it does not say was the model's own default."""
    return Config.from_dict({**model_options(str(table["model"])), **table})


class Values(dict[str, Any]):
    """An object of a record. Where a key is missing, the error names the file and the place."""

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        super().__init__({key: _placed(v, f"{place}.{key}") for key, v in values.items()})
        self.place = place

    def __missing__(self, key: str) -> None:
        raise ValueError(f"{self.place}: Expected {key!r} (got {', '.join(self) or 'nothing'})")

    def scores(self, key: str) -> list[float]:
        """A list of numbers."""
        values = self[key]
        if not isinstance(values, list) or not all(isinstance(v, int | float) for v in values):
            raise ValueError(f"{self.place}.{key}: Expected a list of numbers (got {values!r:.40})")
        return values


def _placed(value: Any, place: str) -> Any:
    """The value with the place of every object in it."""
    if isinstance(value, dict):
        return Values(value, place)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [_placed(v, f"{place}[{i}]") for i, v in enumerate(value)]
    return value


class Record:
    """Cells of a study by key, kept in a file.

    Args:
        path: of the JSON file; what it already holds is kept.
        plan: what all cells share. A file that was begun with another plan is refused: its numbers
            would not belong together. None reads a file whatever its plan.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "record.json"
    >>> Record(path, {"steps": 5}).add("low", lambda: {"loss": 0.5}, machine={"cpu": "any"})
    >>> Record(path)["low"]["loss"]
    0.5
    """

    def __init__(self, path: Path, plan: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self._record: dict[str, Any] = {"plan": plan, "machines": [], "cells": {}}
        if plan is None or path.exists():
            node = Node.load(path)
            for key in ("plan", "cells"):
                node[key].mapping()
            self._record = node.mapping()
        #: What all cells share.
        self.plan = self._values("plan", self._record["plan"])
        self._cells = {key: self._values(key, v) for key, v in self._record["cells"].items()}
        if plan is not None and self.plan != plan:
            keys = sorted({*self.plan, *plan})
            changed = [key for key in keys if self.plan.get(key) != plan.get(key)]
            raise ValueError(
                f"Expected the plan that {path} was begun with (changed: {', '.join(changed)}); "
                "choose another folder, or remove the file"
            )

    def _values(self, key: str, values: Mapping[str, Any]) -> Values:
        return Values(without_retired(values), f"{self.path}: {key}")

    def __contains__(self, key: str) -> bool:
        return key in self._cells

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __getitem__(self, key: str) -> Values:
        if key not in self:
            raise ValueError(f"{self.path}: Expected a cell {key!r} (got {', '.join(self)})")
        return self._cells[key]

    def below(self, prefix: str) -> dict[str, Values]:
        """The cells whose keys begin so, by what follows."""
        return {key.removeprefix(prefix): self[key] for key in self if key.startswith(prefix)}

    @property
    def machines(self) -> list[Machine]:
        """All machines that cells were computed on."""
        machines: list[Machine] = self._record["machines"]
        return machines

    def machine(self, key: str) -> Machine:
        """The machine on which the cell of a key was computed."""
        return self.machines[self[key]["made"]["machine"]]

    def add(
        self,
        key: str,
        compute: Callable[[], Mapping[str, Any]],
        *,
        machine: Machine,
        commit: str | None = None,
    ) -> None:
        """Compute a cell, time it and write it down; values that are None are left out.

        Args:
            key: its name.
            compute: makes it.
            machine: that this process runs on.
            commit: to record when the code is not a git checkout.
        """
        started = time.perf_counter()
        values = {name: value for name, value in compute().items() if value is not None}
        seconds = round(time.perf_counter() - started, 3)
        made = {"seconds": seconds, "machine": self._number(machine), **describe_code(commit)}
        self._put(key, {**values, "made": made})

    def take(self, key: str, other: Self) -> None:
        """Copy a cell of another record, with the machine that it was made on."""
        cell = other._record["cells"][key]
        made = {**cell["made"], "machine": self._number(other.machine(key))}
        self._put(key, {**cell, "made": made})

    def _number(self, machine: Machine) -> int:
        """The number of a machine among those that the record names."""
        if machine not in self.machines:
            self.machines.append(machine)
        return self.machines.index(machine)

    def _put(self, key: str, cell: Mapping[str, Any]) -> None:
        self._record["cells"][key] = cell
        self._cells[key] = self._values(key, cell)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, self._record)
