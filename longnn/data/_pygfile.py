"""A PyG ``Data`` saved by torch: read by torch's restricted unpickler, which runs nothing."""

import io
import pickle
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import EdgeStorage, GlobalStorage, NodeStorage

from longnn.data._errors import DataError
from longnn.data._limits import require_memory

# Plain classes of PyG: what a saved ``Data`` is made of besides tensors.
_SAFE = [Data, DataEdgeAttr, DataTensorAttr, EdgeStorage, GlobalStorage, NodeStorage]
#: What torch raises for a file that is damaged, foreign or hostile.
_RAISED = (
    pickle.UnpicklingError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def read_pyg(path: Path, keys: Sequence[str]) -> dict[str, object]:
    """The fields of a saved ``Data``, of a table of tensors, or of PyG's own processed file.

    Args:
        path: the file.
        keys: the names to read, besides the number of nodes.

    Raises:
        DataError: if it is damaged, would run code, or holds something else.
    """
    try:
        _require_room(path)
        fields = _fields(_load(path))
        found = fields if isinstance(fields, dict) else None
        kept = {k: found[k] for k in (*keys, "num_nodes") if found and found.get(k) is not None}
    except DataError:
        raise
    except _RAISED as error:
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


def _require_room(path: Path) -> None:
    """The memory for all that an archive holds, which may be compressed."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            size = sum(info.file_size for info in archive.infolist())
        require_memory(2 * size, "its tensors", path=path)


def _load(path: Path) -> Any:
    # On exit ``safe_globals`` drops all it was given, even what PyG had registered before.
    new = [kind for kind in _SAFE if kind not in torch.serialization.get_safe_globals()]
    with torch.serialization.safe_globals(new), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of odd pickles: we raise or it is fine
        if zipfile.is_zipfile(path):
            return torch.load(path, map_location="cpu", weights_only=True)
        # The old form has lengths in it, and a file is asked for as much as they say.
        return torch.load(io.BytesIO(path.read_bytes()), map_location="cpu", weights_only=True)


def _fields(saved: Any) -> Any:
    if isinstance(saved, tuple) and saved:  # PyG's own processed files: (fields, slices, class)
        saved = saved[0]
    return saved.to_dict() if isinstance(saved, Data) else saved
