"""The PyG-style layers, used the way PyG users use layers."""

import pytest
import torch
from torch_geometric.nn import Sequential

from longnn import LONConv, PolynomialConv

from ..helpers import random_graph, random_tensor

NODES = 25
EDGES = random_graph(NODES, isolated=1)


def test_edge_weights_count():
    conv = LONConv(2, degree=3).double()
    with torch.no_grad():
        conv.filter.coefficients.weight.add_(random_tensor(4, 2))
    x = random_tensor(NODES, 2)
    weight = 1.0 + (EDGES[0] + EDGES[1]).double() / NODES
    assert not torch.allclose(conv(x, EDGES, weight), conv(x, EDGES))
    torch.testing.assert_close(conv(x, EDGES, 5 * weight), conv(x, EDGES, weight))
    assert conv.penalty() == conv.filter.penalty() > 0


def test_inside_pyg_sequential():
    model = Sequential(
        "x, edge_index",
        [
            (torch.nn.Linear(4, 8), "x -> x"),
            torch.nn.ReLU(),
            (LONConv(8, degree=3), "x, edge_index -> x"),
            torch.nn.Linear(8, 2),
        ],
    )
    x = random_tensor(NODES, 4, dtype=torch.float32)
    out = model(x, EDGES)
    out.sum().backward()
    assert out.shape == (NODES, 2)
    assert all(p.grad is not None for p in model.parameters())


def test_learned_basis_is_readable_and_moves():
    conv = LONConv(2, degree=3, a=1.0, b=0.25)
    assert conv.a == pytest.approx(1.0, abs=1e-6)
    assert conv.b == pytest.approx(0.25, abs=1e-6)
    x = random_tensor(NODES, 2, dtype=torch.float32)
    optimizer = torch.optim.SGD(conv.parameters(), lr=0.5)
    with torch.no_grad():
        conv.filter.coefficients.weight.add_(0.5)
    (conv(x, EDGES) - 1).square().mean().backward()
    optimizer.step()
    assert conv.a != pytest.approx(1.0, abs=1e-6)
    conv.reset_parameters()
    assert conv.a == pytest.approx(1.0, abs=1e-6)
    assert "a" not in dict(LONConv(2, learn_basis=False).named_parameters())


def test_errors_and_repr():
    with pytest.raises(ValueError, match=r"Expected x of shape \(nodes, 3\) \(got \(25, 2\)\)"):
        LONConv(3)(torch.zeros(NODES, 2), EDGES)
    with pytest.raises(ValueError, match=r"Expected `a` > -1 \(got -1\)"):
        LONConv(3, a=-1.0)
    assert repr(PolynomialConv(2, degree=4, basis="bernstein")).startswith(
        "PolynomialConv(2, degree=4,"
    )
