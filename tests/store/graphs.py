"""Small graphs on disk, and what their terms should be."""

import dataclasses
import shutil

import numpy as np
import scipy.sparse
import torch

from longnn.data import from_data
from longnn.data._synthetic import csbm
from longnn.graphs import GraphOperator
from longnn.store._arrays import ArrayFile
from longnn.store._graph import GraphStore
from longnn.store._prepare import Ingest, working


def write_graph(folder, dataset):
    """A dataset in memory as a prepared folder."""
    with working(folder) as room:
        ingest = Ingest(folder, room, 1e9, None, None)
        return ingest.finish(ingest.dataset(dataset), {})


def write_matrix(folder, adjacency, features, labels=None):
    """A prepared folder with a graph of SciPy, its features, and labels (all 0 by default)."""
    ends = np.stack(scipy.sparse.coo_matrix(adjacency).nonzero())
    labels = np.zeros(len(features), dtype=np.int64) if labels is None else labels
    tensors = {"x": features.astype(np.float32), "edge_index": ends, "y": labels}
    tensors = {key: torch.from_numpy(array) for key, array in tensors.items()}
    return write_graph(folder, from_data(tensors, self_loops=True, ready=True))


def copy_of(graph, folder):
    """The same graph in another folder, without terms."""
    ignored = shutil.ignore_patterns("basis-*")
    return GraphStore.open(shutil.copytree(graph.folder, folder, ignore=ignored))


def verify(store):
    """Each file is what the manifest says of it."""
    for name, entry in store.manifest.files.items():
        assert ArrayFile.of(store.folder / name) == entry


def small(nodes=300, features=6, *, phi=0.6, seed=0, unlabelled=0):
    """A contextual block model as if from files; the labels of the last nodes are not known."""
    dataset = csbm(num_nodes=nodes, num_features=features, phi=phi, seed=seed)
    plain = {"ready": False, "default_split": "stratified", "ids": [f"n{i}" for i in range(nodes)]}
    dataset = dataclasses.replace(dataset, **plain)
    if unlabelled:
        dataset.data.y[-unlabelled:] = -1
    return dataset


def random_graph(nodes=90, columns=5, seed=0, density=0.06):
    """Undirected, with isolated nodes (0, and 1 but for its loop), self loops, a hub."""
    rng = np.random.default_rng(seed)
    half = rng.random((nodes, nodes)) < density
    half[2] |= rng.random(nodes) < 0.7
    dense = half | half.T
    dense[:2] = dense[:, :2] = False
    dense[1, 1] = True
    return scipy.sparse.csr_matrix(dense.astype(float)), rng.standard_normal((nodes, columns))


def exact_terms(adjacency, features, degree, self_loops="keep"):
    """By the eigenvectors of P in float64: cos(j arccos(lambda)), (K+1, nodes, columns)."""
    operator = GraphOperator.from_scipy(adjacency, self_loops=self_loops, dtype=torch.float64)
    value, vector = np.linalg.eigh(operator.to_dense().numpy())
    angle = np.arccos(value.clip(-1, 1))
    inside = vector.T @ features
    terms = [vector @ (np.cos(j * angle)[:, None] * inside) for j in range(degree + 1)]
    return np.stack(terms)


def terms_of(basis):
    """What is on disk of the features, in float32: (K+1, rows, columns)."""
    return all_terms(basis)[:, :, :-1]


def all_terms(basis):
    """The same with the constant behind them."""
    dtype = getattr(torch, basis.about.recipe.dtype)
    blocks = [torch.from_numpy(np.array(block)) for block in basis.blocks]
    wide = [block.view(dtype).float().numpy() for block in blocks]
    return np.concatenate(wide, axis=2).transpose(1, 0, 2)
