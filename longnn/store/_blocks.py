"""One block of columns as a file, and the record that says it is finished.

The file gets its name when it is whole, and its record after that, with the checksum. A record that
does not fit its file, or what is wanted now, counts as none: the block is computed again.
"""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from longnn._base.files import write_json, writing
from longnn.store._basis import block_name
from longnn.store._manifest import ArrayFile, checksum, describe


@dataclasses.dataclass(frozen=True)
class Finished:
    """A finished block.

    Args:
        key: of what was computed, :attr:`Recipe.key`.
        columns: first and last.
        file: its shape, type, size and checksum.
        error: sum of the squared rounding errors of the sampled rows.
        norm: sum of the squares of those rows.
    """

    key: str
    columns: tuple[int, int]
    file: ArrayFile
    error: float
    norm: float


def record_path(folder: Path, index: int) -> Path:
    """The record of a block."""
    return (folder / block_name(index)).with_suffix(".json")


def read_finished(
    folder: Path, index: int, key: str, columns: tuple[int, int], *, check: bool = True
) -> Finished | None:
    """The record of a block, if it is of this recipe and fits its file.

    Args:
        folder: of the basis.
        index: of the block.
        key: of the recipe.
        columns: that the block should have.
        check: compare the file's checksum, too.
    """
    try:
        fields = json.loads(record_path(folder, index).read_text(encoding="utf-8"))
        fields["file"]["shape"] = tuple(fields["file"]["shape"])
        fields["file"] = ArrayFile(**fields["file"])
        found = Finished(**{**fields, "columns": tuple(fields["columns"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    path = folder / block_name(index)
    if (found.key, found.columns) != (key, columns):
        return None
    if not path.is_file() or path.stat().st_size != found.file.bytes:
        return None
    return found if not check or checksum(path) == found.file.checksum else None


class BlockFile:
    """A block's file while it is written; ranks that share its rows write one after the header.

    Args:
        folder: of the basis.
        index: of the block.
        shape: (rows, K+1, columns).
        dtype: as NumPy writes it.
    """

    def __init__(self, folder: Path, index: int, shape: tuple[int, int, int], dtype: str) -> None:
        self.folder, self.index, self.shape, self.dtype = folder, index, shape, dtype
        self.path = folder / block_name(index)
        self.temporary = folder / f".{self.path.name}.part"

    def create(self) -> None:
        """An empty file with the header, as long as it will be."""
        with writing(self.path), self.temporary.open("wb") as file:
            described = {"descr": self.dtype, "fortran_order": False, "shape": self.shape}
            np.lib.format.write_array_header_1_0(file, described)
            file.truncate(file.tell() + self._bytes(self.shape[0]))

    def _bytes(self, rows: int) -> int:
        return int(rows * self.shape[1] * self.shape[2] * np.dtype(self.dtype).itemsize)

    def open(self) -> int:
        """A descriptor to write rows to."""
        return os.open(self.temporary, os.O_RDWR)

    def offset(self, row: int) -> int:
        """Where a row begins."""
        total = self.temporary.stat().st_size
        return total - self._bytes(self.shape[0]) + self._bytes(row)

    def finish(self, key: str, columns: tuple[int, int], error: float, norm: float) -> Finished:
        """Give the file its name, and write its record."""
        file = describe(self.temporary)
        self.temporary.replace(self.path)
        found = Finished(key, columns, file, error, norm)
        record: dict[str, Any] = dataclasses.asdict(found)
        write_json(record_path(self.folder, self.index), record)
        return found
