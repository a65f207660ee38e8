"""The mathematics behind the figures, against numpy's and SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from longnn.report._responses import (
    align_signs,
    chebyshev_response,
    jacobi_weight,
    mean_response,
    spectral_coordinates,
    waveform_distance,
)

LAM = np.linspace(0, 2, 101)


def test_chebyshev_response_is_numpys() -> None:
    beta = np.random.default_rng(0).normal(size=(4, 11, 3))
    ours = chebyshev_response(beta, LAM)
    for epoch in range(4):
        reference = np.polynomial.chebyshev.chebval(1 - LAM, beta[epoch])
        np.testing.assert_allclose(ours[epoch], reference, atol=1e-12)


@pytest.mark.parametrize(("a", "b"), [(0, 0), (0.5, -0.3), (-0.5, -0.5), (-0.6, -0.7), (40, 3)])
def test_weight_has_mass_one_and_the_right_shape(a: float, b: float) -> None:
    def weight(lam: float) -> float:
        return float(jacobi_weight(np.array([lam]), a, b)[0])

    mass = quad(weight, 0, 1, epsabs=1e-10)[0] + quad(weight, 1, 2, epsabs=1e-10)[0]
    assert mass == pytest.approx(1, abs=1e-6)
    ratio = (0.3**a * 1.7**b) / (1.2**a * 0.8**b)  # (1 - x)^a (1 + x)^b at x = 1 - lam
    assert weight(0.3) / weight(1.2) == pytest.approx(ratio)


@pytest.mark.parametrize("degree", [0, 3, 10, 120])  # the last: more terms than points
def test_coordinates_keep_lengths_and_waveforms(degree: int) -> None:
    beta = np.random.default_rng(1).normal(size=(5, degree + 1, 3))
    response, coordinates = chebyshev_response(beta, LAM), spectral_coordinates(beta, LAM)
    np.testing.assert_allclose((coordinates**2).sum(axis=2), (response**2).mean(axis=2))
    np.testing.assert_allclose(
        waveform_distance(coordinates), waveform_distance(response), atol=1e-7
    )


def test_waveform_distance_ignores_the_amplitude() -> None:
    shape = np.exp(-LAM)[None]
    response = np.stack([5 * shape, 0.1 * shape, -2 * shape, shape])
    np.testing.assert_allclose(waveform_distance(response), [0, 0, 2, 0], atol=1e-12)


def test_waveform_distance_of_unrelated_shapes() -> None:
    lam = np.linspace(0, 2, 200, endpoint=False)
    response = np.stack([np.sin(np.pi * lam), np.cos(np.pi * lam)])[:, None]
    assert waveform_distance(response)[0] == pytest.approx(np.sqrt(2))


def test_a_zero_filter_has_no_waveform() -> None:
    distance = waveform_distance(np.stack([np.zeros((2, 5)), np.ones((2, 5))]))
    assert np.isnan(distance[0])
    assert distance[1] == 0


def test_alignment_turns_the_minority() -> None:
    low = np.exp(-LAM)
    aligned, turned = align_signs(np.stack([low, -low, low]))
    assert turned == 1
    np.testing.assert_allclose(aligned, np.stack([low] * 3))
    assert align_signs(np.stack([-low, -low]))[1] == 0  # all agree: nothing to turn
    np.testing.assert_allclose(mean_response(np.stack([-low, -low, low])), -low)
