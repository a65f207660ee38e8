"""Deep models: each block against its formula, PyG's layers and exact eigendecompositions."""

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch_geometric import nn as pyg

from longnn import GraphOperator, get_model
from longnn.graphs import typed_operator
from longnn.graphs._edges import EdgeOperator
from longnn.nn import DeepGAT, DeepGCN, DeepLONGNN, DeepSAGE, Directed, truncate_filters
from longnn.nn._deep import NORMS, Block
from longnn.nn._messages import Attention, Hop, Mean
from longnn.nn._truncate import count_products
from longnn.polynomials._families import FAMILIES

from ..helpers import double_operator, random_graph, random_tensor

NODES, CHANNELS = 30, 8
EDGES = random_graph(NODES, isolated=2)
H = random_tensor(NODES, CHANNELS)
DEEP = {"lon-deep": DeepLONGNN, "gcn-deep": DeepGCN, "sage-deep": DeepSAGE, "gat-deep": DeepGAT}


def moved(module, seed=5):
    """The module in double precision, away from its start, ready to evaluate."""
    module = module.double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=generator, dtype=torch.float64))
    return module


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
    model = moved(DeepLONGNN(5, CHANNELS, 3, **options))
    x, n = random_tensor(NODES, 5), BY_HAND[norm]
    eigenvalues, U = torch.linalg.eigh(double_operator(EDGES, NODES).to_dense())
    h = n(x @ model.enter.weight + model.enter.bias)
    for block in model.blocks:
        heard = U @ (block.message.response(1 - eigenvalues).T * (U.T @ n(h)))
        inner = torch.cat([n(h), heard], 1) @ block.first.weight + block.first.bias
        out = torch.relu(inner) @ block.second.weight + block.second.bias
        h = h + out if residual else out
    expected = n(h) @ model.leave.weight + model.leave.bias
    torch.testing.assert_close(model(x, EDGES), expected)


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("basis", FAMILIES)
def test_every_basis_is_a_block(basis, learn):
    """The same filter in another basis: values by eigendecomposition, a gradient everywhere."""
    options = {"blocks": 2, "degree": 3, "basis": basis, "learn_basis": learn}
    model = moved(DeepLONGNN(5, CHANNELS, 3, **options))
    eigenvalues, U = torch.linalg.eigh(double_operator(EDGES, NODES).to_dense())
    operator = double_operator(EDGES, NODES)
    for f in model.filters():
        assert (f.basis.name, f.channels) == (basis, CHANNELS)
        assert bool(f.raw_basis) == (learn and bool(f.basis.parameters))
        expected = U @ (f.response(1 - eigenvalues).T * (U.T @ H))
        torch.testing.assert_close(f(operator, H), expected)
    model(random_tensor(NODES, 5), EDGES).square().sum().backward()
    assert all(p.grad.abs().max() > 0 for p in model.parameters())


@pytest.mark.parametrize("basis", FAMILIES)
def test_every_basis_starts_as_the_same_filter(basis):
    grid = torch.linspace(0, 2, 9, dtype=torch.float64)
    options = {"blocks": 1, "degree": 5, "restart": 0.4}
    (one,), (other,) = (
        DeepLONGNN(5, 2, 3, basis=b, **options).filters() for b in ("jacobi", basis)
    )
    torch.testing.assert_close(one.response(grid), other.response(grid), rtol=1e-5, atol=1e-5)


def inner_of(block, operator):
    """What W_1 makes of [h, m(h)] before the ReLU."""
    heard = block.message(operator, H)
    return torch.cat([H, heard], 1) @ block.first.weight + block.first.bias


def test_gcn_block_equals_pyg():
    """With the weights of a node's own channels at zero it is GCNConv."""
    block = moved(Block(CHANNELS, Hop(), norm="none"))
    with torch.no_grad():
        block.first.weight[:CHANNELS] = 0
    layer = pyg.GCNConv(CHANNELS, CHANNELS).double()
    with torch.no_grad():
        layer.lin.weight.copy_(block.first.weight[CHANNELS:].T)
        layer.bias.copy_(block.first.bias)
    operator = DeepGCN(CHANNELS, CHANNELS, 2).make_operator(EDGES, None, NODES, dtype=H.dtype)
    torch.testing.assert_close(inner_of(block, operator), layer(H, EDGES))


