"""Graphs kept as arrays: SciPy sparse ``.npz``, Matrix Market ``.mtx``, PyG ``Data`` files.

Each becomes a PyG ``Data`` with whatever the file holds. Nothing in a file is ever executed. How
each format is read is the business of :mod:`longnn.data._npz`, :mod:`longnn.data._matrixmarket` and
:mod:`longnn.data._pygfile`.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from longnn.data._dataset import MASKS, UNLABELLED
from longnn.data._errors import DataError, MissingFileError
from longnn.data._features import plain_tensor
from longnn.data._limits import require_memory
from longnn.data._matrixmarket import read_matrix_market
from longnn.data._npz import Archive
from longnn.data._pygfile import read_pyg
from longnn.data._text import unreadable
from longnn.matrices import check_compressed, csr_from_scipy

ARRAY_SUFFIXES = (".npz", ".mtx", ".pt", ".pth")
_KEYS = ("x", "y", "edge_index", "edge_weight", "edge_attr", "edge_type", *MASKS)


def read_arrays(path: str | Path, *, as_features: bool = False) -> tuple[Data, tuple[str, ...]]:
    """Read a file of arrays; the class names come with it if its labels are text.

    Args:
        path: ``.npz`` (a SciPy sparse matrix, or arrays named ``edge_index``, ``edge_weight``,
            ``x``, ``y``, ``train_mask``, ..., or both), ``.mtx``, ``.pt`` or ``.pth``.
        as_features: read a sparse matrix as node features instead of an adjacency.

    Raises:
        MissingFileError: if there is no such file.
        DataError: if it is empty, truncated, unsafe or holds something else.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/graph.npz", edge_index=[[0], [1]], y=["cat", "dog"])
    ...     read_arrays(f"{folder}/graph.npz")
    (Data(y=[2], edge_index=[2, 1]), ('cat', 'dog'))
    """
    path = Path(path)
    if not path.exists():
        raise MissingFileError("Expected a file here (found none).", path=path)
    suffix = path.suffix.lower()
    try:
        if path.stat().st_size == 0:
            raise DataError("Expected a graph (got an empty file).", path=path)
        if suffix == ".npz":
            fields = _read_npz(path, as_features)
        elif suffix == ".mtx":
            fields = matrix_fields(path, read_matrix_market(path), as_features)
        else:
            fields = read_pyg(path, _KEYS)
    except OSError as error:
        if isinstance(error, DataError):
            raise
        raise unreadable(path, error) from error
    return as_arrays(fields, path)


def as_arrays(fields: dict[str, object], path: Path | None = None) -> tuple[Data, tuple[str, ...]]:
    """Arrays by name as a ``Data``; the class names come with it if the labels are text.

    Args:
        fields: arrays under the names that PyG uses. Labels of text may be None where unknown.
        path: where they are from, for messages.

    >>> as_arrays({"y": np.array(["cat", None, "dog"], dtype=object)})
    (Data(y=[3]), ('cat', 'dog'))
    """
    classes: tuple[str, ...] = ()
    y = fields.get("y")
    if isinstance(y, np.ndarray) and y.dtype.kind in "USO":
        if y.ndim != 1:
            raise DataError(f"Expected `y` of one dimension (got {y.shape}).", path=path)
        known = np.array([value is not None and value == value for value in y.tolist()])
        names, codes = np.unique(y[known].astype(str), return_inverse=True)
        labels = np.full(len(y), UNLABELLED)
        labels[known] = codes
        classes, fields = tuple(names.tolist()), {**fields, "y": labels}
    return _as_data(path, fields), classes


def _read_npz(path: Path, as_features: bool) -> dict[str, object]:
    archive = Archive(path, (*_KEYS, "format", "data", "indices", "indptr", "row", "col", "shape"))
    fields: dict[str, object] = {key: archive[key] for key in _KEYS if key in archive}
    if "format" in archive:  # as scipy.sparse.save_npz writes
        form = archive["format"].astype("U").reshape(-1)
        matrix = archive.matrix(form=str(form[0]) if len(form) else "")
        return {**matrix_fields(path, matrix, as_features), **fields}
    if not fields:
        raise DataError(
            f"Expected a SciPy sparse matrix or arrays named {', '.join(_KEYS)} (got "
            f"{', '.join(archive)}).",
            path=path,
        )
    return fields


def matrix_fields(path: Path | None, found: Any, as_features: bool) -> dict[str, object]:
    """The fields of a SciPy matrix, or of a dense one: those of edges, or of features.

    >>> matrix_fields(None, np.array([[0, 1], [1, 0]]), as_features=False)["edge_index"].tolist()
    [[0, 1], [1, 0]]
    """
    matrix = found if sp.issparse(found) else _from_dense(path, found)
    if as_features:
        if matrix.ndim != 2 or matrix.dtype.kind == "c":
            raise DataError("Expected a matrix of real features.", path=path)
        return {"x": csr_from_scipy(_trusted(path, matrix))}
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
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


def _from_dense(path: Path | None, found: Any) -> sp.coo_array:
    array = np.asarray(found)
    if array.dtype.kind not in "biufc":
        raise DataError(f"Expected a matrix of numbers (got {array.dtype}).", path=path)
    if array.ndim != 2:
        raise DataError(f"Expected a matrix (got shape {array.shape}).", path=path)
    return sp.coo_array(array)


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


def _as_data(path: Path | None, fields: dict[str, object]) -> Data:
    data = Data()
    for key, value in fields.items():
        if key == "num_nodes":
            data.num_nodes = _count(path, value)
            continue
        kind = getattr(value, "dtype", type(value).__name__)
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            value = torch.from_numpy(np.asarray(_as_torch_has(path, key, value), order="C"))
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


def _as_torch_has(path: Path | None, key: str, array: np.ndarray) -> np.ndarray:
    """Numbers of a type that torch computes with: no unsigned ones but bytes, none of 128 bits."""
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        if array.size and int(array.max()) >= 2**63:
            raise DataError(
                f"Expected `{key}` below 2^63 (got {int(array.max())}); write such labels as text.",
                path=path,
            )
        return array.astype(np.int64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)
