"""Sparse features need memory for what is in them: counted, never timed."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from longnn.data import describe, load
from longnn.data._scaling import Scaling
from longnn.graphs import GraphOperator
from longnn.matrices import SparseMatrix
from longnn.training import Problem


def write_graph(folder, nodes, features, per_node):
    """A ring with words: a node file of labels, and the words as matrix and as long table."""
    rng = np.random.default_rng(0)
    row, col = np.repeat(np.arange(nodes), per_node), rng.integers(0, features, nodes * per_node)
    words = sp.csr_array((np.ones(len(row), np.float32), (row, col)), shape=(nodes, features))
    ring = np.arange(nodes)
    edges = {"source": ring, "target": (ring + 1) % nodes}
    pq.write_table(pa.table(edges), folder / "edges.parquet")
    pq.write_table(pa.table({"id": ring, "label": ring % 5}), folder / "nodes.parquet")
    sp.save_npz(folder / "words.npz", words)
    found = words.tocoo()
    long = {"id": found.row, "feature": found.col, "value": found.data}
    pq.write_table(pa.table(long), folder / "words.parquet")
    return words


def load_words(folder, kind):
    edges, nodes = folder / "edges.parquet", folder / "nodes.parquet"
    return load(edges, nodes, feature_file=str(folder / f"words.{kind}"))


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_nothing_of_dense_size_is_made(kind, tmp_path, monkeypatch):
    words = write_graph(tmp_path, 6000, 2000, 50)
    dense = 4 * 6000 * 2000  # bytes
    made = []

    def watch(name, make):
        def watched(*args, **kwargs):
            result = make(*args, **kwargs)
            made.append(result.numel() * result.element_size())
            return result

        monkeypatch.setattr(torch, name, watched)

    for name in ("zeros", "empty", "empty_like", "zeros_like"):
        watch(name, getattr(torch, name))
    to_dense = Tensor.to_dense
    monkeypatch.setattr(
        Tensor,
        "to_dense",
        lambda x, *a: pytest.fail("made dense") if x.numel() * 4 >= dense else to_dense(x, *a),
    )
    tracemalloc.start()
    try:
        dataset = load_words(tmp_path, kind)
        x = dataset.data.x
        card = describe(dataset)
        operator = GraphOperator.from_edge_index(dataset.data.edge_index, None, 6000)
        for scale in ("columns", "row", "standard"):
            scaled = Scaling.fit(scale, dataset).apply(x)
            problem = Problem.make(scaled, operator, dataset.data.y)
            assert isinstance(problem.features, SparseMatrix)
        peak = tracemalloc.get_traced_memory()[1]  # of NumPy and SciPy
    finally:
        tracemalloc.stop()
    assert x.layout is torch.sparse_csr
    assert x.values().numel() == words.nnz
    assert card.feature_density == words.nnz / 12e6
    assert peak < dense / 2
    assert max(made, default=0) < dense / 10
