"""Sparse features: what holds for dense ones, without ever making them dense."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from longnn import LONGNNClassifier
from longnn.config import Config
from longnn.data import DataError, describe, from_data
from longnn.data._features import row_normalize
from longnn.data._scaling import Scaling
from longnn.data._synthetic import csbm
from longnn.matrices import csr, csr_from_scipy


def words(rows=60, columns=40, seed=0):
    """Few words per node, one row of zeros, one repeated row; dense."""
    rng = np.random.default_rng(seed)
    found = sp.random_array((rows, columns), density=0.08, rng=rng).toarray().astype(np.float32)
    empty = ~found.any(axis=1)
    found[empty, 1] = 1.0 + np.flatnonzero(empty)
    found[3], found[5] = 0.0, found[4]
    return torch.from_numpy(found)


def mixed(rows=60):
    """Words, and columns that are dense: a year, a constant, a flag of one in two."""
    x = words(rows)
    rng = np.random.default_rng(1)
    year = torch.from_numpy(rng.integers(1990, 2020, rows).astype(np.float32))
    flag = torch.from_numpy((rng.random(rows) < 0.5).astype(np.float32))
    x[:, 3], x[:, 17], x[:, 39] = year, 0.1, flag
    return x


def sparse(x):
    return csr_from_scipy(sp.csr_array(x.numpy()))


def pair(x):
    """One graph, its features dense and sparse."""
    graph = csbm(num_nodes=len(x), num_features=4, seed=2).data
    made = [
        from_data(Data(x=form, edge_index=graph.edge_index, y=graph.y))
        for form in (x, x.to_sparse())
    ]
    assert made[0].data.x.layout is torch.strided
    assert made[1].data.x.layout is torch.sparse_csr
    return made[0], made[1]


@pytest.fixture
def never_dense(monkeypatch):
    def refuse(self, *args, **kwargs):
        assert self.layout is torch.strided, "sparse features were made dense"
        return self

    monkeypatch.setattr(Tensor, "to_dense", refuse)
    monkeypatch.setattr(sp.csr_array, "toarray", lambda *_: pytest.fail("made dense"))
    monkeypatch.setattr(sp.csr_array, "todense", lambda *_: pytest.fail("made dense"))


def test_the_dataset_is_the_same(never_dense):
    dense, few = pair(words())
    for name in ("num_nodes", "num_edges", "num_features", "num_classes", "notes"):
        assert getattr(few, name) == getattr(dense, name)
    assert repr(few) == repr(dense)
    cards = [dataclasses.replace(describe(d), fingerprint="") for d in (dense, few)]
    assert cards[0] == cards[1]
    assert (cards[1].zero_rows, cards[1].duplicate_rows) == (1, 1)


def test_the_fingerprint_is_of_the_values():
    _, few = pair(words())
    _, again = pair(words())
    assert few.fingerprint() == again.fingerprint()
    wide = few.data.x
    data = few.data.clone()
    data.x = csr(wide.crow_indices().long(), wide.col_indices().long(), wide.values(), 40)
    assert dataclasses.replace(few, data=data).fingerprint() == few.fingerprint()
    others = []
    for change in ("value", "place", "width"):
        x = words()
        if change == "value":
            x[x > 0] += 1
        elif change == "place":
            x = x.roll(1, dims=1)
        else:
            x = torch.cat([x, torch.zeros(len(x), 1)], dim=1)
        others.append(pair(x)[1].fingerprint())
    assert len({few.fingerprint(), *others}) == 4


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda x: x.to_sparse_coo(), r"dense or sparse_csr \(got torch.sparse_coo\); see"),
        (lambda x: x.double(), r"float32 \(nodes, features\) \(got torch.float64 \(60, 40\)\)"),
        (lambda x: rebuilt(x, col=x.col_indices().flip(0)), "sorted columns, none twice, and no"),
        (lambda x: rebuilt(x, values=x.values() * 0), "no stored zero"),
        (lambda x: rebuilt(x, col=x.col_indices() + 40), r"columns of `x` within 0..39"),
        (lambda x: rebuilt(x, values=x.values() / 0), r"got inf at node 0, \d+ such in all"),
    ],
)
def test_what_is_not_of_the_form(break_it, message):
    _, few = pair(words())
    data = few.data.clone()
    data.x = break_it(data.x)
    with pytest.raises(DataError, match=message):
        dataclasses.replace(few, data=data)


def rebuilt(x, *, col=None, values=None):
    col, values = x.col_indices() if col is None else col, x.values() if values is None else values
    return csr(x.crow_indices(), col, values, x.shape[1])


def test_a_gap_is_named_by_its_place():
    x = words()
    x[7, 11] = float("nan")
    with pytest.raises(DataError, match=r"row 8, column 11: .*got nan at node 7, 1 such") as error:
        from_data(Data(x=x.to_sparse(), edge_index=torch.zeros(2, 0, dtype=torch.long)))
    assert (error.value.row, error.value.column) == (8, 11)


def test_mostly_nonzero_becomes_dense():
    x = torch.ones(4, 3).to_sparse()
    assert from_data(Data(x=x, edge_index=torch.tensor([[0], [1]]))).data.x.layout is torch.strided


@pytest.mark.parametrize("kind", ["none", "row", "columns"])
@pytest.mark.parametrize("make", [words, mixed])
def test_scaling_of_the_same_values(kind, make):
    x = make()
    dense, few = Scaling.fit(kind, x), Scaling.fit(kind, sparse(x))
    if dense.mean is not None:
        torch.testing.assert_close(few.mean, dense.mean, rtol=1e-14, atol=0)
        torch.testing.assert_close(few.deviation, dense.deviation, rtol=1e-14, atol=0)
    assert torch.equal(few.apply(sparse(x)).to_dense(), dense.apply(x))
    other = words(seed=5)  # fitted on one form, applied to the other
    assert torch.equal(few.apply(other), dense.apply(sparse(other)).to_dense())


def test_standard_divides_by_the_deviation_and_leaves_the_mean():
    x = mixed()
    scaling = Scaling.fit("standard", sparse(x))
    deviation = x.numpy().astype(np.float64).std(axis=0)
    deviation[np.ptp(x.numpy(), axis=0) == 0] = 1.0  # the constants, 0.1 among them
    np.testing.assert_allclose(scaling.deviation, deviation, rtol=1e-12)
    assert not scaling.mean.any()
    np.testing.assert_allclose(
        scaling.apply(sparse(x)).to_dense(), x.numpy() / deviation, rtol=1e-6
    )
    # On dense features it is what it was, and what was fitted there applies to sparse ones.
    full = Scaling.fit("standard", x)
    assert torch.equal(full.apply(sparse(x)).to_dense(), full.apply(x))


def test_values_that_vanish_are_dropped():
    x = torch.zeros(2, 6)
    x[0, 0], x[0, 1] = 1e-30, 1e30
    scaled = row_normalize(sparse(x))
    assert torch.equal(scaled.to_dense(), row_normalize(x))
    assert scaled.values().tolist() == [1.0]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("scale", ["none", "columns", "row"])
def test_training_gives_the_same_bits(scale, precision):
    x = words(90)
    x[:, 7] = torch.linspace(1990, 2020, 90)  # one dense column
    predicted = []
    for dataset in pair(x):
        config = Config.from_dict(
            {"epochs": 4, "device": "cpu", "scale": scale, "precision": precision, "dropout": 0.5}
        )
        estimator = LONGNNClassifier.from_config(config).fit(dataset)
        predicted.append(estimator.predict_proba())
    np.testing.assert_array_equal(*predicted)


def test_the_estimator_takes_scipy_and_torch_sparse():
    x = words()
    graph = csbm(num_nodes=60, num_features=4).data
    matrix = sp.csc_array(x.numpy())
    found = [
        LONGNNClassifier(epochs=2, preset="fast", device="cpu").fit(
            (form, graph.edge_index, graph.y)
        )
        for form in (x, matrix, sp.csr_matrix(x.numpy()), x.to_sparse(), x.to_sparse_csr())
    ]
    for estimator in found[1:]:
        np.testing.assert_array_equal(estimator.predict_proba(), found[0].predict_proba())
    on_another = found[0].predict_proba((matrix, graph.edge_index, graph.y))
    np.testing.assert_array_equal(on_another, found[0].predict_proba())
