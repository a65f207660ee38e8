"""The graph operator: its laws, its inputs, its errors."""

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_dense_adj

from longnn import GraphOperator, apply_filter, extreme_eigenvalues, spectral_density
from longnn.graphs._edges import EdgeOperator
from longnn.graphs._lanczos import lanczos_basis
from longnn.graphs._operator import as_operator
from longnn.graphs._spectrum import chebyshev_moments

from .helpers import double_operator, random_graph, random_tensor

NODES = 30
EDGES = random_graph(NODES, isolated=3)


def dense_adjacency(edges=EDGES, nodes=NODES, weight=None):
    return to_dense_adj(edges, edge_attr=weight, max_num_nodes=nodes)[0].double()


def normalized(A):
    degree = A.sum(1)
    inverse = torch.where(degree > 0, degree, torch.inf).rsqrt()
    return inverse[:, None] * A * inverse


def test_symmetric_normalisation_and_spectrum():
    operator = double_operator(EDGES, NODES)
    P = operator.to_dense()
    torch.testing.assert_close(P, normalized(dense_adjacency()))
    eigenvalues = torch.linalg.eigvalsh(P)
    assert eigenvalues.min() >= -1 - 1e-12
    assert eigenvalues.max() == pytest.approx(1.0)
    assert operator.num_edges == EDGES.shape[1] // 2


def test_random_walk_normalisation():
    operator = double_operator(EDGES, NODES, normalization="random_walk")
    A = dense_adjacency()
    expected = A / A.sum(1, keepdim=True).clamp_min(1)
    torch.testing.assert_close(operator.to_dense(), expected)
    x = random_tensor(NODES, 2)
    torch.testing.assert_close(operator @ x, expected @ x)


def test_self_loops_as_in_gcn():
    edges = torch.cat([EDGES, torch.tensor([[0, 1], [0, 1]])], dim=1)  # two nodes have loops
    index, weight = gcn_norm(edges, num_nodes=NODES, dtype=torch.float64)
    expected = dense_adjacency(index, weight=weight)
    torch.testing.assert_close(double_operator(edges, NODES, self_loops="add").to_dense(), expected)
    removed = double_operator(edges, NODES, self_loops="remove").to_dense()
    torch.testing.assert_close(removed, double_operator(EDGES, NODES).to_dense())
    kept = double_operator(edges, NODES)
    assert kept.to_dense()[0, 0] > 0
    assert kept.num_edges == EDGES.shape[1] // 2 + 2


def test_all_constructors_agree():
    weight = random_tensor(NODES, NODES).abs()
    weight = (weight + weight.T)[EDGES[0], EDGES[1]]
    options = {"dtype": torch.float64, "self_loops": "add"}
    expected = GraphOperator.from_edge_index(EDGES, weight, NODES, **options).to_dense()
    data = Data(edge_index=EDGES, edge_weight=weight, num_nodes=NODES)
    coo = torch.sparse_coo_tensor(EDGES, weight, (NODES, NODES), check_invariants=True)
    dense = dense_adjacency(weight=weight)
    for operator in (
        GraphOperator.from_data(data, **options),
        GraphOperator.from_torch_sparse(coo, **options),
        GraphOperator.from_torch_sparse(coo.coalesce().to_sparse_csr(), **options),
        GraphOperator.from_scipy(scipy.sparse.coo_array(dense.numpy()), **options),
        as_operator(coo, **options),
        as_operator(EDGES, weight, NODES, **options),
    ):
        torch.testing.assert_close(operator.to_dense(), expected)


def test_directed_edges_are_symmetrised_only_when_asked():
    one_way = EDGES[:, EDGES[0] < EDGES[1]]
    with pytest.raises(ValueError, match=r"undirected graph \(got .* -> .*symmetrize=True"):
        double_operator(one_way, NODES)
    expected = double_operator(EDGES, NODES).to_dense()
    torch.testing.assert_close(
        double_operator(one_way, NODES, symmetrize=True).to_dense(), expected
    )
    # Idempotent: a graph that already is undirected stays as it is.
    torch.testing.assert_close(double_operator(EDGES, NODES, symmetrize=True).to_dense(), expected)


def test_duplicates_are_summed_or_refused():
    twice = torch.tensor([[0, 1, 0, 1, 1, 2], [1, 0, 1, 0, 2, 1]])
    weighted = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), torch.tensor([2.0, 2.0, 1.0, 1.0])
    torch.testing.assert_close(
        GraphOperator.from_edge_index(twice).to_dense(),
        GraphOperator.from_edge_index(*weighted).to_dense(),
    )
    with pytest.raises(ValueError, match=r"each edge once \(got 0 -> 1 again at position 2\)"):
        GraphOperator.from_edge_index(twice, duplicates="error")
    with pytest.raises(ValueError, match="'sum' or 'error'"):
        GraphOperator.from_edge_index(twice, duplicates="drop")


