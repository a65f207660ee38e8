"""A file of sparse features → features of the nodes, beside those of the node file.

Either a matrix with one row per node, or a long table with one row per nonzero value: id, feature,
value. Neither is ever made dense. Knows nothing of edges, labels or of other columns.
"""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from longnn._base.late import Late
from longnn.data._edgetable import Ids, whole_numbers
from longnn.data._errors import DataError
from longnn.data._features import side_by_side
from longnn.data._formats import Parts, called, is_table, read_arrays
from longnn.data._nodetable import ID_NAMES, Nodes
from longnn.data._tables import Table, open_table
from longnn.matrices import csr_from_scipy

pc = Late("pyarrow.compute")

FEATURE_NAMES = ("feature", "word", "term", "token")
VALUE_NAMES = ("value", "count", "weight")


def find_feature_file(graph: Path, given: str | Path | None, features: str) -> Path | None:
    """The file the user named, else ``features.*`` in the folder, or None."""
    wanted = features in ("auto", "columns")
    if given is None:
        return called("features", graph) if wanted and graph.is_dir() else None
    path = Path(given)
    if not wanted:
        raise DataError(
            f"Expected no `feature_file` with features={features!r}; leave one of the two out.",
            path=path,
        )
    return Parts.of(path).path


def is_matrix(path: Path | None) -> bool:
    """Whether a feature file is a matrix: its rows, not ids, then say which node is meant."""
    return path is not None and not path.is_dir() and not is_table(path)


def read_feature_file(nodes: Nodes, path: Path) -> tuple[Tensor, tuple[str, ...]]:
    """The features of a file, perhaps sparse, and their names, or none."""
    if is_matrix(path):
        matrix = read_arrays(path, as_features=True)[0].get("x")
        if matrix is None or matrix.dim() != 2:
            raise DataError("Expected a matrix (nodes, features), or an array `x`.", path=path)
        if len(matrix) != nodes.count:
            raise DataError(
                f"Expected {nodes.count} rows, one per node in their order (got {len(matrix)}).",
                path=path,
            )
        return matrix, ()
    x, names = _read_long(open_table(Parts.of(path)), nodes)
    nodes.open_features = len(names)
    return x, names


def join_features(nodes: Nodes, x: Tensor, names: tuple[str, ...], path: Path) -> None:
    """Set the features of a file beside those that the nodes have already."""
    width = 0 if nodes.x is None else nodes.x.shape[1]
    nodes.feature_names = joined_names(nodes, names, (width, x.shape[1]), path)
    nodes.x = x if nodes.x is None else side_by_side(nodes.x, x)


def joined_names(
    nodes: Nodes, names: tuple[str, ...], widths: tuple[int, int], path: Path
) -> tuple[str, ...]:
    """The names of the nodes' features and of those of a file behind them."""
    if not widths[0] or not (names or nodes.feature_names):
        return names
    names = names or tuple(f"features[{i}]" for i in range(widths[1]))
    known = nodes.feature_names or tuple(f"x[{i}]" for i in range(widths[0]))
    twice = sorted(set(known) & set(names))
    if twice:
        raise DataError(
            f"Expected each feature once (got {twice[0]!r} in {nodes.source} too); rename it.",
            path=path,
            value=twice[0],
        )
    return (*known, *names)


def _read_long(table: Table, nodes: Nodes) -> tuple[Tensor, tuple[str, ...]]:
    """The features and their names, sorted; repeated entries are added."""
    key, feature, value = _columns(table)
    known = Ids(nodes.known_ids)
    ids = _texts(table, key)
    rows = known.find(ids)
    if (rows < 0).any():
        row, remedy = int((rows < 0).argmax()), "; add the node or remove the line."
        raise table.wrong("the id of a node of the graph", row, key, remedy)
    encoded = _texts(table, feature).dictionary_encode()
    numbers, texts = whole_numbers(encoded.dictionary), encoded.dictionary.to_pylist()
    by = texts if numbers is None else numbers.to_pylist()
    order = sorted(range(len(texts)), key=by.__getitem__)
    names, rank = tuple(texts[i] for i in order), np.argsort(order).astype(np.int32)
    columns = rank[encoded.indices.to_numpy(zero_copy_only=False)]
    values = np.ones(len(table)) if value is None else table.numbers(value)
    nodes.notes += table.notes
    place = (rows, columns)
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
        raise table.wrong("an id and a feature", row, column)
    return texts
