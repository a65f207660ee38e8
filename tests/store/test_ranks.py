"""Ranks that share terms make the same files as one process, also when one of them dies."""

import numpy as np
import pytest

from longnn._base.files import write_text
from longnn.store import propagate
from tests.ranks import forked, torchrun
from tests.store.graphs import copy_of, random_graph, terms_of, verify, write_matrix
from tests.store.test_propagate import MEMORY

OPTIONS = {"degree": 4, "dtype": "float16", "memory": MEMORY}
#: What each rank of torchrun runs: blocks of one column, and a death at the first attempt.
PROGRAM = f"""
import os, signal, sys
from longnn.store import _blocks, propagate
(folder,) = sys.argv[1:]
_blocks.WIDEST = 1

def tell(done, share):
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if os.environ["RANK"] == "1" and first and done.startswith("1 of"):
        os.kill(os.getpid(), signal.SIGKILL)

propagate(folder, **{OPTIONS}, on_progress=tell)
"""


@pytest.fixture
def graph(tmp_path, monkeypatch):
    """Of 91 nodes, which two ranks cannot share alike; blocks of one column."""
    monkeypatch.setattr("longnn.store._blocks.WIDEST", 1)
    return write_matrix(tmp_path / "graph", *random_graph(nodes=91))


def same_files(graph):
    alone = propagate(copy_of(graph, graph.folder.with_name("alone")), **OPTIONS)
    basis = propagate(graph, **OPTIONS)
    assert basis.about.columns == alone.about.columns == (1,) * 6
    assert basis.manifest == alone.manifest
    verify(basis)
    np.testing.assert_array_equal(terms_of(basis), terms_of(alone))


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_make_the_files_of_one_process(graph, tmp_path, ranks):
    forked(ranks, lambda: propagate(graph, **OPTIONS), tmp_path)
    same_files(graph)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_rank_that_dies_is_started_again(graph, tmp_path, ranks):
    write_text(tmp_path / "program.py", PROGRAM)
    done = torchrun(ranks, tmp_path / "program.py", graph.folder, restarts=1)
    assert done.returncode == 0, done.stderr
    assert "SIGKILL" in done.stderr or "exitcode: -9" in done.stderr
    same_files(graph)
