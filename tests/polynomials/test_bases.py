"""One suite for every basis: orthonormality by quadrature, SciPy's and mpmath's values, the
Chebyshev matrix, derivatives in all parameters, domains."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats
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
from longnn.polynomials._fused import jacobi_series

from ..helpers import random_tensor

PAIRS = [(0, 0), (-0.5, -0.5), (-0.9, -0.9), (-0.9, 20), (20, -0.9), (20, 20), (3, 7), (-0.7, -0.6)]
WEIGHTS = ("paper", "probability")
ORTHOGONAL = [
    *(Jacobi(a, b, weight=weight) for a, b in PAIRS for weight in WEIGHTS),
    Jacobi(-0.9, 3.5, orthonormal=False),
    Jacobi(-0.7, -0.6, orthonormal=False),
    Jacobi(-0.5, -0.5, orthonormal=False),
    Jacobi(1.5, -0.25, orthonormal=False, weight="probability"),
    Legendre(),
    Legendre(orthonormal=False),
    Legendre(orthonormal=False, weight="probability"),
    Chebyshev(1, orthonormal=False),
    Chebyshev(2, orthonormal=False, weight="probability"),
    Chebyshev(1, orthonormal=True),
    Chebyshev(2, orthonormal=True, weight="probability"),
    Gegenbauer(1.3),
    Gegenbauer(0.75, orthonormal=False),
    Gegenbauer(-0.3, orthonormal=False),
    Gegenbauer(0.0, orthonormal=True),
]
BASES = [
    *ORTHOGONAL,
    Monomial(),
    Monomial(even=True),
    Bernstein(),
    Interpolation(),
    Favard(0.7, 0.1),
]


def gram(values, weights):
    return (values * weights) @ values.T


@pytest.mark.parametrize("degree", [0, 1, 2, 10, 100])
@pytest.mark.parametrize("basis", ORTHOGONAL, ids=str)
def test_gram_matrix_by_quadrature(basis, degree):
    """The identity, or the paper's table of squared norms, corrected."""
    a, b = (float(p) for p in basis.jacobi_parameters())
    x, w = scipy.special.roots_jacobi(degree + 1, a, b)
    w = w / w.sum() if basis.weight == "probability" else w
    values = basis.evaluate(torch.tensor(x), degree).numpy()
    expected = np.ones(degree + 1) if basis.is_orthonormal else basis.squared_norms(degree).numpy()
    np.testing.assert_allclose(gram(values, w), np.diag(expected), atol=1e-10 * expected.max())


@pytest.mark.parametrize(("a", "b"), [(-0.999, -0.999), (-0.999, 0), (20, -0.999)])
def test_orthonormal_next_to_the_bound(a, b):
    """With a rule of 40 digits: SciPy's own is off by 1e-8 here."""
    with mpmath.workdps(40):
        rule = mpmath.mp.gauss_quadrature(41, "jacobi", mpmath.mpf(a), mpmath.mpf(b))
    x, w = (np.array([float(value) for value in values]) for values in rule)
    values = polynomials.jacobi(torch.tensor(x), 40, a, b).numpy()
    np.testing.assert_allclose(gram(values, w), np.eye(41), atol=1e-10)


def jacobi_against_scipy(a, b):
    return (
        lambda x, degree: polynomials.jacobi(x, degree, a, b, orthonormal=False),
        lambda k, x: scipy.special.eval_jacobi(k, a, b, x),
    )


