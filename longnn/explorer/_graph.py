"""What the page needs of a graph: who is shown and where, the operators, and signals to filter."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.csgraph import breadth_first_order
from torch import Tensor

from longnn.data import NodeDataset
from longnn.explain._subject import neighbours
from longnn.explorer._layout import place_nodes
from longnn.explorer._page import pack
from longnn.graphs import GraphOperator
from longnn.matrices import csr_to_scipy, take_columns

#: Features that can be chosen as a signal: all up to here, else those that vary most.
FEATURES = 24


def rows_of(operator: GraphOperator, shown: np.ndarray) -> np.ndarray:
    """The rows of some nodes in an operator: on arcs those of both copies, one after the other."""
    return np.concatenate([copy * operator.num_nodes + shown for copy in range(operator.copies)])


def nodes_around(graph: scipy.sparse.csr_matrix, centre: int | None, limit: int) -> np.ndarray:
    """At most ``limit`` nodes, in increasing order: all, or the nearest to the centre.

    Nearest by the number of edges between; where a part of the graph has no more nodes, the first
    ones of the other parts follow. Without a centre it is a node of middle degree.

    >>> path = scipy.sparse.diags_array([np.ones(5), np.ones(5)], offsets=[-1, 1]).tocsr()
    >>> nodes_around(path, 4, 3).tolist(), nodes_around(path, None, 9).tolist()
    ([3, 4, 5], [0, 1, 2, 3, 4, 5])
    """
    nodes = graph.shape[0]
    if nodes <= limit:
        return np.arange(nodes)
    if centre is None:
        degree = np.diff(graph.indptr)
        linked = np.flatnonzero(degree) if degree.any() else np.arange(nodes)
        centre = int(linked[np.argsort(degree[linked], kind="stable")[len(linked) // 2]])
    near = breadth_first_order(graph, centre, directed=False, return_predecessors=False)
    if len(near) < limit:
        near = np.concatenate([near, np.setdiff1d(np.arange(nodes), near)])
    return np.sort(near[:limit])


def describe_graph(
    dataset: NodeDataset, operators: Mapping[str, GraphOperator], shown: np.ndarray
) -> dict[str, Any]:
    """The shown part of a graph as plain data."""
    whole = neighbours(next(iter(operators.values())))
    part = whole[shown][:, shown].tocsr()
    missing = np.diff(whole.indptr)[shown] - np.diff(part.indptr)
    return {
        "name": dataset.name,
        "task": dataset.task,
        "outputs": list(dataset.classes or dataset.targets) or ["value"],
        "nodes": dataset.num_nodes,
        "edges": dataset.num_edges,
        "directed": dataset.directed,
        "ids": [str(dataset.ids[i]) for i in shown],
        "position": pack(place_nodes(part)),
        "missing": pack(missing, "i4"),  # neighbours that are not on the page
        "label": _labels(dataset, shown),
        "operators": describe_operators(operators, shown),
        "features": _features(dataset, shown),
    }


def describe_operators(operators: Mapping[str, GraphOperator], shown: np.ndarray) -> dict[str, Any]:
    """Rows and columns of the shown nodes, on arcs of both copies of each, by name.

    The values keep the degrees of the whole graph: a product in the page counts exactly the paths
    that stay on the page.
    """
    part = {}
    for name, o in operators.items():
        rows = rows_of(o, shown)
        part[name] = o.matrix.to_scipy()[rows][:, rows].tocsr()
    return {
        name: {
            "copies": operators[name].copies,
            "direction": operators[name].direction,
            "start": pack(matrix.indptr, "i4"),  # (copies nodes + 1,)
            "column": pack(matrix.indices, "i4"),  # (arcs,)
            "value": pack(matrix.data),  # (arcs,)
        }
        for name, matrix in part.items()
    }


def _labels(dataset: NodeDataset, shown: np.ndarray) -> dict[str, Any]:
    """Class numbers with -1 for unknown, or numbers (nodes, outputs) with NaN."""
    y = dataset.data.y.cpu().numpy()[shown]
    if dataset.task == "classification":
        return pack(y, "i4")
    return pack(y.reshape(len(shown), -1))


def _features(dataset: NodeDataset, shown: np.ndarray) -> list[dict[str, Any]]:
    """A few columns to choose a signal from."""
    x, count = dataset.data.x, dataset.num_features
    chosen = np.arange(count)
    if count > FEATURES:
        chosen = np.sort(np.argsort(-_variances(x), kind="stable")[:FEATURES])
    values = take_columns(x, chosen.tolist()).to_dense().cpu().numpy()[shown]
    names = dataset.feature_names or [f"feature {k}" for k in range(count)]
    return [{"name": names[k], "value": pack(values[:, i])} for i, k in enumerate(chosen)]


def _variances(x: Tensor) -> np.ndarray:  # (nodes, features) -> (features,)
    if x.layout is torch.strided:
        return np.asarray(x.var(0, correction=0).cpu().numpy())
    matrix = csr_to_scipy(x)
    return np.asarray(matrix.power(2).mean(axis=0) - np.square(matrix.mean(axis=0))).ravel()
