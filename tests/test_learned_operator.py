"""Gradients into the operator, from weights of edges, against dense autograd."""

import dataclasses

import pytest
import torch
from torch.autograd import gradcheck

from longnn import GraphOperator, apply_filter
from longnn.graphs import directed_operator
from longnn.nn import LONConv, OptBasisGNN

from .helpers import random_graph, random_tensor
from .test_arcs import ARCS, NODES, WEIGHT

DOUBLE = torch.float64


def chebyshev(P, x, beta):
    """The filter by dense products that autograd follows."""
    before, term = x, x
    out = x * beta[0]
    for j in range(1, len(beta)):
        before, term = term, P @ term if j == 1 else 2 * (P @ term) - before
        out = out + term * beta[j]
    return out


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


@pytest.mark.parametrize("degree", [0, 1, 4])
def test_members_with_weights_of_their_own(degree):
    """Entries of P for each member; a signal that they share and one that they do not."""
    ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    pattern = GraphOperator.from_edge_index(torch.cat([ring, ring.flip(0)], 1), dtype=DOUBLE)
    numbers = edge_numbers(torch.stack(_row_and_col(pattern)))
    beta = random_tensor(3, degree + 1, 2, seed=1)
    weights = random_tensor(3, 4, seed=3).abs().requires_grad_()

    def one(w, x, b):
        matrix = pattern.matrix.with_values(w[numbers])
        return apply_filter(dataclasses.replace(pattern, matrix=matrix, trainable=True), x, b)

    for signal, at in ((random_tensor(4, 2), None), (random_tensor(3, 4, 2, seed=2), 0)):
        many = torch.func.vmap(one, in_dims=(0, at, 0))
        inputs = (weights, signal.requires_grad_(), beta.requires_grad_())
        assert gradcheck(many, inputs)
        each = [one(w, signal if at is None else signal[i], beta[i]) for i, w in enumerate(weights)]
        torch.testing.assert_close(many(*inputs), torch.stack(each))


def _row_and_col(operator):
    matrix = operator.matrix
    counts = (matrix.crow[1:] - matrix.crow[:-1]).long()
    return torch.repeat_interleave(torch.arange(len(counts)), counts), matrix.col.long()


def test_a_second_derivative_in_weights_is_refused():
    weight = torch.ones(EDGES.shape[1], dtype=DOUBLE, requires_grad=True)
    operator = GraphOperator.from_edge_index(EDGES, weight, 12, dtype=DOUBLE)
    out = apply_filter(operator, random_tensor(12, 2), random_tensor(4, 2))
    (first,) = torch.autograd.grad(out.sum(), weight, create_graph=True)
    with pytest.raises(NotImplementedError, match="Expected one derivative of a filter"):
        torch.autograd.grad(first.sum(), weight)


def test_weights_of_arcs_are_fixed():
    weight = WEIGHT.clone().requires_grad_()
    with pytest.raises(ValueError, match="Expected `edge_weight` without gradient for arcs"):
        directed_operator(ARCS, weight, NODES)
    learned = GraphOperator.from_edge_index(
        EDGES, torch.ones(EDGES.shape[1], requires_grad=True), 12
    )
    with pytest.raises(ValueError, match="got one with learned weights"):
        OptBasisGNN(4, 8, 2)(random_tensor(12, 4).float(), learned)
