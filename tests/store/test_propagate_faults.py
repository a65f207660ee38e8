"""What can go wrong while terms are computed: a clear line, and nothing lost."""

import errno
import json
import os
import shutil
import signal

import numpy as np
import pytest

from longnn.store import _propagate, propagate
from longnn.store._arrays import StoreError
from longnn.store._basis import BasisStore, block_name
from longnn.store._graph import GraphStore
from tests.commands import fail, succeed, succeed_json
from tests.kills import finish, forked
from tests.store.graphs import copy_of, random_graph, terms_of, verify, write_matrix
from tests.store.test_propagate import MEMORY, cut

OPTIONS = {"degree": 3, "memory": MEMORY}


@pytest.fixture
def graph(tmp_path, monkeypatch):
    """Five columns and the constant in three blocks."""
    cut(monkeypatch, columns=2, staged=True)
    return write_matrix(tmp_path / "graph", *random_graph())


def computed(monkeypatch):
    """The blocks that are computed from here on."""
    indices, plain = [], _propagate._Job._block

    def block(self, index, *rest):
        indices.append(index)
        return plain(self, index, *rest)

    monkeypatch.setattr(_propagate._Job, "_block", block)
    return indices


def stop_after(blocks, how):
    """A listener that ends the process, or the work, when so many blocks are done."""

    def tell(done, share):
        if done.startswith(f"{blocks} of"):
            how()

    return tell


def test_a_kill_loses_one_block_at_most(graph, tmp_path, monkeypatch):
    expected = terms_of(propagate(copy_of(graph, tmp_path / "whole"), **OPTIONS))
    kill = stop_after(2, lambda: os.kill(os.getpid(), signal.SIGKILL))
    code = finish(forked(lambda: propagate(graph, **OPTIONS, on_progress=kill)))
    assert code == -signal.SIGKILL
    again = computed(monkeypatch)
    basis = propagate(graph, **OPTIONS)
    assert again == [2]
    np.testing.assert_array_equal(terms_of(basis), expected)
    verify(basis)
    assert not list(basis.folder.glob(".*.part"))


@pytest.mark.parametrize("damage", ["truncated", "changed", "missing", "no record", "odd record"])
def test_a_damaged_block_is_computed_again(graph, monkeypatch, damage):
    basis = propagate(graph, **OPTIONS)
    expected = terms_of(basis)
    path, record = basis.folder / block_name(1), basis.folder / "block-0001.json"
    content = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(content[:-1])
    elif damage == "changed":  # as by a power cut, before the manifest was written
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        (basis.folder / "manifest.json").unlink()
    elif damage == "missing":
        path.unlink()
    else:
        (basis.folder / "manifest.json").unlink()
        record.unlink() if damage == "no record" else record.write_text("[]")
    again = computed(monkeypatch)
    found = propagate(graph, **OPTIONS)
    assert again == [1]
    np.testing.assert_array_equal(terms_of(found), expected)


def test_a_graph_that_changed_has_its_terms_computed_anew(graph):
    """The same folder, prepared again."""
    first = propagate(graph, **OPTIONS)
    adjacency, features = random_graph(seed=1)
    second = propagate(write_matrix(graph.folder, adjacency, features), **OPTIONS)
    assert first.folder != second.folder
    assert np.abs(terms_of(second)[0] - features).max() < 1e-6


def test_what_an_interrupted_work_left(graph, tmp_path, monkeypatch):
    """Its blocks stay where wider ones fit; narrower ones begin anew."""

    def interrupt():
        raise KeyboardInterrupt

    for columns, blocks, expected in ((6, [1, 2], (2,) * 3), (1, [*range(6)], (1,) * 6)):
        cut(monkeypatch, columns=2, staged=True)
        same = copy_of(graph, tmp_path / f"graph {columns}")
        with pytest.raises(KeyboardInterrupt):
            propagate(same, **OPTIONS, on_progress=stop_after(1, interrupt))
        again = computed(monkeypatch)
        cut(monkeypatch, columns=columns, staged=True)
        basis = propagate(same, **OPTIONS)
        assert (again, basis.about.columns) == (blocks, expected)


