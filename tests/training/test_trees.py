"""Boosted trees as a model: what they see, what is kept of them, and the laws that all keep."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import longnn
from longnn.data import DataError, Split, from_data
from longnn.explain._forms import TreesForm
from longnn.graphs._edges import EdgeOperator
from longnn.nn._trees import BoostedTrees, check_trees
from longnn.runs import load_run
from longnn.training import complete, fit
from longnn.tuning import tune

pytestmark = pytest.mark.usefixtures("no_report")

BRIEF = {"model": "trees", "epochs": 15, "baselines": False}


def street(nodes=200, *, directed=False, seed=0):
    """Numbers that a threshold of the neighbours' mean decides on."""
    random = np.random.default_rng(seed)
    x = torch.from_numpy(random.normal(size=(nodes, 3)).astype(np.float32))
    ends = torch.from_numpy(random.integers(0, nodes, (2, 3 * nodes)))
    ends = ends[:, ends[0] != ends[1]]
    both = torch.unique(ends if directed else torch.cat([ends, ends.flip(0)], 1), dim=1)
    mean = torch.zeros(nodes).index_add(0, both[0], x[both[1], 0])
    y = (mean > 0).float() * 3 + x[:, 1]
    return from_data(Data(x=x, edge_index=both, y=y), task="regression", directed=directed)


def thirds(dataset):
    place = torch.arange(dataset.num_nodes) % 3
    return Split(place == 0, place == 1, place == 2, "own", 0)


def trained(dataset, **options):
    (one,) = fit(dataset, [complete({**BRIEF, **options}, dataset)], [thirds(dataset)])
    return one


def _around(P, x, how):
    """Of each node's neighbours, one by one; zero where there are none."""
    found = torch.zeros_like(x)
    for i, weights in enumerate(P):
        near = weights.nonzero()[:, 0]
        if len(near) and how == "std":
            share = (weights[near] / weights[near].sum())[:, None]
            mean = (share * x[near]).sum(0)
            found[i] = (share * (x[near] - mean).square()).sum(0).sqrt()
        elif len(near):
            found[i] = getattr(x[near], how)(0).values
    return found


@pytest.mark.parametrize("columns", ["neighbours", "around"])
@pytest.mark.parametrize("directed", [False, True])
def test_averages_are_weighted_means_over_walks(directed, columns):
    """Against matrices: on arcs two steps go the same way, along or against them."""
    data = street(30, directed=directed)
    index, n = data.data.edge_index, data.num_nodes
    A = torch.zeros(n, n, dtype=torch.float64)
    A[index[0], index[1]] = 1
    left, right = (d.clamp_min(1).rsqrt() for d in (A.sum(1), A.sum(0)))
    N = left[:, None] * A * right
    x = data.data.x.double()
    expected = [x]
    for P, count in ((N, A.sum(1)), (N.T, A.sum(0)))[: 2 if directed else 1]:
        expected.append(count.log1p()[:, None])
        for k in (1, 2):
            walk = torch.linalg.matrix_power(P, k)
            mass = walk.sum(1, keepdim=True)
            expected += [mass, torch.where(mass > 0, walk @ x / mass.clamp_min(1e-9), 0.0)]
        if columns == "around":
            expected += [_around(P, x, how) for how in ("std", "min", "max")]
    model = BoostedTrees(3, 1, 1, degree=2, columns=columns, copies=2 if directed else 1)
    from longnn.graphs import GraphOperator, directed_operator

    make = directed_operator if directed else GraphOperator.from_edge_index
    table = model.table(x, make(index, None, n, dtype=torch.float64))
    assert table.shape == (n, model.width)
    # The root of a variance on the grid is off by more than the grid where it is small.
    wide = 2e-5 if columns == "neighbours" else 5e-3
    torch.testing.assert_close(table, torch.cat(expected, 1), atol=wide, rtol=0)
    program = EdgeOperator.from_arcs if directed else EdgeOperator.from_edge_index
    edges = program(index, torch.ones(index.shape[1]), n, dtype=torch.float64)
    torch.testing.assert_close(model.table(x, edges), table, atol=2e-5, rtol=0)


@pytest.mark.parametrize("directed", [False, True])
def test_what_neighbours_have_is_found(directed):
    data = street(600, directed=directed)
    scores = {}
    for columns in ("alone", "neighbours"):
        one = trained(data, columns=columns, epochs=100)
        y, p = data.data.y[one.split.test], one.predicted[one.split.test]
        scores[columns] = float(1 - (y - p).square().mean() / y.var())
    assert scores["neighbours"] > scores["alone"] + 0.2


