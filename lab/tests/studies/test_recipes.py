"""Recipes come from the records, by validation on splits that no search has seen."""

import numpy as np
import pytest
from scipy.special import eval_jacobi, roots_jacobi

from lab.records import config_of
from lab.studies import depth
from longnn import LONGNNClassifier, recipes
from longnn.config import Config
from longnn.data import Source
from longnn.recipes import load_recipe
from longnn.tuning import load_space
from tests.commands import ROOT, longnn


def test_how_far_a_step_of_adam_moves_the_filter():
    """The numbers of docs/results/accuracy.md: how large orthonormal polynomials are."""
    a, b = (Config(model="lon").options[key] for key in ("a", "b"))
    k = np.arange(11)
    low, high = (eval_jacobi(k, a, b, x) for x in (1.0, -1.0))  # x = 1 is eigenvalue 0
    x, w = roots_jacobi(20, a, b)
    norms = np.sqrt([(w * eval_jacobi(i, a, b, x) ** 2).sum() / w.sum() for i in k])
    assert np.round(np.abs(low / norms)[10]) == 9
    assert np.round(np.abs(high / norms)[10]) in (27, 28)
    slowest = min(load_space("compact", "lon").source["lr_coefficients"]["choices"])
    assert slowest == 0.005
    assert np.isclose(slowest * np.abs(low / norms).sum(), 0.28, atol=0.005)


@pytest.mark.parametrize(
    ("graph", "part"), [("minesweeper", depth.TUNED), ("wisconsin", depth.ARCS)]
)
def test_a_recipe_with_blocks_has_the_best_validation_of_its_part(graph, part):
    record = depth.read_part(ROOT / "results" / "depth", part)[graph]
    cells = [record[key] for key in depth.LABELS[part] if key in record and "magnetic" not in key]
    ours = [cell for cell in cells if cell["configs"][0].get("model") == "lon-deep"]
    best = config_of(max(ours, key=lambda cell: np.mean(cell["val"]))["configs"][0])
    options = config_of(load_recipe("lon-deep", graph)).options
    assert {**options, "direction": None} == {**best.options, "direction": None}


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
    load = "longnn.estimator._inputs.load_recipe"
    monkeypatch.setattr(load, lambda model, graph: dict(recipe))
    assert LONGNNClassifier.from_recipe("squirrel", model="lon-deep").directed is True
    assert Source.resolve("squirrel").options == {}
