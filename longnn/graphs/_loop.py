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
from longnn.matrices import csr, is_wide, sum_rows

#: Numbers of a row below which broadcasting over rows is slow: it goes row by row.
WIDE_ROW = 256
#: Channels are filled up to a multiple of this: with 8 of them a product on a CPU takes half the
#: time of one with 7 (Cora: 17 us, not 32). Fewer of them would grow too much, more gain nothing.
GROUP, FILLED = 4, range(3, 32)


class Tiles:
    """Signals of one shape (nodes, channels), laid out for a CPU as wide rows.

    A signal of many channels stays as it is. Of fewer, channels are filled up with zeros to
    ``width`` of them. And nodes are seen as fewer and wider rows: with eight channels a product
    with one coefficient per channel runs over eight numbers at a time; several nodes taken as one
    row, with the coefficients repeated, run four times faster. Nodes are filled up with zeros to a
    whole number of rows.
    """

    def __init__(self, signal: Tensor, *, plain: bool) -> None:
        self.plain = plain
        self.nodes, self.channels = signal.shape
        group = GROUP if self.channels in FILLED else 1
        self.width = self.channels if plain else -(-self.channels // group) * group
        self.repeat = 1 if plain else -(-WIDE_ROW // max(self.width, 1))
        self.rows = -(-self.nodes // self.repeat)

    def new(self, like: Tensor) -> Tensor:
        """Rows of zeros."""
        return like.new_zeros(self.rows, self.repeat * self.width)

    def lay(self, signal: Tensor, like: Tensor) -> Tensor:
        """The rows of a signal, in the type of another tensor: a copy, but not of a plain one."""
        if self.plain:
            return signal.detach().contiguous()
        rows = self.new(like)
        self.signal(rows).copy_(signal)
        return rows

    def full(self, rows: Tensor) -> Tensor:
        """Rows as a signal (nodes, width), a view."""
        return rows.view(-1, self.width)[: self.nodes]

    def signal(self, rows: Tensor) -> Tensor:
        """The channels that count of it: (nodes, channels), a view."""
        return self.full(rows)[:, : self.channels]

    def coefficients(self, beta: Tensor, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """Each degree's coefficients, (degree+1, channels), repeated to the width of a row."""
        if self.plain:
            return beta.to(dtype).unbind()
        wide = beta.new_zeros(len(beta), self.repeat, self.width, dtype=dtype)
        wide[..., : self.channels].copy_(beta[:, None])
        return wide.flatten(1).unbind()

    def sums(self, wide: Tensor) -> Tensor:
        """Sums over the nodes of a row: (degree+1, row) to (degree+1, channels)."""
        return wide.view(-1, self.repeat, self.width).sum(1)[:, : self.channels]


def chebyshev_terms(
    crow: Tensor, col: Tensor, values: Tensor, degree: int, tiles: Tiles, first: Tensor
) -> Iterator[Tensor]:
    """Yield T_0(P) H, ..., T_K(P) H as rows, the first as given; valid until the one after the
    next."""
    yield first
    if degree == 0:
        return
    if tiles.plain:  # T_j = 2 P T_{j-1} - T_{j-2}, each in the memory of its product
        values = values.detach()
        doubled, previous, current = 2 * values, first, sum_rows(crow, col, values, first)
        yield current
        for _ in range(2, degree + 1):
            following = sum_rows(crow, col, doubled, current).sub_(previous)
            previous, current = current, following
            yield current
        return
    matrix = csr(crow, col, values, tiles.nodes)
    rows, other = tiles.new(values), first
    current, previous = tiles.full(rows), tiles.full(other)
    current.addmm_(matrix, previous, beta=0)  # mm makes zeros of its own first
    yield rows
    for _ in range(2, degree + 1):
        # The same, written over T_{j-2}.
        torch.addmm(previous, matrix, current, beta=-1, alpha=2, out=previous)
        rows, other, current, previous = other, rows, previous, current
        yield rows


def terms_of(
    crow: Tensor, col: Tensor, values: Tensor, signal: Tensor, degree: int
) -> Iterator[Tensor]:
    """Yield T_0(P) H, ..., T_K(P) H, shape (nodes, channels); valid until the one after the
    next."""
    tiles = Tiles(signal, plain=is_wide(crow, col, values, signal))
    rows = tiles.lay(signal, values)
    for term in chebyshev_terms(crow, col, values, degree, tiles, rows):
        yield tiles.signal(term)


def _filter_on_cpu(
    crow: Tensor,
    col: Tensor,
    values: Tensor,
    signal: Tensor,
    coefficients: Tensor,
    beside: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The sum over j of T_j(P) S * beta_j, and the sums over the rows of H * T_j(P) S, (degree+1,
    channels), for another signal H if there is one."""
    wide = signal.to(values.dtype)
    tiles = Tiles(wide, plain=is_wide(crow, col, values, wide))
    h = None if beside is None else tiles.lay(beside.to(values.dtype), values)
    beta, moments, out = tiles.coefficients(coefficients, values.dtype), list[Tensor](), None
    first = tiles.lay(wide, values)
    terms = chebyshev_terms(crow, col, values, len(beta) - 1, tiles, first)
    for term, b in zip(terms, beta, strict=True):
        out = term * b if out is None else out.addcmul_(term, b)
        if h is not None:
            moments.append(torch.linalg.vecdot(h, term, dim=0))
    assert out is not None
    filtered = tiles.signal(out).to(signal.dtype, copy=not tiles.plain)  # no view of more
    return filtered, tiles.sums(torch.stack(moments)) if moments else None


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
    return _filter_on_cpu(crow, col, values, signal, coefficients)[0]


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
    d_signal, d_beta = _filter_on_cpu(crow, col, values, grad, coefficients, signal)
    assert d_beta is not None
    return d_signal.to(signal.dtype), d_beta.to(coefficients.dtype, copy=True)


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
