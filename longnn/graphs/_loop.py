r"""The one hot loop, on the CSR arrays of a symmetric P: Chebyshev terms, filters, gradients.

.. math:: Y = \sum_{j=0}^{K} T_j(P)\,H \circ \beta_j, \qquad
          dH = \sum_j T_j(P)\,G \circ \beta_j, \qquad
          d\beta_j = \textstyle\sum_{rows} H \circ T_j(P)\,G

It knows arrays, not graphs: :mod:`longnn.graphs` has what a user calls.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from longnn import kernels
from longnn._base.autograd import differentiable, save_inputs, side_by_side
from longnn.matrices import csr, is_wide, multiply

#: Numbers of a row below which broadcasting over rows is slow: it goes row by row.
WIDE_ROW = 256
#: Channels are filled up to a multiple of this: with 8 of them a product on a CPU takes half the
#: time of one with 7 (Cora: 17 us, not 32). Fewer of them would grow too much, more gain nothing.
GROUP, FILLED = 4, range(3, 32)


class Tiles:
    """Signals of one shape (nodes, channels), laid out for a CPU.

    Channels are filled up with zeros to ``width`` of them. And nodes are seen as fewer and wider
    rows: with eight channels a product with one coefficient per channel runs over eight numbers
    at a time; several nodes taken as one row, with the coefficients repeated, run four times
    faster. Nodes are filled up with zeros to a whole number of rows.
    """

    def __init__(self, signal: Tensor) -> None:
        self.nodes, self.channels = signal.shape
        group = GROUP if self.channels in FILLED else 1
        self.width = -(-self.channels // group) * group
        self.repeat = -(-WIDE_ROW // max(self.width, 1))
        self.rows = -(-self.nodes // self.repeat)

    def new(self, like: Tensor, count: int) -> list[tuple[Tensor, Tensor]]:
        """Signals of zeros, shape (nodes, width), and the same memory as wide rows."""
        # Each apart: the system takes very large pieces of memory back at once.
        each = [like.new_zeros(self.rows, self.repeat * self.width) for _ in range(count)]
        return [(wide.view(-1, self.width)[: self.nodes], wide) for wide in each]

    def cut(self, signal: Tensor) -> Tensor:
        """A view of the channels that count: (..., width) to (..., channels)."""
        return signal[..., : self.channels]

    def coefficients(self, beta: Tensor, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """Each degree's coefficients, (degree+1, channels), repeated to the width of a row."""
        wide = beta.new_zeros(len(beta), self.repeat, self.width, dtype=dtype)
        self.cut(wide).copy_(beta[:, None])
        return wide.flatten(1).unbind()

    def sums(self, wide: Tensor) -> Tensor:
        """Sums over the nodes of a row: (degree+1, row) to (degree+1, channels)."""
        return self.cut(wide.view(-1, self.repeat, self.width).sum(1))


