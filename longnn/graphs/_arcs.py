r"""Arcs as a symmetric operator: a directed graph becomes one that every filter knows.

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
