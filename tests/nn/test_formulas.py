"""Each model against its formula: exact eigendecompositions, PyG's layers with the same weights,
the textbook's message passing; and what only one architecture has."""

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from torch.autograd import gradcheck
from torch.autograd.graph import saved_tensors_hooks
from torch_geometric import nn as pyg

from lab import textbook
from longnn import LONGNN, GraphOperator, get_model
from longnn.filters import PolynomialFilter
from longnn.graphs import apply_filter, directed_operator, typed_operator
from longnn.graphs._edges import EdgeOperator
from longnn.matrices import DenseMatrix, LiftedMatrix, SparseMatrix
from longnn.nn import GCN, DeepGAT, DeepGCN, DeepLONGNN, DeepSAGE, Directed, truncate_filters
from longnn.nn._deep import NORMS, Attention, Block, Hop, Mean
from longnn.nn._polynomial import personalized_pagerank
from longnn.nn._transform import narrow_matmul, normalize_rows
from longnn.nn._truncate import count_products
from longnn.nn._typed import TypedFilter
from longnn.polynomials._families import FAMILIES
from longnn.registry import PAPER_FORM

from ..helpers import double_operator, random_graph, random_tensor
from ..test_arcs import dense, normalized
from .test_models import (
    ARCS,
    CLASSES,
    EDGES,
    FEATURES,
    HIDDEN,
    KIND,
    NODES,
    build,
    features,
    graph_of,
    moved,
)

X = random_tensor(NODES, 5)
H = random_tensor(NODES, HIDDEN)
OPERATOR = double_operator(EDGES, NODES)


def filtered(f, operator, h):
    """A filter by the eigenvectors of the operator."""
    eigenvalues, U = torch.linalg.eigh(operator.to_dense())
    return U @ (f.response(1 - eigenvalues).T * (U.T @ h))


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
    h = filtered(model.filter, OPERATOR, h)
    if place != "output":
        h = normed(h)
        h = torch.relu(h) if place in ("features", "both") and kind != "linear" else h
        h = h @ model.readout.weight + model.readout.bias
    if place == "both":
        h = filtered(model.output_filter, OPERATOR, h)
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


def interpolated(f, k, t):
    """2/(K+1) sum' T_j(x_k) T_j(t): ChebNetII's terms, one per node x_k."""
    j = np.arange(11)
    weight = np.where(j == 0, 1, 2) / 11 * np.cos(j * (k + 0.5) * np.pi / 11)
    return np.polynomial.chebyshev.chebval(t, weight)


def classical(f, k, t):
    a, b = (f.basis_parameters()[name].item() for name in ("a", "b"))
    return scipy.special.eval_jacobi(k, a, b, t)


def orthonormal(mass):
    """Divided by its norm for the weight of a mass, or of that of (1-x)^a (1+x)^b for None."""

    def term(f, k, t):
        a, b = (f.basis_parameters()[name].item() for name in ("a", "b"))
        x, w = scipy.special.roots_jacobi(12, a, b)
        w = w if mass is None else mass * w / w.sum()
        return classical(f, k, t) / np.sqrt((classical(f, k, x) ** 2 * w).sum())

    return term


TERMS = {
    "lon": orthonormal(1.0),
    "jacobi-orthnorm": orthonormal(None),
    "jacobi-learnable": classical,
    "jacobi": classical,
    "bern": lambda f, k, t: scipy.stats.binom.pmf(k, 10, (1 - t) / 2),
    "gpr": lambda f, k, t: t**k,
    "even": lambda f, k, t: t ** (2 * k),
    "cheb2": interpolated,
}


