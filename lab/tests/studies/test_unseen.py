"""Graphs of kinds that the collection lacks: what each promises, and that they can be tested."""

import numpy as np
import pytest
import torch

from lab.records import StudyRecord
from lab.studies import Context
from lab.studies._core._context import record_path
from lab.studies._core._graphs import grid
from lab.studies._core._joined import Scored
from lab.studies.portfolio._candidates import candidates
from lab.studies.portfolio._evaluation import (
    FULL,
    RIVALS,
    TEST,
    TESTED_UNSEEN,
    TWO_WAY,
    EvaluationCell,
    EvaluationPlan,
    PortfolioCell,
    evaluate_portfolio,
)
from lab.studies.portfolio._graphs import GRAPHS, KINDS, Graph
from lab.studies.portfolio._join import JOINED, STRATEGIES
from lab.studies.portfolio._select import Portfolio, Selection
from lab.studies.portfolio._unseen import UNSEEN, levels
from lab.studies.portfolio._unseen_tables import unseen_tables
from lab.studies.tables._run import TableCell
from longnn.data import NodeDataset
from longnn.training import complete, data_defaults


@pytest.fixture(scope="module")
def graphs() -> dict[str, NodeDataset]:
    return {name: graph.make(None) for name, graph in UNSEEN.items()}


def same_class(dataset: NodeDataset, weight: torch.Tensor | None = None) -> float:
    """The share of edges, or of their weight, within a class."""
    start, end = dataset.data.edge_index
    same = (dataset.data.y[start] == dataset.data.y[end]).double()
    weight = torch.ones_like(same) if weight is None else weight.double()
    return float((same * weight).sum() / weight.sum())


def test_graphs_are_the_same_each_time(graphs):
    for name, graph in UNSEEN.items():
        assert graph.make(None).fingerprint() == graphs[name].fingerprint()
        assert 800 <= graphs[name].num_nodes <= 3000
        assert data_defaults(graphs[name]), "own data, as strangers bring them"


def test_no_graph_and_no_kind_is_in_the_collection():
    assert not {*UNSEEN} & {*GRAPHS}
    assert not {graph.kind for graph in UNSEEN.values()} & {*KINDS}
    assert len(TESTED_UNSEEN) == len(UNSEEN)


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


def scored(*test: float) -> Scored:
    return Scored([0.5] * len(test), list(test))


def test_tables_compare_with_rivals_and_with_two_way_edges(tmp_path):
    def cell(votes: Scored, *keys: str) -> EvaluationCell:
        joined = {**dict.fromkeys(STRATEGIES, scored(0.8, 0.8)), JOINED: votes}
        both = {key: PortfolioCell(["mlp 0"], {}, joined, {}) for key in keys}
        return EvaluationCell("0", "accuracy", scored(0.7, 0.7), both)

    made = {
        TEST: cell(scored(0.9, 0.9), "default", "best"),
        "boosting": TableCell("0", "accuracy", [], [0.6, 0.6], [], {}),
        "gcn": TableCell("0", "accuracy", [], [0.85, 0.75], [], {}),
        TWO_WAY: cell(scored(0.65, 0.65), "default"),
    }
    assert unseen_tables(tmp_path) == []
    context = Context(tmp_path, device="cpu")
    for name in ("levels", "trust"):
        record = context.record(f"test-unseen-{name}", FULL)
        for key, value in made.items():
            if key != TWO_WAY or name == "levels":
                record.cell(key, type(value), lambda v=value: v, machine=context.machine("cpu"))
    scores, differences = unseen_tables(tmp_path)
    assert scores.columns[3:6] == ["boosting", "GCN", "default"]
    shown = ["60.0", "80.0", "70.0", "**90.0**", "**90.0**"]
    assert scores.rows[0] == ["levels", "arcs", "accuracy", *shown]
    gain = "**+20.0 [+20.0, +20.0]**"
    levels_row, trust_row = differences.rows
    assert levels_row[:4] == ["levels", gain, gain, "**+30.0 [+30.0, +30.0]**"]
    assert levels_row[5] == "**+25.0 [+25.0, +25.0]**"
    assert trust_row[5] == ""


def test_a_graph_of_an_unseen_kind_is_tested_with_its_rivals(tmp_path, monkeypatch):
    small = Graph("arcs", lambda _: levels(60))
    monkeypatch.setitem(UNSEEN, "levels", small)
    members = ["scores 0", "mlp 0"]
    configs = {name: candidates({})[name].to_dict() for name in members}
    chosen = Portfolio(members, {}, {}, {}, {}, {})
    selection = Selection({"default": chosen, "best": chosen}, {}, configs)
    plan = EvaluationPlan(splits=1, tables=1, epochs=2, patience=2)
    context = Context(tmp_path, device="cpu", tell=lambda _: None)
    evaluate_portfolio(context, selection, ["unseen-levels"], plan)
    record = StudyRecord.load(record_path(tmp_path, "test-unseen-levels"))
    assert list(record) == [TEST, *RIVALS, TWO_WAY]
    cell = record.get(TEST, EvaluationCell)
    assert cell.portfolios["best"].members == members
    assert record.get("gcn", TableCell).config["direction"] == "cover"
    both = record.get(TWO_WAY, EvaluationCell)
    assert list(both.portfolios) == ["default"]
    assert both.fingerprint != cell.fingerprint, "of the graph without directions"
    for rival in RIVALS:
        assert record.get(rival, TableCell).fingerprint == cell.fingerprint
