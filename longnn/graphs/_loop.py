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


class Tiles:
    """Signals of one shape (nodes, channels), seen as fewer and wider rows.

    With seven channels a product with one coefficient per channel runs over seven numbers at a
    time. Several nodes taken as one row, with the coefficients repeated, run four times
    faster. Nodes are filled up with zeros to a whole number of rows.
    """

    def __init__(self, like: Tensor) -> None:
        self.nodes, self.channels = like.shape
        self.repeat = -(-WIDE_ROW // max(self.channels, 1))
        self.rows = -(-self.nodes // self.repeat)

    def new(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """A signal of zeros, shape (nodes, channels), and the same memory as wide rows."""
        wide = like.new_zeros(self.rows, self.repeat * self.channels)
        return wide.view(-1, self.channels)[: self.nodes], wide

    def coefficients(self, beta: Tensor) -> tuple[Tensor, ...]:
        """Each degree's coefficients, repeated to the width of a row."""
        return beta.repeat(1, self.repeat).unbind()

    def sums(self, wide: Tensor) -> Tensor:
        """Sums over the nodes of a row: (degree+1, width) to (degree+1, channels)."""
        return wide.view(-1, self.repeat, self.channels).sum(1)


def chebyshev_terms(
    crow: Tensor, col: Tensor, values: Tensor, signal: Tensor, degree: int, tiles: Tiles
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield T_0(P) H, ..., T_K(P) H and their wide rows; valid until the one after the next."""
    matrix = csr(crow, col, values, signal.shape[0])
    previous, current = tiles.new(signal), tiles.new(signal)
    previous[0].copy_(signal)
    yield previous
    if degree == 0:
        return
    wide = is_wide(crow, col, values, signal)
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


@torch.library.custom_op("longnn::chebyshev_filter", mutates_args=())
def chebyshev_filter(
    crow: Tensor, col: Tensor, values: Tensor, signal: Tensor, coefficients: Tensor
) -> Tensor:
    """The filter on the CSR arrays of a symmetric P: the sum over j of T_j(P) H * beta_j."""
    wide = signal.to(values.dtype).contiguous()
    degree = coefficients.shape[0] - 1
    if degree > 0 and kernels.usable(wide):
        found, _ = kernels.chebyshev_filter(crow, col, values, wide, coefficients.contiguous())
        return found.to(signal.dtype)
    beta = coefficients.to(values.dtype)
    tiles = Tiles(wide)
    out, rows = tiles.new(wide)
    terms = chebyshev_terms(crow, col, values, wide, degree, tiles)
    for (_, term), b in zip(terms, tiles.coefficients(beta), strict=True):
        rows.addcmul_(term, b)
    return out.to(signal.dtype, copy=True)  # not a view of the tiles: it may be changed in place


@torch.library.custom_op("longnn::chebyshev_filter_backward", mutates_args=())
def chebyshev_filter_backward(
    crow: Tensor, col: Tensor, values: Tensor, signal: Tensor, coefficients: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients (dH, dbeta) for an upstream gradient G, in one pass of the same loop."""
    wide = grad.to(values.dtype).contiguous()
    h = signal.to(values.dtype)
    degree = coefficients.shape[0] - 1
    if degree > 0 and kernels.usable(wide):
        found, moments = kernels.chebyshev_filter(
            crow, col, values, wide, coefficients.contiguous(), h.contiguous()
        )
        assert moments is not None
        return found.to(signal.dtype), moments
    beta = coefficients.to(values.dtype)
    tiles = Tiles(wide)
    d_signal, rows = tiles.new(wide)
    h_signal, h_rows = tiles.new(wide)
    h_signal.copy_(h)
    moments = rows.new_empty(degree + 1, rows.shape[1])
    terms = chebyshev_terms(crow, col, values, wide, degree, tiles)
    for (_, term), b, moment in zip(terms, tiles.coefficients(beta), moments, strict=True):
        rows.addcmul_(term, b)
        torch.linalg.vecdot(h_rows, term, dim=0, out=moment)
    d_signal = d_signal.to(signal.dtype, copy=True)
    return d_signal, tiles.sums(moments).to(coefficients.dtype)


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
