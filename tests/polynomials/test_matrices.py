"""The Chebyshev matrix of a basis, its derivatives and its batching."""

import mpmath
import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from longnn import polynomials
from longnn.polynomials import (
    Bernstein,
    Chebyshev,
    Favard,
    Gegenbauer,
    Interpolation,
    Jacobi,
    Legendre,
    Monomial,
    _chebyshev,
)

BASES = [
    Jacobi(1.5, -0.7),
    Jacobi(-0.5, -0.5, weight="probability"),
    Jacobi(2.0, 0.25, orthonormal=False),
    Legendre(),
    Chebyshev(1, orthonormal=False),
    Chebyshev(2),
    Gegenbauer(1.3),
    Gegenbauer(1.3, orthonormal=False),
    Monomial(),
    Monomial(even=True),
    Bernstein(),
    Interpolation(),
    Favard(0.7, 0.1),
]


@pytest.mark.parametrize("degree", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_matrix_reproduces_the_basis(basis, degree):
    x = torch.linspace(-1, 1, 31, dtype=torch.float64)
    direct = basis.evaluate(x, degree)
    through = basis.chebyshev_matrix(degree) @ polynomials.chebyshev_t(x, degree)
    assert direct.shape == (basis.terms(degree), 31)
    torch.testing.assert_close(through, direct, rtol=0, atol=1e-12 * direct.abs().max().item())


def test_transform_inverts_evaluation_to_degree_100():
    values = polynomials.chebyshev_t(_chebyshev.nodes(100), 100)  # (K+1, nodes)
    eye = torch.eye(101, dtype=torch.float64)
    torch.testing.assert_close(values @ _chebyshev.transform(100).T, eye, rtol=0, atol=1e-13)


def test_series_equals_numpy():
    beta = torch.randn(41, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = torch.linspace(-1, 1, 20, dtype=torch.float64)
    expected = np.polynomial.chebyshev.chebval(x.numpy(), beta.numpy())
    np.testing.assert_allclose(_chebyshev.evaluate_series(x, beta).numpy(), expected, rtol=1e-12)


def test_uniform_gram_is_the_mean_square():
    nodes, weights = np.polynomial.legendre.leggauss(20)
    t = polynomials.chebyshev_t(torch.tensor(nodes), 15).numpy()
    np.testing.assert_allclose(
        _chebyshev.uniform_gram(15).numpy(), (t * weights / 2) @ t.T, atol=1e-14
    )


@pytest.mark.parametrize("orthonormal", [True, False])
@pytest.mark.parametrize("weight", ["paper", "probability"])
@pytest.mark.parametrize(("a", "b"), [(0.0, 0.0), (-0.5, -0.5), (-0.9, -0.4), (4.0, 7.0)])
def test_gradcheck_in_a_and_b(a, b, orthonormal, weight):
    def matrix(a, b):
        return Jacobi(orthonormal=orthonormal, weight=weight).at(a=a, b=b).chebyshev_matrix(6)

    inputs = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (a, b)]
    assert gradcheck(matrix, inputs, eps=1e-6, atol=1e-7, rtol=1e-6)
    batch = [torch.stack([v, v + 0.3]).detach().requires_grad_() for v in inputs]
    assert gradcheck(torch.func.vmap(matrix), batch, eps=1e-6, atol=1e-7, rtol=1e-6)


def test_gradcheck_of_the_other_parameters():
    order = torch.tensor([0.8, 1.5], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda v: Gegenbauer().at(order=v).chebyshev_matrix(5), [order])
    s = torch.full((2, 6), 0.6, dtype=torch.float64, requires_grad=True)
    c = torch.full((2, 6), 0.1, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda s, c: Favard().at(s=s, c=c).chebyshev_matrix(5), [s, c])


@pytest.mark.parametrize(("a", "b"), [(-0.9, -0.8), (-0.5, -0.5), (0.3, 6.0)])
def test_derivative_against_high_precision_differences(a, b):
    """d p_k / da at degree 30, by central differences in 60 digits of the Gamma formula."""
    x, degree = 0.37, 30

    def p(a, b):
        norm = mpmath.mpf(2) ** (a + b + 1) * mpmath.gamma(degree + a + 1)
        norm *= mpmath.gamma(degree + b + 1) / (2 * degree + a + b + 1)
        norm /= mpmath.gamma(degree + a + b + 1) * mpmath.factorial(degree)
        return mpmath.jacobi(degree, a, b, mpmath.mpf(x)) / mpmath.sqrt(norm)

    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -20
        da = float((p(a + h, mpmath.mpf(b)) - p(a - h, mpmath.mpf(b))) / (2 * h))
        db = float((p(mpmath.mpf(a), b + h) - p(mpmath.mpf(a), b - h)) / (2 * h))
    at, bt = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (a, b))
    value = polynomials.jacobi(torch.tensor([x], dtype=torch.float64), degree, at, bt)[-1]
    ours = torch.autograd.grad(value.sum(), (at, bt))
    assert ours[0].item() == pytest.approx(da, rel=1e-10)
    assert ours[1].item() == pytest.approx(db, rel=1e-10)


def test_batch_of_parameters_equals_a_loop():
    a = torch.tensor([[-0.9, 0.0], [3.0, 20.0]], dtype=torch.float64)
    b = torch.tensor([0.5, -0.6], dtype=torch.float64)
    x = torch.linspace(-1, 1, 5, dtype=torch.float64)
    together = polynomials.jacobi(x, 12, a, b)
    matrices = Jacobi(a, b).chebyshev_matrix(12)
    assert together.shape == (13, 2, 2, 5)
    for i in range(2):
        for j in range(2):
            alone = polynomials.jacobi(x, 12, a[i, j].item(), b[j].item())
            torch.testing.assert_close(together[:, i, j], alone, rtol=1e-12, atol=0)
            one = Jacobi(a[i, j].item(), b[j].item()).chebyshev_matrix(12)
            torch.testing.assert_close(matrices[i, j], one, rtol=0, atol=1e-13 * one.abs().max())


def test_constants_survive_inference_mode():
    with torch.inference_mode():
        _chebyshev.nodes(23)
        _chebyshev.transform(23)
    a = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    Jacobi().at(a=a).chebyshev_matrix(23).sum().backward()
    assert torch.isfinite(a.grad)
