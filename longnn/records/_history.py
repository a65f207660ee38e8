"""What was measured at each epoch of a run: a table of losses, and the path of its filter.

Each class writes and reads its own file of a run folder.
"""

import csv
import io
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from longnn._base.files import atomic_path, write_text
from longnn.data._arrays import Archive

HISTORY_COLUMNS = ("repeat", "epoch", "train_loss", "val_loss", "val_score")
OPTIONAL_COLUMNS = ("amplitude", "a", "b")
#: No epoch, and no parameter of a basis, is this large.
LARGEST = 1e9
#: What numpy raises over a damaged archive, or over something else in its place: encrypted, of an
#: unknown compression, too large.
DAMAGED = (
    *(OSError, ValueError, TypeError, LookupError, EOFError, zipfile.BadZipFile, zlib.error),
    *(RuntimeError, OverflowError, MemoryError, struct.error),
)


@dataclass(frozen=True, eq=False)
class History:
    """What was measured at each epoch, one array per column; NaN where there is no value.

    >>> history = History({"repeat": np.array([0.0, 0.0, 1.0]), "a": np.full(3, np.nan)})
    >>> history.repeats, history.has("repeat"), history.has("a")
    ([0, 1], True, False)
    """

    columns: dict[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    @property
    def repeats(self) -> list[int]:
        """The numbers of the repeats."""
        return [int(index) for index in np.unique(self["repeat"])]

    def of(self, repeat: int) -> "History":
        """The rows of one repeat."""
        rows = self["repeat"] == repeat
        return History({name: values[rows] for name, values in self.columns.items()})

    def has(self, *names: str) -> bool:
        """Whether every one of these columns holds a number somewhere."""
        return all(bool(np.isfinite(self[name]).any()) for name in names)

    def write(self, path: Path) -> None:
        """Write CSV; an empty cell is "no value"."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        whole = [self.columns[name].astype(int).tolist() for name in ("repeat", "epoch")]
        names = [name for name in self.columns if name not in ("repeat", "epoch")]
        numbers = [self.columns[name].tolist() for name in names]
        for row in zip(*whole, *numbers, strict=True):
            writer.writerow([*row[:2], *("" if v != v else repr(v) for v in row[2:])])
        write_text(path, buffer.getvalue())

    @classmethod
    def read(cls, file: Path) -> "History":
        """Read what :meth:`write` wrote; raises ValueError where the file is something else."""
        with file.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            absent = [name for name in HISTORY_COLUMNS if name not in (reader.fieldnames or ())]
            if absent:
                raise ValueError(
                    f"Expected the columns {', '.join(absent)} (got none of that name)."
                )
            names = HISTORY_COLUMNS + OPTIONAL_COLUMNS
            rows = []
            for row in reader:
                if None in row or any(row[name] is None for name in HISTORY_COLUMNS):
                    raise ValueError(
                        f"Expected as many values as columns in line {reader.line_num}."
                    )
                try:
                    rows.append([float(row.get(name) or "nan") for name in names])
                except ValueError:
                    raise ValueError(f"Expected only numbers in line {reader.line_num}.") from None
        if not rows:
            raise ValueError("Expected at least one epoch (got none).")
        table = np.array(rows)
        table[np.isinf(table)] = np.nan
        found = {name: table[:, index] for index, name in enumerate(names)}
        for name in ("repeat", "epoch"):
            if not ((found[name] >= 0) & (found[name] < LARGEST) & (found[name] % 1 == 0)).all():
                raise ValueError(f"Expected whole numbers as {name} (got others).")
        for name in ("a", "b"):
            if ((found[name] <= -1) | (found[name] >= LARGEST)).any():
                raise ValueError(f"Expected {name} > -1 (got other numbers).")
        return cls(found)


@dataclass(frozen=True, eq=False)
class FilterPath:
    """The filter of the first repeat over training, in Chebyshev coefficients."""

    epochs: np.ndarray  # (epochs,)
    beta: np.ndarray  # (epochs, degree + 1, channels)

    def write(self, path: Path) -> None:
        """Write a compressed archive."""
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, epochs=self.epochs, beta=self.beta)

    @classmethod
    def read(cls, file: Path) -> "FilterPath":
        """Read what :meth:`write` wrote; raises one of :data:`DAMAGED` otherwise."""
        arrays = Archive(file, ("epochs", "beta"))
        epochs = np.asarray(arrays["epochs"], dtype=np.float64)
        beta = np.asarray(arrays["beta"], dtype=np.float64)
        if beta.ndim != 3 or epochs.shape != beta.shape[:1] or beta.size == 0:
            raise ValueError(
                f"Expected beta of shape (epochs, degree + 1, channels) (got {beta.shape})."
            )
        return cls(epochs, beta)
