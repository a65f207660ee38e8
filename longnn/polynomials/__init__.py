r"""Orthogonal and other polynomials on [-1, 1], exact to float64, differentiable, batchable.

What this layer is for: a *basis* of polynomial graph filters is a small matrix, and this layer
computes it. It knows families, recurrences, norms and Chebyshev matrices; it does not know
graphs, models or training.

The functions evaluate a family at points; :class:`Basis` and its subclasses are the same
families as objects, which filters take.
"""

import torch
from torch import Tensor

from longnn.polynomials._chebyshev import check_degree
from longnn.polynomials._families import (
    Basis,
    Bernstein,
    Chebyshev,
    Favard,
    Gegenbauer,
    Interpolation,
    Jacobi,
    Legendre,
    Monomial,
    Scalar,
    Weight,
    get_basis,
)


def _values(basis: Basis, x: Tensor, degree: int) -> Tensor:
    x = torch.as_tensor(x)
    values = basis.evaluate(x, check_degree(degree))
    return values.to(x.dtype) if x.is_floating_point() else values


def jacobi(
    x: Tensor,
    degree: int,
    a: Scalar = 0.0,
    b: Scalar = 0.0,
    *,
    orthonormal: bool = True,
    weight: Weight = "paper",
) -> Tensor:
    r"""Jacobi polynomials of degree 0..K at the points x.

    Orthonormal for the weight :math:`(1-x)^a(1+x)^b`, or in the classical normalisation
    :math:`P_k^{(a,b)}(1) = \binom{k+a}{k}`.

    Args:
        x: points in [-1, 1], any shape.
        degree: the highest degree K.
        a, b: numbers or tensors > -1; their broadcast shape is the batch shape. Differentiable.
        orthonormal: orthonormal (default) or classical.
        weight: ``"paper"``, or ``"probability"`` for the weight scaled to mass one.

    Returns:
        shape (degree+1, \*batch, \*x.shape), in x's dtype, computed in float64.

    Raises:
        ValueError: if a or b is not greater than -1, or the degree is negative.

    >>> jacobi(torch.tensor([0.5]), 2, 0.0, 0.0, orthonormal=False)  # Legendre
    tensor([[ 1.0000], [ 0.5000], [-0.1250]])
    """
    return _values(Jacobi(a, b, orthonormal=orthonormal, weight=weight), x, degree)


def legendre(
    x: Tensor, degree: int, *, orthonormal: bool = True, weight: Weight = "paper"
) -> Tensor:
    """Legendre polynomials of degree 0..K at x: shape ``(degree+1, *x.shape)``."""
    return _values(Legendre(orthonormal=orthonormal, weight=weight), x, degree)


def chebyshev_t(
    x: Tensor, degree: int, *, orthonormal: bool = False, weight: Weight = "paper"
) -> Tensor:
    """Chebyshev polynomials of the first kind at x: shape ``(degree+1, *x.shape)``.

    >>> chebyshev_t(torch.tensor([0.5]), 3).flatten()
    tensor([ 1.0000,  0.5000, -0.5000, -1.0000])
    """
    return _values(Chebyshev(1, orthonormal=orthonormal, weight=weight), x, degree)


def chebyshev_u(
    x: Tensor, degree: int, *, orthonormal: bool = False, weight: Weight = "paper"
) -> Tensor:
    """Chebyshev polynomials of the second kind at x: shape ``(degree+1, *x.shape)``."""
    return _values(Chebyshev(2, orthonormal=orthonormal, weight=weight), x, degree)


def gegenbauer(
    x: Tensor, degree: int, order: Scalar, *, orthonormal: bool = True, weight: Weight = "paper"
) -> Tensor:
    r"""Gegenbauer polynomials of order :math:`\lambda > -1/2` at x."""
    return _values(Gegenbauer(order, orthonormal=orthonormal, weight=weight), x, degree)


def monomial(x: Tensor, degree: int) -> Tensor:
    """Powers 1, x, ..., x^K: shape ``(degree+1, *x.shape)``."""
    return _values(Monomial(), x, degree)


def bernstein(x: Tensor, degree: int) -> Tensor:
    r"""Bernstein polynomials in :math:`t = (1-x)/2`, term k centred at :math:`\lambda = 2k/K`."""
    return _values(Bernstein(), x, degree)


def interpolation(x: Tensor, degree: int) -> Tensor:
    """Cardinal polynomials of the K+1 Chebyshev nodes: shape ``(degree+1, *x.shape)``."""
    return _values(Interpolation(), x, degree)


__all__ = [
    "Basis",
    "Bernstein",
    "Chebyshev",
    "Favard",
    "Gegenbauer",
    "Interpolation",
    "Jacobi",
    "Legendre",
    "Monomial",
    "get_basis",
    "jacobi",
]
