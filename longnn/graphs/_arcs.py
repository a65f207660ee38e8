r"""Arcs as a symmetric operator: a directed graph becomes one that every filter knows.

A filter needs a symmetric matrix with eigenvalues in [-1, 1]; the adjacency A of arcs is none.
Two ways lead there, both with two copies of every node, so that signals have 2n rows:

- The *double cover*: with :math:`N = D_{out}^{-1/2} A D_{in}^{-1/2}`,

  .. math:: B = \begin{pmatrix} 0 & N \\ N^T & 0 \end{pmatrix}.

  The first copy of a node is the node as a source of arcs, the second the node as a target. With
  the singular values :math:`N = U S V^T`, the eigenvalues of B are :math:`\pm S`, and an even and
  an odd polynomial are :math:`g(B) = \mathrm{diag}(U g(S) U^T, V g(S) V^T)`, and with
  :math:`U g(S) V^T` off the diagonal: even powers stay on a copy (:math:`N N^T` joins nodes that
  point to the same targets), odd ones cross to the other, along the arcs.

- The *magnetic* operator (`Zhang et al., 2021 <https://arxiv.org/abs/2102.11391>`_): the Hermitian
  :math:`M = D^{-1/2} (\tfrac12(A + A^T) \circ e^{2\pi i q\,\Theta}) D^{-1/2}` with a phase per arc,
  :math:`\Theta_{uv} = (A_{uv} - A_{vu}) / (A_{uv} + A_{vu})`, as the real matrix

  .. math:: \begin{pmatrix} \mathrm{Re} M & -\mathrm{Im} M \\ \mathrm{Im} M & \mathrm{Re} M
            \end{pmatrix}.

  The copies are the real and the imaginary part of a signal.

On a graph whose edges go both ways, B has the blocks P, and M is P.
"""

from typing import get_args

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
import torch
from torch import Tensor

from longnn.graphs._adjacency import (
    Duplicates,
    SelfLoops,
    read_adjacency,
    with_self_loops,
)
from longnn.graphs._operator import Direction, GraphOperator
from longnn.graphs._phases import COSINE, MINUS_SINE, SINE, Phases
from longnn.matrices import SparseMatrix

#: The exponents of the out-degrees and the in-degrees for which :math:`\|N\| \le 1`.
HALVES = (0.5, 0.5)
#: Relative error of the largest singular value, which is divided by a little more.
TOLERANCE = 1e-6


