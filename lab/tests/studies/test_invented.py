"""Invented graphs: what each promises, and small versions of the studies on them."""

import types

import numpy as np
import pytest
import torch

from lab.records import Record
from lab.studies import Context, portfolio, presets, run_study, tables
from lab.studies._engine import compute_cells, record_path
from lab.studies._invented import (
    DEVELOPMENT,
    HELD_BACK,
    STORIES,
    as_dataset,
    between_classes,
    grid,
    preferential,
    small_world,
)
from lab.studies._training import predict_by_columns
from lab.studies.portfolio._graphs import GRAPHS, KINDS, UNSEEN, Graph, levels
from longnn.config import Config
from longnn.data import NodeDataset, make_split
from longnn.data._card import homophily
from longnn.metrics import headline
from longnn.training import complete, data_defaults
from tests.commands import ROOT


@pytest.fixture(scope="module")
def tables_():
    return {name: make() for name, make in {**STORIES, **HELD_BACK}.items()}


@pytest.fixture(scope="module")
def development():
    return {name: make() for name, make in DEVELOPMENT.items()}


@pytest.fixture(scope="module")
def graphs() -> dict[str, NodeDataset]:
    return {name: graph.make(None) for name, graph in UNSEEN.items()}


def test_graphs_are_as_their_stories_say(tables_, development, graphs):
    assert homophily(tables_["clubs"])[0] > 0.7
    assert homophily(tables_["trade"])[0] < 0.2
    assert homophily(tables_["shells"])[0] == pytest.approx(1 / 3, abs=0.05)
    assert homophily(development["heterophilic"])[0] == pytest.approx(0.08, abs=0.03)
    assert homophily(development["onehot"])[0] == pytest.approx(0.5, abs=0.05)
    assert homophily(development["xor"])[0] == pytest.approx(0.5, abs=0.05)
    frauds = float((development["fraud"].data.y == 1).float().mean())
    assert frauds == pytest.approx(0.05, abs=0.02)
    for name, graph in UNSEEN.items():
        assert graph.make(None).fingerprint() == graphs[name].fingerprint()
        assert data_defaults(graphs[name]), "own data, as strangers bring them"
    assert not {*UNSEEN} & {*GRAPHS}
    assert not {graph.kind for graph in UNSEEN.values()} & {*KINDS}


def test_scores_are_of_every_kind(tables_):
    found = {name: headline(d.data.y, d.task)[0] for name, d in tables_.items()}
    assert found["houses"] == "r2"
    assert found["fraud"] == "average_precision"
    assert found["patients"] == "balanced_accuracy"
    assert set(found.values()) == {"r2", "average_precision", "balanced_accuracy", "accuracy"}


def test_one_account_in_twenty_is_a_fraud_and_gaps_are_marked(tables_):
    fraud = tables_["fraud"]
    assert float((fraud.data.y == 1).float().mean()) == pytest.approx(0.05)
    flags = fraud.data.x[:, 6:]  # six columns, each with its mark
    assert flags.shape[1] == 6
    assert torch.equal(flags, flags.round())
    assert float(flags.mean()) == pytest.approx(0.1, abs=0.01)
    assert "edge_weight" in fraud.data


def test_only_the_papers_have_words(tables_):
    assert [name for name, d in tables_.items() if not data_defaults(d)] == ["papers"]


def test_arcs_between_classes_follow_the_table():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    table = np.array([[0.1, 0.9], [0.5, 0.5]])
    start, end = between_classes(rng, y, 20_000, table)
    assert (y[end][y[start] == 0] == 1).mean() == pytest.approx(0.9, abs=0.02)
    assert (y[end][y[start] == 1] == 1).mean() == pytest.approx(0.5, abs=0.02)
    assert (start != end).all()


def test_preferential_graphs_have_hubs_and_small_worlds_none():
    rng = np.random.default_rng(0)
    hubs = np.bincount(preferential(rng, 1000, 3).ravel()).max()
    flat = np.bincount(small_world(rng, 1000, 3, 0.3).ravel()).max()
    assert hubs > 2 * flat


def test_a_table_without_gaps_gets_no_column():
    x = np.array([[0.0, 1.0], [1.0, 0.0]])
    made = as_dataset("two", x, np.array([[0], [1]]), np.array([0.5, 1.5]))
    assert made.num_features == 2
    assert made.task == "regression"


