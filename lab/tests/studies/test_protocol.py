"""The protocol of accuracies: what is searched, by what it is chosen, what is reported."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from lab.records import StudyRecord
from lab.studies import Context, ablation, accuracy, defaults, run_study
from lab.studies._core import _protocol as protocol
from lab.studies._core._evaluation import (
    Scores,
    _halve_validation,
    holdout_scores,
    train_splits,
)
from lab.studies._core._scores import average_ranks, difference_table, interval
from longnn.config import Config
from longnn.data import make_split
from longnn.data._synthetic import csbm
from longnn.registry import model_options

SMALL = protocol.SearchPlan(trials=4, repeats=1, finalists=2, confirmations=1, splits=2, epochs=12)


def small_graph():
    return csbm(num_nodes=120, num_features=16, seed=1)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(protocol, "QUICK", SMALL)
    monkeypatch.setattr(protocol.data, "load", lambda name, data_dir=None: small_graph())


def test_splits_are_trained_as_they_would_be_alone():
    configs = [
        Config.from_dict({"model": m, "epochs": 15, "lr_transform": lr})
        for m, lr in (("lon", 0.05), ("gcn", 0.01), ("lon", 0.01))
    ]
    together = train_splits(small_graph(), configs, [0, 1], device="cpu", protocol="stratified")
    for config, row in zip(configs, together, strict=True):
        (alone,) = train_splits(small_graph(), [config], [1], device="cpu", protocol="stratified")
        assert row.test[1] == alone.test[0]
        assert (row.a is not None) == (config.model == "lon")


def test_holdout_nodes_are_validation_nodes_that_did_not_stop_the_training():
    dataset = small_graph()
    whole = make_split(dataset, "published", 1000)
    half = _halve_validation(whole)
    assert not (half.val & half.test).any()
    assert torch.equal(half.val | half.test, whole.val)
    assert torch.equal(half.train, whole.train)
    config = Config.from_dict({"model": "mlp", "epochs": 10})
    (scores,) = holdout_scores(dataset, [config], [1000, 1001], device="cpu")
    (rows,) = train_splits(dataset, [config], [half], device="cpu")
    assert scores[0] == rows.test[0]


def test_dropout_left_on_is_scored_beside_the_clean_score():
    config = Config.from_dict({"model": "lon", "placement": "output", "epochs": 40, "dropout": 0.8})
    (row,) = train_splits(
        small_graph(), [config], [0, 1], device="cpu", protocol="stratified", leave_dropout_on=True
    )
    assert row.test_dropout_on != row.test
    assert np.mean(row.test_dropout_on) < np.mean(row.test) + 0.02


@pytest.mark.slow
def test_accuracy_and_ablation_share_rows(tmp_path, quick):
    context = Context(
        tmp_path / "accuracy",
        device="cpu",
        quick=True,
        models=["lon", "lon-paper", "gcn"],
        tell=lambda line: None,
    )
    tables = run_study("accuracy", context)
    record = json.loads((tmp_path / "accuracy" / "records" / "csbm.json").read_text())
    cell = record["cells"]["lon"]
    assert len(cell["test"]) == SMALL.splits
    assert cell["search"]["trials"] == SMALL.trials
    finalists = cell["search"]["finalists"]
    confirmed = [np.mean(f["confirmed"]) for f in finalists]
    assert cell["search"]["chosen"] == int(np.argmax(confirmed))
    assert [row[0] for row in tables[0].rows] == ["LON-GNN", "LON-GNN, paper's form", "GCN"]
    told = []
    again = Context(
        tmp_path / "ablation",
        device="cpu",
        quick=True,
        models=["lon-paper", "penalty"],
        tell=told.append,
    )
    run_study("ablation", again)
    assert len(told) == 1
    assert "norm penalty" in told[0]
    cells = json.loads((tmp_path / "ablation" / "records" / "csbm.json").read_text())["cells"]
    assert cells["lon-paper"]["test"] == record["cells"]["lon-paper"]["test"]
    assert cells["penalty"]["config"]["penalty"] > 0
    assert cells["penalty"]["config"]["wd_coefficients"] == 0
    assert (tmp_path / "ablation" / "tables" / "dropout-on.md").is_file()


def test_every_row_can_be_searched():
    rows = (accuracy.ROWS, ablation.ROWS, ablation.FILTERED)
    for row in [row for of in rows for row in of.values()]:
        for form in row.forms if row.tuned else ():
            space = protocol.search_space(row, form, SMALL)
            assert space.fixed["epochs"] == SMALL.epochs
            for key, value in {**row.fixed, **form}.items():
                searched = isinstance(value, dict)
                assert key in space.search if searched else space.fixed[key] == value


def test_the_default_is_the_candidate_of_least_regret(tmp_path, quick):
    context = Context(tmp_path, device="cpu", quick=True, tell=lambda line: None)
    (table,) = run_study("defaults", context)
    worst = [float(row[-1]) for row in table.rows]
    assert worst == sorted(worst)


def test_the_defaults_are_what_the_record_chose():
    folder = Path(__file__).parents[3] / "results" / "defaults"
    keys = {**model_options("lon"), **Config(model="lon").to_dict()}
    record = StudyRecord.load(min((folder / "records").glob("*.json")))
    (table,) = defaults.tables(folder)
    winner = defaults.candidates(record.plan(defaults.Plan))[int(table.rows[0][0])]
    assert winner
    assert {key: keys[key] for key in winner} == winner


def scores(*test):
    return Scores(val=[0.0] * len(test), test=[*test], epochs=[], best_epochs=[])


FOUND = {
    "cora": {"x": scores(0.5, 0.7), "y": scores(0.6, 0.8), "z": scores(0.5, 0.7)},
    "texas": {"x": scores(0.9, 0.9), "y": scores(0.8, 0.8), "z": scores(0.9, 0.9)},
}


def test_ranks_are_shared_between_equals():
    assert average_ranks(FOUND, {k: k for k in "xyz"}) == {"x": 2.0, "y": 2.0, "z": 2.0}
    partial = {"cora": FOUND["cora"], "texas": {"x": FOUND["texas"]["x"]}}
    assert average_ranks(partial, {"x": "x", "y": "y"}) == {"x": 1.5, "y": 1.0}


def test_variants_of_a_model_do_not_rank_against_each_other():
    ranks = average_ranks(FOUND, {"x": "one", "z": "one", "y": "other"})
    assert ranks == {"x": 1.5, "y": 2.0, "z": 1.5}


def test_variants_of_a_model_do_not_push_others_down():
    """The other models are ranked against the row that is named as the model, and no other."""
    with_variant = average_ranks(FOUND, {"x": "x", "z": "x", "y": "y"})
    alone = average_ranks(FOUND, {"x": "x", "y": "y"})
    assert with_variant == {**alone, "z": alone["x"]}


def test_differences_are_paired():
    """Splits differ by 20 points, the models by 10 on each: the interval has no width."""
    table = difference_table(FOUND, {"x": "X", "y": "Y"}, "x", "d", "")
    assert table.rows == [["Y", "**+10.00 [+10.00, +10.00]**", "**-10.00 [-10.00, -10.00]**"]]
    assert interval([0.5, 0.7]).startswith("60.00 ± ")


def test_steps_of_the_ablation_are_paired(tmp_path):
    tests = {"jacobi": [0.5, 0.6], "jacobi-mlp": [0.6, 0.7], "jacobi-orthnorm": [0.6, 0.7]}
    rest = {"fingerprint": "", "config": {}, "val": [], "epochs": [], "best_epochs": []}
    cells = {key: {**rest, "test": test} for key, test in tests.items()}
    record = {"plan": {}, "machines": [], "cells": cells}
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "cora.json").write_text(json.dumps(record))
    steps = next(t for t in ablation.tables(tmp_path) if t.name == "steps")
    assert [row[1] for row in steps.rows] == [
        "**+10.00 [+10.00, +10.00]**",
        "+0.00 [+0.00, +0.00]",
        "",
    ]