def directed_operator(
    edge_index: Tensor,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    *,
    direction: Direction = "cover",
    self_loops: SelfLoops = "keep",
    exponents: tuple[float, float] = HALVES,
    phase: float = 0.25,
    learn_phase: bool = False,
    duplicates: Duplicates = "sum",
    dtype: torch.dtype = torch.float32,
) -> GraphOperator:
    r"""The operator of a directed graph on two copies of every node.

    Args:
        edge_index: arcs, shape (2, arcs), from the first row to the second.
        edge_weight: of the arcs, shape (arcs,), finite and >= 0.
        num_nodes: n; by default one more than the largest index.
        direction: ``"cover"`` or ``"magnetic"``.
        self_loops: as in :class:`GraphOperator`. In a cover an added loop joins the two copies of
            a node, so that words such as A A are reached, too.
        exponents: of a cover, :math:`N = D_{out}^{-\alpha} A D_{in}^{-\beta} / s`, in [0, 1]. With
            1/2 and 1/2 the norm is at most 1 and s is 1; otherwise s is the largest singular value,
            which is measured.
        phase: q of the magnetic operator, in [0, 1/2]; 1/4 turns an arc by a right angle, 0 is the
            undirected graph.
        learn_phase: keep what :meth:`GraphOperator.at_phase` needs to give the operator at any
            other phase, differentiable in it.
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
    check_direction(direction, exponents, phase, learn_phase=learn_phase)
    adjacency = read_adjacency(edge_index, edge_weight, num_nodes, duplicates, dtype)
    adjacency = with_self_loops(adjacency, self_loops)
    if learn_phase:
        return _turning(adjacency, phase, dtype).to(edge_index.device)
    if direction == "cover":
        matrix = _cover(adjacency, exponents)
    else:
        matrix = _magnetic(adjacency, phase)
    sparse = SparseMatrix.from_scipy(matrix, symmetric=True, dtype=dtype)
    return GraphOperator(sparse, direction=direction).to(edge_index.device)


def check_direction(
    direction: str, exponents: tuple[float, float], phase: float, *, learn_phase: bool = False
) -> None:
    """Raise unless these describe an operator of arcs."""
    if direction not in get_args(Direction) or direction == "none":
        raise ValueError(f"Expected `direction` to be 'cover' or 'magnetic' (got {direction!r})")
    if not all(0 <= exponent <= 1 for exponent in exponents):
        raise ValueError(f"Expected `exponents` in [0, 1] (got {exponents})")
    if direction == "magnetic" and tuple(exponents) != HALVES:
        raise ValueError(
            f"Expected `exponents` of 0.5 and 0.5 for direction='magnetic' (got {exponents}); "
            "others are for direction='cover'"
        )
    if not 0 <= phase <= 0.5:
        raise ValueError(f"Expected 0 <= `phase` <= 0.5 (got {phase:g})")
    if learn_phase and direction != "magnetic":
        raise ValueError(
            f"Expected direction='magnetic' for learn_phase (got {direction!r}, which has no phase)"
        )


def _cover(
    adjacency: scipy.sparse.csr_matrix, exponents: tuple[float, float]
) -> scipy.sparse.csr_matrix:
    """B, of the size (2n, 2n)."""
    into, out = (np.asarray(adjacency.sum(axis=axis)).ravel() for axis in (0, 1))
    left, right = (
        scipy.sparse.diags_array(np.where(degree > 0, degree, 1.0) ** -exponent)
        for degree, exponent in ((out, exponents[0]), (into, exponents[1]))
    )
    N = left @ adjacency @ right
    if tuple(exponents) != HALVES:
        N = N / largest_singular_value(N)
    return scipy.sparse.csr_matrix(scipy.sparse.block_array([[None, N], [N.T, None]]))


def largest_singular_value(matrix: scipy.sparse.csr_matrix) -> float:
    """An upper bound of the norm of a matrix without negative entries, close to it; 1 for zero.

    >>> round(largest_singular_value(scipy.sparse.csr_matrix([[3.0, 0.0], [0.0, 2.0]])), 3)
    3.0
    """
    if matrix.nnz == 0:
        return 1.0
    if min(matrix.shape) <= 64:
        return float(np.linalg.norm(matrix.toarray(), 2))
    # The leading vector has no negative entry (Perron): ones are never orthogonal to it.
    start = np.ones(min(matrix.shape))
    found = scipy.sparse.linalg.svds(
        matrix, k=1, v0=start, tol=TOLERANCE, return_singular_vectors=False
    )
    return float(found[0]) * (1 + TOLERANCE)


def _magnetic(adjacency: scipy.sparse.csr_matrix, phase: float) -> scipy.sparse.csr_matrix:
    """[[Re M, -Im M], [Im M, Re M]], of the size (2n, 2n)."""
    row, col, size, turn = _hermitian(adjacency)
    angle = 2 * np.pi * phase * turn
    # cos(pi/2) is 6e-17 in floating point: a right angle has no real part, and stores none.
    real, imaginary = (
        scipy.sparse.csr_matrix(
            (size * np.where(abs(f) < 1e-15, 0.0, f), (row, col)), adjacency.shape
        )
        for f in (np.cos(angle), np.sin(angle))
    )
    matrix = scipy.sparse.block_array([[real, -imaginary], [imaginary, real]]).tocsr()
    matrix.eliminate_zeros()
    return scipy.sparse.csr_matrix(matrix)


def _hermitian(
    adjacency: scipy.sparse.csr_matrix,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns, sizes and turns of the entries of M, size * exp(2 pi i q turn)."""
    both = (adjacency + adjacency.T).tocoo()  # A_uv + A_vu
    row, col = both.row, both.col
    against = scipy.sparse.csr_matrix(adjacency - adjacency.T)  # A_uv - A_vu
    turns = np.asarray(against[row, col]).ravel() if len(row) else np.zeros(0)
    degree = np.asarray(both.sum(axis=1)).ravel()
    root = np.sqrt(np.where(degree > 0, degree, 1.0))
    return row, col, both.data / (root[row] * root[col]), turns / both.data


def _turning(adjacency: scipy.sparse.csr_matrix, phase: float, dtype: torch.dtype) -> GraphOperator:
    """The magnetic operator with every entry that it has at some phase."""
    row, col, size, turn = _hermitian(adjacency)
    n, turned = adjacency.shape[0], turn != 0
    parts = [
        (down * n + row[kept], right * n + col[kept], size[kept], turn[kept], shift)
        for down, right, kept, shift in (
            (0, 0, slice(None), COSINE),
            (1, 1, slice(None), COSINE),
            (0, 1, turned, MINUS_SINE),
            (1, 0, turned, SINE),
        )
    ]
    rows, cols, sizes, turns = (np.concatenate([p[k] for p in parts]) for k in range(4))
    shifts = np.concatenate([np.full(len(p[0]), p[4]) for p in parts])
    order = np.lexsort((cols, rows))
    crow = np.searchsorted(rows[order], np.arange(2 * n + 1))
    phases = Phases(*(torch.from_numpy(t[order]).to(dtype) for t in (sizes, turns, shifts)))
    pattern = scipy.sparse.csr_matrix((np.ones(len(order)), cols[order], crow), (2 * n, 2 * n))
    matrix = SparseMatrix.from_scipy(pattern, symmetric=True, dtype=dtype)
    start = matrix.with_values(phases.values(phase))
    return GraphOperator(start, direction="magnetic", phases=phases)