def test_rivals_learn_from_training_nodes_alone(tables_):
    wine = tables_["wine"]
    split = make_split(wine, "stratified", 0)
    before = predict_by_columns("linear", wine, split)
    hidden = wine.data.y.clone()
    wine.data.y[~split.train] = 0
    after = predict_by_columns("linear", wine, split)
    wine.data.y = hidden
    assert torch.equal(before, after)
    assert before.sum(1).tolist() == pytest.approx([1.0] * 178)


@pytest.mark.slow
def test_a_small_version_of_tables(tmp_path):
    context = Context(tmp_path, quick=True, device="cpu", tell=lambda line: None)
    scores, paired, settings = run_study("tables", context)
    cells = tables.read(tmp_path)["wine"]
    assert set(cells) == set(tables.LABELS)
    assert cells["linear"]["test"] > cells["constant"]["test"]
    assert cells["lon"]["config"]["placement"] == "hidden"
    assert [row[0] for row in scores.rows] == [row[0] for row in paired.rows] == ["wine"]
    assert "placement hidden" in settings.rows[0][1]
    assert (tmp_path / "figures" / "differences.png").is_file()


def test_candidates_differ_from_the_preset_in_what_they_are_called(development):
    for name in ("diabetes", "cancer"):
        made = presets.candidates(development[name], {"epochs": 7})
        chosen = made["preset"].to_dict()
        assert {key: chosen[key] for key in data_defaults(development[name])} == data_defaults(
            development[name]
        )
        assert made["defaults"] == Config.from_dict({"epochs": 7})
        differing = {
            candidate: {k for k, v in made[candidate].to_dict().items() if chosen[k] != v}
            for candidate in presets.CHANGES
            if candidate in made
        }
        assert differing["no-penalty"] == differing["triple-penalty"] == {"degree_penalty"}
        assert differing["half-dropout"] == {"input_dropout", "dropout"}
        assert differing["usual-dropout"] == {"input_dropout", "dropout", "filter_dropout"}
        assert differing["output"] == {"placement"}
        assert differing["other-sharing"] == {"shared"}
        assert differing["slow-filter"] == {"lr_coefficients"}
        assert differing["no-dropout"] == differing["some-dropout"] == {"dropout"}
        assert differing.get("other-monitor", {"monitor"}) == {"monitor"}
        assert ("other-monitor" in made) == (name == "cancer")


def test_a_change_is_measured_where_it_was_trained():
    one = {presets.KEY: {"holdout": {"preset": [0.5, 0.7], "output": [0.4, 0.6]}}}
    other = {presets.KEY: {"holdout": {"preset": [0.5]}}}
    changes = presets.changes_of({"a": one, "b": other}, "output")
    assert changes == {"a": pytest.approx(-10.0)}


def test_the_records_are_of_these_tables(development, tables_):
    """The same each time, of a clean commit, and none of those that test the choice."""
    records = presets.read(ROOT / "results" / "presets")
    assert list(records) == list(DEVELOPMENT)
    for name, record in records.items():
        cell = record[presets.KEY]
        assert cell["fingerprint"] == development[name].fingerprint()
        assert cell["configs"]["preset"] == data_defaults(development[name])
        assert cell["made"]["dirty"] is False
    tested = {name: dataset.fingerprint() for name, dataset in tables_.items()}
    for name, models in tables.read(ROOT / "results" / "tables").items():
        assert models["lon"]["fingerprint"] == tested[name]
    assert not {*tested.values()} & {d.fingerprint() for d in development.values()}


def test_a_small_version_of_presets(tmp_path):
    context = Context(tmp_path, quick=True, device="cpu", tell=lambda line: None)
    scores, changes = run_study("presets", context)
    cell = presets.read(tmp_path)["diabetes"][presets.KEY]
    assert set(cell["holdout"]) == set(presets.LABELS) - {"other-monitor"}  # regression
    assert cell["configs"]["defaults"] == {}
    assert cell["configs"]["preset"] == data_defaults(DEVELOPMENT["diabetes"]())
    assert cell["best_epochs"].keys() == cell["configs"].keys()
    assert [row[0] for row in scores.rows] == ["diabetes"]
    assert [row[0] for row in changes.rows] == [
        presets.LABELS[c] for c in ("defaults", *presets.CHANGES)
    ]
    assert changes.rows[-1][-1] == "–"
    assert (tmp_path / "figures" / "changes.png").is_file()


def same_class(dataset: NodeDataset, weight: torch.Tensor | None = None) -> float:
    """The share of edges, or of their weight, within a class."""
    start, end = dataset.data.edge_index
    same = (dataset.data.y[start] == dataset.data.y[end]).double()
    weight = torch.ones_like(same) if weight is None else weight.double()
    return float((same * weight).sum() / weight.sum())


