"""The sphere of coefficients: quadrature, closed forms and our norms agree."""

import numpy as np
import pytest
import scipy.integrate
import scipy.special

from lab.studies import regularization


def norm_formula(i, a, b):
    """The paper's squared norm of the i-th Jacobi polynomial."""
    gamma = scipy.special.gamma
    top = 2 ** (a + b + 1) * gamma(i + a + 1) * gamma(i + b + 1)
    return top / ((2 * i + a + b + 1) * gamma(i + a + b + 1) * scipy.special.factorial(i))


@pytest.mark.parametrize(("a", "b"), [(0.4, 1.2), (1.0, 1.0), (2.0, 0.0)])
def test_gram_is_the_papers_formula(a, b):
    wanted = np.diag([norm_formula(i, a, b) for i in range(3)])
    np.testing.assert_allclose(regularization.gram("plain", a, b), wanted, atol=1e-13)
    np.testing.assert_allclose(regularization.gram("orthonormal", a, b), np.eye(3), atol=1e-13)


def test_the_printed_range_is_that_of_the_chosen_basis():
    low, high = regularization.extremes(regularization.gram("plain", *regularization.PAPERS))
    assert round(low**2) == 20
    assert round(high**2) == 40


def test_bernstein_by_adaptive_integration():
    G = regularization.gram("bernstein", 0.0, 0.0)
    basis = [lambda t: (1 - t) ** 2, lambda t: 2 * t * (1 - t), lambda t: t**2]
    for i in range(3):
        for j in range(3):
            value, _ = scipy.integrate.quad(lambda t, i=i, j=j: basis[i](t) * basis[j](t), 0, 1)
            assert G[i, j] == pytest.approx(value)