@pytest.mark.parametrize("name", TERMS)
@torch.no_grad()
def test_polynomial_models_equal_scipy(name):
    """Their terms written out, in the eigenvectors of P: of GPRGNN with self loops."""
    model, x = build(name), features()
    loops = "add" if name == "gpr" else "keep"
    eigenvalues, U = torch.linalg.eigh(double_operator(EDGES, NODES, self_loops=loops).to_dense())
    eigenvalues = eigenvalues.clamp(-1, 1)
    h, f, expected = U.T @ model.transform(x), model.filter, 0
    for k, alpha in enumerate(f.effective_coefficients()):
        term = torch.from_numpy(TERMS[name](f, k, eigenvalues.numpy()))
        expected = expected + alpha * (U @ (term[:, None] * h))
    torch.testing.assert_close(model(x, EDGES), expected)


def test_optbasis_mixes_an_orthonormal_basis_of_the_krylov_space():
    model = build("optbasis", degree=4)
    out, P = model.filter(OPERATOR, H), OPERATOR.to_dense()
    for c in range(HIDDEN):
        powers = [H[:, c]]
        for _ in range(4):
            powers.append(P @ powers[-1])
        Q, _ = torch.linalg.qr(torch.stack(powers, 1))  # each vector up to its sign
        weight = model.filter.weight[:, c]
        torch.testing.assert_close((Q.T @ out[:, c]).abs(), weight.abs())
        torch.testing.assert_close(out[:, c].norm(), weight.norm())


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


def test_penalties_cover_all_trained_filters():
    assert build("appnp").penalty() == build("gcn").penalty() == 0
    for model in (build("lon", **PAPER_FORM), start(DeepLONGNN(5, HIDDEN, 3, blocks=3, degree=4))):
        squares = [f.effective_coefficients().square().sum() for f in model.filters()]
        torch.testing.assert_close(model.penalty(), torch.stack(squares).sum())


def test_pagerank_coefficients_sum_to_one():
    torch.testing.assert_close(personalized_pagerank(7, 0.3).sum().item(), 1.0)
    with pytest.raises(ValueError, match=r"0 <= `restart` <= 1 \(got 2\)"):
        personalized_pagerank(3, 2.0)
    with pytest.raises(ValueError, match=r"0 <= `degree` <= 4096 \(got 9223372036854775807\)"):
        personalized_pagerank(2**63 - 1, 0.1)


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


def start(module):
    """In double precision, away from its start, ready to evaluate."""
    return moved(module.double().eval())


