"""Honest protocols: what is trained, what chooses, and how tables and ensembles are made."""

import dataclasses
from pathlib import Path

import pytest
import torch

from lab.records import StudyRecord
from lab.studies import Context, run_study
from lab.studies._core._context import record_path
from lab.studies._core._evaluation import Scores, train_splits
from lab.studies._core._printed import UNIFORM_SPLIT
from lab.studies._core._protocol import read_results
from lab.studies.protocols import _rows, _run, _search
from lab.studies.protocols._order import order_table, ranks_table, winner
from lab.studies.protocols._plan import GRAPHS, PLANS, SEARCHED, Draws, Plan
from lab.studies.protocols._run import ClassesCell, count_untested
from lab.studies.protocols._tables import scores_table, tables
from lab.studies.protocols._train import Entry, RowCell, join_weights, train_rows
from longnn.config import Config
from longnn.data import from_data, make_split
from longnn.data._synthetic import csbm
from longnn.training import fit, score
from tests.commands import ROOT


def small_graph(**options):
    return csbm(num_nodes=90, num_features=8, seed=1, **options)


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


def at(*test):
    return Scores(val=[], test=[*test], epochs=[], best_epochs=[])


def test_a_quick_run_fills_every_part_and_is_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(_run.data, "load", lambda name, data_dir=None: small_graph())
    told = []
    context = Context(tmp_path / "protocols", device="cpu", quick=True, tell=told.append)
    made = {table.name: table for table in run_study("protocols", context)}
    labels = [_rows.LABELS[key] for key in _rows.QUICK_ROWS]
    assert [row[0] for row in made["stratified"].rows] == labels
    assert {row[0] for row in made["masks"].rows} >= {"LON-GNN", "GPRGNN", "GCN"}
    assert made["geom-gcn"].rows == []
    assert [row[0] for row in made["order"].rows] == ["csbm"]
    assert (tmp_path / "protocols" / "figures" / "stratified.png").is_file()
    names = {path.stem for path in (tmp_path / "protocols" / "records").iterdir()}
    assert names == {"csbm-stratified", "csbm-searched"}
    told.clear()
    run_study("protocols", context)
    assert not [line for line in told if "%" in line], "what is recorded is not trained again"


def test_rows_are_the_choices_of_the_equal_budget_search():
    results = ROOT / "results"
    published = read_results(results / "accuracy")
    for name in GRAPHS["stratified"]:
        found = _rows.chosen_configs(results, name)
        assert set(found) == {*published[name], "lon-recipe"}
        for key, cell in published[name].items():
            table = found[key].to_dict()
            assert {k: table[k] for k in cell.config} == {**cell.config}


def test_without_the_record_of_accuracy_the_message_says_what_to_run(tmp_path):
    with pytest.raises(ValueError, match="python -m lab study accuracy --dataset cora"):
        _rows.chosen_configs(tmp_path, "cora")


def test_rows_that_train_together_are_what_they_are_alone():
    dataset = small_graph()
    splits = [make_split(dataset, "stratified", seed) for seed in (0, 1)]
    configs = {"gcn": config(), "lon": config("lon"), "mlp": config("mlp")}
    found = train_rows(dataset, {k: Entry([c]) for k, c in configs.items()}, splits, device="cpu")
    for key, one in configs.items():
        (alone,) = train_splits(dataset, [one], splits, device="cpu")
        assert found[key].test == alone.test
        assert found[key].val == alone.val
        assert found[key].weights is None


def test_what_two_rows_share_is_trained_once(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "lab.studies.protocols._train.fit",
        lambda dataset, configs, *rest, **options: (
            asked.extend(c.seed for c in configs) or fit(dataset, configs, *rest, **options)
        ),
    )
    dataset = small_graph()
    seeds = [config(seed=1000 * k) for k in range(3)]
    rows = {"one": Entry(seeds[:1]), "same": Entry([config()]), "all": Entry(seeds)}
    found = train_rows(dataset, rows, [make_split(dataset, "stratified", 4)], device="cpu")
    assert asked == [4, 1004, 2004]
    assert found["one"].test == found["same"].test


