r"""The basis that a signal makes for itself: Lanczos' recurrence on a graph, with its gradient.

Each channel x of a signal starts its own three-term recurrence with the symmetric P,

.. math:: v_0 = x/\|x\|, \qquad w_k = P v_k - a_k v_k - b_k v_{k-1}, \quad
          a_k = \langle v_k, P v_k\rangle,\; b_{k+1} = \|w_k\|,\; v_{k+1} = w_k/b_{k+1},

and the vectors are orthonormal. As P is symmetric, the b of one step is the norm of the step before
and needs no inner product, and :math:`P v_k` can be recovered from three vectors in the backward
pass, which therefore takes one sparse product per step and stores the vectors alone.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from longnn._base.autograd import differentiable, lean, side_by_side
from longnn.graphs._edges import EdgeOperator
from longnn.graphs._operator import GraphOperator, refuse_tracing
from longnn.matrices import check_operand, csr_matmul, csr_product

_matmul = lean(csr_matmul)


def _recurrence(crow: Tensor, col: Tensor, values: Tensor, signal: Tensor, steps: int) -> Any:
    """v_0, ..., v_K, each (nodes, channels), then a (K, channels) and b (K+1, channels)."""
    arrays = (crow, col, values, crow, col, values)  # symmetric: its own transpose
    return _vectors(lambda v: _matmul(*arrays, v), signal, steps)


def _vectors(matmul: Callable[[Tensor], Tensor], signal: Tensor, steps: int) -> Any:
    """The same, with the product given."""
    length = torch.linalg.vector_norm(signal, dim=0)
    vectors, a, b = [signal * _reciprocal(length, 1e-12)], [], [length]
    # Where P v has nothing new, as in a small component, the basis ends: what is left of w is
    # rounding, and its direction and gradient are noise.
    least = torch.finfo(signal.dtype).eps ** 0.5
    for k in range(steps):
        v = vectors[k]
        w = matmul(v)
        a.append((w * v).sum(0))
        w = w.addcmul_(v, -a[k])
        if k > 0:
            w.addcmul_(vectors[k - 1], -b[k])
        length = torch.linalg.vector_norm(w, dim=0)
        b.append(torch.where(length > least, length, 0.0))
        vectors.append(w.mul_(_reciprocal(length, least)))
    empty = signal.new_zeros(0, signal.shape[1])
    return *vectors, torch.stack(a) if a else empty, torch.stack(b)


def _reciprocal(length: Tensor, least: float) -> Tensor:
    """1 / length, and 0 where the length is not above ``least``."""
    return torch.where(length > least, length.clamp_min(least).reciprocal(), 0.0)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[:3], *output)


def _gradient(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
    r"""Back through the recurrence; a bar is the gradient of what is under it:

    .. math:: \bar w_k &= (\bar v_{k+1} - \langle\bar v_{k+1}, v_{k+1}\rangle v_{k+1})/b_{k+1}
                          + \bar b_{k+1} v_{k+1}, \qquad \bar a_k = -\langle\bar w_k, v_k\rangle,
                          \quad \bar b_k = -\langle\bar w_k, v_{k-1}\rangle \\
              \bar v_k &= G_k + P\bar w_k - a_k\bar w_k + 2\bar a_k P v_k - b_{k+1}\bar w_{k+1}
    """
    crow, col, values, *vectors, a, b = ctx.saved_tensors
    *gradients, from_a, from_b = grads
    arrays = (crow, col, values, crow, col, values)
    steps = len(a)
    inverse = _reciprocal(b, 1e-12)  # b is zero where the basis ended
    bar, carried, b_bar = gradients[steps], None, from_b[steps]
    for k in range(steps - 1, -1, -1):
        ahead, v = vectors[k + 1], vectors[k]
        along = b_bar - inverse[k + 1] * (bar * ahead).sum(0)
        w_bar = (bar * inverse[k + 1]).addcmul_(ahead, along)
        a_bar = from_a[k] - (w_bar * v).sum(0)
        bar = csr_product(*arrays, w_bar) + gradients[k]
        bar = bar.addcmul_(w_bar, -a[k])
        # P v_k = b_{k+1} v_{k+1} + a_k v_k + b_k v_{k-1}
        bar = bar.addcmul_(ahead, 2 * a_bar * b[k + 1]).addcmul_(v, 2 * a_bar * a[k])
        if carried is not None:
            bar = bar + carried
        if k > 0:
            bar = bar.addcmul_(vectors[k - 1], 2 * a_bar * b[k])
            b_bar = from_b[k] - (w_bar * vectors[k - 1]).sum(0)
            carried = w_bar * -b[k]
    start = vectors[0]
    along = from_b[0] - inverse[0] * (bar * start).sum(0)
    return None, None, None, (bar * inverse[0]).addcmul_(start, along), None


_basis: Callable[..., Any] = differentiable(
    _recurrence, _gradient, _save, vmap=side_by_side(lambda: _basis)
)


def lanczos_basis(
    operator: GraphOperator | EdgeOperator, signal: Tensor, degree: int
) -> tuple[Tensor, ...]:
    r"""The orthonormal vectors :math:`v_0, \dots, v_K` of each channel of a signal.

    :math:`v_k = p_k(P)\,x` with the polynomials that are orthonormal for the channel's own spectral
    density. A channel whose vectors end before the degree has zeros from there on. Differentiable
    (twice); works under ``torch.func.vmap``. Cost: K sparse products, K+1 vectors stored.

    Args:
        operator: the graph.
        signal: x, shape (nodes, channels).
        degree: K.

    Returns:
        K+1 tensors of shape (nodes, channels).

    >>> ring = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
    >>> P = GraphOperator.from_edge_index(ring)
    >>> lanczos_basis(P, torch.tensor([[2.0], [0.0], [0.0]]), 1)[1]
    tensor([[0.0000], [0.7071], [0.7071]])
    """
    if isinstance(operator, EdgeOperator):
        *vectors, _, _ = _vectors(operator.__matmul__, signal, degree)
        return tuple(vectors)
    refuse_tracing()
    if operator.trainable:
        raise ValueError(
            "Expected a fixed operator for a basis made of the signal (got one with learned "
            "weights); use a filter in another basis"
        )
    check_operand(operator.matrix, signal)
    m = operator.matrix
    scaled = operator.scale_in(signal).to(m.dtype)
    *vectors, _, _ = _basis(m.crow, m.col, m.values, scaled, degree)
    return tuple(operator.scale_out(v).to(signal.dtype) for v in vectors)
