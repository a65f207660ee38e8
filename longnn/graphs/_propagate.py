r"""The one hot loop: apply a polynomial filter to a signal on a graph.

.. math:: Y = \sum_{j=0}^{K} T_j(P)\,H \circ \beta_j

``P`` is a :class:`~longnn.graphs.GraphOperator`, ``H`` has shape (nodes, channels), and
:math:`\beta` holds one Chebyshev coefficient per degree and channel. Every polynomial filter of
every basis ends here: this module knows nothing of bases or models.

:math:`T_j(P)` is self-adjoint, so the backward pass is the forward pass run on the gradient G:

.. math:: dH = \sum_j T_j(P)\,G \circ \beta_j, \qquad
          d\beta_j = \textstyle\sum_{rows} H \circ T_j(P)\,G.

Nothing per degree is stored: memory is O(nodes x channels), whatever the degree.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from longnn import kernels
from longnn._base.autograd import differentiable, save_inputs, side_by_side
from longnn.graphs._edges import EdgeOperator
from longnn.graphs._operator import GraphOperator, refuse_tracing
from longnn.matrices import accumulate_dtype, check_operand, csr, is_wide, multiply

#: Numbers of a row below which broadcasting over rows is slow: it goes row by row.
WIDE_ROW = 256


class _Tiles:
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


def _chebyshev_terms(
    crow: Tensor, col: Tensor, values: Tensor, signal: Tensor, degree: int, tiles: _Tiles
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
        torch.mm(matrix, previous[0], out=current[0])
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
    beta = coefficients.to(values.dtype)
    degree = beta.shape[0] - 1
    if degree > 0 and kernels.usable(wide):
        return kernels.chebyshev_filter(crow, col, values, wide, beta.contiguous())[0].to(
            signal.dtype
        )
    tiles = _Tiles(wide)
    out, rows = tiles.new(wide)
    terms = _chebyshev_terms(crow, col, values, wide, degree, tiles)
    for (_, term), b in zip(terms, tiles.coefficients(beta), strict=True):
        rows.addcmul_(term, b)
    return out.to(signal.dtype, copy=True)  # not a view of the tiles: it may be changed in place


@torch.library.custom_op("longnn::chebyshev_filter_backward", mutates_args=())
def chebyshev_filter_backward(
    crow: Tensor, col: Tensor, values: Tensor, signal: Tensor, coefficients: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients (dH, dbeta) for an upstream gradient G, in one pass of the same loop."""
    wide = grad.to(values.dtype).contiguous()
    beta = coefficients.to(values.dtype)
    h = signal.to(values.dtype)
    degree = beta.shape[0] - 1
    if degree > 0 and kernels.usable(wide):
        found, moments = kernels.chebyshev_filter(
            crow, col, values, wide, beta.contiguous(), h.contiguous()
        )
        assert moments is not None
        return found.to(signal.dtype), moments.to(coefficients.dtype)
    tiles = _Tiles(wide)
    d_signal, rows = tiles.new(wide)
    h_signal, h_rows = tiles.new(wide)
    h_signal.copy_(h)
    moments = rows.new_empty(degree + 1, rows.shape[1])
    terms = _chebyshev_terms(crow, col, values, wide, degree, tiles)
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
    d_grad = d_grad + _filter(*graph, signal, v)
    return None, None, None, _filter(*graph, grad, v), d_beta, d_grad


_filter: Callable[..., Any] = differentiable(
    chebyshev_filter, _filter_gradient, save_inputs, vmap=side_by_side(lambda: _filter)
)
_gradient: Callable[..., Any] = differentiable(
    chebyshev_filter_backward, _second_gradient, save_inputs, vmap=side_by_side(lambda: _gradient)
)


def apply_filter(
    operator: GraphOperator | EdgeOperator, signal: Tensor, coefficients: Tensor
) -> Tensor:
    r"""Apply the polynomial filter with Chebyshev coefficients :math:`\beta` to a signal.

    .. math:: Y = \sum_{j=0}^{K} T_j(P)\,H \circ \beta_j

    Differentiable (twice) in the signal and the coefficients; works under ``torch.func.vmap``,
    ``torch.compile`` and in CUDA graphs. Cost: K sparse products; memory does not grow with K.

    Args:
        operator: the graph.
        signal: H, shape (nodes, channels); float32, float64, or bfloat16 / float16 with a
            float32 operator (stored so, summed in float32).
        coefficients: beta, shape (degree+1, channels), or (degree+1, 1) for a filter that all
            channels share.

    Returns:
        shape (nodes, channels), in the type of the signal.

    >>> ring = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
    >>> P = GraphOperator.from_edge_index(ring)
    >>> apply_filter(P, torch.tensor([[1.0], [0.0], [0.0]]), torch.tensor([[1.0], [-1.0]]))
    tensor([[ 1.0000], [-0.5000], [-0.5000]])
    """
    if isinstance(operator, EdgeOperator):
        return operator.apply_filter(signal, coefficients.to(signal.dtype))
    refuse_tracing()
    check_operand(operator.matrix, signal)
    if coefficients.dim() != 2 or coefficients.shape[0] == 0:
        raise ValueError(
            "Expected coefficients of shape (degree+1, channels) or (degree+1, 1) "
            f"(got {tuple(coefficients.shape)})"
        )
    if coefficients.shape[1] not in (1, signal.shape[1]):
        raise ValueError(
            f"Expected coefficients for 1 or {signal.shape[1]} channels, as the signal has "
            f"(got {coefficients.shape[1]})"
        )
    beta = coefficients.to(accumulate_dtype(signal.dtype)).expand(-1, signal.shape[1])
    matrix = operator.matrix
    scaled = operator.scale_in(signal)
    return operator.scale_out(_filter(matrix.crow, matrix.col, matrix.values, scaled, beta))


def chebyshev_stack(operator: GraphOperator, signal: Tensor, degree: int) -> Tensor:
    r"""All of :math:`T_0(P)H, \dots, T_K(P)H`, shape (degree+1, nodes, channels); no gradient.

    Computed once, they turn every filter of that degree, whatever its basis, into a weighted sum.
    """
    check_operand(operator.matrix, signal)
    matrix = operator.matrix
    wide = operator.scale_in(signal.detach()).to(matrix.dtype).contiguous()
    arrays = (matrix.crow, matrix.col, matrix.values)
    terms = _chebyshev_terms(*arrays, wide, degree, _Tiles(wide))
    return torch.stack([operator.scale_out(term).clone() for term, _ in terms])
