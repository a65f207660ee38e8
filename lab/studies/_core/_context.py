"""What a study is, what it is given, and how its folder is laid out.

The folder of a study holds ``records`` (JSON, computed), ``tables`` and ``figures`` (made of the
records, at any time again).
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from matplotlib.figure import Figure

from lab.records import Machine, StudyRecord
from lab.studies._core._table import ResultTable
from longnn._base.provenance import environment
from longnn.report import to_png, write_atomically
from longnn.training import choose_device

#: In the description of a machine, what may differ from one cell to the next.
_PASSING = ("load", "threads")


@dataclasses.dataclass(frozen=True)
class Context:
    """How a study is run.

    Args:
        folder: for its records, tables and figures.
        data_dir: where the datasets are.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        quick: a small version of everything, for a look.
        datasets: only these, if the study has several.
        models: only these, if the study has several.
        commit: to record when the code is not a git checkout.
        tell: takes a line of progress.
    """

    folder: Path
    data_dir: str | None = None
    device: str = "auto"
    quick: bool = False
    datasets: Sequence[str] | None = None
    models: Sequence[str] | None = None
    commit: str | None = None
    tell: Callable[[str], None] = print

    def choose(self, kind: Literal["datasets", "models"], known: Sequence[str]) -> list[str]:
        """The datasets or models to compute: those asked for, or all that are known.

        >>> Context(Path("."), models=["lon"]).choose("models", ["gcn", "lon"])
        ['lon']
        """
        asked = self.datasets if kind == "datasets" else self.models
        for name in asked or ():
            if name not in known:
                raise ValueError(f"Expected {kind} among {', '.join(known)} (got {name!r})")
        return list(asked or known)

    def record(self, name: str, plan: object) -> StudyRecord:
        """A record of this study, begun or continued.

        Args:
            name: of its file, without ending.
            plan: a dataclass of what all its cells share.
        """
        return StudyRecord(record_path(self.folder, name), plan, commit=self.commit)

    def machine(self, device: str | None = None) -> Machine:
        """This machine with its device, by default the one of the context."""
        found = environment(choose_device(device or self.device))
        return {key: value for key, value in found.items() if key not in _PASSING}


class Study(Protocol):
    """What a module of :mod:`lab.studies` offers.

    It may also have ``ORDER``, a number by which studies are listed, and ``AFTER``, the names of
    studies whose records it reads.
    """

    TITLE: str

    def run(self, context: Context) -> None:
        """Compute what the records lack."""

    def tables(self, folder: Path) -> list[ResultTable]:
        """The tables that the records of a folder give; never trains."""

    def draw(self, folder: Path) -> list[Path]:
        """Write the figures that the records of a folder give; never trains."""


def record_path(folder: Path, name: str = "record") -> Path:
    """Where a study keeps a record.

    >>> record_path(Path("results/basis")).as_posix()
    'results/basis/records/record.json'
    """
    return folder / "records" / f"{name}.json"


def load_records(folder: Path, order: Sequence[str]) -> dict[str, StudyRecord]:
    """The records of a study that exist, by name, in the given order."""
    return {
        name: StudyRecord.load(record_path(folder, name))
        for name in order
        if record_path(folder, name).is_file()
    }


def save_figure(folder: Path, name: str, figure: Figure | bytes) -> Path:
    """Write a figure of a study as PNG; returns its path."""
    path = folder / "figures" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_atomically(path, figure if isinstance(figure, bytes) else to_png(figure))
