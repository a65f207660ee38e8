"""Small graphs on disk, and what their terms should be."""

import numpy as np
import scipy.sparse
import torch

from longnn.graphs import GraphOperator
from longnn.store._arrays import Manifest
from longnn.store._graph import GraphStore

FILES = ["offsets.npy", "neighbours.npy", "features.npy", "labels.npy"]


def write_graph(folder, adjacency, features, labels=None):
    """A prepared folder with a graph of SciPy, its features, and labels (all 0 by default)."""
    folder.mkdir(parents=True, exist_ok=True)
    matrix = scipy.sparse.csr_matrix(adjacency)
    matrix.sort_indices()
    labels = np.zeros(matrix.shape[0], dtype=np.int32) if labels is None else labels
    features = np.asfortranarray(features, dtype=np.float32)
    arrays = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), features, labels)
    for name, array in zip(FILES, arrays, strict=True):
        np.save(folder / name, array)
    Manifest.of("graph", {"name": "small"}, folder, FILES).write(folder)
    return GraphStore.open(folder)


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
    """What is on disk, in float32: (K+1, rows, columns)."""
    dtype = getattr(torch, basis.about["dtype"])
    blocks = [torch.from_numpy(np.array(block)) for block in basis.blocks]
    wide = [block.view(dtype).float().numpy() for block in blocks]
    return np.concatenate(wide, axis=2).transpose(1, 0, 2)
