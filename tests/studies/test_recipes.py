"""Recipes come from the records, by validation on splits that no search has seen."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from scipy.special import eval_jacobi, roots_jacobi

from longnn.config import Config
from longnn.data import csbm
from longnn.recipes import load_recipe
from longnn.studies import _paper as paper
from longnn.studies import _recipe_candidates as recipe_candidates
from longnn.studies import _recipes as recipes
from longnn.studies import _study as study
from longnn.tuning import load_space
from longnn.tuning._splits import tuning_seeds

ROOT = Path(__file__).parents[2]


def test_the_winner_of_fresh_splits_is_the_recipe(tmp_path, monkeypatch):
    budget = study.Budget(trials=2, repeats=1, finalists=1, confirmations=1, splits=2, epochs=8)
    monkeypatch.setattr(study, "QUICK", budget)
    small = csbm(num_nodes=100, num_features=12, seed=1)
    monkeypatch.setattr(study.data, "load", lambda name, data_dir=None: small)
    monkeypatch.setattr(recipes, "QUICK", {**recipes.QUICK, "epochs": 5})
    options = {"device": "cpu", "quick": True, "tell": lambda line: None}
    rows = ["lon-paper", "lon-default", "gpr", "jacobi"]
    paper.run_experiment("accuracy", paper.Context(tmp_path / "accuracy", models=rows, **options))
    paper.run_experiment("recipes", paper.Context(tmp_path / "recipes", **options))
    parts = json.loads((tmp_path / "recipes" / "csbm.json").read_text())["parts"]
    quick, part = recipes.QUICK, parts["lon"]
    race = [parts[f"round {i + 1}"]["means"] for i in range(len(quick["rounds"]))]
    known = [*rows, "recipe"]  # the package has one for this graph
    named = {*known, *(f"{row}, {word}" for row in known for word in recipe_candidates.SLOWER)}
    assert named | {f"random {i}" for i in range(quick["random"])} == set(race[0])
    parents = list(race[0])[: quick["parents"]]
    assert set(parents) < set(race[1])
    assert len(race[1]) == quick["parents"] + quick["children"]
    children = set(race[1]) - set(parents)
    assert {child.partition(" > ")[0] for child in children} == set(parents)
    assert all(list(means.values()) == sorted(means.values(), reverse=True) for means in race)
    assert {*part["fresh"]} == {*list(race[1])[: quick["parents"]], "recipe"}
    finalists = {"recipe": known_recipe("csbm"), **parts["round 2"]["parents"]}
    assert part["config"] == finalists[part["chosen"]]
    means = {key: np.mean(values) for key, values in part["fresh"].items()}
    assert means[part["chosen"]] == max(means.values())
    assert recipes.read_choices(tmp_path)["csbm"]["test"] == part["test"]


def known_recipe(name):
    return recipe_candidates.complete(load_recipe("lon", name)).to_dict()


def test_a_relative_is_carried_over_with_its_rates():
    keys = {"model": "gpr", "restart": 0.2, "lr_transform": 0.01, "dropout": 0.3, "degree": 10}
    found = recipe_candidates.candidates({"gpr": {"config": keys}})["gpr"]
    assert found.model == "lon"
    assert found.options["self_loops"] == "add"
    assert found.options["restart"] == 0.2
    assert found.options["dropout"] == 0.3
    assert found.settings.lr_transform == 0.01
    slow = recipe_candidates.candidates({"gpr": {"config": keys}})["gpr, slow"]
    assert slow == found.replace(**recipe_candidates.SLOWER["slow"])


def test_no_split_is_used_twice():
    for size in recipes.SIZES.values():
        settings = {**recipes.COMMON, **size}
        groups = recipes._seeds(settings)
        assert [len(g) for g in groups] == [*settings["rounds"], settings["fresh"]]
        seeds = [seed for group in groups for seed in group]
        assert len({*seeds, *tuning_seeds(settings["used"])}) == len(seeds) + settings["used"]


@pytest.mark.parametrize("form", [{"coefficients": "pcd"}, {"coefficients": "free", "a": 0.4}])
def test_a_child_differs_in_a_few_keys_that_matter_to_it(form):
    parent, generator = Config.from_dict({"model": "lon", **form}), random.Random(3)
    before, seen = parent.to_dict(), set()
    for _ in range(300):
        child = recipe_candidates.vary(parent, generator).to_dict()
        changed = {key for key in before if child[key] != before[key]}
        assert 1 <= len(changed) <= 3
        seen |= changed
    other = {"restart"} if form["coefficients"] == "pcd" else {"gamma", "lr_factors"}
    assert seen == {*recipe_candidates.STEPS, *recipe_candidates.SWITCHES} - other


def test_how_far_a_step_of_adam_moves_the_filter():
    """The numbers of docs/results.md: orthonormal polynomials at the ends of the spectrum."""
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


def test_committed_recipes_are_what_the_records_give():
    results, target = ROOT / "results" / "paper", ROOT / "longnn" / "recipes"
    files = recipes.recipe_files(results)
    committed = {str(p.relative_to(target)) for p in target.glob("*/*.toml")}
    assert committed - {"lon/csbm.toml"} == set(files)
    for name, text in files.items():
        assert (target / name).read_text() == text
        Config.from_toml(target / name)
