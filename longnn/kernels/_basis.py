"""The Chebyshev matrix of the orthonormal Jacobi basis and its two derivatives, in one launch.

The formulas are those of :mod:`longnn.polynomials`; one program serves one pair (a, b).
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
        q = n * (n + 2)
        c = d * t / q
        ca = (d - t - c * (2 * n + 2)) / q
        cb = (d + t - c * (2 * n + 2)) / q
    return c, ca, cb


@triton.jit
def _write(out, at, values, transform, j, i, size, inside):
    """Row of coefficients from values at the nodes: transform (size, size) times values."""
    t = tl.load(transform + j[:, None] * size + i[None, :], mask=inside, other=0.0)
    tl.store(out + at + j, tl.sum(t * values[None, :], axis=1), mask=j < size)


@triton.jit
def _matrix(
    a_ptr,
    b_ptr,
    nodes,
    transform,
    out,
    out_a,
    out_b,
    size,
    DEGREE: tl.constexpr,
    WIDE: tl.constexpr,
):
    pair = tl.program_id(0)
    a = tl.load(a_ptr + pair)
    b = tl.load(b_ptr + pair)
    i = tl.arange(0, WIDE)
    inside = (i[:, None] < size) & (i[None, :] < size)
    x = tl.load(nodes + i, mask=i < size, other=0.0)
    p = x * 0 + 1.0
    previous = x * 0
    pa = x * 0
    pb = x * 0
    previous_a = x * 0
    previous_b = x * 0
    s = a * 0
    sa = a * 0
    sb = a * 0
    base = pair.to(tl.int64) * size * size
    _write(out, base, p, transform, i, i, size, inside)
    _write(out_a, base, pa, transform, i, i, size, inside)
    _write(out_b, base, pb, transform, i, i, size, inside)
    for k in tl.static_range(DEGREE):
        c, ca, cb = _diagonal(k, a, b)
        s1, la, lb = _offdiagonal(k + 1, a, b)
        next_p = ((x - c) * p - s * previous) / s1
        next_a = ((x - c) * pa - ca * p - s * previous_a - sa * previous) / s1 - la * next_p
        next_b = ((x - c) * pb - cb * p - s * previous_b - sb * previous) / s1 - lb * next_p
        previous, p = p, next_p
        previous_a, pa = pa, next_a
        previous_b, pb = pb, next_b
        s, sa, sb = s1, la * s1, lb * s1
        row = base + (k + 1) * size
        _write(out, row, p, transform, i, i, size, inside)
        _write(out_a, row, pa, transform, i, i, size, inside)
        _write(out_b, row, pb, transform, i, i, size, inside)


def jacobi_matrices(a: Tensor, b: Tensor, nodes: Tensor, transform: Tensor) -> tuple[Tensor, ...]:
    """C, dC/da, dC/db for pairs (a, b), float64 (pairs,): each (pairs, degree+1, degree+1)."""
    size = nodes.shape[0]
    outs = tuple(torch.empty(len(a), size, size, dtype=a.dtype, device=a.device) for _ in range(3))
    wide = max(triton.next_power_of_2(size), 2)
    _matrix[(len(a),)](a, b, nodes, transform, *outs, size, DEGREE=size - 1, WIDE=wide, num_warps=1)
    return outs
