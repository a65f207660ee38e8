"""An operator of edges of several types: one matrix of all edges, and one of each type."""

import dataclasses
from typing import Any

import torch
from torch import Tensor

from longnn.graphs._arcs import directed_operator
from longnn.graphs._operator import GraphOperator


def typed_operator(
    edge_index: Tensor,
    edge_type: Tensor,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    *,
    types: int | None = None,
    directed: bool = False,
    **options: Any,
) -> GraphOperator:
    r"""The operators :math:`P_1, \dots, P_R` of the types of edges, behind that of all edges.

    What does not ask for types sees the operator of all edges; a
    :class:`~longnn.nn.TypedFilter` takes ``operator.types``. Each is normalised by its own degrees.

    Args:
        edge_index: shape (2, edges).
        edge_type: the type of each edge, whole numbers in 0..R-1, shape (edges,).
        edge_weight: shape (edges,).
        num_nodes: by default one more than the largest index.
        types: R; by default one more than the largest type.
        directed: whether edges are arcs: operators of :func:`directed_operator`.
        options: of that, or of :meth:`GraphOperator.from_edge_index`.

    Raises:
        ValueError: for types that are not such numbers, or what is wrong with the graph.

    >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> [P.num_edges for P in typed_operator(edges, torch.tensor([0, 0, 1, 1])).types]
    [1, 1]
    """
    count = int(edge_type.max()) + 1 if edge_type.numel() else 0
    count = count if types is None else types
    whole = not edge_type.is_floating_point() and not edge_type.is_complex()
    if not whole or edge_type.shape != edge_index.shape[1:]:
        raise ValueError(
            f"Expected `edge_type` of whole numbers, shape ({edge_index.shape[1]},) (got "
            f"{edge_type.dtype} {tuple(edge_type.shape)})"
        )
    outside = edge_type[(edge_type < 0) | (edge_type >= count)]
    if len(outside):
        raise ValueError(f"Expected types of edges in 0..{count - 1} (got {int(outside[0])})")
    make: Any = directed_operator if directed else GraphOperator.from_edge_index
    nodes = num_nodes
    if nodes is None:
        nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0

    def of(chosen: Tensor) -> GraphOperator:
        weight = None if edge_weight is None else edge_weight[chosen]
        made: GraphOperator = make(edge_index[:, chosen], weight, nodes, **options)
        return made

    every = of(torch.ones_like(edge_type, dtype=torch.bool))
    return dataclasses.replace(every, types=tuple(of(edge_type == r) for r in range(count)))
