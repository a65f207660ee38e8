"""Every model, task and joint of models is explained, and the parts add up."""

import numpy as np
import pytest
import torch

from longnn.explain import explain_model, explain_nodes
from longnn.explain._exact import has_exact_form
from longnn.explain._forms import IntegratedForm, integrate
from longnn.explain._subject import Question
from longnn.registry import NETWORKS
from tests.explain.cases import ARROWS, HERE, double_model, make_ensemble, make_trained
from tests.helpers import one_per_architecture, random_tensor

NODES = [3, 7]
ON_ARCS = [f"{name}, on arcs" for name in ("lon", "mlp", "cheb", "arma", "gat-deep")]


def on_graph(name):
    """A model, the graph it is trained on, and its options; deep ones have two blocks."""
    model = name.removesuffix(", on arcs")
    options = {"blocks": 2} if model.endswith("deep") else {}
    if model == name:
        return model, HERE, options
    return model, ARROWS, {**options, "direction": "cover"}


@pytest.mark.parametrize("name", [*one_per_architecture(NETWORKS), *ON_ARCS])
def test_every_model_is_explained(name):
    name, graph, options = on_graph(name)
    trained = make_trained(name, repeats=1, **options)
    explained = explain_nodes(trained, graph, NODES)
    model, problem = double_model(trained, graph)
    scores = model.scores(problem.features, problem.operator).detach()
    exact = has_exact_form(model)
    assert explained.exact == exact
    assert explained.method == ("exact" if exact else "integrated gradients")
    for i, e in zip(NODES, explained.nodes, strict=True):
        assert e.score == pytest.approx(float(scores[i].max()), abs=1e-10)
        limit = 1e-12 if exact else 0.05 * max(1, abs(e.score))  # of 64 points and many kinks
        assert abs(e.gap) < limit
        assert abs(e.feature_gap) < limit


@pytest.mark.parametrize(
    ("name", "hops"),
    [("gcn", 2), ("cheb", 4), ("arma", 2), ("lon", 4), ("gcn, on arcs", 2), ("cheb, on arcs", 4)],
)
def test_gradients_are_taken_within_reach_only(name, hops):
    """On the nodes within reach the scores are those of the whole graph."""
    name, graph, options = on_graph(name)
    options |= {"placement": "both", "degree": 2} if name == "lon" else {}
    model, problem = double_model(make_trained(name, repeats=1, **options), graph)
    form = IntegratedForm(model, problem.features, problem.operator)
    near = form._reach(7)
    operator = form._between(near)
    with torch.no_grad():
        local = model.scores(torch.from_numpy(form._features[near].toarray()), operator)
    torch.testing.assert_close(local[list(near).index(7)], form.scores[7])
    assert form.hops == hops


def test_integrated_gradients_of_a_linear_function_are_exact():
    """SGC is linear in X: the integral must give what the exact form gives."""
    trained = make_trained("sgc", repeats=1)
    model, problem = double_model(trained)
    form = IntegratedForm(model, problem.features, problem.operator)
    exact = explain_nodes(trained, HERE, [7])[0]
    q = torch.zeros(1, 3, dtype=torch.float64)
    q[0, ["a", "b", "c"].index(exact.output)] = 1
    part = form.explain(np.array([7]), q, features=True)
    np.testing.assert_allclose(part.features[0], exact.features, atol=1e-12)
    assert part.constant[0] == pytest.approx(exact.base, abs=1e-12)


def test_integrated_gradients_are_those_of_captum():
    attr = pytest.importorskip("captum.attr")
    x, W = random_tensor(6, 4), random_tensor(4, 3, seed=1)

    def value(point):
        return (torch.relu(point @ W - 0.2).tanh() ** 2).sum((-2, -1))

    options = {"n_steps": 64, "method": "gausslegendre", "internal_batch_size": 1}
    expected = attr.IntegratedGradients(value).attribute(x[None], **options)[0]
    by_row, by_column = integrate(lambda point: value(point)[None], x)
    torch.testing.assert_close(by_row[0], expected.sum(1))
    torch.testing.assert_close(by_column[0], expected.sum(0))


