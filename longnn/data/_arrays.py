"""Graphs kept as arrays: SciPy sparse ``.npz``, Matrix Market ``.mtx``, PyG ``Data`` files.

Each becomes a PyG ``Data`` with whatever the file holds. Nothing in a file is ever executed:
``.npz`` is read without pickles and ``.pt`` with PyTorch's restricted unpickler.
"""

import pickle
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import EdgeStorage, GlobalStorage, NodeStorage

from longnn.data._dataset import MASKS, UNLABELLED
from longnn.data._errors import DataError, MissingFileError
from longnn.data._readtable import unreadable
from longnn.matrices import csr_from_scipy

ARRAY_SUFFIXES = (".npz", ".mtx", ".pt", ".pth")
_KEYS = ("x", "y", "edge_index", "edge_weight", "edge_attr", *MASKS)
# Plain classes of PyG: what a saved ``Data`` is made of besides tensors.
_SAFE = [Data, DataEdgeAttr, DataTensorAttr, EdgeStorage, GlobalStorage, NodeStorage]


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
            if b"\0" in path.read_bytes():  # SciPy crashes on it
                raise DataError("Expected a text file (got zero bytes in it).", path=path)
            fields = matrix_fields(path, scipy.io.mmread(path), as_features)
        else:
            fields = _read_pyg(path)
    except DataError:
        raise
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
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
        known = np.array([value is not None and value == value for value in y.tolist()])
        names, codes = np.unique(y[known].astype(str), return_inverse=True)
        labels = np.full(len(y), UNLABELLED)
        labels[known] = codes
        classes, fields = tuple(names.tolist()), {**fields, "y": labels}
    return _as_data(path, fields), classes


def _read_npz(path: Path, as_features: bool) -> dict[str, object]:
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        fields = {key: archive[key] for key in _KEYS if key in archive.files}
        names = ", ".join(archive.files)
        if "format" in archive.files:  # as scipy.sparse.save_npz writes
            stream.seek(0)
            matrix = sp.load_npz(stream)
            return {**matrix_fields(path, matrix, as_features), **fields}
    if not fields:
        raise DataError(
            f"Expected a SciPy sparse matrix or arrays named {', '.join(_KEYS)} (got {names}).",
            path=path,
        )
    return fields


def matrix_fields(path: Path | None, found: Any, as_features: bool) -> dict[str, object]:
    """The fields of a SciPy matrix, or of a dense one: those of edges, or of features.

    >>> matrix_fields(None, np.array([[0, 1], [1, 0]]), as_features=False)["edge_index"].tolist()
    [[0, 1], [1, 0]]
    """
    matrix = found if sp.issparse(found) else sp.coo_array(found)
    if as_features:
        if matrix.ndim != 2 or matrix.dtype.kind == "c":
            raise DataError("Expected a matrix of real features.", path=path)
        return {"x": csr_from_scipy(matrix)}
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"Expected a square adjacency (got {matrix.shape}).", path=path)
    matrix = sp.coo_array(matrix)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    fields: dict[str, object] = {"edge_index": np.stack([matrix.row, matrix.col])}
    if matrix.dtype.kind == "c":
        raise DataError("Expected real weights (got complex ones).", path=path)
    if not (matrix.data == 1).all():
        fields["edge_weight"] = matrix.data.astype(np.float64)
    fields["num_nodes"] = matrix.shape[0]
    return fields


def _read_pyg(path: Path) -> dict[str, object]:
    try:
        # On exit ``safe_globals`` drops all it was given, even what PyG had registered before.
        new = [kind for kind in _SAFE if kind not in torch.serialization.get_safe_globals()]
        with torch.serialization.safe_globals(new), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of odd pickles: we raise or it is fine
            saved = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, AttributeError, IndexError) as error:
        named = re.search(r"GLOBAL (\S+)", str(error))
        what = f"one that refers to {named[1]}" if named else "a damaged or foreign one"
        raise DataError(
            f"Expected a complete PyG Data file that loads without running code (got {what}); "
            "save one with torch.save(data.to_dict(), path).",
            path=path,
        ) from error
    if isinstance(saved, tuple) and saved:  # PyG's own processed files: (fields, slices, class)
        saved = saved[0]
    fields = saved.to_dict() if isinstance(saved, Data) else saved
    if not isinstance(fields, dict):
        raise DataError(f"Expected a PyG Data (got {type(fields).__name__}).", path=path)
    if "edge_index" not in fields:
        held = ", ".join(map(str, fields)) or "nothing"
        raise DataError(f"Expected `edge_index` in the file (got {held}).", path=path)
    return {key: fields[key] for key in (*_KEYS, "num_nodes") if fields.get(key) is not None}


def _as_data(path: Path | None, fields: dict[str, object]) -> Data:
    data = Data()
    for key, value in fields.items():
        if key == "num_nodes" and isinstance(value, int | Tensor):
            data.num_nodes = int(value)
        elif isinstance(value, Tensor):
            data[key] = value
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            data[key] = torch.from_numpy(np.ascontiguousarray(value))
        else:
            kind = getattr(value, "dtype", type(value).__name__)
            raise DataError(f"Expected `{key}` to hold numbers (got {kind}).", path=path)
    return data
