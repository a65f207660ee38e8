"""Gradients into the operator: weights of edges and the phase of arcs, against dense autograd."""

import copy

import pytest
import torch
from torch.autograd import gradcheck

from longnn import GraphOperator, apply_filter
from longnn.graphs import EdgeOperator, directed_operator, lanczos_basis
from longnn.nn import LONGNN, DeepGCN, DeepLONGNN, Directed, LONConv, OptBasisGNN

from .helpers import random_graph, random_tensor
from .test_arcs import ARCS, LOOPED, NODES, WEIGHT, dense, double, hermitian

DOUBLE = torch.float64


def chebyshev(P, x, beta):
    """The filter by dense products that autograd follows."""
    before, term = x, x
    out = x * beta[0]
    for j in range(1, len(beta)):
        before, term = term, P @ term if j == 1 else 2 * (P @ term) - before
        out = out + term * beta[j]
    return out


def as_real(M):
    return torch.cat([torch.cat([M.real, -M.imag], 1), torch.cat([M.imag, M.real], 1)])


def turning(arcs=ARCS, weight=None, nodes=NODES, phase=0.25, **options):
    return directed_operator(
        arcs, weight, nodes, direction="magnetic", phase=phase, learn_phase=True, **options
    )


@pytest.mark.parametrize("q", [0.0, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("self_loops", ["keep", "add", "remove"])
def test_the_operator_at_a_phase_is_the_one_made_for_it(q, weight, self_loops):
    options = {"dtype": DOUBLE, "self_loops": self_loops}
    found = turning(weight=weight, **options).at_phase(torch.tensor(q, dtype=DOUBLE))
    expected = double(weight=weight, direction="magnetic", phase=q, self_loops=self_loops)
    torch.testing.assert_close(found.to_dense(), expected.to_dense())
    assert found.trainable
    assert not expected.trainable
    assert found.num_edges == expected.num_edges
    start = turning(weight=weight, phase=q, **options)
    torch.testing.assert_close(start.to_dense(), expected.to_dense())


@pytest.mark.parametrize("degree", [0, 1, 2, 5])
def test_the_gradient_of_the_phase_is_that_of_the_hermitian_matrix(degree):
    """Signal, coefficients and phase, against autograd through dense complex products."""
    x, beta = random_tensor(2 * NODES, 3), random_tensor(degree + 1, 3, seed=1)
    upstream = random_tensor(2 * NODES, 3, seed=2)
    found, expected = [], []
    for grads, make in (
        (found, lambda q: turning(weight=WEIGHT, dtype=DOUBLE).at_phase(q)),
        (expected, lambda q: as_real(hermitian(dense(weight=WEIGHT), q))),
    ):
        inputs = [t.clone().requires_grad_() for t in (torch.tensor(0.13, dtype=DOUBLE), x, beta)]
        operator = make(inputs[0])
        apply = chebyshev if isinstance(operator, torch.Tensor) else apply_filter
        out = apply(operator, *inputs[1:])
        grads += torch.autograd.grad(out, inputs, upstream, allow_unused=True)
    if degree == 0:
        assert found[0] == 0
        assert expected[0] is None
        found, expected = found[1:], expected[1:]
    torch.testing.assert_close(found, expected)


SMALL = torch.tensor([[0, 1, 2, 1, 3], [1, 2, 0, 0, 2]])


@pytest.mark.parametrize("weight", [None, torch.tensor([1.0, 0.5, 2.0, 3.0, 1.0])])
def test_gradcheck_of_the_phase(weight):
    operator = turning(SMALL, weight, 5, dtype=DOUBLE)
    x, beta = random_tensor(10, 2), random_tensor(5, 2, seed=1)
    q = torch.tensor(0.2, dtype=DOUBLE, requires_grad=True)
    inputs = (q, x.requires_grad_(), beta.requires_grad_())
    assert gradcheck(lambda q, x, b: apply_filter(operator.at_phase(q), x, b), inputs)
    assert gradcheck(lambda q, x: operator.at_phase(q) @ x, inputs[:2])


def test_gradcheck_of_the_phase_under_vmap():
    """Members with a phase each; a signal that they share and one that they do not."""
    operator = turning(SMALL, None, 5, dtype=DOUBLE)
    x, beta = random_tensor(10, 2), random_tensor(3, 4, 2, seed=1)
    phases = torch.tensor([0.1, 0.2, 0.35], dtype=DOUBLE, requires_grad=True)

    def one(q, x, b):
        return apply_filter(operator.at_phase(q), x, b)

    for signal, at in ((x, None), (random_tensor(3, 10, 2, seed=2), 0)):
        many = torch.func.vmap(one, in_dims=(0, at, 0))
        inputs = (phases, signal.requires_grad_(), beta.requires_grad_())
        assert gradcheck(many, inputs)
        each = [one(q, signal if at is None else signal[i], beta[i]) for i, q in enumerate(phases)]
        torch.testing.assert_close(many(*inputs), torch.stack(each))
    per_member = torch.func.vmap(torch.func.grad(lambda q, b: one(q, x, b).square().sum()))
    expected = [
        torch.autograd.grad(one(q, x, beta[i]).square().sum(), q)[0] for i, q in enumerate(phases)
    ]
    torch.testing.assert_close(per_member(phases.detach(), beta.detach()), torch.stack(expected))


def test_a_second_derivative_of_the_phase_is_refused():
    operator = turning(SMALL, None, 5, dtype=DOUBLE)
    q = torch.tensor(0.2, dtype=DOUBLE, requires_grad=True)
    out = apply_filter(operator.at_phase(q), random_tensor(10, 2), random_tensor(4, 2))
    (first,) = torch.autograd.grad(out.sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="Expected one derivative of a filter"):
        torch.autograd.grad(first, q)


def test_the_operator_of_programs_turns_alike():
    weight = torch.cat([WEIGHT, torch.tensor([2.0, 0.5])])
    options = {"direction": "magnetic", "self_loops": "add", "dtype": DOUBLE}
    plain = EdgeOperator.from_arcs(LOOPED, weight, NODES, **options)
    learned = directed_operator(LOOPED, weight, NODES, learn_phase=True, **options)
    q, x = torch.tensor(0.37, dtype=DOUBLE), random_tensor(2 * NODES, 3)
    torch.testing.assert_close(plain.at_phase(q) @ x, learned.at_phase(q) @ x)


@pytest.mark.parametrize("make", [LONGNN, DeepLONGNN, DeepGCN], ids=lambda cls: cls.__name__)
def test_a_model_learns_its_phase(make):
    """The gradient of q in the whole model, by finite differences."""
    options = {"copies": 2, "blocks": 2} if make.joins_copies else {}
    inner = make(4 if make.joins_copies else 8, 6, 3, **options)
    model = Directed(inner, "magnetic", phase=0.2, learn_phase=True).double().eval()
    assert model.phase_now().item() == pytest.approx(0.2)
    assert any(model.raw_phase is p for p in model.parameter_groups()["basis"])
    grouped = {id(p) for group in model.parameter_groups().values() for p in group}
    assert grouped == {id(p) for p in model.parameters()}
    x, upstream = random_tensor(NODES, 4), random_tensor(NODES, 3, seed=1)
    operator = model.make_operator(ARCS, None, NODES, dtype=DOUBLE)
    loss = (model(x, operator) * upstream).sum()
    loss.backward()
    step = 1e-6
    ends = []
    for sign in (1, -1):
        moved = copy.deepcopy(model)
        with torch.no_grad():
            moved.raw_phase += sign * step
            ends.append(float((moved(x, operator) * upstream).sum()))
    assert model.raw_phase.grad.item() == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5)
    fixed = Directed(copy.deepcopy(inner), "magnetic", phase=0.2).double().eval()
    torch.testing.assert_close(model(x, ARCS), fixed(x, ARCS))


def test_a_phase_goes_back_to_its_start():
    model = Directed(LONGNN(8, 6, 3), "magnetic", phase=0.1, learn_phase=True)
    with torch.no_grad():
        model.raw_phase += 2.0
    model.reset_parameters()
    assert model.phase_now().item() == pytest.approx(0.1)
    assert Directed(LONGNN(8, 6, 3), "magnetic", phase=0.1).phase_now() is None


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(ValueError, match="Expected direction='magnetic' for learn_phase"):
        directed_operator(ARCS, None, NODES, learn_phase=True)
    with pytest.raises(ValueError, match="Expected direction='magnetic' for learn_phase"):
        Directed(LONGNN(8, 6, 3), learn_phase=True)
    for phase in (0.0, 0.5):
        with pytest.raises(ValueError, match=r"Expected 0 < `phase` < 0\.5 to start from"):
            Directed(LONGNN(8, 6, 3), "magnetic", phase=phase, learn_phase=True)
    with pytest.raises(ValueError, match=r"learn_phase=True \(got GraphOperator"):
        double(direction="magnetic").at_phase(torch.tensor(0.1))
    fixed = double(direction="magnetic")
    model = Directed(LONGNN(8, 6, 3), "magnetic", learn_phase=True).double()
    with pytest.raises(ValueError, match="Expected an operator made with direction='magnetic'"):
        model(random_tensor(NODES, 4), fixed)
    signal = random_tensor(2 * NODES, 2)
    with pytest.raises(ValueError, match="Expected a fixed operator for a basis made of"):
        lanczos_basis(turning(dtype=DOUBLE).at_phase(torch.tensor(0.1)), signal, 2)


EDGES = random_graph(12, probability=0.3, isolated=1)


def edge_numbers(edges=EDGES):
    """One number per undirected edge, for both directions."""
    pairs = edges.sort(0).values
    return torch.unique(pairs, dim=1, return_inverse=True)[1]


@pytest.mark.parametrize("normalization", ["symmetric", "random_walk"])
@pytest.mark.parametrize("self_loops", ["keep", "add", "remove"])
def test_weights_have_the_gradient_of_dense_products(normalization, self_loops):
    """One weight per edge, one edge listed twice and one of weight zero, a self loop."""
    edges = torch.cat([EDGES, EDGES[:, :1], EDGES[:, :1].flip(0), torch.tensor([[3], [3]])], 1)
    number = edge_numbers(edges)
    weight = random_tensor(int(number.max()) + 1).abs() + 0.1
    weight[2] = 0.0
    x, beta = random_tensor(12, 2), random_tensor(5, 2, seed=1)

    def by_hand(w):
        A = torch.zeros(12, 12, dtype=DOUBLE).index_put(tuple(edges), w[number], accumulate=True)
        if self_loops == "remove":
            A = A - torch.diag(A.diagonal())
        if self_loops == "add":
            A = A + torch.diag((A.diagonal() == 0).double())
        degree = A.sum(1)
        root = torch.where(degree > 0, degree, 1.0).sqrt()
        P = A / (root[:, None] * root)
        out = chebyshev(P, x * root[:, None] if normalization == "random_walk" else x, beta)
        return out / root[:, None] if normalization == "random_walk" else out

    def ours(w):
        options = {"normalization": normalization, "self_loops": self_loops, "dtype": DOUBLE}
        operator = GraphOperator.from_edge_index(edges, w[number], 12, **options)
        assert operator.trainable
        return apply_filter(operator, x, beta)

    grads = []
    for function in (by_hand, ours):
        w = weight.clone().requires_grad_()
        out = function(w)
        grads.append((out.detach(), *torch.autograd.grad(out.square().sum(), w)))
    torch.testing.assert_close(grads[1], grads[0])


def test_a_layer_takes_weights_that_are_learned():
    """As PyG's layers do, with a directed list made undirected by the larger weight."""
    conv = LONConv(2, degree=3, symmetrize=True).double()
    with torch.no_grad():  # a filter that is not the identity
        conv.filter.coefficients.weight.copy_(random_tensor(4, 2))
    arcs = EDGES[:, EDGES[0] < EDGES[1]]
    x, w = random_tensor(12, 2), random_tensor(arcs.shape[1]).abs() + 0.1
    assert gradcheck(lambda w: conv(x, arcs, w), (w.requires_grad_(),))
    torch.testing.assert_close(conv(x, arcs, w), conv(x, arcs, w.detach()))
    single = w.detach().float().requires_grad_()
    conv.float()(x.float(), arcs, single).sum().backward()
    assert single.grad.dtype == torch.float32
    assert bool((single.grad != 0).any())


def test_members_share_learned_weights_side_by_side():
    number = edge_numbers()
    w = (random_tensor(int(number.max()) + 1).abs() + 0.1).requires_grad_()
    x, beta = random_tensor(12, 2), random_tensor(3, 4, 2, seed=1)

    def one(w, b):
        operator = GraphOperator.from_edge_index(EDGES, w[number], 12, dtype=DOUBLE)
        return torch.func.vmap(lambda b: apply_filter(operator, x, b))(b)

    assert gradcheck(one, (w, beta.requires_grad_()))


def test_weights_of_arcs_are_fixed():
    weight = WEIGHT.clone().requires_grad_()
    with pytest.raises(ValueError, match="Expected `edge_weight` without gradient for arcs"):
        directed_operator(ARCS, weight, NODES)
    learned = GraphOperator.from_edge_index(
        EDGES, torch.ones(EDGES.shape[1], requires_grad=True), 12
    )
    with pytest.raises(ValueError, match="got one with learned weights or phases"):
        OptBasisGNN(4, 8, 2)(random_tensor(12, 4).float(), learned)