def layer_norm(h):
    mean = h.mean(1, keepdim=True)
    return (h - mean) / (h.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()


def rms_norm(h):
    return h / h.square().mean(1, keepdim=True).sqrt()


BY_HAND = {"layer": layer_norm, "rms": rms_norm, "none": lambda h: h}


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("norm", NORMS)
def test_stack_equals_its_formula(norm, residual):
    """h + W_2 ReLU(W_1 [n(h), g(P) n(h)]), the filters applied in the eigenvectors of P."""
    options = {"blocks": 3, "degree": 4, "norm": norm, "residual": residual}
    model = start(DeepLONGNN(5, HIDDEN, 3, **options))
    x, n = X, BY_HAND[norm]
    h = n(x @ model.enter.weight + model.enter.bias)
    for block in model.blocks:
        heard = filtered(block.message, OPERATOR, n(h))
        inner = torch.cat([n(h), heard], 1) @ block.first.weight + block.first.bias
        out = torch.relu(inner) @ block.second.weight + block.second.bias
        h = h + out if residual else out
    expected = n(h) @ model.leave.weight + model.leave.bias
    torch.testing.assert_close(model(x, EDGES), expected)


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("basis", FAMILIES)
def test_every_basis_is_a_block(basis, learn):
    """All start as the same filter; a gradient reaches every weight and every parameter."""
    options = {"blocks": 2, "degree": 3, "restart": 0.4, "learn_basis": learn}
    model, other = (DeepLONGNN(5, HIDDEN, 3, basis=b, **options) for b in (basis, "jacobi"))
    grid = torch.linspace(0, 2, 9, dtype=torch.float64)
    for f, g in zip(model.filters(), other.filters(), strict=True):
        assert (f.basis.name, f.channels) == (basis, HIDDEN)
        assert bool(f.raw_basis) == (learn and bool(f.basis.parameters))
        torch.testing.assert_close(f.response(grid), g.response(grid), rtol=1e-5, atol=1e-5)
    start(model)(X, EDGES).square().sum().backward()
    assert all(p.grad.abs().max() > 0 for p in model.parameters())


def inner_of(block, operator):
    """What W_1 makes of [h, m(h)] before the ReLU."""
    heard = block.message(operator, H)
    return torch.cat([H, heard], 1) @ block.first.weight + block.first.bias


def test_gcn_block_equals_pyg():
    """With the weights of a node's own channels at zero it is GCNConv."""
    block = start(Block(HIDDEN, Hop(), norm="none"))
    with torch.no_grad():
        block.first.weight[:HIDDEN] = 0
    layer = pyg.GCNConv(HIDDEN, HIDDEN).double()
    with torch.no_grad():
        layer.lin.weight.copy_(block.first.weight[HIDDEN:].T)
        layer.bias.copy_(block.first.bias)
    operator = DeepGCN(HIDDEN, HIDDEN, 2).make_operator(EDGES, None, NODES, dtype=H.dtype)
    torch.testing.assert_close(inner_of(block, operator), layer(H, EDGES))


def test_sage_block_equals_pyg():
    block = start(Block(HIDDEN, Mean(), norm="none"))
    layer = pyg.SAGEConv(HIDDEN, HIDDEN).double()
    with torch.no_grad():
        layer.lin_r.weight.copy_(block.first.weight[:HIDDEN].T)
        layer.lin_l.weight.copy_(block.first.weight[HIDDEN:].T)
        layer.lin_l.bias.copy_(block.first.bias)
    torch.testing.assert_close(inner_of(block, double_operator(EDGES, NODES)), layer(H, EDGES))


@pytest.mark.parametrize("scale", [1.0, 300.0])  # where exp alone would overflow
@pytest.mark.parametrize("heads", [1, 2])
def test_attention_equals_pyg(heads, scale):
    message = start(Attention(HIDDEN, heads))
    layer = pyg.GATConv(HIDDEN, HIDDEN // heads, heads, bias=False).double()
    with torch.no_grad():
        message.source.mul_(scale)
        layer.lin.weight.copy_(message.linear.weight.T)
        layer.att_src.copy_(message.source[None])
        layer.att_dst.copy_(message.target[None])
    operator = double_operator(EDGES, NODES, self_loops="add")
    h, g = (H.clone().requires_grad_() for _ in range(2))
    ours, theirs = message(operator, h), layer(g, EDGES)
    torch.testing.assert_close(ours, theirs)
    ours.square().sum().backward()
    theirs.square().sum().backward()
    torch.testing.assert_close(h.grad, g.grad)
    torch.testing.assert_close(message.target.grad[None], layer.att_dst.grad)


@pytest.mark.parametrize("message", [Hop(), Mean(), start(Attention(HIDDEN, 2))])
@pytest.mark.parametrize("loops", ["keep", "add", "remove"])
def test_a_list_of_edges_gives_the_same_messages(message, loops):
    looped = torch.cat([EDGES, torch.tensor([[3, 7], [3, 7]])], 1)
    weight = 0.5 + torch.arange(looped.shape[1]).double().cos().square()
    dense = torch.zeros(NODES, NODES, dtype=torch.float64)
    dense[looped[0], looped[1]] = weight
    weight = (dense + dense.T)[looped[0], looped[1]]
    listed = EdgeOperator.from_edge_index(looped, weight, NODES, self_loops=loops, dtype=H.dtype)
    options = {"self_loops": loops, "dtype": H.dtype}
    operator = GraphOperator.from_edge_index(looped, weight, NODES, **options)
    torch.testing.assert_close(message(listed, H), message(operator, H))


def test_a_node_without_neighbours_hears_nothing():
    operator = double_operator(EDGES, NODES)  # the last two have no edge, and no loop is added
    for message in (Hop(), Mean(), start(Attention(HIDDEN))):
        assert message(operator, H)[-2:].abs().max() == 0


@pytest.mark.parametrize("message", [Mean(), Attention(HIDDEN).double()])
def test_neighbours_need_edges(message):
    with pytest.raises(TypeError, match=r"Expected an undirected graph for means .* \(got Tensor"):
        message(torch.eye(NODES).double(), H)


@pytest.mark.parametrize("jump", ["max", "cat"])
def test_jumping_connections_equal_pyg(jump):
    model = start(DeepLONGNN(5, HIDDEN, 3, blocks=3, degree=2, jump=jump))
    x, operator = X, double_operator(EDGES, NODES)
    states = [layer_norm(h) for h in model.states(x, operator)[1:]]
    joined = pyg.JumpingKnowledge(jump)(states)
    expected = joined @ model.leave.weight + model.leave.bias
    torch.testing.assert_close(model(x, EDGES), expected)


@pytest.mark.parametrize("form", ["plain", "shared", "arcs", "types of arcs"])
def test_a_filter_on_the_scores_equals_its_formula(form):
    """g(P) of what the same stack gives without it; on arcs the mean of both copies, of types the
    sum."""
    on_arcs, types = "arcs" in form, 2 if "types" in form else 0
    options = {"blocks": 2, "degree": 3, "shared": form == "shared", "types": types}
    options["copies"] = 2 if on_arcs else 1
    model = start(DeepLONGNN(5, HIDDEN, 3, output_degree=4, **options))
    plain = DeepLONGNN(5, HIDDEN, 3, **options).double().eval()
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if "output." not in k})
    wrap = Directed if on_arcs else lambda inner: inner
    operator = OPERATOR
    if on_arcs:
        kind = ARCS.sum(0) % max(types, 1)
        operator = typed_operator(ARCS, kind, None, NODES, dtype=H.dtype, directed=True)
    scores = wrap(plain)(X, operator).repeat(1 + on_arcs, 1)
    filters = model.output.each if types else [model.output]
    operators = operator.types if types else [operator]
    expected = sum(filtered(f, P, scores) for f, P in zip(filters, operators, strict=True))
    expected = sum(expected.chunk(2)) / 2 if on_arcs else expected
    torch.testing.assert_close(wrap(model)(X, operator), expected)
    last = model.filters()[-1]
    assert (last.degree, last.channels) == (4, 1 if form == "shared" else 3)
    assert count_products(model) == (3 + 3 + 4) * max(types, 1)
    before = last.effective_coefficients().detach().clone()
    model.reset_parameters()
    assert not torch.allclose(last.effective_coefficients(), before)


