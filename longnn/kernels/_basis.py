"""The Chebyshev matrix of the orthonormal Jacobi basis and its two derivatives, in two launches.

The formulas are those of :mod:`longnn.polynomials`. One program serves one pair (a, b) and leaves
values at the Chebyshev nodes; a matrix product makes coefficients of them.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _offdiagonal(k, a, b):
    """s_k and d log s_k / da, d log s_k / db; k >= 1."""
    t = a + b
    n = 2.0 * k + t
    if k == 1:
        square = 4 * (1 + a) * (1 + b) / ((2 + t) * (2 + t) * (3 + t))
        common = -2 / (2 + t) - 1 / (3 + t)
    else:
        square = 4 * k * (k + a) * (k + b) * (k + t) / (n * n * (n - 1) * (n + 1))
        common = 1 / (k + t) - 2 / n - 1 / (n - 1) - 1 / (n + 1)
    s = tl.sqrt(square)
    return s, 0.5 * (1 / (k + a) + common), 0.5 * (1 / (k + b) + common)


@triton.jit
def _diagonal(k, a, b):
    """c_k and its derivatives."""
    t = a + b
    d = b - a
    if k == 0:
        c = d / (t + 2)
        ca = (-1 - c) / (t + 2)
        cb = (1 - c) / (t + 2)
    else:
        n = 2.0 * k + t
        q = 1 / (n * (n + 2))
        c = d * t * q
        ca = (d - t - c * (2 * n + 2)) * q
        cb = (d + t - c * (2 * n + 2)) * q
    return c, ca, cb


@triton.jit
def _values(a_ptr, b_ptr, nodes, out, by_a, by_b, size, DEGREE: tl.constexpr, WIDE: tl.constexpr):
    """p_k, dp_k/da and dp_k/db at the nodes, a row for each k, for one pair (a, b)."""
    pair = tl.program_id(0)
    a = tl.load(a_ptr + pair)
    b = tl.load(b_ptr + pair)
    i = tl.arange(0, WIDE)
    inside = i < size
    x = tl.load(nodes + i, mask=inside, other=0.0)
    p = x * 0 + 1.0
    previous = x * 0
    pa = x * 0
    pb = x * 0
    previous_a = x * 0
    previous_b = x * 0
    s = a * 0
    sa = a * 0
    sb = a * 0
    row = pair.to(tl.int64) * size * size + i
    tl.store(out + row, p, mask=inside)
    tl.store(by_a + row, pa, mask=inside)
    tl.store(by_b + row, pb, mask=inside)
    for k in tl.static_range(DEGREE):
        c, ca, cb = _diagonal(k, a, b)
        s1, la, lb = _offdiagonal(k + 1, a, b)
        one = 1 / s1
        next_p = ((x - c) * p - s * previous) * one
        next_a = ((x - c) * pa - ca * p - s * previous_a - sa * previous) * one - la * next_p
        next_b = ((x - c) * pb - cb * p - s * previous_b - sb * previous) * one - lb * next_p
        previous, p = p, next_p
        previous_a, pa = pa, next_a
        previous_b, pb = pb, next_b
        s, sa, sb = s1, la * s1, lb * s1
        row += size
        tl.store(out + row, p, mask=inside)
        tl.store(by_a + row, pa, mask=inside)
        tl.store(by_b + row, pb, mask=inside)


def jacobi_matrices(a: Tensor, b: Tensor, nodes: Tensor, transform: Tensor) -> tuple[Tensor, ...]:
    """C, dC/da, dC/db for pairs (a, b), float64 (pairs,): each (pairs, degree+1, degree+1)."""
    size = nodes.shape[0]
    values = torch.empty(3, len(a), size, size, dtype=a.dtype, device=a.device)
    wide = max(triton.next_power_of_2(size), 2)
    _values[(len(a),)](a, b, nodes, *values, size, DEGREE=size - 1, WIDE=wide, num_warps=1)
    return (values.view(-1, size) @ transform.mT).view_as(values).unbind()
