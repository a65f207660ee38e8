"""What the page is given: sums that add up, samples, layouts, arrays, a safe block of JSON."""

import json

import numpy as np
import pytest
import scipy.sparse
import torch

from longnn.data import from_scipy
from longnn.explorer import collect, place_nodes, render, unpack
from longnn.explorer._layout import _into_square
from longnn.runs import train as train_run
from tests.shifted import shifted_graph
from tests.test_known import answers, write

from .examples import dense_operator, train

BENT = {
    "features": ({"placement": "features"}, "not linear follows the filter"),
    "both": ({"placement": "both"}, "filters more than once"),
    "gcn": ({"model": "gcn"}, "no polynomial filter"),
}


@pytest.mark.parametrize("name", BENT)
def test_models_that_are_no_sums_say_why(name):
    options, why = BENT[name]
    data = collect([train(**options)])
    model = data["runs"][0]["models"][0]
    assert model["form"] is None
    assert why in model["why"]
    assert (model["filter"] is None) == (name == "gcn")


@pytest.fixture(scope="module")
def run():
    return train(degree=3, repeat=2)


def test_the_page_has_what_the_run_has(run):
    data = collect([run])
    [graph], [found] = data["graphs"], data["runs"]
    assert graph["nodes"] == len(graph["ids"]) == run.dataset.num_nodes
    np.testing.assert_array_equal(unpack(graph["label"]), run.dataset.data.y)
    np.testing.assert_array_equal(unpack(found["predicted"]), run.predicted[0])
    P = run.problem.operator.to_dense().numpy()
    np.testing.assert_allclose(dense_operator(graph["operators"]["keep"]), P, rtol=1e-6)
    sets = unpack(found["set"])
    for number, mask in enumerate(("train", "val", "test"), start=1):
        np.testing.assert_array_equal(sets == number, getattr(run.splits[0], mask))
    np.testing.assert_array_equal(unpack(found["history"]["beta"]), run.record.path.beta)
    assert (found["shift"], found["without"]) == ([], None)
    row = unpack(found["history"]["epoch"]).tolist().index(found["history"]["best"])
    beta = unpack(found["models"][0]["filter"]["beta"])  # the filter that was kept
    np.testing.assert_allclose(unpack(found["history"]["beta"])[row], beta, atol=1e-6)
    assert found["repeats"] == 2
    torch.testing.assert_close(
        torch.tensor(unpack(found["others"][0]["predicted"])), run.predicted[1]
    )
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_runs_on_one_graph_share_it(run):
    """Also where a model adds self loops, whose operator is another one."""
    other = train(model="sgc")
    data = collect([run, other])
    [graph] = data["graphs"]
    assert [one["graph"] for one in data["runs"]] == [0, 0]
    assert set(graph["operators"]) == {"keep", "add"}
    model = data["runs"][1]["models"][0]
    assert model["operator"] == "add"
    added = dense_operator(graph["operators"]["add"])
    np.testing.assert_allclose(added, other.problem.operator.to_dense(), rtol=1e-6)


def test_a_sample_counts_the_paths_on_the_page(run):
    """Its operator is a part of the whole one: the degrees are those of the whole graph."""
    data = collect([run], limit=20, node="17")
    [graph] = data["graphs"]
    shown = [int(text) for text in graph["ids"]]
    assert len(shown) == 20
    assert 17 in shown
    P = run.problem.operator.to_dense().numpy()
    part = dense_operator(graph["operators"]["keep"])
    np.testing.assert_allclose(part, P[np.ix_(shown, shown)], rtol=1e-6)
    missing = (P[shown] != 0).sum(1) - (part != 0).sum(1)
    np.testing.assert_array_equal(unpack(graph["missing"]), missing)
    scores = unpack(data["runs"][0]["models"][0]["scores"])
    whole = unpack(collect([run])["runs"][0]["models"][0]["scores"])
    np.testing.assert_array_equal(scores, whole[shown])


