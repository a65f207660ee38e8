"""Pickles of the published datasets, read without running anything that is in them.

A pickle is a program: it names functions and calls them. Here every name stands for a small class
of this file that keeps what it is given and checks it, whatever the pickle meant by it. Only the
names of arrays, types of numbers, CSR matrices, dicts and lists are known; any other is refused.
"""

import collections
import io
import pickle
import re
import struct
import sys
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch

from longnn.data._errors import DataError, readable, require_memory
from longnn.data._tensors import is_graph_data
from longnn.matrices import check_compressed


class _Type:
    """Stands for ``numpy.dtype``."""

    def __init__(self, code: object, *_: object) -> None:
        if not isinstance(code, str):
            raise ValueError("a type of numbers without a name")
        self.dtype = np.dtype(code)
        if self.dtype.kind not in "biuf":
            raise ValueError(f"an array of {self.dtype}, not of numbers")

    def set(self, state: Any) -> None:
        order = state[1]
        if order in ("<", ">", "|", "="):
            self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """Stands for ``numpy.ndarray``."""

    array: np.ndarray

    def set(self, state: Any) -> None:
        _, shape, kind, by_column, content = state
        self.fill(content, kind, shape, "F" if by_column else "C")

    def fill(self, content: Any, kind: Any, shape: Any, order: Any) -> None:
        raw = content.encode("latin1") if isinstance(content, str) else bytes(content)
        if not isinstance(kind, _Type) or not isinstance(content, str | bytes | bytearray):
            raise ValueError("an array that is not made of numbers")
        if not isinstance(shape, tuple) or any(type(n) is not int or n < 0 for n in shape):
            raise ValueError("an array without a shape")
        # A copy in the byte order of this machine.
        flat = np.frombuffer(raw, kind.dtype).astype(kind.dtype.newbyteorder("="))
        self.array = flat.reshape(shape, order=order)


class _Matrix:
    """Stands for ``scipy.sparse.csr_matrix``."""

    def set(self, state: Any) -> None:
        self.fields = dict(state)


def _from_buffer(content: Any, kind: Any, shape: Any, order: Any) -> _Array:
    array = _Array()
    array.fill(content, kind, shape, order)
    return array


def _scalar(kind: Any, content: Any) -> Any:
    return _from_buffer(content, kind, (), "C").array.item()


_OF_NUMPY = (
    ("multiarray", "_reconstruct", lambda *_: _Array()),
    ("numeric", "_frombuffer", _from_buffer),
    ("multiarray", "scalar", _scalar),
)
_NAMES: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    **{(f"numpy.{core}.{a}", b): made for core in ("core", "_core") for a, b, made in _OF_NUMPY},
    ("scipy.sparse.csr", "csr_matrix"): _Matrix,
    ("scipy.sparse._csr", "csr_matrix"): _Matrix,
    ("scipy.sparse._csr", "csr_array"): _Matrix,
    ("collections", "defaultdict"): collections.defaultdict,
    **{(home, t.__name__): t for home in ("builtins", "__builtin__") for t in (list, dict)},
}


class _Unpickler(pickle._Unpickler):
    """The unpickler in Python: that in C takes as much memory as a pickle tells it to."""

    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}, and nothing is run")
        return _NAMES[module, name]

    def load_build(self) -> None:
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        state, made = stack.pop(), stack[-1]
        if type(made) not in (_Type, _Array, _Matrix):
            raise pickle.UnpicklingError(f"it changes a {type(made).__name__}")
        made.set(state)

    dispatch[pickle.BUILD[0]] = load_build

    def load_bytearray8(self) -> None:
        """The library's own makes room for all that is claimed before it reads a byte."""
        (size,) = struct.unpack("<Q", self.read(8))  # type: ignore[attr-defined]
        content = self.read(min(size, sys.maxsize))  # type: ignore[attr-defined]
        if len(content) < size:
            raise pickle.UnpicklingError("it is cut off")
        self.append(bytearray(content))  # type: ignore[attr-defined]

    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8


def read_pickle(path: Path) -> Any:
    """What a pickle holds: an array, a CSR matrix, or a dict; nothing in it is ever run."""
    with readable(path, "pickle of arrays, CSR matrices, dicts and lists"):
        # From memory: a file would take as much as a pickle asks it to read.
        content = io.BytesIO(path.read_bytes())
        return _made(_Unpickler(content, encoding="latin1").load())


def _made(found: Any) -> Any:
    if isinstance(found, _Array):
        return found.array
    if isinstance(found, _Matrix):
        fields: dict[str, Any] = {
            key: getattr(found.fields.get(key), "array", None) for key in _PARTS
        }
        if any(not isinstance(array, np.ndarray) for array in fields.values()):
            raise ValueError("a CSR matrix without its arrays")
        held: Any = found.fields
        rows, columns = held["_shape"] if "_shape" in held else held["shape"]
        if type(rows) is not int or type(columns) is not int or fields["data"].ndim != 1:
            raise ValueError("a CSR matrix without a shape")
        check_compressed(fields["indptr"], fields["indices"], len(fields["data"]), (rows, columns))
        return sp.csr_array(tuple(fields[key] for key in _PARTS), shape=(rows, columns))
    if isinstance(found, dict):
        return found
    raise ValueError(f"a {type(found).__name__}")


_PARTS = ("data", "indices", "indptr")


def read_pyg(path: Path, keys: Sequence[str]) -> dict[str, object]:
    """The fields of a saved ``Data``, of a table of tensors, or of PyG's own processed file."""
    try:
        fields = _load(path)
        if isinstance(fields, tuple) and fields:  # PyG's own: (fields, slices, class)
            fields = fields[0]
        fields = fields.to_dict() if is_graph_data(fields) else fields
        found = fields if isinstance(fields, dict) else None
        kept = {k: found[k] for k in (*keys, "num_nodes") if found and found.get(k) is not None}
    except DataError:
        raise
    except Exception as error:  # of torch, zipfile and pickle: whatever a hostile file brings about
        named = re.search(r"GLOBAL (\S+)", str(error))
        what = f"one that refers to {named[1]}" if named else "a damaged or foreign one"
        raise DataError(
            f"Expected a complete PyG Data file that loads without running code (got {what}); "
            "save one with torch.save(data.to_dict(), path).",
            path=path,
        ) from error
    if found is None:
        raise DataError(f"Expected a PyG Data (got {type(fields).__name__}).", path=path)
    if "edge_index" not in found:
        held = ", ".join(map(str, found)) or "nothing"
        raise DataError(f"Expected `edge_index` in the file (got {held[:200]}).", path=path)
    return kept


def _load(path: Path) -> Any:
    from torch_geometric.data import Data  # loads for seconds, and is needed for such a file alone
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import EdgeStorage, GlobalStorage, NodeStorage

    content: Any = path
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:  # which may be compressed
            size = sum(info.file_size for info in archive.infolist())
        require_memory(2 * size, "its tensors", path=path)
    else:  # the old form has lengths in it, and a file is asked for as much as they say
        content = io.BytesIO(path.read_bytes())
    kinds = (Data, DataEdgeAttr, DataTensorAttr, EdgeStorage, GlobalStorage, NodeStorage)
    # On exit ``safe_globals`` drops all it was given, even what PyG had registered before.
    known = torch.serialization.get_safe_globals()
    new: list[Any] = [kind for kind in kinds if kind not in known]
    with torch.serialization.safe_globals(new), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of odd pickles: we raise or it is fine
        return torch.load(content, map_location="cpu", weights_only=True)
