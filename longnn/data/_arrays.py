"""Graphs kept as arrays: SciPy sparse ``.npz``, Matrix Market ``.mtx``, PyG ``Data`` files.

Each becomes tensors by PyG's names, whatever the file holds. Nothing in a file is ever executed.
How pickles are read is the business of :mod:`longnn.data._pickles`.
"""

import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.lib import format
from torch import Tensor

from longnn.data._dataset import BESIDE, MASKS, UNLABELLED
from longnn.data._errors import DataError, readable, require_memory
from longnn.data._features import plain_tensor
from longnn.data._tensors import GraphTensors
from longnn.matrices import check_compressed, csr_from_scipy

_BANNER = re.compile(
    rb"%%MatrixMarket[ \t]+matrix[ \t]+(coordinate|array)[ \t]+"
    rb"(real|double|integer|unsigned-integer|pattern|complex)[ \t]+"
    rb"(general|symmetric|skew-symmetric|hermitian)[ \t\r]*\n",
    re.IGNORECASE,
)
_COMMENTS = re.compile(rb"(?:[ \t\r]*\n|[ \t]*%[^\n]*\n)*")
_SIZES = re.compile(rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})(?:[ \t]+(\d{1,18}))?[ \t\r]*(?:\n|\Z)")
_NUMBER = rb"[-+]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][-+]?\d{1,6})?|[-+]?(?:nan|inf)"
_NO_NUMBER = re.compile(rb"(?<!\S)(?!(?:" + _NUMBER + rb")(?!\S))\S+", re.IGNORECASE)


def read_matrix_market(path: Path) -> Any:
    """The matrix of a file, sparse or dense as it is written."""
    content = path.read_bytes()
    if b"\0" in content:
        raise DataError("Expected a text file (got zero bytes in it).", path=path)
    banner = _BANNER.match(content)
    if banner is None:
        first = content[:60].split(b"\n")[0]
        raise DataError(
            "Expected a complete Matrix Market file that begins with '%%MatrixMarket matrix "
            f"coordinate real general' or the like (got {_shown(first)}).",
            path=path,
        )
    comments = _COMMENTS.match(content, banner.end())
    assert comments is not None  # it matches nothing, too
    sizes = _SIZES.match(content, comments.end())
    if sizes is None:
        raise DataError(
            "Expected a readable, complete mtx file with a line of sizes (got none).", path=path
        )
    _check_sizes(path, banner[1].lower() == b"coordinate", sizes, content)
    wrong = _NO_NUMBER.search(content, sizes.end())
    if wrong is not None:
        line = content.count(b"\n", 0, wrong.start()) + 1
        raise DataError(f"Expected a number (got {_shown(wrong[0])}).", path=path, row=line)
    with readable(path, "mtx file"):
        import scipy.io  # slow to load, and for this alone

        return scipy.io.mmread(path)


def is_called_symmetric(path: Path) -> bool:
    """Whether a file lists half of a matrix, the other half being the same."""
    with path.open("rb") as file:
        banner = _BANNER.match(file.read(200))
    return banner is not None and banner[3].lower() in (b"symmetric", b"hermitian")


def _check_sizes(path: Path, sparse: bool, sizes: re.Match[bytes], content: bytes) -> None:
    """The number of values that the sizes promise, against the text that is there."""
    if sparse != (sizes[3] is not None):
        count = "rows, columns and entries" if sparse else "rows and columns"
        raise DataError(f"Expected {count} in the line of sizes.", path=path)
    rows, columns = int(sizes[1]), int(sizes[2])
    if not rows or not columns:
        raise DataError(
            f"Expected at least one row and one column (got {rows} and {columns}).", path=path
        )
    # An entry has a line of at least 4 characters; of a dense symmetric matrix half is listed.
    left = len(content) - sizes.end() + 1
    promised = int(sizes[3]) if sparse else rows * columns // 2
    most = left // 4 if sparse else left
    if promised > most:
        raise DataError(
            f"Expected as many values as the sizes promise (got {int(sizes[3] or rows * columns)} "
            f"in {left} bytes); the file may be truncated.",
            path=path,
        )


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("latin1"))


_LONGEST_HEADER = 10_000  # characters
#: By version; the third is that of arrays of records.
_HEADERS: Any = {(1, 0): format.read_array_header_1_0, (2, 0): format.read_array_header_2_0}