def test_pixels_touch_at_sides_or_also_at_corners():
    assert np.bincount(grid(4, 5).ravel()).max() == 4
    degrees = np.bincount(grid(4, 5, corners=True).ravel()).reshape(4, 5)
    assert (degrees[1:-1, 1:-1] == 8).all()
    assert degrees[0, 0] == 3


def test_the_neighbours_of_a_pixel_say_more_than_its_own_colours(graphs):
    d = graphs["picture"]
    start, end = d.data.edge_index
    own = d.data.x @ torch.tensor([0.299, 0.587, 0.114])
    total = torch.zeros_like(own).index_add(0, start, own[end])
    around = total / torch.bincount(start)
    errors = [float((guess - d.data.y).square().mean()) for guess in (own, around)]
    assert errors[1] < errors[0]
    assert float((d.data.y > 0).float().mean()) == 1
    assert float(d.data.y.max()) <= 1


def test_textures_of_one_grey_value_differ_in_frequency(graphs):
    """On the grid stripes are half way up the spectrum, and checks at its end."""
    d = graphs["textures"]
    start, end = d.data.edge_index
    grey = d.data.x.mean(1) - 0.5
    product = grey[start] * grey[end]
    inside = d.data.y[start] == d.data.y[end]
    plain, stripes, checks = (
        float(product[inside & (d.data.y[start] == c)].mean()) for c in (0, 2, 3)
    )
    assert plain > 0.015
    assert stripes == pytest.approx(0, abs=0.005)
    assert checks < -0.015
    assert d.num_classes == 4


@pytest.mark.parametrize("name", ["levels", "followers"])
def test_arcs_are_kept_and_presets_follow_them(name, graphs):
    arcs = graphs[name]
    assert arcs.directed
    assert arcs.one_way > 0.9 * arcs.num_edges
    assert complete({"preset": "default"}, arcs).direction == "cover"


def test_arcs_go_one_level_up(graphs):
    d = graphs["levels"]
    start, end = d.data.edge_index
    up = (d.data.y[end] - d.data.y[start])[d.data.y[start] < 4]
    assert float((up == 1).double().mean()) == pytest.approx(0.8, abs=0.03)


def test_followers_differ_in_one_degree_and_not_in_their_sum(graphs):
    d = graphs["followers"]
    out, into = (torch.bincount(end, minlength=d.num_nodes) for end in d.data.edge_index)
    stars, fans, others = (
        [float(degree[d.data.y == c].double().mean()) for degree in (out, into)] for c in range(3)
    )
    assert stars[1] > 5 * stars[0]
    assert fans[0] > 5 * fans[1]
    assert others[0] == pytest.approx(others[1], rel=0.25)
    sums = [sum(pair) for pair in (stars, fans, others)]
    assert max(sums) < 1.5 * min(sums)


@pytest.mark.parametrize("name", ["halves", "trust"])
def test_weights_say_which_edges_to_trust(name, graphs):
    d = graphs[name]
    weight = d.data.edge_weight
    assert same_class(d, weight) > same_class(d) + 0.05
    assert float(weight.max()) > 5 * float(weight.median())


@pytest.mark.slow
def test_a_graph_of_an_unseen_kind_is_tested_with_its_rivals(tmp_path, monkeypatch):
    small = Graph("arcs", lambda _: levels(60))
    monkeypatch.setitem(UNSEEN, "levels", small)
    members = ["scores 0", "mlp 0"]
    configs = {name: portfolio.candidates({})[name].to_dict() for name in members}
    chosen = {"members": members}
    selection = {"portfolios": {"default": chosen, "best": chosen}, "configs": configs}
    plan = {"splits": 1, "tables": 1, "epochs": 2, "patience": 2}
    context = Context(tmp_path, device="cpu", tell=lambda _: None)
    test = lambda context: portfolio._test_cells(context, selection, "unseen-levels", plan)  # noqa: E731
    compute_cells(types.SimpleNamespace(cells=test), context)
    record = Record(record_path(tmp_path, "test-unseen-levels"))
    assert list(record) == ["test", "boosting", "gcn", "two-way"]
    cell, both = record["test"], record["two-way"]
    assert cell["portfolios"]["best"]["members"] == members
    assert record["gcn"]["config"]["direction"] == "cover"
    assert list(both["portfolios"]) == ["default"]
    assert both["fingerprint"] != cell["fingerprint"], "of the graph without directions"
    for rival in ("boosting", "gcn"):
        assert record[rival]["fingerprint"] == cell["fingerprint"]