def test_degenerate_graphs():
    empty = GraphOperator.from_edge_index(torch.empty(2, 0, dtype=torch.long), num_nodes=4)
    assert torch.equal(empty @ torch.ones(4, 2), torch.zeros(4, 2))
    assert empty.num_edges == 0
    nothing = GraphOperator.from_edge_index(torch.empty(2, 0, dtype=torch.long))
    assert nothing.num_nodes == 0
    loops = GraphOperator.from_edge_index(torch.tensor([[0, 1], [0, 1]]), num_nodes=3)
    torch.testing.assert_close(loops.to_dense(), torch.diag(torch.tensor([1.0, 1.0, 0.0])))
    zero = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]), torch.zeros(2))
    assert zero.num_edges == 0


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_edge_attributes_are_weights_where_there_is_one_per_edge(shape):
    index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    weight = torch.tensor([2.0, 2.0, 3.0, 3.0])
    expected = GraphOperator.from_edge_index(index, weight).to_dense()
    data = Data(edge_index=index, edge_attr=weight.reshape(shape), num_nodes=3)
    assert torch.equal(GraphOperator.from_data(data).to_dense(), expected)
    data = Data(edge_index=index, edge_attr=torch.rand(4, 2), edge_weight=weight, num_nodes=3)
    assert torch.equal(GraphOperator.from_data(data).to_dense(), expected)
    data = Data(edge_index=index, edge_attr=torch.rand(4, 2), num_nodes=3)
    with pytest.raises(ValueError, match=r"weight per edge \(got \(4, 2\)\); set `edge_weight`"):
        GraphOperator.from_data(data)


def test_disconnected_graph_is_block_diagonal():
    graphs = [Data(edge_index=random_graph(n, seed=n), num_nodes=n) for n in (5, 8, 6)]
    batch = GraphOperator.from_data(Batch.from_data_list(graphs), dtype=torch.float64)
    blocks = [GraphOperator.from_data(g, dtype=torch.float64).to_dense() for g in graphs]
    torch.testing.assert_close(batch.to_dense(), torch.block_diag(*blocks))


@pytest.mark.parametrize(
    ("edges", "weight", "nodes", "error", "message"),
    [
        ([[0, 5], [5, 0]], None, 3, ValueError, r"in 0..2 \(got 5 at edge_index\[0, 1\]\)"),
        ([[0, -1], [1, 0]], None, 3, ValueError, r"\(got -1 at edge_index\[0, 1\]\)"),
        ([[0.0, 1.0], [1.0, 0.0]], None, 2, TypeError, "integer type"),
        ([0, 1], None, 2, ValueError, r"shape \(2, edges\) \(got \(2,\)\)"),
        ([[0, 1], [1, 0]], [1.0, -2.0], 2, ValueError, r"\(got -2 at edge_weight\[1\]\)"),
        ([[0, 1], [1, 0]], [np.nan, 1.0], 2, ValueError, r"\(got nan at edge_weight\[0\]\)"),
        ([[0, 1], [1, 0]], [1.0, np.inf], 2, ValueError, r"\(got inf at edge_weight\[1\]\)"),
        ([[0, 1], [1, 0]], [1.0], 2, ValueError, r"shape \(2,\), one per edge \(got \(1,\)\)"),
        ([[0, 1], [1, 0]], [1j, 1j], 2, TypeError, "real `edge_weight`"),
        ([[0, 1], [1, 0]], None, -1, ValueError, r"`num_nodes` >= 0 \(got -1\)"),
    ],
)
def test_errors_name_the_value_and_its_position(edges, weight, nodes, error, message):
    weight = None if weight is None else torch.tensor(weight)
    with pytest.raises(error, match=message):
        GraphOperator.from_edge_index(torch.tensor(edges), weight, nodes)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: GraphOperator.from_edge_index([[0], [0]]), TypeError, "as a tensor"),
        (lambda: GraphOperator.from_edge_index(EDGES, [1.0]), TypeError, "as a tensor"),
        (lambda: GraphOperator.from_data(Data()), ValueError, "with an `edge_index`"),
        (lambda: GraphOperator.from_torch_sparse(torch.eye(2)), TypeError, "a dense one"),
        (
            lambda: GraphOperator.from_torch_sparse(torch.rand(2, 3).to_sparse()),
            ValueError,
            "square",
        ),
        (lambda: GraphOperator.from_scipy(np.eye(2)), TypeError, "SciPy sparse"),
        (lambda: GraphOperator.from_scipy(scipy.sparse.eye(2, 3)), ValueError, "square"),
        (lambda: double_operator(EDGES, NODES, self_loops="no"), ValueError, "'add' or 'remove'"),
        (lambda: double_operator(EDGES, NODES, normalization="l1"), ValueError, "'random_walk'"),
        (lambda: as_operator("graph"), TypeError, r"\(got str\)"),
        (
            lambda: as_operator(double_operator(EDGES, NODES), torch.ones(3)),
            ValueError,
            "beside a GraphOperator",
        ),
    ],
)
def test_other_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("mode", ["keep", "add", "remove"])
def test_plain_arrays_make_the_same_operator(mode):
    """Weights, duplicates, self loops (one of them listed twice) and isolated nodes."""
    loops = torch.tensor([[0, 1, 1], [0, 1, 1]])
    edges = torch.cat([EDGES, EDGES[:, :1], EDGES[:, :1].flip(0), loops], dim=1)
    weight = 1.0 + (edges[0] * edges[1] % 5)  # alike in both directions
    operator = double_operator(edges, NODES, self_loops=mode, edge_weight=weight)
    arrays = EdgeOperator.from_edge_index(
        edges, weight, NODES, self_loops=mode, dtype=torch.float64
    )
    x, beta = random_tensor(NODES, 2), random_tensor(6, 2, seed=1)
    torch.testing.assert_close(arrays @ torch.eye(NODES).double(), operator.to_dense())
    for degree in range(6):
        some = beta[: degree + 1]
        torch.testing.assert_close(apply_filter(arrays, x, some), apply_filter(operator, x, some))
    torch.testing.assert_close(lanczos_basis(arrays, x, 5), lanczos_basis(operator, x, 5))


