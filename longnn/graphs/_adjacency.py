"""From an edge list to a checked sparse matrix of weights: everything a user can get wrong.

Nothing is normalised here, and nothing above checks again.
"""

import numbers
from typing import Any, Literal

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from longnn._base.memory import available_memory, in_words

SelfLoops = Literal["keep", "add", "remove"]
Duplicates = Literal["sum", "error"]
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
#: Bytes for each node and each edge while an operator is made: arrays of 64 bits, several at once.
_NODE_BYTES, _EDGE_BYTES = 64, 64


def read_adjacency(
    edge_index: Tensor,  # (2, edges)
    edge_weight: Tensor | None,  # (edges,)
    num_nodes: int | None,
    duplicates: Duplicates,
    dtype: torch.dtype,
) -> scipy.sparse.csr_matrix:
    """The weights of a checked edge list as a square matrix, entry (i, j) = arc i -> j."""
    index, weight, size = _check_edges(edge_index, edge_weight, num_nodes)
    if duplicates == "error":
        _refuse_duplicates(index, size)
    elif duplicates != "sum":
        raise ValueError(f"Expected `duplicates` to be 'sum' or 'error' (got {duplicates!r})")
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise TypeError(f"Expected `dtype` to be a floating-point type of torch (got {dtype!r})")
    _require_memory(size, index.shape[1])
    adjacency = scipy.sparse.csr_matrix((weight, (index[0], index[1])), shape=(size, size))
    adjacency.sum_duplicates()
    adjacency.eliminate_zeros()
    if not np.isfinite(adjacency.sum()):
        raise ValueError("Expected weights whose sum is finite (got inf); divide them all")
    return adjacency


def _require_memory(nodes: int, edges: int) -> None:
    needed, free = _NODE_BYTES * nodes + _EDGE_BYTES * edges, available_memory()
    if free is not None and needed > free:
        raise ValueError(
            f"Expected a graph that fits into memory (got {nodes} nodes and {edges} edges, which "
            f"need {in_words(needed)}; {in_words(free)} are free); number the nodes 0, 1, ..."
        )


def edge_weight_of(data: Any) -> Tensor | None:
    """The edge weights of a PyG ``Data``: its edge_weight, else its edge_attr, else None.

    Raises:
        ValueError: if there is no edge_weight and the edge_attr is not one value per edge.

    >>> from types import SimpleNamespace
    >>> edges = torch.tensor([[0, 1], [1, 0]])
    >>> edge_weight_of(SimpleNamespace(edge_index=edges, edge_attr=torch.tensor([[2.0], [2.0]])))
    tensor([2., 2.])
    """
    weight: Tensor | None = getattr(data, "edge_weight", None)
    attribute = getattr(data, "edge_attr", None)
    if weight is not None or attribute is None:
        return weight
    index = data.edge_index
    if not isinstance(index, Tensor) or index.dim() != 2:
        raise ValueError(f"Expected `edge_index` of shape (2, edges) (got {_form(index)})")
    edges = index.shape[1]
    shape = tuple(attribute.shape) if isinstance(attribute, Tensor) else type(attribute).__name__
    if shape not in ((edges,), (edges, 1)):
        raise ValueError(
            f"Expected `edge_attr` of shape ({edges},) or ({edges}, 1), one weight per edge (got "
            f"{shape}); set `edge_weight`, or remove `edge_attr` to weigh all edges alike"
        )
    return attribute.reshape(-1)


def _form(value: object) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__


def _check_edges(
    edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int | None
) -> tuple[np.ndarray, np.ndarray, int]:
    """The edges as NumPy arrays and the number of nodes, or an error that names the culprit."""
    if not isinstance(edge_index, Tensor):
        raise TypeError(f"Expected `edge_index` as a tensor (got {type(edge_index).__name__})")
    if edge_index.dtype not in _INTEGERS or edge_index.layout is not torch.strided:
        got = f"{edge_index.dtype}, {edge_index.layout}"
        raise TypeError(f"Expected a dense `edge_index` of an integer type (got {got})")
    if edge_index.is_meta:
        raise TypeError("Expected `edge_index` with numbers in it (got one on the device meta)")
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise ValueError(
            f"Expected `edge_index` of shape (2, edges) (got {tuple(edge_index.shape)})"
        )
    index = edge_index.detach().cpu().numpy().astype(np.int64)
    highest = int(index.max()) if index.size else -1
    if num_nodes is not None and not isinstance(num_nodes, numbers.Integral):
        raise TypeError(f"Expected `num_nodes` to be a whole number (got {num_nodes!r})")
    size = highest + 1 if num_nodes is None else int(num_nodes)
    if size < 0:
        raise ValueError(f"Expected `num_nodes` >= 0 (got {num_nodes})")
    wrong = np.argwhere((index < 0) | (index >= size))
    if len(wrong):
        row, position = wrong[0]
        raise ValueError(
            f"Expected node indices in 0..{size - 1} "
            f"(got {index[row, position]} at edge_index[{row}, {position}])"
        )
    return index, _check_weights(edge_weight, index.shape[1]), size


