"""Several models that answer as one give the weighted average of what they predict."""

import pytest
import torch

from longnn.graphs import GraphOperator
from longnn.nn import GCN, LONGNN, MLP
from longnn.nn._ensemble import Ensemble

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
X = torch.rand(4, 5, generator=torch.Generator().manual_seed(0))
WEIGHTS = {"one": 0.25, "two": 0.75}
TEMPERATURES = {"one": 2.0, "two": 0.5}


def members(*kinds, outputs=3):
    torch.manual_seed(1)
    return dict(zip(WEIGHTS, (kind(5, 8, outputs).eval() for kind in kinds), strict=True))


def each(models):
    return [
        models[name](X, EDGES) / TEMPERATURES[name] for name in WEIGHTS
    ]  # every member on the operator that it makes for itself


@torch.no_grad()
def test_probabilities_are_averaged_each_with_its_temperature():
    models = members(LONGNN, MLP)
    both = Ensemble(models, WEIGHTS, TEMPERATURES, "classification")
    one, two = (s.softmax(1) for s in each(models))
    torch.testing.assert_close(both(X, EDGES).softmax(1), 0.25 * one + 0.75 * two)


@torch.no_grad()
def test_probabilities_of_labels_are_averaged():
    models = members(LONGNN, MLP)
    both = Ensemble(models, WEIGHTS, TEMPERATURES, "multilabel")
    one, two = (s.sigmoid() for s in each(models))
    torch.testing.assert_close(both(X, EDGES).sigmoid(), 0.25 * one + 0.75 * two)


@torch.no_grad()
def test_values_are_averaged_without_temperature():
    models = members(LONGNN, MLP, outputs=1)
    both = Ensemble(models, WEIGHTS, TEMPERATURES, "regression")
    one, two = (models[name](X, EDGES) for name in WEIGHTS)
    torch.testing.assert_close(both(X, EDGES), 0.25 * one + 0.75 * two)


@torch.no_grad()
def test_members_may_differ_in_self_loops():
    models = members(LONGNN, GCN)
    both = Ensemble(models, WEIGHTS, TEMPERATURES)
    one, two = (s.softmax(1) for s in each(models))
    torch.testing.assert_close(both(X, EDGES).softmax(1), 0.25 * one + 0.75 * two)
    with pytest.raises(ValueError, match="treat self loops alike"):
        both(X, GraphOperator.from_edge_index(EDGES))


def test_filters_are_those_of_the_leading_member_that_has_any():
    models = members(LONGNN, MLP)
    both = Ensemble(models, WEIGHTS, TEMPERATURES)
    assert both.leader == "one"
    assert both.filters() == models["one"].filters()


@torch.no_grad()
def test_the_order_of_members_does_not_matter():
    models = members(LONGNN, MLP)
    backwards = dict(reversed(models.items()))
    one, two = (Ensemble(m, WEIGHTS, TEMPERATURES) for m in (models, backwards))
    assert list(one.state_dict()) == list(two.state_dict())
    assert torch.equal(one(X, EDGES), two(X, EDGES))


def test_an_ensemble_has_a_member():
    with pytest.raises(ValueError, match="at least one member"):
        Ensemble({}, {}, {})
