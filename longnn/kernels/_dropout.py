"""Dropout of a population's dense signals, alone or after bias and ReLU: one pass, nothing stored.

The backward pass of the latter needs no hash: what is not positive in the result was dropped, or
was not positive before.
"""

import triton
import triton.language as tl
from torch import Tensor

from longnn.kernels._hashing import keep, keys, scale
from longnn.kernels._layout import like, tiles


@triton.jit(do_not_specialize=["site"])
def _pass(
    x,
    bias,  # (members, columns), contiguous
    out,
    stream,
    p,
    rows,
    columns,
    site,
    first,  # the position of the first element
    sm,  # strides of x and out: member, row, column
    sr,
    sc,
    ACTIVATE: tl.constexpr,  # ReLU(x + bias) first
    DROP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (r[:, None] < rows) & (c[None, :] < columns)
    place = member * sm + r[:, None] * sr + c[None, :] * sc
    v = tl.load(x + place, mask=inside, other=0.0)
    if ACTIVATE:
        b = tl.load(bias + member * columns + c, mask=c < columns, other=0.0)
        v = tl.maximum(v + b[None, :], 0.0)
    if DROP:
        first_key, second_key, threshold = keys(stream, p, site, member)
        place_of = first + r[:, None] * columns + c[None, :]
        kept = keep(first_key, second_key, threshold, place_of)
        v = tl.where(kept, v * scale(p, member).to(v.dtype), 0.0)
    tl.store(out + place, v, mask=inside)


@triton.jit
def _gradient(
    grad,
    result,
    out,
    p,
    rows,
    columns,
    gm,  # strides of grad
    gr,
    gc,
    sm,  # strides of result and out
    sr,
    sc,
    DROP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (r[:, None] < rows) & (c[None, :] < columns)
    g = tl.load(grad + member * gm + r[:, None] * gr + c[None, :] * gc, mask=inside, other=0.0)
    if DROP:
        g *= scale(p, member).to(g.dtype)
    place = member * sm + r[:, None] * sr + c[None, :] * sc
    y = tl.load(result + place, mask=inside, other=0.0)
    tl.store(out + place, tl.where(y > 0, g, 0.0), mask=inside)


def dropout(
    x: Tensor,  # (members, rows, columns) of any strides; the result has them too
    stream: Tensor | None,  # (members, 2) int64, contiguous; None: nothing is dropped
    p: Tensor | None,  # (members,), contiguous
    site: int,
    *,
    first: int = 0,  # the position of the first element, see longnn.matrices
    bias: Tensor | None = None,  # (members, columns), contiguous
) -> Tensor:
    """dropout(x), or, given a bias, dropout(ReLU(x + bias))."""
    x, out = like(x)
    grid, sizes = tiles(x)
    dropped = (x, x) if stream is None or p is None else (stream, p)
    _pass[grid](
        x, x if bias is None else bias, out, *dropped, *x.shape[1:], site, first, *x.stride(),
        ACTIVATE=bias is not None, DROP=stream is not None, **sizes,
    )  # fmt: skip
    return out


def activation_gradient(
    grad: Tensor,  # (members, rows, columns)
    result: Tensor,  # dropout(ReLU(x + bias)), as it was
    p: Tensor | None,
) -> Tensor:
    """The gradient of x, in the strides of the result."""
    result, out = like(result)
    grid, sizes = tiles(result)
    _gradient[grid](
        grad, result, out, result if p is None else p, *result.shape[1:], *grad.stride(),
        *result.stride(), DROP=p is not None, **sizes,
    )  # fmt: skip
    return out
