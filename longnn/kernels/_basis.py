r"""The coefficients of a filter in an orthonormal Jacobi basis, and their gradients: a launch each.

.. math:: \beta = C(a, b)^T \alpha, \qquad \alpha_{kc} = w_{kc} \prod_{i<k} \gamma\tanh\eta_i

The formulas are those of :mod:`longnn.polynomials` and :mod:`longnn.filters`. A program serves one
pair (a, b) and a tile of channels: it runs the recurrence at the Chebyshev nodes, makes a row of C
of every polynomial and adds its share to :math:`\beta` and to the derivatives in a and b.
"""

import functools
import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Most channels of a tile.
CHANNELS = 128
#: Elements of a tile of a summary.
TILE = 2048


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
def constrained(pointer, bound, RAW: tl.constexpr):
    """A parameter in float64, and its derivative: bound + softplus(raw), or as it is."""
    value = tl.load(pointer).to(tl.float64)
    slope = value * 0 + 1.0
    if RAW:
        small = tl.exp(-tl.abs(value))
        slope = tl.where(value > 0, 1.0, small) / (1 + small)
        value = bound + tl.maximum(value, 0.0) + tl.log(1 + small)
    return value, slope


@triton.jit
def _log_gamma(x, half):
    """log Gamma(x) and its derivative, x > 0: Stirling's series, after ten steps upwards.

    ``half`` is log(2 pi) / 2. Fractions are divided here: a kernel rounds written ones to float32.
    """
    ones = x * 0 + 1.0
    product = ones
    steps = x * 0
    for _ in tl.static_range(10):
        product *= x
        steps += 1 / x
        x += 1
    log = tl.log(x)
    r = 1 / x
    q = r * r
    tail = ones / 1680 - q * (ones / 1188 - q * (ones * 691 / 360360))
    tail = r * (ones / 12 - q * (ones / 360 - q * (ones / 1260 - q * tail)))
    value = (x - 0.5) * log - x + half + tail
    tail = ones / 252 - q * (ones / 240 - q * (ones / 132 - q * (ones * 691 / 32760)))
    slope = log - 0.5 * r - q * (ones / 12 - q * (ones / 120 - q * tail))
    return value - tl.log(product), slope - steps


@triton.jit
def _mass_scale(a, b, numbers):
    """mu^(-1/2) of the paper's weight, and the derivatives of its logarithm."""
    two = tl.load(numbers + 1)
    half = tl.load(numbers + 2)
    of_a, by_a = _log_gamma(a + 1, half)
    of_b, by_b = _log_gamma(b + 1, half)
    of_both, by_both = _log_gamma(a + b + 2, half)
    log_mass = (a + b + 1) * two + of_a + of_b - of_both
    return tl.exp(-0.5 * log_mass), -0.5 * (two + by_a - by_both), -0.5 * (two + by_b - by_both)


@triton.jit
def tanh(x):
    return 1 - 2 / (tl.exp(2 * x) + 1)


