"""Each member's signal times its few columns of weights, and the gradient of those weights.

A library cuts such products into square tiles, most of which would be empty, and sums over all
nodes in few programs. Here a program reads whole rows, so that each pass costs what reading the
signal costs. The sum over nodes is cut into pieces that are added in a fixed order.
"""

import triton
import triton.language as tl
from torch import Tensor

from longnn.kernels._shared import dot_precision

#: Columns of a tile: the fewest that the matrix units take.
COLUMNS = 16
#: Programs that fill the chip a few times over.
PROGRAMS = 512


@triton.jit
def _product(
    x,
    weight,
    out,
    rows,
    channels,
    columns,
    xm,  # strides of x: member, row, channel
    xr,
    xc,
    wm,  # strides of weight: member, channel, column
    wr,
    wc,
    om,  # strides of out: member, row, column
    orow,
    oc,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
    COLUMNS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for first in range(0, channels, CHANNELS):
        k = first + tl.arange(0, CHANNELS)
        tile = tl.load(
            x + member * xm + r[:, None] * xr + k[None, :] * xc,
            mask=(r[:, None] < rows) & (k[None, :] < channels),
            other=0.0,
        )
        weights = tl.load(
            weight + member * wm + k[:, None] * wr + c[None, :] * wc,
            mask=(k[:, None] < channels) & (c[None, :] < columns),
            other=0.0,
        )
        total += tl.dot(tile, weights, input_precision=PRECISION)
    target = out + member * om + r[:, None] * orow + c[None, :] * oc
    tl.store(target, total, mask=(r[:, None] < rows) & (c[None, :] < columns))


@triton.jit
def _gradient(
    x,
    grad,
    out,
    rows,
    channels,
    columns,
    part,  # how many rows one program sums over
    xm,  # strides of x: member, row, channel
    xr,
    xc,
    gm,  # strides of grad: member, row, column
    gr,
    gc,
    op,  # strides of out: part, member, channel, column
    om,
    orow,
    oc,
    ROWS: tl.constexpr,
    CHANNELS: tl.constexpr,
    COLUMNS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    k = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    c = tl.arange(0, COLUMNS)
    start = tl.program_id(2) * part
    end = tl.minimum(start + part, rows)
    total = tl.zeros([CHANNELS, COLUMNS], dtype=tl.float32)
    for at in range(start, end, ROWS):
        r = at + tl.arange(0, ROWS)
        tile = tl.load(
            x + member * xm + r[:, None].to(tl.int64) * xr + k[None, :] * xc,
            mask=(r[:, None] < end) & (k[None, :] < channels),
            other=0.0,
        )
        weights = tl.load(
            grad + member * gm + r[:, None].to(tl.int64) * gr + c[None, :] * gc,
            mask=(r[:, None] < end) & (c[None, :] < columns),
            other=0.0,
        )
        total += tl.dot(tl.trans(tile), weights, input_precision=PRECISION)
    target = out + tl.program_id(2).to(tl.int64) * op + member * om
    target += k[:, None] * orow + c[None, :] * oc
    tl.store(target, total, mask=(k[:, None] < channels) & (c[None, :] < columns))


def narrow_product(
    x: Tensor,  # (members, rows, channels), float32, any strides
    weight: Tensor,  # (members, channels, columns), at most COLUMNS of them
) -> Tensor:
    """x @ weight, (members, rows, columns); in memory members stand beside columns."""
    members, rows, channels = x.shape
    columns = weight.shape[2]
    out = x.new_empty(rows, members, columns).movedim(1, 0)
    if out.numel() == 0:
        return out
    _product[(triton.cdiv(rows, 128), members)](
        x, weight, out, rows, channels, columns, *x.stride(), *weight.stride(), *out.stride(),
        ROWS=128, CHANNELS=64, COLUMNS=COLUMNS, PRECISION=dot_precision(x), num_warps=4,
    )  # fmt: skip
    return out


def narrow_gradient(
    x: Tensor,  # (members, rows, channels), float32, any strides
    grad: Tensor,  # (members, rows, columns)
) -> Tensor:
    """The transpose of x @ grad, (members, channels, columns)."""
    members, rows, channels = x.shape
    columns = grad.shape[2]
    blocks = triton.cdiv(channels, 64)
    parts = max(1, min(triton.cdiv(rows, 256), PROGRAMS // (blocks * members)))
    piece = triton.cdiv(triton.cdiv(rows, parts), 64) * 64
    out = x.new_empty(parts, members, channels, columns)
    _gradient[(blocks, members, parts)](
        x, grad, out, rows, channels, columns, piece, *x.stride(), *grad.stride(), *out.stride(),
        ROWS=64, CHANNELS=64, COLUMNS=COLUMNS, PRECISION=dot_precision(x), num_warps=4,
    )  # fmt: skip
    return out[0] if parts == 1 else out.sum(0)
