"""Models of one architecture in one pass say what each says alone."""

import pytest
import torch

from longnn.graphs import GraphOperator
from longnn.nn import LONGNN
from longnn.nn import _ensemble as ensemble_module
from longnn.nn import _ensemble as together_module
from longnn.nn._ensemble import Ensemble, layout, scores_together
from longnn.nn._terms import OnRows, Terms
from longnn.registry import MODELS

from .test_models import EDGES, NODES, as_sparse, build, features


def alike(name, dtype, count=3):
    """Models of one architecture with weights of their own."""
    models = [build(name, dtype) for _ in range(count)]
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for p in (p for model in models for p in model.parameters()):
            p.add_(0.1 * torch.randn(p.shape, generator=generator).to(dtype))
    return models


@pytest.mark.parametrize("form", [torch.Tensor.clone, as_sparse])
@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_one_pass_gives_what_each_gives(name, form):
    models, x = alike(name, torch.float32), form(features(torch.float32))
    operator = models[0].make_operator(EDGES, num_nodes=NODES)
    for model, found in zip(models, scores_together(models, x, operator), strict=True):
        torch.testing.assert_close(found, model.scores(x, operator), rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_models_that_differ_in_a_fixed_basis():
    torch.manual_seed(0)
    made = [LONGNN(9, 8, 4, a=a, b=0.5, learn_basis=False).eval() for a in (0.0, 0.5, 1.5)]
    operator = GraphOperator.from_edge_index(EDGES, num_nodes=NODES)
    x = features(torch.float32)
    for model, found in zip(made, scores_together(made, x, operator), strict=True):
        torch.testing.assert_close(found, model.scores(x, operator), rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_on_rows_of_terms():
    torch.manual_seed(0)
    made = [LONGNN(9, 8, 4, placement="features", degree=2).eval() for _ in range(3)]
    terms = Terms({"keep": torch.rand(3, 5, 9)}, {"keep": torch.rand(3, 5)})
    rows = OnRows("keep", 5, torch.device("cpu"), torch.float32)
    for model, found in zip(made, scores_together(made, terms, rows), strict=True):
        torch.testing.assert_close(found, model.scores(terms, rows))


@torch.no_grad()
def test_two_are_asked_one_by_one(monkeypatch):
    models, x = alike("lon", torch.float64, 2), features()
    operator = models[0].make_operator(EDGES, num_nodes=NODES, dtype=torch.float64)
    monkeypatch.setattr(together_module, "vmap", None)  # would be called for more
    assert len(scores_together(models, x, operator)) == 2


@pytest.mark.parametrize("room", [1, 2, 100])
@torch.no_grad()
def test_where_memory_is_short_few_are_asked_at_once(room, monkeypatch):
    models, x = alike("lon", torch.float64, 5), features()
    operator = models[0].make_operator(EDGES, num_nodes=NODES, dtype=torch.float64)
    monkeypatch.setattr(together_module, "ROOM", room * NODES * models[0].hidden_channels)
    seen = []
    kept = together_module.vmap
    monkeypatch.setattr(
        together_module, "vmap", lambda f, chunk_size: seen.append(chunk_size) or kept(f)
    )
    for model, found in zip(models, scores_together(models, x, operator), strict=True):
        torch.testing.assert_close(found, model.scores(x, operator))
    assert seen == ([] if room == 1 else [room])


def test_gradients_reach_the_weights_of_each():
    models, x = alike("lon", torch.float64, 3), features()
    operator = models[0].make_operator(EDGES, num_nodes=NODES, dtype=torch.float64)
    weights = [p for model in models for p in model.parameters()]
    apart = torch.stack([model.scores(x, operator) for model in models]).square().sum()
    together = torch.stack(scores_together(models, x, operator)).square().sum()
    for one, other in zip(
        *(torch.autograd.grad(s, weights) for s in (apart, together)), strict=True
    ):
        torch.testing.assert_close(one, other)


class TestEnsemble:
    """Which members are asked in one pass."""

    @staticmethod
    def make(keys, **options):
        torch.manual_seed(2)
        members = {name: LONGNN(9, 8, 4, **options.get(name, {})).eval() for name in keys}
        even = dict.fromkeys(keys, 1 / len(keys))
        return Ensemble(members, even, dict.fromkeys(keys, 1.0), alike=keys)

    @pytest.fixture(autouse=True)
    def _one_pass(self, monkeypatch):
        monkeypatch.setattr(ensemble_module, "pays", lambda x: True)

    @torch.no_grad()
    def test_members_alike_are_asked_together(self, monkeypatch):
        joined, x = self.make({"a": 1, "b": 2, "c": 1, "d": 1}), features(torch.float32)
        assert joined._passes(x) == [["a", "c", "d"], ["b"]]
        together = joined(x, EDGES)
        monkeypatch.setattr(ensemble_module, "pays", lambda x: False)
        assert joined._passes(x) == [["a"], ["b"], ["c"], ["d"]]
        torch.testing.assert_close(together, joined(x, EDGES), rtol=1e-5, atol=1e-6)

    def test_what_cannot_be_stacked_is_not(self):
        other = {"b": {"degree": 4}, "c": {"self_loops": "add"}}
        joined = self.make({"a": 1, "b": 1, "c": 1, "d": 1}, **other)
        assert joined._passes(features()) == [["a", "d"], ["b"], ["c"]]

    def test_dropout_is_drawn_for_each(self):
        joined = self.make({"a": 1, "b": 1})
        joined.train()
        assert joined._passes(features()) == [["a"], ["b"]]

    def test_a_member_without_a_key_is_asked_alone(self):
        joined = self.make({"a": 1, "b": 1})
        joined.alike = {}
        assert joined._passes(features()) == [["a"], ["b"]]


def test_on_a_cpu_members_are_asked_one_after_the_other():
    assert not together_module.pays(features())
    assert layout(build("lon")) == layout(build("lon"))
    assert layout(build("lon")) != layout(build("lon", degree=3))
