"""Arrays of an ``.npz`` file, each looked at before it is read.

A file says of itself how large its arrays are, in the directory of the archive and in the header of
each array. Both must agree with each other and with the memory that is free, so that a small file
cannot ask for much. Arrays come out in the byte order of this machine. Nothing is unpickled.
"""

import ast
import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from longnn.data._errors import DataError
from longnn.data._limits import require_memory
from longnn.matrices import check_compressed

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000  # characters, NumPy's own limit
#: What the readers of archives and of headers raise for a damaged file.
_RAISED = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class Archive(Mapping[str, np.ndarray]):
    """The arrays of a file by name, read when asked for.

    Args:
        path: the file.
        wanted: the names that are going to be read; together they must fit into memory.

    Raises:
        DataError: naming the file, the array and what is wrong with it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/a.npz", x=np.eye(2, dtype=">f8"))
    ...     archive = Archive(Path(folder, "a.npz"))
    ...     list(archive), archive["x"].dtype
    (['x'], dtype('float64'))
    """

    def __init__(self, path: Path, wanted: tuple[str, ...] | None = None) -> None:
        self.path = path
        self._members = self._guarded(None, self._directory)
        kept = [info for name, info in self._members.items() if not wanted or name in wanted]
        needed = sum(info.file_size for info in kept)
        require_memory(2 * needed, "its arrays", path=path)  # as they are, and as float32

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, name: str) -> np.ndarray:
        info = self._members[name]

        def read() -> np.ndarray:
            with zipfile.ZipFile(self.path) as archive, archive.open(info) as stream:
                return _read_array(stream, info.file_size)

        return self._guarded(name, read)

    def matrix(self, prefix: str = "", form: str = "csr") -> Any:
        """The sparse matrix that SciPy saved, or one whose arrays have a prefix in their names."""

        def make() -> Any:
            shape = self[f"{prefix}shape"]
            if shape.dtype.kind not in "iu" or shape.shape != (2,) or (shape < 0).any():
                raise ValueError(f"a matrix of shape {shape.tolist()}")
            size = int(shape[0]), int(shape[1])
            data = self[f"{prefix}data"]
            if data.dtype.kind not in "biufc":
                raise ValueError(f"values of type {data.dtype}")
            if form in ("csr", "csc"):
                return _compressed(self, prefix, form, data, size)
            if form == "coo":
                return _coordinates(self["row"], self["col"], data, size)
            raise ValueError(f"a sparse matrix of format {form!r}; save it as CSR, CSC or COO")

        missing = [key for key in self._parts(form) if f"{prefix}{key}" not in self]
        if missing:
            raise DataError(f"Expected an array `{prefix}{missing[0]}` (got none).", path=self.path)
        return self._guarded(None, make)

    def _parts(self, form: str) -> tuple[str, ...]:
        return ("shape", "data", *(("row", "col") if form == "coo" else ("indices", "indptr")))

    def _directory(self) -> dict[str, zipfile.ZipInfo]:
        with zipfile.ZipFile(self.path) as archive:
            found = archive.infolist()
        names = [info.filename.removesuffix(".npy") for info in found]
        twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            raise ValueError(f"the array {twice!r} twice")
        return dict(zip(names, found, strict=True))

    def _guarded(self, name: str | None, read: Callable[[], Any]) -> Any:
        """What ``read`` returns; what it raises becomes one error with file, array and reason."""
        try:
            return read()
        except DataError:
            raise
        except _RAISED as error:
            where = "" if name is None else f" in its array {name!r}"
            raise DataError(
                f"Expected a readable, complete npz file (got {type(error).__name__}: "
                f"{error}{where}).",
                path=self.path,
            ) from error


def _read_array(stream: IO[bytes], size: int) -> np.ndarray:
    """The array of a member that holds ``size`` bytes."""
    shape, dtype, by_column, start = _read_header(stream)
    needed = math.prod(shape) * dtype.itemsize
    if needed != size - start:
        raise ValueError(f"an array of {needed} bytes in a member that has {size - start}")
    content = bytearray(needed)
    view, place = memoryview(content), 0
    while place < needed:
        piece = stream.read(min(needed - place, 2**24))
        if not piece:
            raise EOFError(f"{place} of {needed} bytes")
        view[place : place + len(piece)] = piece
        place += len(piece)
    stream.read(1)  # the end, where the checksum is compared
    array = np.frombuffer(content, dtype).reshape(shape, order="F" if by_column else "C")
    return array.astype(_plain(dtype), copy=False)


def _plain(dtype: np.dtype) -> np.dtype:
    """The type in the byte order of this machine, and none longer than 64 bits."""
    if dtype.kind == "f" and dtype.itemsize > 8:
        return np.dtype(np.float64)
    return dtype.newbyteorder("=")


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype, bool, int]:
    """Shape, type, order and length of the header of an ``.npy`` file.

    The format is described in the documentation of ``numpy.lib.format``.
    """
    top = stream.read(8)
    if len(top) < 8 or top[:6] != _MAGIC:
        raise ValueError("a member that is not an array")
    width = {1: 2, 2: 4, 3: 4}.get(top[6])
    if width is None:
        raise ValueError(f"an array of format version {top[6]}.{top[7]}")
    length = int.from_bytes(stream.read(width), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"a header of {length} characters, at most {_LONGEST_HEADER} are usual")
    header = ast.literal_eval(stream.read(length).decode("latin1").strip())
    shape, by_column, code = header["shape"], header["fortran_order"], header["descr"]
    whole = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
    if not whole or not isinstance(by_column, bool) or not isinstance(code, str):
        raise ValueError("a header without shape, order and one type")
    dtype = np.dtype(code)
    if dtype.kind == "O":
        raise ValueError("Object arrays cannot be loaded: they may run code")
    if dtype.kind not in "biufcUS" or dtype.itemsize == 0:
        raise ValueError(f"an array of {dtype}, neither numbers nor text")
    return shape, dtype, by_column, 8 + width + length


def _compressed(
    arrays: Mapping[str, np.ndarray],
    prefix: str,
    form: str,
    data: np.ndarray,
    size: tuple[int, int],
) -> Any:
    pointers, indices = arrays[f"{prefix}indptr"], arrays[f"{prefix}indices"]
    check_compressed(pointers, indices, len(data), size if form == "csr" else size[::-1])
    kind = sp.csr_array if form == "csr" else sp.csc_array
    return kind((data, _index(indices), _index(pointers)), shape=size)


def _index(array: np.ndarray) -> np.ndarray:
    """Indices as SciPy takes them without a copy, or as int64."""
    kept = array.dtype in (np.dtype(np.int32), np.dtype(np.int64))
    return array if kept else array.astype(np.int64)


def _coordinates(
    row: np.ndarray, col: np.ndarray, data: np.ndarray, size: tuple[int, int]
) -> sp.coo_array:
    for index, most in ((row, size[0]), (col, size[1])):
        if index.dtype.kind not in "iu" or index.shape != data.shape or data.ndim != 1:
            raise ValueError(f"indices of type {index.dtype} and shape {index.shape}")
        if index.size and (int(index.min()) < 0 or int(index.max()) >= most):
            raise ValueError(f"indices {index.min()}..{index.max()} in a matrix of shape {size}")
    return sp.coo_array((data, (_index(row), _index(col))), shape=size)
