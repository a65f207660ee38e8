"""Graphs of invented tables, each drawn from a seed, and how a table becomes a dataset."""

import numpy as np
import torch
from sklearn.impute import SimpleImputer
from sklearn.neighbors import kneighbors_graph
from torch_geometric.data import Data

from longnn.data import NodeDataset, from_data


def as_dataset(
    name: str,
    x: np.ndarray,  # (nodes, columns); NaN where a value is missing
    edges: np.ndarray,  # (2, arcs)
    y: np.ndarray,  # (nodes,) integers: classes; else numbers
    weight: np.ndarray | None = None,  # (arcs,)
    *,
    directed: bool = False,
) -> NodeDataset:
    """The table as any own data: gaps are filled by the median, with a column that marks them.

    Edges are made two-way, unless the graph is ``directed``.

    >>> x = np.array([[1.0, 0.0], [np.nan, 1.0], [3.0, 0.0]])
    >>> as_dataset("three", x, np.array([[0, 1], [1, 2]]), np.array([0, 1, 0])).data.x[1]
    tensor([2., 1., 1.])
    """
    if np.isnan(x).any():
        x = SimpleImputer(strategy="median", add_indicator=True).fit_transform(x)
    labels = y.astype(np.int64 if y.dtype.kind in "iu" else np.float32)
    data = Data(
        x=torch.from_numpy(np.asarray(x, dtype=np.float32)),
        edge_index=torch.from_numpy(np.asarray(edges, dtype=np.int64)),
        y=torch.from_numpy(labels),
    )
    if weight is not None:
        data.edge_weight = torch.from_numpy(weight.astype(np.float32))
    return from_data(data, name=name, directed=directed)


def nearest(z: np.ndarray, k: int) -> np.ndarray:
    """Arcs from each row of ``z`` to its k nearest ones, columns brought to one deviation.

    >>> nearest(np.array([[0.0], [1.0], [5.0]]), 1).tolist()
    [[0, 1, 2], [1, 0, 1]]
    """
    deviation = z.std(0)
    graph = kneighbors_graph(z / np.where(deviation > 0, deviation, 1), k).tocoo()
    return np.stack([graph.row, graph.col])


def grid(height: int, width: int, *, corners: bool = False) -> np.ndarray:
    """Edges between pixels that touch at a side, or also at a corner; pixels row by row.

    >>> grid(2, 2).tolist()
    [[0, 2, 0, 1], [1, 3, 2, 3]]
    >>> grid(2, 2, corners=True)[:, 4:].tolist()
    [[0, 1], [3, 2]]
    """
    cells = np.arange(height * width).reshape(height, width)
    pairs = [(cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])]
    if corners:
        pairs += [(cells[:-1, :-1], cells[1:, 1:]), (cells[:-1, 1:], cells[1:, :-1])]
    return np.concatenate([np.stack([one.ravel(), other.ravel()]) for one, other in pairs], 1)


def small_world(rng: np.random.Generator, nodes: int, k: int, rewired: float) -> np.ndarray:
    """A ring where each node knows the next k, some ends moved anywhere (Watts and Strogatz)."""
    start = np.repeat(np.arange(nodes), k)
    end = (start + np.tile(np.arange(1, k + 1), nodes)) % nodes
    moved = rng.random(len(end)) < rewired
    end[moved] = rng.integers(0, nodes, moved.sum())
    return _without_loops(start, end)


def preferential(rng: np.random.Generator, nodes: int, k: int) -> np.ndarray:
    """Each new node links to k earlier ends of edges: hubs arise (Barabasi and Albert)."""
    ends = list(range(k + 1))
    arcs = []
    for node in range(k + 1, nodes):
        chosen = {ends[i] for i in rng.integers(0, len(ends), k)}
        arcs += [(node, other) for other in chosen]
        ends += [node] * len(chosen) + list(chosen)
    return np.array(arcs).T


def between_classes(
    rng: np.random.Generator,
    y: np.ndarray,
    arcs: int,
    table: np.ndarray,  # (classes, classes): from which class to which, rows sum to 1
    activity: np.ndarray | None = None,  # (nodes,) how often a node is chosen
) -> np.ndarray:
    """Arcs whose start is drawn by activity and whose end by the class of the start."""
    weight = np.ones(len(y)) if activity is None else activity
    start = rng.choice(len(y), arcs, p=weight / weight.sum())
    wanted = (table[y[start]].cumsum(1) < rng.random((arcs, 1))).sum(1).clip(0, len(table) - 1)
    end = np.empty_like(start)
    for c in range(len(table)):
        members, mine = np.flatnonzero(y == c), wanted == c
        end[mine] = rng.choice(members, mine.sum(), p=weight[members] / weight[members].sum())
    return _without_loops(start, end)


def _without_loops(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    return np.stack([start, end])[:, start != end]
