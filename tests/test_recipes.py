"""Recipes that come with the package: each is valid, says its origin, and is what is trained."""

import pytest

from longnn import LONGNNClassifier, LONGNNRegressor, recipes
from longnn.config import Config
from longnn.data._catalog import known_names
from longnn.registry import MODELS, model_options
from tests.commands import CLUB, FAST, TINY, longnn, succeed_json


@pytest.mark.parametrize(("model", "dataset"), recipes.known_recipes())
def test_every_recipe_is_a_configuration(model, dataset):
    keys = recipes.load_recipe(model, dataset)
    assert Config.from_dict(keys).model == keys["model"] == model
    assert dataset in known_names()
    text = recipes._HERE.joinpath(f"{model}.toml").read_text()
    above = text.partition(f"[{dataset}]\n")[0].rpartition("\n\n")[2].splitlines()
    assert len(above) >= 2, "where it comes from"
    assert all(line.startswith("# ") for line in above)


@pytest.mark.parametrize(("model", "dataset"), recipes.known_recipes())
def test_every_recipe_is_complete(model, dataset):
    """It means the same after defaults have changed; only the machine is left to the user."""
    keys = recipes.load_recipe(model, dataset)
    left = {"preset", "time_limit", "seed", "repeat", "device", "scale", "split"}
    left |= {"calibrate", "threshold", "baselines"}  # what happens after training
    assert not left & set(keys)
    assert keys["frequencies"] == "train"  # its score was measured so
    assert {*keys, *left} == set(Config.from_dict(keys).to_dict())


def test_recipes_are_known_by_model_and_dataset():
    assert ("lon", "csbm") in recipes.known_recipes()
    assert {model for model, _ in recipes.known_recipes()} <= set(MODELS)
    with pytest.raises(ValueError, match=r"model 'lon' \(got 'koala'\).* of lon for .*csbm"):
        recipes.load_recipe("lon", "koala")
    with pytest.raises(ValueError, match=r"model 'none' \(got 'csbm'\).* of .*lon.* for .*csbm"):
        recipes.load_recipe("none", "csbm")


def test_train_uses_it_and_what_is_said_overrides_it(tmp_path, no_report):
    (tmp_path / "c.toml").write_text("lr_basis = 0.5\npatience = 7\n")
    given = ("--config", tmp_path / "c.toml", "--set", "patience=9")
    arguments = ("train", *TINY, *FAST, *given, "--recipe", "--output", tmp_path / "run")
    config = succeed_json(*arguments)["config"]
    recipe = recipes.load_recipe("lon", "csbm")
    said = {"epochs": 8, "degree": 3, "lr_basis": 0.5, "patience": 9}
    assert {key: config[key] for key in recipe} == {**recipe, **said}


def test_train_says_that_it_did(tmp_path, no_report):
    arguments = ("train", *TINY, *FAST, "--recipe", "--output")
    result = longnn(*arguments, tmp_path / "a")
    assert "note: started from the recipe of LON-GNN for csbm\n" in result.stderr
    assert longnn(*arguments, tmp_path / "b", "--quiet").output == ""


@pytest.mark.parametrize("graph", [[CLUB], ["csbm", "--model", "mlp"]], ids=["own", "mlp"])
def test_without_a_recipe_nothing_is_trained(graph, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recipes, "known_recipes", lambda: [("lon", "csbm")])
    result = longnn("train", *graph, "--recipe")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: Expected ")
    assert "csbm" in line
    assert not list(tmp_path.iterdir())


def test_a_resumed_run_takes_no_recipe(tmp_path):
    result = longnn("train", "--resume", tmp_path, "--recipe")
    assert "got --recipe too" in result.stderr


def test_an_estimator_from_a_recipe_is_configured_like_a_run():
    recipe = Config.from_dict(recipes.load_recipe("lon", "csbm"))
    estimator = LONGNNClassifier.from_recipe("csbm", seed=4, device="cpu")
    config = estimator.config()
    assert config.settings == recipe.settings
    whole = {**model_options("lon"), **recipe.options}
    assert config.options == {key: whole[key] for key in config.options}
    assert set(recipe.options) <= set(config.options)
    assert (config.seed, config.hidden_channels) == (4, recipe.hidden_channels)
    assert LONGNNRegressor.from_recipe("csbm", degree=2).config().options["degree"] == 2
    with pytest.raises(ValueError, match="recipe for model 'lon'"):
        LONGNNClassifier.from_recipe("koala")
