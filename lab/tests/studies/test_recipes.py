"""Recipes come from the records, by validation on splits that no search has seen."""

import dataclasses
import json
import random
from pathlib import Path

import numpy as np
import pytest
from scipy.special import eval_jacobi, roots_jacobi

from lab.studies import Context, run_study
from lab.studies._core import _protocol as protocol
from lab.studies.recipes import _candidates, _selection
from lab.studies.recipes._files import recipe_texts, split_tables, write_recipes
from longnn.config import Config
from longnn.data._synthetic import csbm
from longnn.recipes import load_recipe
from longnn.tuning import load_space
from longnn.tuning._splits import tuning_seeds

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_the_winner_of_holdout_splits_is_the_recipe(tmp_path, monkeypatch):
    plan = protocol.SearchPlan(
        trials=2, repeats=1, finalists=1, confirmations=1, splits=2, epochs=8
    )
    monkeypatch.setattr(protocol, "QUICK", plan)
    small = csbm(num_nodes=100, num_features=12, seed=1)
    monkeypatch.setattr(protocol.data, "load", lambda name, data_dir=None: small)
    quick = dataclasses.replace(_selection.QUICK, epochs=5)
    monkeypatch.setattr(_selection, "QUICK", quick)
    options = {"device": "cpu", "quick": True, "tell": lambda line: None}
    rows = ["lon-paper", "lon-default", "gpr", "jacobi"]
    run_study("accuracy", Context(tmp_path / "accuracy", models=rows, **options))
    run_study("recipes", Context(tmp_path / "recipes", **options))
    cells = json.loads((tmp_path / "recipes" / "records" / "csbm.json").read_text())["cells"]
    cell = cells["lon"]
    rounds = [cells[f"round {i + 1}"]["means"] for i in range(len(quick.rounds))]
    known = [*rows, "recipe"]  # the package has one for this graph
    named = {*known, *(f"{row}, {word}" for row in known for word in _candidates.SLOWER)}
    assert named | {f"random {i}" for i in range(quick.random)} == set(rounds[0])
    kept = list(rounds[0])[: quick.kept]
    assert set(kept) < set(rounds[1])
    assert len(rounds[1]) == quick.kept + quick.children
    children = set(rounds[1]) - set(kept)
    assert {child.partition(" > ")[0] for child in children} == set(kept)
    assert all(list(means.values()) == sorted(means.values(), reverse=True) for means in rounds)
    assert {*cell["holdout"]} == {*list(rounds[1])[: quick.kept], "recipe"}
    finalists = {"recipe": known_recipe("csbm"), **cells["round 2"]["kept"]}
    assert cell["config"] == finalists[cell["chosen"]]
    means = {key: np.mean(values) for key, values in cell["holdout"].items()}
    assert means[cell["chosen"]] == max(means.values())
    assert _selection.read_choices(tmp_path)["csbm"].scores.test == cell["test"]


def known_recipe(name):
    return _candidates.complete(load_recipe("lon", name)).to_dict()


def test_a_relative_is_carried_over_with_its_rates():
    keys = {"model": "gpr", "restart": 0.2, "lr_transform": 0.01, "dropout": 0.3, "degree": 10}
    found = _candidates.candidates({"gpr": keys})["gpr"]
    assert found.model == "lon"
    assert found.options["self_loops"] == "add"
    assert found.options["restart"] == 0.2
    assert found.options["dropout"] == 0.3
    assert found.settings.lr_transform == 0.01
    slow = _candidates.candidates({"gpr": keys})["gpr, slow"]
    assert slow == found.replace(**_candidates.SLOWER["slow"])


def test_no_split_is_used_twice():
    for plan in _selection.SIZES.values():
        groups = _selection.round_seeds(plan)
        assert [len(g) for g in groups] == [*plan.rounds, plan.holdout]
        seeds = [seed for group in groups for seed in group]
        assert len({*seeds, *tuning_seeds(plan.used)}) == len(seeds) + plan.used


@pytest.mark.parametrize("form", [{"coefficients": "pcd"}, {"coefficients": "free", "a": 0.4}])
def test_a_child_differs_in_a_few_values_that_matter_to_it(form):
    parent, generator = Config.from_dict({"model": "lon", **form}), random.Random(3)
    before, seen = parent.to_dict(), set()
    for _ in range(300):
        child = _candidates.vary(parent, generator).to_dict()
        changed = {key for key in before if child[key] != before[key]}
        assert 1 <= len(changed) <= 3
        seen |= changed
    other = {"restart"} if form["coefficients"] == "pcd" else {"gamma", "lr_factors"}
    assert seen == {*_candidates.STEPS, *_candidates.SWITCHES} - other


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


def test_committed_recipes_are_what_the_records_give(tmp_path):
    target = ROOT / "longnn" / "recipes"
    texts = recipe_texts(ROOT / "results", target)
    assert {path.name for path in target.glob("*.toml")} == set(texts)
    for name, text in texts.items():
        assert (target / name).read_text() == text, f"{name}: run `make results`"
    write_recipes(ROOT / "results", tmp_path)  # where there are none, those of records alone
    made = split_tables((tmp_path / "lon.toml").read_text())
    assert set(split_tables(texts["lon.toml"])) - set(made) == {"csbm"}
