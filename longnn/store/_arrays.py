"""A folder of NumPy arrays: written piece by piece, and what each file should hold.

The shape of an array is known at the end, and nothing is held whole. Plain writes, no mapping: a
full disk is an error here, not a signal that ends the program. A manifest, written last, has the
shape, type, size and checksum of every file. One process at a time writes into a folder.
"""

import dataclasses
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from longnn._base.files import try_lock, write_json, writing
from longnn._base.memory import in_words
from longnn._base.schema import Node, to_plain
from longnn.data import DataError

T = TypeVar("T")
#: Bytes of the header, with room for any shape.
HEADER = 192


def header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """The header of an ``.npy`` file of version 1.0, always of the same length.

    Matrices are stored column by column.

    >>> header(np.dtype(np.float32), (3, 2))[:66]
    b"\\x93NUMPY\\x01\\x00\\xb6\\x00{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2)}"
    """
    fields = {"descr": dtype.str, "fortran_order": len(shape) == 2, "shape": shape}
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

    def __exit__(self, kind: object, *_: object) -> None:
        with writing(self.path), self._file:
            if kind is None:
                self._file.seek(0)
                self._file.write(header(self.dtype, self.shape or (self.size,)))


#: The file of a manifest, and of a lock.
NAME, LOCK = "manifest.json", ".lock"
VERSION = 4
#: Bytes that a checksum reads at once.
CHUNK = 1 << 24


class StoreError(DataError):
    """A folder of arrays is not what its manifest says, has none, or has no room on the disk."""


@dataclasses.dataclass(frozen=True)
class ArrayFile:
    """One file of a folder.

    Args:
        shape: of its array; of another file than ``.npy`` nothing.
        dtype: as NumPy writes it, ``"<f4"`` for example.
        bytes: of the file, header included.
        checksum: CRC-32 of the file.
    """

    shape: tuple[int, ...]
    dtype: str
    bytes: int
    checksum: int

    @classmethod
    def of(cls, path: Path) -> "ArrayFile":
        """What a file holds; reads it once for the checksum."""
        shape, dtype = (), ""
        if path.suffix != ".parquet":
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            shape, dtype = array.shape, array.dtype.str
        return cls(shape, dtype, path.stat().st_size, checksum(path))


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What a folder holds, or one block of it.

    Args:
        kind: ``"graph"``, ``"basis"`` or ``"block"``.
        about: plain data on the whole: counts, names, how it was made.
        files: by name.
    """

    kind: str
    about: Mapping[str, Any]
    files: Mapping[str, ArrayFile]
    version: int = VERSION

    def write(self, path: Path) -> None:
        """Write it last: a folder without a manifest is not finished."""
        with writing(path):
            write_json(path, to_plain(self))

    @classmethod
    def read(cls, path: Path, kind: str, about: type[T]) -> "tuple[Manifest, T]":
        """Read it, check the kind, and what is known of the whole as a dataclass; files are checked
        when they are opened.

        Raises:
            StoreError: where there is none, or one of another kind or version.
        """
        try:
            manifest: Manifest = Node.load(path).read(cls)
            if (manifest.version, manifest.kind) != (VERSION, kind):
                raise StoreError(
                    f"Expected a {kind} of version {VERSION} in {path.parent} "
                    f"(got a {manifest.kind} of version {manifest.version}); make the folder again"
                )
            return manifest, Node(manifest.about, file=path, place="about").read(about)
        except FileNotFoundError:
            raise StoreError(
                f"Expected a prepared folder with a {NAME} (there is no {path}); "
                "make it by `longnn prepare`"
            ) from None
        except (OSError, ValueError) as error:
            raise StoreError(str(error)) from error

    def file(self, folder: Path, name: str) -> Path:
        """The path of a file, of which the size is checked, not the checksum.

        Raises:
            StoreError: for a missing or truncated file.
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
        return path

    def array(self, folder: Path, name: str) -> np.memmap:
        """A file, mapped to be read only; as :meth:`file`, and its shape and type are checked."""
        path, entry = self.file(folder, name), self.files[name]
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if array.shape != entry.shape or array.dtype.str != entry.dtype:
            raise StoreError(
                f"Expected {entry.dtype} {entry.shape} in {path} "
                f"(got {array.dtype.str} {array.shape})"
            )
        return array

    def is_whole(self, folder: Path) -> bool:
        """Whether all files are there in their size."""
        try:
            return all(self.file(folder, name) for name in self.files)
        except StoreError:
            return False


def checksum(path: Path) -> int:
    """CRC-32 of a file, which finds damage, not forgery."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            value = zlib.crc32(chunk, value)
    return value


def ahead(jobs: Iterable[Callable[[], T]]) -> Iterator[T]:
    """The results of calls, each begun by a thread while the one before is in use."""
    with ThreadPoolExecutor(1) as pool:
        waiting: Future[T] | None = None
        for job in jobs:
            ready, waiting = waiting, pool.submit(job)
            if ready is not None:
                yield ready.result()
        if waiting is not None:
            yield waiting.result()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Make a folder where there is none; nobody else writes to it meanwhile."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("wb")
    with lock:
        if not try_lock(lock):
            raise StoreError(f"Expected to be alone in {folder} (another process is at work there)")
        try:
            yield
        finally:
            (folder / LOCK).unlink(missing_ok=True)


def require_disk(folder: Path, needed: int, remedy: str) -> None:
    """Raise unless there is room for so many bytes in a folder, which need not be there yet."""
    home = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(home).free
    if needed > free:
        raise StoreError(
            f"Expected {in_words(needed)} free for {folder} (got {in_words(free)}); {remedy}"
        )