REFERENCES = {
    **{f"jacobi {pair}": jacobi_against_scipy(*pair) for pair in [*PAIRS, (-0.5, -0.4999999)]},
    "chebyshev t": (polynomials.chebyshev_t, scipy.special.eval_chebyt),
    "chebyshev u": (polynomials.chebyshev_u, scipy.special.eval_chebyu),
    "legendre": (
        lambda x, degree: polynomials.legendre(x, degree, orthonormal=False),
        scipy.special.eval_legendre,
    ),
    "monomial": (polynomials.monomial, lambda k, x: x**k),
    "gegenbauer": (
        lambda x, degree: polynomials.gegenbauer(x, degree, 1.7, orthonormal=False),
        lambda k, x: scipy.special.eval_gegenbauer(k, 1.7, x),
    ),
    "bernstein": (
        polynomials.bernstein,
        lambda k, x: scipy.stats.binom.pmf(k, 60, (1 - x) / 2),
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_values_equal_scipy(name):
    """In float64; values at points in float32 are those of float64, rounded."""
    ours, theirs = REFERENCES[name]
    x = np.linspace(-1, 1, 41)
    expected = np.stack([theirs(k, x) for k in range(61)])
    scale = np.abs(expected).max(axis=1, keepdims=True)
    assert (np.abs(ours(torch.tensor(x), 60).numpy() - expected) / scale).max() < 1e-10
    single = torch.tensor(x, dtype=torch.float32)
    assert torch.equal(ours(single, 30), ours(single.double(), 30).float())


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
    assert Monomial(even=True).terms(10) == Monomial(even=True).terms(11) == 6
    same(Monomial(even=True).evaluate(x, 10), Monomial().evaluate(x, 10)[::2])
    same(polynomials.interpolation(_chebyshev.nodes(12), 12), torch.eye(13, dtype=torch.float64))


@pytest.mark.parametrize("degree", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("basis", BASES, ids=str)
def test_matrix_reproduces_the_basis(basis, degree):
    x = torch.linspace(-1, 1, 31, dtype=torch.float64)
    direct = basis.evaluate(x, degree)
    through = basis.chebyshev_matrix(degree) @ polynomials.chebyshev_t(x, degree)
    assert direct.shape == (basis.terms(degree), 31)
    torch.testing.assert_close(through, direct, rtol=0, atol=1e-12 * direct.abs().max().item())


def test_series_of_chebyshev_polynomials():
    """Nodes and transform invert evaluation; sums and mean squares are those of NumPy."""
    values = polynomials.chebyshev_t(_chebyshev.nodes(100), 100)  # (K+1, nodes)
    eye = torch.eye(101, dtype=torch.float64)
    torch.testing.assert_close(values @ _chebyshev.transform(100).T, eye, rtol=0, atol=1e-13)
    beta, x = random_tensor(41, 3), torch.linspace(-1, 1, 20, dtype=torch.float64)
    expected = np.polynomial.chebyshev.chebval(x.numpy(), beta.numpy())
    np.testing.assert_allclose(_chebyshev.evaluate_series(x, beta).numpy(), expected, rtol=1e-12)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    t = polynomials.chebyshev_t(torch.tensor(nodes), 15).numpy()
    np.testing.assert_allclose(
        _chebyshev.uniform_gram(15).numpy(), gram(t, weights / 2), atol=1e-14
    )


def fused_matrix(a, b, degree, *, unit_mass):
    """The series of each term, as the rows of C."""
    terms = torch.eye(degree + 1, dtype=a.dtype).expand(*a.shape, -1, -1)
    return jacobi_series(a, b, terms, degree, unit_mass=unit_mass).mT


def jacobi_matrix(**options):
    return lambda a, b: Jacobi(**options).at(a=a, b=b).chebyshev_matrix(6)


DERIVATIVES = {
    **{
        f"jacobi {pair} {weight} {orthonormal}": (
            jacobi_matrix(orthonormal=orthonormal, weight=weight),
            pair,
        )
        for pair in [(0.0, 0.0), (-0.5, -0.5), (-0.9, -0.4), (4.0, 7.0)]
        for weight in WEIGHTS
        for orthonormal in (True, False)
    },
    **{
        f"fused {unit}": (
            lambda a, b, unit=unit: fused_matrix(a, b, 6, unit_mass=unit),
            ([0.3, -0.6], [-0.2, 5.0]),
        )
        for unit in (True, False)
    },
    "gegenbauer": (lambda v: Gegenbauer().at(order=v).chebyshev_matrix(5), ([0.8, 1.5],)),
    "favard": (
        lambda s, c: Favard().at(s=s, c=c).chebyshev_matrix(5),
        ([[0.6] * 6] * 2, [[0.1] * 6] * 2),
    ),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_also_under_vmap(name):
    call, values = DERIVATIVES[name]
    inputs = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    close = {"eps": 1e-6, "atol": 1e-7, "rtol": 1e-6} if name.startswith("jacobi") else {}
    assert gradcheck(call, inputs, **close)
    batch = [torch.stack([v, v + 0.3]).detach().requires_grad_() for v in inputs]
    assert gradcheck(torch.func.vmap(call), batch, **close)
    alone = torch.stack([call(*row) for row in zip(*batch, strict=True)])
    torch.testing.assert_close(torch.func.vmap(call)(*batch), alone)
    if len(batch) > 1:
        dims = (0, *[None] * (len(batch) - 1))
        assert gradcheck(torch.func.vmap(call, in_dims=dims), [batch[0], *inputs[1:]], **close)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 10, 40])
def test_the_fused_matrix_equals_autograd_through_the_recurrence(degree, weight):
    pairs = [(0.0, 0.0), (-0.5, -0.5), (-0.9, -0.4), (-0.7, -0.3), (4.0, 7.0), (-0.999, 20.0)]
    a, b = (
        torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in zip(*pairs, strict=True)
    )
    ours = fused_matrix(a, b, degree, unit_mass=weight == "probability")
    theirs = Jacobi(weight=weight).at(a=a, b=b).chebyshev_matrix(degree)
    scale = theirs.detach().abs().amax((1, 2), keepdim=True)
    torch.testing.assert_close(ours / scale, theirs / scale, rtol=0, atol=1e-12)
    if degree == 0 and weight == "probability":
        return  # the constant 1: nothing depends on a and b
    upstream = random_tensor(*ours.shape)
    found, expected = (
        torch.autograd.grad((C / scale * upstream).sum(), (a, b)) for C in (ours, theirs)
    )
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


def test_batch_of_parameters_equals_a_loop():
    a = torch.tensor([[-0.9, 0.0], [3.0, 20.0]], dtype=torch.float64)
    b = torch.tensor([0.5, -0.6], dtype=torch.float64)
    x = torch.linspace(-1, 1, 5, dtype=torch.float64)
    together = polynomials.jacobi(x, 12, a, b)
    matrices = Jacobi(a, b).chebyshev_matrix(12)
    assert together.shape == (13, 2, 2, 5)
    for i, j in np.ndindex(2, 2):
        pair = (a[i, j].item(), b[j].item())
        alone = polynomials.jacobi(x, 12, *pair)
        torch.testing.assert_close(together[:, i, j], alone, rtol=1e-12, atol=0)
        matrix = Jacobi(*pair).chebyshev_matrix(12)
        torch.testing.assert_close(matrices[i, j], matrix, rtol=0, atol=1e-13 * matrix.abs().max())


def test_constants_survive_inference_mode():
    with torch.inference_mode():
        _chebyshev.nodes(23)
        _chebyshev.transform(23)
    a = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    Jacobi().at(a=a).chebyshev_matrix(23).sum().backward()
    assert torch.isfinite(a.grad)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("orthonormal", [True, False])
def test_finite_all_over_the_domain(orthonormal, weight):
    x = torch.tensor([-1.0, -1 + 1e-15, -0.3, 0.0, 1 - 1e-15, 1.0], dtype=torch.float64)
    values = torch.tensor([-1 + 1e-15, -0.999, -0.5, 0.0, 1.0, 20.0, 100.0], dtype=torch.float64)
    a, b = (t.requires_grad_() for t in torch.meshgrid(values, values, indexing="ij"))
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
        (lambda: polynomials.legendre(torch.zeros(1), 2.5), r"`degree` to be an int \(got 2.5\)"),
        (lambda: polynomials.get_basis("jacoby"), r"one of \['bernstein', .*\(got 'jacoby'\)"),
    ],
)
def test_domain_errors_name_the_bound(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_repr_reads_as_the_constructor():
    assert repr(Jacobi(1, -0.5)) == "Jacobi(a=1, b=-0.5, orthonormal=True, weight='paper')"
    assert repr(Bernstein()) == "Bernstein()"
