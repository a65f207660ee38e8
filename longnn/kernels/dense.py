"""Dense features times every member's weights, each member with a dropout mask of its own.

The masked features of a population would be members times as large as the features; here a tile
of them is masked on its way into the matrix units. Products are taken in three TF32 passes, which
is float32 accuracy. The backward pass is the product with the transpose; its long sum over nodes is
cut into parts that are added in a fixed order.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from longnn.kernels.hashing import keep, prepare


@triton.jit
def _product(
    x,
    keys,
    scales,
    dense,
    out,
    rows,  # of the result
    inner,  # of the sum
    part,  # how much of the sum one program takes
    columns,
    features,  # row length of x
    sr,  # strides of x in (row of the result, inner)
    si,
    dm,  # strides of dense: member, inner, column
    di,
    dc,
    op,  # strides of out: part, member, row, column
    om,
    orow,
    oc,
    ROWS: tl.constexpr,
    INNER: tl.constexpr,
    COLUMNS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    tiles = tl.cdiv(columns, COLUMNS)
    r = (tl.program_id(0) // tiles) * ROWS + tl.arange(0, ROWS)
    c = (tl.program_id(0) % tiles) * COLUMNS + tl.arange(0, COLUMNS)
    member = tl.program_id(1)
    chunk = tl.program_id(2)
    start = chunk * part
    end = tl.minimum(start + part, inner)
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for first in range(start, end, INNER):
        k = first + tl.arange(0, INNER)
        inside = (r[:, None] < rows) & (k[None, :] < end)
        place = r[:, None].to(tl.int64) * sr + k[None, :].to(tl.int64) * si
        tile = tl.load(x + place, mask=inside, other=0.0)
        tile = tl.where(keep(keys, member, place), tile, 0.0)  # x is contiguous: its flat index
        w = tl.load(
            dense + member.to(tl.int64) * dm + k[:, None].to(tl.int64) * di + c[None, :] * dc,
            mask=(k[:, None] < end) & (c[None, :] < columns),
            other=0.0,
        )
        total += tl.dot(tile, w, input_precision=PRECISION)
    total *= tl.load(scales + member)
    place = chunk.to(tl.int64) * op + member.to(tl.int64) * om
    place += r[:, None].to(tl.int64) * orow + c[None, :] * oc
    tl.store(out + place, total, mask=(r[:, None] < rows) & (c[None, :] < columns))


def product(
    x: Tensor,  # (nodes, features), contiguous, float32
    dense: Tensor,  # (members, features, channels), or (members, nodes, channels) if transposed
    stream: Tensor,  # (members, 2) int64, contiguous
    p: Tensor,  # (members,), contiguous
    site: int,
    *,
    transposed: bool = False,
    precision: str = "tf32x3",
) -> Tensor:
    """dropout(x) @ dense, or its transpose times dense: (members, rows, channels)."""
    members, inner, columns = dense.shape
    nodes, features = x.shape
    rows = features if transposed else nodes
    strides = (1, features) if transposed else (features, 1)
    keys, scales = prepare(stream, p, site)
    wide = min(max(triton.next_power_of_2(columns), 16), 64)
    blocks = triton.cdiv(rows, 64) * triton.cdiv(columns, wide)
    # Enough programs to fill the chip, each with a sum long enough to be worth it.
    parts = max(1, min(triton.cdiv(inner, 512), 528 // max(blocks * members, 1)))
    part = triton.cdiv(triton.cdiv(inner, parts), 32) * 32
    out = dense.new_empty(parts, rows, members, columns).permute(0, 2, 1, 3)
    _product[(blocks, members, parts)](
        x,
        keys,
        scales,
        dense,
        out,
        rows,
        inner,
        part,
        columns,
        features,
        *strides,
        *dense.stride(),
        *out.stride(),
        ROWS=64,
        INNER=32,
        COLUMNS=wide,
        PRECISION=precision,
        num_warps=4,
    )
    return out[0] if parts == 1 else out.sum(0)
