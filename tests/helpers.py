"""Small random graphs, exact spectral evaluation, and files that are changed, for many tests."""

import contextlib

import pytest
import safetensors.torch
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


@contextlib.contextmanager
def changing(path):
    """Tensors and metadata of a safetensors file, which is written again as they are left."""
    with safetensors.safe_open(str(path), "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    yield tensors, metadata
    safetensors.torch.save_file(tensors, str(path), metadata)


#: One model of each architecture; the others differ from one of them in a basis or an option.
ARCHITECTURES = ("lon", "bern", "favard", "optbasis", "cheb", "gcn", "arma", "mlp")
ARCHITECTURES += ("lon-deep", "sage-deep", "gat-deep")


def one_per_architecture(names):
    """The names as parameters of a test; those that repeat an architecture are slow."""
    return [
        pytest.param(name, marks=() if name in ARCHITECTURES else pytest.mark.slow)
        for name in names
    ]