def chebyshev_terms(
    crow: Tensor,
    col: Tensor,
    values: Tensor,
    degree: int,
    previous: tuple[Tensor, Tensor],  # H, of shape (nodes, width), and its wide rows
    current: tuple[Tensor, Tensor],  # room for another
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield T_0(P) H, ..., T_K(P) H and their wide rows; valid until the one after the next."""
    yield previous
    if degree == 0:
        return
    matrix = csr(crow, col, values, len(previous[0]))
    wide = is_wide(crow, col, values, previous[0])
    if wide:
        current[0].copy_(multiply(crow, col, values, previous[0]))
    else:
        current[0].addmm_(matrix, previous[0], beta=0)  # mm makes zeros of its own first
    yield current
    doubled = 2 * values if wide else values
    for _ in range(2, degree + 1):
        # T_{j} = 2 P T_{j-1} - T_{j-2}, written over T_{j-2}.
        if wide:
            torch.sub(multiply(crow, col, doubled, current[0]), previous[0], out=previous[0])
        else:
            torch.addmm(previous[0], matrix, current[0], beta=-1, alpha=2, out=previous[0])
        previous, current = current, previous
        yield current


def terms_of(
    crow: Tensor, col: Tensor, values: Tensor, signal: Tensor, degree: int
) -> Iterator[Tensor]:
    """Yield T_0(P) H, ..., T_K(P) H, shape (nodes, channels); valid until the one after the
    next."""
    tiles = Tiles(signal)
    first, room = tiles.new(values, 2)
    tiles.cut(first[0]).copy_(signal)
    for term, _ in chebyshev_terms(crow, col, values, degree, first, room):
        yield tiles.cut(term)


@torch.library.custom_op("longnn::chebyshev_filter", mutates_args=())
def chebyshev_filter(
    crow: Tensor, col: Tensor, values: Tensor, signal: Tensor, coefficients: Tensor
) -> Tensor:
    """The filter on the CSR arrays of a symmetric P: the sum over j of T_j(P) H * beta_j."""
    degree = coefficients.shape[0] - 1
    if degree > 0 and kernels.usable(values):
        wide = signal.to(values.dtype).contiguous()
        filtered, _ = kernels.chebyshev_filter(crow, col, values, wide, coefficients.contiguous())
        return filtered.to(signal.dtype)
    tiles = Tiles(signal)
    first, room, (out, rows) = tiles.new(values, 3)
    tiles.cut(first[0]).copy_(signal)
    terms = chebyshev_terms(crow, col, values, degree, first, room)
    for (_, term), b in zip(terms, tiles.coefficients(coefficients, values.dtype), strict=True):
        rows.addcmul_(term, b)
    return tiles.cut(out).to(signal.dtype, copy=True)  # no view: it may be changed in place


@torch.library.custom_op("longnn::chebyshev_filter_backward", mutates_args=())
def chebyshev_filter_backward(
    crow: Tensor, col: Tensor, values: Tensor, signal: Tensor, coefficients: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients (dH, dbeta) for an upstream gradient G, in one pass of the same loop."""
    degree = coefficients.shape[0] - 1
    if degree > 0 and kernels.usable(values):
        wide, h = (t.to(values.dtype).contiguous() for t in (grad, signal))
        filtered, moments = kernels.chebyshev_filter(
            crow, col, values, wide, coefficients.contiguous(), h
        )
        assert moments is not None
        return filtered.to(signal.dtype), moments
    tiles = Tiles(signal)
    first, room, (d_signal, rows), (h, h_rows) = tiles.new(values, 4)
    tiles.cut(first[0]).copy_(grad)
    tiles.cut(h).copy_(signal)
    moments = rows.new_empty(degree + 1, rows.shape[1])
    terms = chebyshev_terms(crow, col, values, degree, first, room)
    beta = tiles.coefficients(coefficients, values.dtype)
    for (_, term), b, moment in zip(terms, beta, moments.unbind(), strict=True):
        rows.addcmul_(term, b)
        torch.linalg.vecdot(h_rows, term, dim=0, out=moment)
    d_signal = tiles.cut(d_signal).to(signal.dtype, copy=True)
    return d_signal, tiles.sums(moments).to(coefficients.dtype, copy=True)


@chebyshev_filter.register_fake
def _(crow, col, values, signal, coefficients):  # type: ignore[no-untyped-def]
    return torch.empty_like(signal, memory_format=torch.contiguous_format)


@chebyshev_filter_backward.register_fake
def _(crow, col, values, signal, coefficients, grad):  # type: ignore[no-untyped-def]
    return (
        torch.empty_like(signal, memory_format=torch.contiguous_format),
        torch.empty_like(coefficients, memory_format=torch.contiguous_format),
    )


def _filter_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    if not ctx.needs_input_grad[-1]:  # the coefficients are fixed, as they are to an explanation
        *graph, _, beta = ctx.saved_tensors
        return None, None, None, filtered(*graph, grad, beta), None
    return None, None, None, *_gradient(*ctx.saved_tensors, grad)


def _second_gradient(ctx: Any, u: Tensor, v: Tensor) -> tuple[Tensor | None, ...]:
    """For upstream gradients u (nodes, channels) of dH and v (K+1, channels) of dbeta.

    dH = g_beta(P) G is linear in G and beta; dbeta_j = <H, T_j(P) G> is bilinear in H and G.
    """
    *graph, signal, beta, grad = ctx.saved_tensors
    d_grad, d_beta = _gradient(*graph, grad, beta, u)
    d_grad = d_grad + filtered(*graph, signal, v)
    return None, None, None, filtered(*graph, grad, v), d_beta, d_grad


filtered: Callable[..., Any] = differentiable(
    chebyshev_filter, _filter_gradient, save_inputs, vmap=side_by_side(lambda: filtered)
)
_gradient: Callable[..., Any] = differentiable(
    chebyshev_filter_backward, _second_gradient, save_inputs, vmap=side_by_side(lambda: _gradient)
)
