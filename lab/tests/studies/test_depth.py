"""Depth and direction: what is searched, what sees arcs, and what stands beside what."""

import functools

import pytest
import torch
from torch_geometric.nn import GCNConv, SAGEConv

from lab.records import Record
from lab.studies import Context, depth, run_study
from lab.studies._engine import compute_cells, record_path
from lab.studies._printed import TEN
from lab.studies._search import draw_candidates
from lab.studies.depth import _textbook
from lab.studies.depth._rows import (
    ARCS,
    DEEP,
    GONE,
    KEYS,
    PLANS,
    PUBLISHED,
    QUICK_PLANS,
    ROWS,
    TUNED,
    rows_of,
)
from longnn.data import csbm, make_split
from longnn.graphs import GraphOperator
from longnn.tuning._splits import tuning_seeds


@functools.cache
def candidates(key, part, graph):
    return draw_candidates(ROWS[key].row, PLANS[part][graph])


def test_a_quick_run_fills_every_part_and_is_not_repeated(tmp_path, monkeypatch):
    graph = csbm(num_nodes=60, num_features=6, seed=1)
    monkeypatch.setattr(Context, "load", lambda self, name, **_: graph)
    told = []
    context = Context(tmp_path / "depth", device="cpu", quick=True, tell=told.append)
    made = {table.name: table for table in run_study("depth", context)}
    assert [row[0] for row in made[DEEP].rows] == [
        "LON-GNN, one filter",
        "blocks of LON-GNN's filters",
        "blocks of GCN",
    ]
    assert [row[0] for row in made[PUBLISHED].rows] == ["csbm"]
    names = {path.stem for path in (tmp_path / "depth" / "records").iterdir()}
    assert names == {"csbm-deep", "csbm-arcs", "csbm-published"}
    first = len(told)
    run_study("depth", context)
    assert len(told) == first


def test_every_row_has_as_many_candidates():
    for graph, keys in (("minesweeper", KEYS[DEEP]), ("photo", KEYS[DEEP][:1])):
        for key in keys:
            count = PLANS[DEEP][graph]["draws"]["candidates"]
            assert len(candidates(key, DEEP, graph)) == count


@pytest.mark.parametrize("part", PLANS)
def test_every_row_can_be_drawn_and_is_stopped_by_the_score_of_its_plan(part):
    plan = next(iter(PLANS[part].values()))
    few = {**plan, "draws": {**plan["draws"], "candidates": 2}}
    for row in [ROWS[key].row for key in KEYS[part] if key in ROWS]:
        drawn = draw_candidates(row, few)
        assert len(drawn) == 2
        if "monitor" not in row.searched:
            assert {c.settings.monitor for c in drawn} == {plan["metric"]}


def test_rows_differ_in_what_their_name_says():
    drawn = {key: candidates(key, DEEP, "minesweeper") for key in KEYS[DEEP]}
    assert {c.options["blocks"] for c in drawn["one-block"]} == {1}
    assert {c.options["norm"] for c in drawn["no-norm"]} == {"none"}
    assert not any(c.options["residual"] for c in drawn["no-residual"])
    assert not any(c.options["learn_basis"] for c in drawn["fixed-basis"])
    assert {c.options["basis"] for c in drawn["monomial"]} == {"monomial"}
    assert len({c.options["blocks"] for c in drawn["lon-deep"]}) > 1


def test_few_nodes_are_stopped_by_either_and_scored_on_another_half(monkeypatch):
    """No node that stopped a training scores it, and no reported split is searched on."""
    drawn = candidates("few", PUBLISHED, "texas")
    assert {c.settings.monitor for c in drawn} == {"loss", "accuracy"}
    assert {c.options["output_degree"] for c in drawn} == {0, 5}
    assert {key for key, deep in ROWS.items() if deep.halved} == {"cited-scores", "few"}
    graph = csbm(num_nodes=60, num_features=6, seed=1)
    plan = ROWS["few"].plan(QUICK_PLANS[PUBLISHED]["csbm"])
    seen = []

    def scores(dataset, configs, seeds, *, device):
        seen.extend([len(configs), *seeds])
        return [[0.1 * number] * len(seeds) for number in range(len(configs))]

    monkeypatch.setattr(depth, "holdout_scores", scores)
    cell = depth.search_halves(graph, ROWS["few"], plan, device="cpu")
    assert seen == [plan["draws"]["candidates"], *tuning_seeds(plan["draws"]["splits"])]
    assert cell["chosen"] == plan["draws"]["candidates"] - 1
    assert not set(seen[1:]) & set(range(10))