def _check_weights(edge_weight: Tensor | None, edges: int) -> np.ndarray:
    if edge_weight is None:
        return np.ones(edges)
    if not isinstance(edge_weight, Tensor):
        raise TypeError(f"Expected `edge_weight` as a tensor (got {type(edge_weight).__name__})")
    if edge_weight.is_complex() or edge_weight.is_quantized or edge_weight.is_meta:
        kind = "on the device meta" if edge_weight.is_meta else edge_weight.dtype
        raise TypeError(f"Expected real `edge_weight` (got {kind})")
    if edge_weight.layout is not torch.strided:
        raise TypeError(f"Expected a dense `edge_weight` (got {edge_weight.layout})")
    refuse_gradient(edge_weight)
    weight = edge_weight.detach().cpu().double().numpy()
    if weight.ndim == 2 and weight.shape[1] == 1:
        weight = weight[:, 0]
    if weight.shape != (edges,):
        raise ValueError(
            f"Expected `edge_weight` of shape ({edges},), one per edge (got {weight.shape})"
        )
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(wrong):
        raise ValueError(
            "Expected finite, non-negative edge weights "
            f"(got {weight[wrong[0]]:g} at edge_weight[{wrong[0]}])"
        )
    return weight


def refuse_gradient(edge_weight: Tensor | None) -> None:
    """Raise for weights that expect a gradient."""
    if edge_weight is not None and edge_weight.requires_grad:
        raise ValueError(
            "Expected `edge_weight` without gradient for arcs and in a "
            "compiled model (got one that requires it). Pass edge_weight.detach()"
        )


def _refuse_duplicates(index: np.ndarray, size: int) -> None:
    keys = index[0] * size + index[1]
    order = np.argsort(keys, kind="stable")
    repeats = order[1:][keys[order][1:] == keys[order][:-1]]
    if len(repeats):
        at = int(repeats.min())
        raise ValueError(
            f"Expected each edge once (got {index[0, at]} -> {index[1, at]} again at position "
            f"{at}); pass duplicates='sum' to add the weights"
        )


def check_symmetric(adjacency: scipy.sparse.csr_matrix) -> None:
    """Raise unless the edges of a graph have the same weight both ways, naming one."""
    difference = abs(adjacency - adjacency.T).tocoo()
    scale = abs(adjacency).max() if adjacency.nnz else 0.0
    wrong = np.flatnonzero(difference.data > 1e-6 * scale)
    if len(wrong):
        i, j = int(difference.row[wrong[0]]), int(difference.col[wrong[0]])
        raise ValueError(
            f"Expected an undirected graph (got {i} -> {j} with weight {adjacency[i, j]:g} but "
            f"{j} -> {i} with {adjacency[j, i]:g}); pass symmetrize=True, or use "
            "torch_geometric.utils.to_undirected"
        )


def check_self_loops(mode: SelfLoops) -> SelfLoops:
    """Raise unless ``mode`` says what to do with self loops."""
    if mode not in ("keep", "add", "remove"):
        raise ValueError(f"Expected `self_loops` to be 'keep', 'add' or 'remove' (got {mode!r})")
    return mode


def with_self_loops(adjacency: scipy.sparse.csr_matrix, mode: SelfLoops) -> scipy.sparse.csr_matrix:
    """The adjacency with self loops kept, of weight 1 where a node has none, or removed."""
    if check_self_loops(mode) == "keep":
        return adjacency
    loops = adjacency.diagonal()
    target = np.where(loops > 0, loops, 1.0) if mode == "add" else np.zeros_like(loops)
    changed = (adjacency + scipy.sparse.diags_array(target - loops)).tocsr()
    changed.eliminate_zeros()
    return scipy.sparse.csr_matrix(changed)
