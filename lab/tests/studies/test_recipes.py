"""Recipes come from the records, by validation on splits that no search has seen."""

import json
import random

import numpy as np
import pytest
from scipy.special import eval_jacobi, roots_jacobi

from lab.records import config_of
from lab.studies import Context, _search, run_study
from lab.studies import recipes as study
from lab.studies.recipes import _choices, _files
from lab.studies.recipes._choices import read_choices
from longnn import LONGNNClassifier, recipes
from longnn.config import Config
from longnn.data import Source, csbm
from longnn.recipes import load_recipe
from longnn.tuning import load_space
from longnn.tuning._splits import tuning_seeds
from tests.commands import ROOT, TINY, longnn

CHOICES = {(c.model, c.graph): c for c in _files.deep_choices(ROOT / "results")}


@pytest.mark.slow
def test_the_winner_of_holdout_splits_is_the_recipe(tmp_path, monkeypatch):
    few = {"trials": 2, "repeats": 1, "finalists": 1, "confirmations": 1, "splits": 2, "epochs": 8}
    monkeypatch.setattr(_search, "QUICK", {**_search.PROTOCOL, **few})
    small = csbm(num_nodes=100, num_features=12, seed=1)
    monkeypatch.setattr(Context, "load", lambda self, name: small)
    quick = {**study.QUICK, "epochs": 5}
    monkeypatch.setattr(study, "QUICK", quick)
    options = {"device": "cpu", "quick": True, "tell": lambda line: None}
    rows = ["lon-paper", "lon-default", "gpr", "jacobi"]
    run_study("accuracy", Context(tmp_path / "accuracy", models=rows, **options))
    run_study("recipes", Context(tmp_path / "recipes", **options))
    cells = json.loads((tmp_path / "recipes" / "records" / "csbm.json").read_text())["cells"]
    cell = cells["lon"]
    rounds = [cells[f"round {i + 1}"]["means"] for i in range(len(quick["rounds"]))]
    known = [*rows, "recipe"]  # the package has one for this graph
    named = {*known, *(f"{row}, {word}" for row in known for word in _choices.SLOWER)}
    assert named | {f"random {i}" for i in range(quick["random"])} == set(rounds[0])
    kept = list(rounds[0])[: quick["kept"]]
    assert set(kept) < set(rounds[1])
    assert len(rounds[1]) == quick["kept"] + quick["children"]
    children = set(rounds[1]) - set(kept)
    assert {child.partition(" > ")[0] for child in children} == set(kept)
    assert all(list(means.values()) == sorted(means.values(), reverse=True) for means in rounds)
    assert {*cell["holdout"]} == {*list(rounds[1])[: quick["kept"]], "recipe"}
    finalists = {"recipe": known_recipe("csbm"), **cells["round 2"]["kept"]}
    assert cell["config"] == finalists[cell["chosen"]]
    means = {key: np.mean(values) for key, values in cell["holdout"].items()}
    assert means[cell["chosen"]] == max(means.values())
    assert read_choices(tmp_path)["csbm"].cell["test"] == cell["test"]


def known_recipe(name):
    return config_of(load_recipe("lon", name)).to_dict()


def test_a_relative_is_carried_over_with_its_rates():
    keys = {"model": "gpr", "restart": 0.2, "lr_transform": 0.01, "dropout": 0.3, "degree": 10}
    found = _choices.candidates({"gpr": keys})["gpr"]
    assert found.model == "lon"
    assert found.options["self_loops"] == "add"
    assert found.options["restart"] == 0.2
    assert found.options["dropout"] == 0.3
    assert found.settings.lr_transform == 0.01
    slow = _choices.candidates({"gpr": keys})["gpr, slow"]
    assert slow == found.replace(**_choices.SLOWER["slow"])


def test_no_split_is_used_twice():
    for plan in study.SIZES.values():
        groups = study.round_seeds(plan)
        assert [len(g) for g in groups] == [*plan["rounds"], plan["holdout"]]
        seeds = [seed for group in groups for seed in group]
        assert len({*seeds, *tuning_seeds(plan["used"])}) == len(seeds) + plan["used"]


@pytest.mark.parametrize("form", [{"coefficients": "pcd"}, {"coefficients": "free", "a": 0.4}])
def test_a_child_differs_in_a_few_values_that_matter_to_it(form):
    parent, generator = Config.from_dict({"model": "lon", **form}), random.Random(3)
    before, seen = parent.to_dict(), set()
    for _ in range(300):
        child = _choices.vary(parent, generator).to_dict()
        changed = {key for key in before if child[key] != before[key]}
        assert 1 <= len(changed) <= 3
        seen |= changed
    other = {"restart"} if form["coefficients"] == "pcd" else {"gamma", "lr_factors"}
    assert seen == {*_choices.STEPS, *_choices.SWITCHES} - other


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


def test_every_choice_is_committed():
    """The test of all recipes compares the text; this one that none is missing."""
    assert CHOICES
    known = {pair for pair in recipes.known_recipes() if pair[0].endswith("-deep")}
    assert known == set(CHOICES)


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
