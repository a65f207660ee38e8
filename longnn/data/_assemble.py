"""From tables or arrays in memory to a graph: the one path of all loaders of the user's own data.

Combines edges and nodes, and makes features if there are none. How a table or a file of arrays is
read is the business of others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from longnn.data._arcs import linked_nodes, merge_edges
from longnn.data._convert import edge_tensors, from_data, node_numbers
from longnn.data._dataset import BESIDE, MASKS, NodeDataset
from longnn.data._edgetable import Batch, EdgeTable, Ids, whole_numbers, with_unknown
from longnn.data._errors import DataError, require_memory
from longnn.data._featurefile import join_features, read_feature_file
from longnn.data._features import DEGREES
from longnn.data._nodetable import NodeColumns, Nodes, read_features, read_nodes
from longnn.data._options import TableOptions
from longnn.data._relations import check_types
from longnn.data._tables import Table
from longnn.data._tensors import GraphTensors
from longnn.matrices import csr

_FAR = 100  # a node number beyond so many times the number of nodes that occur is an id
MAX_IDENTITY = 1_000_000  # nodes: 1 GB of weights, gradients and moments for 64 hidden units


@dataclass(frozen=True, eq=False)
class Arrays:
    """Arrays of edges, of nodes or of both, under the names that PyG uses.

    Args:
        data: the arrays.
        classes: names of the classes, if the labels were text.
        path: the file, or None.
        frame: what arrays without a file are called in messages.
    """

    data: GraphTensors
    classes: tuple[str, ...] = ()
    path: Path | None = None
    frame: str = "the arrays"

    @property
    def name(self) -> str:
        """What notes and errors call the arrays."""
        return self.frame if self.path is None else self.path.name

    def error(self, message: str) -> DataError:
        """A :class:`DataError` in these arrays."""
        return DataError(message, path=self.path, table=None if self.path else self.frame)


def assemble(
    edges: Table | Arrays,
    nodes: Table | Arrays | None,
    options: TableOptions,
    *,
    name: str,
    notes: Sequence[str] = (),
    features: Path | None = None,
) -> NodeDataset:
    """A graph of edges and nodes, whatever they were read from.

    Args:
        edges: one edge per row, or an adjacency matrix.
        nodes: one node per row, or arrays ``x`` and ``y``; None if there are only edges.
        options: what the columns are, and what to make of them.
        name: of the graph, unless ``options`` has one.
        notes: sentences to begin with.
        features: a file of further features, which stand behind those of the columns.
    """
    if isinstance(edges, Table):
        if isinstance(nodes, Arrays):
            table, known = EdgeTable(edges, options), _nodes_of(nodes, options)
        else:
            table, known = open_graph(edges, nodes, options)
        types, numbered = table.types(), Ids(known.known_ids)
        (listed,) = table.numbered(numbered, source=known.source, types=types)
        known.notes += table.notes
    else:
        if isinstance(nodes, Table):
            known = read_nodes(nodes, options, ids_needed=False)
        else:
            known = _nodes_of(edges if nodes is None else nodes, options)
        listed, types = _edges_of_arrays(edges, known), ()
    known.notes[:0] = notes
    if options.isolated == "drop":
        refuse_feature_file(features)
        kept = linked_nodes([listed[:3]], known.count or 0, self_loops=options.self_loops)
        listed = listed.renumbered(known.keep(kept))
    more = None if features is None else read_feature_file(known, features)
    read_features(known, options)
    known.notes += [] if known.table is None else known.table.reading_notes
    if more is not None and features is not None:
        join_features(known, *more, features)
    index = torch.from_numpy(np.stack(listed[:2]))  # (2, edges)
    weight, kind = (None if each is None else torch.from_numpy(each) for each in listed[2:])
    _add_features(known, index, weight, options)
    numbers = None if known.ids is None else whole_numbers(known.ids)
    if numbers is None:
        ids = () if known.ids is None else known.ids.to_pylist()  # as the user wrote them
    elif (numbers.to_numpy() == np.arange(len(numbers))).all():
        ids = range(len(numbers))
    else:
        ids = numbers.to_pylist()
    dataset = from_data(
        GraphTensors(
            x=known.x,
            edge_index=index,
            edge_weight=weight,
            edge_type=kind,
            y=known.y,
            **known.beside,
        ),
        name=options.name or name,
        task=options.task or known.task,
        classes=known.classes,
        ids=ids,
        feature_names=known.feature_names,
        targets=known.targets,
        open_features=known.open_features,
        edge_types=types,
        directed=options.directed,
        self_loops=options.self_loops,
        notes=known.notes,
        default_split=known.default_split,
        ready=options.features == "identity",
    )
    columns = None
    if known.table is not None and known.roles is not None and known.roles.features:
        columns = known.table.only(known.roles.features)
    return dataset.with_columns(columns, known.encoding)


def refuse_feature_file(path: Path | None) -> None:
    """Rows of a feature file are those of all nodes."""
    if path is not None:
        raise DataError("Expected no feature file with isolated=drop (got one).", path=path)


def open_graph(edges: Table, nodes: Table | None, options: TableOptions) -> tuple[EdgeTable, Nodes]:
    """What the columns of tables are for, and the nodes."""
    weight = options.weight_column
    if nodes is not None and weight in nodes.names and weight not in edges.names:
        raise edges.error(
            f"Expected a weight column {weight!r} of edges (got one of {nodes.name}); weights of "
            "nodes are named with node_weight_column."
        )
    table = EdgeTable(edges, options)
    if nodes is None:
        ids = table.ids()
        return table, Nodes(ids=ids, count=len(ids), source=edges.name)
    nodes = options.meaning(nodes)
    if options.unknown_ids == "add":
        key = NodeColumns.find(nodes, options, ids_needed=True).key
        assert key is not None
        nodes = with_unknown(nodes, key, table)
    return table, read_nodes(nodes, options, ids_needed=True)


def _nodes_of(arrays: Arrays, options: TableOptions) -> Nodes:
    """The nodes of arrays."""
    data, classes = arrays.data, arrays.classes
    x, y = data.get("x"), data.get("y")
    for key, value in (("x", x), ("y", y)):
        if value is not None and value.dim() == 0:
            raise arrays.error(f"Expected `{key}` of each node (got one number).")
    sizes = [len(value) for value in (x, y) if value is not None]
    count = sizes[0] if sizes else data.get("num_nodes")
    nodes = Nodes(
        count=count,
        x=x if options.features in ("auto", "columns") else None,
        y=y,
        classes=classes or None,
        source=arrays.name,
    )
    if classes:
        nodes.task = "classification"
    nodes.beside = {key: data[key] for key in (*MASKS, *BESIDE) if data.get(key) is not None}
    return nodes


def _edges_of_arrays(arrays: Arrays, nodes: Nodes) -> Batch:
    data, size = arrays.data, arrays.data.get("num_nodes")
    if data.get("edge_index") is None:
        raise arrays.error("Expected an adjacency matrix or `edge_index` in the file.")
    if nodes.count is None:
        data = GraphTensors(data, edge_index=node_numbers(data.edge_index, arrays.error))
        if size is None:
            data.edge_index = _as_ids(data.edge_index, nodes)
        nodes.count = int(data.edge_index.max()) + 1 if size is None else size
    if size is not None and nodes.count != size:
        raise arrays.error(
            f"Expected {size} nodes, as many as the adjacency has rows "
            f"(got {nodes.count} in {nodes.source})."
        )
    index, weight = edge_tensors(data, nodes.count, arrays.error)
    _check_order(nodes, arrays)
    kind = data.get("edge_type")
    kind = None if kind is None else check_types(kind, index.shape[1])
    rest = (None if each is None else each.numpy() for each in (weight, kind))
    return Batch(*index.numpy(), *rest)


def _as_ids(index: Tensor, nodes: Nodes) -> Tensor:
    """The edges of a file that does not say how many nodes there are.

    Numbers far beyond the number of edges are ids, not places: the nodes are those that occur.
    """
    if index.numel() == 0:
        raise DataError("Expected edges, features or labels (got a graph without any node).")
    found, codes = torch.unique(index, return_inverse=True)
    if int(found[0]) < 0 or int(found[-1]) < _FAR * max(len(found), 100):
        return index
    nodes.ids = pa.array(found.numpy())
    nodes.notes.append("The numbers of the nodes were read as ids: most of them do not occur.")
    return codes


def _check_order(nodes: Nodes, arrays: Arrays) -> None:
    """Rows of the node file are rows of the matrix: refuse ids that say otherwise."""
    if nodes.ids is None:
        return
    numbers = whole_numbers(nodes.ids)
    if numbers is None:
        return
    ids = numbers.to_numpy()
    if (ids != np.sort(ids)).any() and np.ptp(ids) == len(ids) - 1:
        row = int((ids != np.sort(ids)).argmax())
        raise arrays.error(
            f"Expected the nodes of {nodes.source} in the order of the matrix "
            f"(got id {ids[row]} as row {row + 1}); sort the node file by id."
        )


def _add_features(
    nodes: Nodes, index: Tensor, weight: Tensor | None, options: TableOptions
) -> None:
    if nodes.x is not None:
        return
    features = options.features
    count = nodes.count or 0
    require_memory(64.0 * count, f"a graph of {count} nodes")
    if features == "identity":
        if count > MAX_IDENTITY:
            raise DataError(
                f"Expected at most {MAX_IDENTITY} nodes for identity features (got {count}); "
                "use features='degree'."
            )
        nodes.x = csr(torch.arange(count + 1), torch.arange(count), torch.ones(count), count)
        return
    arcs = merge_edges(index, weight, directed=options.directed)
    ends = arcs.ends if arcs.directed else arcs.ends[:1]
    degrees = [torch.bincount(end, minlength=count) for end in ends]
    nodes.x = degree_features(nodes, degrees, features)


def degree_features(nodes: Nodes, degrees: Sequence[Tensor], features: str) -> Tensor:
    """Features of nodes that have no others: of their degrees, one (nodes,), or out and in."""
    if features == "columns":
        why = "" if nodes.encoding is None else f". {nodes.encoding.note.rstrip('.')}"
        raise DataError(
            f"Expected feature columns in {nodes.source} (got none{why}); use features='degree' or "
            "'identity'."
        )
    nodes.feature_names = DEGREES[:1] if len(degrees) == 1 else DEGREES[1:]
    nodes.encoding = None
    if features == "auto":
        which = "" if len(degrees) == 1 else " of arcs out, and of arcs in,"
        nodes.notes.append(f"There are no features: log(1 + degree){which} is used.")
    return torch.log1p(torch.stack([*degrees], dim=1).float())