def test_sage_block_equals_pyg():
    block = moved(Block(CHANNELS, Mean(), norm="none"))
    layer = pyg.SAGEConv(CHANNELS, CHANNELS).double()
    with torch.no_grad():
        layer.lin_r.weight.copy_(block.first.weight[:CHANNELS].T)
        layer.lin_l.weight.copy_(block.first.weight[CHANNELS:].T)
        layer.lin_l.bias.copy_(block.first.bias)
    torch.testing.assert_close(inner_of(block, double_operator(EDGES, NODES)), layer(H, EDGES))


@pytest.mark.parametrize("scale", [1.0, 300.0])  # where exp alone would overflow
@pytest.mark.parametrize("heads", [1, 2])
def test_attention_equals_pyg(heads, scale):
    message = moved(Attention(CHANNELS, heads))
    layer = pyg.GATConv(CHANNELS, CHANNELS // heads, heads, bias=False).double()
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


@pytest.mark.parametrize("message", [Hop(), Mean(), moved(Attention(CHANNELS, 2))])
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
    for message in (Hop(), Mean(), moved(Attention(CHANNELS))):
        assert message(operator, H)[-2:].abs().max() == 0


@pytest.mark.parametrize("message", [Mean(), Attention(CHANNELS).double()])
def test_neighbours_need_edges(message):
    with pytest.raises(TypeError, match=r"Expected an undirected graph for means .* \(got Tensor"):
        message(torch.eye(NODES).double(), H)


@pytest.mark.parametrize("jump", ["max", "cat"])
def test_jumping_connections_equal_pyg(jump):
    model = moved(DeepLONGNN(5, CHANNELS, 3, blocks=3, degree=2, jump=jump))
    x, operator = random_tensor(NODES, 5), double_operator(EDGES, NODES)
    states = [layer_norm(h) for h in model.states(x, operator)[1:]]
    joined = pyg.JumpingKnowledge(jump)(states)
    expected = joined @ model.leave.weight + model.leave.bias
    torch.testing.assert_close(model(x, EDGES), expected)


@pytest.mark.parametrize("shared", [True, False])
def test_a_filter_on_the_scores_equals_its_formula(shared):
    """g(P) of what the same stack gives without it, in the eigenvectors of P."""
    options = {"blocks": 2, "degree": 3, "shared": shared}
    model = moved(DeepLONGNN(5, CHANNELS, 3, output_degree=4, **options))
    plain = DeepLONGNN(5, CHANNELS, 3, **options).double().eval()
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if "output." not in k})
    x = random_tensor(NODES, 5)
    eigenvalues, U = torch.linalg.eigh(double_operator(EDGES, NODES).to_dense())
    *_, last = model.filters()
    assert (last.degree, last.channels) == (4, 1 if shared else 3)
    expected = U @ (last.response(1 - eigenvalues).T * (U.T @ plain(x, EDGES)))
    torch.testing.assert_close(model(x, EDGES), expected)
    assert count_products(model) == 3 + 3 + 4
    model(x, EDGES).square().sum().backward()
    assert last.coefficients.weight.grad.abs().min() > 0
    moved_to = last.effective_coefficients().detach().clone()
    model.reset_parameters()
    assert not torch.allclose(last.effective_coefficients(), moved_to)


@pytest.mark.parametrize("types", [0, 2])
def test_a_filter_on_the_scores_hears_both_copies(types):
    """The filter on both copies of the scores, their mean; of types of arcs the sum."""
    options = {"blocks": 1, "degree": 2, "copies": 2, "types": types}
    model = moved(DeepLONGNN(5, CHANNELS, 3, output_degree=3, **options))
    plain = DeepLONGNN(5, CHANNELS, 3, **options).double().eval()
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if "output." not in k})
    x, arcs = random_tensor(NODES, 5), EDGES[:, EDGES[0] < EDGES[1]]
    kind = arcs.sum(0) % max(types, 1)
    operator = typed_operator(arcs, kind, None, NODES, dtype=H.dtype, directed=True)
    scores, expected = Directed(plain)(x, operator), 0
    filters = model.output.each if types else [model.output]
    parts = operator.types if types else [operator]
    for f, P in zip(filters, parts, strict=True):
        eigenvalues, U = torch.linalg.eigh(P.to_dense())
        expected += U @ (f.response(1 - eigenvalues).T * (U.T @ scores.repeat(2, 1)))
    expected = (expected[:NODES] + expected[NODES:]) / 2
    torch.testing.assert_close(Directed(model)(x, operator), expected)


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("name", DEEP)
def test_sixteen_blocks_start_stable(name, norm):
    """Features of any scale: the signal keeps its size, and every block has a gradient like it."""
    torch.manual_seed(0)
    model = DEEP[name](9, 64, 4, blocks=16, norm=norm)
    edges, x = random_graph(200, probability=0.03), 1e-3 * random_tensor(200, 9).float()
    operator = model.make_operator(edges, None, 200)
    sizes = [h.square().mean().sqrt().item() for h in model.states(x, operator)]
    assert max(sizes) < 2 * min(sizes)
    assert abs(sizes[0] - 1) < 0.1
    model(x, operator).square().mean().backward()
    for of in ("first", "second"):
        norms = [getattr(block, of).weight.grad.norm().item() for block in model.blocks]
        assert 0 < max(norms) < 3 * min(norms) < float("inf")


