"""What users pass as graphs, nodes, masks and weights, brought to one form each.

Knows nothing of models and of training.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from longnn.data import NodeDataset
from longnn.data._tensors import GraphTensors, as_tensors, is_graph_data
from longnn.explain._subject import find_ids
from longnn.matrices import csr_from_scipy

MASKS = ("train_mask", "val_mask", "test_mask")

#: A PyG Data, a NodeDataset, or a tuple (X, edge_index) or (X, edge_index, y).
GraphLike = Any


class Arrays(NamedTuple):
    """A graph in pieces; labels as they were given."""

    data: GraphTensors  # without labels
    labels: Any  # (nodes, ...), or None
    feature_names: tuple[str, ...]


def is_graph(value: Any) -> bool:
    """Whether a value is a graph rather than nodes of one.

    >>> is_graph((np.eye(3), [[0, 1], [1, 2]])), is_graph([0, 1, 2])
    (True, False)
    """
    if isinstance(value, tuple | list):  # nodes may come as a list, too: of numbers or of words
        return len(value) > 0 and getattr(value[0], "ndim", np.ndim(value[0])) == 2
    return isinstance(value, NodeDataset) or is_graph_data(value)


def is_edge_index(value: Any) -> bool:
    """Whether a value is whole numbers of shape (2, arcs), and so cannot be the labels of nodes."""
    if isinstance(value, Tensor):
        return value.dim() == 2 and len(value) == 2 and not value.is_floating_point()
    array = np.asarray(value)
    return array.ndim == 2 and len(array) == 2 and array.dtype.kind in "iu"


def to_numpy(values: Any) -> np.ndarray:
    """Any array, of torch on any device too, for NumPy."""
    return np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values)


def to_arrays(graph: GraphLike) -> Arrays:
    """A tuple or a PyG ``Data`` in pieces.

    Raises:
        ValueError: for a tuple of another length.
        TypeError: for anything else.
    """
    if is_graph_data(graph):
        data = as_tensors(graph).clone()
        return Arrays(data, data.pop("y", None), ())
    if not isinstance(graph, tuple | list):
        raise TypeError(
            "Expected nodes, a PyG Data, a NodeDataset or (X, edge_index, y) "
            f"(got {type(graph).__name__})"
        )
    if len(graph) not in (2, 3):
        raise ValueError(f"Expected (X, edge_index, y) (got {len(graph)} entries)")
    x, edges, labels = (*graph, None)[:3]
    index = torch.from_numpy(to_numpy(edges).astype(np.int64))
    return Arrays(GraphTensors(x=_features(x), edge_index=index), labels, _names(x))


def _features(x: Any) -> Tensor:
    """Features of any kind of array; sparse ones stay so."""
    if sp.issparse(x):
        return csr_from_scipy(x)
    if isinstance(x, Tensor) and x.layout is not torch.strided:
        return x
    return torch.from_numpy(to_numpy(x).astype(np.float32))  # a copy: x may be read-only


def _names(x: Any) -> tuple[str, ...]:
    """The names of the columns of a data frame, where all of them are text."""
    columns = list(getattr(x, "columns", ()))
    return tuple(columns) if all(isinstance(c, str) for c in columns) else ()


def without_masks(data: GraphTensors) -> GraphTensors:
    """A shallow copy without the masks that came with the data."""
    return GraphTensors({key: value for key, value in data.items() if key not in MASKS})


def find_nodes(ids: Sequence[Any], nodes: Any) -> np.ndarray:
    """The positions of nodes in a graph, int64 (n,).

    Whole numbers are positions, unless the graph has ids that are numbers, other than 0, 1, ...:
    then they are ids. Anything else is an id.

    Args:
        ids: those of the graph, one per node; a ``range`` where it has none of its own.
        nodes: shape (n,) or (n, 1).

    Raises:
        ValueError: for another shape, or where there is no such node.

    >>> find_nodes(range(5), [[3], [0]]), find_nodes(["ann", "bob"], ["bob"])
    (array([3, 0]), array([1]))
    >>> find_nodes([30, 10, 20], [10])
    array([1])
    """
    given = to_numpy(nodes)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1:
        raise ValueError(
            "Expected nodes of the graph, positions or ids, of shape (n,) or (n, 1) "
            f"(got shape {given.shape}); for another graph pass (X, edge_index)"
        )
    if given.dtype.kind == "b":
        raise ValueError("Expected positions or ids of nodes (got a mask); use np.flatnonzero")
    numbered = all(isinstance(i, int | np.integer) for i in ids[:1])
    named = not (isinstance(ids, range) and ids == range(len(ids)))
    number = _whole(given)
    if number is None or (named and numbered):
        return find_ids(ids, (given if number is None else number).tolist())
    outside = (number < 0) | (number >= len(ids))
    if outside.any():
        raise ValueError(
            f"Expected positions of nodes in 0..{len(ids) - 1} (got {number[outside][0]})"
        )
    return number


def _whole(given: np.ndarray) -> np.ndarray | None:
    """Whole numbers as int64, whatever their type; None for words and the like.

    Raises:
        ValueError: for numbers that are not whole.
    """
    if given.dtype.kind == "O" and all(isinstance(v, int | float | np.number) for v in given):
        given = np.asarray(given.tolist(), dtype=None if len(given) else np.int64)
    if given.dtype.kind not in "iuf":
        return None
    if given.dtype.kind == "f":
        broken = ~np.isfinite(given) | (given != np.round(given))
        if broken.any():
            raise ValueError(
                f"Expected positions or ids of nodes (got {given[broken][0]}); features belong to "
                "the graph: LONGNNClassifier(graph=(X, edge_index)).fit(nodes, y)"
            )
    return given.astype(np.int64)


def check_mask(name: str, mask: Any, size: int) -> np.ndarray:
    """A mask with one entry per sample, bool (size,)."""
    array = to_numpy(mask)
    if array.shape != (size,):
        raise ValueError(f"Expected `{name}` of shape ({size},) (got {array.shape})")
    if array.dtype != bool:
        raise ValueError(
            f"Expected `{name}` to be true or false for each node (got {array.dtype}); labels "
            "belong to the graph, or use fit(X, edge_index, y)"
        )
    return array


def check_weights(weights: Any, size: int) -> np.ndarray | None:
    """Sample weights as float64 (size,); None where all are equal.

    Raises:
        ValueError: for another shape, or weights that are negative, not finite or all zero.
    """
    if weights is None:
        return None
    array = to_numpy(weights).astype(np.float64)
    if array.shape == ():
        array = np.full(size, float(array))
    if array.shape != (size,):
        raise ValueError(f"Expected `sample_weight` of shape ({size},) (got {array.shape})")
    if not (np.isfinite(array) & (array >= 0)).all():
        raise ValueError("Expected `sample_weight` finite and >= 0")
    if not (array > 0).any():
        raise ValueError("Expected some `sample_weight` > 0 (all sample weights are zero)")
    return None if (array == array[0]).all() else array


def per_node(mask: np.ndarray, nodes: np.ndarray, size: int) -> Tensor:
    """A mask over samples as one over the nodes of the graph."""
    spread = torch.zeros(size, dtype=torch.bool)
    spread[nodes[mask]] = True
    return spread
