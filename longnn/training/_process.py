r"""What a node is expected to have where some others are known: a Gaussian process on a graph.

Values :math:`u \sim N(0, h(P))` vary together as a filter of the graph says, and are seen at the
known nodes M through noise of variance 1/w. What is expected, and what each known value counts in
it, are solutions of one system, by conjugate gradients on products with P. Knows neither models nor
answers: see :mod:`longnn.training._known`.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

#: Conjugate gradients stop at this relative residual, or after so many steps.
TOLERANCE, STEPS = 1e-6, 200
_LEAST = 1e-12


class Covariance(NamedTuple):
    r"""How rests of two nodes vary together: a filter, and how much of a rest is not noise.

    ``near`` is :math:`h(P) = ((I + a P) / 2)^2`, over two steps and no further; ``far`` is
    :math:`h(P) = (I - a P)^{-1}`.
    """

    kind: Literal["near", "far"]
    a: float
    w: float  # the inverse of the variance of noise


#: Rests alike or opposed nearby, alike over some distance, alike over a long one.
COVARIANCES = (
    Covariance("near", 1.0, 1.0),
    Covariance("near", 1.0, 10.0),
    Covariance("near", -1.0, 1.0),
    Covariance("far", 0.9, 0.1),
    Covariance("far", 0.9, 1.0),
    Covariance("far", 0.98, 0.1),
    Covariance("far", 0.98, 1.0),
)

Product = Callable[[Tensor], Tensor]


def product_of(operator: Any) -> Product:
    """Multiplication by the propagation matrix of a graph, of signals (nodes, columns).

    Of a graph that keeps its arcs, whose operator has two rows per node, both rows of a node say
    the same: the product is their mean.
    """
    nodes = operator.num_nodes
    if operator.matrix.shape[0] == nodes:
        return lambda x: (operator.matrix @ x).to(x)
    return lambda x: (operator.matrix @ torch.cat([x, x])).view(2, nodes, -1).mean(0).to(x)


def conjugate_gradients(apply: Product, b: Tensor) -> Tensor:  # (nodes, columns)
    """The solution of a symmetric positive definite system, each column for itself."""
    x, r = torch.zeros_like(b), b.clone()
    p, rr = r.clone(), (r * r).sum(0)
    enough = TOLERANCE**2 * rr
    for _ in range(STEPS):
        if bool((rr <= enough).all()):
            break
        q = apply(p)
        step = rr / (p * q).sum(0).clamp_min(_LEAST**2)
        x += step * p
        r -= step * q
        before, rr = rr, (r * r).sum(0)
        p = r + rr / before.clamp_min(_LEAST**2) * p
    return x


def carry(product: Product, covariance: Covariance, r: Tensor, known: Tensor) -> Tensor:
    r"""The expected rest :math:`\hat u` of every node.

    Args:
        product: multiplication by P.
        covariance: of rests.
        r: rests (nodes, columns).
        known: where they are known, of the same shape, 0 or 1.

    >>> path = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> r, known = torch.tensor([[1.0], [0.0]]), torch.tensor([[1.0], [0.0]])
    >>> carry(lambda x: path @ x, Covariance("near", 1.0, 1e6), r, known).round(decimals=3)
    tensor([[1.],
            [1.]])
    """
    return spread(product, covariance, solved(product, covariance, r, known))


def solved(
    product: Product,
    covariance: Covariance,
    r: Tensor,
    known: Tensor,
    before: Tensor | None = None,
    free: Tensor | float = 1.0,
) -> Tensor:
    r"""The solution of the system that :math:`\hat u` is made of, see :func:`spread`.

    Args:
        product, covariance, r, known: as in :func:`carry`; of a part that has changed:
        before: its solution before.
        free: where that may change, (nodes, 1), 0 or 1.
    """
    a, w = covariance.a, covariance.w
    if covariance.kind == "near":
        apply, right = _seen(_near(product, a), w, known), known * r
    else:  # (I - a P) u + w M (u - r) = 0, the same in terms of the inverse of h.
        apply, right = lambda x: x - a * product(x) + w * known * x, w * known * r
    if before is None:
        return conjugate_gradients(apply, right)
    return before + conjugate_gradients(lambda x: free * apply(x), free * (right - apply(before)))


def spread(product: Product, covariance: Covariance, solution: Tensor) -> Tensor:
    """The expected rest of every node, from the solution of its system."""
    if covariance.kind == "near":
        return _near(product, covariance.a)(solution)
    return solution


def weights_of(product: Product, covariance: Covariance, at: Tensor, known: Tensor) -> Tensor:
    r"""What every known rest counts in the expected one of a node: :math:`\hat u_i = s_i^T r`.

    Args:
        product, covariance: as in :func:`carry`.
        at: unit vectors (nodes, columns), of one node each.
        known: which nodes may tell it, of the same shape.
    """
    if covariance.kind == "near":
        h = _near(product, covariance.a)
        return known * conjugate_gradients(_seen(h, covariance.w, known), known * h(at))
    solved = conjugate_gradients(
        lambda x: x - covariance.a * product(x) + covariance.w * known * x, at
    )
    return covariance.w * known * solved


def _near(product: Product, a: float) -> Product:
    half: Product = lambda x: (x + a * product(x)) / 2  # noqa: E731
    return lambda x: half(half(x))


def _seen(h: Product, w: float, known: Tensor) -> Product:
    """M h(P) M + I / w, on signals that are zero where nothing is known."""
    return lambda x: known * h(known * x) + x / w
