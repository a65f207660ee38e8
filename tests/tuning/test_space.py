"""The search space: that of the paper, what applies to a model, and what is refused."""

import optuna
import pytest

from longnn.registry import MODELS
from longnn.training._fit import make_model
from longnn.tuning import SearchSpace, load_space
from longnn.tuning._space import Choices, Range, shipped_spaces
from tests.tuning.examples import MODELS_ONCE, draw_values

RATES = (5e-4, 1e-3, 5e-3, 1e-2, 5e-2)
DECAYS = (0.0, 5e-5, 1e-4, 5e-4, 1e-3)


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def test_the_space_of_lon_is_that_of_the_paper():
    space = load_space("paper", "lon")
    for role in ("transform", "factors", "coefficients", "basis"):
        assert space.search[f"lr_{role}"] == Choices(RATES)
        if role != "basis":
            assert space.search[f"wd_{role}"] == Choices(DECAYS)
    assert space.fixed == {
        "hidden_channels": 64,
        "degree": 10,
        "epochs": 1000,
        "patience": 200,
        "monitor": "score",
        "degree_penalty": 0.0,
        "placement": "output",
        "weight": "paper",
        "restart": 0.0,
        "coefficients": "pcd",
        "shared": False,
    }
    grid = (-0.95, *(-0.75 + 0.25 * k for k in range(11)))
    assert space.search["a"].values == space.search["b"].values == grid
    assert space.search["gamma"].values == (0.5, 0.75, 1.0, 1.25, 1.5, 1.75)
    drawn = draw_values([space], 300)
    assert {values["dropout"] for values in drawn} == {k / 10 for k in range(9)}
    assert {values["a"] for values in drawn} == set(grid), "the last of ordered choices, too"
    assert len(space.search) == 13
    assert space.dropped == ()


def test_spaces_are_restricted_to_what_a_model_has():
    models = ("mlp", "bern", "gpr", "favard", "appnp", "jacobi", "lon")
    keys = {name: set(load_space("paper", name).search) for name in models}
    of_transform = {"lr_transform", "wd_transform", "input_dropout", "dropout"}
    assert keys["mlp"] == of_transform
    filtered = of_transform | {"filter_dropout", "lr_coefficients", "wd_coefficients"}
    assert keys["bern"] == filtered
    assert keys["gpr"] == filtered | {"restart"}
    assert keys["favard"] == filtered | {"lr_basis"}
    assert keys["appnp"] == of_transform | {"filter_dropout", "restart"}
    assert keys["jacobi"] == filtered | {"lr_factors", "wd_factors", "gamma", "a", "b"}
    assert keys["lon"] == keys["jacobi"] | {"lr_basis"}
    assert "penalty" not in load_space("wide", "appnp").search
    assert "penalty" in load_space("wide", "bern").search


@pytest.mark.parametrize("name", MODELS_ONCE)
@pytest.mark.parametrize("space", shipped_spaces())
def test_every_draw_of_every_shipped_space_builds(space, name):
    loaded = load_space(space, name)
    assert {key: loaded.fixed[key] for key in MODELS[name].space} == MODELS[name].space
    for values in draw_values([loaded], 5):
        small = loaded.config(values).replace(hidden_channels=3)
        make_model(small, 4, 2)


def test_a_rate_may_be_exactly_zero():
    wide = load_space("wide", "lon")
    drawn = [values["penalty"] for values in draw_values([wide], 60)]
    assert 10 < drawn.count(0.0) < 50
    assert all(v == 0 or 1e-6 <= v <= 1e-1 for v in drawn)
    assert wide.conditional
    assert not load_space("paper", "lon").conditional


def test_the_registry_stands_between_the_file_and_its_tables():
    """Common entries of a file < what the registry says of a model < the file's own table."""
    common = {"degree": 10, "restart": 0.5, "dropout": {"choices": [0.1, 0.2]}}
    assert load_space(common, "gpr").fixed == {"degree": 10, "restart": 0.5}
    assert load_space(common, "sgc").fixed == {"degree": 2}
    assert load_space(common, "jacobi-learnable").fixed == {"degree": 10, "restart": 0.0}
    own = {**common, "models": {"sgc": {"degree": 4}, "jacobi-orthnorm": {"restart": 0.9}}}
    assert load_space(own, "sgc").fixed == {"degree": 4}
    assert load_space(own, "jacobi-orthnorm").fixed["restart"] == 0.9
    assert load_space(own, "sgc").fix({"degree": 5}).fixed == {"degree": 5}


def test_ordered_numbers_are_searched_by_their_order():
    """TPE then knows that 0.5 lies between 0.25 and 0.75; words have no order."""
    study = optuna.create_study()
    trial = study.ask()
    table = {"b": {"choices": [0.5, 0.75, 1.0]}, "weight": {"choices": ["paper"]}}
    values = SearchSpace.from_dict(table, "lon").suggest(trial)
    assert isinstance(trial.distributions["b"], optuna.distributions.IntDistribution)
    assert values["b"] == (0.5, 0.75, 1.0)[trial.params["b"]]
    assert isinstance(trial.distributions["weight"], optuna.distributions.CategoricalDistribution)
    assert not Choices((1.0, 0.5, 0.7)).ordered
    assert not Choices((False, True, 2)).ordered


