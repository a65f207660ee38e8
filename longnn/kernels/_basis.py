r"""The coefficients of a filter in an orthonormal Jacobi basis, and their gradients: a launch each.

.. math:: \beta = C(a, b)^T \alpha

The formulas are those of :mod:`longnn.polynomials`. A program serves one pair (a, b) and a tile of
channels: it runs the recurrence at the Chebyshev nodes, makes a row of C of every polynomial and
adds its share to :math:`\beta` and to the derivatives in a and b.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Most channels of a tile.
CHANNELS = 128


@triton.jit
def _offdiagonal(k, a, b):
    """s_k and d log s_k / da, d log s_k / db; k >= 1."""
    t = a + b
    n = 2 * k + t
    # At k = 1 the factor 1 + a + b stands above and below.
    up = tl.where(k == 1, 1.0, k + t)
    under = tl.where(k == 1, 1.0, n - 1)
    square = 4 * k * (k + a) * (k + b) * up / (n * n * under * (n + 1))
    common = 1 / up - 2 / n - 1 / under - 1 / (n + 1)
    return tl.sqrt(square), 0.5 * (1 / (k + a) + common), 0.5 * (1 / (k + b) + common)


@triton.jit
def _diagonal(k, a, b):
    """c_k and its derivatives; at k = 0 a factor a + b stands above and below."""
    t = a + b
    d = b - a
    n = 2 * k + t
    above = tl.where(k == 0, 1.0, t)
    q = 1 / tl.where(k == 0, t + 2, n * (n + 2))
    c = d * above * q
    by = tl.where(k == 0, 0.0, d) - c * tl.where(k == 0, 1.0, 2 * n + 2)
    return c, (by - above) * q, (by + above) * q


@triton.jit
def _constrained(pointer, bound, RAW: tl.constexpr):
    """A parameter in float64, and its derivative: bound + softplus(raw), or as it is."""
    value = tl.load(pointer).to(tl.float64)
    slope = value * 0 + 1.0
    if RAW:
        small = tl.exp(-tl.abs(value))
        slope = tl.where(value > 0, 1.0, small) / (1 + small)
        value = bound + tl.maximum(value, 0.0) + tl.log(1 + small)
    return value, slope


@triton.jit
def _series(
    a_ptr,
    b_ptr,
    alpha,  # (pairs, size, channels)
    nodes,  # (size,)
    transform,  # (size, size): values at the nodes -> Chebyshev coefficients
    beta,  # (pairs, size, channels)
    slopes,  # (pairs, 2, size, channels): d beta / da and / db
    matrix,  # (pairs, size, size): C
    size,
    channels,
    bound,  # (1,)
    RAW: tl.constexpr,
    WIDE: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    pair = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    lower = tl.load(bound)
    a, slope_a = _constrained(a_ptr + pair, lower, RAW)
    b, slope_b = _constrained(b_ptr + pair, lower, RAW)
    j = tl.arange(0, WIDE)
    inside = j < size
    square = (j[:, None] < size) & (j[None, :] < size)
    T = tl.load(transform + j[:, None] * size + j[None, :], mask=square, other=0.0)
    x = tl.load(nodes + j, mask=inside, other=0.0)
    p = x * 0 + 1.0
    pa = x * 0
    pb = x * 0
    before = x * 0
    before_a = x * 0
    before_b = x * 0
    s = a * 0
    sa = a * 0
    sb = a * 0
    total = tl.zeros([WIDE, CHANNELS], dtype=tl.float64)
    total_a = tl.zeros([WIDE, CHANNELS], dtype=tl.float64)
    total_b = tl.zeros([WIDE, CHANNELS], dtype=tl.float64)
    some = c < channels
    for k in range(size):
        row = tl.sum(T * p[None, :], 1)
        weight = tl.load(alpha + (pair * size + k) * channels + c, mask=some, other=0.0)
        weight = weight.to(tl.float64)[None, :]
        total += row[:, None] * weight
        total_a += tl.sum(T * pa[None, :], 1)[:, None] * weight
        total_b += tl.sum(T * pb[None, :], 1)[:, None] * weight
        if tl.program_id(1) == 0:
            tl.store(matrix + (pair * size + k) * size + j, row, mask=inside)
        degree = a * 0 + k  # a number like a
        ck, ca, cb = _diagonal(degree, a, b)
        sk, la, lb = _offdiagonal(degree + 1, a, b)
        one = 1 / sk
        next_p = ((x - ck) * p - s * before) * one
        next_a = ((x - ck) * pa - ca * p - s * before_a - sa * before) * one - la * next_p
        next_b = ((x - ck) * pb - cb * p - s * before_b - sb * before) * one - lb * next_p
        before, before_a, before_b = p, pa, pb
        p, pa, pb = next_p, next_a, next_b
        s, sa, sb = sk, la * sk, lb * sk
    tile = j[:, None] * channels + c[None, :]
    whole = inside[:, None] & some[None, :]
    tl.store(beta + pair * size * channels + tile, total, mask=whole)
    place = slopes + 2 * pair * size * channels + tile
    tl.store(place, total_a * slope_a, mask=whole)
    tl.store(place + size * channels, total_b * slope_b, mask=whole)


@triton.jit
def _gradient(
    grad,  # (pairs, size, channels), as are those of alpha
    slopes,
    matrix,
    of_alpha,
    of_parameters,  # (tiles, 2, pairs)
    size,
    channels,
    pairs,
    WIDE: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    pair = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    j = tl.arange(0, WIDE)
    whole = (j[:, None] < size) & (c[None, :] < channels)
    tile = j[:, None] * channels + c[None, :]
    g = tl.load(grad + pair * size * channels + tile, mask=whole, other=0.0)
    for i in tl.static_range(2):
        by = slopes + (2 * pair + i) * size * channels + tile
        share = tl.sum(tl.sum(g * tl.load(by, mask=whole, other=0.0), 1), 0)
        tl.store(of_parameters + (2 * tl.program_id(1) + i) * pairs + pair, share)
    for k in range(size):
        row = tl.load(matrix + (pair * size + k) * size + j, mask=j < size, other=0.0)
        found = tl.sum(row[:, None] * g, 0)
        tl.store(of_alpha + (pair * size + k) * channels + c, found, mask=c < channels)


class Series(NamedTuple):
    """What one launch makes, float64."""

    beta: Tensor  # (pairs, degree+1, channels)
    slopes: Tensor  # (pairs, 2, degree+1, channels)
    matrix: Tensor  # (pairs, degree+1, degree+1)


def _tiles(size: int, channels: int) -> tuple[int, dict[str, int]]:
    tile = min(triton.next_power_of_2(channels), CHANNELS)
    wide = max(triton.next_power_of_2(size), 2)
    warps = max(1, min(4, wide * max(tile, wide) // 256))
    return triton.cdiv(channels, tile), {"WIDE": wide, "CHANNELS": tile, "num_warps": warps}


def jacobi_coefficients(
    a: Tensor,  # (pairs,), contiguous, as are all tensors here
    b: Tensor,
    alpha: Tensor,  # (pairs, degree+1, channels)
    nodes: Tensor,  # (degree+1,), float64
    transform: Tensor,  # (degree+1, degree+1), float64
    bound: Tensor | None = None,  # (1,), float64: a and b are raw, and become bound + softplus
) -> Series:
    """beta = C^T alpha, its derivatives in a and b as they are given, and C."""
    pairs, size, channels = alpha.shape
    shapes = ((pairs, size, channels), (pairs, 2, size, channels), (pairs, size, size))
    made = Series(*(nodes.new_empty(shape) for shape in shapes))
    tiles, sizes = _tiles(size, channels)
    _series[(pairs, tiles)](
        a, b, alpha, nodes, transform, *made, size, channels, nodes if bound is None else bound,
        RAW=bound is not None, **sizes,
    )  # fmt: skip
    return made


def jacobi_gradient(
    grad: Tensor, slopes: Tensor, matrix: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of a, b and alpha from that of beta and what was made with it."""
    pairs, size, channels = grad.shape
    tiles, sizes = _tiles(size, channels)
    parameters = torch.empty(tiles, 2, pairs, dtype=dtype, device=grad.device)
    of_alpha = torch.empty(grad.shape, dtype=dtype, device=grad.device)
    _gradient[(pairs, tiles)](
        grad, slopes, matrix, of_alpha, parameters, size, channels, pairs, **sizes
    )
    of_a, of_b = parameters[0] if tiles == 1 else parameters.sum(0)
    return of_a, of_b, of_alpha
