"""Ranks that torchrun starts make the same files as one process, also when one of them dies."""

import subprocess
import sys

import numpy as np
import pytest

from longnn._base.files import write_text
from longnn.store import propagate
from longnn.store._basis import BasisStore
from tests.commands import ROOT
from tests.store.graphs import random_graph, terms_of, write_graph
from tests.store.test_propagate import MEMORY

#: What each rank runs: blocks of one column, and perhaps a death at the first attempt.
PROGRAM = """
import os, signal, sys
from longnn.store import _plan, propagate
folder, output, row_ranks, dies = sys.argv[1:]
_plan.WIDEST = 1

def tell(progress):
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if dies == os.environ["RANK"] and first and progress.done == 1:
        os.kill(os.getpid(), signal.SIGKILL)

propagate(folder, degree=4, dtype="float16", memory=4 * 10**9, output=output,
          row_ranks=int(row_ranks), on_progress=tell)
"""


def torchrun(tmp_path, ranks, graph, *, row_ranks=1, dies="nobody"):
    """The basis that so many ranks make together, and what they printed."""
    write_text(tmp_path / "program.py", PROGRAM)
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={ranks}", "--max-restarts=1", str(tmp_path / "program.py")]
    command += [str(graph.folder), str(tmp_path / "basis"), str(row_ranks), dies]
    # Else workers that are started again read addresses of those before them from the store.
    environment = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}
    environment |= {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return BasisStore.open(tmp_path / "basis"), done.stderr


@pytest.fixture
def graph(tmp_path):
    return write_graph(tmp_path / "graph", *random_graph(nodes=91))


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("ranks", "row_ranks", "dies"),
    [
        (2, 1, "nobody"),
        slow(4, 1, "nobody"),
        slow(2, 2, "nobody"),  # of 91 rows: the second rank has one fewer
        slow(4, 2, "nobody"),
        slow(2, 1, "1"),
        slow(4, 1, "1"),
        slow(2, 2, "1"),
    ],
)
def test_ranks_make_the_files_of_one_process(graph, tmp_path, monkeypatch, ranks, row_ranks, dies):
    """Also where one of them dies, and is started again."""
    basis, printed = torchrun(tmp_path, ranks, graph, row_ranks=row_ranks, dies=dies)
    assert ("SIGKILL" in printed or "exitcode: -9" in printed) == (dies != "nobody")
    monkeypatch.setattr("longnn.store._plan.WIDEST", 1)
    alone = propagate(graph, degree=4, dtype="float16", memory=MEMORY, output=tmp_path / "alone")
    assert basis.columns == alone.columns == [1] * 5
    assert basis.manifest == alone.manifest
    basis.manifest.verify(basis.folder)
    np.testing.assert_array_equal(terms_of(basis), terms_of(alone))
