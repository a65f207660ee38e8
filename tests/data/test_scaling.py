"""Scaling by column: NumPy in float64 is the reference."""

import dataclasses

import numpy as np
import pytest
import torch

from longnn.data import DataError
from longnn.data._features import row_normalize
from longnn.data._scaling import Scaling
from longnn.data._synthetic import csbm


def mixed(rows=500, seed=0):
    """Years, a measure, a flag of one in ten, counts that are mostly zero, constants, zeros."""
    r = np.random.default_rng(seed)
    columns = [
        r.integers(1990, 2021, rows),
        1e6 + r.standard_normal(rows),
        r.random(rows) < 0.1,
        r.integers(1, 50, rows) * (r.random(rows) < 0.15) * np.where(r.random(rows) < 0.5, -1, 1),
        r.random(rows) < 0.5,
        np.full(rows, 0.1),
        np.zeros(rows),
    ]
    return np.stack([c.astype(np.float32) for c in columns], axis=1)


SPARSE = [False, False, True, True, False, False, True]


def reference(x, fitted_on, sparse):
    x, f = x.astype(np.float64), fitted_on.astype(np.float64)
    result = np.empty_like(x)
    for k in range(x.shape[1]):
        largest, constant = abs(f[:, k]).max(), np.ptp(f[:, k]) == 0
        if sparse[k]:
            result[:, k] = x[:, k] / (largest or 1)
        elif constant:
            result[:, k] = x[:, k] - f[0, k]
        else:
            result[:, k] = (x[:, k] - f[:, k].mean()) / f[:, k].std()
    return result


@pytest.mark.parametrize("kind", ["auto", "columns", "standard"])
@pytest.mark.parametrize("block", [1, 70, 2**20])
def test_is_numpys_in_float64(kind, block, monkeypatch):
    monkeypatch.setattr("longnn.data._scaling._BLOCK", block)
    x = mixed()
    scaling = Scaling.fit(kind, torch.from_numpy(x))
    assert scaling.kind == ("columns" if kind == "auto" else kind)
    scaled = scaling.apply(torch.from_numpy(x))
    assert scaled.dtype == torch.float32
    sparse = SPARSE if kind != "standard" else [False] * len(SPARSE)
    np.testing.assert_allclose(scaled, reference(x, x, sparse), atol=1e-5, rtol=1e-6)
    np.testing.assert_array_equal(x, mixed())  # left alone


@pytest.mark.parametrize(("nonzero", "sparse"), [(3, True), (4, False)])
def test_a_fifth_is_the_limit(nonzero, sparse):
    x = torch.zeros(15, 1)
    x[:nonzero] = 2.0
    scaling = Scaling.fit("columns", x)
    assert (float(scaling.mean) == 0) == sparse
    assert (float(scaling.deviation) == 2) == sparse


def test_constants_do_not_become_noise():
    """The mean of 0.1f over 300 nodes is not 0.1f in float64."""
    x = torch.full((300, 1), 0.1)
    for kind in ("standard", "auto"):
        assert not Scaling.fit(kind, x).apply(x).any()
        assert float(Scaling.fit(kind, x).apply(x + 1)[0]) == pytest.approx(1.0)


def test_a_fitted_scaling_is_applied_to_another_graph():
    x, other = mixed(), mixed(90, seed=1) + 1
    scaled = Scaling.fit("auto", torch.from_numpy(x)).apply(torch.from_numpy(other))
    np.testing.assert_allclose(scaled, reference(other, x, SPARSE), atol=1e-5, rtol=1e-6)


def test_ready_features_are_left_alone_unless_asked():
    ready = csbm(num_nodes=60, num_features=4)
    own = dataclasses.replace(ready, ready=False)
    assert Scaling.fit("auto", ready).kind == "none"
    assert Scaling.fit("auto", ready).apply(ready.data.x) is ready.data.x
    assert Scaling.fit("auto", own).kind == "columns"
    assert Scaling.fit("standard", ready).kind == "standard"
    row = Scaling.fit("row", own)
    assert row.kind == "row"
    assert torch.equal(row.apply(own.data.x), row_normalize(own.data.x))


def test_unknown_kind():
    message = r"one of auto, none, columns, standard, row \(got 'standart'\); did you mean `stand"
    with pytest.raises(DataError, match=message):
        Scaling.fit("standart", torch.eye(2))
