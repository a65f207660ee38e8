"""Operators of arcs: the double cover against dense decompositions."""

import numpy as np
import pytest
import torch

from longnn import GraphOperator, apply_filter, extreme_eigenvalues, spectral_density
from longnn.graphs import directed_operator
from longnn.graphs._edges import EdgeOperator

from .helpers import random_graph, random_tensor

NODES = 25


def random_arcs(nodes=NODES, *, probability=0.12, isolated=3, seed=0):
    """Arcs without loops, most without a reverse; the last nodes have none."""
    generator = torch.Generator().manual_seed(seed)
    live = nodes - isolated
    chosen = torch.rand(live, live, generator=generator) < probability
    return (chosen & ~torch.eye(live, dtype=torch.bool)).nonzero().T.contiguous()


ARCS = random_arcs()
WEIGHT = random_tensor(ARCS.shape[1]).abs() + 0.1
LOOPED = torch.cat([ARCS, torch.tensor([[0, 4], [0, 4]])], dim=1)


def dense(arcs=ARCS, weight=None, nodes=NODES):
    A = torch.zeros(nodes, nodes, dtype=torch.float64)
    values = torch.ones(arcs.shape[1], dtype=torch.float64) if weight is None else weight
    return A.index_put((arcs[0], arcs[1]), values, accumulate=True)


def normalized(A):
    out, into = (torch.where(d > 0, d, 1.0).sqrt() for d in (A.sum(1), A.sum(0)))
    return A / (out[:, None] * into)


def double(arcs=ARCS, weight=None, **options):
    return directed_operator(arcs, weight, NODES, dtype=torch.float64, **options)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_the_cover_holds_the_arcs_and_their_transpose(weight):
    operator = double(weight=weight)
    N = normalized(dense(weight=weight))
    zero = torch.zeros_like(N)
    expected = torch.cat([torch.cat([zero, N], 1), torch.cat([N.T, zero], 1)])
    torch.testing.assert_close(operator.to_dense(), expected)
    assert (operator.num_nodes, operator.copies) == (NODES, 2)
    assert operator.num_edges == ARCS.shape[1]
    eigenvalues = torch.linalg.eigvalsh(operator.to_dense())
    assert eigenvalues.abs().max() == pytest.approx(1.0)
    torch.testing.assert_close(eigenvalues, -eigenvalues.flip(0), atol=1e-12, rtol=0)


@pytest.mark.parametrize("self_loops", ["keep", "add", "remove"])
def test_edges_both_ways_give_back_the_undirected_operator(self_loops):
    edges = random_graph(NODES, isolated=3)
    options = {"self_loops": self_loops, "dtype": torch.float64}
    plain = GraphOperator.from_edge_index(edges, None, NODES, **options)
    h, beta = random_tensor(NODES, 2), random_tensor(6, 2)
    operator = directed_operator(edges, None, NODES, **options)
    found = apply_filter(operator, torch.cat([h, h]), beta)
    expected = apply_filter(plain, h, beta)
    torch.testing.assert_close(found, torch.cat([expected, expected]))


def test_graphs_without_arcs_and_without_nodes():
    empty = torch.zeros(2, 0, dtype=torch.int64)
    operator = directed_operator(empty, None, 3)
    x = random_tensor(6, 2, dtype=torch.float32)
    torch.testing.assert_close(operator @ x, torch.zeros(6, 2))
    assert directed_operator(empty, None, 0).num_nodes == 0
    assert (operator.num_nodes, operator.num_edges) == (3, 0)


@pytest.mark.parametrize("self_loops", ["keep", "add", "remove"])
@pytest.mark.parametrize("weight", [None, torch.cat([WEIGHT, torch.tensor([2.0, 0.5])])])
def test_the_operator_of_programs_is_the_same(self_loops, weight):
    options = {"self_loops": self_loops}
    operator = double(LOOPED, weight, **options)
    given = torch.ones(LOOPED.shape[1]) if weight is None else weight
    plain = EdgeOperator.from_arcs(LOOPED, given, NODES, dtype=torch.float64, **options)
    x = random_tensor(2 * NODES, 3)
    torch.testing.assert_close(plain @ x, operator @ x)
    none = torch.zeros(2, 0, dtype=torch.int64)
    empty = EdgeOperator.from_arcs(none, torch.ones(0), NODES, dtype=torch.float64, **options)
    expected = directed_operator(none, None, NODES, dtype=torch.float64, **options)
    torch.testing.assert_close(empty @ x, expected @ x)


def test_spectra_are_those_of_the_whole_operator():
    operator = double(weight=WEIGHT)
    eigenvalues = 1 - torch.linalg.eigvalsh(operator.to_dense())
    low, high = extreme_eigenvalues(operator)
    assert low == pytest.approx(float(eigenvalues.min()), abs=2e-3)
    assert high == pytest.approx(float(eigenvalues.max()), abs=2e-3)
    density = spectral_density(operator, probes=2 * NODES)
    expected = ((1 - eigenvalues) ** 2).mean()  # T_2 = 2 x^2 - 1
    assert float(density.moments[2]) == pytest.approx(float(2 * expected - 1))
    np.testing.assert_allclose(density.density, density.density.flip(0), atol=1e-9)


def test_an_operator_is_saved_moved_and_shown(tmp_path):
    operator = double()
    operator.save(tmp_path / "arcs.safetensors")
    loaded = GraphOperator.load(tmp_path / "arcs.safetensors")
    assert loaded.direction == "cover"
    torch.testing.assert_close(loaded.to_dense(), operator.to_dense())
    assert loaded.to(torch.float32).direction == "cover"
    assert "direction='cover'" in repr(loaded)
    undirected = GraphOperator.from_edge_index(random_graph(5), None, 5)
    undirected.save(tmp_path / "plain.safetensors")
    assert GraphOperator.load(tmp_path / "plain.safetensors").direction == "none"


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="Expected `self_loops`"):
        directed_operator(ARCS, None, NODES, self_loops="maybe")
