"""One conformance suite for every model, and one independent reference for each."""

import pytest
import torch
from torch.autograd import gradcheck
from torch_geometric import nn as pyg
from torch_geometric.data import Batch, Data
from torch_geometric.utils import add_self_loops

from lab import textbook
from longnn import LONGNN, GraphOperator, get_model
from longnn.matrices import SparseMatrix
from longnn.nn._nonpolynomial import OptBasisFilter
from longnn.nn._polynomial import personalized_pagerank
from longnn.nn._transform import narrow_matmul, normalize_rows
from longnn.registry import MODELS, PAPER_FORM

from ..helpers import (
    ARCHITECTURES,
    double_operator,
    one_per_architecture,
    random_graph,
    random_tensor,
)
from . import message_passing

NODES, FEATURES, HIDDEN, CLASSES = 30, 9, 8, 4
EDGES = random_graph(NODES, isolated=2)


def build(name, dtype=torch.float64, **options):
    """A model away from its initial state, in evaluation mode."""
    torch.manual_seed(0)
    model = get_model(name, FEATURES, HIDDEN, CLASSES, **options).to(dtype).eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=generator, dtype=torch.float64))
    return model


def features(dtype=torch.float64, nodes=NODES, seed=0):
    x = random_tensor(nodes, FEATURES, dtype=dtype, seed=seed)
    return x * (x > 0.3)  # mostly zero, as bags of words are


def as_sparse(x):
    return SparseMatrix.from_dense(x)


@pytest.fixture(params=one_per_architecture(MODELS))
def name(request):
    return request.param


def test_architectures_are_those_of_models():
    classes = {MODELS[name].model for name in ARCHITECTURES}
    assert len(classes) == len(ARCHITECTURES)


class TestConformance:
    """What every model must do; all twenty in the slow suite, each architecture in the fast one."""

    def test_permutation_equivariance(self, name):
        model, x = build(name), features()
        order = torch.randperm(NODES, generator=torch.Generator().manual_seed(1))
        permuted = model(x[order], torch.argsort(order)[EDGES])
        torch.testing.assert_close(permuted, model(x, EDGES)[order])

    def test_float32_agrees_with_float64(self, name):
        exact = build(name)(features(), EDGES)
        single = build(name, torch.float32)(features().float(), EDGES)
        assert single.dtype == torch.float32
        assert (single.double() - exact).norm() < 2e-5 * exact.norm()

    def test_every_form_of_features_and_graph(self, name):
        model, x = build(name), features()
        expected = model(x, EDGES)
        operator = model.make_operator(EDGES, num_nodes=NODES, dtype=torch.float64)
        torch.testing.assert_close(model(x, operator), expected)
        torch.testing.assert_close(model(as_sparse(x), EDGES), expected)
        torch.testing.assert_close(model(x.to_sparse_csr(), operator), expected)

    def test_sparse_features_have_the_same_gradients(self, name):
        model, x = build(name), features()
        grads = []
        for form in (x, as_sparse(x)):
            model.zero_grad()
            model(form, EDGES).square().sum().backward()
            grads.append([p.grad.clone() for p in model.parameters()])
        for dense, sparse in zip(*grads, strict=True):
            torch.testing.assert_close(dense, sparse)

    def test_batch_of_graphs(self, name):
        if name == "optbasis":
            pytest.skip("its basis is normalised over all nodes of the batch, by definition")
        model = build(name)
        graphs = [
            Data(x=features(nodes=n, seed=n), edge_index=random_graph(n, seed=n)) for n in (7, 11)
        ]
        batch = Batch.from_data_list(graphs)
        alone = torch.cat([model(g.x, g.edge_index) for g in graphs])
        torch.testing.assert_close(model(batch.x, batch.edge_index), alone)

    def test_state_dict_round_trip(self, name):
        model, other = build(name), get_model(name, FEATURES, HIDDEN, CLASSES).double().eval()
        other.load_state_dict(model.state_dict())
        assert torch.equal(other(features(), EDGES), model(features(), EDGES))

    def test_vmap_equals_loop(self, name):
        members = [build(name) for _ in range(3)]
        with torch.no_grad():
            for i, member in enumerate(members):
                for p in member.parameters():
                    p.mul_(1 + 0.1 * i)
        x = as_sparse(features())
        operator = members[0].make_operator(EDGES, num_nodes=NODES, dtype=torch.float64)
        state = torch.func.stack_module_state(members)
        call = lambda *state: torch.func.functional_call(  # noqa: E731
            members[0], state, (x, operator)
        )
        together = torch.func.vmap(call)(*state)
        alone = torch.stack([m(x, operator) for m in members])
        torch.testing.assert_close(together, alone)
        # One backward pass through the batch gives each member its own gradient.
        grads = torch.autograd.grad(together.square().sum(), list(state[0].values()))
        for i, member in enumerate(members):
            own = torch.autograd.grad(member(x, operator).square().sum(), list(member.parameters()))
            for batched, single in zip(grads, own, strict=True):
                torch.testing.assert_close(batched[i], single)

    def test_groups_hold_every_parameter_once(self, name):
        model = build(name)
        grouped = [id(p) for group in model.parameter_groups().values() for p in group]
        assert sorted(grouped) == sorted(id(p) for p in model.parameters())

    def test_dropout_is_off_at_evaluation_and_on_in_training(self, name):
        model, x = build(name), features()
        assert torch.equal(model(x, EDGES), model(x, EDGES))
        model.train()
        torch.manual_seed(0)
        first = model(x, EDGES)
        assert not torch.equal(first, model(x, EDGES))
        torch.manual_seed(0)
        assert torch.equal(first, model(x, EDGES))

    def test_reset_changes_the_weights(self, name):
        model = build(name)
        before = [p.clone() for p in model.parameter_groups()["transform"]]
        model.reset_parameters()
        after = model.parameter_groups()["transform"]
        assert any(not torch.equal(p, q) for p, q in zip(before, after, strict=True))

    def test_wrong_number_of_features(self, name):
        with pytest.raises(ValueError, match=r"Expected features with 9 columns \(got 3\)"):
            build(name)(torch.zeros(NODES, 3).double(), EDGES)


