"""One step of the Chebyshev recurrence: sparse product, recurrence, accumulation, reduction.

A program takes a few rows and a block of channels; the edges of a row are read in tiles of
(edges, channels), so a row of a thousand neighbours is a few wide loads, not a thousand narrow
ones. The channels of all members lie side by side. The backward pass runs the same kernel and also
leaves, per block of rows, the products with the signal that make up the gradient of the
coefficients: summed afterwards in a fixed order, so results do not vary from run to run.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Elements of a tile, and the rows a program of the backward pass takes.
TILE, ROWS = 2048, 4


@triton.jit
def _step(
    crow,
    col,
    values,
    current,  # T_{j-1} H, (rows, channels)
    previous,  # T_{j-2} H
    out,  # T_j H; may be `previous`
    total,  # the filtered signal so far
    beta,  # row j of the coefficients; row j-1 lies `channels` before it
    signal,  # H of the forward pass, for the gradient of beta
    partial,  # (blocks of rows, channels) of degree j; degree 0 goes to `partial_first`
    partial_first,
    rows,
    channels,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    GRADIENT: tl.constexpr,
    ROWS: tl.constexpr,
    EDGES: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    block = tl.program_id(0)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    inside = c < channels
    b = tl.load(beta + c, mask=inside, other=0.0)
    if FIRST:
        b0 = tl.load(beta - channels + c, mask=inside, other=0.0)
        dot0 = tl.zeros([CHANNELS], dtype=b.dtype)
    dot = tl.zeros([CHANNELS], dtype=b.dtype)
    for r in range(ROWS):
        row = block.to(tl.int64) * ROWS + r
        last = tl.minimum(row, rows - 1)  # rows past the end do nothing
        start = tl.load(crow + last)
        end = tl.where(row < rows, tl.load(crow + last + 1), start)
        # One sum per lane of the tile, added up once at the end: no exchange inside the loop.
        sums = tl.zeros([EDGES, CHANNELS], dtype=b.dtype)
        for first in range(start, end, EDGES):
            e = first + tl.arange(0, EDGES)
            some = e < end
            j = tl.load(col + e, mask=some, other=0).to(tl.int64)
            w = tl.load(values + e, mask=some, other=0.0)
            tile = tl.load(
                current + j[:, None] * channels + c[None, :],
                mask=some[:, None] & inside[None, :],
                other=0.0,
            )
            sums += w[:, None] * tile
        product = tl.sum(sums, axis=0)
        here = row * channels + c
        store = inside & (row + c * 0 < rows)
        if FIRST:
            t = product
            t0 = tl.load(current + here, mask=store, other=0.0)
            y = b0 * t0 + b * t
        else:
            t = 2 * product - tl.load(previous + here, mask=store, other=0.0)
            y = tl.load(total + here, mask=store, other=0.0) + b * t
        if not LAST:
            tl.store(out + here, t, mask=store)
        tl.store(total + here, y, mask=store)
        if GRADIENT:
            h = tl.load(signal + here, mask=store, other=0.0)
            dot += h * t
            if FIRST:
                dot0 += h * t0
    if GRADIENT:
        tl.store(partial + block * channels + c, dot, mask=inside)
        if FIRST:
            tl.store(partial_first + block * channels + c, dot0, mask=inside)


def _tile(channels: int, degree: float) -> tuple[int, int, int]:
    """Edges and channels of a tile, and warps of a program, by measurement."""
    wide = min(triton.next_power_of_2(channels), 128)
    edges = min(max(triton.next_power_of_2(int(degree)), 4), TILE // wide)
    return edges, wide, 1 if edges * wide <= 1024 else 2


def chebyshev_filter(
    crow: Tensor,
    col: Tensor,
    values: Tensor,
    x: Tensor,  # (rows, channels), contiguous: what the recurrence starts from
    beta: Tensor,  # (degree+1, channels), contiguous, degree >= 1
    signal: Tensor | None = None,  # (rows, channels), contiguous: given in the backward pass
    tile: tuple[int, int, int] | None = None,  # edges, channels, warps: to measure others
    rows_per: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The filtered x, and, given a signal, the gradient of beta: (degree+1, channels)."""
    rows, channels = x.shape
    degree = beta.shape[0] - 1
    edges, wide, warps = tile or _tile(channels, col.shape[0] / max(rows, 1))
    per = rows_per or (ROWS if signal is not None else 1)
    blocks = triton.cdiv(rows, per)
    total = torch.empty_like(x)
    partial = x.new_empty(degree + 1 if signal is not None else 1, blocks, channels)
    buffers = [torch.empty_like(x) for _ in range(min(degree, 2))]
    current = previous = x
    for j in range(1, degree + 1):
        out = buffers[j % 2] if degree > 1 else x
        _step[(blocks, triton.cdiv(channels, wide))](
            crow,
            col,
            values,
            current,
            previous,
            out,
            total,
            beta[j],
            signal if signal is not None else x,
            partial[j] if signal is not None else partial,
            partial,
            rows,
            channels,
            FIRST=j == 1,
            LAST=j == degree,
            GRADIENT=signal is not None,
            ROWS=per,
            EDGES=edges,
            CHANNELS=wide,
            num_warps=warps,
        )
        previous, current = current, out
    return total, None if signal is None else partial.sum(1)
