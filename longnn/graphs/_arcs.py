r"""Arcs as a symmetric operator, and an operator for each type of edges.

A filter needs a symmetric matrix with eigenvalues in [-1, 1]; the adjacency A of arcs is none. The
*double cover* is one: with :math:`N = D_{out}^{-1/2} A D_{in}^{-1/2}`,

.. math:: B = \begin{pmatrix} 0 & N \\ N^T & 0 \end{pmatrix}.

Every node is there twice, so that signals have 2n rows: its first copy is the node as a source of
arcs, the second the node as a target. With the singular values :math:`N = U S V^T`, the eigenvalues
of B are :math:`\pm S`, and an even and an odd polynomial are
:math:`g(B) = \mathrm{diag}(U g(S) U^T, V g(S) V^T)`, and with :math:`U g(S) V^T` off the diagonal:
even powers stay on a copy (:math:`N N^T` joins nodes that point to the same targets), odd ones
cross to the other, along the arcs. On a graph whose edges go both ways N is P.
"""

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from longnn.graphs._adjacency import (
    Duplicates,
    SelfLoops,
    read_adjacency,
    with_self_loops,
)
from longnn.graphs._operator import GraphOperator
from longnn.matrices import SparseMatrix


def directed_operator(
    edge_index: Tensor,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    *,
    self_loops: SelfLoops = "keep",
    duplicates: Duplicates = "sum",
    dtype: torch.dtype = torch.float32,
) -> GraphOperator:
    r"""The double cover of a directed graph: an operator on two copies of every node.

    Args:
        edge_index: arcs, shape (2, arcs), from the first row to the second.
        edge_weight: of the arcs, shape (arcs,), finite and >= 0.
        num_nodes: n; by default one more than the largest index.
        self_loops: as in :class:`GraphOperator`. An added loop joins the two copies of a node, so
            that words such as A A are reached, too.
        duplicates, dtype: as in :class:`GraphOperator`.

    Raises:
        ValueError: for a bad graph or option, naming it.

    >>> arc = torch.tensor([[0], [1]])
    >>> B = directed_operator(arc)
    >>> B
    GraphOperator(nodes=2, edges=1, direction='cover', dtype=float32, device=cpu)
    >>> B @ torch.tensor([[1.0], [2.0], [3.0], [4.0]])  # node 0 as a source, node 1 as a target
    tensor([[4.], [0.], [0.], [1.]])
    """
    adjacency = read_adjacency(edge_index, edge_weight, num_nodes, duplicates, dtype)
    adjacency = with_self_loops(adjacency, self_loops)
    into, out = (np.asarray(adjacency.sum(axis=axis)).ravel() for axis in (0, 1))
    left, right = (
        scipy.sparse.diags_array(np.where(degree > 0, degree, 1.0) ** -0.5)
        for degree in (out, into)
    )
    N = left @ adjacency @ right
    cover = scipy.sparse.csr_matrix(scipy.sparse.block_array([[None, N], [N.T, None]]))
    sparse = SparseMatrix.from_scipy(cover, symmetric=True, dtype=dtype)
    return GraphOperator(sparse, direction="cover").to(edge_index.device)


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
