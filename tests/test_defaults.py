"""One source of defaults: command, estimator, search and model agree, key by key and bit by bit."""

import pytest

from longnn import LONGNN, LONGNNClassifier, LONGNNRegressor, get_model
from longnn.config import Config
from longnn.data import load
from longnn.registry import MODELS
from tests.commands import TINY, succeed_json

pytestmark = pytest.mark.usefixtures("no_report")
DEFAULTS = {
    "model": "lon",
    "hidden_channels": 64,
    "degree": 10,
    "a": 0.5,
    "b": 1.0,
    "seed": 0,
    "dropout": 0.2,
    "filter_dropout": 0.4,
    "input_dropout": 0.5,
    "epochs": 1000,
    "patience": 200,
    "lr_transform": 0.05,
    "lr_coefficients": 0.002,
    "lr_factors": 0.05,
    "lr_basis": 0.002,
    "wd_transform": 5e-5,
    "wd_coefficients": 0.0,
    "penalty": 0.0,
}


@pytest.mark.parametrize("model", MODELS)
def test_an_estimator_without_parameters_is_the_default_configuration(model):
    for estimator in (LONGNNClassifier, LONGNNRegressor):
        assert estimator(model=model).config() == Config(model=model)
    assert LONGNNClassifier().config() == Config()


def test_recorded_runs_rely_on_these_values():
    """Whoever changes one changes what every configuration without it means."""
    table = Config().to_dict()
    assert {key: table[key] for key in DEFAULTS} == DEFAULTS


def test_the_command_trains_with_what_the_estimator_trains_with(tmp_path):
    record = succeed_json("train", *TINY, "--set", "epochs=2", "--output", tmp_path / "run")
    graph = load("csbm", num_nodes=60, num_features=8, phi=-0.6)
    fitted = LONGNNClassifier(epochs=2).fit(graph)
    assert record["config"] == fitted.trained_.config.to_dict()
    assert Config.from_toml(tmp_path / "run" / "config.toml") == fitted.trained_.config
    voting = {m["name"] for m in record["repeats"][0]["members"]}
    assert set(fitted.trained_.members) <= voting


@pytest.mark.parametrize("model", MODELS)
def test_a_model_alone_has_the_options_of_a_configuration(model):
    """``LONGNN(16, 64, 2)`` is what ``longnn train`` would build."""
    built = get_model(model, 5, 8, 3)
    options = Config(model=model).options
    assert repr(built) == repr(get_model(model, 5, 8, 3, **options))
    assert options == MODELS[model].options


def test_the_model_of_the_paper_is_a_form_and_not_the_default():
    (ours,) = LONGNN(5, 8, 3).filters()
    assert (ours.kind, ours.channels, ours.basis.weight) == ("free", 1, "probability")
