"""Polynomial filters: one conformance suite for every basis and parametrisation, then the laws
of norms, truncation and fits."""

import numpy as np
import pytest
import scipy.special
import torch

from longnn import PolynomialFilter
from longnn.filters._coefficients import PARAMETRIZATIONS
from longnn.filters._fused import jacobi_coefficients
from longnn.nn._ensemble import call_each
from longnn.polynomials import (
    Bernstein,
    Chebyshev,
    Favard,
    Gegenbauer,
    Interpolation,
    Jacobi,
    Legendre,
    Monomial,
)

from .helpers import double_operator, exact_filter, random_graph, random_tensor

NODES, CHANNELS, DEGREE = 30, 3, 6
OPERATOR = double_operator(random_graph(NODES, isolated=2), NODES)
SIGNAL = random_tensor(NODES, 2)

FILTERS = {
    "lon": lambda: PolynomialFilter(Jacobi(0.5, -0.6), DEGREE, CHANNELS, learn_basis=True),
    "lon-pcd": lambda: PolynomialFilter(
        Jacobi(1.5, 0.25, weight="probability"),
        DEGREE,
        CHANNELS,
        coefficients="pcd",
        gamma=1.5,
        learn_basis=True,
    ),
    "jacobi-plain": lambda: PolynomialFilter(Jacobi(2.0, 1.0, orthonormal=False), DEGREE, CHANNELS),
    "jacobi-learnable": lambda: PolynomialFilter(
        Jacobi(2.0, 1.0, orthonormal=False), DEGREE, CHANNELS, learn_basis=True
    ),
    "legendre": lambda: PolynomialFilter(Legendre(), DEGREE, 1),
    "chebyshev": lambda: PolynomialFilter(Chebyshev(1, orthonormal=False), DEGREE, CHANNELS),
    "chebyshev-u": lambda: PolynomialFilter(Chebyshev(2), DEGREE, CHANNELS),
    "gegenbauer": lambda: PolynomialFilter(Gegenbauer(0.8), DEGREE, CHANNELS, learn_basis=True),
    "gpr": lambda: PolynomialFilter("monomial", DEGREE, 1),
    "even": lambda: PolynomialFilter(Monomial(even=True), DEGREE, 1),
    "bern": lambda: PolynomialFilter(Bernstein(), DEGREE, 1, coefficients="nonnegative"),
    "cheb2": lambda: PolynomialFilter(Interpolation(), DEGREE, 1, coefficients="nonnegative"),
    "favard": lambda: PolynomialFilter(Favard(), DEGREE, CHANNELS, learn_basis=True),
    "fixed": lambda: PolynomialFilter(
        "monomial", DEGREE, 1, coefficients="fixed", init=lambda lam: torch.exp(-lam)
    ),
}


def randomized(name, dtype=torch.float64):
    """A filter of the suite away from its initial state."""
    f = FILTERS[name]().to(dtype)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in f.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=generator, dtype=torch.float64))
    return f


def test_every_parametrization_is_covered():
    assert {make().kind for make in FILTERS.values()} == set(PARAMETRIZATIONS)


