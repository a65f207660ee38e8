"""The benchmark of large graphs: what it times is right, and its record is read as written."""

import json

import numpy as np
import pytest
import torch

from longnn.bench import ScaleRecord, Size, _scale, run_scale, write_scale
from longnn.graphs import GraphOperator
from longnn.store import propagate
from tests.commands import ROOT, fail, succeed_json

CPU = torch.device("cpu")
SMALL = Size(nodes=60, edges=150, columns=3, degree=2)


@pytest.fixture(scope="module")
def record():
    """Memory, which takes a process per contender, has a test of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_scale, "DISK", 1 << 16)
        patch.setattr("os.fsync", lambda file: None)  # a hundred tiny bases: the disk would wait
        patch.setattr(_scale, "_peak", lambda *arguments: 1.0)
        return run_scale(quick=True, threads=1)


@pytest.mark.slow
def test_memory_is_measured_in_a_process_of_its_own(tmp_path):
    _scale.write_random(tmp_path / "graph", SMALL, CPU)
    for key in ("propagate", "sign", "sgc"):
        assert _scale._peak(key, tmp_path / "graph", SMALL, 1) > 0


def test_the_random_graph_is_undirected_without_duplicates(tmp_path):
    graph = _scale.write_random(tmp_path / "graph", SMALL, CPU)
    data = _scale._pyg_data(graph, CPU)
    operator = GraphOperator.from_edge_index(data.edge_index, num_nodes=60, duplicates="error")
    assert operator.num_nodes == 60
    assert 0.8 * 150 < operator.num_edges <= 150
    graph.manifest.verify(graph.folder)


def test_rivals_compute_the_same_first_power(tmp_path):
    """T_1(P) X = P X, which PyG's SIGN has, too."""
    graph = _scale.write_random(tmp_path / "graph", SMALL, CPU)
    powers = _scale.rival("sign", graph, SMALL, CPU)()
    ours = propagate(graph, degree=1, memory=10**9).blocks[0][:, 1]
    np.testing.assert_allclose(powers.x1.numpy(), ours, atol=1e-5)
    second = 2 * powers.x2.numpy() - powers.x.numpy()  # T_2 = 2 P^2 - 1
    ours = propagate(graph, degree=2, memory=10**9).blocks[0][:, 2]
    np.testing.assert_allclose(second, ours, atol=1e-5)


@pytest.mark.slow
def test_a_record_has_all_parts(record):
    assert set(record.seconds) == {"propagate", "gather", "sign", "sgc"}
    assert set(record.ratios) == {"gather", "sign", "sgc"}
    assert all(value is not None for value in record.memory_mib.values())
    assert {sweep.axis for sweep in record.sweeps} == {"nodes", "edges", "columns", "degree"}
    assert set(record.orders) == {"as it is", "by degree", "reverse Cuthill-McKee"}


@pytest.mark.slow
def test_it_is_written_and_read(record, tmp_path):
    file, page, *figures = write_scale(record, tmp_path, name="it")
    assert ScaleRecord.from_dict(json.loads(file.read_text())) == record
    text = page.read_text()
    assert "| PyG SIGN, powers of all degrees, in memory |" in text
    assert "../figures/it.svg" in text
    assert [figure.name for figure in figures] == ["it.svg", "it.png"]


def test_one_size_alone(monkeypatch):
    monkeypatch.setattr(_scale, "DISK", 1 << 16)
    monkeypatch.setattr(_scale, "_peak", lambda *arguments: 1.0)
    found = succeed_json("bench", "--part", "scale", "--size", "60,150,3,2", "--device", "cpu")
    assert found["size"] == str(SMALL)
    assert set(found["seconds"]) == {"propagate", "gather"}


@pytest.mark.parametrize("size", ["1,2", "a,b,c,d", "0,1,1,1"])
def test_a_wrong_size(size):
    assert fail("bench", "--part", "scale", "--size", size).startswith(
        "Expected --size as four whole numbers"
    )


def test_a_wrong_part():
    said = "Expected --part among epochs, ensembles, scale (got 'speed')"
    assert fail("bench", "--part", "speed") == said


def test_the_page_tells_what_the_record_has():
    table = (ROOT / "results" / "bench" / "tables" / "scale-h200.md").read_text()
    (line,) = [line for line in table.splitlines() if line.startswith("| longnn, terms of all")]
    seconds = line.split("|")[2].split()[0]
    page = " ".join((ROOT / "docs" / "benchmarks.md").read_text().split())
    assert f"64 columns take {seconds} s" in page