DEEP = {"lon-deep": DeepLONGNN, "gcn-deep": DeepGCN, "sage-deep": DeepSAGE, "gat-deep": DeepGAT}


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("form", [*DEEP, "arcs", "types of arcs"])
def test_sixteen_blocks_start_stable(form, norm):
    """Features of any scale: the signal keeps its size, and every block has a gradient like it."""
    torch.manual_seed(0)
    types = 3 if "types" in form else 0
    options = {"copies": 2, "types": types} if "arcs" in form else {}
    model = DEEP.get(form, DeepLONGNN)(9, 64, 4, blocks=16, norm=norm, **options)
    edges, x = random_graph(200, probability=0.03), 1e-3 * random_tensor(200, 9).float()
    if "arcs" in form:
        arcs = edges[:, (edges[0] < edges[1]) | (edges.sum(0) % 3 == 0)]  # some both ways
        kind = arcs.sum(0) % max(types, 1)
        operator = typed_operator(arcs, kind, None, 200, directed=True)
    else:
        operator = model.make_operator(edges, None, 200)
    sizes = [h.square().mean().sqrt().item() for h in model.states(x, operator)]
    assert max(sizes) < 2 * min(sizes)
    assert abs(sizes[0] - 1) < 0.1
    (Directed(model) if "arcs" in form else model)(x, operator).square().mean().backward()
    for of in ("first", "second"):
        norms = [getattr(block, of).weight.grad.norm().item() for block in model.blocks]
        assert 0 < max(norms) < 3 * min(norms) < float("inf")