@pytest.mark.parametrize("task", ["regression", "multilabel"])
@pytest.mark.parametrize("repeats", [1, 2])
def test_other_tasks(task, repeats):
    trained = make_trained("lon", task=task, repeats=repeats)
    found = explain_nodes(trained, HERE, NODES)
    predicted = trained.predict(trained.problem(HERE)).double()
    for i, e in zip(NODES, found.nodes, strict=True):
        assert abs(e.gap) < 1e-9
        assert abs(e.feature_gap) < 1e-9
        if task == "regression":
            assert found.what == "predicted value"
            assert e.probability is None
            assert e.score == pytest.approx(float(predicted[i]), abs=1e-5)
        else:
            assert e.probability == pytest.approx(float(predicted[i].max()), abs=1e-6)
            if repeats == 2:
                assert torch.tensor(e.score).sigmoid() == pytest.approx(e.probability, abs=1e-5)


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel", "on arcs"])
@pytest.mark.parametrize("repeats", [1, 2])
def test_ensembles_of_exact_members_add_up(task, repeats):
    """Members with their own self loops, or that ignore the graph and so have no copies on arcs;
    what is explained is the averaged prediction."""
    arcs = task == "on arcs"
    graph, options = (ARROWS, {"direction": "cover"}) if arcs else (HERE, {"task": task})
    trained = make_ensemble("lon", "gpr", "mlp", repeats=repeats, **options)
    found = explain_nodes(trained, graph, NODES)
    assert found.exact
    predicted = trained.predict(trained.problem(graph)).double()
    for i, e in zip(NODES, found.nodes, strict=True):
        assert abs(e.gap) < 1e-9
        assert abs(e.feature_gap) < 1e-9
        assert e.chebyshev.sum() == pytest.approx(e.contribution.sum())
        if arcs:
            assert e.ways.sum() == pytest.approx(e.contribution.sum())
        if task == "regression":
            assert e.score == pytest.approx(float(predicted[i]), abs=1e-5)
        elif task != "multilabel" and repeats == 2:
            assert e.score == pytest.approx(float(predicted[i].max().log()), abs=1e-5)


def test_mixed_ensembles_show_their_gap():
    found = explain_nodes(make_ensemble("lon", "gcn"), HERE, NODES)
    assert not found.exact
    assert found.method == "1 model exact; 1 model integrated gradients"
    for e in found.nodes:
        assert 1e-12 < abs(e.gap) < 0.05
        assert e.chebyshev is None


def test_the_joint_of_models_is_split_exactly_though_scores_are_large():
    trained = make_ensemble("lon", "gpr")
    question = Question(
        "classification", [m.double() for m in trained.models], trained.readouts[:1]
    )
    generator = torch.Generator().manual_seed(0)
    z = [30 * torch.randn(5, 3, generator=generator, dtype=torch.float64) for _ in range(2)]
    number, at_zero, A = question.ask(z, torch.tensor([0, 1, 2, 0, 1]))
    total = sum((a * s).sum(1) for a, s in zip(A, z, strict=True))
    torch.testing.assert_close(number - at_zero, total, rtol=0, atol=1e-5)
    torch.testing.assert_close(at_zero, torch.full((5,), 1 / 3, dtype=torch.float64).log())


def test_stability_compares_repeats_or_members():
    same = make_trained("lon", repeats=1)
    assert len(explain_model(same, HERE).stability) == 0
    twice = make_trained("lon", repeats=2)
    twin = {**vars(twice), "states": (twice.states[0], twice.states[0])}
    twin = type(twice)(**{k: v for k, v in twin.items() if k != "models"})
    rows = dict(explain_model(twin, HERE).stability.itertuples(index=False))
    assert rows["models or repeats compared"] == 2
    alike = [value for name, value in rows.items() if "correlation" in name]
    assert alike == pytest.approx([1, 1], abs=0.2)  # the temperatures differ, and so the weights
    rows = dict(
        explain_model(make_ensemble("lon", "mlp", "gpr"), HERE).stability.itertuples(index=False)
    )
    assert rows["models or repeats compared"] == 3


def test_a_model_of_integrals_has_an_overview():
    found = explain_model(make_trained("gcn", repeats=1), HERE, sample=3)
    assert found.explained == 3
    assert any("3 nodes of 23" in note for note in found.notes)
    assert set(found.features["output"]) == {"all"}
    assert len(found.influence) == HERE.num_nodes


@pytest.mark.parametrize(
    ("nodes", "options", "message"),
    [
        ([], {}, "at least one node"),
        ([23], {}, r"nodes in 0..22 \(got 23\)"),
        ([0], {"output": "d"}, r"a class of a, b, c \(got 'd'\)"),
        ([0], {"against": "cc"}, "did you mean `c`"),
        ([0], {"repeat": 2}, r"a repeat below 1 \(got 2\)"),
    ],
)
def test_mistakes_are_named(nodes, options, message):
    with pytest.raises(ValueError, match=message):
        explain_nodes(make_trained("lon", repeats=1), HERE, nodes, **options)
