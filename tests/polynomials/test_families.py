"""Laws of the families: orthonormality, agreement with SciPy, norms, domains."""

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch

from longnn import polynomials
from longnn.polynomials import (
    Bernstein,
    Chebyshev,
    Favard,
    Gegenbauer,
    Jacobi,
    Legendre,
    Monomial,
    _chebyshev,
)

from .quadrature import gauss_jacobi

PAIRS = [(0, 0), (-0.5, -0.5), (-0.9, -0.9), (-0.9, 20), (20, -0.9), (20, 20), (3, 7), (-0.7, -0.6)]


def gram(values, weights):
    return (values * weights) @ values.T


@pytest.mark.parametrize("degree", [0, 1, 2, 10, 100])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_orthonormal_jacobi_gram_is_identity(a, b, degree):
    x, w = scipy.special.roots_jacobi(degree + 1, a, b)
    values = polynomials.jacobi(torch.tensor(x), degree, a, b).numpy()
    np.testing.assert_allclose(gram(values, w), np.eye(degree + 1), atol=1e-10)
    values = polynomials.jacobi(torch.tensor(x), degree, a, b, weight="probability").numpy()
    np.testing.assert_allclose(gram(values, w / w.sum()), np.eye(degree + 1), atol=1e-10)


@pytest.mark.parametrize(("a", "b"), [(-0.999, -0.999), (-0.999, 0), (20, -0.999)])
def test_orthonormal_next_to_the_bound(a, b):
    x, w = gauss_jacobi(61, a, b)  # SciPy's own rule is off by 1e-8 here
    values = polynomials.jacobi(torch.tensor(x), 60, a, b).numpy()
    np.testing.assert_allclose(gram(values, w), np.eye(61), atol=1e-10)


@pytest.mark.parametrize(("a", "b"), [*PAIRS, (-0.5, -0.4999999)])
def test_classical_jacobi_equals_scipy(a, b):
    x = np.linspace(-1, 1, 41)
    ours = polynomials.jacobi(torch.tensor(x), 60, a, b, orthonormal=False).numpy()
    theirs = np.stack([scipy.special.eval_jacobi(k, a, b, x) for k in range(61)])
    scale = np.abs(theirs).max(axis=1, keepdims=True)
    assert (np.abs(ours - theirs) / scale).max() < 1e-10


def test_other_families_equal_scipy():
    x = np.linspace(-1, 1, 33)
    points = torch.tensor(x)
    pairs = [
        (polynomials.chebyshev_t(points, 50), scipy.special.eval_chebyt),
        (polynomials.chebyshev_u(points, 50), scipy.special.eval_chebyu),
        (polynomials.legendre(points, 50, orthonormal=False), scipy.special.eval_legendre),
        (polynomials.monomial(points, 50), lambda k, x: x**k),
        (
            polynomials.gegenbauer(points, 50, 1.7, orthonormal=False),
            lambda k, x: scipy.special.eval_gegenbauer(k, 1.7, x),
        ),
        (
            polynomials.bernstein(points, 50),
            lambda k, x: scipy.stats.binom.pmf(k, 50, (1 - x) / 2),
        ),
    ]
    for ours, theirs in pairs:
        expected = np.stack([theirs(k, x) for k in range(51)])
        scale = np.abs(expected).max(axis=1, keepdims=True)
        assert (np.abs(ours.numpy() - expected) / scale).max() < 1e-10


@pytest.mark.parametrize(
    "basis",
    [
        Jacobi(-0.9, 3.5, orthonormal=False),
        Jacobi(-0.7, -0.6, orthonormal=False),
        Jacobi(-0.5, -0.5, orthonormal=False),
        Jacobi(1.5, -0.25, orthonormal=False, weight="probability"),
        Legendre(orthonormal=False),
        Legendre(orthonormal=False, weight="probability"),
        Chebyshev(1, orthonormal=False),
        Chebyshev(2, orthonormal=False, weight="probability"),
        Chebyshev(1, orthonormal=True),
        Chebyshev(2, orthonormal=True, weight="probability"),
        Gegenbauer(0.75, orthonormal=False),
        Gegenbauer(-0.3, orthonormal=False),
        Gegenbauer(0.0, orthonormal=True),
    ],
    ids=str,
)
def test_squared_norms_are_integrals(basis):
    """The paper's table of weights and norms, corrected, against quadrature."""
    a, b = (float(p) for p in basis.jacobi_parameters())
    x, w = scipy.special.roots_jacobi(21, a, b)
    if basis.weight == "probability":
        w = w / w.sum()
    values = basis.evaluate(torch.tensor(x), 20).numpy()
    expected = np.diag(basis.squared_norms(20).numpy())
    np.testing.assert_allclose(gram(values, w), expected, atol=1e-10 * expected.max())