def kept_bytes(model, x, operator):
    """What autograd keeps for the backward pass, each storage once."""
    storages = {}

    def pack(t):
        storages[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with saved_tensors_hooks(pack, lambda t: t):
        out = model(x, operator).sum()
    found = sum(storages.values())
    out.backward()
    return found


def test_memory_is_flat_in_the_degree_and_linear_in_the_depth():
    nodes = 1500
    edges = random_graph(nodes, probability=0.005)
    x, operator = random_tensor(nodes, 5).float(), GraphOperator.from_edge_index(edges, None, nodes)

    def kept(blocks, degree):
        return kept_bytes(DeepLONGNN(5, 16, 3, blocks=blocks, degree=degree), x, operator)

    signal = nodes * 16 * 4
    assert kept(4, 12) - kept(4, 2) < 0.3 * signal  # coefficients; a term of a filter has 1.0
    each = (kept(6, 2) - kept(2, 2)) / 4
    assert each < 7.5 * signal  # h, n(h), [n(h), g n(h)], hidden units, dropout before and after


@pytest.mark.parametrize("share", [1.0, 0.9, 0.5])
def test_truncation_keeps_a_share_of_every_filter(share):
    model = start(DeepLONGNN(5, HIDDEN, 3, blocks=3, degree=[5, 4, 2]))
    shorter = truncate_filters(model, share)
    assert count_products(model) == 11
    for before, after in zip(model.filters(), shorter.filters(), strict=True):
        energy = before.effective_coefficients().square().sum(1)
        kept = energy.cumsum(0) / energy.sum()
        assert after.degree == int((kept >= share - 1e-12).nonzero()[0])
        same = before.effective_coefficients()[: after.degree + 1]
        torch.testing.assert_close(after.effective_coefficients(), same)
        for name, value in before.basis_parameters().items():
            torch.testing.assert_close(after.basis_parameters()[name], value)
    x = X
    if share == 1:
        torch.testing.assert_close(shorter(x, EDGES), model(x, EDGES))
    assert shorter(x, EDGES).dtype == torch.float64
    assert [f.degree for f in model.filters()] == [5, 4, 2]  # a copy was cut
    typed = build("lon-deep", form="types", blocks=2, degree=2)
    shorter = truncate_filters(typed, share)
    assert len(shorter.filters()) == 6
    if share == 1:
        P = graph_of(typed, "types")
        torch.testing.assert_close(shorter(features(), P), typed(features(), P))


def test_lifted_features_are_a_block_diagonal():
    W = random_tensor(10, 4)
    whole = torch.block_diag(X, X)
    for x in (DenseMatrix(X), SparseMatrix.from_dense(X)):
        lifted = LiftedMatrix(x)
        assert lifted.shape == whole.shape
        assert (lifted.dtype, lifted.device) == (X.dtype, X.device)
        torch.testing.assert_close(lifted @ W, whole @ W)
        torch.testing.assert_close(lifted.with_values(2 * x.values) @ W, 2 * whole @ W)
    weight = W.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda w: LiftedMatrix(DenseMatrix(X)) @ w, (weight,))


def test_dropout_takes_a_feature_from_both_copies():
    stream, p = torch.tensor([3, 1]), torch.tensor(0.5, dtype=torch.float64)
    dropped = LiftedMatrix(DenseMatrix(X)).dropped(stream, p, 0)
    first, second = (dropped @ torch.eye(10, dtype=X.dtype)).chunk(2)
    assert torch.equal(first[:, :5], second[:, 5:])
    assert (first[:, :5] == 0).any()
    assert not first[:, 5:].any()


@pytest.mark.parametrize("form", ["plain", "arcs", "types"])
def test_gradients_in_the_features(form):
    model = build("lon", form=form)
    graph = graph_of(model, form)
    assert gradcheck(lambda x: model(x, graph), (features().requires_grad_(),))


