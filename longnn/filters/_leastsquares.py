r"""The best coefficients of a filter for turning signals x into y, in closed form.

.. math:: \min_\alpha \sum_{i\in mask} \big(g_\alpha(P)x - y\big)_i^2

Solved in float64 over the Chebyshev terms :math:`T_j(P)x`, which stay well conditioned where powers
do not; non-negative coefficients by non-negative least squares.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from longnn.graphs import GraphOperator
from longnn.graphs._propagate import chebyshev_stack

if TYPE_CHECKING:
    from longnn.filters._filter import PolynomialFilter


@dataclasses.dataclass(frozen=True)
class Solved:
    """Coefficients, and the problem that they solve."""

    alpha: Tensor  # (terms, channels)
    rank: int  # the least over the channels
    terms: Tensor  # (K+1, rows, channels): T_j(P) x on the mask
    target: Tensor  # (rows, channels)

    def squared_error(self, beta: Tensor) -> Tensor:
        """Of the Chebyshev coefficients (K+1, channels), over the mask: (channels,)."""
        made = torch.einsum("jmc,jc->mc", self.terms, beta)
        return (made - self.target).square().sum(0)


def solve(
    filter: "PolynomialFilter",
    operator: GraphOperator,
    x: Tensor,
    y: Tensor,
    mask: Tensor | None,
) -> Solved:
    """The best coefficients of a filter; it is not changed."""
    if filter.kind == "fixed":
        raise ValueError("Expected trainable coefficients for a fit (got fixed ones)")
    x, y = (t[:, None] if t.dim() == 1 else t for t in (x, y))
    if x.shape != y.shape:
        raise ValueError(f"Expected x and y alike (got {tuple(x.shape)}, {tuple(y.shape)})")
    if filter.channels not in (1, x.shape[1]):
        raise ValueError(f"Expected {filter.channels} channels (got {x.shape[1]})")
    keep = slice(None) if mask is None else mask.bool()
    stack = chebyshev_stack(operator.to(torch.float64), x.double(), filter.degree)
    terms, target = stack[:, keep].cpu(), y.double()[keep].cpu()  # (K+1, m, c), (m, c)
    if filter.channels == 1:
        terms, target = terms.flatten(1)[..., None], target.reshape(-1, 1)
    C = filter.chebyshev_matrix().detach().cpu()
    one = _solve_nonnegative if filter.kind == "nonnegative" else _solve_free
    solved = [
        one(C[c] if C.dim() == 3 else C, terms[..., c], target[:, c])
        for c in range(filter.channels)
    ]
    alpha = torch.stack([a for a, _ in solved], 1)
    return Solved(alpha, min(rank for _, rank in solved), terms, target)


def _solve_free(C: Tensor, V: Tensor, target: Tensor) -> tuple[Tensor, int]:
    """For a basis (terms, K+1) and the terms V (K+1, rows) of one channel."""
    if C.shape[0] == C.shape[1]:  # complete: fit in Chebyshev terms, then change basis
        fit = torch.linalg.lstsq(V.T, target[:, None], driver="gelsd")
        alpha = torch.linalg.lstsq(C.T, fit.solution, driver="gelsd").solution
    else:
        fit = torch.linalg.lstsq((C @ V).T, target[:, None], driver="gelsd")
        alpha = fit.solution
    return alpha[:, 0], int(fit.rank)


def _solve_nonnegative(C: Tensor, V: Tensor, target: Tensor) -> tuple[Tensor, int]:
    import scipy.optimize  # slow to load, and for this alone

    design = (C @ V).T.numpy()
    alpha, _ = scipy.optimize.nnls(design, target.numpy(), maxiter=100 * design.shape[1])
    return torch.from_numpy(alpha), int(np.linalg.matrix_rank(design))
