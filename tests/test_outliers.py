"""Eigenvalues outside the bulk: against all eigenvalues of graphs whose parts are known."""

import numpy as np
import pytest
import scipy.sparse
import torch

from longnn.graphs import GraphOperator
from longnn.graphs._spectrum import outlying_eigenvalues

SMALL, LARGE = 300, 700  # all eigenvalues are computed, and Lanczos' method


def planted(nodes, table, *, seed=0, weighted=False):
    """A random graph of equal blocks, ``table[i][j]`` the mean neighbours of i's nodes in j."""
    table = np.asarray(table, dtype=float)
    blocks = len(table)
    block = np.arange(nodes) % blocks
    generator = np.random.default_rng(seed)
    chance = table[block][:, block] * blocks / nodes
    upper = np.triu(generator.random((nodes, nodes)) < chance, 1).astype(float)
    if weighted:
        upper *= generator.uniform(0.5, 1.5, upper.shape)
    return scipy.sparse.csr_matrix(upper + upper.T)


def communities(count, inside=20.0, outside=1.0):
    return np.full((count, count), outside) + (inside - outside) * np.eye(count)


def operator_of(adjacency, **options):
    return GraphOperator.from_scipy(adjacency, dtype=torch.float64, **options)


def all_eigenvalues(adjacency, **options):
    return 1 - torch.linalg.eigvalsh(operator_of(adjacency, **options).to_dense()).flip(0)


def ring(nodes):
    at = np.arange(nodes)
    ahead = scipy.sparse.csr_matrix((np.ones(nodes), (at, (at + 1) % nodes)), (nodes, nodes))
    return ahead + ahead.T


@pytest.mark.parametrize("nodes", [SMALL, LARGE])
@pytest.mark.parametrize("count", [1, 2, 4, 9])
@pytest.mark.parametrize("weighted", [False, True])
def test_communities_have_one_eigenvalue_each_but_one(nodes, count, weighted):
    graph = planted(nodes, communities(count), weighted=weighted)
    found = outlying_eigenvalues(operator_of(graph))
    torch.testing.assert_close(found, all_eigenvalues(graph)[1:count], atol=1e-4, rtol=0)


@pytest.mark.parametrize("nodes", [SMALL, LARGE])
def test_mutually_linked_halves_have_one_near_two(nodes):
    graph = planted(nodes, [[1, 20], [20, 1]])
    found = outlying_eigenvalues(operator_of(graph))
    torch.testing.assert_close(found, all_eigenvalues(graph)[-1:], atol=1e-4, rtol=0)
    assert 1.7 < found.item() < 2
    bipartite = planted(nodes, [[0, 20], [20, 0]])
    assert outlying_eigenvalues(operator_of(bipartite)).tolist() == [2.0]


NONE = {
    "ring": ring,
    "grid": lambda nodes: scipy.sparse.kronsum(ring(20), ring(nodes // 20)),
    "random": lambda nodes: planted(nodes, [[8.0]]),
    "complete": lambda nodes: scipy.sparse.csr_matrix(1 - np.eye(nodes)),  # Lanczos ends at once
    "no edges": lambda nodes: scipy.sparse.csr_matrix((nodes, nodes)),
}


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        *((name, nodes) for name in ("ring", "grid") for nodes in (200, 201, 2000, 2001)),
        *((name, nodes) for name in ("random", "complete", "no edges") for nodes in (SMALL, LARGE)),
    ],
)
def test_spectra_without_a_gap_have_none(name, nodes):
    assert outlying_eigenvalues(operator_of(NONE[name](nodes))).tolist() == []


@pytest.mark.parametrize("nodes", [SMALL, LARGE])
def test_components_count_as_communities_and_small_ones_do_not(nodes):
    parts = [planted(nodes, communities(2)), *(planted(100, [[20.0]], seed=k) for k in (1, 2))]
    halves = planted(100, [[0, 20], [20, 0]])
    edge = np.array([[0.0, 1], [1, 0]])
    graph = scipy.sparse.block_diag([*parts, halves, *[edge] * 20, np.zeros((5, 5))]).tocsr()
    found = outlying_eigenvalues(operator_of(graph))
    inside = all_eigenvalues(parts[0])[1].item()
    assert found.tolist() == pytest.approx([0, 0, 0, inside, 2], abs=1e-4)


def test_more_components_than_vectors_side_by_side():
    graph = scipy.sparse.block_diag([planted(60, [[10.0]], seed=k) for k in range(12)])
    assert outlying_eigenvalues(operator_of(graph)).tolist() == [0.0] * 11


def test_twenty_villages_on_a_road():
    """Blocks joined by single edges, in which all eigenvectors of the bulk are localised."""
    graph = scipy.sparse.block_diag([planted(40, [[12.0]], seed=k) for k in range(20)]).tolil()
    for k in range(19):
        graph[40 * k, 40 * k + 40] = graph[40 * k + 40, 40 * k] = 1
    found = outlying_eigenvalues(operator_of(graph))
    torch.testing.assert_close(found, all_eigenvalues(graph)[1:20], atol=1e-4, rtol=0)


@pytest.mark.parametrize("options", [{"self_loops": "add"}, {"normalization": "random_walk"}])
def test_other_operators(options):
    graph = planted(LARGE, communities(3))
    found = outlying_eigenvalues(operator_of(graph, **options))
    exact = all_eigenvalues(graph, self_loops=options.get("self_loops", "keep"))
    torch.testing.assert_close(found, exact[1:3], atol=1e-4, rtol=0)


def test_the_same_graph_gives_the_same_values_in_any_order():
    graph = planted(LARGE, communities(3))
    found = outlying_eigenvalues(operator_of(graph))
    assert torch.equal(found, outlying_eigenvalues(operator_of(graph)))
    order = np.random.default_rng(0).permutation(LARGE)
    torch.testing.assert_close(outlying_eigenvalues(operator_of(graph[order][:, order])), found)
    single = GraphOperator.from_scipy(graph, dtype=torch.float32)
    torch.testing.assert_close(outlying_eigenvalues(single), found, atol=1e-4, rtol=0)


def test_a_graph_without_nodes():
    with pytest.raises(ValueError, match=r"Expected a graph with nodes \(got none\)"):
        outlying_eigenvalues(operator_of(scipy.sparse.csr_matrix((0, 0))))