def test_a_filter_on_arcs_has_the_blocks_of_the_formula():
    """Y = (U e U^T + V o U^T) t_s + (U o V^T + V e V^T) t_t, by a dense decomposition."""
    model = build("lon", form="arcs", transform="linear", shared=False)
    beta = model.filters()[0].chebyshev_coefficients().double()  # (degree+1, classes)
    U, S, Vh = torch.linalg.svd(normalized(dense(ARCS, None, NODES)))
    degrees = torch.arange(len(beta))
    T = torch.cos(degrees[:, None] * torch.arccos(S.clamp(-1, 1)))  # T_j(s)
    even, odd = (((degrees % 2 == rest)[:, None] * beta).T @ T for rest in (0, 1))
    first, x = model.model.transform.first, features()
    source, target = (x @ weight + first.bias for weight in first.weight.chunk(2))
    expected, V = [], Vh.T
    for c, (e, o) in enumerate(zip(even, odd, strict=True)):
        of_source = ((U * e) @ U.T + (V * o) @ U.T) @ source[:, c]
        expected.append(of_source + ((U * o) @ V.T + (V * e) @ V.T) @ target[:, c])
    torch.testing.assert_close(model(x, ARCS), torch.stack(expected, 1))


@pytest.mark.parametrize("name", DEEP)
def test_two_blocks_reach_two_arcs_in_a_row(name):
    """0 -> 1 -> 2: a filter of the cover goes there and back in turn, two blocks go on."""
    path = torch.tensor([[0, 1], [1, 2]])
    x = torch.zeros(3, FEATURES, dtype=torch.float64)
    changed = x.clone()
    changed[2] = 1.0

    def change(model):
        return (model(changed, path) - model(x, path))[0].abs().max()

    assert change(build(name, form="arcs", blocks=2)) > 1e-6
    degree = {"degree": 1} if name == "lon-deep" else {}
    assert change(build(name, form="arcs", blocks=1, **degree)) == 0
    assert change(build("lon", form="arcs", degree=4)) < 1e-12


@pytest.mark.parametrize("join", ["sum", "cat"])
def test_filters_of_types_are_those_of_each_operator(join):
    typed = start(TypedFilter(lambda: PolynomialFilter("jacobi", 4, HIDDEN), 3, join=join))
    P = typed_operator(EDGES, KIND, None, NODES, dtype=H.dtype)
    operators = [double_operator(EDGES[:, kind == KIND], NODES) for kind in range(3)]
    each = [filtered(f, one, H) for f, one in zip(typed.each, operators, strict=True)]
    torch.testing.assert_close(typed(P, H), torch.cat(each, 1) if join == "cat" else sum(each))


def rings():
    """Three types on 7 nodes, each node with two neighbours of each type."""
    here = torch.arange(7)
    each = [torch.stack([here, (here + step) % 7]) for step in (1, 2, 3)]
    edges = torch.cat([torch.cat([e, e.flip(0)], 1) for e in each], 1)
    return edges, torch.repeat_interleave(torch.arange(3), 14)


def test_a_block_of_single_hops_is_rgcn():
    """The first map sees [n(h), P_1 n(h), ..., P_R n(h)]: RGCN's sum, with ReLU and residual."""
    edges, kind = rings()
    operator = typed_operator(edges, kind, dtype=H.dtype)
    hop = lambda: PolynomialFilter("monomial", 1, 1, coefficients="fixed", init=torch.eye(2)[1])  # noqa: E731
    block = Block(4, TypedFilter(hop, 3, join="cat"), norm="none", types=3).double()
    conv = pyg.RGCNConv(4, 4, 3, aggr="add").double()
    own, *each = block.first.weight.detach().split(4)
    with torch.no_grad():
        conv.root.copy_(own)
        conv.bias.copy_(block.first.bias)
        conv.weight.copy_(torch.stack(each) / 2)  # P_r = A_r / 2 on rings
    h = random_tensor(7, 4)
    expected = h + block.second(torch.relu(conv(h, edges, kind)))
    torch.testing.assert_close(block(operator, h), expected)