class Archive(Mapping[str, np.ndarray]):
    """The arrays of a file by name, read when asked for."""

    def __init__(self, path: Path, wanted: tuple[str, ...] | None = None) -> None:
        self.path = path
        with readable(path, "npz file"), zipfile.ZipFile(path) as archive:
            found = archive.infolist()
            names = [info.filename.removesuffix(".npy") for info in found]
            twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
            if twice is not None:
                raise ValueError(f"the array {twice!r} twice")
        self._members = dict(zip(names, found, strict=True))
        kept = [info for name, info in self._members.items() if not wanted or name in wanted]
        needed = sum(info.file_size for info in kept)
        require_memory(2 * needed, "its arrays", path=path)  # as they are, and as float32

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, name: str) -> np.ndarray:
        info = self._members[name]
        with (
            readable(self.path, "npz file", f" in its array {name!r}"),
            zipfile.ZipFile(self.path) as archive,
            archive.open(info) as stream,
        ):
            return _read_array(stream, info.file_size, self.path)

    def matrix(self, prefix: str = "", form: str = "csr") -> Any:
        """The sparse matrix that SciPy saved, or one whose arrays have a prefix in their names."""
        index = ("row", "col") if form == "coo" else ("indices", "indptr")
        for key in ("shape", "data", *index):
            if f"{prefix}{key}" not in self:
                raise DataError(f"Expected an array `{prefix}{key}` (got none).", path=self.path)
        with readable(self.path, "npz file"):
            shape = self[f"{prefix}shape"]
            if shape.dtype.kind not in "iu" or shape.shape != (2,) or (shape < 0).any():
                raise ValueError(f"a matrix of shape {shape.tolist()}")
            size = int(shape[0]), int(shape[1])
            data = self[f"{prefix}data"]
            if data.dtype.kind not in "biufc":
                raise ValueError(f"values of type {data.dtype}")
            first, second = (self[f"{prefix}{key}"] for key in index)
            if form == "coo":
                for ends, most in ((first, size[0]), (second, size[1])):
                    if ends.dtype.kind not in "iu" or ends.shape != data.shape or data.ndim != 1:
                        raise ValueError(f"indices of type {ends.dtype} and shape {ends.shape}")
                    if ends.size and (int(ends.min()) < 0 or int(ends.max()) >= most):
                        found = f"indices {ends.min()}..{ends.max()}"
                        raise ValueError(f"{found} in a matrix of shape {size}")
                return sp.coo_array((data, (_index(first), _index(second))), shape=size)
            if form not in ("csr", "csc"):
                raise ValueError(f"a sparse matrix of format {form!r}; save it as CSR, CSC or COO")
            check_compressed(second, first, len(data), size if form == "csr" else size[::-1])
            kind = sp.csr_array if form == "csr" else sp.csc_array
            return kind((data, _index(first), _index(second)), shape=size)


def _read_array(stream: IO[bytes], size: int, path: Path) -> np.ndarray:
    """The array of a member that holds ``size`` bytes."""
    version = format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"an array of format version {version[0]}.{version[1]}")
    shape, by_column, dtype = _HEADERS[version](stream, max_header_size=_LONGEST_HEADER)
    if dtype.kind == "O":
        raise ValueError("Object arrays cannot be loaded: they may run code")
    if dtype.kind not in "biufcUS" or dtype.itemsize == 0:
        raise ValueError(f"an array of {dtype}, neither numbers nor text")
    needed, left = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if min(shape, default=0) < 0 or needed != left:
        raise ValueError(f"an array of {needed} bytes in a member that has {left}")
    if dtype.kind not in "US":  # small numbers become float32
        require_memory(needed + 4.0 * math.prod(shape), "its numbers", path=path)
    content = bytearray()  # grows with what is there, whatever the directory promises
    while len(content) < needed:
        piece = stream.read(min(needed - len(content), 2**24))
        if not piece:
            raise EOFError(f"{len(content)} of {needed} bytes")
        content += piece
    stream.read(1)  # the end, where the checksum is compared
    array = np.frombuffer(content, dtype).reshape(shape, order="F" if by_column else "C")
    array = array.astype(_plain(dtype), copy=False)
    if dtype.kind == "U" and array.size and array.reshape(-1).view(np.uint32).max() > 0x10FFFF:
        raise ValueError("text with a code point beyond 0x10FFFF")
    return np.char.decode(array, "utf-8") if dtype.kind == "S" else array


def _plain(dtype: np.dtype) -> np.dtype:
    """The type in the byte order of this machine, and none longer than 64 bits."""
    if dtype.kind == "f" and dtype.itemsize > 8:
        return np.dtype(np.float64)
    return dtype.newbyteorder("=")


def _index(array: np.ndarray) -> np.ndarray:
    """Indices as SciPy takes them without a copy, or as int64."""
    kept = array.dtype in (np.dtype(np.int32), np.dtype(np.int64))
    return array if kept else array.astype(np.int64)


KEYS = ("x", "y", "edge_index", "edge_weight", "edge_attr", "edge_type", *MASKS, *BESIDE)