def test_an_ensemble_is_the_average_of_probabilities():
    dataset = small_graph()
    split = make_split(dataset, "stratified", 2)
    members = [config(seed=1000 * k) for k in range(3)]
    found = train_rows(dataset, {"e": Entry(members)}, [split], metric="roc_auc", device="cpu")
    alone = [c.replace(seed=c.seed + 2, scale="none") for c in members]
    mean = torch.stack([f.predicted for f in fit(dataset, alone, [split] * 3)]).mean(0)
    expected = score(mean, dataset, split.test)["roc_auc"]
    assert found["e"].test[0] == pytest.approx(expected, abs=1e-6)
    assert found["e"].weights == [[pytest.approx(1 / 3, abs=1e-6)] * 3]


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


def test_the_search_sees_no_test_node_and_keeps_the_best(monkeypatch):
    seen = []

    def spy(dataset, configs, splits, *, device):
        seen.extend(splits)
        assert {c.settings.epochs for c in configs} == {4}
        return fit_all(dataset, configs, splits, device=device)

    fit_all = _search.fit_all
    monkeypatch.setattr(_search, "fit_all", spy)
    dataset, masks = with_masks(3)
    plan = Plan("fixed", "roc_auc", 3, epochs=20, draws=Draws(3, splits=2, epochs=4, patience=4))
    rows = {key: _rows.FAMILIES[key] for key in ("gcn", "mlp")}
    found = _search.search_families(dataset, rows, plan, device="cpu")
    assert [int(split.test.sum()) for split in seen] == [0, 0]
    assert torch.equal(seen[1].val, masks[1].val)
    for cell in found.values():
        means = [sum(scores) for scores in cell.val]
        assert means[cell.chosen] == max(means)
        assert cell.configs[cell.chosen]["monitor"] == "roc_auc"
        assert cell.configs[cell.chosen]["epochs"] == 20


def test_every_family_draws_the_same_number():
    plan = PLANS[SEARCHED]
    drawn = {key: _search.draw_candidates(row, plan) for key, row in _rows.FAMILIES.items()}
    assert {len(configs) for configs in drawn.values()} == {16}
    placements = [c.options["placement"] for c in drawn["lon"]]
    assert placements.count("features") == 3
    assert {"output", "hidden"} <= set(placements)
    assert len(_rows.FAMILIES) == 14


def test_masks_are_those_of_the_dataset(tmp_path, monkeypatch):
    dataset, masks = with_masks(2)
    monkeypatch.setattr(_run.data, "load", lambda name, data_dir=None: dataset)
    monkeypatch.setattr(_run, "GRAPHS", {"geom-gcn": ("texas",)})
    plan = Plan("geom-gcn", "accuracy", splits=2, epochs=6)
    monkeypatch.setattr(_run, "PLANS", {"geom-gcn": plan})
    monkeypatch.setattr(_run, "chosen_configs", lambda results, name: {"gcn": config()})
    monkeypatch.setattr(_rows, "ENSEMBLES", {})
    context = Context(tmp_path, device="cpu", tell=lambda line: None)
    _run.run(context)
    cell = StudyRecord.load(record_path(tmp_path, "texas-geom-gcn")).get("gcn", RowCell)
    splits = [dataclasses.replace(split, seed=i) for i, split in enumerate(masks)]
    (expected,) = train_splits(dataset, [config()], splits, device="cpu")
    assert cell.test == expected.test
    monkeypatch.setattr(_run, "PLANS", {"geom-gcn": dataclasses.replace(plan, splits=3)})
    with pytest.raises(ValueError, match=r"Expected 3 masks of 'masked' \(got 2\)"):
        _run.run(dataclasses.replace(context, folder=tmp_path / "more"))


def test_classes_without_test_nodes_are_counted():
    """Of a small class the published split trains on every node."""
    graph = small_graph().data.clone()
    graph.y[:8] = 2
    dataset = from_data(graph, name="three")
    found = count_untested(dataset, [make_split(dataset, "stratified", s) for s in range(2)])
    assert found == ClassesCell(3, untested=[0, 0], published=[1, 1])


