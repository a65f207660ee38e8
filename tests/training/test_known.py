"""Laws of known answers: who may tell whom, what adds up, and that chance teaches nothing."""

import dataclasses

import pytest
import torch
from torch_geometric.data import Data

import longnn
from longnn._base.schema import Node
from longnn.data import DataError, from_data, make_split
from longnn.graphs import GraphOperator
from longnn.training import combine, complete, fit
from longnn.training._ensemble import votes_of
from longnn.training._known import (
    Around,
    KnownFilter,
    Rests,
    corrected,
    fold_numbers,
    learn,
    views_of,
)
from longnn.training._process import COVARIANCES, carry, product_of
from tests.commands import without_report

pytestmark = pytest.mark.usefixtures("no_report")

QUICK = {"preset": "fast", "epochs": 15, "baselines": False}


def ring(nodes=40, seed=0):
    """A ring with chords, as an operator."""
    generator = torch.Generator().manual_seed(seed)
    chords = torch.randint(nodes, (2, nodes // 2), generator=generator)
    chords = chords[:, chords[0] != chords[1]]
    around = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    index = torch.cat([around, chords], 1)
    return torch.unique(torch.cat([index, index.flip(0)], 1), dim=1)


def whole(index, nodes):
    operator = GraphOperator.from_edge_index(index, num_nodes=nodes, dtype=torch.float64)
    return Around(product_of(operator), nodes, torch.arange(nodes)), operator


def dense(covariance, operator):
    """h(P) by its definition."""
    p = torch.from_numpy(operator.matrix.to_scipy().toarray())
    eye = torch.eye(len(p), dtype=torch.float64)
    if covariance.kind == "near":
        half = (eye + covariance.a * p) / 2
        return half @ half
    return torch.linalg.inv(eye - covariance.a * p)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_expected_rests_are_those_of_the_process(covariance):
    nodes = 40
    around, operator = whole(ring(nodes), nodes)
    generator = torch.Generator().manual_seed(1)
    r = torch.randn(nodes, 2, generator=generator, dtype=torch.float64)
    known = (torch.rand(nodes, 2, generator=generator) < 0.5).double()
    h = dense(covariance, operator)
    found = carry(around.product, covariance, r, known)
    for k in range(2):
        m = known[:, k] > 0
        seen = h[m][:, m] + torch.eye(int(m.sum()), dtype=torch.float64) / covariance.w
        expected = h[:, m] @ torch.linalg.solve(seen, r[m, k])
        assert torch.allclose(found[:, k], expected, atol=1e-4)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_folds_of_one_node_leave_out_its_own_rest_exactly(covariance):
    """Without node i the process expects r_i - a_i / c_ii there, a = C r, C the inverse of what is
    seen."""
    nodes = 40
    around, operator = whole(ring(nodes), nodes)
    r = torch.randn(nodes, 1, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    rests = Rests(r, torch.arange(nodes))
    found = rests.signals(around.product, [covariance])[0, :, 0]
    inverse = torch.linalg.inv(
        dense(covariance, operator) + torch.eye(nodes, dtype=torch.float64) / covariance.w
    )
    expected = r[:, 0] - (inverse @ r[:, 0]) / inverse.diagonal()
    assert torch.allclose(found, expected, atol=1e-4)
    tenths = Rests(r, torch.arange(nodes) % 10).signals(around.product, [covariance])[0, :, 0]
    assert float(torch.corrcoef(torch.stack([tenths, expected]))[0, 1]) > 0.9


def smooth(nodes=400, seed=0, task="regression"):
    """Labels that vary smoothly over a graph, of which the predictions know nothing."""
    index = ring(nodes, seed)
    around, operator = whole(index, nodes)
    generator = torch.Generator().manual_seed(seed)
    field = torch.randn(nodes, 1, generator=generator, dtype=torch.float64)
    for _ in range(6):
        field = (field + operator.matrix @ field) / 2
    field = (field[:, 0] - field.mean()) / field.std()
    y = field if task == "regression" else (field > 0).long()
    predicted = torch.zeros(nodes, dtype=torch.float64)
    if task == "classification":
        predicted = torch.full((nodes, 2), 0.5, dtype=torch.float64)
    part = torch.rand(nodes, generator=generator)
    return around, predicted, y, part < 0.5, (part >= 0.5) & (part < 0.75), part >= 0.75


def loss(predicted, y):
    if y.dtype == torch.int64:
        return float((predicted.argmax(1) != y).double().mean())
    return float((predicted - y).square().mean() / y.var())


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_what_neighbours_have_in_common_is_learned(task):
    around, predicted, y, train, val, test = smooth(task=task)
    learned = learn(around, predicted, y, train, val, task)
    after = corrected(predicted, learned.change, task)
    assert learned.filter.used
    assert loss(after[test], y[test]) < 0.6 * loss(predicted[test], y[test])


def test_votes_go_to_members_that_know_what_known_answers_do_not():
    """One member knows what varies smoothly, which is more; one knows all but that."""
    around, _, y, train, val, test = smooth()
    own = torch.randn(len(y), generator=torch.Generator().manual_seed(9)).to(y) * y.std() / 2
    members = [y, own]
    heard = (around, members, y + own, train, val, "regression")
    alone, told = views_of(*heard)
    votes = [votes_of(views, (y + own)[val], "regression") for views in ([alone], [alone, told])]
    assert votes[1][1] > votes[0][1] + 0.1
    left = []
    for vote in votes:
        said = combine(torch.stack(members), vote)
        change = learn(around, said, y + own, train, val, "regression").change
        left.append(loss(corrected(said, change, "regression")[test], (y + own)[test]))
    assert left[1] < left[0]
    moved = y + own + 100.0 * test
    assert torch.equal(views_of(around, members, moved, train, val, "regression")[1], told)
    assert len(views_of(None, *heard[1:])) == 1


def test_shares_of_known_answers_add_up_to_the_change():
    around, predicted, y, train, val, test = smooth(nodes=120)
    learned = learn(around, predicted, y, train, val, "regression")
    nodes = [int(mask.nonzero()[0]) for mask in (train, val, test)]
    each = learned.filter.shares(around, learned.rests, torch.tensor(nodes))
    for node, shares in zip(nodes, each.unbind(1), strict=True):
        assert shares.sum(0).item() == pytest.approx(learned.change[node].item(), abs=1e-5)
        assert float(shares[node]) == 0
        assert not bool(shares[test].any())


def test_the_order_of_nodes_is_no_matter():
    around, predicted, y, train, val, _ = smooth(nodes=200)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(3))
    place = order.argsort()
    product = around.product
    turned = Around(lambda x: product(x[place])[order], 200, torch.arange(200))
    learned = learn(around, predicted, y, train, val, "regression")
    again = learn(turned, *(v[order] for v in (predicted, y, train, val)), "regression")
    assert torch.allclose(again.change, learned.change[order], atol=1e-6)


def test_few_validation_nodes_teach_nothing():
    around, predicted, y, train, val, _ = smooth(nodes=100)
    val = val & (val.cumsum(0) <= 20)
    learned = learn(around, predicted, y, train, val, "regression")
    assert not learned.filter.used
    assert not bool(learned.change.any())


def test_folds_are_even_and_of_one_set():
    r = torch.randn(50, 1)
    first = torch.arange(50) < 33
    fold = fold_numbers(r, r, first, ~first)
    assert set(fold[first].tolist()).isdisjoint(fold[~first].tolist())
    counts = torch.bincount(fold[first])
    assert int(counts.max() - counts.min()) <= 1


# Through the face: train, save, load, predict.


def street(nodes=300, seed=0, task="regression"):
    """A graph whose labels vary smoothly, with one column that says nothing."""
    y = smooth(nodes, seed, task)[2]
    generator = torch.Generator().manual_seed(seed + 1)
    x = torch.randn(nodes, 2, generator=generator)
    y = y.float() if task == "regression" else y
    ids = [f"house {k}" for k in range(nodes)]
    return from_data(Data(x=x, edge_index=ring(nodes, seed), y=y), task=task, ids=ids)


@pytest.fixture(scope="module", params=["regression", "classification"])
def run(request, tmp_path_factory):
    with without_report():
        return longnn.train(
            street(task=request.param), QUICK, tmp_path_factory.mktemp("known") / "run"
        )


def test_new_nodes_hear_of_the_known_answers_of_the_run(run):
    """Two houses more, without labels: the others are predicted as before, but for those nearby."""
    old = run.dataset
    nodes = old.num_nodes
    more = torch.tensor([[0, nodes, 1, nodes + 1], [nodes, 0, nodes + 1, 1]])
    data = Data(
        x=torch.cat([old.data.x, torch.zeros(2, 2)]),
        edge_index=torch.cat([old.data.edge_index, more], 1),
    )
    grown = from_data(data, ids=[*old.ids, "new 1", "new 2"])
    trained = run.trained
    problem = trained.problem(grown)
    assert "run's graph" in problem.known.text
    now = trained.predict(problem)
    assert float((now[:nodes] - run.predicted[0]).abs().median()) < 0.02
    without = trained.predict(trained.problem(grown, known="none"))
    assert float((now[nodes:] - without[nodes:]).abs().max()) > 0.01


def test_another_graph_with_the_same_ids_uses_its_own_labels(run):
    other = street(seed=7, task=run.trained.task)
    problem = run.trained.problem(other)
    assert "this graph" in problem.known.text
    bare = from_data(Data(x=other.data.x, edge_index=other.data.edge_index), ids=list(other.ids))
    assert run.trained.problem(bare).known.text.startswith("none")
    with pytest.raises(DataError, match="Expected labels in this graph"):
        run.trained.problem(bare, known="file")
    stranger = dataclasses.replace(other, ids=[str(k) for k in range(other.num_nodes)])
    with pytest.raises(DataError, match="Expected nodes of the run's graph"):
        run.trained.problem(stranger, known="run")


def test_known_answers_of_training_nodes_alone():
    dataset = street()
    config = complete({**QUICK, "known_answers": "train"}, dataset)
    (fitted,) = fit(dataset, [config], [make_split(dataset, None, 0)])
    assert fitted.known.used
    assert {int(i.split()[1]) for i in fitted.told.ids} == set(
        fitted.split.train.nonzero()[:, 0].tolist()
    )
    (plain,) = fit(dataset, [config.replace(known_answers="none")], [fitted.split])
    assert torch.equal(plain.predicted, fitted.plain)


def test_damaged_known_answers_are_one_line():
    node = Node({"coefficients": [[1.0]]}, file="weights.safetensors")
    with pytest.raises(ValueError, match="numbers per group"):
        KnownFilter(((1.0,),), (1.0,), (0.1,), (2.0,)).check(node)


def test_known_answers_never_cost_the_order_where_a_class_is_rare(monkeypatch):
    """A filter that makes answers likelier and their order worse stays silent."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(400, 3, generator=generator)
    rare = from_data({"x": x, "edge_index": ring(400), "y": (x[:, 0] > 1.6).long()})

    def reverse(around, predicted, labels, train, val, task, **_):
        learned = learn(around, predicted, labels, train, val, task)
        loud = tuple((1.0,) * len(row) for row in learned.filter.coefficients)
        change = torch.tensor([0.0, -50.0]) * predicted[:, [1]]
        heard = dataclasses.replace(learned.filter, coefficients=loud)
        return learned._replace(filter=heard, change=change, honest=change[val])

    monkeypatch.setattr("longnn.training._job.learn", reverse)
    config = complete({"preset": "fast", "epochs": 15}, rare)
    (one,) = fit(rare, [config], [make_split(rare, None, 0)])
    assert one.known is not None
    assert not one.known.used
    assert one.plain is None


def test_few_nodes_do_not_decide_whether_known_answers_of_numbers_are_used():
    """Two pairs of outliers that tell each other's answer do not speak for a thousand others."""
    around, predicted, y, train, val, _ = smooth(nodes=600)
    noise = torch.randn(len(y), generator=torch.Generator().manual_seed(1)).to(y)
    quiet = learn(around, predicted, noise, train, val, "regression")
    assert not quiet.filter.used
    loud = noise.clone()
    loud[val.nonzero()[:2, 0]] = 40.0
    assert not learn(around, predicted, loud, train, val, "regression").filter.used


def test_a_graph_of_too_much_work_is_left_out(monkeypatch):
    graph = from_data(
        Data(x=torch.rand(4, 2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.rand(4))
    )
    assert Around.of(graph, torch.float32) is not None
    monkeypatch.setattr("longnn.training._known.MOST_WORK", 0)
    assert Around.of(graph, torch.float32) is None