def test_where_types_tell_nothing_models_are_the_plain_ones():
    """All edges of one type; and models without a filter, which see the edges of all types."""
    alike = typed_operator(EDGES, torch.zeros_like(KIND), None, NODES, dtype=H.dtype)
    torch.testing.assert_close(alike.types[0].to_dense(), OPERATOR.to_dense())
    torch.manual_seed(0)
    typed = LONGNN(5, 4, 2, types=1).double().eval()
    torch.manual_seed(0)
    torch.testing.assert_close(typed(X, alike), LONGNN(5, 4, 2).double().eval()(X, EDGES))
    model = GCN(5, 4, 2).double().eval()
    loops = typed_operator(EDGES, KIND, None, NODES, self_loops="add", dtype=H.dtype)
    torch.testing.assert_close(model(X, loops), model(X, EDGES))
    assert [t.dtype for t in loops.to(torch.float32).types] == [torch.float32] * 3


ERRORS = {
    r"Expected `blocks` >= 1 \(got 0\)": lambda: DeepLONGNN(3, 4, 2, blocks=0),
    r"Expected `norm` to be one of layer, rms, none \(got 'batch'\)": lambda: DeepGCN(
        3, 4, 2, norm="batch"
    ),
    r"Expected `jump` to be one of none, max, cat \(got 'lstm'\)": lambda: DeepGCN(
        3, 4, 2, jump="lstm"
    ),
    r"Expected one `degree` for each of 2 blocks \(got \[3\]\)": lambda: DeepLONGNN(
        3, 4, 2, blocks=2, degree=[3]
    ),
    r"Expected `heads` >= 1 that divide the 4 hidden channels \(got 3\)": lambda: DeepGAT(
        3, 4, 2, heads=3
    ),
    r"Expected 0 < `share` <= 1 \(got 0\)": lambda: truncate_filters(DeepLONGNN(3, 4, 2), 0),
    r"Expected a model with polynomial filters \(got DeepGCN\)": lambda: truncate_filters(
        DeepGCN(3, 4, 2), 0.9
    ),
    r"`in_channels` >= 1 \(got 0\)": lambda: LONGNN(0, 8, 2),
    r"one of linear, mlp, residual \(got 'deep'\)": lambda: LONGNN(3, 8, 2, transform="deep"),
    r"features, both \(got 'input'\)": lambda: LONGNN(3, 8, 2, placement="input"),
    r"0 <= dropout < 1 \(got 1\)": lambda: LONGNN(3, 8, 2, dropout=1.0),
    r"`self_loops` .*got 'both'": lambda: LONGNN(6, 4, 3, self_loops="both"),
    r"`layers` >= 1 \(got 0, 1\)": lambda: get_model("arma", 3, 8, 2, stacks=0),
    r"twice the features, .*\(got in_channels=5\)": lambda: Directed(LONGNN(5, 8, 3)),
    r"an operator with direction='cover' .*\(got 'none'\)": lambda: build("lon", form="arcs")(
        features(), OPERATOR
    ),
    rf"signal of shape \({2 * NODES}, channels\)": lambda: apply_filter(
        directed_operator(ARCS, None, NODES), torch.ones(NODES, 2), torch.ones(3, 1)
    ),
    r"Expected an operator with 2 types of edges \(got 3\)": lambda: LONGNN(5, 4, 2, types=2)(
        X.float(), typed_operator(EDGES, KIND, None, NODES)
    ),
    r"Expected `edge_type` of whole numbers, shape \(2,\)": lambda: typed_operator(
        EDGES[:, :2], torch.zeros(3, dtype=torch.int64)
    ),
    r"Expected types of edges in 0\.\.1 \(got 2\)": lambda: typed_operator(EDGES, KIND, types=2),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message):
    with pytest.raises(ValueError, match=message):
        ERRORS[message]()