@pytest.mark.parametrize("normalization", ["symmetric", "random_walk"])
def test_save_and_load(tmp_path, normalization):
    operator = double_operator(EDGES, NODES, normalization=normalization)
    operator.save(tmp_path / "graph.safetensors")
    again = GraphOperator.load(tmp_path / "graph.safetensors")
    assert torch.equal(again.to_dense(), operator.to_dense())
    assert again.normalization == normalization


def test_index_type_dtype_and_repr():
    operator = double_operator(EDGES, NODES)
    assert operator.matrix.col.dtype == torch.int32
    single = operator.to(torch.float32)
    assert single.dtype == torch.float32
    assert repr(single) == (
        f"GraphOperator(nodes={NODES}, edges={EDGES.shape[1] // 2}, "
        "normalization='symmetric', dtype=float32, device=cpu)"
    )


def test_moments_exact_and_estimated():
    operator = double_operator(random_graph(200, probability=0.05), 200)
    eigenvalues = torch.linalg.eigvalsh(operator.to_dense())
    k = torch.arange(21, dtype=torch.float64)[:, None]
    exact = torch.cos(k * torch.arccos(eigenvalues.clamp(-1, 1))).mean(1)
    torch.testing.assert_close(chebyshev_moments(operator, 20, probes=200), exact)
    estimate = chebyshev_moments(operator, 20, probes=64, seed=1)
    assert (estimate - exact).abs().max() < 4 / np.sqrt(200 * 64)


def test_density_integrates_to_one_and_finds_the_mass():
    operator = double_operator(random_graph(300, probability=0.05), 300)
    density = spectral_density(operator, degree=60, probes=300)
    assert torch.trapezoid(density.density, density.eigenvalues).item() == pytest.approx(
        1, abs=2e-3
    )
    eigenvalues = 1 - torch.linalg.eigvalsh(operator.to_dense())
    inside = (eigenvalues > 0.8) & (eigenvalues < 1.2)
    grid = (density.eigenvalues > 0.8) & (density.eigenvalues < 1.2)
    mass = torch.trapezoid(density.density[grid], density.eigenvalues[grid])
    assert mass.item() == pytest.approx(inside.double().mean().item(), abs=0.05)
    shares = density.histogram(5)
    assert sum(shares) == pytest.approx(1)
    assert shares[2] == pytest.approx(inside.double().mean().item(), abs=0.05)


@pytest.mark.parametrize("nodes", [12, 200])
def test_extreme_eigenvalues(nodes):
    operator = double_operator(random_graph(nodes, probability=0.3), nodes)
    expected = 1 - torch.linalg.eigvalsh(operator.to_dense())
    low, high = extreme_eigenvalues(operator)  # exact at the lower end
    assert low == pytest.approx(expected.min().item(), abs=1e-8)
    assert high == pytest.approx(expected.max().item(), abs=1e-8)
    ring = torch.arange(nodes)
    bipartite = double_operator(torch.stack([ring, (ring + 1) % nodes]), nodes, symmetrize=True)
    assert extreme_eigenvalues(bipartite) == (0.0, 2.0)


def test_extreme_eigenvalues_of_special_graphs():
    empty = torch.empty(2, 0, dtype=torch.long)
    assert extreme_eigenvalues(double_operator(empty, 5)) == (1.0, 1.0)
    # A triangle beside a single edge: that edge is a bipartite component.
    both = torch.tensor([[0, 1, 2, 3], [1, 2, 0, 4]])
    assert extreme_eigenvalues(double_operator(both, 6, symmetrize=True)) == (0.0, 2.0)
    triangle = double_operator(both[:, :3], 4, symmetrize=True)
    assert extreme_eigenvalues(triangle) == pytest.approx((0.0, 1.5))
    loops = double_operator(both, 6, symmetrize=True, self_loops="add")
    assert extreme_eigenvalues(loops)[1] == pytest.approx(
        1 - torch.linalg.eigvalsh(loops.to_dense()).min().item()
    )