@pytest.mark.parametrize("types", [0, 3])
def test_sixteen_blocks_start_stable_on_arcs(types):
    """The same with both copies of a node joined in every block, and with types of arcs."""
    torch.manual_seed(0)
    inner = DeepLONGNN(9, 64, 4, blocks=16, copies=2, types=types)
    edges, x = random_graph(200, probability=0.03), 1e-3 * random_tensor(200, 9).float()
    arcs = edges[:, (edges[0] < edges[1]) | (edges.sum(0) % 3 == 0)]  # some both ways
    kind = arcs.sum(0) % max(types, 1)
    operator = typed_operator(arcs, kind, None, 200, directed=True)
    sizes = [h.square().mean().sqrt().item() for h in inner.states(x, operator)]
    assert max(sizes) < 2 * min(sizes)
    assert abs(sizes[0] - 1) < 0.1
    Directed(inner)(x, operator).square().mean().backward()
    for of in ("first", "second"):
        norms = [getattr(block, of).weight.grad.norm().item() for block in inner.blocks]
        assert 0 < max(norms) < 3 * min(norms) < float("inf")


def test_many_blocks_add_what_one_would():
    """The second map starts smaller by the root of the depth; without residuals it does not."""
    for residual, ratio in ((True, 0.25), (False, 1.0)):
        torch.manual_seed(0)
        one = Block(CHANNELS, Hop(), norm="layer", residual=residual)
        torch.manual_seed(0)
        deep = Block(CHANNELS, Hop(), norm="layer", residual=residual, depth=16)
        torch.testing.assert_close(deep.second.weight, ratio * one.second.weight)
        torch.manual_seed(0)
        deep.reset_parameters()
        torch.testing.assert_close(deep.second.weight, ratio * one.second.weight)


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


def test_penalties_cover_the_filters_of_all_blocks():
    model = moved(DeepLONGNN(5, CHANNELS, 3, blocks=3, degree=4))
    squares = [f.effective_coefficients().square().sum() for f in model.filters()]
    assert len(squares) == 3
    torch.testing.assert_close(model.penalty(), torch.stack(squares).sum())
    model.penalty().backward()
    assert all(f.coefficients.weight.grad.abs().min() > 0 for f in model.filters())


@pytest.mark.parametrize("share", [1.0, 0.9, 0.5])
def test_truncation_keeps_a_share_of_every_filter(share):
    model = moved(DeepLONGNN(5, CHANNELS, 3, blocks=3, degree=[5, 4, 2]))
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
    x = random_tensor(NODES, 5)
    if share == 1:
        torch.testing.assert_close(shorter(x, EDGES), model(x, EDGES))
    assert shorter(x, EDGES).dtype == torch.float64
    assert [f.degree for f in model.filters()] == [5, 4, 2]  # a copy was cut


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
    r"Expected `basis` to be one of \['bernstein'.*\(got 'fourier'\)": lambda: DeepLONGNN(
        3, 4, 2, basis="fourier"
    ),
    r"Expected `heads` >= 1 that divide the 4 hidden channels \(got 3\)": lambda: DeepGAT(
        3, 4, 2, heads=3
    ),
    r"Expected `self_loops` to be": lambda: DeepLONGNN(3, 4, 2, self_loops="some"),
    r"Expected 0 < `share` <= 1 \(got 0\)": lambda: truncate_filters(DeepLONGNN(3, 4, 2), 0),
    r"Expected a model with polynomial filters \(got DeepGCN\)": lambda: truncate_filters(
        DeepGCN(3, 4, 2), 0.9
    ),
    r"Expected an orthonormal basis for truncate \(got Monomial": lambda: truncate_filters(
        DeepLONGNN(3, 4, 2, basis="monomial"), 0.9
    ),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message):
    with pytest.raises(ValueError, match=message):
        ERRORS[message]()


def test_a_stack_is_found_by_its_name():
    assert isinstance(get_model("lon-deep", 3, 4, 2, blocks=2, degree=1), DeepLONGNN)
