"""Training on rows takes the memory of batches, not that of the graph."""

import re
import subprocess
import sys

import pytest
import torch

from longnn.data import from_data, make_split
from longnn.store import propagate
from longnn.store._basis import BasisStore
from longnn.store._disk import load_stored
from longnn.store._rows import WINDOW
from longnn.training import Job, Population
from tests.store.graphs import small, write_graph
from tests.training.test_rows import config

#: Trains one epoch on the labelled rows of a folder and prints its peak of memory.
CHILD = """
import re, sys
import torch
from longnn.config import Config
from longnn.data import make_split
from longnn.store._disk import load_stored
from longnn.training import fit
torch.set_num_threads(1)
rows = load_stored(sys.argv[1], rows=True)
options = {"placement": "features", "degree": 5, "epochs": 2, "scale": "none"}
fit(rows, [Config.from_dict(options)], [make_split(rows, None, 0)])
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def write_large(folder, nodes, *, degree=5, features=32):
    """A ring and its terms, whose numbers do not matter here."""
    each = torch.arange(nodes)
    ends = torch.stack([each, (each + 1) % nodes])
    data = {"x": torch.randn(nodes, features), "edge_index": ends, "y": each % 2}
    return propagate(write_graph(folder, from_data(data)), degree=degree)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_peak_memory_does_not_grow_with_the_terms(tmp_path):
    peaks, sizes = [], []
    for nodes in (150_000, 600_000):  # several windows each
        folder = tmp_path / str(nodes)
        basis = write_large(folder, nodes)
        command = [sys.executable, "-c", CHILD, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(re.search(r"\d+", done.stdout)[0]) * 1024)
        sizes.append(sum(file.bytes for file in basis.manifest.files.values()))
    # Labels, masks and predictions: some dozens of bytes per labelled node; the terms are 768.
    assert peaks[1] - peaks[0] < 0.5 * (sizes[1] - sizes[0])


def test_members_on_rows_are_limited_by_the_memory_given(tmp_path, monkeypatch):
    write_graph(tmp_path / "g", small(300))
    rows = load_stored(tmp_path / "g", rows=True)
    split, configs = make_split(rows, None, 0), [config(seed=i, epochs=2) for i in range(5)]
    asked, sizes = [], []

    def fitting(make, count, device, memory):
        asked.append((count, memory))
        population = make(2)
        population.rehearse()  # a step, no epoch
        assert population.stream[:, 1].tolist() == [1, 1]
        return 2

    run = Population.run
    monkeypatch.setattr("longnn.training._group.count_fitting", fitting)
    monkeypatch.setattr(
        Population, "run", lambda self, *a, **k: sizes.append(self.count) or run(self, *a, **k)
    )
    found = Job(rows, configs, [split] * 5, memory=123).run()
    assert (asked, sizes) == ([(5, 123)], [2, 2, 1])
    assert len(found) == 5


def test_no_read_is_larger_than_a_window(tmp_path, monkeypatch):
    write_graph(tmp_path / "g", small(400))
    rows = load_stored(tmp_path / "g", rows=True)
    monkeypatch.setattr("longnn.store._rows.WINDOW", 4 * 5 * 6 * 40)  # forty rows
    assert WINDOW > 4 * 5 * 6 * 400
    job = Job(rows, [config(epochs=1, batch_rows=8)], [make_split(rows, None, 0)])
    counts, read = [], BasisStore.read

    def counted(self, which, degree):
        counts.append(len(which))
        return read(self, which, degree)

    monkeypatch.setattr(BasisStore, "read", counted)
    population = job._groups[0]._make(0, 1)
    losses = population.train_epoch()
    assert bool(torch.isfinite(losses).all())
    assert max(counts) == 40
    assert sum(counts) == int(make_split(rows, None, 0).train.sum())
