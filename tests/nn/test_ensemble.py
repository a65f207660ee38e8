"""Several models that answer as one give the weighted average of what they predict; models of one
architecture in one pass say what each says alone."""

import pytest
import torch

from longnn.graphs import GraphOperator
from longnn.nn import GCN, LONGNN, MLP, Directed
from longnn.nn import _ensemble as module
from longnn.nn._ensemble import Ensemble, layout, scores_together
from longnn.nn._terms import OnRows, Terms

from .test_models import ARCS, CLASSES, EDGES, FEATURES, NODES, alike, build, features

SIZES = (FEATURES, 8, CLASSES)
X = features(torch.float32)
WEIGHTS = {"one": 0.25, "two": 0.75}
TEMPERATURES = {"one": 2.0, "two": 0.5}


def pair(*kinds):
    torch.manual_seed(1)
    return dict(zip(WEIGHTS, (kind(*SIZES).eval() for kind in kinds), strict=True))


MEANS = {
    "classification": lambda s: s.softmax(1),
    "multilabel": torch.sigmoid,
    "regression": lambda s: s,
}


@pytest.mark.parametrize("kinds", [(LONGNN, MLP), (LONGNN, GCN)], ids=["mlp", "other self loops"])
@pytest.mark.parametrize("task", MEANS)
@torch.no_grad()
def test_predictions_are_averaged_each_with_its_temperature(task, kinds):
    """Each member on the operator that it makes for itself; values have no temperature."""
    models, mean = pair(*kinds), MEANS[task]
    both = Ensemble(models, WEIGHTS, TEMPERATURES, task)
    by = dict.fromkeys(WEIGHTS, 1.0) if task == "regression" else TEMPERATURES
    expected = sum(WEIGHTS[n] * mean(m(X, EDGES) / by[n]) for n, m in models.items())
    torch.testing.assert_close(mean(both(X, EDGES)), expected)
    backwards = Ensemble(dict(reversed(models.items())), WEIGHTS, TEMPERATURES, task)
    assert list(both.state_dict()) == list(backwards.state_dict())
    assert torch.equal(both(X, EDGES), backwards(X, EDGES))
    assert both.leader == "one"
    assert both.filters() == models["one"].filters()


def test_errors():
    with pytest.raises(ValueError, match="treat self loops alike"):
        Ensemble(pair(LONGNN, GCN), WEIGHTS, TEMPERATURES)(X, GraphOperator.from_edge_index(EDGES))
    with pytest.raises(ValueError, match="at least one member"):
        Ensemble({}, {}, {})


@torch.no_grad()
def test_members_on_arcs():
    twice = (2 * FEATURES, *SIZES[1:])
    members = {"gcn": Directed(GCN(*twice)), "lon": Directed(LONGNN(*twice)), "mlp": MLP(*SIZES)}
    equal = dict.fromkeys(members, 1 / 3)
    both = Ensemble(members, equal, dict.fromkeys(members, 1.0)).eval()
    assert both.direction == "cover"
    expected = torch.stack([m(X, ARCS if n != "mlp" else EDGES) for n, m in members.items()])
    torch.testing.assert_close(both(X, ARCS).softmax(1), expected.softmax(2).mean(0))


@torch.no_grad()
def test_one_pass_for_models_that_differ_in_a_fixed_basis_and_on_rows():
    """Of members of every architecture see test_models.py."""
    torch.manual_seed(0)
    given = [LONGNN(*SIZES, a=a, b=0.5, learn_basis=False).eval() for a in (0.0, 0.5, 1.5)]
    operator = GraphOperator.from_edge_index(EDGES, num_nodes=NODES)
    for model, scores in zip(given, scores_together(given, X, operator), strict=True):
        torch.testing.assert_close(scores, model.scores(X, operator), rtol=1e-5, atol=1e-6)
    given = [LONGNN(*SIZES, placement="features", degree=2).eval() for _ in range(3)]
    terms = Terms({"keep": torch.rand(3, 5, FEATURES)}, {"keep": torch.rand(3, 5)})
    rows = OnRows("keep", 5, torch.device("cpu"), torch.float32)
    for model, scores in zip(given, scores_together(given, terms, rows), strict=True):
        torch.testing.assert_close(scores, model.scores(terms, rows))


@pytest.mark.parametrize(
    ("room", "count", "chunks"), [(1, 5, []), (2, 5, [2]), (100, 5, [100]), (100, 2, [])]
)
def test_where_memory_is_short_few_are_asked_at_once(room, count, chunks, monkeypatch):
    """One by one where room is for one, or for two models; gradients reach the weights of each."""
    models, x = alike("lon", count=count), features()
    operator = models[0].make_operator(EDGES, num_nodes=NODES, dtype=torch.float64)
    monkeypatch.setattr(module, "ROOM", room * NODES * models[0].hidden_channels)
    seen, vmap = [], module.vmap
    monkeypatch.setattr(module, "vmap", lambda f, chunk_size: seen.append(chunk_size) or vmap(f))
    weights = [p for model in models for p in model.parameters()]
    apart = torch.stack([model.scores(x, operator) for model in models])
    together = torch.stack(scores_together(models, x, operator))
    torch.testing.assert_close(together, apart)
    grads = [torch.autograd.grad(s.square().sum(), weights) for s in (together, apart)]
    torch.testing.assert_close(*grads)
    assert seen == chunks


@torch.no_grad()
def test_members_that_can_be_stacked_are_asked_in_one_pass(monkeypatch):
    monkeypatch.setattr(module, "pays", lambda x: True)
    torch.manual_seed(2)
    keys, options = {"a": 1, "b": 2, "c": 1, "d": 1, "e": 1}, {"d": {"degree": 4}}
    members = {name: LONGNN(*SIZES, **options.get(name, {})).eval() for name in keys}
    joined = Ensemble(members, dict.fromkeys(keys, 0.2), dict.fromkeys(keys, 1.0), alike=keys)
    assert joined._passes(X) == [["a", "c", "e"], ["b"], ["d"]]
    together = joined(X, EDGES)
    monkeypatch.setattr(module, "pays", lambda x: False)
    assert joined._passes(X) == [["a"], ["b"], ["c"], ["d"], ["e"]]
    torch.testing.assert_close(together, joined(X, EDGES), rtol=1e-5, atol=1e-6)


def test_on_a_cpu_members_are_asked_one_after_the_other():
    assert not module.pays(features())
    assert layout(build("lon")) == layout(build("lon"))
    assert layout(build("lon")) != layout(build("lon", degree=3))
