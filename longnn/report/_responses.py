r"""The mathematics behind the figures: filters as curves over the spectrum.

Small numpy functions, no drawing. The spectrum is that of the normalised Laplacian,
:math:`\lambda \in [0, 2]`, which is :math:`\lambda = 1 - x` for the operator's :math:`x`.
"""

from __future__ import annotations

import math

import numpy as np


def align_signs(response: np.ndarray) -> tuple[np.ndarray, int]:
    """Flip channels so that all have the same sign where the filter is strongest.

    The sign of a whole channel is a convention, because the linear map before it can undo it; but
    in a mean, channels of different sign would cancel. The majority keeps its sign.

    Args:
        response: (channels, points).

    Returns:
        The aligned responses, and how many channels were flipped.

    >>> align_signs(np.array([[2.0, -1.0], [-2.0, 1.0], [4.0, 0.0]]))[0].tolist()
    [[2.0, -1.0], [2.0, -1.0], [4.0, 0.0]]
    """
    peak = int(np.argmax(np.abs(response).mean(axis=0)))
    sign = np.where(response[:, peak] < 0, -1.0, 1.0)
    sign *= -1.0 if sign.sum() < 0 else 1.0
    return response * sign[:, None], int((sign < 0).sum())


def mean_response(response: np.ndarray) -> np.ndarray:
    """The mean of the aligned channels, (points,)."""
    return align_signs(response)[0].mean(axis=0)


def chebyshev_response(beta: np.ndarray, eigenvalues: np.ndarray) -> np.ndarray:
    r"""The response :math:`\sum_j \beta_j T_j(1 - \lambda)` of a filter.

    Args:
        beta: (..., degree + 1, channels).
        eigenvalues: (points,).

    Returns:
        (..., channels, points).

    >>> chebyshev_response(np.array([[0.0], [0.0], [1.0]]), np.array([0.0, 1.0])).tolist()
    [[1.0, -1.0]]
    """
    degrees = np.arange(beta.shape[-2])
    terms = np.cos(degrees[:, None] * np.arccos(np.clip(1 - eigenvalues, -1, 1)))
    return np.einsum("...jc,jp->...cp", beta, terms)


def spectral_coordinates(beta: np.ndarray, eigenvalues: np.ndarray) -> np.ndarray:
    r"""Coordinates of filters whose lengths are root mean squares over the spectrum.

    With the Chebyshev terms on the grid, :math:`T^\top / \sqrt{n} = Q R`, a filter is
    :math:`R \beta`: no larger than its coefficients, however fine the grid.

    Args:
        beta: (..., degree + 1, channels).
        eigenvalues: (points,).

    Returns:
        (..., channels, rank).
    """
    terms = chebyshev_response(np.eye(beta.shape[-2]), eigenvalues)
    R = np.linalg.qr(terms.T / math.sqrt(len(eigenvalues)), mode="r")
    return np.asarray(np.einsum("kj,...jc->...ck", R, beta))


def waveform_distance(filters: np.ndarray) -> np.ndarray:
    r"""How far the waveform :math:`g / \|g\|` of each epoch is from that of the last.

    The norm is the root mean square over channels and spectrum, and so is the distance: 0 for
    the same waveform whatever the amplitude, :math:`\sqrt2` for unrelated ones, 2 for the
    opposite sign.

    Args:
        filters: (epochs, channels, points), responses or their :func:`spectral_coordinates`.

    Returns:
        (epochs,); NaN where the filter is zero.
    """
    norm = np.sqrt((filters**2).mean(axis=(1, 2), keepdims=True))
    waveform = np.divide(filters, norm, out=np.full_like(filters, np.nan), where=norm > 0)
    return np.asarray(np.sqrt(((waveform - waveform[-1]) ** 2).mean(axis=(1, 2))))


def jacobi_weight(eigenvalues: np.ndarray, a: float, b: float) -> np.ndarray:
    r"""The weight function :math:`(1-x)^a (1+x)^b / \mu` at :math:`x = 1 - \lambda`, of mass one.

    Here :math:`\mu = 2^{a+b+1} \Gamma(a+1) \Gamma(b+1) / \Gamma(a+b+2)`. Logarithms avoid
    overflow for large a and b.

    Args:
        eigenvalues: (points,) strictly between 0 and 2.
        a, b: of the weight, > -1.

    >>> jacobi_weight(np.array([0.3, 1.0]), 0.0, 0.0).round(9).tolist()
    [0.5, 0.5]
    """
    log_mass = (a + b + 1) * math.log(2) + math.lgamma(a + 1) + math.lgamma(b + 1)
    log_mass -= math.lgamma(a + b + 2)
    logarithm = a * np.log(eigenvalues) + b * np.log(2 - eigenvalues) - log_mass
    return np.asarray(np.exp(logarithm))