def test_an_ensemble_gives_every_member_with_a_vote():
    loaded = train(shifted_graph(), preset="default")
    assert loaded.trained.readouts[0].shift
    model = loaded.trained.models[0]
    data = collect([loaded])
    found = data["runs"][0]["models"]
    assert {one["name"]: one["share"] for one in found} == model.shares
    assert [one["leading"] for one in found] == [True] + [False] * (len(found) - 1)
    assert found[0]["name"] == model.leader
    # The averaged probabilities of the members are the prediction.
    p = sum(
        one["share"] * torch.softmax(torch.tensor(unpack(one["scores"])) / one["temperature"], 1)
        for one in found
    )
    predicted = unpack(data["runs"][0]["predicted"])
    readout = loaded.trained.readouts[0]
    np.testing.assert_allclose(readout.predict(p.log()).numpy(), predicted, atol=1e-4)


def test_repeats_are_left_out_where_there_is_no_room(run, monkeypatch):
    monkeypatch.setattr("longnn.explorer._data.CHARACTERS", 1)
    [found] = collect([run])["runs"]
    assert (found["repeats"], found["others"]) == (2, [])


@pytest.mark.parametrize("memory", [None, 1])
def test_the_page_has_the_intervals_of_the_run(memory, tmp_path):
    """Of each repeat its own; of a part of a graph those that the nodes have in the whole."""
    few = {"epochs": 3, "baselines": False, "preset": "fast", "placement": "features"}
    settings = {**few, "coverage": 0.7, "repeat": 2}
    run = train_run(write(tmp_path / "a", answers()), settings, memory=memory, cache=tmp_path)
    data = collect([run], limit=20, node="house 17")
    shown = data["graphs"][0]["ids"]
    [first] = data["runs"]
    for k, repeat in enumerate([first, *first["others"]]):
        row = {name: at for at, name in enumerate(run.predictions(k)["id"].to_pylist())}
        places = [row[name] for name in shown]
        assert repeat["interval"]["coverage"] == 0.7
        for name in ("low", "high"):
            expected = run.predictions(k)[name].to_numpy()[places]
            np.testing.assert_allclose(unpack(repeat["interval"][name])[:, 0], expected, rtol=1e-5)


def two_cliques(size):
    block = np.ones((size, size)) - np.eye(size)
    graph = np.kron(np.eye(2), block)
    graph[0, size] = graph[size, 0] = 1
    return scipy.sparse.csr_matrix(graph)


def test_neighbours_are_drawn_near_each_other():
    y = place_nodes(two_cliques(12))
    d = np.linalg.norm(y[:, None] - y[None], axis=2)
    inside = (d[:12, :12].mean() + d[12:, 12:].mean()) / 2
    assert d[:12, 12:].mean() > 1.5 * inside
    assert np.abs(y).max() <= 1
    assert d[np.triu_indices(24, 1)].min() > 1e-3  # none on top of another
    np.testing.assert_array_equal(y, place_nodes(two_cliques(12)))


def test_a_few_nodes_far_out_leave_room_for_the_others():
    """In their order by distance, and the others in their shape."""
    y = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    y[98:] = [[30.0, 0.0], [0.0, -50.0]]
    found = _into_square(y)
    assert np.abs(found).max() <= 1
    assert np.ptp(found[:98], axis=0).min() > 1
    scale = np.ptp(found[:90], axis=0) / np.ptp(y[:90], axis=0)
    assert scale[0] == pytest.approx(scale[1], rel=0.2)
    away = np.linalg.norm(found - np.median(found, axis=0), axis=1)
    assert away[99] > away[98] > away[:98].max()


def test_tiny_and_empty_graphs_have_a_layout():
    for nodes in range(4):
        y = place_nodes(scipy.sparse.csr_matrix((nodes, nodes)))
        assert y.shape == (nodes, 2)
        assert np.isfinite(y).all()


def test_a_sample_goes_on_in_other_parts():
    graph = scipy.sparse.block_diag([two_cliques(3), two_cliques(3)]).tocsr()
    backing = from_scipy(graph).backing
    found = backing.nearest(7, 8)
    assert {6, 7, 8, 9, 10, 11} <= set(found)
    assert len(found) == 8
    assert len(backing.nearest(None, 4)) == 4


def test_no_text_ends_the_block_of_data():
    page = render({"runs": [], "graphs": [], "name": "</script><script>alert(1)</script><!--"})
    assert "<script>alert" not in page
    assert page.count("</script>") == 2  # of the data and of the program


def test_the_policy_allows_only_the_program():
    """Nothing from elsewhere, and inline only what has the hash."""
    page = render({"runs": []})
    policy = page[page.index("Content-Security-Policy") :].split('content="')[1].split('"')[0]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"].startswith("'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy
