"""Weights as Beta densities, distances against SciPy, and a record that grows by datasets."""

import numpy as np
import pytest
import scipy.sparse
import scipy.stats

from lab.records import Record
from lab.studies import Context, basis, run_study
from lab.studies._engine import compute_cells
from lab.studies.basis import compare_weights, distance, fit_moments, label_mean, weight_moments


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


def test_label_mean_by_eigenvectors():
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((30, 30)) < 0.2, 1)
    A = (upper | upper.T).astype(float)
    d = np.maximum(A.sum(1), 1) ** -0.5
    P = d[:, None] * A * d
    labels = rng.integers(0, 3, 30)
    x, U = np.linalg.eigh(P)
    Y = np.eye(3)[labels]
    energy = ((U.T @ (Y - Y.mean(0))) ** 2).sum(1)
    wanted = (energy * (1 - x)).sum() / energy.sum()
    assert label_mean(scipy.sparse.csr_matrix(P), labels) == pytest.approx(wanted)


def make_cell(a, b, variance, histogram):
    start = {"a": 0.0, "b": 1.0}
    return {
        "start": start,
        "a": a,
        "b": b,
        "mean": 1.0,
        "variance": variance,
        "histogram": histogram,
    }


def test_weights_are_compared_with_the_spectrum():
    flat = [0.01] * 100
    found = compare_weights(make_cell([0.0, 0.0], [0.0, 2.0], 1 / 3, flat))
    assert found["after"][0] == pytest.approx(0, abs=1e-9)
    assert found["after"][1] > found["before"] > 0.1
    assert found["fitted"] == pytest.approx((0, 0))
    assert found["best"] == pytest.approx(0, abs=1e-9)


def test_quick_run_dataset_by_dataset(tmp_path):
    """A record of one graph has its tables; a second graph is added to it."""
    for name, count in (("csbm", 1), ("digits", 2)):
        context = Context(tmp_path, device="cpu", quick=True, datasets=[name], tell=lambda _: None)
        learned, answer = run_study("basis", context)
        assert len(learned.rows) == count
        assert answer.rows[0][1].endswith(f"of {count}")
    cell = Record(tmp_path / "records" / "record.json")["csbm"]
    assert cell["mean"] == pytest.approx(1, abs=1e-3)  # no self loops: the trace of P is 0
    assert sum(cell["histogram"]) == pytest.approx(1, abs=1e-2)
    assert cell["a"] != [0.0, 0.0]
    assert (tmp_path / "figures" / "weights.png").stat().st_size < 200_000


def test_an_unknown_dataset_is_refused(tmp_path):
    with pytest.raises(ValueError, match="cora"):
        compute_cells(basis, Context(tmp_path, datasets=["corra"]))
