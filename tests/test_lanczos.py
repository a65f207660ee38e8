"""The basis of a signal's own: against the recurrence written out, its gradients, its end."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import vmap

from longnn.graphs._lanczos import lanczos_basis
from longnn.graphs._operator import GraphOperator

from .helpers import double_operator, random_graph, random_tensor

NODES, CHANNELS, DEGREE = 12, 3, 4


@pytest.fixture
def operator():
    return double_operator(random_graph(NODES), NODES)


def written_out(operator, x, degree):
    """Gram-Schmidt on P v against all vectors before, by autograd."""
    vectors = [x / x.norm(dim=0)]
    for _ in range(degree):
        w = operator @ vectors[-1]
        for v in vectors:
            w = w - (w * v).sum(0) * v
        vectors.append(w / w.norm(dim=0))
    return vectors


def mixed(operator):
    """All vectors as one signal in which none can hide."""
    weights = random_tensor(DEGREE + 1, NODES, CHANNELS, seed=1)

    def call(x):
        return sum(w * v for w, v in zip(weights, lanczos_basis(operator, x, DEGREE), strict=True))

    return call


def test_equals_the_recurrence_written_out(operator):
    x = random_tensor(NODES, CHANNELS).requires_grad_()
    ours, theirs = lanczos_basis(operator, x, DEGREE), written_out(operator, x, DEGREE)
    assert len(ours) == DEGREE + 1
    torch.testing.assert_close(torch.stack(ours), torch.stack(theirs))
    upstream = random_tensor(DEGREE + 1, NODES, CHANNELS, seed=2)
    found = [torch.autograd.grad(torch.stack(v), x, upstream)[0] for v in (ours, theirs)]
    torch.testing.assert_close(*found)


def test_gradients_also_under_transforms(operator):
    x, call = random_tensor(2, NODES, CHANNELS).requires_grad_(), mixed(operator)
    torch.testing.assert_close(vmap(call)(x), torch.stack([call(each) for each in x]))
    assert gradcheck(vmap(call), (x,))
    single = x[0].detach().requires_grad_()
    assert gradcheck(call, (single,))
    assert gradgradcheck(call, (single,))
    by_transform = torch.func.grad(lambda x: call(x).square().sum())(single.detach())
    (plain,) = torch.autograd.grad(call(single).square().sum(), single)
    torch.testing.assert_close(by_transform, plain)
    (v,) = lanczos_basis(operator, single, 0)
    torch.testing.assert_close(v, single / single.norm(dim=0))
    assert gradcheck(lambda x: lanczos_basis(operator, x, 0)[0], (single,))


def test_a_basis_that_ends_is_zero_from_there_and_has_a_right_gradient():
    """A channel on a component of two nodes has two vectors; a channel of zeros has none."""
    edges = torch.tensor([[0, 1, 2, 3, 3, 4], [1, 0, 3, 2, 4, 3]])
    operator = GraphOperator.from_edge_index(edges, num_nodes=5, dtype=torch.float64)
    x = torch.zeros(5, 2, dtype=torch.float64)
    x[:2, 0] = torch.tensor([1.0, 2.0])
    vectors = lanczos_basis(operator, x, 4)
    lengths = torch.stack(vectors).norm(dim=1)
    expected = torch.tensor([[1.0, 0], [1, 0], [0, 0], [0, 0], [0, 0]], dtype=torch.float64)
    torch.testing.assert_close(lengths, expected)
    only = x[:2, :1].clone().requires_grad_()  # within the component the basis stays two long

    def call(part):
        full = torch.cat([part, part.new_zeros(3, 1)])
        return torch.stack(lanczos_basis(operator, full, 4))

    assert gradcheck(call, (only,))


def test_single_precision_keeps_its_type_and_orthogonality():
    operator = GraphOperator.from_edge_index(random_graph(200), num_nodes=200)
    x = random_tensor(200, 2).float()
    V = torch.stack(lanczos_basis(operator, x, 5))
    gram = torch.einsum("inc,jnc->cij", V, V)
    assert V.dtype == torch.float32
    torch.testing.assert_close(gram, torch.eye(6).expand_as(gram), rtol=0, atol=1e-4)


def test_a_random_walk_operator_has_the_vectors_of_its_symmetric_form():
    edges = random_graph(NODES)
    options = {"num_nodes": NODES, "dtype": torch.float64}
    walk = GraphOperator.from_edge_index(edges, normalization="random_walk", **options)
    x = random_tensor(NODES, CHANNELS)
    V = torch.stack(lanczos_basis(walk, x, 2))
    plane = torch.linalg.qr(torch.stack([x, walk @ x, walk @ (walk @ x)])[:, :, 0].T)[0]
    torch.testing.assert_close(plane @ (plane.T @ V[2, :, 0]), V[2, :, 0])
