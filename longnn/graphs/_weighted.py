r"""The one hot loop, differentiable in the entries of P, too: learned weights of edges.

Forward it is the same filter, :math:`Y = \sum_j \beta_j \circ t_j` with :math:`t_j = T_j(P) H`.
With the gradient G of Y, the gradients :math:`b_j` of the :math:`t_j` follow Clenshaw's recurrence,

.. math:: b_j = \beta_j \circ G + 2 P b_{j+1} - b_{j+2}, \qquad
          b_0 = \beta_0 \circ G + P b_1 - b_2,

and give all that is wanted: :math:`dH = b_0`, :math:`d\beta_j = \sum_{rows} G \circ t_j`, and, at
the entries of P that are stored,

.. math:: dP = b_1 t_0^T + 2 \sum_{j \ge 2} b_j\, t_{j-1}^T.

The :math:`t_j` are not kept: Chebyshev's recurrence runs backward as well as forward,
:math:`t_{j-2} = 2 P t_{j-1} - t_j`. So memory does not grow with the degree here either. The cost
is 3 K products instead of K in the backward pass, and K sampled ones of the same size.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from longnn._base.autograd import differentiable, save_inputs, side_by_side
from longnn.graphs._loop import chebyshev_filter, terms_of
from longnn.matrices import csr


@torch.library.custom_op("longnn::weighted_filter_backward", mutates_args=())
def weighted_filter_backward(
    crow: Tensor,  # (nodes+1,)
    col: Tensor,  # (entries,)
    values: Tensor,  # (entries,)
    signal: Tensor,  # (nodes, channels)
    coefficients: Tensor,  # (degree+1, channels)
    grad: Tensor,  # (nodes, channels)
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients (dP at its entries, dH, dbeta) for an upstream gradient G."""
    h, g = (t.to(values.dtype).contiguous() for t in (signal, grad))
    beta, degree = coefficients.to(values.dtype), coefficients.shape[0] - 1
    d_beta = torch.empty_like(beta)
    last = _last_two(terms_of(crow, col, values, h, degree))
    # t_{K-1}, t_K
    before, term = (t.clone(memory_format=torch.contiguous_format) for t in last)
    matrix, d_matrix = (csr(crow, col, v, len(h)) for v in (values, torch.zeros_like(values)))
    b, ahead = beta[degree] * g, torch.zeros_like(g)  # b_K, b_{K+1}
    for j in range(degree, 0, -1):
        torch.linalg.vecdot(g, term, dim=0, out=d_beta[j])
        twice = 1 if j == 1 else 2
        torch.sparse.sampled_addmm(d_matrix, b, before.T, beta=1, alpha=twice, out=d_matrix)
        if j > 1:  # from t_j, t_{j-1} to t_{j-1}, t_{j-2}
            torch.addmm(term, matrix, before, beta=-1, alpha=2, out=term)
        before, term = term, before
        # from b_{j+1}, b_j to b_j, b_{j-1}
        torch.addmm(ahead, matrix, b, beta=-1, alpha=twice, out=ahead)
        b, ahead = ahead.addcmul_(g, beta[j - 1]), b
    torch.linalg.vecdot(g, term, dim=0, out=d_beta[0])
    return d_matrix.values(), b.to(signal.dtype), d_beta.to(coefficients.dtype)


def _last_two(terms: Any) -> tuple[Tensor, Tensor]:
    """t_{K-1} and t_K, each (nodes, channels); the same twice for K = 0."""
    before = term = None
    for following in terms:
        before, term = (following if term is None else term), following
    assert before is not None
    assert term is not None
    return before, term


@weighted_filter_backward.register_fake
def _(crow, col, values, signal, coefficients, grad):  # type: ignore[no-untyped-def]
    return (
        torch.empty_like(values),
        torch.empty_like(signal, memory_format=torch.contiguous_format),
        torch.empty_like(coefficients, memory_format=torch.contiguous_format),
    )


def _once(ctx: Any, *grads: Tensor) -> Any:
    raise NotImplementedError(
        "Expected one derivative of a filter in the weights of edges (got a second)"
    )


def each_member(call: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """The vmap rule for members with an operator of their own: one call each, stacked."""

    def rule(info: Any, in_dims: Any, *inputs: Any) -> Any:
        pairs = list(zip(inputs, in_dims, strict=True))
        outputs = [
            call()(*(t if dim is None else t.select(dim, i) for t, dim in pairs))
            for i in range(info.batch_size)
        ]
        if isinstance(outputs[0], tuple):
            out = tuple(torch.stack(part) for part in zip(*outputs, strict=True))
            return out, (0,) * len(out)
        return torch.stack(outputs), 0

    return rule


_gradient: Callable[..., Any] = differentiable(
    weighted_filter_backward, _once, save_inputs, vmap=each_member(lambda: _gradient)
)


def _members(info: Any, in_dims: Any, *inputs: Any) -> Any:
    """Members that share the entries of P lie side by side; others are called one by one."""
    shared = in_dims[2] is None
    rule = side_by_side if shared else each_member
    return rule(lambda: weighted_filter)(info, in_dims, *inputs)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, None, *_gradient(*ctx.saved_tensors, grad)


def _weighted(
    crow: Tensor, col: Tensor, values: Tensor, signal: Tensor, coefficients: Tensor
) -> Tensor:
    """The filter on the CSR arrays of a symmetric P, once differentiable in its values, too."""
    return chebyshev_filter(crow, col, values, signal, coefficients)


weighted_filter: Callable[..., Any] = differentiable(
    _weighted, _backward, save_inputs, vmap=_members
)
