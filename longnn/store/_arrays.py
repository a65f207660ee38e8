"""A folder of NumPy arrays: written piece by piece, and what each file should hold.

The shape of an array is known at the end, and nothing is held whole. Plain writes, no mapping: a
full disk is an error here, not a signal that ends the program. A manifest, written last, has the
shape, type, size and checksum of every file.
"""

import dataclasses
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from longnn._base.files import write_json, writing

#: Bytes of the header, with room for any shape.
HEADER = 192


def header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """The header of an ``.npy`` file of version 1.0, always of the same length.

    Arrays of several columns are stored column by column.

    >>> header(np.dtype(np.float32), (3, 2))[:66]
    b"\\x93NUMPY\\x01\\x00\\xb6\\x00{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2)}"
    """
    fields = {"descr": dtype.str, "fortran_order": len(shape) > 1, "shape": shape}
    text = repr(fields).encode("ascii")
    length = HEADER - 10
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.ljust(length - 1) + b"\n"


class ArrayWriter:
    """A one-dimensional array, or the columns of a matrix, appended one after the other.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.npy")
    >>> with ArrayWriter(path, np.float32) as writer:
    ...     writer.append(np.array([1, 2])), writer.append(np.array([3, 4]))
    ...     writer.shape = (2, 2)
    (None, None)
    >>> np.load(path).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """

    def __init__(self, path: Path, dtype: type) -> None:
        self.path, self.dtype, self.size = path, np.dtype(dtype), 0
        self.shape: tuple[int, ...] | None = None  # by default one dimension

    def __enter__(self) -> "ArrayWriter":
        with writing(self.path):
            self._file = self.path.open("wb")
            self._file.write(bytes(HEADER))
        return self

    def append(self, values: np.ndarray) -> None:
        """Write these values behind the others."""
        with writing(self.path):
            self._file.write(np.ascontiguousarray(values, self.dtype).data)
        self.size += values.size

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with writing(self.path), self._file:
            if kind is None:
                self._file.seek(0)
                self._file.write(header(self.dtype, self.shape or (self.size,)))


class MatrixWriter:
    """A matrix that is stored column by column, written in batches of rows.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "x.npy")
    >>> with MatrixWriter(path, 3, 2) as writer:
    ...     writer.write(0, np.array([[1, 2], [3, 4]], np.float32))
    ...     writer.write(2, np.array([[5, 6]], np.float32))
    >>> np.load(path).tolist()
    [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    """

    def __init__(self, path: Path, rows: int, columns: int) -> None:
        self.path, self.rows, self.columns = path, rows, columns

    def __enter__(self) -> "MatrixWriter":
        with writing(self.path):
            self._file = self.path.open("wb", buffering=0)
            self._file.write(header(np.dtype(np.float32), (self.rows, self.columns)))
            self._file.truncate(HEADER + 4 * self.rows * self.columns)
        return self

    def write(self, start: int, values: np.ndarray) -> None:  # float32 (rows, columns)
        """The rows from ``start`` on."""
        by_column = np.ascontiguousarray(values.T, np.float32)
        with writing(self.path):
            for j, column in enumerate(by_column):
                place, view = HEADER + 4 * (j * self.rows + start), memoryview(column).cast("B")
                while len(view):
                    written = os.pwrite(self._file.fileno(), view, place)
                    place, view = place + written, view[written:]

    def __exit__(self, *_: object) -> None:
        self._file.close()


NAME = "manifest.json"
VERSION = 3
#: Bytes that a checksum reads at once.
CHUNK = 1 << 24


class StoreError(ValueError):
    """A folder of arrays is not what its manifest says, or has none."""


@dataclasses.dataclass(frozen=True)
class ArrayFile:
    """One ``.npy`` file.

    Args:
        shape: of the array.
        dtype: as NumPy writes it, ``"<f4"`` for example.
        bytes: of the file, header included.
        checksum: CRC-32 of the file.
    """

    shape: tuple[int, ...]
    dtype: str
    bytes: int
    checksum: int


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What a folder holds.

    Args:
        kind: ``"graph"`` or ``"basis"``.
        about: plain data on the whole: counts, names, how it was made.
        files: by name.
    """

    kind: str
    about: Mapping[str, Any]
    files: Mapping[str, ArrayFile]

    @classmethod
    def of(cls, kind: str, about: Mapping[str, Any], folder: Path, names: list[str]) -> "Manifest":
        """The manifest of files that are there, their checksums computed."""
        return cls(kind, about, {name: describe(folder / name) for name in names})

    def write(self, folder: Path) -> None:
        """Write it last: a folder without a manifest is not finished."""
        fields = {"version": VERSION, **dataclasses.asdict(self)}
        write_json(folder / NAME, fields)

    @classmethod
    def read(cls, folder: Path, kind: str) -> "Manifest":
        """Read it, and check the kind; files are checked when they are opened.

        Raises:
            StoreError: where there is none, or one of another kind or version.
        """
        path = folder / NAME
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            files = {
                name: ArrayFile(**{**entry, "shape": tuple(entry["shape"])})
                for name, entry in fields["files"].items()
            }
            found = cls(fields["kind"], fields["about"], files)
            version = fields["version"]
        except FileNotFoundError:
            raise StoreError(
                f"Expected a prepared folder with a {NAME} (there is no {path}); "
                "make it by `longnn prepare`"
            ) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"Expected a manifest in {path} ({type(error).__name__}: {error})"
            ) from error
        if (version, found.kind) != (VERSION, kind):
            raise StoreError(
                f"Expected a {kind} of version {VERSION} in {folder} "
                f"(got a {found.kind} of version {version})"
            )
        return found

    def array(self, folder: Path, name: str) -> np.memmap:
        """A file, mapped to be read only; its size, shape and type are checked, not its checksum.

        Raises:
            StoreError: for a missing, truncated or other file.
        """
        entry, path = self.files.get(name), folder / name
        if entry is None:
            raise StoreError(f"Expected {name!r} among the files of {folder} (got {[*self.files]})")
        size = path.stat().st_size if path.is_file() else None
        if size != entry.bytes:
            raise StoreError(
                f"Expected {entry.bytes:,} bytes in {path} (got "
                f"{'no file' if size is None else f'{size:,}'}); make the folder again"
            )
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if array.shape != entry.shape or array.dtype.str != entry.dtype:
            raise StoreError(
                f"Expected {entry.dtype} {entry.shape} in {path} "
                f"(got {array.dtype.str} {array.shape})"
            )
        return array

    def verify(self, folder: Path) -> None:
        """Read every file and compare its checksum.

        Raises:
            StoreError: naming the first file that differs.
        """
        for name, entry in self.files.items():
            self.array(folder, name)
            found = checksum(folder / name)
            if found != entry.checksum:
                raise StoreError(
                    f"Expected the checksum {entry.checksum:08x} of {folder / name} "
                    f"(got {found:08x}); make the folder again"
                )


def describe(path: Path) -> ArrayFile:
    """What a ``.npy`` file holds; reads it once for the checksum."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return ArrayFile(array.shape, array.dtype.str, path.stat().st_size, checksum(path))


def checksum(path: Path) -> int:
    """CRC-32 of a file, which finds damage, not forgery."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            value = zlib.crc32(chunk, value)
    return value