def test_two_trainings_give_one_model():
    data = street()
    first, second = (trained(data, seed=3).result.state["text"] for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, trained(data, seed=4).result.state["text"])


@pytest.mark.parametrize("kind", ["three classes", "two classes", "labels", "targets"])
def test_every_task_is_learned(kind):
    data = street(300)
    x, index = data.data.x, data.data.edge_index
    y = {
        "three classes": (x[:, 0] > 0).long() + (x[:, 1] > 0.5),
        "two classes": (x[:, 0] > 0).long(),
        "labels": torch.stack([x[:, 0] > 0, x[:, 1] > 0], 1).float(),
        "targets": torch.stack([x[:, 0], 100 + 5 * x[:, 1]], 1),
    }[kind]
    task = {"labels": "multilabel", "targets": "regression"}.get(kind, "classification")
    graph = from_data(Data(x=x, edge_index=index, y=y), task=task)
    one = trained(graph, epochs=40)
    test = one.split.test
    if task == "regression":
        assert ((one.predicted - y)[test].square().mean(0) < 0.3 * y.var(0)).all()
    else:
        assert (one.readout.choose(one.predicted)[test] == y[test]).float().mean() > 0.85


def test_a_weight_of_a_class_moves_predictions_to_it():
    data = street(300)
    graph = from_data(
        Data(
            x=data.data.x,
            edge_index=data.data.edge_index,
            y=(data.data.x[:, 0] + data.data.x[:, 1] > 1.5).long(),
        )
    )
    plain, weighted = (
        trained(graph, class_weight=weight, frequencies="train", calibrate=False)
        for weight in ("none", "1=20,0=1")
    )
    assert weighted.predicted[:, 1].mean() > plain.predicted[:, 1].mean() + 0.02


def test_a_damaged_run_is_refused(tmp_path):
    longnn.train(street(), BRIEF, tmp_path / "run")
    weights = tmp_path / "run" / "weights.safetensors"
    content = weights.read_bytes()
    for before, after in ((b"split_feature=", b"split_featurf="), (b"left_child=", b"left_chile=")):
        assert before in content
        weights.write_bytes(content.replace(before, after, 1))
        with pytest.raises(DataError, match="boosted trees \\(it is damaged"):
            load_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("num_leaves=", "num_leaves=9"),
        ("num_cat=0", "num_cat=1"),
        ("left_child=", "left_child=0 "),
        ("threshold=", "threshold=nan "),
        ("end of trees", "end"),
    ],
)
def test_no_damaged_text_comes_to_compiled_code(before, after):
    one = trained(street())
    text = bytes(one.result.state["text"].numpy()).decode()
    check_trees(text.encode())
    assert before in text
    with pytest.raises(ValueError, match="boosted trees"):
        check_trees(text.replace(before, after, 1).encode())


@pytest.mark.parametrize("columns", ["neighbours", "around"])
@pytest.mark.parametrize("directed", [False, True])
def test_contributions_add_up_to_the_prediction(directed, columns):
    data = street(60, directed=directed)
    run = longnn.train(data, {**BRIEF, "columns": columns})
    form = TreesForm(
        run.trained.models[0].double(),
        *(lambda p: (p.features.to(torch.float64), p.operator.to(torch.float64)))(run.problem),
    )
    every, q = np.arange(60), torch.ones(60, 1, dtype=torch.float64)
    part = form.explain(every, q, features=True)
    scores = form.scores[:, 0].numpy()
    np.testing.assert_allclose(part.constant + part.contributions.sum(1), scores, atol=1e-9)
    by_feature = part.constant + part.base + part.features.sum(1)
    np.testing.assert_allclose(by_feature, scores, atol=1e-9)
    group = (torch.arange(60) < 20).double()
    influence, features = form.overall(q, [torch.ones(60).double(), group])
    np.testing.assert_allclose(influence, part.contributions.sum(0), atol=1e-9)
    np.testing.assert_allclose(features[0], part.features.sum(0), atol=1e-9)
    np.testing.assert_allclose(features[1], part.features[:20].sum(0), atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "all"}, "`columns` to be one of alone, neighbours, around"),
        ({"degree": 0}, "`degree` within"),
        ({"leaves": 1}, "`leaves` within"),
        ({"share": 0.0}, "`share`"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        BoostedTrees(3, 1, 2, **options)


def test_a_search_finds_better_trees():
    space = {"columns": {"choices": ["alone", "neighbours"]}, "epochs": 30}
    found = tune(street(300), space, model="trees", trials=4, repeats=1, finalists=1, folder=None)
    assert found.config.options["columns"] == "neighbours"