def as_arrays(
    fields: dict[str, object], path: Path | None = None
) -> tuple[GraphTensors, tuple[str, ...]]:
    """Arrays by name as tensors; the class names come with it if the labels are text.

    Args:
        fields: arrays under the names that PyG uses. Labels of text may be None where unknown.
        path: where they are from, for messages.
    """
    classes: tuple[str, ...] = ()
    y = fields.get("y")
    if isinstance(y, np.ndarray) and y.dtype.kind in "USO":
        if y.ndim != 1:
            raise DataError(f"Expected `y` of one dimension (got {y.shape}).", path=path)
        known = np.array([v is not None and v == v for v in y.tolist()], dtype=bool)
        names, codes = np.unique(y[known].astype(str), return_inverse=True)
        labels = np.full(len(y), UNLABELLED)
        labels[known] = codes
        classes, fields = tuple(names.tolist()), {**fields, "y": labels}
    return _as_data(path, fields), classes


def read_matrix(path: Path, as_features: bool) -> dict[str, object]:
    """The arrays of a Matrix Market file."""
    return matrix_fields(path, read_matrix_market(path), as_features)


def read_npz(path: Path, as_features: bool) -> dict[str, object]:
    """A SciPy sparse matrix, arrays of a graph by name, or both."""
    archive = Archive(path, (*KEYS, "format", "data", "indices", "indptr", "row", "col", "shape"))
    fields: dict[str, object] = {key: archive[key] for key in KEYS if key in archive}
    if "format" in archive:  # as scipy.sparse.save_npz writes
        form = archive["format"].astype("U").reshape(-1)
        matrix = archive.matrix(form=str(form[0]) if len(form) else "")
        return {**matrix_fields(path, matrix, as_features), **fields}
    if not fields:
        raise DataError(
            f"Expected a SciPy sparse matrix or arrays named {', '.join(KEYS)} (got "
            f"{', '.join(archive)}).",
            path=path,
        )
    return fields


def matrix_fields(path: Path | None, found: Any, as_features: bool) -> dict[str, object]:
    """The fields of a SciPy matrix, or of a dense one: those of edges, or of features."""
    matrix = found if sp.issparse(found) else np.asarray(found)
    if matrix.dtype.kind not in "biufc":
        raise DataError(f"Expected a matrix of numbers (got {matrix.dtype}).", path=path)
    if matrix.ndim != 2:
        raise DataError(f"Expected a matrix (got shape {matrix.shape}).", path=path)
    matrix = matrix if sp.issparse(matrix) else sp.coo_array(matrix)
    if as_features:
        if matrix.dtype.kind == "c":
            raise DataError("Expected a matrix of real features.", path=path)
        return {"x": csr_from_scipy(_trusted(path, matrix))}
    if matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"Expected a square adjacency (got {matrix.shape}).", path=path)
    matrix = _trusted(path, matrix).tocoo()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    fields: dict[str, object] = {"edge_index": np.stack([matrix.row, matrix.col])}
    if matrix.dtype.kind == "c":
        raise DataError("Expected real weights (got complex ones).", path=path)
    if not (matrix.data == 1).all():
        fields["edge_weight"] = matrix.data.astype(np.float64)
    fields["num_nodes"] = matrix.shape[0]
    return fields


def _trusted(path: Path | None, matrix: Any) -> Any:
    """The matrix, its index arrays checked, and what each row and column needs being there."""
    require_memory(64.0 * max(matrix.shape), f"a matrix of shape {matrix.shape}", path=path)
    try:
        if matrix.format != "csr":
            if hasattr(matrix, "check_format"):  # what compiled code does not look at
                matrix.check_format(full_check=True)
            return sp.coo_array(matrix)
        check_compressed(matrix.indptr, matrix.indices, len(matrix.data), matrix.shape)
        return matrix
    except ValueError as error:
        raise DataError(f"Expected a sparse matrix (got {error}).", path=path) from error


def _as_data(path: Path | None, fields: dict[str, object]) -> GraphTensors:
    data = GraphTensors()
    for key, value in fields.items():
        if key == "num_nodes":
            data["num_nodes"] = _count(path, value)
            continue
        kind = getattr(value, "dtype", type(value).__name__)
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            value = value.astype(_plain(value.dtype), order="C", copy=False)
            if value.dtype.kind == "u" and value.itemsize > 1:  # which torch does not compute with
                if value.size and int(value.max()) >= 2**63:
                    most = f"below 2^63 (got {int(value.max())})"
                    raise DataError(
                        f"Expected `{key}` {most}; write such labels as text.", path=path
                    )
                value = value.astype(np.int64)
            value = torch.from_numpy(value)
        if not isinstance(value, Tensor):
            raise DataError(f"Expected `{key}` to hold numbers (got {kind}).", path=path)
        if key != "x" and value.layout is not torch.strided:
            raise DataError(f"Expected `{key}` as a dense tensor (got {value.layout}).", path=path)
        data[key] = plain_tensor(value, key, path)
    return data


def _count(path: Path | None, value: object) -> int:
    """A number of nodes, from whatever holds one."""
    if isinstance(value, Tensor | np.ndarray) and math.prod(value.shape) == 1:
        value = value.item()
    if type(value) is not int or value < 0:
        raise DataError(f"Expected `num_nodes` to be a whole number (got {value!r}).", path=path)
    return value
