"""The benchmark of large graphs: what it times is right, and its record is read as written."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from lab.bench import SCALE_SECTIONS, ScaleRecord, Size, _rivals, _scale, run_scale, write_scale
from lab.bench._record import Spread
from lab.bench._scalegraph import write_random
from lab.bench._scalerecord import RanksResult
from lab.tests.commands import fail, succeed_json
from longnn.graphs import GraphOperator
from longnn.store import propagate

CPU = torch.device("cpu")
SMALL = Size(nodes=60, edges=150, columns=3, degree=2)


@pytest.fixture(scope="module")
def record():
    """Memory and ranks, which take processes of their own, have tests of their own."""
    one = Spread(median=1.0, low=1.0, high=1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_scale, "DISK", 1 << 16)
        patch.setattr("os.fsync", lambda file: None)  # a hundred tiny bases: the disk would wait
        patch.setattr(_scale, "peak", lambda *arguments: 1.0)
        ranks = RanksResult(one=one, two=one, ratio=one)
        patch.setattr(_scale, "measure_ranks", lambda *arguments: ranks)
        return run_scale(quick=True, threads=1)


@pytest.mark.slow
def test_memory_is_measured_in_a_process_of_its_own(tmp_path):
    write_random(tmp_path / "graph", SMALL, CPU)
    for key in ("propagate", "sign", "sgc"):
        assert _rivals.peak(key, tmp_path / "graph", SMALL, 1) > 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_the_memory_of_whoever_starts_a_process_does_not_count(tmp_path):
    """A rusage of the child would have the 400 MB of this process."""
    large = np.ones(50_000_000)
    program = "from lab.bench._rivals import resident; print(resident('VmHWM'))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=_rivals.child_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    own = _rivals.resident("VmHWM")
    assert own > large.nbytes / 2**20
    assert float(done.stdout) < _rivals.resident("VmRSS") - 300


def test_the_random_graph_is_undirected_without_duplicates(tmp_path):
    graph = write_random(tmp_path / "graph", SMALL, CPU)
    data = _rivals.pyg_data(graph, CPU)
    operator = GraphOperator.from_edge_index(data.edge_index, num_nodes=60, duplicates="error")
    assert operator.num_nodes == 60
    assert 0.8 * 150 < operator.num_edges <= 150
    graph.manifest.verify(graph.folder)


def test_rivals_compute_the_same_first_power(tmp_path):
    """T_1(P) X = P X, which PyG's SIGN has, too."""
    graph = write_random(tmp_path / "graph", SMALL, CPU)
    powers = _rivals.rival("sign", graph, SMALL, CPU)()
    ours = propagate(graph, degree=1, memory=10**9).blocks[0][:, 1]
    np.testing.assert_allclose(powers.x1.numpy(), ours, atol=1e-5)
    second = 2 * powers.x2.numpy() - powers.x.numpy()  # T_2 = 2 P^2 - 1
    ours = propagate(graph, degree=2, memory=10**9).blocks[0][:, 2]
    np.testing.assert_allclose(second, ours, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_products_are_those_of_propagation(tmp_path, monkeypatch, threads):
    """All terms in blocks of two columns, as they would be written."""
    graph = write_random(tmp_path / "graph", SMALL, CPU)
    found, plain = [], _rivals.each_term

    def kept(graph, load, put, *, columns, **options):
        terms = np.empty((60, 3, columns), dtype=np.float32)

        def keep(degree, first, term):
            terms[first : first + len(term), degree] = term

        plain(graph, load, keep, columns=columns, **options)
        found.append(terms)

    monkeypatch.setattr(_rivals, "BLOCK", 2)
    monkeypatch.setattr(_rivals, "each_term", kept)
    _rivals.products(graph, SMALL, threads)()
    written = propagate(graph, degree=2, memory=10**9).blocks[0]
    np.testing.assert_array_equal(np.concatenate(found, axis=2), written)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_gather_copies_the_row_of_every_entry(tmp_path, monkeypatch, threads):
    graph = write_random(tmp_path / "graph", SMALL, CPU)
    copied, plain = [], torch.index_select

    def select(x, dim, index, *, out):
        plain(x, dim, index, out=out)
        assert torch.equal(out, x[index.long()])
        copied.extend(index.tolist())

    monkeypatch.setattr(_rivals, "ROWS", 7)
    monkeypatch.setattr(torch, "index_select", select)
    before = torch.get_num_threads()
    _rivals.gather(graph, SMALL, CPU, threads)()
    assert sorted(copied) == sorted([*graph.neighbours.tolist()] * SMALL.degree)
    assert torch.get_num_threads() == before


@pytest.mark.slow
def test_a_record_has_all_parts(record):
    assert set(record.seconds) == {"propagate", "products", "gather", "sign", "sgc"}
    assert set(record.ratios) == {"products", "gather", "sign", "sgc"}
    assert all(value is not None for value in record.memory_mib.values())
    grown = {(sweep.axis, sweep.what) for sweep in record.sweeps}
    stages = ("ingest", "propagate", "train", "predict")
    every = {(axis, name) for axis in ("nodes", "edges", "columns", "degree") for name in stages}
    assert grown == every - {("degree", "ingest")}
    assert tuple(record.stages) == stages
    assert all(stage.seconds > 0 and stage.read > 0 for stage in record.stages.values())
    assert len(record.orders) == 2
    assert len({one.graph for one in record.contests}) == 3
    assert record.nodes == 400


@pytest.mark.slow
def test_it_is_written_and_read(record, tmp_path):
    file, page, words, paper, *figures = write_scale(record, tmp_path, name="it")
    assert ScaleRecord.from_dict(json.loads(file.read_text())) == record
    text = page.read_text()
    assert "| PyG SIGN, powers of all degrees, in memory |" in text
    assert "../figures/it.svg" in text
    assert "times as fast as one rank on one core" in words.read_text()
    assert "ogbn-papers100M, on paper" in paper.read_text()
    assert [figure.name for figure in figures] == ["it.svg", "it.png"]


def test_one_size_alone(monkeypatch):
    monkeypatch.setattr(_scale, "DISK", 1 << 16)
    monkeypatch.setattr(_scale, "peak", lambda *arguments: 1.0)
    found = succeed_json("bench", "--part", "scale", "--size", "60,150,3,2", "--device", "cpu")
    assert found["size"] == str(SMALL)
    assert set(found["seconds"]) == {"propagate", "products", "gather"}
    assert found["sweeps"] == []


@pytest.mark.parametrize("size", ["1,2", "a,b,c,d", "0,1,1,1"])
def test_a_wrong_size(size):
    assert fail("bench", "--part", "scale", "--size", size).startswith(
        "Expected --size as four whole numbers"
    )


def test_a_wrong_part():
    said = "Expected --part among epochs, depth, ensembles, scale (got 'speed')"
    assert fail("bench", "--part", "speed") == said


def test_a_wrong_section():
    found = fail("bench", "--part", "scale", "--device", "cpu", "--section", "growth,speed")
    assert found == f"Expected sections among {', '.join(SCALE_SECTIONS)} (got 'speed')"


def test_bench_takes_sections_and_contenders(monkeypatch):
    asked = []

    def run_bench(datasets, **options):
        asked.append((datasets, options))
        raise ValueError("enough")

    monkeypatch.setattr("lab.bench.run_bench", run_bench)
    fail("bench", "--quick")
    fail("bench", "--section", "memory", "--section", "scaling", "--contender", "single",
         "--commit", "a")  # fmt: skip
    fail("bench", "--contenders", "single, gcn", "--datasets", "cora,texas")
    keys = ("contenders", "sections", "commit")
    assert [(d, *(options[k] for k in keys)) for d, options in asked] == [
        (None, None, None, None),
        (None, ["single"], ["memory", "scaling"], "a"),
        (["cora", "texas"], ["single", "gcn"], None, None),
    ]
