"""The record of a study: one JSON file of cells, each computed once.

A cell is written as soon as it is there, so that an interrupted study continues where it stopped.
The record knows nothing of what its cells mean: a study gives each kind of cell a dataclass.

.. code-block:: json

    {"plan": {}, "machines": [{}], "cells": {"KEY": {"...": 0, "made": {"machine": 0}}}}
"""

import dataclasses
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

from longnn._base.files import write_json
from longnn._base.provenance import describe_code
from longnn._base.schema import Node, from_plain, to_plain

T = TypeVar("T")

#: Names that configurations no longer have, each with the one value that was ever recorded: it does
#: nothing, so that a configuration without the name trains the same model.
RETIRED: dict[str, object] = {
    "wd_basis": 0.0,  # weight decay of a and b
    "reversed_sign": False,  # JacobiConv's recurrence with the slip of its authors' code
}

#: Hardware and versions, as :func:`longnn._base.provenance.environment` describes them.
Machine = dict[str, str | int | float | None]


@dataclasses.dataclass(frozen=True)
class Made:
    """How a cell came about.

    Args:
        seconds: that it took.
        machine: number of the machine among those of the record.
        commit: of the code; None where it is not known.
        dirty: whether files differed from that commit; None where it is not known.
    """

    seconds: float
    machine: int
    commit: str | None = None
    dirty: bool | None = None


def without_retired(value: Any) -> Any:
    """Plain data without the names that are :data:`RETIRED`, at any depth.

    >>> without_retired({"config": {"degree": 4, "wd_basis": 0.0}})
    {'config': {'degree': 4}}
    """
    if isinstance(value, list):
        return [without_retired(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: without_retired(item)
        for key, item in value.items()
        if key not in RETIRED or item != RETIRED[key]
    }


class StudyRecord:
    """Cells of a study by key, kept in a file.

    Args:
        path: of the JSON file; what it already holds is kept.
        plan: a dataclass of what all cells share. A file that was begun with another plan is
            refused: its numbers would not belong together.
        commit: to record when the code is not a git checkout.

    >>> import tempfile
    >>> @dataclasses.dataclass
    ... class Loss:
    ...     loss: float
    >>> path = Path(tempfile.mkdtemp()) / "record.json"
    >>> StudyRecord(path, Loss(0.0)).cell("low", Loss, lambda: Loss(0.5), machine={"cpu": "any"})
    Loss(loss=0.5)
    >>> StudyRecord.load(path).get("low", Loss)
    Loss(loss=0.5)
    """

    def __init__(self, path: Path, plan: object, *, commit: str | None = None) -> None:
        self.path, self.commit = path, commit
        shared = to_plain(plan)
        self._record: dict[str, Any] = {"plan": shared, "machines": [], "cells": {}}
        if path.exists():
            self._record = Node.load(path).mapping()
            before = without_retired(self._record["plan"])
            if before != shared:
                changed = sorted(k for k in {*before, *shared} if before.get(k) != shared.get(k))
                raise ValueError(
                    f"Expected the plan that {path} was begun with (changed: "
                    f"{', '.join(changed)}); choose another folder, or remove the file"
                )

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a record, whatever its plan.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if the file is damaged or is not a record of a study.
        """
        made = cls.__new__(cls)
        made.path, made.commit = path, None
        record = Node.load(path)
        for key in ("plan", "cells"):
            record[key].mapping()
        made._record = record.mapping()
        return made

    def __contains__(self, key: str) -> bool:
        return key in self._record["cells"]

    def __iter__(self) -> Iterator[str]:
        return iter(self._record["cells"])

    def plan(self, kind: type[T]) -> T:
        """What all cells share."""
        return from_plain(kind, without_retired(self._record["plan"]), "plan", file=self.path)

    def has_plan_of(self, other: "StudyRecord") -> bool:
        """Whether another record was made by the same plan."""
        mine, theirs = (without_retired(r._record["plan"]) for r in (self, other))
        return bool(mine == theirs)

    def get(self, key: str, kind: type[T]) -> T:
        """The cell of a key."""
        values = {k: v for k, v in self._record["cells"][key].items() if k != "made"}
        return from_plain(kind, without_retired(values), key, file=self.path)

    def all(self, kind: type[T], *, prefix: str = "") -> dict[str, T]:
        """Every cell whose key begins so, by what follows."""
        keys = [key for key in self if key.startswith(prefix)]
        return {key.removeprefix(prefix): self.get(key, kind) for key in keys}

    def made(self, key: str) -> Made:
        """How the cell of a key came about."""
        return from_plain(Made, self._record["cells"][key]["made"], f"{key}.made", file=self.path)

    def machine(self, key: str) -> Machine:
        """The machine on which the cell of a key was computed."""
        return self.machines[self.made(key).machine]

    @property
    def machines(self) -> list[Machine]:
        """All machines that cells were computed on."""
        machines: list[Machine] = self._record["machines"]
        return machines

    def cell(self, key: str, kind: type[T], compute: Callable[[], T], *, machine: Machine) -> T:
        """The cell of a key; computed, timed and written down if it is not there yet.

        Args:
            key: its name.
            kind: its dataclass.
            compute: makes it.
            machine: that this process runs on.
        """
        if key not in self:
            started = time.perf_counter()
            values = to_plain(compute())
            seconds = round(time.perf_counter() - started, 3)
            made = {"seconds": seconds, "machine": self._number(machine)}
            self._put(key, {**values, "made": {**made, **describe_code(self.commit)}})
        return self.get(key, kind)

    def take(self, key: str, other: "StudyRecord") -> None:
        """Copy a cell of another record, with the machine that it was made on."""
        cell = other._record["cells"][key]
        made = {**cell["made"], "machine": self._number(other.machine(key))}
        self._put(key, {**cell, "made": made})

    def _number(self, machine: Machine) -> int:
        """The number of a machine among those that the record names."""
        if machine not in self.machines:
            self.machines.append(machine)
        return self.machines.index(machine)

    def _put(self, key: str, cell: dict[str, Any]) -> None:
        self._record["cells"][key] = cell
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, self._record)
