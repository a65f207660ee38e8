"""One step of the Chebyshev recurrence: sparse product, recurrence, accumulation, reduction.

A program takes a few rows and a block of channels; the edges of a row are read in tiles of
(edges, channels). A row of a thousand neighbours would keep all others waiting, so rows of many
tiles are cut into pieces, summed by a launch of their own before each step. The channels of all
members lie side by side. The backward pass runs the same kernel and also leaves, per block of rows,
the products with the signal that make up the gradient of the coefficients: summed afterwards in a
fixed order, so results do not vary from run to run.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from longnn.kernels._rows import sum_rows

#: Pieces of a long row that are read at once.
PIECES = 8
#: Numbers of a signal from which on there is enough to do for all of the chip.
MANY = 2**21


class Pieces(NamedTuple):
    """Long rows of a CSR matrix cut into pieces."""

    bounds: Tensor  # (pieces, 2) int32: first and last edge of each piece
    pointer: Tensor  # (rows+1,) int32: the pieces of each row; none for a short row
    number: int


_pieces: "WeakIdKeyDictionary" = WeakIdKeyDictionary()


def pieces_of(crow: Tensor, longest: int) -> Pieces:
    """The pieces of rows with more edges than ``longest``, found once for each row pointers."""
    known: dict[int, Pieces] = _pieces.setdefault(crow, {})
    if longest not in known:
        host = crow.cpu().long()
        length = host[1:] - host[:-1]
        count = torch.where(length > longest, (length + longest - 1) // longest, 0)
        pointer = torch.cat([torch.zeros(1, dtype=torch.int64), count.cumsum(0)])
        row = torch.repeat_interleave(torch.arange(len(length)), count)
        start = host[row] + longest * (torch.arange(len(row)) - pointer[row])
        bounds = torch.stack([start, torch.minimum(start + longest, host[row + 1])], dim=1)
        device = crow.device
        known[longest] = Pieces(bounds.int().to(device), pointer.int().to(device), len(row))
    return known[longest]


@triton.jit
def _gather(col, values, source, start, end, c, channels, inside, EDGES: tl.constexpr):
    """The sum over edges start..end of value times the source's row, for channels c."""
    # One sum per lane of the tile, added up once at the end: no exchange inside the loop.
    sums = tl.zeros([EDGES, c.shape[0]], dtype=values.dtype.element_ty)
    for first in range(start, end, EDGES):
        e = first + tl.arange(0, EDGES)
        some = e < end
        j = tl.load(col + e, mask=some, other=0).to(tl.int64)
        w = tl.load(values + e, mask=some, other=0.0)
        tile = tl.load(
            source + j[:, None] * channels + c[None, :],
            mask=some[:, None] & inside[None, :],
            other=0.0,
        )
        sums += w[:, None] * tile
    return tl.sum(sums, axis=0)


@triton.jit
def _piece(
    col, values, current, bounds, scratch, channels, EDGES: tl.constexpr, CHANNELS: tl.constexpr
):
    """Sum one piece of a long row into its row of ``scratch``."""
    piece = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    inside = c < channels
    start = tl.load(bounds + 2 * piece)
    end = tl.load(bounds + 2 * piece + 1)
    total = _gather(col, values, current, start, end, c, channels, inside, EDGES)
    tl.store(scratch + piece * channels + c, total, mask=inside)


