"""One conformance suite for every model: on undirected graphs, on arcs, and with types of edges.

``test_formulas.py`` compares each model with a reference that does not share its code.
"""

import copy

import pytest
import torch
from torch_geometric.data import Batch, Data

from longnn import get_model
from longnn.graphs import typed_operator
from longnn.matrices import DenseMatrix, SparseMatrix
from longnn.nn import Directed
from longnn.nn._ensemble import scores_together
from longnn.nn._transform import seeded
from longnn.nn._typed import TypedFilter, hears_types
from longnn.registry import NETWORKS

from ..helpers import ARCHITECTURES, random_graph, random_tensor

NODES, FEATURES, HIDDEN, CLASSES, TYPES = 30, 9, 8, 4, 3
EDGES = random_graph(NODES, isolated=2)
ARCS = EDGES[:, EDGES[0] < EDGES[1]]
#: The type of each edge, the same both ways.
KIND = EDGES.sum(0) % TYPES
DOUBLE = torch.float64
FORMS = {
    "plain": list(NETWORKS),
    "arcs": [name for name, entry in NETWORKS.items() if entry.model.uses_graph],
    "types": [name for name, entry in NETWORKS.items() if entry.model.takes_types],
}


def build(name, dtype=DOUBLE, form="plain", **options):
    """A model away from its initial state, in evaluation mode."""
    sizes = (FEATURES, HIDDEN, CLASSES)
    if form == "arcs" and NETWORKS[name].model.joins_copies:
        options["copies"] = 2
    elif form == "arcs":
        sizes = (2 * FEATURES, HIDDEN, CLASSES)
    elif form == "types":
        options["types"] = TYPES
    with seeded(0):
        model = get_model(name, *sizes, **options)
    model = Directed(model) if form == "arcs" else model
    return moved(model.to(dtype).eval())


def moved(model, seed=5, by=0.2):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(by * torch.randn(p.shape, generator=generator, dtype=DOUBLE))
    return model


def features(dtype=DOUBLE, nodes=NODES, seed=0):
    x = random_tensor(nodes, FEATURES, dtype=dtype, seed=seed)
    return x * (x > 0.3)  # mostly zero, as bags of words are


def as_sparse(x):
    return SparseMatrix.from_dense(x)


def graph_of(model, form, where=None, dtype=DOUBLE):
    """The operator of a model, on nodes that may have other numbers."""
    where = torch.arange(NODES) if where is None else where
    if form == "types":
        options = {"self_loops": model.self_loops, "dtype": dtype}
        return typed_operator(where[EDGES], KIND, None, NODES, **options)
    edges = ARCS if form == "arcs" else EDGES
    return model.make_operator(where[edges], num_nodes=NODES, dtype=dtype)


def alike(name, form="plain", dtype=DOUBLE, count=3):
    """Models of one architecture with weights of their own."""
    return [moved(build(name, dtype, form), seed=i) for i in range(count)]


def test_architectures_are_those_of_models():
    classes = {NETWORKS[name].model for name in ARCHITECTURES}
    assert len(classes) == len(ARCHITECTURES)


@pytest.fixture(
    params=[
        pytest.param((name, form), marks=() if name in ARCHITECTURES else pytest.mark.slow)
        for form, names in FORMS.items()
        for name in names
    ],
    ids="-".join,
)
def case(request):
    return request.param


@pytest.fixture
def model(case):
    return build(case[0], form=case[1])


@pytest.fixture
def graph(model, case):
    return graph_of(model, case[1])


