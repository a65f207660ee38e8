"""Recipes of deep models: the winners by validation, with their arcs, used by the command line."""

import json

import numpy as np
import pytest

from lab.studies._core._evaluation import as_trained
from lab.studies.depth._plan import KEYS, ROWS
from lab.studies.recipes import _deep
from lab.studies.recipes._files import recipe_texts
from lab.tests.studies.test_recipes import ROOT
from longnn import LONGNNClassifier, recipes
from longnn.config import Config
from longnn.data import Source
from tests.commands import TINY, longnn


def cells(graph, part):
    """The rows of a record, read without the study's code."""
    path = ROOT / "results" / "depth" / "records" / f"{graph}-{part}.json"
    return json.loads(path.read_text())["cells"]


CHOICES = {(c.model, c.graph): c for c in _deep.deep_choices(ROOT / "results")}


@pytest.mark.parametrize(("graph", "part"), [("wisconsin", "arcs"), ("squirrel", "arcs")])
def test_the_recipe_has_the_best_validation_scores(graph, part):
    rows = {
        key: cell
        for key, cell in cells(graph, part).items()
        if key in KEYS[part] and ROWS[key].row.model == "lon-deep"
    }
    assert len(rows) > 1
    best = max(rows, key=lambda key: np.mean(rows[key]["val"]))
    chosen = CHOICES["lon-deep", graph]
    assert chosen.cell.val == rows[best]["val"]
    recipe = recipes.load_recipe("lon-deep", graph)
    said = as_trained(Config.from_dict(rows[best]["configs"][0])).to_dict()
    assert recipe == {k: said[k] for k in recipe if k != "direction"} | (
        {"direction": "cover"} if ROWS[best].directed else {}
    )
    assert ("direction" in recipe) == ROWS[best].directed


def test_a_longer_search_comes_first():
    """But only where it saw the features that the graph has by its name."""
    (longer,) = (cell for key, cell in cells("minesweeper", "tuned").items() if key == "narrow")
    assert CHOICES["lon-deep", "minesweeper"].cell.val == longer["val"]
    assert "wide" in cells("photo", "tuned")  # of raw features
    assert CHOICES["lon-deep", "photo"].cell.val == cells("photo", "deep")["lon-deep"]["val"]


def test_every_choice_is_committed():
    """The test of all recipes compares the text; this one that none is missing."""
    assert CHOICES
    known = {pair for pair in recipes.known_recipes() if pair[0].endswith("-deep")}
    assert known == set(CHOICES)


def test_the_words_above_a_recipe_name_its_score_and_splits():
    text = recipe_texts(ROOT / "results", ROOT / "longnn" / "recipes")["lon-deep.toml"]
    blocks = {b.partition("]")[0].rpartition("[")[2]: b for b in text.split("\n\n")}
    mean = 100 * np.mean(CHOICES["lon-deep", "minesweeper"].cell.test)
    assert f"# Test ROC AUC {mean:.2f} % (" in blocks["minesweeper"]
    assert "over the fixed splits 0 to 9." in blocks["minesweeper"]
    for (model, graph), chosen in CHOICES.items():
        if model == "lon-deep":
            arcs = chosen.config.get("direction") is not None
            assert ("directed=true" in blocks[graph]) == arcs


def test_a_recipe_of_arcs_keeps_them(monkeypatch, tmp_path):
    """The command line loads the graph with its arcs, unless it is told not to."""
    recipe = {"model": "lon-deep", "direction": "cover", "blocks": 2}
    monkeypatch.setattr(recipes, "known_recipes", lambda: [("lon-deep", "squirrel")])
    monkeypatch.setattr(recipes, "load_recipe", lambda model, graph: recipe)
    asked = []

    def train(source, config, *rest, **options):
        asked.append(source.options)
        raise ValueError("Expected nothing to be trained here")

    monkeypatch.setattr("longnn.runs.train", train)
    command = ("train", "squirrel", "--model", "lon-deep", "--recipe", "--output", tmp_path / "r")
    said = longnn(*command).stderr
    assert "note: arcs are kept, as the recipe wants (directed=true)" in said
    longnn(*command, "--data", "directed=false")
    assert asked == [{"directed": True}, {"directed": False}]
    load = "longnn.estimator._parameters.load_recipe"
    monkeypatch.setattr(load, lambda model, graph: dict(recipe))
    assert LONGNNClassifier.from_recipe("squirrel", model="lon-deep").directed is True
    assert Source.resolve("squirrel").options == {}


def test_without_arcs_nothing_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("longnn.runs._train.report.write_report", lambda folder: None)
    flags = ("--recipe", "--set", "epochs=2", "--device", "cpu", "--output", tmp_path / "run")
    assert "arcs" not in longnn("train", *TINY, *flags).stderr
