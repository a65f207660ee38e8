"""Weights as Beta densities, distances against SciPy."""

import numpy as np
import pytest
import scipy.stats

from lab.studies.basis import distance, fit_moments, weight_moments


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (2.5, -0.3), (5.0, 7.0)])
def test_moments_there_and_back(a, b):
    density = scipy.stats.beta(a + 1, b + 1, scale=2)
    assert weight_moments(a, b) == pytest.approx((density.mean(), density.var()))
    assert fit_moments(density.mean(), density.var()) == pytest.approx((a, b))


def test_distance_against_scipy():
    """Between a histogram and a Beta density, both drawn as many points."""
    rng = np.random.default_rng(0)
    shares = rng.random(100)
    shares /= shares.sum()
    n = 20_000
    quantiles = (np.arange(n) + 0.5) / n
    points = np.interp(quantiles, np.concatenate([[0], shares.cumsum()]), np.linspace(0, 2, 101))
    weight = scipy.stats.beta.ppf(quantiles, 1.7, 3.1, scale=2)
    wanted = scipy.stats.wasserstein_distance(points, weight)
    assert distance(shares, 0.7, 2.1) == pytest.approx(wanted, rel=1e-3)