@triton.jit
def _step(
    crow,
    col,
    values,
    pointer,
    scratch,
    current,  # T_{j-1} H, (rows, channels)
    previous,  # T_{j-2} H
    out,  # T_j H; may be `previous`
    total,  # the filtered signal so far
    beta,  # row j of the coefficients, of any type; row j-1 lies `channels` before it
    signal,  # H of the forward pass, for the gradient of beta
    partial,  # (blocks of rows, channels) of degree j; degree 0 goes to `partial_first`
    partial_first,
    rows,
    channels,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    GRADIENT: tl.constexpr,
    ROWS: tl.constexpr,
    PIECES: tl.constexpr,  # of a long row, how many are read at once
    EDGES: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    block = tl.program_id(0)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    inside = c < channels
    b = tl.load(beta + c, mask=inside, other=0.0).to(values.dtype.element_ty)
    if FIRST:
        b0 = tl.load(beta - channels + c, mask=inside, other=0.0).to(b.dtype)
        dot0 = tl.zeros([CHANNELS], dtype=b.dtype)
    dot = tl.zeros([CHANNELS], dtype=b.dtype)
    for r in range(ROWS):
        row = block.to(tl.int64) * ROWS + r
        last = tl.minimum(row, rows - 1)  # rows past the end do nothing
        start = tl.load(crow + last)
        end = tl.where(row < rows, tl.load(crow + last + 1), start)
        piece = tl.load(pointer + last)
        pieces = tl.where(row < rows, tl.load(pointer + last + 1), piece)
        end = tl.where(pieces > piece, start, end)  # a long row is the sum of its pieces
        product = _gather(col, values, current, start, end, c, channels, inside, EDGES)
        for first in range(piece, pieces, PIECES):
            k = first + tl.arange(0, PIECES)
            some = (k[:, None] < pieces) & inside[None, :]
            offset = k[:, None].to(tl.int64) * channels + c[None, :]
            product += tl.sum(tl.load(scratch + offset, mask=some, other=0.0), axis=0)
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


class Tile(NamedTuple):
    """How the work is cut."""

    edges: int  # read at once
    channels: int
    warps: int
    longest: int  # row that is not cut into pieces
    rows: int  # of a program of the backward pass


def _tile(channels: int, degree: float, rows: int) -> Tile:
    """By measurement on an H200, for rows of so many edges on average.

    Rows are cut from 256 edges on: a launch of its own for the one row of Cora that has 168 took
    3 us in each step. Two edges and 128 channels at a time are faster on Pubmed and Computers, but
    not on Cora, where few programs wait for many steps.
    """
    if channels <= 16:
        return Tile(64, max(triton.next_power_of_2(channels), 2), 2, 256, 2)
    if channels <= 32:
        return Tile(32, 32, 2, 128, 2)
    many = rows * channels >= MANY
    return Tile(2, 128, 1, 256, 4) if many and degree < 48 else Tile(8, 64, 1, 256, 4)


def chebyshev_filter(
    crow: Tensor,
    col: Tensor,
    values: Tensor,
    x: Tensor,  # (rows, channels), contiguous: what the recurrence starts from
    beta: Tensor,  # (degree+1, channels), contiguous, of any float type, degree >= 1
    signal: Tensor | None = None,  # (rows, channels), contiguous: given in the backward pass
) -> tuple[Tensor, Tensor | None]:
    """The filtered x, and, given a signal, the gradient of beta, in its type."""
    rows, channels = x.shape
    degree = beta.shape[0] - 1
    edges, wide, warps, longest, several = _tile(channels, col.shape[0] / max(rows, 1), rows)
    blocks_of_channels = triton.cdiv(channels, wide)
    per = 1 if signal is None else several
    blocks = triton.cdiv(rows, per)
    pieces = pieces_of(crow, longest)
    scratch = x.new_empty(max(pieces.number, 1), channels)
    total = torch.empty_like(x)
    partial = x.new_empty(degree + 1 if signal is not None else 1, blocks, channels)
    buffers = [torch.empty_like(x) for _ in range(min(degree, 2))]
    sizes = {"EDGES": edges, "CHANNELS": wide, "num_warps": warps}
    # A piece is many edges for one program: four times the tile and the warps shorten the wait.
    long = {"EDGES": 4 * edges, "CHANNELS": wide, "num_warps": 4 * warps}
    current = previous = x
    for j in range(1, degree + 1):
        out = buffers[j % 2] if degree > 1 else x
        if pieces.number:
            _piece[(pieces.number, blocks_of_channels)](
                col, values, current, pieces.bounds, scratch, channels, **long
            )
        _step[(blocks, blocks_of_channels)](
            crow,
            col,
            values,
            pieces.pointer,
            scratch,
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
            PIECES=PIECES,
            **sizes,
        )
        previous, current = current, out
    return total, None if signal is None else sum_rows(partial, beta.dtype)
