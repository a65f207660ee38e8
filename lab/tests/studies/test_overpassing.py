"""Proposition 1 by numbers, independent of our code; and the measures of over-passing.

The proposition: enlarging all coefficients by q > 1 keeps every prediction and lowers the loss of
the nodes predicted correctly. As printed it needs three words more, each tested below: a
correctly predicted node whose scores are all equal keeps its loss (so "decreases" is strict only
where some other score is lower); the loss over all nodes may rise; and the filter must be the
last thing that acts (a bias behind it breaks the first claim).
"""

import numpy as np
import pytest
import torch

from lab.studies import overpassing as waveform
from longnn import GraphOperator
from longnn.registry import get_model

NODES, CLASSES, DEGREE = 40, 4, 6


@pytest.fixture(scope="module")
def spectral():
    """A random graph's P, embeddings t(X), coefficients and labels, by NumPy alone."""
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((NODES, NODES)) < 0.15, 1)
    A = (upper | upper.T).astype(float)
    A[0, 1] = A[1, 0] = 1
    d = np.maximum(A.sum(1), 1) ** -0.5
    P = d[:, None] * A * d
    H = rng.standard_normal((NODES, CLASSES))
    alpha = rng.standard_normal(DEGREE + 1)
    return P, H, alpha, rng.integers(0, CLASSES, NODES)


def outputs(P, H, alpha):
    """g(P) H through the eigenvectors of P."""
    x, U = np.linalg.eigh(P)
    return U @ (np.polynomial.polynomial.polyval(x, alpha)[:, None] * (U.T @ H))


def losses(scores, labels):
    """Cross entropy of each node: log sum_j exp(Y_j - Y_label)."""
    gaps = scores - np.take_along_axis(scores, labels[:, None], 1)
    return np.log(np.exp(gaps).sum(1))


@pytest.mark.parametrize("q", [1.0001, 1.5, 10.0])
def test_proposition_1(spectral, q):
    P, H, alpha, labels = spectral
    before, after = outputs(P, H, alpha), outputs(P, H, q * alpha)
    assert (before.argmax(1) == after.argmax(1)).all()
    right = before.argmax(1) == labels
    assert 0 < right.sum() < NODES
    assert (losses(after, labels)[right] < losses(before, labels)[right]).all()


def test_a_tie_does_not_decrease():
    """The printed l' < l follows from differences <= 0 only where one of them is < 0."""
    zero = np.zeros((1, CLASSES))
    assert losses(zero, np.array([0]))[0] == losses(3 * zero, np.array([0]))[0] == np.log(CLASSES)


def test_the_whole_loss_may_rise(spectral):
    P, H, alpha, labels = spectral
    rise = (
        losses(outputs(P, H, 2 * alpha), labels).sum() - losses(outputs(P, H, alpha), labels).sum()
    )
    assert rise > 0  # most nodes of random labels are predicted wrongly


@pytest.mark.parametrize(("placement", "kept"), [("output", True), ("hidden", False)])
def test_only_a_last_filter_keeps_the_prediction(placement, kept):
    """The paper says that it holds for practical models: not where a bias follows the filter."""
    torch.manual_seed(0)
    x, edges = torch.randn(60, 8), torch.randint(0, 60, (2, 150))
    operator = GraphOperator.from_edge_index(edges, num_nodes=60, symmetrize=True)
    model = get_model("lon", 8, 16, 3, placement=placement).eval()
    if model.readout is not None:  # as training would
        torch.nn.init.normal_(model.readout.bias)
    before = model(x, operator).argmax(1)
    with torch.no_grad():
        model.filters()[0].coefficients.weight.mul_(20.0)
    assert bool((model(x, operator).argmax(1) == before).all()) == kept


def test_measures_by_quadrature():
    """Amplitude, movement and share of growth against integrals by Gauss's rule."""
    rng = np.random.default_rng(0)
    f, g = rng.standard_normal((2, 8, 3))
    x, w = np.polynomial.legendre.leggauss(20)
    f_x, g_x = (np.polynomial.chebyshev.chebval(x, h) for h in (f, g))  # (channels, points)
    inner = lambda u, v: ((u * v) @ w / 2).mean()  # noqa: E731
    assert waveform.amplitude(f) == pytest.approx(np.sqrt(inner(f_x, f_x)))
    cosine = inner(f_x, g_x) / np.sqrt(inner(f_x, f_x) * inner(g_x, g_x))
    assert waveform.movement(f, g) == pytest.approx(1 - cosine)
    assert waveform.growth_share(f, 1.7 * f) == pytest.approx(1)
    along = inner(g_x - f_x, f_x) ** 2 / inner(f_x, f_x)
    assert waveform.growth_share(f, g) == pytest.approx(along / inner(g_x - f_x, g_x - f_x))
