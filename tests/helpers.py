"""Small random graphs and exact spectral evaluation, shared by the tests."""

import pytest
import torch

from longnn import GraphOperator


def random_graph(nodes, *, probability=0.15, isolated=0, seed=0):
    """An undirected random graph as edge_index; the last ``isolated`` nodes have no edge."""
    generator = torch.Generator().manual_seed(seed)
    live = nodes - isolated
    upper = torch.rand(live, live, generator=generator).triu(1) > 1 - probability
    return (upper | upper.T).nonzero().T.contiguous()


def random_tensor(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def exact_filter(operator, response, x):
    """g(L) x by the eigendecomposition of the dense operator, ``response`` of eigenvalues of L."""
    eigenvalues, U = torch.linalg.eigh(operator.matrix.to_dense().double())
    scaled = operator.scale_in(x.double())
    g = response(1 - eigenvalues)  # (channels, nodes) or (nodes,)
    g = g.T if g.dim() == 2 else g[:, None]
    return operator.scale_out(U @ (g * (U.T @ scaled)))


def double_operator(edge_index, nodes, **options):
    return GraphOperator.from_edge_index(
        edge_index, num_nodes=nodes, dtype=torch.float64, **options
    )


def normalized_arcs(arcs, weight, nodes):
    """N of a directed graph, dense: rows over roots of out-degrees, columns of in-degrees."""
    A = torch.zeros(nodes, nodes, dtype=torch.float64)
    values = torch.ones(arcs.shape[1], dtype=torch.float64) if weight is None else weight
    A = A.index_put((arcs[0], arcs[1]), values, accumulate=True)
    out, into = (torch.where(d > 0, d, 1.0).sqrt() for d in (A.sum(1), A.sum(0)))
    return A / (out[:, None] * into)


#: One model of each architecture; the others differ from one of them in a basis or an option.
ARCHITECTURES = ("lon", "bern", "favard", "optbasis", "cheb", "gcn", "arma", "mlp")
ARCHITECTURES += ("lon-deep", "sage-deep", "gat-deep")


def one_per_architecture(names):
    """The names as parameters of a test; those that repeat an architecture are slow."""
    return [
        pytest.param(name, marks=() if name in ARCHITECTURES else pytest.mark.slow)
        for name in names
    ]
