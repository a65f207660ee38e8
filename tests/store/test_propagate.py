"""Terms on disk are those of the operator, whatever the memory, the threads and the type."""

import dataclasses
from functools import partial

import numpy as np
import pytest
import scipy.sparse
import torch

from longnn.store import _blocks, propagate
from longnn.store._adjacency import Adjacency
from longnn.store._arrays import StoreError
from longnn.store._propagate import serving_basis
from tests.store.graphs import (
    all_terms,
    copy_of,
    exact_terms,
    random_graph,
    terms_of,
    verify,
    write_matrix,
)

MEMORY = 4 * 10**9


@pytest.fixture
def graph(tmp_path):
    return write_matrix(tmp_path / "graph", *random_graph(), np.arange(90) % 3 - 1)


@pytest.mark.parametrize("columns", [2, 4])
@pytest.mark.parametrize("self_loops", ["keep", "add", "remove"])
def test_terms_are_those_of_the_eigenvectors(graph, monkeypatch, self_loops, columns):
    """Of the features, and of a constant, which is alone in a block or not."""
    cut(monkeypatch, columns=columns, staged=True)
    adjacency, features = random_graph()
    basis = propagate(graph, degree=8, self_loops=self_loops, memory=MEMORY)
    every = np.concatenate([features, np.ones((90, 1))], axis=1)
    exact, rows = exact_terms(adjacency, every, 8, self_loops), np.array([4, 2, 3, 50])
    for degree in (8, 5):
        values, ones = basis.read(rows, degree)
        wanted = exact[: degree + 1, rows]
        assert np.abs(values - wanted[..., :-1]).max() < 1e-5 * np.abs(exact).max()
        assert np.abs(ones - wanted[..., -1]).max() < 1e-5
    verify(basis)


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_the_smallest_graphs(tmp_path, nodes, degree):
    """One column; one node without a neighbour, or a pair: T_j alternates."""
    adjacency = scipy.sparse.csr_matrix(np.ones((nodes, nodes)) - np.eye(nodes))
    features = np.arange(1.0, nodes + 1)[:, None]
    graph = write_matrix(tmp_path / "graph", adjacency, features)
    basis = propagate(graph, degree=degree, memory=MEMORY)
    assert basis.blocks[0].shape == (nodes, degree + 1, 2)
    np.testing.assert_allclose(terms_of(basis), exact_terms(adjacency, features, degree), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_types_on_disk_and_the_error_that_is_told(graph, dtype):
    exact = all_terms(propagate(graph, degree=4, memory=MEMORY)).astype(np.float64)
    basis = propagate(graph, degree=4, dtype=dtype, memory=MEMORY)
    error = np.linalg.norm(all_terms(basis) - exact) / np.linalg.norm(exact)
    assert basis.about.rounding == pytest.approx(error, rel=0.01)
    limit = {"float32": 0, "float16": 2**-11, "bfloat16": 2**-8}[dtype]
    assert error <= limit
    assert basis.blocks[0].dtype == {"float32": "f4", "float16": "f2", "bfloat16": "u2"}[dtype]


def test_only_labelled_rows_are_kept(graph):
    whole = terms_of(propagate(graph, degree=3, memory=MEMORY))
    basis = propagate(graph, degree=3, rows="labelled", memory=MEMORY)
    labelled = np.flatnonzero(graph.answers["y"] >= 0)
    assert basis.rows.tolist() == labelled.tolist()
    assert 0 < basis.num_rows < 90
    np.testing.assert_array_equal(terms_of(basis), whole[:, labelled])


def cut(monkeypatch, *, columns, staged, resident=True):
    """Blocks of so many columns, whatever the memory."""
    made = _blocks.make_plan

    def plan(**size):
        full = [columns] * (size["columns"] // columns)
        rest = [size["columns"] % columns] if size["columns"] % columns else []
        whole = made(**size)
        return dataclasses.replace(whole, columns=full + rest, staged=staged, resident=resident)

    monkeypatch.setattr("longnn.store._propagate.make_plan", plan)


@pytest.mark.parametrize("resident", [True, False])
@pytest.mark.parametrize("staged", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_memory_and_threads_do_not_change_a_bit(
    graph, tmp_path, monkeypatch, threads, staged, resident
):
    """Blocks in memory and in a scratch file, small stretches, the graph read again each time."""
    whole = terms_of(propagate(graph, degree=6, dtype="float16", memory=MEMORY))
    cut(monkeypatch, columns=2, staged=staged, resident=resident)
    monkeypatch.setitem(Adjacency.stretches.__globals__["ENTRIES"], "cpu", 40)
    monkeypatch.setattr(_blocks, "PIECE", 1000)
    options = {"degree": 6, "dtype": "float16", "memory": MEMORY, "threads": threads}
    basis = propagate(copy_of(graph, tmp_path / "other"), **options)
    assert basis.about.columns == (2, 2, 2)
    np.testing.assert_array_equal(terms_of(basis), whole)
    assert not list(basis.folder.glob(".*.tmp"))


def test_torch_keeps_its_threads(graph):
    before = torch.get_num_threads()
    propagate(graph, degree=1, memory=MEMORY, threads=3)
    assert torch.get_num_threads() == before


def test_offsets_of_a_stretch_need_32_bits_only(graph, monkeypatch):
    monkeypatch.setitem(Adjacency.stretches.__globals__["ENTRIES"], "cpu", 25)
    adjacency = Adjacency(graph)
    spans = adjacency.stretches(90)
    assert [first for first, _ in spans[1:]] == [last for _, last in spans[:-1]]
    assert (spans[0][0], spans[-1][1]) == (0, 90)
    for span in spans:
        some = adjacency.read(*span)
        assert some.offsets.dtype == some.indices.dtype == torch.int32
        assert len(some.indices) <= 25 or span[1] - span[0] == 1


def test_what_was_computed_is_opened(graph):
    assert serving_basis(graph, degree=2, self_loops="keep") is None
    made = propagate(graph, degree=2, memory=MEMORY)
    steps = []
    found = propagate(graph, degree=2, memory=MEMORY, on_progress=lambda *s: steps.append(s))
    assert found.folder == made.folder == serving_basis(graph, degree=2, self_loops="keep").folder
    assert not steps


def test_progress_goes_to_its_end(graph, monkeypatch):
    cut(monkeypatch, columns=2, staged=True)
    told = []
    propagate(graph, degree=3, memory=MEMORY, on_progress=lambda *state: told.append(state))
    assert told == sorted(told)
    assert told[-1] == ("3 of 3 blocks", 1)


class TestPlan:
    plan = partial(
        _blocks.make_plan,
        nodes=10**6,
        entries=2 * 10**7,
        columns=100,
        staged_bytes=44 * 10**6,
    )

    @pytest.mark.parametrize("memory", [0.1e9, 0.3e9, 0.8e9, 1.5e9, 4e9, 20e9])
    def test_arrays_fit_the_memory(self, memory):
        plan = self.plan(memory=int(memory))
        assert sum(plan.columns) == 100
        assert plan.bytes <= memory
        assert max(plan.columns) <= _blocks.WIDEST

    def test_more_memory_makes_wider_blocks(self):
        """Without a scratch file, as on a GPU."""
        plans = [self.plan(memory=int(m), scratch=False) for m in (0.6e9, 0.8e9, 1.5e9, 8e9)]
        widest = [max(plan.columns) for plan in plans]
        assert widest == [3, 5, 16, 64]

    def test_little_memory_leaves_graph_and_terms_on_disk(self):
        little, much = (self.plan(memory=int(m)) for m in (0.3e9, 20e9))
        assert (little.resident, little.staged) == (False, False)
        assert (much.resident, much.staged) == (True, True)

    def test_too_little_is_an_error(self):
        with pytest.raises(MemoryError, match=r"one column of 1,000,000 nodes.*--memory"):
            self.plan(memory=10**7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": -1}, "`degree` of 0 or more"),
        ({"dtype": "int8"}, "`dtype` among float32, float16, bfloat16"),
        ({"rows": "some"}, "`rows` to be 'all' or 'labelled'"),
        ({"self_loops": "twice"}, "`self_loops` to be"),
    ],
)
def test_wrong_options(graph, options, message):
    with pytest.raises(ValueError, match=message):
        propagate(graph, **{"memory": MEMORY, **options})


def test_more_memory_than_there_is(graph):
    with pytest.raises(MemoryError, match="`memory` within what is free"):
        propagate(graph, memory=10**18)


def test_no_labels_to_keep(tmp_path):
    labels = np.full(90, -1)
    graph = write_matrix(tmp_path / "graph", *random_graph(), labels)
    with pytest.raises(StoreError, match=r"labelled nodes .* \(got none\)"):
        propagate(graph, rows="labelled", memory=MEMORY)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("resident", [True, False])
def test_a_gpu_computes_the_same(graph, tmp_path, monkeypatch, resident):
    expected = terms_of(propagate(graph, degree=6, memory=MEMORY))
    cut(monkeypatch, columns=2, staged=True, resident=resident)
    monkeypatch.setitem(Adjacency.stretches.__globals__["ENTRIES"], "cuda", 40)
    basis = propagate(copy_of(graph, tmp_path / "gpu"), degree=6, device="cuda")
    np.testing.assert_allclose(terms_of(basis), expected, atol=1e-5)
