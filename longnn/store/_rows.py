"""A stored graph as a dataset: whole, where memory allows, or its labelled rows alone.

:class:`StoredDataset` is a :class:`~longnn.data.NodeDataset` of the labelled nodes of a graph that
stays on disk. Its labels and splits are in memory, a few bytes per labelled node; its features and
edges are not: whoever trains on it reads rows of the terms.
"""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import torch
from torch import Tensor
from torch_geometric.data import Data

from longnn._base.memory import available_memory, in_words
from longnn.data import DataError, NodeDataset, Source
from longnn.data._relations import Relation
from longnn.data._scaling import Scaling
from longnn.store._arrays import NAME, StoreError
from longnn.store._graph import MASKS, GraphStore, Neighbours

#: Of the free memory, the share that a graph may take to be trained on whole.
SHARE = 0.5
#: Bytes per value of the features, per entry of the graph, and per node: features and their scaled
#: copy, arrays while an operator is made, and a few signals of 64 hidden units.
VALUE_BYTES, ENTRY_BYTES, NODE_BYTES = 12, 64, 3_000
#: Memory of a system that does not say how much is free.
UNKNOWN = 1 << 42
#: The first letters of the fingerprint of a dataset of rows.
ON_ROWS = "rows:"


def _not_in_memory(purpose: str, name: str = "") -> DataError:
    named = f"{name!r} " if name else ""
    return DataError(
        f"Expected a graph in memory {purpose} (got {named}by rows of a prepared folder); give "
        "more with --memory"
    )


class _Answers(Data):
    """Labels and masks of nodes whose features and edges are on disk."""

    @property
    def x(self) -> Tensor:
        raise _not_in_memory("for its features")

    @property
    def edge_index(self) -> Tensor:
        raise _not_in_memory("for its edges")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class StoredDataset(NodeDataset):
    """The labelled nodes of a graph that stays on disk; ``data`` holds labels and masks alone.

    Whoever asks for its features or edges is told that they are not in memory.
    """

    graph: GraphStore = dataclasses.field(kw_only=True)
    nodes: np.ndarray = dataclasses.field(kw_only=True)

    def _check_inputs(self) -> None:
        """Nothing: features and edges are checked when terms are computed."""

    def require_whole(self, purpose: str) -> None:
        raise _not_in_memory(purpose, self.name)

    @property
    def num_nodes(self) -> int:
        """The number of labelled nodes."""
        return len(self.nodes)

    @property
    def num_features(self) -> int:
        """The number of features per node."""
        return self.graph.num_features

    @property
    def num_edges(self) -> int:
        """Undirected edges of the whole graph, each counted once; self loops as halves."""
        return self.graph.num_entries // 2

    def fingerprint(self) -> str:
        """A digest of the checksums of the graph's files."""
        return ON_ROWS + fingerprint(self.graph)


def fingerprint(graph: GraphStore) -> str:
    """SHA-256 of the checksums of a graph's files, the same wherever the folder is."""
    digest = hashlib.sha256()
    for name, entry in sorted(graph.manifest.files.items()):
        digest.update(f"{name} {entry.shape} {entry.dtype} {entry.checksum}\n".encode())
    return digest.hexdigest()


def is_prepared(path: str | Path) -> bool:
    """Whether a path is a folder that ``longnn prepare`` wrote."""
    return (Path(path) / NAME).is_file()


def memory_needed(graph: GraphStore) -> int:
    """Bytes that training on the whole graph in memory takes, roughly."""
    return bytes_needed(
        nodes=graph.num_nodes, features=graph.num_features, entries=graph.num_entries
    )


def bytes_needed(*, nodes: int, features: int, entries: int) -> int:
    """The same by its size; an edge has two entries."""
    return VALUE_BYTES * nodes * features + ENTRY_BYTES * entries + NODE_BYTES * nodes


def limit_of(memory: int | None) -> int:
    """Bytes that a graph in memory may take: those given, or :data:`SHARE` of what is free."""
    if memory is not None:
        return memory
    free = available_memory()
    return UNKNOWN if free is None else int(SHARE * free)


def fits_memory(graph: GraphStore, memory: int | None = None) -> bool:
    """Whether a graph can be trained on whole, see :func:`limit_of`."""
    return memory_needed(graph) <= limit_of(memory)


def load_stored(
    folder: str | Path, *, rows: bool | None = None, memory: int | None = None
) -> NodeDataset:
    """The graph of a prepared folder, in memory where it fits and else by its labelled rows.

    Args:
        folder: of ``longnn prepare``.
        rows: True for the rows, False for the whole graph; None chooses by size.
        memory: bytes that training may use, see :func:`fits_memory`.

    Raises:
        DataError: where the folder is not what its manifest says.
    """
    try:
        graph = GraphStore.open(folder)
        read = graph.source  # its options are those that another graph is read with, too
        options = {} if read is None or read.is_named else read.options
        source = Source.resolve(Path(folder), options=options)
        rows = not fits_memory(graph, memory) if rows is None else rows
        made = _labelled_rows(graph, source, memory) if rows else _whole(graph, source)
    except StoreError as error:
        raise DataError(str(error)) from error
    return made


