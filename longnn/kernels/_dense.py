"""Dense features times every member's weights, each member with a dropout mask of its own.

The masked features of a population would be members times as large as the features; here a tile
of them is masked on its way into the matrix units. Each float32 is taken as a sum of three
bfloat16, and of their nine products the six that count are summed: float32 accuracy at the speed
of the fastest units. Where torch may round the factors of products, they are rounded here, too.
The backward pass is the product with the transpose; its long sum over nodes is cut into pieces that
are added in a fixed order.

Two neighbouring features share one 32-bit hash, so features of even and of odd number are kept
apart: then one tile of hashes masks one tile of each, with nothing to be exchanged.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from longnn.kernels._shared import dot_precision, hash32, keys, scale

#: Rows of a multiple of so many numbers can be read sixteen bytes at a time.
ALIGNED = 16
#: Tiles of the product and of its transpose, by measurement on an H200.
_TILES = {
    "bf16x6": (
        {"NODES": 64, "PAIRS": 32, "STAGES": 3, "num_warps": 4},
        {"NODES": 32, "PAIRS": 64, "STAGES": 2, "num_warps": 4},
    ),
    "tf32": (
        {"NODES": 256, "PAIRS": 16, "STAGES": 3, "num_warps": 8},
        {"NODES": 64, "PAIRS": 32, "STAGES": 3, "num_warps": 4},
    ),
}

_halves: "WeakIdKeyDictionary" = WeakIdKeyDictionary()


def halves_of(x: Tensor) -> Tensor:
    """Even and odd columns of x, (2, nodes, pairs), padded by zeros; made once for each x."""
    halved: Tensor | None = _halves.get(x)
    if halved is None:
        nodes, features = x.shape
        pairs = triton.cdiv(triton.cdiv(features, 2), ALIGNED) * ALIGNED
        halved = x.new_zeros(2, nodes, pairs)
        for i in range(2):
            half = x[:, i::2]
            halved[i, :, : half.shape[1]] = half
        _halves[x] = halved
    return halved


@triton.jit
def _masked(halves, first, second, threshold, n, p, nodes, end, features, pairs):
    """Tiles (nodes, pairs) of even and odd features, zero where the member drops."""
    inside = (n[:, None] < end) & (p[None, :] < pairs)
    offset = halves + n[:, None].to(tl.int64) * pairs + p[None, :]
    even = tl.load(offset, mask=inside, other=0.0)
    odd = tl.load(offset + nodes.to(tl.int64) * pairs, mask=inside, other=0.0)
    # Rows count as even in length, so pairs never straddle two (noise for dense features, too).
    h = hash32(first, second, n[:, None] * ((features + 1) // 2) + p[None, :])
    even = tl.where((h & 0xFFFF) >= threshold, even, 0.0)
    odd = tl.where((h >> 16) >= threshold, odd, 0.0)
    return even, odd


@triton.jit(do_not_specialize=["site"])
def _forward(
    halves,
    stream,
    rates,
    dense,
    out,
    nodes,
    features,
    pairs,
    columns,
    site,
    dm,  # strides of dense: member, feature, column
    df,
    dc,
    om,  # strides of out: member, node, column
    on,
    oc,
    NODES: tl.constexpr,
    PAIRS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
    PRECISION: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * NODES + tl.arange(0, NODES)
    c = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([NODES, COLUMNS], dtype=tl.float32)
    weights = dense + member * dm + c[None, :] * dc
    some = c[None, :] < columns
    k0, k1, least = keys(stream, rates, site, member)
    for first in tl.range(0, pairs, PAIRS, num_stages=STAGES):
        p = first + tl.arange(0, PAIRS)
        even, odd = _masked(halves, k0, k1, least, n, p, nodes, nodes, features, pairs)
        f = 2 * p[:, None]
        w0 = tl.load(weights + f * df, mask=(f < features) & some, other=0.0)
        w1 = tl.load(weights + (f + 1) * df, mask=(f + 1 < features) & some, other=0.0)
        total += tl.dot(even, w0, input_precision=PRECISION)
        total += tl.dot(odd, w1, input_precision=PRECISION)
    total *= scale(rates, member)
    offset = member * om + n[:, None].to(tl.int64) * on + c[None, :] * oc
    tl.store(out + offset, total, mask=(n[:, None] < nodes) & some)


@triton.jit(do_not_specialize=["site"])
def _backward(
    halves,
    stream,
    rates,
    grad,
    out,
    nodes,
    features,
    pairs,
    columns,
    site,
    part,  # how many nodes one program sums over
    gm,  # strides of grad: member, node, column
    gn,
    gc,
    op,  # strides of out: part, member, feature, column
    om,
    of,
    oc,
    NODES: tl.constexpr,
    PAIRS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
    PRECISION: tl.constexpr,
):
    tiles = tl.cdiv(columns, COLUMNS)
    p = (tl.program_id(0) // tiles) * PAIRS + tl.arange(0, PAIRS)
    c = (tl.program_id(0) % tiles) * COLUMNS + tl.arange(0, COLUMNS)
    member = tl.program_id(1).to(tl.int64)
    start = tl.program_id(2) * part
    end = tl.minimum(start + part, nodes)
    total0 = tl.zeros([PAIRS, COLUMNS], dtype=tl.float32)
    total1 = tl.zeros([PAIRS, COLUMNS], dtype=tl.float32)
    some = c[None, :] < columns
    k0, k1, least = keys(stream, rates, site, member)
    for at in tl.range(start, end, NODES, num_stages=STAGES):
        n = at + tl.arange(0, NODES)
        even, odd = _masked(halves, k0, k1, least, n, p, nodes, end, features, pairs)
        g = tl.load(
            grad + member * gm + n[:, None].to(tl.int64) * gn + c[None, :] * gc,
            mask=(n[:, None] < end) & some,
            other=0.0,
        )
        total0 += tl.dot(tl.trans(even), g, input_precision=PRECISION)
        total1 += tl.dot(tl.trans(odd), g, input_precision=PRECISION)
    by = scale(rates, member)
    offset = out + tl.program_id(2).to(tl.int64) * op + member * om + c[None, :] * oc
    f = 2 * p[:, None].to(tl.int64)
    tl.store(offset + f * of, total0 * by, mask=(f < features) & some)
    tl.store(offset + (f + 1) * of, total1 * by, mask=(f + 1 < features) & some)


def dense_product(
    x: Tensor,  # (nodes, features), contiguous, float32
    dense: Tensor,  # (members, features, channels), or (members, nodes, channels) if transposed
    stream: Tensor,  # (members, 2) int64, contiguous
    p: Tensor,  # (members,), contiguous
    site: int,
    *,
    transposed: bool = False,
) -> Tensor:
    """dropout(x) @ dense, or its transpose times dense: (members, rows, channels)."""
    members, _, columns = dense.shape
    nodes, features = x.shape
    halves = halves_of(x)
    pairs = halves.shape[2]
    wide = min(max(triton.next_power_of_2(columns), 16), 64)
    precision = dot_precision(x)
    forward, backward = _TILES.get(precision, _TILES["bf16x6"])
    sizes = {"COLUMNS": wide, "PRECISION": precision}
    shape = (nodes, features, pairs, columns, site)
    if not transposed:
        out = dense.new_empty(nodes, members, columns).movedim(1, 0)
        grid = (triton.cdiv(nodes, forward["NODES"]), members, triton.cdiv(columns, wide))
        _forward[grid](
            halves, stream, p, dense, out, *shape, *dense.stride(), *out.stride(),
            **forward, **sizes,
        )  # fmt: skip
        return out
    blocks = triton.cdiv(pairs, backward["PAIRS"]) * triton.cdiv(columns, wide)
    # Enough programs to fill the chip, each with a sum long enough to be worth it.
    parts = max(1, min(triton.cdiv(nodes, 512), 1536 // max(blocks * members, 1)))
    tall = backward["NODES"]
    piece = triton.cdiv(triton.cdiv(nodes, parts), tall) * tall
    out = torch.empty(parts, members, features, columns, dtype=x.dtype, device=x.device)
    _backward[(blocks, members, parts)](
        halves, stream, p, dense, out, *shape, piece, *dense.stride(), *out.stride(),
        **backward, **sizes,
    )  # fmt: skip
    return out[0] if parts == 1 else out.sum(0)
