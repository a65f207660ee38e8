"""Rows of a population's signals: norms, bias and residual, sums over rows, ReLU and dropout.

Each is one pass over the signal, its gradient another, and nothing is stored between. Sums over
rows are cut into pieces that are added in a fixed order, so that they are the same in every run.
The backward pass of dropout after ReLU needs no hash: what is not positive in the result was
dropped, or was not positive before.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from longnn.kernels._shared import keep, keys, like, scale, tiles

#: Elements of a tile of whole rows.
BLOCK = 2048
#: Programs that sum the rows of one member, and rows from which they are worth a second launch.
PIECES, FEW = 64, 512


@triton.jit
def _normalize(
    x,
    out,
    inverse,  # (members, rows)
    rows,
    columns,
    epsilon,
    sm,  # strides of x and out: member, row; columns lie side by side
    sr,
    CENTER: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, COLUMNS)
    inside = (r[:, None] < rows) & (c[None, :] < columns)
    offset = member * sm + r[:, None] * sr + c[None, :]
    v = tl.load(x + offset, mask=inside, other=0.0)
    if CENTER:
        v = tl.where(inside, v - tl.sum(v, 1)[:, None] / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(v * v, 1) / columns + epsilon)
    tl.store(out + offset, v * scale[:, None], mask=inside)
    tl.store(inverse + member * rows + r, scale, mask=r < rows)


@triton.jit
def _normalize_gradient(
    grad,
    result,
    inverse,
    out,
    rows,
    columns,
    gm,  # strides of grad: member, row, column
    gr,
    gc,
    sm,  # strides of result and out: member, row
    sr,
    CENTER: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, COLUMNS)
    inside = (r[:, None] < rows) & (c[None, :] < columns)
    g = tl.load(grad + member * gm + r[:, None] * gr + c[None, :] * gc, mask=inside, other=0.0)
    offset = member * sm + r[:, None] * sr + c[None, :]
    y = tl.load(result + offset, mask=inside, other=0.0)
    scale = tl.load(inverse + member * rows + r, mask=r < rows, other=0.0)
    along = tl.sum(g * y, 1)[:, None] / columns
    slope = g - y * along
    if CENTER:
        slope -= tl.sum(g, 1)[:, None] / columns
    tl.store(out + offset, slope * scale[:, None], mask=inside)


def _whole_rows(x: Tensor) -> tuple[tuple[int, int], dict[str, int]]:
    members, rows, columns = x.shape
    wide = triton.next_power_of_2(columns)
    tall = max(1, BLOCK // wide)
    return (triton.cdiv(rows, tall), members), {"ROWS": tall, "COLUMNS": wide}


def normalize(
    x: Tensor,  # (members, rows, columns); columns side by side
    epsilon: float,
    *,
    center: bool,
) -> tuple[Tensor, Tensor]:
    """Rows over their root mean square, less their mean before if ``center``; and by how much."""
    x, out = like(x if x.stride(-1) == 1 else x.contiguous())
    inverse = torch.empty(x.shape[:2], dtype=x.dtype, device=x.device)
    grid, sizes = _whole_rows(x)
    _normalize[grid](
        x, out, inverse, *x.shape[1:], epsilon, *x.stride()[:2], CENTER=center, **sizes
    )
    return out, inverse


def normalize_gradient(
    grad: Tensor,  # (members, rows, columns)
    result: Tensor,  # what `normalize` made
    inverse: Tensor,
    *,
    center: bool,
) -> Tensor:
    """The gradient of x, in the strides of the result."""
    result, out = like(result if result.stride(-1) == 1 else result.contiguous())
    grid, sizes = _whole_rows(result)
    _normalize_gradient[grid](
        grad, result, inverse, out, *result.shape[1:], *grad.stride(), *result.stride()[:2],
        CENTER=center, **sizes,
    )  # fmt: skip
    return out


@triton.jit
def _add(
    x,
    bias,  # (members, columns)
    residual,
    out,
    rows,
    columns,
    sm,  # strides of x and out: member, row, column
    sr,
    sc,
    rm,  # strides of the residual
    rr,
    rc,
    RESIDUAL: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (r[:, None] < rows) & (c[None, :] < columns)
    offset = member * sm + r[:, None] * sr + c[None, :] * sc
    v = tl.load(x + offset, mask=inside, other=0.0)
    v += tl.load(bias + member * columns + c, mask=c < columns, other=0.0)[None, :]
    if RESIDUAL:
        beside = member * rm + r[:, None] * rr + c[None, :] * rc
        v += tl.load(residual + beside, mask=inside, other=0.0)
    tl.store(out + offset, v, mask=inside)


def add_bias(
    x: Tensor,  # (members, rows, columns) of any strides; the result has them too
    bias: Tensor,  # (members, columns), contiguous
    residual: Tensor | None = None,  # (members, rows, columns)
) -> Tensor:
    """x + bias, and plus a residual."""
    x, out = like(x)
    grid, sizes = tiles(x)
    beside = x if residual is None else residual
    _add[grid](
        x, bias, beside, out, *x.shape[1:], *x.stride(), *beside.stride(),
        RESIDUAL=residual is not None, **sizes,
    )  # fmt: skip
    return out


@triton.jit
def _sums(
    x,
    out,  # (members, pieces, columns)
    rows,
    columns,
    piece,  # rows of one program
    sm,
    sr,
    sc,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    c = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    start = tl.program_id(0) * piece
    end = tl.minimum(start + piece, rows)
    total = tl.zeros([ROWS, COLUMNS], dtype=x.dtype.element_ty)
    for first in range(start, end, ROWS):
        r = first + tl.arange(0, ROWS)
        inside = (r[:, None] < end) & (c[None, :] < columns)
        offset = member * sm + r[:, None].to(tl.int64) * sr + c[None, :] * sc
        total += tl.load(x + offset, mask=inside, other=0.0)
    row = member * tl.num_programs(0) + tl.program_id(0)
    tl.store(out + row * columns + c, tl.sum(total, 0), mask=c < columns)


def sum_rows(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """The sums over the rows of (members, rows, columns), (members, columns), in a type."""
    members, rows, columns = x.shape
    pieces = PIECES if rows >= FEW else 1
    _, sizes = tiles(x)
    kept = x.dtype if pieces > 1 or dtype is None else dtype
    out = torch.empty(members, pieces, columns, dtype=kept, device=x.device)
    grid = (pieces, members, triton.cdiv(columns, sizes["COLUMNS"]))
    _sums[grid](x, out, rows, columns, triton.cdiv(rows, pieces), *x.stride(), **sizes)
    return out[:, 0] if pieces == 1 else sum_rows(out, dtype)


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
    offset = member * sm + r[:, None] * sr + c[None, :] * sc
    v = tl.load(x + offset, mask=inside, other=0.0)
    if ACTIVATE:
        b = tl.load(bias + member * columns + c, mask=c < columns, other=0.0)
        v = tl.maximum(v + b[None, :], 0.0)
    if DROP:
        first_key, second_key, threshold = keys(stream, p, site, member)
        place_of = first + r[:, None] * columns + c[None, :]
        kept = keep(first_key, second_key, threshold, place_of)
        v = tl.where(kept, v * scale(p, member).to(v.dtype), 0.0)
    tl.store(out + offset, v, mask=inside)


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
    offset = member * sm + r[:, None] * sr + c[None, :] * sc
    y = tl.load(result + offset, mask=inside, other=0.0)
    tl.store(out + offset, tl.where(y > 0, g, 0.0), mask=inside)


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