class TestConformance:
    """What every model must do; all twenty in the slow suite, each architecture in the fast one."""

    def test_permutation_equivariance(self, model, graph, case):
        x, order = features(), torch.randperm(NODES, generator=torch.Generator().manual_seed(1))
        permuted = model(x[order], graph_of(model, case[1], torch.argsort(order)))
        torch.testing.assert_close(permuted, model(x, graph)[order])

    def test_a_model_sees_the_graph_in_its_form(self, model, graph, case):
        """Other edges, arcs turned, types changed; an MLP sees none of them."""
        options = {"self_loops": model.self_loops, "dtype": DOUBLE}
        other = {
            "plain": lambda: model.make_operator(EDGES[:, :0], num_nodes=NODES, dtype=DOUBLE),
            "arcs": lambda: model.make_operator(ARCS.flip(0), num_nodes=NODES, dtype=DOUBLE),
            "types": lambda: typed_operator(EDGES, KIND % 2, None, NODES, types=TYPES, **options),
        }[case[1]]()
        difference = (model(features(), graph) - model(features(), other)).abs().max()
        assert difference > 1e-4 if model.uses_graph else difference == 0

    def test_float32_agrees_with_float64(self, model, graph, case):
        exact = model(features(), graph)
        single = copy.deepcopy(model).float()
        answer = single(features().float(), graph_of(single, case[1], dtype=torch.float32))
        assert answer.dtype == torch.float32
        assert (answer.double() - exact).norm() < 2e-5 * exact.norm()

    def test_every_form_of_features_and_graph(self, model, graph, case):
        x = features()
        expected = model(x, graph)
        for form in (as_sparse(x), x.to_sparse_csr(), x.to_sparse(), DenseMatrix(x)):
            torch.testing.assert_close(model(form, graph), expected)
        torch.testing.assert_close(model.scores(as_sparse(x), graph), expected)
        if case[1] != "types":
            edges = ARCS if case[1] == "arcs" else EDGES
            torch.testing.assert_close(model(x, edges), expected)

    def test_gradients_reach_every_weight_and_sparse_features_give_the_same(self, model, graph):
        x, grads = features(), []
        for form in (x, as_sparse(x)):
            model.zero_grad()
            model(form, graph).square().sum().backward()
            grads.append([p.grad.clone() for p in model.parameters()])
        for dense, sparse in zip(*grads, strict=True):
            torch.testing.assert_close(dense, sparse)
            assert dense.isfinite().all()
            assert (dense != 0).any()

    def test_state_dict_round_trip(self, model, graph, case):
        other = moved(build(case[0], form=case[1]), seed=9)
        x = features()
        assert not torch.equal(other(x, graph), model(x, graph))
        other.load_state_dict(model.state_dict())
        assert torch.equal(other(x, graph), model(x, graph))

    def test_vmap_equals_loop(self, case, graph):
        members, x = alike(*case), as_sparse(features())
        state = torch.func.stack_module_state(members)
        call = lambda *state: torch.func.functional_call(  # noqa: E731
            members[0], state, (x, graph)
        )
        together = torch.func.vmap(call)(*state)
        alone = torch.stack([m(x, graph) for m in members])
        torch.testing.assert_close(together, alone)
        # One backward pass through the batch gives each member its own gradient.
        grads = torch.autograd.grad(together.square().sum(), list(state[0].values()))
        for i, member in enumerate(members):
            single = torch.autograd.grad(alone[i].square().sum(), list(member.parameters()))
            torch.testing.assert_close([g[i] for g in grads], list(single))

    def test_groups_hold_every_parameter_once(self, model):
        grouped = [id(p) for group in model.parameter_groups().values() for p in group]
        assert sorted(grouped) == sorted(id(p) for p in model.parameters())

    def test_dropout_is_off_at_evaluation_and_on_in_training(self, model, graph):
        x = features()
        assert torch.equal(model(x, graph), model(x, graph))
        model.train()
        torch.manual_seed(0)
        first = model(x, graph)
        assert not torch.equal(first, model(x, graph))
        torch.manual_seed(0)
        assert torch.equal(first, model(x, graph))

    def test_reset_draws_weights_and_starts_filters_again(self, model, case):
        before = [p.clone() for p in model.parameter_groups()["transform"]]
        model.reset_parameters()
        after = model.parameter_groups()["transform"]
        assert any(not torch.equal(p, q) for p, q in zip(before, after, strict=True))
        fresh = get_model(case[0], FEATURES, HIDDEN, CLASSES).double().filters()
        typed = [m for m in model.modules() if isinstance(m, TypedFilter)]
        each = [m.each for m in typed] if case[1] == "types" else [[f] for f in model.filters()]
        for filters, plain in zip(each, fresh, strict=True):
            start = plain.chebyshev_coefficients()
            # Filters that are added start as their mean.
            start = start / TYPES if typed and typed[0].join == "sum" else start
            for f in filters:
                torch.testing.assert_close(f.chebyshev_coefficients(), start, rtol=1e-5, atol=1e-6)

    def test_wrong_number_of_features(self, model, graph):
        with pytest.raises(ValueError, match=r"features with (9|18) columns \(got (3|6)\)"):
            model(torch.zeros(NODES, 3).double(), graph)

    @torch.no_grad()
    def test_one_pass_for_members_gives_what_each_gives(self, case, graph):
        members = alike(*case)
        for x in (features(), as_sparse(features())):
            for member, scores in zip(members, scores_together(members, x, graph), strict=True):
                torch.testing.assert_close(scores, member.scores(x, graph))

    def test_faces_of_arcs_and_types(self, model, case):
        """What training asks a model on arcs is asked of the model inside."""
        if case[1] == "arcs":
            inner = model.model
            assert model.filters() == inner.filters()
            assert model.parameter_groups().keys() == inner.parameter_groups().keys()
            torch.testing.assert_close(model.penalty(), inner.penalty())
            assert model.self_loops == inner.self_loops
        assert hears_types(model) == (case[1] == "types")
        assert case[1] != "types" or len(model.filters()) % TYPES == 0

    def test_a_batch_of_graphs_is_each_alone(self, model, case):
        """Not of optbasis, whose basis is normalised over all nodes of the batch by definition."""
        if case[0] == "optbasis" or case[1] != "plain":
            return
        graphs = [
            Data(x=features(nodes=n, seed=n), edge_index=random_graph(n, seed=n)) for n in (7, 11)
        ]
        batch = Batch.from_data_list(graphs)
        alone = torch.cat([model(g.x, g.edge_index) for g in graphs])
        torch.testing.assert_close(model(batch.x, batch.edge_index), alone)
