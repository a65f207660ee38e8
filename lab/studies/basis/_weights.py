r"""Weights of Jacobi bases as Beta densities: their moments, and their distance from a spectrum."""

import dataclasses

import numpy as np
import scipy.special

from lab.studies.basis._measure import BINS, BasisCell

EDGES = np.linspace(0, 2, BINS + 1)


def fit_moments(mean: float, variance: float) -> tuple[float, float]:
    r"""The a and b whose weight has this mean and variance of the eigenvalue.

    With :math:`m = \mathrm{mean}/2`, :math:`v = \mathrm{variance}/4` and :math:`s = m(1-m)/v - 1`:
    :math:`a + 1 = m s`, :math:`b + 1 = (1-m) s`.

    >>> fit_moments(1.0, 1 / 3)  # the uniform density
    (0.0, 0.0)
    """
    m, v = mean / 2, variance / 4
    s = m * (1 - m) / v - 1
    return round(m * s - 1, 12), round((1 - m) * s - 1, 12)


def distance(histogram: np.ndarray, a: float, b: float) -> float:
    """W_1 between a histogram over equal bins of [0, 2] and the weight of a and b.

    >>> round(distance(np.full(100, 0.01), 0.0, 0.0), 9)
    0.0
    """
    ours = np.concatenate([[0.0], np.cumsum(histogram)])
    gap = np.abs(ours - scipy.special.betainc(a + 1, b + 1, EDGES / 2))
    return float(np.trapezoid(gap, EDGES))


def weight_moments(a: float, b: float) -> tuple[float, float]:
    """Mean and variance of the eigenvalue under the weight of a and b."""
    p, q = a + 1, b + 1
    return 2 * p / (p + q), 4 * p * q / ((p + q) ** 2 * (p + q + 1))


@dataclasses.dataclass(frozen=True)
class Distances:
    """Distances from the spectrum of one graph, and moments of its learned weight.

    Args:
        before: at the start.
        after: learned, over the splits.
        closer: splits on which learning came closer.
        fitted: a and b by moments.
        best: their distance.
        weight_mean: mean eigenvalue under the learned weight, mean over the splits.
        weight_deviation: its deviation, likewise.
    """

    before: float
    after: list[float]
    closer: int
    fitted: tuple[float, float]
    best: float
    weight_mean: float
    weight_deviation: float


def compare_weights(cell: BasisCell) -> Distances:
    """The weights of one graph against its spectrum."""
    histogram = np.array(cell.histogram)
    pairs = list(zip(cell.a, cell.b, strict=True))
    before = distance(histogram, cell.start["a"], cell.start["b"])
    after = [distance(histogram, a, b) for a, b in pairs]
    fitted = fit_moments(cell.mean, cell.variance)
    moments = np.array([weight_moments(a, b) for a, b in pairs]).mean(0)
    return Distances(
        before=before,
        after=after,
        closer=sum(d < before for d in after),
        fitted=fitted,
        best=distance(histogram, *fitted),
        weight_mean=float(moments[0]),
        weight_deviation=float(np.sqrt(moments[1])),
    )
