"""A file of sparse features → features of the nodes, beside those of the node file.

Either a matrix with one row per node, or a long table with one row per nonzero value: id, feature,
value. Neither is ever made dense. Knows nothing of edges, labels or of other columns.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from torch import Tensor

from longnn.data._arrays import read_arrays
from longnn.data._edgetable import whole_numbers
from longnn.data._errors import DataError, require_file
from longnn.data._features import side_by_side
from longnn.data._nodetable import ID_NAMES, Nodes
from longnn.data._tables import TABLE_SUFFIXES, Table, read_table
from longnn.data._text import table_suffix
from longnn.matrices import csr_from_scipy

MATRIX_SUFFIXES = (".npz", ".mtx")
FEATURE_NAMES = ("feature", "word", "term", "token")
VALUE_NAMES = ("value", "count", "weight")
_SUFFIXES = (*TABLE_SUFFIXES, *MATRIX_SUFFIXES)


def find_feature_file(edges: Path, given: str | Path | None, features: str) -> Path | None:
    """The file the user named, else ``features.*`` in the folder, or None."""
    wanted = features in ("auto", "columns")
    if given is None:
        found = sorted(edges.glob("features.*")) if wanted and edges.is_dir() else []
        found = [path for path in found if table_suffix(path) in _SUFFIXES]
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise DataError(f"Expected one features file (got {names}).", path=edges)
        return found[0] if found else None
    path = Path(given)
    if not wanted:
        raise DataError(
            f"Expected no `feature_file` with features={features!r}; leave one of the two out.",
            path=path,
        )
    require_file(path)
    if table_suffix(path) not in _SUFFIXES:
        raise DataError(
            f"Expected a file of type {', '.join(_SUFFIXES)} (got {path.suffix!r}).", path=path
        )
    return path


def is_matrix(path: Path | None) -> bool:
    """Whether a feature file is a matrix: its rows, not ids, then say which node is meant."""
    return path is not None and path.suffix.lower() in MATRIX_SUFFIXES


def add_feature_file(nodes: Nodes, path: Path | None) -> None:
    """Read the file's features and set them beside those that the nodes have already."""
    if path is None:
        return
    names: tuple[str, ...] = ()
    if is_matrix(path):
        x = _read_matrix(path, nodes)
    else:
        x, names = _read_long(read_table(path), nodes)
        nodes.open_features = len(names)
    if nodes.x is None:
        nodes.x, nodes.feature_names = x, names
        return
    if names or nodes.feature_names:
        names = names or tuple(f"features[{i}]" for i in range(x.shape[1]))
        known = nodes.feature_names or tuple(f"x[{i}]" for i in range(nodes.x.shape[1]))
        twice = sorted(set(known) & set(names))
        if twice:
            raise DataError(
                f"Expected each feature once (got {twice[0]!r} in {nodes.source} too); rename it.",
                path=path,
                value=twice[0],
            )
        nodes.feature_names = (*known, *names)
    nodes.x = side_by_side(nodes.x, x)


def _read_matrix(path: Path, nodes: Nodes) -> Tensor:
    x = read_arrays(path, as_features=True)[0].get("x")
    if x is None or x.dim() != 2:
        raise DataError("Expected a matrix (nodes, features), or an array `x`.", path=path)
    if len(x) != nodes.count:
        raise DataError(
            f"Expected {nodes.count} rows, one per node in their order (got {len(x)}).", path=path
        )
    return x


def _read_long(table: Table, nodes: Nodes) -> tuple[Tensor, tuple[str, ...]]:
    """The features and their names, sorted; repeated entries are added."""
    key, feature, value = _columns(table)
    known = nodes.ids
    if known is None:
        known = pa.array([str(i) for i in range(nodes.count or 0)], pa.string())
    ids = _texts(table, key)
    rows = pc.index_in(ids, value_set=known)
    if rows.null_count:
        row = pc.index(pc.is_null(rows), True).as_py()
        got = ids[row].as_py()
        raise table.error(
            f"Expected the id of a node of the graph (got {got!r}); add the node or remove the "
            "line.",
            row,
            key,
            value=got,
        )
    encoded = _texts(table, feature).dictionary_encode()
    names, rank = _sorted(encoded.dictionary)
    columns = rank[encoded.indices.to_numpy(zero_copy_only=False)]
    values = np.ones(len(table)) if value is None else table.numbers(value)
    nodes.notes += table.notes
    place = (rows.to_numpy(zero_copy_only=False), columns)
    shape = (len(known), len(names))
    return csr_from_scipy(sp.csr_array((values, place), shape=shape)), names


def _columns(table: Table) -> tuple[str, str, str | None]:
    """The columns of id, feature and value: by name, or by place where there is no header."""
    names = table.names
    if not table.has_header and len(names) in (2, 3):
        return names[0], names[1], names[2] if len(names) == 3 else None
    key = table.find(None, ID_NAMES, "id") or names[0]
    feature = table.find(None, FEATURE_NAMES, "feature")
    value = table.find(None, VALUE_NAMES, "value")
    unused = [name for name in names if name not in (key, feature, value)]
    if feature is None or key == feature or unused:
        raise table.error(
            "Expected the columns id, feature and value, the last one optional, with one row per "
            f"nonzero value (got {', '.join(map(repr, names))}); a table with one row per node "
            "is a node file."
        )
    return key, feature, value


def _texts(table: Table, column: str) -> Any:
    texts = table.texts(column)
    if texts.null_count:
        row = pc.index(pc.is_null(texts), True).as_py()
        raise table.error("Expected an id and a feature (got an empty cell).", row, column)
    return texts


def _sorted(distinct: Any) -> tuple[tuple[str, ...], np.ndarray]:
    """Names in order, whole numbers by value, and the place of each distinct name in it."""
    numbers, texts = whole_numbers(distinct), distinct.to_pylist()
    order = sorted(range(len(texts)), key=(texts if numbers is None else numbers).__getitem__)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    return tuple(texts[i] for i in order), rank
