"""Sparse features need memory for what is in them: counted, never timed."""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from longnn.data import NodeDataset, describe, load
from longnn.data._scaling import Scaling
from longnn.graphs import GraphOperator
from longnn.matrices import SparseMatrix
from longnn.training import Problem

MIB = 2**20


def write_graph(folder: Path, nodes: int, features: int, per_node: int) -> sp.csr_array:
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


def load_words(folder: Path, kind: str) -> NodeDataset:
    edges, nodes = folder / "edges.parquet", folder / "nodes.parquet"
    return load(edges, nodes, feature_file=str(folder / f"words.{kind}"))


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_nothing_of_dense_size_is_made(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = write_graph(tmp_path, 6000, 2000, 50)
    dense = 4 * 6000 * 2000  # bytes
    made: list[int] = []

    def watch(name: str, make: Callable[..., Tensor]) -> None:
        def watched(*args: object, **kwargs: object) -> Tensor:
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


CHILD = """
import re, sys, time
from pathlib import Path
import longnn
from longnn.data import csbm, load

def peak():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s*(\\d+)", status)[1]) / 1024

config = {"epochs": 5, "device": "cpu"}
longnn.train(csbm(num_nodes=60, num_features=8), config)  # all that is imported late
folder, kind = Path(sys.argv[1]), sys.argv[2]
before, start = peak(), time.perf_counter()
edges, nodes = folder / "edges.parquet", folder / "nodes.parquet"
dataset = load(edges, nodes, feature_file=str(folder / f"words.{kind}"))
loaded, seconds = peak() - before, time.perf_counter() - start
longnn.train(dataset, config)
spent = time.perf_counter() - start - seconds
print(f"MEASURED load {loaded:.0f} MiB, {seconds:.1f} s; ", end="")
print(f"train {peak() - before:.0f} MiB, {spent:.1f} s")
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_sixty_thousand_nodes_with_two_thousand_words(kind: str, tmp_path: Path) -> None:
    """Dense, the features alone are 458 MiB; what else a process needs does not count here."""
    write_graph(tmp_path, 60_000, 2_000, 50)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), kind],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    print(done.stdout)
    found = re.search(r"load (\d+) MiB, .* train (\d+) MiB", done.stdout)
    assert found is not None
    dense = 4 * 60_000 * 2_000 / MIB
    assert int(found[1]) < 0.75 * dense
    assert int(found[2]) < 1.5 * dense
