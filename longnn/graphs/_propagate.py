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

import torch
from torch import Tensor

from longnn.graphs._edges import EdgeOperator
from longnn.graphs._loop import filtered, terms_of
from longnn.graphs._operator import GraphOperator, refuse_tracing
from longnn.graphs._weighted import weighted_filter
from longnn.matrices import accumulate_dtype, check_operand


def apply_filter(
    operator: GraphOperator | EdgeOperator, signal: Tensor, coefficients: Tensor
) -> Tensor:
    r"""Apply the polynomial filter with Chebyshev coefficients :math:`\beta` to a signal.

    .. math:: Y = \sum_{j=0}^{K} T_j(P)\,H \circ \beta_j

    Differentiable (twice) in the signal and the coefficients, and once in the entries of a
    trainable operator; works under ``torch.func.vmap``, ``torch.compile`` and in CUDA graphs. Cost:
    K sparse products; memory does not grow with K.

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
    matrix, scaled = operator.matrix, operator.scale_in(signal)
    arrays = (matrix.crow, matrix.col, matrix.values)
    if not operator.trainable:  # the loop rounds coefficients where it reads them
        beta = coefficients.expand(-1, signal.shape[1])
        return operator.scale_out(filtered(*arrays, scaled, beta))
    beta = coefficients.to(accumulate_dtype(signal.dtype)).expand(-1, signal.shape[1])
    return operator.scale_out(weighted_filter(*arrays, scaled, beta))


def chebyshev_stack(operator: GraphOperator, signal: Tensor, degree: int) -> Tensor:
    r"""All of :math:`T_0(P)H, \dots, T_K(P)H`, shape (degree+1, nodes, channels); no gradient.

    Computed once, they turn every filter of that degree, whatever its basis, into a weighted sum.
    """
    check_operand(operator.matrix, signal)
    matrix = operator.matrix
    wide = operator.scale_in(signal.detach()).to(matrix.dtype)
    terms = terms_of(matrix.crow, matrix.col, matrix.values.detach(), wide, degree)
    return torch.stack([operator.scale_out(term).clone() for term in terms])