OPTIONS = [
    {"transform": "linear"},
    {"transform": "residual"},
    {"placement": "hidden"},
    {"placement": "hidden", "transform": "linear"},
    {"placement": "hidden", "transform": "residual"},
    {"placement": "features"},
    {"placement": "features", "transform": "linear"},
    {"placement": "features", "transform": "residual", "normalize": True},
    {"placement": "both"},
    {"placement": "both", "normalize": True, "shared": True},
    {"placement": "hidden", "normalize": True},
    {"normalize": True},
    {"normalize": True, "transform": "residual"},
    {"coefficients": "free", "weight": "probability"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_forms_of_lon_gnn(options):
    """Each form equals its formula, with the filter applied in the eigenvectors of P."""
    model, x = build("lon", **options), features()
    t = model.transform
    place, kind = options.get("placement", "output"), options.get("transform", "mlp")
    eigenvalues, U = torch.linalg.eigh(double_operator(EDGES, NODES).to_dense())

    def filtered(f, h):
        return U @ (f.response(1 - eigenvalues).T * (U.T @ h))

    def normed(h):
        return h / h.square().mean(1, keepdim=True).sqrt() if options.get("normalize") else h

    h = x @ t.first.weight + t.first.bias
    h = h if t.last is None or place != "output" else normed(h)
    if kind == "residual":
        h = torch.relu(h)
        h = h + torch.relu(h @ t.middle.weight + t.middle.bias)
        h = h @ t.last.weight + t.last.bias
    elif t.last is not None:
        h = torch.relu(h) @ t.last.weight + t.last.bias
    if place == "hidden" and kind != "linear":
        h = torch.relu(h)
    h = filtered(model.filter, h)
    if place != "output":
        h = normed(h)
        h = torch.relu(h) if place in ("features", "both") and kind != "linear" else h
        h = h @ model.readout.weight + model.readout.bias
    if place == "both":
        h = filtered(model.output_filter, h)
    torch.testing.assert_close(model(x, EDGES), h)


def test_a_node_without_hidden_units_is_normalised_to_nothing_with_a_gradient():
    h = torch.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    out = normalize_rows(h)
    torch.testing.assert_close(out.square().mean(1), torch.tensor([1.0, 0.0]))
    out.sum().backward()
    assert h.grad.isfinite().all()


def test_lon_gnn_equals_the_textbook():
    """Same weights, message passing against the Chebyshev matrix: values and all gradients."""
    model = build("lon", a=0.7, b=-0.3, gamma=1.25, **PAPER_FORM)
    plain = textbook.TextbookLONGNN(FEATURES, HIDDEN, CLASSES, gamma=1.25).double().eval()
    t, f = model.transform, model.filter
    with torch.no_grad():
        plain.first.weight.copy_(t.first.weight.T)
        plain.first.bias.copy_(t.first.bias)
        plain.second.weight.copy_(t.last.weight.T)
        plain.second.bias.copy_(t.last.bias)
        plain.a.copy_(f.basis_parameters()["a"])
        plain.b.copy_(f.basis_parameters()["b"])
        plain.weight.copy_(f.coefficients.weight)
        plain.eta.copy_(f.coefficients.eta)
    ours, theirs = model(features(), EDGES), plain(features(), EDGES)
    torch.testing.assert_close(ours, theirs)
    ours.square().sum().backward()
    theirs.square().sum().backward()
    torch.testing.assert_close(t.first.weight.grad.T, plain.first.weight.grad)
    torch.testing.assert_close(f.coefficients.eta.grad, plain.eta.grad)
    for name, other in (("a", plain.a), ("b", plain.b)):
        raw = f.raw_basis[name]  # d/draw = d/da * sigmoid(raw)
        torch.testing.assert_close(raw.grad, other.grad * torch.sigmoid(raw))


def looped():
    return add_self_loops(EDGES, num_nodes=NODES)[0]


TEXTBOOK = {
    "lon": lambda f, h: textbook.jacobi_terms(h, EDGES, 10, **f.basis_parameters()),
    "jacobi-orthnorm": lambda f, h: textbook.jacobi_terms(h, EDGES, 10, **f.basis_parameters()),
    "jacobi-learnable": lambda f, h: textbook.jacobi_terms(
        h, EDGES, 10, **f.basis_parameters(), orthonormal=False
    ),
    "jacobi": lambda f, h: textbook.jacobi_terms(
        h, EDGES, 10, **f.basis_parameters(), orthonormal=False
    ),
    "bern": lambda f, h: message_passing.bernstein_terms(h, EDGES, 10),
    "gpr": lambda f, h: message_passing.monomial_terms(h, looped(), 10),
    "even": lambda f, h: list(message_passing.monomial_terms(h, EDGES, 10))[::2],
}


@pytest.mark.parametrize("name", TEXTBOOK)
def test_polynomial_models_equal_message_passing(name):
    model, x = build(name, **(PAPER_FORM if name == "lon" else {})), features()
    with torch.no_grad():
        h = model.transform(x)
        alpha = model.filter.effective_coefficients()
        terms = TEXTBOOK[name](model.filter, h)
        expected = sum(a * term for a, term in zip(alpha, terms, strict=True))
        torch.testing.assert_close(model(x, EDGES), expected)


def test_chebnet2_equals_its_formula():
    """2/(K+1) sum' of gamma_j T_k(x_j) T_k(P) H, with gamma the values at the nodes."""
    model, x = build("cheb2"), features()
    with torch.no_grad():
        h = model.transform(x)
        gamma = torch.relu(model.filter.coefficients.weight[:, 0])
        j = torch.arange(11, dtype=torch.float64)
        angles = (j + 0.5) * torch.pi / 11
        expected = torch.zeros_like(h)
        for k, term in enumerate(message_passing.chebyshev_terms(h, EDGES, 10)):
            c = 2 / 11 * (gamma * torch.cos(k * angles)).sum()
            expected += (c / 2 if k == 0 else c) * term
        torch.testing.assert_close(model(x, EDGES), expected)


def test_favard_equals_its_recurrence():
    model, x = build("favard", degree=5), features()
    with torch.no_grad():
        h = torch.relu(model.transform(x))
        s, c = (model.filter.basis_parameters()[n].T for n in ("s", "c"))  # (K+1, channels)
        alpha, hop = model.filter.effective_coefficients(), textbook.Hop()
        before, now = torch.zeros_like(h), h / s[0]
        out = alpha[0] * now
        for k in range(5):
            then = (hop(now, EDGES) - c[k] * now - (s[k] * before if k else 0)) / s[k + 1]
            before, now = now, then
            out = out + alpha[k + 1] * now
        expected = out @ model.readout.weight + model.readout.bias
        torch.testing.assert_close(model(x, EDGES), expected)


def test_optbasis_ends_where_the_krylov_space_does():
    """A channel that lives on a component of two nodes has two basis vectors, and a gradient."""
    edges = torch.tensor([[0, 1, 2, 3, 3, 4], [1, 0, 3, 2, 4, 3]])
    operator = GraphOperator.from_edge_index(edges, num_nodes=5)
    signal = torch.tensor([1.0, 2.0, 0, 0, 0])[:, None].requires_grad_()
    filter = OptBasisFilter(6, 1)
    torch.nn.init.ones_(filter.weight)
    out = filter(operator, signal)
    out.square().sum().backward()
    assert out.detach().norm() == pytest.approx(2**0.5, rel=1e-5)  # two vectors, each with weight 1
    assert signal.grad.abs().max() < 10
    torch.testing.assert_close(filter.weight.grad[2:], torch.zeros(5, 1))


def test_optbasis_is_orthonormal_and_spans_the_krylov_space():
    model = build("optbasis", degree=4)
    operator = double_operator(random_graph(NODES), NODES)
    h = random_tensor(NODES, HIDDEN)
    basis = []
    for k in range(5):
        with torch.no_grad():
            model.filter.weight.zero_()
            model.filter.weight[k] = 1.0
        basis.append(model.filter(operator, h).detach())
    V = torch.stack(basis)  # (K+1, nodes, channels)
    gram = torch.einsum("inc,jnc->cij", V, V)
    eye = torch.eye(5, dtype=torch.float64).expand_as(gram)
    torch.testing.assert_close(gram, eye, rtol=0, atol=1e-9)
    power = operator @ (operator @ h)
    inside = torch.einsum("knc,kc->nc", V[:3], torch.einsum("knc,nc->kc", V[:3], power))
    torch.testing.assert_close(inside, power)


def test_appnp_equals_pyg():
    model, x = build("appnp", restart=0.2), features()
    with torch.no_grad():
        expected = pyg.APPNP(10, 0.2)(model.transform(x), EDGES)
        torch.testing.assert_close(model(x, EDGES), expected)


def test_sgc_equals_pyg():
    model, x = build("sgc", degree=3), features()
    conv = pyg.SGConv(FEATURES, CLASSES, K=3).double()
    with torch.no_grad():
        conv.lin.weight.copy_(model.transform.first.weight.T)
        conv.lin.bias.zero_()
        model.transform.first.bias.zero_()  # SGConv adds its bias after the hops
        torch.testing.assert_close(model(x, EDGES), conv(x, EDGES))


def test_gcn_equals_pyg():
    model, x = build("gcn"), features()
    convs = [pyg.GCNConv(FEATURES, HIDDEN).double(), pyg.GCNConv(HIDDEN, CLASSES).double()]
    with torch.no_grad():
        for conv, layer in zip(convs, (model.first, model.second), strict=True):
            conv.lin.weight.copy_(layer.linear.weight.T)
            conv.bias.copy_(layer.bias)
        expected = convs[1](torch.relu(convs[0](x, EDGES)), EDGES)
        torch.testing.assert_close(model(x, EDGES), expected)


@pytest.mark.parametrize("degree", [0, 1, 2, 5])
def test_chebnet_equals_pyg(degree):
    model, x = build("cheb", degree=degree), features()
    convs = [
        pyg.ChebConv(FEATURES, HIDDEN, degree + 1).double(),
        pyg.ChebConv(HIDDEN, CLASSES, degree + 1).double(),
    ]
    largest = torch.tensor(2.0, dtype=torch.float64)
    with torch.no_grad():
        for conv, layer in zip(convs, (model.first, model.second), strict=True):
            blocks = layer.linear.weight.split(layer.out_channels, dim=1)
            for lin, block in zip(conv.lins, blocks, strict=True):
                lin.weight.copy_(block.T)
            conv.bias.copy_(layer.bias)
        h = torch.relu(convs[0](x, EDGES, lambda_max=largest))
        expected = convs[1](h, EDGES, lambda_max=largest)
    if degree == 0:
        torch.testing.assert_close(model(x, EDGES), expected)
        return
    # PyG gives an isolated node the eigenvalue 0 of L (no diagonal entry); I - P gives it 1.
    torch.testing.assert_close(model(x, EDGES)[:-2], expected[:-2])


def test_arma_equals_pyg():
    model, x = build("arma", stacks=2, layers=3), features()
    convs = [
        pyg.ARMAConv(FEATURES, HIDDEN, 2, 3).double().eval(),
        pyg.ARMAConv(HIDDEN, CLASSES, 2, 3, act=None).double().eval(),
    ]
    with torch.no_grad():
        for conv, layer in zip(convs, (model.first, model.second), strict=True):
            for s in range(2):
                conv.init_weight[s] = layer.inner[s][0].weight
                for t in range(3):
                    if t > 0:
                        conv.weight[t - 1, s] = layer.inner[s][t].weight
                    conv.root_weight[t, s] = layer.root[s][t].weight
                    conv.bias[t, s, 0] = layer.root[s][t].bias
        expected = convs[1](torch.relu(convs[0](x, EDGES)), EDGES)
        torch.testing.assert_close(model(x, EDGES), expected)


def test_mlp_does_not_see_the_graph():
    model, x = build("mlp"), features()
    nothing = torch.empty(2, 0, dtype=torch.long)
    torch.testing.assert_close(model(x, EDGES), model(x, nothing))


def test_ablations_learn_what_their_names_say():
    assert set(build("lon").filter.raw_basis) == {"a", "b"}
    assert set(build("jacobi-learnable").filter.raw_basis) == {"a", "b"}
    assert not build("jacobi-orthnorm").filter.raw_basis
    assert not build("jacobi").filter.raw_basis
    model = build("jacobi-learnable")
    model(features(), EDGES).square().sum().backward()
    assert model.filter.raw_basis["a"].grad.abs() > 0  # really learnable


def test_penalty_covers_trained_filters_only():
    lon = build("lon")
    torch.testing.assert_close(lon.penalty(), lon.filter.penalty())
    assert build("appnp").penalty() == 0
    assert build("gcn").penalty() == 0


def test_pagerank_coefficients_sum_to_one():
    torch.testing.assert_close(personalized_pagerank(7, 0.3).sum().item(), 1.0)
    with pytest.raises(ValueError, match=r"0 <= `restart` <= 1 \(got 2\)"):
        personalized_pagerank(3, 2.0)
    with pytest.raises(ValueError, match=r"0 <= `degree` <= 4096 \(got 9223372036854775807\)"):
        personalized_pagerank(2**63 - 1, 0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: get_model("lom", 1, 1, 1),
            r"`model` to be one of .* lon, .*\(got 'lom'\); did you mean",
        ),
        (lambda: LONGNN(0, 8, 2), r"`in_channels` >= 1 \(got 0\)"),
        (lambda: LONGNN(3, 8, 2, transform="deep"), r"'residual' \(got 'deep'\)"),
        (lambda: LONGNN(3, 8, 2, placement="input"), r"features, both \(got 'input'\)"),
        (lambda: LONGNN(3, 8, 2, dropout=1.0), r"0 <= dropout < 1 \(got 1\)"),
        (lambda: get_model("arma", 3, 8, 2, stacks=0), r"`layers` >= 1 \(got 0, 1\)"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_lon_can_add_self_loops_and_share_its_filter():
    """Self loops are the operator's: the same scores as on a graph that has them."""
    edges = random_graph(12)
    x = random_tensor(12, 6).float()
    torch.manual_seed(0)
    model = LONGNN(6, 4, 3, shared=True, self_loops="add").eval()
    assert model.filters()[0].channels == 1
    torch.manual_seed(0)
    plain = LONGNN(6, 4, 3, shared=True).eval()
    looped = torch.cat([edges, torch.arange(12).expand(2, -1)], dim=1)
    torch.testing.assert_close(model(x, edges), plain(x, looped))
    with pytest.raises(ValueError, match="self_loops"):
        LONGNN(6, 4, 3, self_loops="both")


@pytest.mark.parametrize("coefficients", ["free", "pcd"])
def test_lon_starts_as_personalised_pagerank(coefficients):
    """The filter of APPNP, whatever the basis; a restart of one is the identity."""
    grid = torch.linspace(0, 2, 9, dtype=torch.float64)
    appnp = get_model("appnp", 6, 4, 3, degree=8, restart=0.2).filters()[0]
    options = {"degree": 8, "a": 0.5, "b": -0.3, "coefficients": coefficients, "shared": False}
    (ours,) = LONGNN(6, 4, 3, restart=0.2, **options).filters()
    wanted = appnp.response(grid).expand(3, -1)
    torch.testing.assert_close(ours.response(grid), wanted, rtol=1e-5, atol=1e-5)
    (identity,) = LONGNN(6, 4, 3, restart=1.0, **options).filters()
    torch.testing.assert_close(
        identity.response(grid), torch.ones(3, 9, dtype=torch.float64), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("channels", [1, 3])
def test_a_product_with_few_channels_and_its_derivative(channels):
    x, w = random_tensor(9, 5).requires_grad_(), random_tensor(5, channels, seed=1).requires_grad_()
    torch.testing.assert_close(narrow_matmul(x, w), x @ w)
    assert gradcheck(narrow_matmul, (x, w))
    narrow_matmul(x, w).add_(1.0)  # a tensor of its own
    batch = random_tensor(2, 5, channels, seed=2).requires_grad_()
    assert gradcheck(torch.func.vmap(narrow_matmul, in_dims=(None, 0)), (x, batch))
