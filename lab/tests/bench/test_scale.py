"""The benchmark of large graphs: what it times is right, and each part against a reference."""

from pathlib import Path

import numpy as np
import pytest
import torch

from lab.bench import SCALE_SECTIONS, Size, _scale, read_bench, run_scale, write_bench
from lab.bench._graphs import write_random
from lab.bench._growth import STAGES, measure_stages
from lab.bench._measure import resident, run_module
from lab.tests.commands import fail, succeed_json
from longnn.graphs import GraphOperator
from longnn.store import propagate

CPU = torch.device("cpu")
SMALL = Size(nodes=60, edges=150, columns=3, degree=2)
TINY = Size(nodes=80, edges=300, columns=4, degree=2)


@pytest.fixture
def graph(tmp_path):
    return write_random(tmp_path / "graph", SMALL, CPU)


# The whole


@pytest.mark.slow
def test_a_record_has_all_parts(tmp_path):
    """Memory, which takes processes of its own, has a test of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_scale, "DISK", 1 << 16)
        patch.setattr("os.fsync", lambda file: None)  # a hundred tiny bases: the disk would wait
        patch.setattr(_scale, "peak", lambda *arguments: 1.0)
        record = run_scale(quick=True, threads=1)
    assert list(record["seconds"]) == ["propagate", "products", "gather", "sign", "sgc"]
    assert list(record["ratios"]) == ["products", "gather", "sign", "sgc"]
    grown = {(sweep["axis"], sweep["what"]) for sweep in record["sweeps"]}
    every = {(axis, name) for axis in ("nodes", "edges", "columns", "degree") for name in STAGES}
    assert grown == every - {("degree", "ingest")}
    assert list(record["stages"]) == list(STAGES)
    assert all(stage["seconds"] > 0 and stage["read"] > 0 for stage in record["stages"].values())
    assert record["stage_size"] == "400 nodes, 2,000 edges, 4 columns, degree 2"
    file, page, words, paper, *figures = write_bench(record, tmp_path, name="it")
    assert read_bench(file) == record
    text = page.read_text()
    assert "| PyG SIGN, powers of all degrees, in memory |" in text
    assert "../figures/it.svg" in text
    assert "the largest exponent of growth" in words.read_text()
    assert "ogbn-papers100M, on paper" in paper.read_text()
    assert [figure.name for figure in figures] == ["it.svg", "it.png"]


def test_one_size_alone(monkeypatch):
    monkeypatch.setattr(_scale, "DISK", 1 << 16)
    monkeypatch.setattr(_scale, "peak", lambda *arguments: 1.0)
    found = succeed_json("bench", "--part", "scale", "--size", "60,150,3,2", "--device", "cpu")
    assert found["size"] == str(SMALL)
    assert list(found["seconds"]) == ["propagate", "products", "gather"]
    assert found["sweeps"] == []


@pytest.mark.parametrize("size", ["1,2", "a,b,c,d", "0,1,1,1"])
def test_a_wrong_size(size):
    said = fail("bench", "--part", "scale", "--size", size)
    assert said.startswith("Expected --size as four whole numbers")


def test_a_wrong_part_or_section():
    said = "Expected --part among epochs, depth, scale (got 'speed')"
    assert fail("bench", "--part", "speed") == said
    found = fail("bench", "--part", "scale", "--device", "cpu", "--section", "growth,speed")
    assert found == f"Expected sections among {', '.join(SCALE_SECTIONS)} (got 'speed')"


# Propagation and its rivals


@pytest.mark.slow
def test_memory_is_measured_in_a_process_of_its_own(graph):
    for key in ("propagate", "sign", "sgc"):
        assert _scale.peak(key, graph.folder, SMALL) > 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_the_memory_of_whoever_starts_a_process_does_not_count(tmp_path, monkeypatch):
    """A rusage of the child would have the 400 MB of this process."""
    (tmp_path / "told.py").write_text("from lab.bench._measure import *; print(resident('VmHWM'))")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    large = np.ones(50_000_000)
    child = float(run_module("told"))
    assert resident("VmHWM") > large.nbytes / 2**20
    assert child < resident("VmRSS") - 300


def test_a_process_that_fails_is_an_error():
    with pytest.raises(RuntimeError, match=r"of nothing to succeed \(got .*No module named"):
        run_module("nothing")


def test_the_random_graph_is_undirected_without_duplicates(graph):
    edges = _scale.pyg_data(graph, CPU).edge_index
    operator = GraphOperator.from_edge_index(edges, num_nodes=60, duplicates="error")
    assert operator.num_nodes == 60
    assert 0.8 * 150 < operator.num_edges <= 150
    graph.manifest.verify(graph.folder)


def test_rivals_compute_the_same_powers(graph):
    """T_1(P) X = P X, which PyG's SIGN has, too, and T_2 = 2 P^2 - 1."""
    powers = _scale.rival("sign", graph, SMALL, CPU)()
    terms = propagate(graph, degree=2, memory=10**9).blocks[0]
    np.testing.assert_allclose(powers.x1.numpy(), terms[:, 1], atol=1e-5)
    second = 2 * powers.x2.numpy() - powers.x.numpy()
    np.testing.assert_allclose(second, terms[:, 2], atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_products_are_those_of_propagation(graph, monkeypatch, threads):
    """All terms in blocks of two columns, as they would be written."""
    found, plain = [], _scale.each_term

    def kept(graph, load, put, *, columns, **options):
        terms = np.empty((60, 3, columns), dtype=np.float32)

        def keep(degree, first, term):
            terms[first : first + len(term), degree] = term

        plain(graph, load, keep, columns=columns, **options)
        found.append(terms)

    monkeypatch.setattr(_scale, "BLOCK", 2)
    monkeypatch.setattr(_scale, "each_term", kept)
    _scale.products(graph, SMALL, threads)()
    written = propagate(graph, degree=2, memory=10**9).blocks[0]
    np.testing.assert_array_equal(np.concatenate(found, axis=2), written)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_gather_copies_the_row_of_every_entry(graph, monkeypatch, threads):
    copied, plain = [], torch.index_select

    def select(x, dim, index, *, out):
        plain(x, dim, index, out=out)
        assert torch.equal(out, x[index.long()])
        copied.extend(index.tolist())

    monkeypatch.setattr(_scale, "ROWS", 7)
    monkeypatch.setattr(torch, "index_select", select)
    before = torch.get_num_threads()
    _scale.gather(graph, SMALL, CPU, threads)()
    assert sorted(copied) == sorted([*graph.neighbours.tolist()] * SMALL.degree)
    assert torch.get_num_threads() == before


# Stages


def test_stages_count_the_bytes_of_their_files(tmp_path, monkeypatch):
    monkeypatch.setattr("lab.bench._growth.REPEATS", 1)
    stages = measure_stages(tmp_path / "stages", TINY, CPU)
    assert list(stages) == list(STAGES)
    graph = tmp_path / "stages" / "graph"
    numbers = 80 * 3 * 4  # rows, terms, columns
    (basis,) = graph.glob("basis-*")
    blocks = sum(path.stat().st_size for path in basis.glob("block-*.npy"))
    assert 2 * numbers <= blocks <= stages["propagate"]["written"]
    entries = len(np.load(graph / "neighbours.npy"))
    gathered = 4 * 4 * 2 * (entries + 2 * 80)  # bytes, columns, degree
    assert stages["propagate"]["moved"] == gathered + stages["propagate"]["written"]
    assert (stages["predict"]["read"], stages["predict"]["moved"]) == (2 * numbers, 10 * numbers)
    assert stages["train"]["read"] == pytest.approx(0.8 * 2 * numbers, rel=0.05)
    predicted = tmp_path / "stages" / "predicted.parquet"
    assert stages["predict"]["written"] == predicted.stat().st_size
    assert all(stage["seconds"] > 0 for stage in stages.values())