def test_bold_is_for_single_models_and_printed_marks_have_their_distance():
    results = {
        "computers": {"lon": at(0.9), "gcn": at(0.92), "lon-recipe-seeds": at(0.99)},
        "cora": {"lon": at(0.88)},
    }
    rows = {row[0]: row[1:] for row in scores_table(results, "t", "", UNIFORM_SPLIT).rows}
    assert rows["GCN"][0] == "**92.00 ± 0.00**"
    assert rows[_rows.LABELS["lon-recipe-seeds"]] == ["99.00 ± 0.00", "", ""]
    assert rows["printed by others"] == ["94.1", "", ""]
    assert rows["best single model minus printed"] == ["-2.1", "", ""]


def test_the_order_of_models_is_compared_between_protocols():
    a = {"cora": {"lon": at(0.9), "lon-full": at(0.99), "gcn": at(0.8), "mlp": at(0.7)}}
    b = {"cora": {"lon": at(0.5), "lon-full": at(0.99), "gcn": at(0.6), "mlp": at(0.4)}}
    classes = {"cora": [ClassesCell(7, untested=[0, 0], published=[2, 2])]}
    (row,) = order_table(a, b, {}, classes).rows
    assert row == ["cora", "2 / 0 / - of 7", "LON-GNN", "GCN", "", "0.50", "", "", "1 / 2 / -"]
    assert winner(b["cora"]) == "gcn", "a row of a larger budget takes no part"
    ranks = {row[0]: row[1:] for row in ranks_table(a, b, {}).rows}
    assert ranks["LON-GNN"] == ["1.0", "2.0", "", "", ""]


def test_tables_without_records_are_empty(tmp_path):
    assert all(table.rows == [] for table in tables(tmp_path / "protocols"))


def test_a_graph_that_was_only_begun_is_not_shown(tmp_path):
    folder = tmp_path / "protocols"
    record = StudyRecord(record_path(folder, "cora-stratified"), PLANS["stratified"])
    record.cell("classes", ClassesCell, lambda: ClassesCell(7, [0], [2]), machine={"cpu": "any"})
    assert all(table.rows == [] for table in tables(folder))


def test_an_ensemble_that_is_added_is_trained_alone(tmp_path, monkeypatch):
    """The place for rows to come: a list of configurations, joined by votes."""
    monkeypatch.setattr(_run.data, "load", lambda name, data_dir=None: small_graph())
    told = []
    context = Context(
        tmp_path / "protocols", device="cpu", quick=True, models=["gcn"], tell=told.append
    )
    _run.run(context)
    told.clear()
    two = [config("gcn"), config("mlp")]
    added = _rows.Ensemble("ensemble: two", lambda name, dataset: two, "votes")
    monkeypatch.setitem(_rows.ENSEMBLES, "two", added)
    monkeypatch.setitem(_rows.LABELS, "two", added.label)
    _run.run(dataclasses.replace(context, models=["gcn", "two"]))
    assert ["two" in line for line in told if "%" in line] == [True, True]
    cell = StudyRecord.load(record_path(context.folder, "csbm-stratified")).get("two", RowCell)
    assert [table["model"] for table in cell.configs] == ["gcn", "mlp"]
    assert [sum(w) for w in cell.weights] == pytest.approx([1, 1])


def test_the_presets_are_as_they_were_chosen_without_the_graph():
    results = Path(__file__).parents[3] / "results"
    found = {
        key: [c.to_dict() for c in _rows.ENSEMBLES[key].members("texas", results)]
        for key in ("portfolio", "portfolio-best")
    }
    assert {c["seed"] for c in found["portfolio"]} == {0}
    seeds = [c["seed"] for c in found["portfolio-best"]]
    assert len(seeds) == 2 * 16
    assert sorted(set(seeds)) == [0, _rows.STRIDE]
    assert not _rows.ENSEMBLES["portfolio-best"].members("nowhere", results)
