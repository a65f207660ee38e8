"""The user's own graph, from what Python has: data frames, NetworkX graphs, SciPy matrices.

Each becomes the tables or arrays that files are read into, and takes the same path from there. No
package for data frames or graphs is imported: they are known by their methods.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pyarrow.interchange import from_dataframe
from torch import Tensor

from longnn.data._arrays import as_arrays, matrix_fields
from longnn.data._assemble import Arrays, assemble
from longnn.data._dataset import NodeDataset
from longnn.data._errors import DataError
from longnn.data._nodetable import ID_NAMES
from longnn.data._options import TableOptions
from longnn.data._tables import Table, from_arrow


def from_pandas(edges: Any, nodes: Any = None, **options: Any) -> NodeDataset:
    """A graph from data frames: pandas, Polars, Arrow, or any that Arrow can read.

    Args:
        edges: one edge per row.
        nodes: one node per row; without it the nodes are those in the edges. Their ids are the
            column that ``id_column`` names, else one called id, node or node_id; without such a
            column the index of a pandas frame, or the first column of any other.
        options: as in :func:`load_files`, such as ``label_column``.

    Raises:
        DataError: naming the frame (edges or nodes), the row and the column of what is wrong.

    >>> edges = pa.table({"source": ["ann", "bob"], "target": ["bob", "eve"]})
    >>> nodes = pa.table({"id": ["ann", "bob", "eve"], "age": [41, None, 7], "label": list("xyx")})
    >>> from_pandas(edges, nodes, name="friends")
    NodeDataset('friends', nodes=3, edges=2, features=2, classes=2, labelled=3, splits=0)
    """
    chosen = TableOptions.from_dict(options)
    node_table = None
    if nodes is not None:
        node_table = _as_table(nodes, "nodes")
        if _is_pandas(nodes):
            node_table, chosen = _with_index(node_table, nodes, chosen)
    return _assemble(_as_table(edges, "edges"), node_table, chosen)


def from_networkx(graph: Any, **options: Any) -> NodeDataset:
    """A graph from NetworkX: its nodes are the ids, their attributes the columns.

    Args:
        graph: any NetworkX graph. Of a directed one each edge is made two-way, unless the option
            ``directed`` is true; of an undirected one that is an error.
        options: as in :func:`load_files`; ``label_column`` names an attribute of the nodes,
            ``weight_column`` one of the edges (default weight; an edge without it has weight 1),
            ``type_column`` another, the type of an edge.

    Raises:
        DataError: naming the node or edge of what is wrong by its number.
    """
    chosen = TableOptions.from_dict(options)
    for key in ("id_column", "source_column", "target_column"):
        if getattr(chosen, key) is not None:
            raise DataError(f"Expected no `{key}`: a NetworkX graph knows its nodes.")
    if not graph.is_directed():
        if chosen.directed is True:
            raise DataError(
                "Expected a directed NetworkX graph for directed=True (got an undirected one); use "
                "graph.to_directed(), or directed=False."
            )
        chosen = dataclasses.replace(chosen, directed=False)
    keys = list(graph.nodes)
    if not keys:
        raise DataError("Expected nodes in the graph (got none).")
    names = dict.fromkeys(name for _, held in graph.nodes(data=True) for name in held)
    columns = {_unused("id", names): _ids(keys)}
    (id_column,) = columns
    for name in names:
        columns[str(name)] = _as_array([held.get(name) for _, held in graph.nodes(data=True)])
    weight = chosen.weight_column or "weight"
    pairs = list(graph.edges(data=weight, default=None))
    ends = {
        "source": pa.array([str(u) for u, _, _ in pairs], pa.string()),
        "target": pa.array([str(v) for _, v, _ in pairs], pa.string()),
    }
    weights = [w for *_, w in pairs]
    weighted = any(w is not None for w in weights)
    if chosen.weight_column is not None and not weighted:
        raise DataError(f"Expected edges with an attribute {weight!r} (got none).")
    if weighted:
        ends["weight"] = _as_array([1.0 if w is None else w for w in weights])
    if chosen.type_column is not None:
        kinds = [kind for *_, kind in graph.edges(data=chosen.type_column, default=None)]
        ends[chosen.type_column] = pa.array([None if k is None else str(k) for k in kinds])
    chosen = dataclasses.replace(chosen, id_column=id_column, weight_column=None)
    node_table = from_arrow(pa.table(columns), "nodes")
    return _assemble(from_arrow(pa.table(ends), "edges"), node_table, chosen)


def from_scipy(
    adjacency: Any,
    features: Any = None,
    y: Any = None,
    *,
    ids: Sequence[str] | Sequence[int] | None = None,
    feature_names: Sequence[str] = (),
    **options: Any,
) -> NodeDataset:
    """A graph from matrices: node i is row i.

    Args:
        adjacency: a square SciPy sparse matrix or array of weights.
        features: (nodes, features), sparse or not; without it, see the option ``features`` of
            :func:`load_files`.
        y: labels (nodes,) or (nodes, targets): names of classes (None where unknown), whole numbers
            (-1 where unknown), or other numbers (NaN where unknown).
        ids: one per node; by default 0, 1, ...
        feature_names: one per feature, or none.
        options: ``task``, ``directed``, ``self_loops`` and ``name`` of :func:`load_files`.

    Raises:
        DataError: naming what is wrong.

    >>> path = sp.csr_array(np.diag([1.0, 2.0], 1))
    >>> from_scipy(path, features=np.eye(3), y=["a", "b", None], ids=["x", "y", "z"]).classes
    ('a', 'b')
    """
    for key in options:
        if key.endswith(("_column", "_columns")):
            raise DataError(f"Expected no `{key}`: a matrix has no columns with names.")
    if features is not None and options.get("features", "auto") not in ("auto", "columns"):
        raise DataError(f"Expected no features beside features={options['features']!r}.")
    chosen = TableOptions.from_dict(options)
    fields = matrix_fields(None, adjacency, as_features=False)
    size = fields["num_nodes"]
    if features is not None:
        sparse = sp.issparse(features)
        fields |= matrix_fields(None, features, True) if sparse else {"x": _plain(features)}
    if y is not None:
        fields["y"] = _plain(y)
    for key in ("x", "y"):
        rows = len(fields[key]) if key in fields else size  # type: ignore[arg-type]
        if rows != size:
            what = "features" if key == "x" else "labels"
            raise DataError(f"Expected {what} of {size} nodes (got {rows}).")
    arrays = Arrays(*as_arrays(fields), frame="the matrix")
    dataset = assemble(arrays, None, chosen, name="graph")
    if ids is None and not feature_names:
        return dataset
    known: Any = dataset.ids if ids is None else list(ids)
    names = tuple(feature_names) or dataset.feature_names
    return dataclasses.replace(dataset, ids=known, feature_names=names)


def _assemble(edges: Table, nodes: Table | None, options: TableOptions) -> NodeDataset:
    if len(edges) == 0:
        raise edges.error("Expected at least one edge (got none).")
    return assemble(edges, nodes, options, name="graph")


def _is_pandas(frame: Any) -> bool:
    return type(frame).__module__.partition(".")[0] == "pandas"


def _as_table(frame: Any, what: str) -> Table:
    """A data frame as a table that is called ``what`` in messages."""
    if isinstance(frame, Table):
        return frame
    if _is_pandas(frame) and hasattr(frame, "columns"):
        arrays = [_as_array(frame.iloc[:, i]) for i in range(frame.shape[1])]
        frame = pa.table(arrays, names=[str(name) for name in frame.columns])
    if isinstance(frame, pa.Table):
        return from_arrow(frame, what)
    if any("\0" in str(name) for name in getattr(frame, "columns", ())):  # Polars crashes on it
        raise DataError(f"Expected names of columns without zero bytes in `{what}`.")
    if hasattr(frame, "__arrow_c_stream__"):
        return from_arrow(pa.table(frame), what)
    if hasattr(frame, "__dataframe__"):
        return from_arrow(from_dataframe(frame), what)
    raise DataError(
        f"Expected `{what}` to be a pandas, Polars or Arrow table (got {type(frame).__name__}); "
        "for files use load."
    )


def _with_index(table: Table, frame: Any, options: TableOptions) -> tuple[Table, TableOptions]:
    """The index of a pandas frame as the id column, if it is named as such or there is no other."""
    given, named = options.id_column, frame.index.name
    by_name = given is not None and given not in table.columns and given == str(named)
    if not by_name and table.find(given, ID_NAMES, "id") is not None:
        return table, options
    name = given if given is not None else _unused("id", table.names)
    columns = {name: _ids(frame.index.tolist()), **table.columns}
    return (
        dataclasses.replace(table, columns=columns),
        dataclasses.replace(options, id_column=name),
    )


def _ids(keys: Sequence[Any]) -> pa.Array:
    """Ids as text, as they read."""
    return pa.array([str(key) for key in keys], pa.string())


def _unused(name: str, names: Iterable[Any]) -> str:
    taken = {str(other) for other in names}
    while name in taken:
        name = f"_{name}"
    return name


def _as_array(values: Any) -> pa.Array:
    """Values of one type as they are; mixed ones as text, None and NaN as gaps."""
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        gaps = (v is None or (isinstance(v, float) and v != v) for v in values)
        texts = [None if gap else str(v) for gap, v in zip(gaps, values, strict=True)]
        return pa.array(texts, pa.string())
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _plain(values: Any) -> np.ndarray:
    return values.numpy(force=True) if isinstance(values, Tensor) else np.asarray(values)