def test_a_full_disk_is_foreseen(graph, monkeypatch):
    usage = shutil.disk_usage(graph.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(StoreError, match=r"8640 bytes free for .* \(got 1000 bytes\).*float16"):
        propagate(graph, **OPTIONS)


def test_a_disk_that_fills_up_loses_no_block(graph, monkeypatch):
    """Writing fails in the third block; with room again, that one is computed."""
    plain, calls = os.pwrite, []

    def full(file, data, offset):
        calls.append(offset)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return plain(file, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match=r"Expected to write .*block-0002.npy \(No space left"):
        propagate(graph, **OPTIONS)
    again = computed(monkeypatch)
    propagate(graph, **OPTIONS)
    assert again == [2]


def test_a_folder_that_cannot_be_written(graph):
    folder = propagate(graph, **OPTIONS).folder
    shutil.rmtree(folder)
    folder.write_text("")
    with pytest.raises(OSError, match=r"Expected to write .*basis-\w+ \("):
        propagate(graph, **OPTIONS)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't allocate memory: ...")])
def test_too_little_memory_in_the_midst(graph, monkeypatch, error):
    def refuse(*arguments):
        raise error

    monkeypatch.setattr(_propagate, "Recurrence", refuse)
    with pytest.raises(MemoryError, match=r"for a block of 2 columns .*give less with --memory"):
        propagate(graph, **OPTIONS)


def test_two_at_once(graph):
    def second(*progress):
        with pytest.raises(StoreError, match="to be alone in"):
            propagate(graph, **OPTIONS)
        seen.append(progress)

    seen = []
    propagate(graph, **OPTIONS, on_progress=second)
    assert seen


def spoil(folder, name, change):
    """Change an array of a prepared folder, and keep its manifest."""
    array = np.load(folder / name, mmap_mode="r+")
    change(array)
    array.flush()
    return GraphStore.open(folder)


@pytest.mark.parametrize(
    ("name", "at", "value", "message"),
    [
        ("neighbours.npy", 3, 90, r"neighbours in 0..89 .* \(got 90\)"),
        ("neighbours.npy", 3, -2, r"neighbours in 0..89 .* \(got -2\)"),
        ("offsets.npy", 0, 1, r"offsets from 0 to \d+ .* \(got 1 to"),
        ("offsets.npy", 7, 0, r"ascending offsets .* before 0 at node 6"),
        ("features.npy", (7, 3), np.nan, r"finite features .* \(got nan at node 7, column 3\)"),
        ("features.npy", (7, 3), np.inf, r"finite features .* \(got inf at node 7, column 3\)"),
    ],
)
def test_a_damaged_graph(graph, name, at, value, message):
    damaged = spoil(graph.folder, name, lambda array: array.__setitem__(at, value))
    with pytest.raises(StoreError, match=message):
        propagate(damaged, **OPTIONS)


@pytest.mark.parametrize("threads", [1, 2])
def test_numbers_beyond_float16(graph, threads):
    big = spoil(graph.folder, "features.npy", lambda array: array.__setitem__((7, 3), 1e5))
    with pytest.raises(StoreError, match=r"65504 \(got 1e\+05\); choose bfloat16"):
        propagate(big, **OPTIONS, dtype="float16", threads=threads)
    assert propagate(big, **OPTIONS, dtype="bfloat16").about.rounding < 0.01


class TestCommand:
    def test_it_tells_what_it_made(self, graph):
        text = succeed("propagate", graph.folder, "--degree", 3, "--dtype", "float16")
        lines = text.splitlines()
        assert lines[0].startswith("basis: ")
        assert "90 rows, degree 3, 5 columns in 3 blocks, float16" in lines[1]
        assert "rounding error 2.0e-04" in lines[1]
        assert lines[2].startswith("time: ")

    def test_json(self, graph):
        found = succeed_json("propagate", graph.folder, "--degree", 2, "--memory", "2G")
        assert (found["degree"], found["columns"], found["rows"]) == (2, [2, 2, 2], "all")
        assert BasisStore.open(found["folder"]).degree == 2
        plan = json.loads((BasisStore.open(found["folder"]).folder / "plan.json").read_text())
        assert plan["about"]["columns"] == [2, 2, 2]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--memory", "much"], "Expected an amount of memory such as 4G or 500M (got 'much')"),
            (["--dtype", "int8"], "Expected `dtype` among float32, float16, bfloat16 (got 'int8')"),
            (["--degree", "-1"], "Expected a `degree` of 0 or more (got -1)"),
        ],
    )
    def test_mistakes_are_one_line(self, graph, options, message):
        assert fail("propagate", graph.folder, *options) == message

    def test_a_folder_that_is_not_prepared(self, tmp_path):
        assert "longnn prepare" in fail("propagate", tmp_path)
