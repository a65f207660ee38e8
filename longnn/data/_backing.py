"""Where features and edges of a graph are: in memory, or on disk behind the same few questions.

A :class:`~longnn.data.NodeDataset` asks about nodes; its backing holds what a model needs to
answer. Whoever trains, predicts, describes or explains asks the backing, and never which one it is.
"""

import abc
import copy
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from longnn.data._features import feature_arrays, is_sparse
from longnn.data._relations import Relation, match_types
from longnn.data._scaling import Scaling
from longnn.data._tensors import GraphTensors
from longnn.graphs import GraphOperator, directed_operator
from longnn.graphs._adjacency import SelfLoops
from longnn.matrices import nonzero_share, take_columns

if TYPE_CHECKING:
    from longnn.data._dataset import NodeDataset

#: More columns than this, nearly all values zero: words.
WORDS, NONZERO = 200, 0.1


class Backing(abc.ABC):
    """Features and edges of the nodes of one dataset."""

    #: Whether models see rows of precomputed terms, batch by batch, and not the whole graph.
    by_rows: bool

    @property
    @abc.abstractmethod
    def num_nodes(self) -> int:
        """The nodes that are asked about."""

    @property
    @abc.abstractmethod
    def num_features(self) -> int:
        """Features per node."""

    @property
    @abc.abstractmethod
    def num_edges(self) -> int:
        """Undirected edges, each counted once (a self loop too); in a directed graph the arcs."""

    @property
    @abc.abstractmethod
    def weighted(self) -> bool:
        """Whether edges have weights."""

    @abc.abstractmethod
    def places(self) -> np.ndarray:
        """Where the nodes are among all nodes of the graph, int64 (nodes,), ascending."""

    @abc.abstractmethod
    def arcs(self) -> Tensor | None:
        """All edges, both ways, int64 (2, arcs); None where they would take much memory."""

    @abc.abstractmethod
    def features(self) -> Tensor | None:
        """All features, (nodes, features); None where they would take much memory."""

    @abc.abstractmethod
    def each_feature(self) -> Iterator[np.ndarray]:
        """The values of each feature, (nodes,), one feature after the other; no words."""

    @abc.abstractmethod
    def degrees(self) -> Tensor:
        """The number of neighbours of each node, whichever way the edge goes, (nodes,)."""

    @abc.abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 of what is held."""

    @abc.abstractmethod
    def scaling(self, kind: str, *, ready: bool) -> Scaling:
        """The scaling of the features: of a kind, where ``"auto"`` depends on ``ready``."""

    @abc.abstractmethod
    def has_words(self) -> bool:
        """Whether the features are words: many columns, nearly all values zero."""

    @abc.abstractmethod
    def take_features(self, dataset: "NodeDataset", places: Sequence[int]) -> "NodeDataset":
        """The dataset with some features, in another order; zeros where a place is -1."""

    @abc.abstractmethod
    def types(self) -> dict[str, int]:
        """The types of edges, and how many arcs each has; nothing where all are alike."""

    @abc.abstractmethod
    def take_types(self, dataset: "NodeDataset", names: Sequence[str]) -> "NodeDataset":
        """The dataset with its types of edges in another order; one without edges if it has none.

        Raises:
            DataError: for a type that is not among the names, or a graph without types.
        """

    @abc.abstractmethod
    def asked(self, dataset: "NodeDataset") -> "NodeDataset":
        """The nodes that training and scores need: all, or those with a label."""

    @abc.abstractmethod
    def inputs(
        self,
        scaling: Scaling,
        degrees: Mapping[SelfLoops, int],
        *,
        dtype: torch.dtype,
        device: torch.device,
        memory: int | None,
        ranks: Any,
    ) -> tuple[Any, dict[SelfLoops, Any]]:
        """What models see: features, and an operator for each treatment of self loops.

        Args:
            scaling: of the features.
            degrees: the highest degree of a filter under each treatment of self loops.
            dtype, device: of the result.
            memory: bytes that computing it may use.
            ranks: who computes; None for the caller alone.
        """

    @abc.abstractmethod
    def operator(self) -> Any:
        """The propagation matrix of the graph as it is, which multiplies signals of all nodes; None
        where its spectrum would take too long."""

    @abc.abstractmethod
    def around(self, nodes: np.ndarray) -> np.ndarray:
        """The neighbours of some nodes, int64: one node's after the other's, in that order."""

    def nearest(self, centre: int | None, limit: int) -> np.ndarray:
        """At most ``limit`` nodes, in increasing order: all, or the nearest to the centre.

        Nearest by the number of edges between; where a part of the graph has no more nodes, the
        first ones of the other parts follow. Without a centre it is a node of middle degree.

        >>> index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> path = InMemory(GraphTensors(x=torch.ones(4, 1), edge_index=index), False, ())
        >>> path.nearest(3, 3).tolist(), path.nearest(None, 9).tolist()
        ([1, 2, 3], [0, 1, 2, 3])
        """
        nodes = self.num_nodes
        if nodes <= limit:
            return np.arange(nodes)
        if centre is None:
            degree = self.degrees().numpy()
            linked = np.flatnonzero(degree) if degree.any() else np.arange(nodes)
            centre = int(linked[np.argsort(degree[linked], kind="stable")[len(linked) // 2]])
        seen, front, near = np.zeros(nodes, dtype=bool), np.array([centre]), []
        while len(front) and seen.sum() < limit:
            seen[front] = True
            near.append(front)
            front = self.around(front)
            front = front[~seen[front]]
            front = front[np.sort(np.unique(front, return_index=True)[1])]
        found = np.concatenate([*near, np.flatnonzero(~seen)])
        return np.sort(found[:limit])

    @abc.abstractmethod
    def neighbourhood(
        self, dataset: "NodeDataset", places: np.ndarray, hops: int | None
    ) -> tuple["NodeDataset", np.ndarray]:
        """A graph in memory in which filters up to a degree are exact at some nodes.

        Args:
            dataset: whose backing this is.
            places: the nodes.
            hops: the degree; None for the whole graph.

        Returns:
            the graph, and where its nodes are among all, int64 (its nodes,), ascending.
        """


@dataclasses.dataclass(frozen=True, eq=False)
class InMemory(Backing):
    """The whole graph in memory, as :class:`~longnn.data.NodeDataset` describes its ``data``."""

    data: GraphTensors
    directed: bool
    relations: tuple[Relation, ...]

    by_rows = False

    @property
    def num_nodes(self) -> int:
        return int(self.data.x.shape[0])

    @property
    def num_features(self) -> int:
        return int(self.data.x.shape[1])

    @property
    def num_edges(self) -> int:
        row, col = self.data.edge_index
        return row.shape[0] if self.directed else int((row <= col).sum())

    @property
    def weighted(self) -> bool:
        return self.data.get("edge_weight") is not None

    def places(self) -> np.ndarray:
        return np.arange(self.num_nodes)

    def arcs(self) -> Tensor:
        index: Tensor = self.data.edge_index
        return index

    def features(self) -> Tensor:
        x: Tensor = self.data.x
        return x

    def each_feature(self) -> Iterator[np.ndarray]:
        return iter(() if is_sparse(self.data.x) else self.data.x.T.cpu().numpy())

    def degrees(self) -> Tensor:
        n = self.num_nodes
        row, col = self.data.edge_index
        row, col = row[row != col], col[row != col]
        if self.directed:
            both = torch.cat([row * n + col, col * n + row])
            row = torch.unique(both) // n
        return torch.bincount(row, minlength=n)

    def fingerprint(self) -> str:
        digest = hashlib.sha256(b"directed\n" if self.directed else b"")
        for key, array in self._arrays():
            array = np.ascontiguousarray(array)
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(f"{key} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.data)
        return digest.hexdigest()

    def _arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        for key in ("edge_index", "edge_weight", "x", "y", "node_group", "node_weight"):
            value = self.data.get(key)
            if value is None:
                continue
            if key == "x":
                yield from feature_arrays(value)
            else:
                yield key, value.detach().cpu().numpy()
        for r in self.relations:
            yield f"type {r.name}", r.edge_index.cpu().numpy()
            if r.edge_weight is not None:
                yield f"type {r.name} weight", r.edge_weight.cpu().numpy()

    def scaling(self, kind: str, *, ready: bool) -> Scaling:
        return Scaling.fit("none" if kind == "auto" and ready else kind, self.data.x)

    def has_words(self) -> bool:
        return self.num_features > WORDS and nonzero_share(self.data.x) <= NONZERO

    def take_features(self, dataset: "NodeDataset", places: Sequence[int]) -> "NodeDataset":
        data = copy.copy(self.data)
        data.x = take_columns(self.data.x, places)
        return dataclasses.replace(dataset, data=data, feature_names=(), open_features=0)

    def types(self) -> dict[str, int]:
        return {r.name: r.edge_index.shape[1] for r in self.relations}

    def take_types(self, dataset: "NodeDataset", names: Sequence[str]) -> "NodeDataset":
        places = match_types([r.name for r in self.relations], names) if names else []
        none = torch.zeros(2, 0, dtype=torch.int64)
        relations = tuple(
            self.relations[place] if place >= 0 else Relation(name, none)
            for name, place in zip(names, places, strict=True)
        )
        return dataclasses.replace(dataset, relations=relations)

    def asked(self, dataset: "NodeDataset") -> "NodeDataset":
        return dataset

    def inputs(
        self,
        scaling: Scaling,
        degrees: Mapping[SelfLoops, int],
        *,
        dtype: torch.dtype,
        device: torch.device,
        memory: int | None,
        ranks: Any,
    ) -> tuple[Tensor, dict[SelfLoops, GraphOperator]]:
        operators = {loops: self._operator(loops, dtype).to(device) for loops in degrees}
        return scaling.apply(self.data.x).to(dtype), operators

    def _operator(self, loops: SelfLoops, dtype: torch.dtype) -> GraphOperator:
        make: Any = directed_operator if self.directed else GraphOperator.from_edge_index
        pairs = [(self.data.edge_index, self.data.get("edge_weight"))]
        pairs += [(r.edge_index, r.edge_weight) for r in self.relations]
        every, *types = (
            make(index, weight, self.num_nodes, self_loops=loops, dtype=dtype)
            for index, weight in pairs
        )
        return dataclasses.replace(every, types=tuple(types))

    def operator(self) -> GraphOperator:
        return self._operator("keep", torch.float32)

    def around(self, nodes: np.ndarray) -> np.ndarray:
        n = self.num_nodes
        row, col = self.data.edge_index.numpy()
        if self.directed:
            both = np.unique(np.concatenate([row * n + col, col * n + row]))
            row, col = both // n, both % n
        offsets = np.searchsorted(row, np.arange(n + 1))
        found: np.ndarray = col[entries_of(offsets, nodes)]
        return found

    def neighbourhood(
        self, dataset: "NodeDataset", places: np.ndarray, hops: int | None
    ) -> tuple["NodeDataset", np.ndarray]:
        return dataset, np.arange(self.num_nodes)


def entries_of(offsets: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Where the entries of some rows of a matrix in compressed rows are, int64.

    >>> entries_of(np.array([0, 2, 5, 6]), np.array([2, 0])).tolist()
    [5, 0, 1]
    """
    first = offsets[nodes]
    count = offsets[nodes + 1] - first
    before = np.cumsum(count) - count
    return np.arange(count.sum()) + np.repeat(first - before, count)
