"""Sparse features times every member's weights, with dropout on the stored values in the kernel.

One program makes one row of a few members: it reads the row's entries in tiles, hashes which of
them each member keeps, and gathers the rows of its weights. The backward pass is the same kernel on
the transpose, told at which position each entry stands in the original.
"""

import triton
import triton.language as tl
from torch import Tensor

from longnn.kernels._shared import keep, keys, scale


@triton.jit(do_not_specialize=["site"])
def _product(
    crow,
    col,
    values,
    position,
    stream,
    p,
    dense,
    out,
    members,
    columns,
    site,
    sm,  # strides of dense: member, row, column
    sr,
    sc,
    om,  # strides of out
    orow,
    oc,
    DROP: tl.constexpr,
    MOVED: tl.constexpr,
    MEMBERS: tl.constexpr,
    EDGES: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    m = tl.program_id(1) * MEMBERS + tl.arange(0, MEMBERS)
    c = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    is_member, inside = m < members, c < columns
    m = tl.minimum(m, members - 1).to(tl.int64)
    start = tl.load(crow + row)
    end = tl.load(crow + row + 1)
    # One sum per lane of the tile, added up once at the end: no exchange inside the loop.
    sums = tl.zeros([MEMBERS, EDGES, COLUMNS], dtype=values.dtype.element_ty)
    source = dense + m[:, None, None] * sm + c[None, None, :] * sc
    if DROP:
        first_key, second_key, threshold = keys(stream, p, site, m)
    for first in range(start, end, EDGES):
        e = first + tl.arange(0, EDGES)
        some = e < end
        j = tl.load(col + e, mask=some, other=0).to(tl.int64)
        v = tl.load(values + e, mask=some, other=0.0)
        read = is_member[:, None] & some[None, :]
        if DROP:
            at = e.to(tl.int64)
            if MOVED:
                at = tl.load(position + e, mask=some, other=0)
            kept = keep(first_key[:, None], second_key[:, None], threshold[:, None], at[None, :])
            read = read & kept  # what is dropped is not even read
        tile = tl.load(
            source + j[None, :, None] * sr,
            mask=read[:, :, None] & inside[None, None, :],
            other=0.0,
        )
        sums += v[None, :, None] * tile
    total = tl.sum(sums, axis=1)  # (members, columns)
    if DROP:
        total *= scale(p, m)[:, None].to(total.dtype)
    offset = m[:, None] * om + row * orow + c[None, :] * oc
    tl.store(out + offset, total, mask=is_member[:, None] & inside[None, :])


def feature_product(
    crow: Tensor,
    col: Tensor,
    values: Tensor,
    dense: Tensor,  # (members, columns of the matrix, channels), any strides
    *,
    stream: Tensor | None = None,  # (members, 2) int64, contiguous
    p: Tensor | None = None,  # (members,), contiguous
    site: int = 0,
    position: Tensor | None = None,  # (nnz,) int64: where each entry stands, if moved
    members_first: bool = False,
) -> Tensor:
    """Each member's product, shape (members, rows, channels).

    In memory members stand beside channels, or first: the layout that the next step reads best.
    """
    members, _, channels = dense.shape
    rows = crow.shape[0] - 1
    if members_first:
        out = dense.new_empty(members, rows, channels)
    else:
        out = dense.new_empty(rows, members, channels).movedim(1, 0)
    if rows == 0:
        return out
    wide = min(triton.next_power_of_2(channels), 128)
    together, edges, warps = _tile(col.shape[0] / rows, wide, members)
    grid = (rows, triton.cdiv(members, together), triton.cdiv(channels, wide))
    _product[grid](
        crow,
        col,
        values,
        crow if position is None else position,
        crow if stream is None else stream,
        crow if p is None else p,
        dense,
        out,
        members,
        channels,
        site,
        *dense.stride(),
        *out.stride(),
        DROP=stream is not None,
        MOVED=position is not None,
        MEMBERS=together,
        EDGES=edges,
        COLUMNS=wide,
        num_warps=warps,
    )
    return out


def _tile(degree: float, wide: int, members: int) -> tuple[int, int, int]:
    """Members and entries of a tile, and warps of a program, by measurement on an H200.

    Where rows are short, a program's time is the wait for its first numbers: members share it.
    """
    if degree < 32:
        together = min(triton.next_power_of_2(members), max(512 // wide, 1), 16)
        return (together, 4, 2) if together >= 8 else (together, 8, 1)
    return (1, 16, 2) if wide >= 64 else (1, 32, 1)