def test_special_cases_of_jacobi():
    x = torch.linspace(-1, 1, 17, dtype=torch.float64)
    same = torch.testing.assert_close
    same(polynomials.jacobi(x, 9), polynomials.legendre(x, 9))
    same(polynomials.jacobi(x, 9, -0.5, -0.5), polynomials.chebyshev_t(x, 9, orthonormal=True))
    same(polynomials.jacobi(x, 9, 0.5, 0.5), polynomials.chebyshev_u(x, 9, orthonormal=True))
    same(polynomials.jacobi(x, 9, 1.1, 1.1), polynomials.gegenbauer(x, 9, 1.6))
    # P_k^{(a,b)}(-x) = (-1)^k P_k^{(b,a)}(x)
    signs = (-1.0) ** torch.arange(10, dtype=torch.float64)[:, None]
    same(polynomials.jacobi(-x, 9, 2.0, 0.5), signs * polynomials.jacobi(x, 9, 0.5, 2.0))
    # Favard's recurrence with s = 1/2 gives Chebyshev polynomials of the second kind.
    s = torch.full((10,), 0.5, dtype=torch.float64)
    s[0] = 1.0
    same(Favard(s, torch.zeros(10)).evaluate(x, 9), polynomials.chebyshev_u(x, 9))


def test_bernstein_and_interpolation_laws():
    x = torch.linspace(-1, 1, 50, dtype=torch.float64)
    b = polynomials.bernstein(x, 100)
    assert (b >= 0).all()
    torch.testing.assert_close(b.sum(0), torch.ones_like(x))
    assert x[b[25].argmax()] == pytest.approx(1 - 2 * 25 / 100, abs=0.05)
    cardinal = polynomials.interpolation(_chebyshev.nodes(12), 12)
    torch.testing.assert_close(cardinal, torch.eye(13, dtype=torch.float64))


def test_even_monomials_are_the_even_powers():
    x = torch.linspace(-1, 1, 9, dtype=torch.float64)
    basis = Monomial(even=True)
    assert basis.terms(10) == basis.terms(11) == 6
    torch.testing.assert_close(basis.evaluate(x, 10), Monomial().evaluate(x, 10)[::2])


@pytest.mark.parametrize("orthonormal", [True, False])
def test_finite_all_over_the_domain(orthonormal):
    x = torch.tensor([-1.0, -1 + 1e-15, -0.3, 0.0, 1 - 1e-15, 1.0], dtype=torch.float64)
    edge = -1 + 1e-15
    a, b = torch.meshgrid(
        torch.tensor([edge, -0.999, -0.5, 0.0, 1.0, 20.0, 100.0], dtype=torch.float64),
        torch.tensor([edge, -0.999, -0.5, 0.0, 1.0, 20.0, 100.0], dtype=torch.float64),
        indexing="ij",
    )
    a.requires_grad_()
    b.requires_grad_()
    for weight in ("paper", "probability"):
        for degree in (0, 1, 2, 100):
            p = polynomials.jacobi(x, degree, a, b, orthonormal=orthonormal, weight=weight)
            assert torch.isfinite(p).all()
            if degree == 0 and (not orthonormal or weight == "probability"):
                continue  # the constant 1: nothing depends on a and b
            grads = torch.autograd.grad((p / p.detach().abs().amax()).sum(), (a, b))
            assert all(torch.isfinite(g).all() for g in grads)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: polynomials.jacobi(torch.zeros(1), 2, -1.2), r"Expected `a` > -1 \(got -1.2\)"),
        (lambda: polynomials.jacobi(torch.zeros(1), 2, 0.0, -1), r"Expected `b` > -1 \(got -1\)"),
        (lambda: Jacobi(math.nan), r"Expected `a` > -1 \(got nan\)"),
        (lambda: Jacobi(torch.tensor([0.0, -3.0])), r"Expected `a` > -1 \(got -3\)"),
        (lambda: Gegenbauer(-0.5), r"Expected `order` > -0.5 \(got -0.5\)"),
        (lambda: Favard(c=math.inf), r"Expected `c` to be finite \(got inf\)"),
        (lambda: Chebyshev(3), r"Expected `kind` to be 1 or 2 \(got 3\)"),
        (lambda: Jacobi(weight="unit"), r"'paper' or 'probability' \(got 'unit'\)"),
        (lambda: polynomials.legendre(torch.zeros(1), -1), r"0 <= `degree` <= 4096 \(got -1\)"),
        (lambda: polynomials.legendre(torch.zeros(1), 10**6), r"\(got 1000000\)"),
        (lambda: polynomials.get_basis("jacoby"), r"one of \['bernstein', .*\(got 'jacoby'\)"),
    ],
)
def test_domain_errors_name_the_bound(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_degree_must_be_an_integer():
    with pytest.raises(TypeError, match=r"Expected `degree` to be an int \(got 2.5\)"):
        polynomials.legendre(torch.zeros(1), 2.5)


def test_repr_reads_as_the_constructor():
    assert repr(Jacobi(1, -0.5)) == "Jacobi(a=1, b=-0.5, orthonormal=True, weight='paper')"
    assert repr(Bernstein()) == "Bernstein()"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_come_back_in_the_dtype_of_x(dtype):
    x = torch.linspace(-1, 1, 7, dtype=dtype)
    p = polynomials.jacobi(x, 30, 0.5, 2.0)
    exact = polynomials.jacobi(x.double(), 30, 0.5, 2.0)
    assert p.dtype == dtype
    torch.testing.assert_close(p, exact.to(dtype), rtol=0, atol=0)