def _labelled_rows(graph: GraphStore, source: Source, memory: int | None) -> StoredDataset:
    if graph.weighted or graph.directed or graph.types:
        raise _not_in_memory("for weights, arcs or types of edges", str(graph.about["name"]))
    nodes = graph.labelled
    if len(nodes) == 0:
        raise DataError("Expected a graph with labelled nodes to train on (got none)")
    data = _Answers(y=_labels(graph, nodes), **_masks(graph, nodes))
    note = (
        f"{_size_text(graph)}{'' if fits_memory(graph, memory) else ', more than it may take'}: "
        f"trained on rows of stored terms, in batches, with {len(nodes):,} labelled nodes."
    )
    return StoredDataset(data=data, graph=graph, nodes=nodes, **_about(graph, source, note))


def _whole(graph: GraphStore, source: Source) -> NodeDataset:
    every = np.arange(graph.num_nodes)
    index, weight = _tensors(graph.arcs())
    x = torch.from_numpy(np.array(graph.features, dtype=np.float32, order="C"))
    data = Data(x=x, edge_index=index, y=_labels(graph, every), **_masks(graph, every))
    if weight is not None:
        data.edge_weight = weight
    ids = pyarrow.concat_arrays(list(graph.ids())).to_pylist()
    note = f"{_size_text(graph)}: read into memory as a whole."
    relations = tuple(
        Relation(name, *_tensors(graph.arcs(k))) for k, name in enumerate(graph.types)
    )
    return NodeDataset(data=data, ids=ids, relations=relations, **_about(graph, source, note))


def _tensors(arcs: Neighbours) -> tuple[Tensor, Tensor | None]:
    """Arcs (2, entries) and their weights, as a dataset has them."""
    row = np.repeat(np.arange(len(arcs.offsets) - 1), np.diff(arcs.offsets))
    index = torch.from_numpy(np.stack([row, np.asarray(arcs.indices, dtype=np.int64)]))
    return index, None if arcs.weights is None else torch.from_numpy(np.array(arcs.weights))


def _size_text(graph: GraphStore) -> str:
    counts = f"{graph.num_nodes:,} nodes and {graph.num_entries // 2:,} edges"
    return f"{counts} take about {in_words(memory_needed(graph))} of memory"


def _about(graph: GraphStore, source: Source, note: str) -> dict[str, Any]:
    about = graph.about
    return {
        "name": str(about.get("name", graph.folder.name)),
        "task": about.get("task", "classification"),
        "classes": tuple(str(name) for name in about.get("classes") or ()),
        "targets": tuple(str(name) for name in about.get("targets") or ()),
        "feature_names": tuple(str(name) for name in about.get("feature_names") or ()),
        "default_split": about.get("default_split")
        or ("stratified" if graph.roles is None else "own"),
        "notes": (*(str(text) for text in about.get("notes") or ()), note),
        "open_features": int(about.get("open_features") or 0),
        "one_way": int(about.get("one_way") or 0),
        "directed": graph.directed,
        "ready": bool(about.get("ready")),
        "encoding": graph.encoding,
        "source": source,
    }


def _labels(graph: GraphStore, nodes: np.ndarray) -> Tensor:
    found = graph.labels[nodes]
    return torch.from_numpy(found.astype(np.int64 if found.dtype.kind == "i" else np.float32))


def _masks(graph: GraphStore, nodes: np.ndarray) -> dict[str, Tensor]:
    if graph.roles is None:
        return {}
    role = torch.from_numpy(np.array(graph.roles[nodes]))
    return {name: role == number for name, number in MASKS.items()}


def stored_scaling(kind: str, graph: GraphStore) -> Scaling:
    """The scaling of a stored graph's features, one column after the other.

    Raises:
        DataError: for ``"row"``: the terms are those of columns.
    """
    if kind == "auto":
        kind = "none" if graph.about.get("ready") else "columns"
    Scaling(kind).after(graph.scaling)  # an error for the scaling of rows
    if kind == graph.scaling.kind:  # fitted when it was prepared
        return graph.scaling
    if kind == "none":
        return Scaling(kind)
    moments = []
    for column in range(graph.num_features):
        x = torch.from_numpy(np.array(graph.features[:, column], dtype=np.float32))
        found = Scaling.fit(kind, x[:, None])
        assert found.mean is not None
        assert found.deviation is not None
        moments.append(torch.cat([found.mean, found.deviation]))
    mean, deviation = torch.stack(moments, 1)
    return Scaling(kind, mean, deviation)
