"""How scores come about: what is trained together, what chooses, what no choice may see."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from lab.records import Record
from lab.studies import Context, _search, ablation, accuracy, protocols, run_study, search
from lab.studies._engine import compute_cells, record_path
from lab.studies._search import search_space
from lab.studies._training import (
    Entry,
    join_weights,
    train_rows,
)
from longnn.config import Config
from longnn.data import csbm, from_data, make_split
from longnn.training import fit, score
from tests.commands import ROOT

SMALL = {
    **_search.PROTOCOL,
    "trials": 4,
    "repeats": 1,
    "finalists": 2,
    "confirmations": 1,
    "splits": 2,
    "epochs": 12,
}


def small_graph(**options):
    return csbm(num_nodes=120, num_features=16, seed=1, **options)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(_search, "QUICK", SMALL)
    monkeypatch.setattr(Context, "load", lambda self, name: small_graph())


def plain_scores(dataset, config, splits):
    """Accuracies by the one fit of the package, one configuration on one split at a time."""
    options = {"frequencies": "train", "scale": "none", "device": "cpu"}
    fitted = [fit(dataset, [config.replace(seed=s.seed, **options)], [s])[0] for s in splits]
    return {
        name: [
            pytest.approx(score(f.predicted, dataset, getattr(f.split, name))["accuracy"], abs=1e-6)
            for f in fitted
        ]
        for name in ("val", "test")
    }


def test_dropout_left_on_is_scored_beside_the_clean_score():
    config = Config.from_dict({"model": "lon", "placement": "output", "epochs": 40, "dropout": 0.8})
    dataset = small_graph()
    splits = [make_split(dataset, "stratified", seed) for seed in (0, 1)]
    rows = {"": Entry([config])}
    row = train_rows(dataset, rows, splits, device="cpu", leave_dropout_on=True)[""]
    assert row["test_dropout_on"] != row["test"]
    assert np.mean(row["test_dropout_on"]) < np.mean(row["test"]) + 0.02


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
    assert len(cell["test"]) == SMALL["splits"]
    assert cell["search"]["trials"] == SMALL["trials"]
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
    assert "csbm, penalty" in told[0]
    cells = json.loads((tmp_path / "ablation" / "records" / "csbm.json").read_text())["cells"]
    assert cells["lon-paper"]["test"] == record["cells"]["lon-paper"]["test"]
    assert cells["penalty"]["config"]["penalty"] > 0
    assert cells["penalty"]["config"]["wd_coefficients"] == 0
    assert (tmp_path / "ablation" / "tables" / "dropout-on.md").is_file()


def test_every_row_can_be_searched():
    rows = (accuracy.ROWS, ablation.ROWS, ablation.FILTERED)
    for row in [row for of in rows for row in of.values()]:
        for form in row.forms if row.tuned else ():
            space = search_space(row, form, SMALL)
            assert space.fixed["epochs"] == SMALL["epochs"]
            for key, value in {**row.fixed, **form}.items():
                searched = isinstance(value, dict)
                assert key in space.search if searched else space.fixed[key] == value


def with_masks(count):
    """A graph of two classes with fixed masks, those of stratified splits in another order."""
    dataset = small_graph()
    splits = [make_split(dataset, "stratified", 50 + i) for i in range(count)]
    graph = dataset.data.clone()
    for name in ("train", "val", "test"):
        graph[f"{name}_mask"] = torch.stack([getattr(s, name) for s in splits], 1)
    return from_data(graph, name="masked"), splits


def config(model="gcn", **values):
    return Config.from_dict({"model": model, "epochs": 6, **values})


@pytest.mark.slow
def test_a_quick_run_fills_every_part_and_is_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(Context, "load", lambda self, name: small_graph())
    told = []
    context = Context(tmp_path / "protocols", device="cpu", quick=True, tell=told.append)
    made = {table.name: table for table in run_study("protocols", context)}
    labels = [protocols.LABELS[key] for key in protocols.QUICK_ROWS]
    assert [row[0] for row in made["stratified"].rows] == labels
    assert made["geom-gcn"].rows == []
    assert [row[0] for row in made["order"].rows] == ["csbm"]
    assert (tmp_path / "protocols" / "figures" / "stratified.png").is_file()
    names = {path.stem for path in (tmp_path / "protocols" / "records").iterdir()}
    assert names == {"csbm-stratified"}
    told.clear()
    run_study("protocols", context)
    assert not told, "what is recorded is not trained again"


def test_rows_are_the_choices_of_the_equal_budget_search():
    results = ROOT / "results"
    published = accuracy.read(results / "accuracy")
    for name in protocols.GRAPHS["stratified"]:
        found = protocols.chosen_configs(results, name)
        assert set(found) == {*published[name], "lon-recipe"}
        for key, cell in published[name].below("").items():
            table = found[key].to_dict()
            assert {k: table[k] for k in cell["config"]} == {**cell["config"]}


def test_without_the_record_of_accuracy_the_message_says_what_to_run(tmp_path):
    with pytest.raises(ValueError, match="python -m lab study accuracy --dataset cora"):
        protocols.chosen_configs(tmp_path, "cora")


def test_rows_that_train_together_are_what_they_are_alone():
    dataset = small_graph()
    splits = [make_split(dataset, "stratified", seed) for seed in (0, 1)]
    configs = {"gcn": config(), "lon": config("lon"), "mlp": config("mlp")}
    found = train_rows(dataset, {k: Entry([c]) for k, c in configs.items()}, splits, device="cpu")
    for key, one in configs.items():
        alone = plain_scores(dataset, one, splits)
        assert found[key]["test"] == alone["test"]
        assert found[key]["val"] == alone["val"]
        assert found[key]["weights"] is None


def test_what_two_rows_share_is_trained_once(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "lab.studies._training.fit",
        lambda dataset, configs, *rest, **options: (
            asked.extend(c.seed for c in configs) or fit(dataset, configs, *rest, **options)
        ),
    )
    dataset = small_graph()
    seeds = [config(seed=1000 * k) for k in range(3)]
    rows = {"one": Entry(seeds[:1]), "same": Entry([config()]), "all": Entry(seeds)}
    found = train_rows(dataset, rows, [make_split(dataset, "stratified", 4)], device="cpu")
    assert asked == [4, 1004, 2004]
    assert found["one"]["test"] == found["same"]["test"]


def test_an_ensemble_is_the_average_of_probabilities():
    dataset = small_graph()
    split = make_split(dataset, "stratified", 2)
    members = [config(seed=1000 * k) for k in range(3)]
    found = train_rows(dataset, {"e": Entry(members)}, [split], metric="roc_auc", device="cpu")
    alone = [c.replace(seed=c.seed + 2, scale="none") for c in members]
    mean = torch.stack([f.predicted for f in fit(dataset, alone, [split] * 3)]).mean(0)
    expected = score(mean, dataset, split.test)["roc_auc"]
    assert found["e"]["test"][0] == pytest.approx(expected, abs=1e-6)
    assert found["e"]["weights"] == [[pytest.approx(1 / 3, abs=1e-6)] * 3]


def test_votes_are_cast_by_validation_nodes_alone():
    dataset = small_graph()
    split = make_split(dataset, "stratified", 0)
    right = 0.8 * torch.nn.functional.one_hot(dataset.data.y, 2).double() + 0.1
    only_val = torch.where(split.val[:, None], right, 1 - right)
    weights = join_weights(torch.stack([1 - only_val, only_val]), dataset, split.val, "votes")
    assert weights.tolist() == [0.0, 1.0]


def test_a_diverged_member_has_no_weight():
    dataset = small_graph()
    split = make_split(dataset, "stratified", 0)
    predicted = torch.full((3, dataset.num_nodes, 2), 0.5)
    predicted[1] = torch.nan
    assert join_weights(predicted, dataset, split.val, "average").tolist() == [0.5, 0.0, 0.5]


def test_masks_are_those_of_the_dataset(tmp_path, monkeypatch):
    dataset, masks = with_masks(2)
    monkeypatch.setattr(Context, "load", lambda self, name: dataset)
    monkeypatch.setattr(protocols, "GRAPHS", {"geom-gcn": ("texas",)})
    plan = {**protocols.PLANS["geom-gcn"], "splits": 2, "epochs": 6}
    monkeypatch.setattr(protocols, "PLANS", {"geom-gcn": plan})
    monkeypatch.setattr(protocols, "chosen_configs", lambda results, name: {"gcn": config()})
    monkeypatch.setattr(protocols, "ENSEMBLES", {})
    context = Context(tmp_path, device="cpu", tell=lambda line: None)
    compute_cells(protocols, context)
    cell = Record(record_path(tmp_path, "texas-geom-gcn"))["gcn"]
    splits = [dataclasses.replace(split, seed=i) for i, split in enumerate(masks)]
    assert cell["test"] == plain_scores(dataset, config(), splits)["test"]
    monkeypatch.setattr(protocols, "PLANS", {"geom-gcn": {**plan, "splits": 3}})
    with pytest.raises(ValueError, match=r"Expected 3 masks of 'masked' \(got 2\)"):
        compute_cells(protocols, dataclasses.replace(context, folder=tmp_path / "more"))


def test_classes_without_test_nodes_are_counted():
    """Of a small class the published split trains on every node."""
    graph = small_graph().data.clone()
    graph.y[:8] = 2
    dataset = from_data(graph, name="three")
    found = protocols.count_untested(
        dataset, [make_split(dataset, "stratified", s) for s in range(2)]
    )
    assert found == {"classes": 3, "untested": [0, 0], "published": [1, 1]}


def test_an_ensemble_that_is_added_is_trained_alone(tmp_path, monkeypatch):
    """The place for rows to come: a list of configurations, joined by votes."""
    monkeypatch.setattr(Context, "load", lambda self, name: small_graph())
    told = []
    context = Context(
        tmp_path / "protocols", device="cpu", quick=True, models=["gcn"], tell=told.append
    )
    compute_cells(protocols, context)
    told.clear()
    two = [config("gcn"), config("mlp")]
    added = protocols.Ensemble("ensemble: two", lambda name, dataset: two, "votes")
    monkeypatch.setitem(protocols.ENSEMBLES, "two", added)
    monkeypatch.setitem(protocols.LABELS, "two", added.label)
    compute_cells(protocols, dataclasses.replace(context, models=["gcn", "two"]))
    assert ["two" in line for line in told if "%" in line] == [True]
    cell = Record(record_path(context.folder, "csbm-stratified"))["two"]
    assert [table["model"] for table in cell["configs"]] == ["gcn", "mlp"]
    assert [sum(w) for w in cell["weights"]] == pytest.approx([1, 1])


def test_the_presets_are_as_they_were_chosen_without_the_graph():
    results = Path(__file__).parents[3] / "results"
    found = {
        key: [c.to_dict() for c in protocols.ENSEMBLES[key].members("texas", results)]
        for key in ("portfolio", "portfolio-best")
    }
    assert {c["seed"] for c in found["portfolio"]} == {0}
    seeds = [c["seed"] for c in found["portfolio-best"]]
    assert len(seeds) == 2 * 16
    assert sorted(set(seeds)) == [0, protocols.STRIDE]
    assert not protocols.ENSEMBLES["portfolio-best"].members("nowhere", results)


def test_search_is_recorded_and_its_winner_tested(tmp_path, monkeypatch):
    small = csbm(num_nodes=100, num_features=12, seed=1)
    monkeypatch.setattr(Context, "load", lambda self, name: small)
    monkeypatch.setattr(search, "QUICK", {"trials": 3, "repeats": 1, "epochs": 6, "splits": 2})
    context = Context(tmp_path, device="cpu", quick=True, tell=lambda line: None)
    (table,) = run_study("search", context)
    cells = Record(record_path(tmp_path, "csbm"))
    assert cells["search"]["finished"] == 3
    config = Config.from_dict(cells["search"]["config"])
    assert config.options["weight"] == "paper"  # the paper's form
    row = plain_scores(small, config, [make_split(small, "published", seed) for seed in range(2)])
    assert row["test"] == cells["winner"]["test"]
    assert table.rows[0][1].startswith("3 (")
