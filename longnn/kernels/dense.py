"""Dense features times every member's weights, each member with a dropout mask of its own.

The masked features of a population would be members times as large as the features; here a tile
of them is masked on its way into the matrix units. Products are taken in three TF32 passes, which
is float32 accuracy. The backward pass is the product with the transpose; its long sum over nodes is
cut into parts that are added in a fixed order.
"""

import triton
import triton.language as tl
from torch import Tensor

from longnn.kernels.hashing import hash32, prepare


@triton.jit
def _masked(x, keys, member, n, f, nodes, features, first, FEATURES: tl.constexpr):
    """A tile of x, (nodes, features), zero where the member drops; read along the features.

    Two neighbouring features share one 32-bit hash; rows count as even in length, so pairs never
    straddle two rows (noise for dense features does the same).
    """
    inside = (n[:, None] < nodes) & (f[None, :] < features)
    tile = tl.load(x + n[:, None].to(tl.int64) * features + f[None, :], mask=inside, other=0.0)
    pair = first // 2 + tl.arange(0, FEATURES // 2)
    h = hash32(keys, member, n[:, None] * ((features + 1) // 2) + pair[None, :])
    half = tl.interleave(h & 0xFFFF, h >> 16)
    threshold = tl.load(keys + 3 * member + 2).to(tl.uint32)
    return tl.where(half >= threshold, tile, 0.0)


@triton.jit
def _forward(
    x,
    keys,
    scales,
    dense,
    out,
    nodes,
    features,
    columns,
    dm,  # strides of dense: member, feature, column
    df,
    dc,
    om,  # strides of out: member, node, column
    on,
    oc,
    NODES: tl.constexpr,
    FEATURES: tl.constexpr,
    COLUMNS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    member = tl.program_id(1)
    n = tl.program_id(0) * NODES + tl.arange(0, NODES)
    c = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([NODES, COLUMNS], dtype=tl.float32)
    for first in range(0, features, FEATURES):
        f = first + tl.arange(0, FEATURES)
        tile = _masked(x, keys, member, n, f, nodes, features, first, FEATURES)
        w = tl.load(
            dense + member.to(tl.int64) * dm + f[:, None] * df + c[None, :] * dc,
            mask=(f[:, None] < features) & (c[None, :] < columns),
            other=0.0,
        )
        total += tl.dot(tile, w, input_precision=PRECISION)
    total *= tl.load(scales + member)
    place = member.to(tl.int64) * om + n[:, None].to(tl.int64) * on + c[None, :] * oc
    tl.store(out + place, total, mask=(n[:, None] < nodes) & (c[None, :] < columns))


@triton.jit
def _backward(
    x,
    keys,
    scales,
    grad,
    out,
    nodes,
    features,
    columns,
    part,  # how many nodes one program sums over
    gm,  # strides of grad: member, node, column
    gn,
    gc,
    op,  # strides of out: part, member, feature, column
    om,
    of,
    oc,
    NODES: tl.constexpr,
    FEATURES: tl.constexpr,
    COLUMNS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    tiles = tl.cdiv(columns, COLUMNS)
    first = (tl.program_id(0) // tiles) * FEATURES
    f = first + tl.arange(0, FEATURES)
    c = (tl.program_id(0) % tiles) * COLUMNS + tl.arange(0, COLUMNS)
    member = tl.program_id(1)
    start = tl.program_id(2) * part
    end = tl.minimum(start + part, nodes)
    total = tl.zeros([FEATURES, COLUMNS], dtype=tl.float32)
    for at in range(start, end, NODES):
        n = at + tl.arange(0, NODES)
        tile = _masked(x, keys, member, n, f, end, features, first, FEATURES)
        g = tl.load(
            grad + member.to(tl.int64) * gm + n[:, None].to(tl.int64) * gn + c[None, :] * gc,
            mask=(n[:, None] < end) & (c[None, :] < columns),
            other=0.0,
        )
        total += tl.dot(tl.trans(tile), g, input_precision=PRECISION)
    total *= tl.load(scales + member)
    place = tl.program_id(2).to(tl.int64) * op + member.to(tl.int64) * om
    place += f[:, None].to(tl.int64) * of + c[None, :] * oc
    tl.store(out + place, total, mask=(f[:, None] < features) & (c[None, :] < columns))


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
    members, _, columns = dense.shape
    nodes, features = x.shape
    keys, scales = prepare(stream, p, site)
    wide = min(max(triton.next_power_of_2(columns), 16), 64)
    sizes = {"COLUMNS": wide, "PRECISION": precision, "num_warps": 4}
    if not transposed:
        out = dense.new_empty(nodes, members, columns).movedim(1, 0)
        grid = (triton.cdiv(nodes, 64), members, triton.cdiv(columns, wide))
        _forward[grid](
            x, keys, scales, dense, out, nodes, features, columns,
            *dense.stride(), *out.stride(), NODES=64, FEATURES=32, **sizes,
        )  # fmt: skip
        return out
    blocks = triton.cdiv(features, 64) * triton.cdiv(columns, wide)
    # Enough programs to fill the chip, each with a sum long enough to be worth it.
    parts = max(1, min(triton.cdiv(nodes, 512), 1056 // max(blocks * members, 1)))
    part = triton.cdiv(triton.cdiv(nodes, parts), 32) * 32
    out = dense.new_empty(parts, members, features, columns)
    _backward[(blocks, members, parts)](
        x, keys, scales, dense, out, nodes, features, columns, part,
        *dense.stride(), *out.stride(), NODES=32, FEATURES=64, **sizes,
    )  # fmt: skip
    return out[0] if parts == 1 else out.sum(0)
