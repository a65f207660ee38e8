r"""Three-term recurrences as data: one table per family, one loop for all of them.

A table holds :math:`p_0` and the numbers of
:math:`p_{k+1} = (A_k x + B_k)\, p_k - C_k\, p_{k-1}`. Everything is differentiable in the
family's parameters and works on a leading batch of them. Nothing here validates: the public
functions of :mod:`longnn.polynomials` do.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Table(NamedTuple):
    """A three-term recurrence up to a degree K; ``batch`` is the shape of the parameters."""

    first: Tensor  # (*batch,)  p_0
    slope: Tensor  # (K, *batch)  A
    shift: Tensor  # (K, *batch)  B
    back: Tensor  # (K, *batch)  C; C_0 is not used


def evaluate(table: Table, x: Tensor) -> Tensor:
    """Run the recurrence at the points ``x``: shape (K+1, *batch, *x.shape)."""
    extend = (...,) + (None,) * x.dim()
    p = (table.first[extend] + torch.zeros_like(x)).to(table.first.dtype)  # (*batch, *x.shape)
    previous = torch.zeros_like(p)
    values = [p]
    factors = table.slope[extend] * x + table.shift[extend]
    backs = table.back[extend]
    for k in range(table.slope.shape[0]):
        p, previous = factors[k] * p - backs[k] * previous, p
        values.append(p)
    return torch.stack(values)


def constant_table(degree: int, first_slope: float, slope: float, back: float) -> Table:
    """A table whose numbers do not depend on k (monomials, Chebyshev of both kinds)."""
    A = torch.full((degree,), slope, dtype=torch.float64)
    A[:1] = first_slope
    B = torch.zeros(degree, dtype=torch.float64)
    return Table(torch.ones((), dtype=torch.float64), A, B, torch.full_like(B, back))


def from_symmetric(first: Tensor, s: Tensor, c: Tensor) -> Table:
    r"""Table of the orthonormal recurrence with off-diagonals s and diagonals c.

    .. math:: x\,p_k = s_{k+1} p_{k+1} + c_k p_k + s_k p_{k-1}

    Args:
        first: :math:`p_0`, shape (\*batch).
        s: :math:`s_1 .. s_K > 0`, shape (K, \*batch).
        c: :math:`c_0 .. c_{K-1}`, shape (K, \*batch).
    """
    previous = torch.cat([torch.zeros_like(s[:1]), s[:-1]])
    return Table(first, 1 / s, -c / s, previous / s)


def log_jacobi_mass(a: Tensor, b: Tensor) -> Tensor:
    r""":math:`\log\mu`, :math:`\mu = \int (1-x)^a(1+x)^b = 2^{a+b+1}
    \Gamma(a+1)\Gamma(b+1)/\Gamma(a+b+2)`; finite for every a, b > -1."""
    log_beta = torch.lgamma(a + 1) + torch.lgamma(b + 1) - torch.lgamma(a + b + 2)
    return (a + b + 1) * math.log(2.0) + log_beta


def _orders(first: int, last: int, like: Tensor) -> Tensor:
    """The integers first..last (none if last < first), shaped to broadcast before a batch."""
    k = torch.arange(first, max(first, last + 1), dtype=like.dtype, device=like.device)
    return k[(...,) + (None,) * like.dim()]


def orthonormal_jacobi(degree: int, a: Tensor, b: Tensor, *, unit_mass: bool) -> Table:
    r"""Orthonormal Jacobi polynomials for the weight :math:`(1-x)^a (1+x)^b`.

    .. math::
        c_0 &= \frac{b-a}{a+b+2}, & c_k &= \frac{b^2-a^2}{(2k+a+b)(2k+a+b+2)}, \\
        s_1^2 &= \frac{4(1+a)(1+b)}{(2+a+b)^2(3+a+b)}, &
        s_k^2 &= \frac{4k(k+a)(k+b)(k+a+b)}{(2k+a+b)^2((2k+a+b)^2-1)},

    with :math:`p_0 = \mu^{-1/2}` (or 1 where ``unit_mass``). Source: Gautschi, *Orthogonal
    Polynomials* (2004), Table 1.1, with the factor :math:`(1+a+b)` of :math:`s_1^2` cancelled,
    so that there is no 0/0 at a + b = -1 and no root of a negative number below it.
    """
    a, b = torch.broadcast_tensors(a, b)
    total = a + b
    first = torch.ones_like(total) if unit_mass else torch.exp(-0.5 * log_jacobi_mass(a, b))

    k = _orders(1, degree - 1, total)
    n = 2 * k + total
    c = torch.cat([((b - a) / (total + 2))[None], (b - a) * total / (n * (n + 2))])

    s1 = 4 * (1 + a) * (1 + b) / ((2 + total) ** 2 * (3 + total))
    k = _orders(2, degree, total)
    n = 2 * k + total
    sk = 4 * k * (k + a) * (k + b) * (k + total) / (n * n * (n - 1) * (n + 1))
    s = torch.sqrt(torch.cat([s1[None], sk]))
    return from_symmetric(first, s[:degree], c[:degree])


def classical_jacobi(degree: int, a: Tensor, b: Tensor) -> Table:
    r"""Jacobi polynomials in the classical normalisation (the paper's recurrence equation).

    .. math::
        P_0 &= 1, \quad P_1 = \tfrac{a-b}{2} + \tfrac{a+b+2}{2} x, \\
        P_i &= (2i+a+b-1)\frac{(2i+a+b)(2i+a+b-2)x + a^2-b^2}{2i(i+a+b)(2i+a+b-2)} P_{i-1}
             - \frac{(i+a-1)(i+b-1)(2i+a+b)}{i(i+a+b)(2i+a+b-2)} P_{i-2}
    """
    a, b = torch.broadcast_tensors(a, b)
    total = a + b
    i = _orders(2, degree, total)
    n = 2 * i + total
    slope = torch.cat([((total + 2) / 2)[None], (n - 1) * n / (2 * i * (i + total))])
    tilt = (n - 1) * (a - b) * total / (2 * i * (i + total) * (n - 2))
    shift = torch.cat([((a - b) / 2)[None], tilt])
    back = (i + a - 1) * (i + b - 1) * n / (i * (i + total) * (n - 2))
    back = torch.cat([torch.zeros_like(total)[None], back])
    return Table(torch.ones_like(total), slope[:degree], shift[:degree], back[:degree])


def gegenbauer(degree: int, order: Tensor) -> Table:
    r"""Gegenbauer polynomials :math:`C_k^{(\lambda)}`, classical normalisation.

    .. math:: (k+1)\,C_{k+1} = 2(k+\lambda)\,x\,C_k - (k+2\lambda-1)\,C_{k-1}

    (Abramowitz & Stegun 22.7.3.)
    """
    k = _orders(0, degree - 1, order)
    slope = 2 * (k + order) / (k + 1)
    return Table(
        torch.ones_like(order),
        slope,
        torch.zeros_like(slope),
        (k + 2 * order - 1) / (k + 1),
    )


def jacobi_squared_norms(degree: int, a: Tensor, b: Tensor, *, unit_mass: bool) -> Tensor:
    r"""Squared norms of the classical Jacobi polynomials, shape (degree+1, \*batch).

    .. math::
        \|P_i\|^2 = \frac{2^{a+b+1}\,\Gamma(i+a+1)\Gamma(i+b+1)}{(2i+a+b+1)\,\Gamma(i+a+b+1)\,i!},
        \qquad \|P_0\|^2 = \mu.

    At i = 0 the paper's form has :math:`(a+b+1)\Gamma(a+b+1)`, which is 0/0 at a + b = -1;
    :math:`\Gamma(a+b+2)` is the same number and has no such gap.
    """
    a, b = torch.broadcast_tensors(a, b)
    total = a + b
    i = _orders(1, degree, total)
    log_mass = log_jacobi_mass(a, b)
    log_norms = (
        (total + 1) * math.log(2.0)
        + torch.lgamma(i + a + 1)
        + torch.lgamma(i + b + 1)
        - torch.log(2 * i + total + 1)
        - torch.lgamma(i + total + 1)
        - torch.lgamma(i + 1)
    )
    log_norms = torch.cat([log_mass[None], log_norms])[: degree + 1]
    return torch.exp(log_norms - log_mass if unit_mass else log_norms)