@pytest.fixture(params=FILTERS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def operator():
    return OPERATOR


class TestConformance:
    """What every filter must do."""

    @pytest.mark.parametrize(
        ("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 1e-5)]
    )
    def test_equals_exact_spectral_evaluation(self, name, operator, dtype, tolerance):
        """Through the basis polynomials themselves, not through the Chebyshev matrix.

        So it is linear, self-adjoint, and the same whatever numbers nodes have.
        """
        f = randomized(name, dtype)
        x = random_tensor(NODES, CHANNELS)

        def response(lam):
            values = f.current_basis().evaluate(1 - lam, DEGREE)  # (terms, [channels,] nodes)
            alpha = f.effective_coefficients()
            spec = "kcn,kc->cn" if values.dim() == 3 else "kn,kc->cn"
            return torch.einsum(spec, values, alpha).expand(CHANNELS, -1)

        with torch.no_grad():
            expected = exact_filter(operator, response, x)
            ours = f(operator.to(dtype), x.to(dtype)).double()
        assert (ours - expected).norm() < tolerance * expected.norm()
        lam = torch.linspace(0, 2, 9, dtype=torch.float64)
        by_basis = response(lam).float().detach()
        torch.testing.assert_close(f.response(lam).float().expand(CHANNELS, -1), by_basis)

    def test_summary_is_that_of_norm_and_basis(self, name):
        """Of one filter, and of two in a batch."""
        f = randomized(name)
        basis = f.basis_parameters() if f.learn_basis else {}
        expected = {"amplitude": f.squared_norm().mean().sqrt()}
        expected |= {k: v for k, v in basis.items() if k in ("a", "b") and v.dim() == 0}
        found = f.summary()
        assert list(found) == list(expected)
        numbers = {**dict(f.named_parameters()), **dict(f.named_buffers())}
        both = call_each(
            f,
            lambda module: tuple(module.summary().values()),
            {k: torch.stack([v, 2 * v]) for k, v in numbers.items() if v is not None},
        )
        for mine, batch, theirs in zip(found.values(), both, expected.values(), strict=True):
            assert not mine.requires_grad
            torch.testing.assert_close(mine, theirs.detach())
            torch.testing.assert_close(batch[0].detach(), theirs.detach())

    def test_vmap_equals_loop(self, name, operator):
        members = [randomized(name) for _ in range(3)]
        with torch.no_grad():
            for i, member in enumerate(members):
                for p in member.parameters():
                    p.add_(0.1 * i)
        x = random_tensor(3, NODES, CHANNELS)
        params, buffers = torch.func.stack_module_state(members)
        call = lambda p, b, x: torch.func.functional_call(  # noqa: E731
            members[0], (p, b), (operator, x)
        )
        together = torch.func.vmap(call)(params, buffers, x)
        alone = torch.stack([m(operator, xi) for m, xi in zip(members, x, strict=True)])
        torch.testing.assert_close(together, alone)

    def test_gradients_reach_every_parameter(self, name, operator):
        f = randomized(name)
        params = dict(f.named_parameters())
        if not params:
            pytest.skip("a fixed filter has no parameter")
        x = random_tensor(NODES, CHANNELS)

        def output(*values):
            state = dict(zip(params, values, strict=True))
            return torch.func.functional_call(f, state, (operator, x))[:4]

        assert torch.autograd.gradcheck(output, tuple(params.values()))

    def test_precision_of_the_basis_survives_casts(self, name):
        f = FILTERS[name]()
        before = f.chebyshev_matrix().detach().clone()
        f.to(torch.bfloat16).to(torch.float32)
        if not f.learn_basis:
            assert torch.equal(f.chebyshev_matrix(), before)
        assert f.chebyshev_matrix().dtype == torch.float64

    def test_state_and_reset(self, name):
        f, untouched, loaded = randomized(name), FILTERS[name]().double(), FILTERS[name]().double()
        loaded.load_state_dict(f.state_dict())
        assert torch.equal(loaded.chebyshev_coefficients(), f.chebyshev_coefficients())
        f.reset_parameters()
        for p, q in zip(f.parameters(), untouched.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-6)


def integral(f, channel):
    """The integral of g^2 w by quadrature, w the weight of f's basis (or uniform, mass one)."""
    basis = f.current_basis()
    a, b, mass_one = 0.0, 0.0, True
    if basis.orthogonal:
        a, b = (p.item() for p in basis.jacobi_parameters())
        mass_one = basis.weight == "probability"
    x, w = scipy.special.roots_jacobi(2 * DEGREE + 2, a, b)
    w = w / w.sum() if mass_one else w
    g = f.response(1 - torch.tensor(x))[channel].detach().numpy()
    return (g**2 * w).sum()


@pytest.mark.parametrize("name", sorted(set(FILTERS) - {"favard"}), indirect=False)
def test_penalty_is_the_integral_of_the_squared_filter(name):
    """The paper's theorem, on the effective coefficients, for every basis with a weight."""
    f = randomized(name)
    norms = f.squared_norm()
    for c in range(f.channels):
        assert norms[c].item() == pytest.approx(integral(f, c), rel=1e-9)
    assert f.penalty().item() == pytest.approx(norms.sum().item())
    if f.basis.is_orthonormal:
        torch.testing.assert_close(f.penalty(), f.effective_coefficients().square().sum())


@pytest.mark.parametrize("kind", ["free", "pcd"])
@pytest.mark.parametrize("degree", [0, 1, 5])
@pytest.mark.parametrize("weight", ["paper", "probability"])
def test_coefficients_of_a_learned_basis_in_one_pass(weight, degree, kind):
    """Against the steps it joins, which serve all other filters; derivatives too, at eta = 0."""
    f = PolynomialFilter(
        Jacobi(0.3, -0.4, weight=weight), degree, 3, coefficients=kind, learn_basis=True
    )
    f = f.double()
    with torch.no_grad():
        if kind == "pcd":
            f.coefficients.eta[2:3] = 0.0
        f.coefficients.weight.normal_(generator=torch.Generator().manual_seed(0))
    one_pass = f.chebyshev_coefficients()
    steps = f.chebyshev_matrix().T @ f.effective_coefficients()
    torch.testing.assert_close(one_pass, steps, rtol=1e-12, atol=1e-12)
    g = torch.linspace(-1, 2, steps.numel(), dtype=torch.float64).reshape(steps.shape)
    inputs = [p for p in f.parameters() if p.numel()]
    for ours, theirs in zip(
        *(
            torch.autograd.grad((beta * g).sum(), inputs, materialize_grads=True)
            for beta in (one_pass, steps)  # of degree 0 and mass one a and b decide nothing
        ),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)

    def call(a, b, w, *eta):
        gamma = [torch.tensor(0.7, dtype=torch.float64)] if eta else []
        return jacobi_coefficients(a, b, w, *eta, *gamma, bound=-1.0, unit=weight != "paper")

    raw, of = f.raw_basis, f.coefficients
    state = (raw["a"], raw["b"], of.weight, *([of.eta] if kind == "pcd" else []))
    state = [t.detach().clone().requires_grad_() for t in state]
    assert torch.autograd.gradcheck(call, state)
    batch = [torch.stack([t.detach() + 0.1 * i for i in range(3)]).requires_grad_() for t in state]
    assert torch.autograd.gradcheck(torch.func.vmap(call), batch)
    shared, dims = [state[0], *batch[1:]], (None, *(0,) * len(batch[1:]))
    assert torch.autograd.gradcheck(torch.func.vmap(call, in_dims=dims), shared)
    total = lambda *inputs: call(*inputs).square().sum()  # noqa: E731
    every = tuple(range(len(state)))
    transformed = torch.func.vmap(torch.func.grad(total, argnums=every))(*batch)
    plain = torch.autograd.grad(sum(total(*row) for row in zip(*batch, strict=True)), batch)
    for ours, theirs in zip(transformed, plain, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_amplitude_and_waveform():
    """Scaling the coefficients changes the amplitude and leaves the waveform: over-passing."""
    f = randomized("lon")
    lam = torch.linspace(0, 2, 9, dtype=torch.float64)
    before, shape = f.norm(), f.waveform(lam)
    with torch.no_grad():
        f.coefficients.weight.mul_(7)
    torch.testing.assert_close(f.norm(), 7 * before)
    torch.testing.assert_close(f.waveform(lam), shape)
    torch.testing.assert_close(f.waveform(lam) * f.norm()[:, None], f.response(lam))


@pytest.mark.parametrize("kind", ["free", "pcd"])
def test_truncation_is_exact(kind):
    f = PolynomialFilter(Jacobi(0.5, 2.0), 10, 2, coefficients=kind, learn_basis=True).double()
    decay = 0.1 ** torch.arange(11, dtype=torch.float64)
    f.coefficients.set_(random_tensor(11, 2) * decay[:, None])
    cut = f.truncate(1e-3)
    assert 0 < cut.degree < 10
    assert cut.degree_before == 10
    assert cut.relative <= 1e-3
    # Parseval: ||g||^2 = ||truncated||^2 + ||dropped||^2, and the difference has that norm.
    assert cut.filter.penalty().item() + cut.dropped_norm**2 == pytest.approx(f.penalty().item())
    a, b = (p.item() for p in f.current_basis().jacobi_parameters())
    x, w = scipy.special.roots_jacobi(20, a, b)
    lam = 1 - torch.tensor(x)
    gap = (f.response(lam) - cut.filter.response(lam)).detach().numpy()
    assert np.sqrt((gap**2 * w).sum()) == pytest.approx(cut.dropped_norm, rel=1e-6)
    # One term less would have broken the tolerance.
    alpha = f.effective_coefficients()[cut.degree :]
    assert alpha.norm() > 1e-3 * f.penalty().sqrt()
    assert f.truncate(0.0).degree == 10


def test_truncating_a_favard_filter_cuts_its_tables(operator):
    f = randomized("favard")
    alpha = f.effective_coefficients().detach().clone()
    alpha[4:] = 0
    f.coefficients.set_(alpha)
    cut = f.truncate(1e-9)
    assert cut.degree == 3
    x = random_tensor(NODES, CHANNELS)
    torch.testing.assert_close(
        cut.filter.double()(operator, x), f(operator, x), rtol=1e-6, atol=1e-6
    )


def test_degree_penalty_is_the_sum_of_distances():
    f = PolynomialFilter("legendre", 3, 1, init=torch.tensor([1.0, 2.0, 2.0, 1.0])).double()
    expected = np.sqrt(4 + 4 + 1) + np.sqrt(4 + 1) + 1
    assert f.degree_penalty().item() == pytest.approx(expected)


@pytest.mark.parametrize("degree", [5, 30, 100])
@pytest.mark.parametrize("basis", [Jacobi(0.3, -0.4), Chebyshev(1), Legendre(), Interpolation()])
def test_fit_recovers_a_filter_of_the_same_degree(basis, degree):
    nodes = 300
    operator = double_operator(random_graph(nodes, probability=0.02), nodes)
    x = random_tensor(nodes, 2)
    target = PolynomialFilter("chebyshev", degree, 2, init=random_tensor(degree + 1, 2)).double()
    y = target(operator, x).detach()
    f = PolynomialFilter(basis, degree, 2).double()
    fit = f.fit_least_squares(operator, x, y)
    assert fit.squared_error.max() < 1e-16 * y.square().sum()
    torch.testing.assert_close(f(operator, x), y)


def test_fit_equals_plain_least_squares_under_a_mask(operator):
    x, y = random_tensor(NODES, 1), random_tensor(NODES, 1, seed=4)
    mask = torch.arange(NODES) % 3 > 0
    f = PolynomialFilter(Jacobi(1.0, 0.5), 4, 1).double()
    fit = f.fit_least_squares(operator, x, y, mask)
    powers = [x[:, 0]]
    for _ in range(4):
        powers.append(operator.to_dense() @ powers[-1])
    design = torch.stack(powers, 1)[mask].numpy()
    expected = np.linalg.lstsq(design, y[mask].numpy(), rcond=None)[1]
    assert fit.squared_error.item() == pytest.approx(expected.item(), rel=1e-9)
    assert fit.rank == 5


def test_fit_of_constrained_and_incomplete_filters(operator):
    x, y = random_tensor(NODES), random_tensor(NODES, seed=4)
    bern = PolynomialFilter("bernstein", 4, 1, coefficients="nonnegative").double()
    fit = bern.fit_least_squares(operator, x, y)
    assert (bern.effective_coefficients() >= 0).all()
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):  # no non-negative neighbour is better
        alpha = bern.effective_coefficients().detach()
        other = PolynomialFilter("bernstein", 4, 1, coefficients="nonnegative").double()
        step = 0.01 * torch.randn(alpha.shape, generator=generator, dtype=torch.float64)
        other.coefficients.set_((alpha + step).clamp_min(0))
        worse = (other(operator, x[:, None])[:, 0] - y).square().sum()
        assert worse >= fit.squared_error.item() - 1e-12
    even = PolynomialFilter(Monomial(even=True), 4, 1).double()
    fit = even.fit_least_squares(operator, x, y)
    assert fit.rank == 3
    pcd = PolynomialFilter(Jacobi(), 4, 1, coefficients="pcd", gamma=0.75).double()
    free = PolynomialFilter(Jacobi(), 4, 1).double()
    assert pcd.fit_least_squares(operator, x, y).squared_error.item() == pytest.approx(
        free.fit_least_squares(operator, x, y).squared_error.item()
    )


def test_initial_filters():
    lam = torch.linspace(0, 2, 7, dtype=torch.float64)
    ones = torch.ones(1, 7, dtype=torch.float64)
    for basis, kind in [("jacobi", "free"), ("bernstein", "nonnegative"), ("monomial", "free")]:
        f = PolynomialFilter(basis, 5, 1, coefficients=kind).double()
        torch.testing.assert_close(f.response(lam), ones, rtol=1e-6, atol=1e-6)
    f = PolynomialFilter(Jacobi(1.0, 0.0), 12, 2, init=lambda lam: torch.exp(-lam)).double()
    f.reset_parameters()  # now in float64
    torch.testing.assert_close(f.response(lam), torch.exp(-lam).expand(2, -1), rtol=1e-9, atol=0)
    pcd = PolynomialFilter(Jacobi(), 3, 1, coefficients="pcd", gamma=2.0)
    factors = (2 * torch.tanh(torch.tensor(0.5))) ** torch.arange(4.0)
    torch.testing.assert_close(pcd.effective_coefficients()[:, 0].float(), factors)


def test_basis_parameters_cannot_leave_their_domain():
    f = PolynomialFilter(Jacobi(0.0, 0.0), 4, 1, learn_basis=True)
    with torch.no_grad():
        f.raw_basis["a"].fill_(-100.0)
        f.raw_basis["b"].fill_(50.0)
    values = f.basis_parameters()
    assert values["a"] > -1
    assert torch.isfinite(f.chebyshev_matrix()).all()
    assert values["b"].item() == pytest.approx(49.0, rel=1e-6)
    start = PolynomialFilter(Jacobi(-0.999, 30.0), 4, 1, learn_basis=True).double()
    start.reset_parameters()
    assert start.basis_parameters()["a"].item() == pytest.approx(-0.999, abs=1e-9)
    assert start.basis_parameters()["b"].item() == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PolynomialFilter("spline"), "Expected `basis` to be one of"),
        (lambda: PolynomialFilter(degree=-1), r"`degree` <= 4096 \(got -1\)"),
        (lambda: PolynomialFilter(channels=0), r"`channels` >= 1 \(got 0\)"),
        (lambda: PolynomialFilter(coefficients="loose"), r"'pcd'\] \(got 'loose'\)"),
        (
            lambda: PolynomialFilter(coefficients="fixed"),
            "Expected `init` with coefficients='fixed'",
        ),
        (lambda: PolynomialFilter(init="random"), r"'identity', a function .*\(got 'random'\)"),
        (lambda: PolynomialFilter(init=torch.ones(3)), r"shape \(11, 1\) \(got \(3, 1\)\)"),
        (lambda: PolynomialFilter("bernstein", learn_basis=True), "a basis with parameters"),
        (lambda: PolynomialFilter(coefficients="pcd", gamma=0.0), r"`gamma` > 0 \(got 0\)"),
        (lambda: PolynomialFilter("monomial").truncate(), "orthonormal basis for truncate"),
        (lambda: PolynomialFilter("monomial").degree_penalty(), "orthonormal basis for degree"),
        (lambda: PolynomialFilter().truncate(1.0), r"`tolerance` < 1 \(got 1\)"),
        (
            lambda: PolynomialFilter("bernstein", coefficients="nonnegative", init=-torch.ones(11)),
            r"coefficients >= 0 \(got -1\)",
        ),
        (
            lambda: PolynomialFilter(coefficients="fixed", init="identity").fit_least_squares(
                OPERATOR, SIGNAL, SIGNAL
            ),
            "trainable coefficients",
        ),
        (
            lambda: PolynomialFilter().fit_least_squares(OPERATOR, SIGNAL, SIGNAL[:, :1]),
            "x and y alike",
        ),
        (
            lambda: PolynomialFilter(channels=3).fit_least_squares(OPERATOR, SIGNAL, SIGNAL),
            r"Expected 3 channels \(got 2\)",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
