"""Any model on arcs: what goes in on two copies of a node and comes out as one."""

import copy

import pytest
import torch

from longnn.graphs import GraphOperator, apply_filter, directed_operator
from longnn.matrices import DenseMatrix, LiftedMatrix, SparseMatrix
from longnn.nn import GCN, LONGNN, MLP, Directed
from longnn.nn._draw import seeded
from longnn.nn._ensemble import Ensemble
from longnn.registry import MODELS, get_model

from ..helpers import one_per_architecture, random_graph, random_tensor
from ..test_arcs import ARCS, NODES, dense, normalized

X = random_tensor(NODES, 5)
EDGES = random_graph(NODES, isolated=3)
GRAPHIC = [name for name, entry in MODELS.items() if entry.model.uses_graph]


def make(name="lon", **options):
    joined = MODELS[name].model.joins_copies
    options = {**options, "copies": 2} if joined else options
    with seeded(0):
        inner = get_model(name, 5 if joined else 10, 8, 3, **options)
    return Directed(inner).double().eval()


def loosen(model):
    """The weights away from their start, where filters may be the identity."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.2 * torch.randn(p.shape, generator=generator, dtype=p.dtype)
    return model


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


def test_a_filter_has_the_blocks_of_the_formula():
    """Y = (U e U^T + V o U^T) t_s + (U o V^T + V e V^T) t_t, by a dense decomposition."""
    model = loosen(make(transform="linear", shared=False))
    beta = model.filters()[0].chebyshev_coefficients().double()  # (degree+1, classes)
    U, S, Vh = torch.linalg.svd(normalized(dense()))
    degrees = torch.arange(len(beta))
    T = torch.cos(degrees[:, None] * torch.arccos(S.clamp(-1, 1)))  # T_j(s)
    even, odd = (((degrees % 2 == part)[:, None] * beta).T @ T for part in (0, 1))
    first = model.model.transform.first
    source, target = X @ first.weight[:5] + first.bias, X @ first.weight[5:] + first.bias
    expected = torch.zeros(NODES, 3, dtype=torch.float64)
    V = Vh.T
    for c in range(3):
        e, o = even[c], odd[c]
        expected[:, c] = ((U * e) @ U.T + (V * o) @ U.T) @ source[:, c]
        expected[:, c] += ((U * o) @ V.T + (V * e) @ V.T) @ target[:, c]
    torch.testing.assert_close(model(X, ARCS), expected)


def test_where_edges_go_both_ways_it_is_the_model_itself():
    """With t = t_s + t_t, scores are those of the model on the undirected graph."""
    model = loosen(make(transform="linear"))
    plain = LONGNN(5, 8, 3, transform="linear").double().eval()
    state = copy.deepcopy(model.model.state_dict())
    weight, bias = (state[f"transform.first.{name}"] for name in ("weight", "bias"))
    state["transform.first.weight"] = weight[:5] + weight[5:]
    state["transform.first.bias"] = 2 * bias
    plain.load_state_dict(state)
    torch.testing.assert_close(model(X, EDGES), plain(X, EDGES))


@pytest.mark.parametrize("name", one_per_architecture(GRAPHIC))
def test_every_model_sees_which_way_an_arc_goes(name):
    model = loosen(make(name))
    there, back = model(X, ARCS), model(X, ARCS.flip(0))
    assert there.shape == (NODES, 3)
    assert (there - back).abs().max() > 1e-4
    # Equivariant: a graph with other numbers has the scores in their order.
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(2))
    place = order.argsort()
    torch.testing.assert_close(model(X[order], place[ARCS]), there[order])
    # Everything that training asks for is that of the model inside.
    assert model.filters() == model.model.filters()
    assert model.parameter_groups().keys() == model.model.parameter_groups().keys()
    sizes = sum(p.numel() for group in model.parameter_groups().values() for p in group)
    assert sizes == sum(p.numel() for p in model.parameters())
    torch.testing.assert_close(model.penalty(), model.model.penalty())
    assert model.self_loops == model.model.self_loops


@pytest.mark.parametrize("name", [n for n in GRAPHIC if MODELS[n].model.joins_copies])
def test_two_blocks_reach_two_arcs_in_a_row(name):
    """0 -> 1 -> 2: a filter of the cover goes there and back in turn, two blocks go on."""
    path = torch.tensor([[0, 1], [1, 2]])
    x = torch.zeros(3, 5, dtype=torch.float64)
    changed = x.clone()
    changed[2] = 1.0

    def moved(model):
        return (model(changed, path) - model(x, path))[0].abs().max()

    assert moved(loosen(make(name, blocks=2))) > 1e-6
    assert moved(loosen(make(name, blocks=1, **({"degree": 1} if name == "lon-deep" else {})))) == 0
    assert moved(loosen(make("lon", degree=4))) < 1e-12


def test_features_may_be_sparse_or_dense():
    model = loosen(make())
    expected = model(X, ARCS)
    torch.testing.assert_close(model(X.to_sparse(), ARCS), expected)
    operator = model.make_operator(ARCS, None, NODES, dtype=torch.float64)
    for x in (DenseMatrix(X), SparseMatrix.from_dense(X)):
        torch.testing.assert_close(model.scores(x, operator), expected)
    torch.testing.assert_close(model(X, operator), expected)
    x = X[:, :].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: model(x, ARCS), (x,))


def test_members_of_an_ensemble_on_arcs():
    with seeded(0):
        members = {
            "gcn": Directed(GCN(10, 8, 3)).double().eval(),
            "lon": Directed(LONGNN(10, 8, 3)).double().eval(),
            "mlp": MLP(5, 8, 3).double().eval(),
        }
    equal = dict.fromkeys(members, 1 / 3)
    both = Ensemble(members, equal, dict.fromkeys(members, 1.0)).double()
    assert both.direction == "cover"
    expected = torch.stack([m(X, ARCS if n != "mlp" else EDGES) for n, m in members.items()])
    torch.testing.assert_close(both(X, ARCS).softmax(1), expected.softmax(2).mean(0))


def test_errors_are_named():
    with pytest.raises(ValueError, match=r"twice the features, .*\(got in_channels=5\)"):
        Directed(LONGNN(5, 8, 3))
    model = make()
    undirected = GraphOperator.from_edge_index(EDGES, None, NODES, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"an operator with direction='cover' .*\(got 'none'\)"):
        model(X, undirected)
    assert repr(model).startswith("Directed(LONGNN(10, 8, 3, PolynomialFilter(")


def test_a_cover_is_twice_the_size_for_the_loop():
    operator = directed_operator(ARCS, None, NODES)
    with pytest.raises(ValueError, match=rf"signal of shape \({2 * NODES}, channels\)"):
        apply_filter(operator, torch.ones(NODES, 2), torch.ones(3, 1))
