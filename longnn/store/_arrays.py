"""NumPy files written piece by piece: the shape is known at the end, and nothing is held whole.

Plain writes, no mapping: a full disk is an error here, not a signal that ends the program.
"""

import os
from pathlib import Path
from types import TracebackType

import numpy as np

from longnn._base.files import writing

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