def test_longer_searches_take_features_as_they_are():
    """As those do who printed the marks; the other rows stand beside the tables of the paper."""
    longer = {key for key in KEYS[TUNED] if key in ROWS}
    assert {key for key, deep in ROWS.items() if deep.raw} == longer | {"bought", "linked"}


@pytest.mark.parametrize("part", [TUNED, PUBLISHED])
def test_every_row_of_a_kind_of_graph_has_its_graphs(part):
    assert {key for graph in PLANS[part] for key in rows_of(part, graph)} == set(KEYS[part])
    assert set(PLANS[PUBLISHED]) == set(TEN)
    assert all(len(rows_of(PUBLISHED, graph)) == 1 for graph in TEN)


@pytest.mark.parametrize(("kind", "residual"), [("gcn", True), ("gcn", False), ("sage", True)])
def test_a_network_as_printed_has_the_layers_of_pyg(kind, residual):
    graph = csbm(num_nodes=60, num_features=6, seed=1)
    book = _textbook.Textbook(kind, 8, 2, dropout=0.5, residual=residual)
    torch.manual_seed(0)
    network = _textbook._Network(book, 6, 2).eval()
    x, edges = graph.data.x.float(), graph.data.edge_index
    h = x
    for i, norm in enumerate(network.norms):
        if kind == "gcn":
            layer = GCNConv(h.shape[1], 8)
            layer.lin.weight.data, layer.bias.data = network.maps[i].weight, network.maps[i].bias
            message = layer(h, edges)
        else:
            layer = SAGEConv(h.shape[1], 8)
            layer.lin_l.load_state_dict(network.maps[i].state_dict())
            layer.lin_r.weight.data = network.own[i].weight
            message = layer(h, edges) + network.own[i].bias
        h = torch.relu(norm(message + network.shortcuts[i](h) if residual else message))
    loops = _textbook.MESSAGES[kind][1]
    operator = GraphOperator.from_edge_index(edges, num_nodes=60, self_loops=loops)
    found = network(x, operator)
    torch.testing.assert_close(found, network.last(h))


def test_a_network_as_printed_learns_and_its_epoch_is_chosen_by_validation():
    graph = csbm(num_nodes=400, num_features=20, seed=1)
    splits = [make_split(graph, "stratified", seed) for seed in range(2)]
    book = _textbook.Textbook("gcn", 64, 2, dropout=0.5, residual=True, epochs=60)
    cell = _textbook.train_textbook(graph, book, splits, device="cpu")
    assert all(value > 0.6 for value in cell["test"])
    assert all(0 <= epoch < 60 for epoch in cell["best_epochs"])


def test_a_textbook_row_is_trained_without_a_search(tmp_path, monkeypatch):
    graph = csbm(num_nodes=60, num_features=6, seed=1)
    monkeypatch.setattr(Context, "load", lambda self, name, **_: graph)
    quick = _textbook.Textbook("sage", 4, 1, dropout=0.0, residual=False, epochs=2)
    monkeypatch.setitem(_textbook.TEXTBOOK["textbook-sage"], "photo", quick)
    context = Context(
        tmp_path / "depth",
        device="cpu",
        datasets=["photo"],
        models=["textbook-sage"],
        tell=lambda line: None,
    )
    compute_cells(depth, context)
    record = Record(record_path(tmp_path / "depth", "photo-tuned"))
    assert list(record) == ["textbook-sage"]
    assert record["textbook-sage"]["epochs"] == [2] * 10


def test_only_rows_of_arcs_see_them():
    arcs = {key for key in ROWS if key.endswith("-arcs")}
    assert {key for key, deep in ROWS.items() if deep.directed} == arcs
    assert not any(ROWS[key].directed for key in KEYS[DEEP])
    assert not GONE.keys() & ROWS.keys()
    assert GONE.keys() <= set(KEYS[ARCS])  # shown where they were measured
