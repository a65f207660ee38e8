"""What is read from a stored graph and its terms is what is computed in memory."""

import dataclasses

import numpy as np
import pytest
import torch

from longnn.data import DataError, from_data, make_split
from longnn.data._scaling import Scaling
from longnn.graphs import GraphOperator
from longnn.store import propagate
from longnn.store._adjacency import StoredOperator
from longnn.store._disk import OnDisk, bytes_needed, is_prepared, load_stored
from longnn.store._propagate import ensure_basis, serving_basis
from longnn.training._process import product_of
from tests.store.graphs import small, write_graph


@pytest.fixture(scope="module")
def dataset():
    made = dataclasses.replace(small(120, 5, unlabelled=20), ready=True)
    loops = torch.tensor([[4, 9], [4, 9]])
    index = torch.cat([made.data.edge_index, loops], 1)
    order = torch.argsort(index[0] * made.num_nodes + index[1])
    made.data.edge_index = index[:, order]
    return made


@pytest.fixture
def graph(dataset, tmp_path):
    return write_graph(tmp_path / "graph", dataset)


def operator_of(dataset, loops):
    index = dataset.data.edge_index
    return GraphOperator.from_edge_index(
        index, num_nodes=dataset.num_nodes, self_loops=loops, dtype=torch.float64
    )


@pytest.mark.parametrize("loops", ["keep", "add", "remove"])
def test_products_are_those_of_the_operator(dataset, graph, monkeypatch, loops):
    signal = torch.randn(dataset.num_nodes, 3, dtype=torch.float64)
    monkeypatch.setitem(StoredOperator.stretches.__globals__["ENTRIES"], "cpu", 40)
    stored = StoredOperator(graph, loops)  # in many stretches
    P = operator_of(dataset, loops)
    assert torch.allclose(stored @ signal, P @ signal, atol=1e-13)
    ones = torch.ones(dataset.num_nodes, 1)
    assert torch.allclose(stored @ ones, P @ ones.double())


def test_known_answers_pass_along_arcs_as_in_memory(tmp_path):
    """They passed along half of the double cover, from the rows of sources alone."""
    ends, weight = torch.randint(40, (2, 200)), torch.rand(200)
    data = {"x": torch.rand(40, 2), "edge_index": ends, "edge_weight": weight}
    dataset = from_data(data, directed=True)
    on_disk = OnDisk(write_graph(tmp_path / "g", dataset))
    signal = torch.rand(40, 3)
    memory, disk = (product_of(b.operator())(signal) for b in (dataset.backing, on_disk))
    assert torch.allclose(memory, disk, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_the_bits_are_read_as_numbers(graph, dtype):
    rows = np.array([4, 9, 1])
    exact = propagate(graph, degree=2).read(rows, 2)
    for found, wanted in zip(
        propagate(graph, degree=2, dtype=dtype).read(rows, 2), exact, strict=True
    ):
        assert found.dtype == np.float32
        assert np.allclose(found, wanted, rtol=1e-2, atol=1e-3)


def test_terms_are_found_again(graph, dataset):
    nodes = np.arange(50)
    made = ensure_basis(graph, nodes, degree=3, self_loops="keep")
    again = serving_basis(graph, degree=2, self_loops="keep", nodes=nodes)
    assert again is not None
    assert again.folder == made.folder
    assert serving_basis(graph, degree=4, self_loops="keep") is None
    assert serving_basis(graph, degree=3, self_loops="add") is None


def test_terms_of_some_rows_serve_those_rows_alone(graph):
    basis = propagate(graph, degree=1, rows="labelled")  # the first hundred
    assert serving_basis(graph, degree=1, self_loops="keep", nodes=np.array([5, 8])) is not None
    assert serving_basis(graph, degree=1, self_loops="keep", nodes=np.array([5, 101])) is None
    assert serving_basis(graph, degree=1, self_loops="keep") is None
    assert basis.places(np.array([5, 8])).tolist() == [5, 8]


def test_labelled_rows_are_split_as_in_memory(graph, dataset):
    assert is_prepared(graph.folder)
    whole, rows = (load_stored(graph.folder, rows=r) for r in (False, True))
    assert rows.backing.by_rows
    assert rows.num_nodes == whole.num_nodes == 120
    assert rows.asked.num_nodes == 100
    assert rows.num_features == 5
    assert rows.outputs == whole.outputs == 2
    assert rows.asked.ids[98:] == ["n98", "n99"]
    for seed in (0, 3):
        one, other = make_split(whole, None, seed), make_split(rows, None, seed)
        assert torch.equal(one.train, other.train)
        assert torch.equal(one.test, other.test)
    assert rows.fingerprint().startswith("disk:")
    assert rows.fingerprint() == load_stored(graph.folder, rows=True).fingerprint()


def test_memory_decides(graph):
    need = bytes_needed(nodes=120, features=5, entries=graph.num_entries)
    assert load_stored(graph.folder, memory=need - 1).backing.by_rows
    assert not load_stored(graph.folder, memory=need).backing.by_rows


@pytest.mark.parametrize("kind", ["auto", "standard", "columns", "none"])
def test_scaling_column_by_column(graph, dataset, kind):
    x = dataset.data.x.to_dense()
    one, other = OnDisk(graph).scaling(kind, ready=False), Scaling.fit(kind, x)
    assert one.kind == other.kind
    assert torch.allclose(one.apply(x), other.apply(x), atol=1e-6)


def test_scaling_of_rows_says_what_to_do(graph):
    with pytest.raises(DataError, match="use scale='columns'"):
        OnDisk(graph).scaling("row", ready=False)
