r"""The entries of :math:`D^{-1/2} A D^{-1/2}` as a differentiable function of the edges' weights.

It knows positions in a sparse matrix and checks nothing: :class:`~longnn.graphs.GraphOperator` has
checked the same weights, and says which entries there are.
"""

import numpy as np
import scipy.sparse
import torch
from torch import Tensor


def learned_values(
    pattern: scipy.sparse.csr_matrix,  # (nodes, nodes), sorted, symmetric where it has entries
    edge_index: Tensor,  # (2, edges)
    edge_weight: Tensor,  # (edges,)
    *,
    symmetrize: bool,
    add_loops: bool,
) -> tuple[Tensor, Tensor]:
    """The values at the entries of a pattern (entries,), and the root degrees (nodes,), float64.

    The weights of an edge listed twice are added; what is listed and not in the pattern is left
    out.
    """
    n = pattern.shape[0]
    row = np.repeat(np.arange(n), np.diff(pattern.indptr))
    col = pattern.indices.astype(np.int64)
    key = row * n + col  # ascending
    ends = edge_index.detach().cpu().numpy().astype(np.int64)
    wanted = ends[0] * n + ends[1]
    place = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
    known = np.flatnonzero(key[place] == wanted) if len(key) else np.zeros(0, dtype=np.int64)
    device = edge_weight.device
    rows, cols, at, listed, back = (
        torch.from_numpy(t).to(device)
        for t in (row, col, place[known], known, np.argsort(col * n + row, kind="stable"))
    )
    weight = edge_weight.double().reshape(-1)
    A = weight.new_zeros(len(key)).index_add(0, at, weight[listed])
    if symmetrize:
        A = torch.maximum(A, A[back])  # the entry (j, i) of each (i, j)
    if add_loops:
        A = torch.where((rows == cols) & (A == 0), 1.0, A)
    degree = A.new_zeros(n).index_add(0, rows, A)
    root = torch.where(degree > 0, degree, 1.0).sqrt()
    return A / (root[rows] * root[cols]), root
