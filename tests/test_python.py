"""``longnn.train`` and ``longnn.load_run``: what the commands do, from Python."""

import matplotlib.figure
import numpy as np
import pytest
from torch_geometric.data import Data

import longnn
from longnn.data._synthetic import csbm
from tests.commands import CLUB, FAST, NEWCOMERS, TINY, succeed, without_report

KEYS = {"epochs": 8, "degree": 3, "device": "cpu"}


@pytest.fixture(scope="module")
def club(tmp_path_factory):
    with without_report():
        return longnn.train(CLUB, KEYS | {"repeat": 2}, tmp_path_factory.mktemp("runs") / "club")


def test_its_estimator_is_fitted_and_serves_other_graphs(club):
    estimator = longnn.load_run(club.folder).estimator
    new = longnn.data.load(NEWCOMERS)
    table = club.predict(new)
    assert estimator.predict(new).tolist() == table["predicted"].to_pylist()
    np.testing.assert_allclose(estimator.predict_proba(new)[:, 0], table["p_chess"], atol=1e-6)
    assert estimator.config() == club.config
    _, response = estimator.filter_response()
    assert response.shape == (1, 101)
    alone = longnn.LONGNNClassifier.load(club.folder / "weights.safetensors")
    np.testing.assert_array_equal(alone.predict_proba(new), estimator.predict_proba(new))
    with pytest.raises(ValueError, match="Expected models for regression"):
        longnn.LONGNNRegressor.load(club.folder / "weights.safetensors")


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = longnn.data.load("csbm", num_nodes=60, num_features=8)
    run = longnn.train(data, longnn.Config.from_dict(KEYS))
    assert run.folder is None
    assert run.predictions().num_rows == 60
    assert isinstance(run.figures.filter(), matplotlib.figure.Figure)
    bare = longnn.train(Data(**data.data), KEYS)
    assert bare.record.data.scaling == "columns"
    assert not list(tmp_path.iterdir())


def test_a_graph_in_memory_is_not_looked_for(tmp_path, no_report):
    data = longnn.data.from_data(csbm(num_nodes=60, num_features=8).data)
    longnn.train(data, KEYS, tmp_path / "run")
    loaded = longnn.load_run(tmp_path / "run")
    assert loaded.source is None
    assert loaded.predict(data).num_rows == 60
    with pytest.raises(longnn.data.DataError, match="it was in memory and is not kept"):
        loaded.evaluate()


def test_where_the_time_went_is_told(tmp_path, no_report):
    run = longnn.train(longnn.Source.resolve("csbm"), KEYS, tmp_path / "run")
    steps = ["loading", "preparing", "training", "baselines", "describing", "writing", "columns"]
    assert list(run.seconds) == [*steps, "report"]
    assert list(longnn.load_run(tmp_path / "run").record.seconds) == steps
    printed = succeed("train", *TINY, *FAST, "--output", tmp_path / "other")
    assert "\n  time " in printed