@triton.jit
def _series(
    a_ptr,
    b_ptr,
    alpha,  # (pairs, size, channels): weights, where there are factors
    eta,  # (pairs, size - 1)
    gamma,  # (pairs,)
    nodes,  # (size,)
    transform,  # (size, size): values at the nodes -> Chebyshev coefficients
    beta,  # (pairs, size, channels)
    slopes,  # (pairs, 2, size, channels): d beta / da and / db
    matrix,  # (pairs, size, size): C
    size,
    channels,
    numbers,  # the bound of a and b, log 2, log(2 pi) / 2
    RAW: tl.constexpr,
    FACTORS: tl.constexpr,
    PAPER: tl.constexpr,  # the paper's weight, not the probability weight
    WIDE: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    pair = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    lower = tl.load(numbers)
    a, slope_a = constrained(a_ptr + pair, lower, RAW)
    b, slope_b = constrained(b_ptr + pair, lower, RAW)
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
    scale = a * 0 + 1.0
    scale_a = a * 0
    scale_b = a * 0
    if PAPER:
        scale, scale_a, scale_b = _mass_scale(a, b, numbers)
    product = a * 0 + 1.0
    for k in range(size):
        row = tl.sum(T * p[None, :], 1)
        weight = tl.load(alpha + (pair * size + k) * channels + c, mask=some, other=0.0)
        weight = (weight.to(tl.float64) * product)[None, :]
        total += row[:, None] * weight
        total_a += tl.sum(T * pa[None, :], 1)[:, None] * weight
        total_b += tl.sum(T * pb[None, :], 1)[:, None] * weight
        if tl.program_id(1) == 0:
            tl.store(matrix + (pair * size + k) * size + j, row * scale, mask=inside)
        if FACTORS:
            last = k + 1 >= size
            e = tl.load(eta + pair * (size - 1) + k, mask=not last, other=0.0).to(tl.float64)
            product *= tl.load(gamma + pair).to(tl.float64) * tanh(e)
        degree = a * 0 + k  # a number like a
        ck, ca, cb = _diagonal(degree, a, b)
        sk, la, lb = _offdiagonal(degree + 1, a, b)
        inverse = 1 / sk
        next_p = ((x - ck) * p - s * before) * inverse
        next_a = ((x - ck) * pa - ca * p - s * before_a - sa * before) * inverse - la * next_p
        next_b = ((x - ck) * pb - cb * p - s * before_b - sb * before) * inverse - lb * next_p
        before, before_a, before_b = p, pa, pb
        p, pa, pb = next_p, next_a, next_b
        s, sa, sb = sk, la * sk, lb * sk
    tile = j[:, None] * channels + c[None, :]
    whole = inside[:, None] & some[None, :]
    tl.store(beta + pair * size * channels + tile, total * scale, mask=whole)
    offset = slopes + 2 * pair * size * channels + tile
    tl.store(offset, (total_a + scale_a * total) * scale * slope_a, mask=whole)
    offset += size * channels
    tl.store(offset, (total_b + scale_b * total) * scale * slope_b, mask=whole)


@triton.jit
def _at(vector, j, k):
    """The k-th number of a vector."""
    return tl.sum(tl.where(j == k, vector, 0.0), 0)


@triton.jit
def _gradient(
    grad,  # (pairs, size, channels), as are the weights and their gradient
    slopes,
    matrix,
    weight,
    eta,
    gamma,
    of_weight,
    of_eta,  # (tiles, pairs, size - 1)
    of_parameters,  # (tiles, 2, pairs)
    size,
    channels,
    pairs,
    FACTORS: tl.constexpr,
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
    bounded = j.to(tl.float64) * 0
    factors = bounded
    products = bounded
    shares = bounded
    base = tl.load(gamma + pair).to(tl.float64) if FACTORS else 1.0
    if FACTORS:
        start = tl.load(eta + pair * (size - 1) + j, mask=j < size - 1, other=0.0)
        bounded = tanh(start.to(tl.float64))
        factors = base * bounded
    product = tl.sum(bounded, 0) * 0 + 1.0
    for k in range(size):
        row = tl.load(matrix + (pair * size + k) * size + j, mask=j < size, other=0.0)
        of_row = tl.sum(row[:, None] * g, 0)  # of alpha_k
        offset = (pair * size + k) * channels + c
        tl.store(of_weight + offset, of_row * product, mask=c < channels)
        if FACTORS:
            w = tl.load(weight + offset, mask=c < channels, other=0.0).to(tl.float64)
            shares = tl.where(j == k, tl.sum(of_row * w, 0), shares)
            products = tl.where(j == k, product, products)
            product *= _at(factors, j, k)
    if FACTORS:
        # Of factor i: the product of those before it times S_i = share_{i+1} + f_{i+1} S_{i+1}.
        later = product * 0
        found_eta = bounded * 0
        for back in range(1, size):
            k = size - back
            later = _at(shares, j, k) + _at(factors, j, k) * later
            found_eta = tl.where(j == k - 1, later, found_eta)
        found_eta *= products * base * (1 - bounded * bounded)
        offset = (tl.program_id(1) * pairs + pair) * (size - 1) + j
        tl.store(of_eta + offset, found_eta, mask=j < size - 1)


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


@functools.lru_cache(maxsize=16)
def numbers_of(bound: float, device: torch.device) -> Tensor:
    """Numbers as a kernel reads them without rounding."""
    parts = [bound, math.log(2), math.log(2 * math.pi) / 2]
    return torch.tensor(parts, dtype=torch.float64, device=device)


def jacobi_coefficients(
    a: Tensor,  # (pairs,), contiguous, as are all tensors here
    b: Tensor,
    weight: Tensor,  # (pairs, degree+1, channels)
    nodes: Tensor,  # (degree+1,), float64
    transform: Tensor,  # (degree+1, degree+1), float64
    bound: float | None = None,  # if given, a and b are raw, and become bound + softplus
    *,
    eta: Tensor | None = None,  # (pairs, degree), with gamma (pairs,): there are factors
    gamma: Tensor | None = None,
    unit_mass: bool = True,
) -> Series:
    """beta = C^T alpha, its derivatives in a and b as they are given, and C."""
    pairs, size, channels = weight.shape
    shapes = ((pairs, size, channels), (pairs, 2, size, channels), (pairs, size, size))
    series = Series(*(nodes.new_empty(shape) for shape in shapes))
    tiles, sizes = _tiles(size, channels)
    factors = (a, a) if eta is None or gamma is None else (eta, gamma)
    _series[(pairs, tiles)](
        a, b, weight, *factors, nodes, transform, *series, size, channels,
        numbers_of(bound or 0.0, a.device),
        RAW=bound is not None, FACTORS=eta is not None, PAPER=not unit_mass, **sizes,
    )  # fmt: skip
    return series


def jacobi_gradient(
    grad: Tensor,  # (pairs, degree+1, channels), of beta
    slopes: Tensor,  # as they were made
    matrix: Tensor,
    weight: Tensor,
    eta: Tensor | None = None,
    gamma: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The gradients of a, b, the weights and, if there are factors, of eta."""
    pairs, size, channels = grad.shape
    tiles, sizes = _tiles(size, channels)
    parameters = weight.new_empty(tiles, 2, pairs)
    of_weight, of_eta = torch.empty_like(weight), weight.new_empty(tiles, pairs, size - 1)
    factors = (weight, weight) if eta is None or gamma is None else (eta, gamma)
    _gradient[(pairs, tiles)](
        grad, slopes, matrix, weight, *factors, of_weight, of_eta, parameters,
        size, channels, pairs, FACTORS=eta is not None, **sizes,
    )  # fmt: skip
    of_a, of_b = _sum(parameters)
    return of_a, of_b, of_weight, None if eta is None else _sum(of_eta)


def _sum(tiles: Tensor) -> Tensor:
    return tiles[0] if len(tiles) == 1 else tiles.sum(0)


@triton.jit
def _summary(
    a,
    b,
    weight,  # (filters, size, channels)
    eta,  # (filters, size - 1)
    gamma,  # (filters,)
    numbers,  # the bound of a and b
    out,  # (filters, 3)
    size,
    channels,
    FACTORS: tl.constexpr,
    WIDE: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    pair = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, WIDE)
    c = tl.arange(0, CHANNELS)
    energy = tl.zeros([WIDE], dtype=tl.float64)
    for first in range(0, channels, CHANNELS):
        inside = (k[:, None] < size) & (first + c[None, :] < channels)
        offset = (pair * size + k[:, None]) * channels + first + c[None, :]
        w = tl.load(weight + offset, mask=inside, other=0.0).to(tl.float64)
        energy += tl.sum(w * w, 1)
    if FACTORS:
        before = (k > 0) & (k < size)
        e = tl.load(eta + pair * (size - 1) + k - 1, mask=before, other=0.0).to(tl.float64)
        factor = tl.where(before, tl.load(gamma + pair).to(tl.float64) * tanh(e), 1.0)
        product = tl.cumprod(factor, 0)
        energy *= product * product
    lower = tl.load(numbers)
    tl.store(out + 3 * pair, tl.sqrt(tl.sum(energy, 0) / channels))
    tl.store(out + 3 * pair + 1, constrained(a + pair, lower, True)[0])
    tl.store(out + 3 * pair + 2, constrained(b + pair, lower, True)[0])


def summary(
    a: Tensor,  # (filters,), contiguous, as are all tensors here
    b: Tensor,
    weight: Tensor,  # (filters, degree+1, channels)
    bound: float,  # a and b are raw, and become bound + softplus
    *,
    eta: Tensor | None = None,  # (filters, degree), with gamma (filters,): there are factors
    gamma: Tensor | None = None,
) -> Tensor:
    r"""What is written down of each filter at every epoch, in one launch: its amplitude, a and b.

    .. math:: \sqrt{\tfrac1C \sum_{kc} \alpha_{kc}^2}, \qquad
              \alpha_{kc} = w_{kc} \prod_{i<k} \gamma\tanh\eta_i

    A program serves one filter. Returns (filters, 3), in the type of the weights.
    """
    filters, size, channels = weight.shape
    out = torch.empty(filters, 3, dtype=weight.dtype, device=weight.device)
    wide = triton.next_power_of_2(size)
    tile = max(1, min(triton.next_power_of_2(channels), TILE // wide))
    factors = (a, a) if eta is None or gamma is None else (eta, gamma)
    _summary[(filters,)](
        a, b, weight, *factors, numbers_of(bound, a.device), out, size, channels,
        FACTORS=eta is not None, WIDE=wide, CHANNELS=tile,
    )  # fmt: skip
    return out