def test_ranges_of_integers_and_floats():
    table = {"degree": {"low": 2, "high": 8, "step": 3}, "b": {"low": 1, "high": 2}}
    space = SearchSpace.from_dict(table, "lon")
    assert space.search["degree"] == Range(2, 8, step=3, integer=True)
    drawn = draw_values([space], 40)
    assert {values["degree"] for values in drawn} == {2, 5, 8}
    assert all(isinstance(values["b"], float) for values in drawn)


def test_an_entry_can_be_fixed():
    space = load_space("paper", "lon").fix({"a": 0.5, "epochs": 10})
    assert (space.fixed["a"], space.fixed["epochs"]) == (0.5, 10)
    assert "a" not in space.search
    with pytest.raises(ValueError, match=r"`degre`.*did you mean `degree`"):
        space.fix({"degre": 3})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs = ", r"Expected .*mine\.toml to be TOML"),
        ("epochs = " + "7" * 5000, r"Expected .*mine\.toml to be TOML"),
        ("a = " + "[" * 5000 + "]" * 5000, r"Expected .*mine\.toml to be TOML"),
        ("degre = 3", r"mine\.toml: Unknown option `degre`.*did you mean"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_name(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_space(path, "lon")


def test_a_space_from_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("epochs = 5\nb = { choices = [1, 2] }\n[models.gcn]\ndropout = {choices=[0.1]}")
    assert load_space(path, "lon").name == "mine"
    assert list(load_space(path, "gcn").search) == ["dropout"]
    with pytest.raises(ValueError, match=r"default, paper, wide or a TOML file \(got 'papr'\)"):
        load_space("papr")


GOOD = {"gamma": {"choices": [1.0, 2.0]}}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"lr_transfrom": 0.1}, "Unknown option `lr_transfrom`.*did you mean `lr_transform`"),
        ({"gama": {"choices": [1]}}, "did you mean `gamma`"),
        ({"seed": 1}, "`seed` outside the search space"),
        ({"a": {"choices": [-1.0, 0.0]}}, r"`a` > -1"),
        ({"degree": {"choices": [2.5]}}, r"`degree` to be an integer \(got 2.5\)"),
        ({"lr_basis": {"choices": [-1.0]}}, r"`lr_basis` >= 0"),
        ({"gamma": [1, 2]}, r"choices = \[1, 2\]"),
        ({"gamma": {"choices": []}}, "different `choices`"),
        ({"gamma": {"choices": [1, 1]}}, "different `choices`"),
        ({"gamma": {"choices": [[1]]}}, r"'gamma.choices\[0\]' to be text \(got \[1\]\)"),
        ({"gamma": {"choices": [1], "low": 0}}, "fields among choices, without 'low'"),
        ({"gamma": {"low": 1, "high": float("nan")}}, "`low` < `high`"),
        ({"gamma": {"low": 2, "high": 1}}, "`low` < `high`"),
        ({"gamma": {"low": 1, "high": 2, "step": 0.3}}, "whole number of steps"),
        ({"gamma": {"low": 1, "high": 2, "log": 1}}, "'gamma.log' to be true or false"),
        ({"penalty": {"low": 0.0, "high": 1.0, "log": True}}, "or_zero = true"),
        ({"gamma": {"low": 1, "hihg": 2}}, "among low, high, log, step, or_zero, without 'hihg'"),
        ({"models": 3}, r"tables \[models.NAME\]"),
        ({"models": {"lonn": {}}}, "did you mean `lon`"),
        ({"models": {"lon": 3}}, r"table \[models.lon\]"),
        ({"models": {"lon": {"heads": 2}}}, "Unknown option `heads` of mod"),
    ],
)
def test_errors(table, message):
    with pytest.raises(ValueError, match=message):
        SearchSpace.from_dict({**GOOD, **table}, "lon")


def test_more_errors():
    with pytest.raises(ValueError, match="an entry of model 'gcn' to search"):
        SearchSpace.from_dict(GOOD, "gcn")
    with pytest.raises(ValueError, match="did you mean `lon`"):
        load_space("paper", "lonn")
    with pytest.raises(ValueError, match=r"model 'gcn' \(got one for 'lon'"):
        load_space(load_space("paper", "lon"), "gcn")


def test_self_loops_are_the_same_in_all_trials():
    table = {"self_loops": {"choices": ["keep", "add"]}, "gamma": {"choices": [0.5, 1.0]}}
    with pytest.raises(ValueError, match="share the graph"):
        load_space(table, "lon")
    arcs = {"direction": {"choices": ["cover", "none"]}, "a": {"choices": [0.5, 1.0]}}
    with pytest.raises(ValueError, match="one value for `direction`: all trials share the graph"):
        load_space(arcs, "lon")
    assert load_space({**arcs, "direction": "cover"}, "lon").fixed == {"direction": "cover"}
