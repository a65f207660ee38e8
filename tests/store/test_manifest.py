"""A folder of arrays is what its manifest says, or an error says what differs."""

import json

import numpy as np
import pytest

from longnn.store._arrays import StoreError
from longnn.store._basis import BasisStore
from longnn.store._graph import About, GraphStore


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "offsets.npy", np.array([0, 1, 2]))
    np.save(tmp_path / "neighbours.npy", np.array([1, 0], dtype=np.int32))
    GraphStore.finish(tmp_path, About("pair", 1))
    return tmp_path


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), r"136 bytes in .* \(got 135\)"),
        (lambda path: path.unlink(), r"neighbours.npy \(got no file\)"),
        (
            lambda path: np.save(path, np.array([[1], [0]], dtype=np.int32)),
            r"<i4 \(2,\) in .*neighbours.npy \(got <i4 \(2, 1\)\)",
        ),
    ],
    ids=["truncated", "missing", "shape"],
)
def test_a_damaged_file_is_named(folder, damage, message):
    damage(folder / "neighbours.npy")
    graph = GraphStore.open(folder)
    with pytest.raises(StoreError, match=message):
        graph.arcs()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": 3}', '{"files": {"a": 1}}'])
def test_a_damaged_manifest_is_an_error(folder, text):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(StoreError, match=r"manifest.json: Expected"):
        GraphStore.open(folder)


def test_an_unprepared_folder_says_what_to_do(tmp_path):
    with pytest.raises(StoreError, match="longnn prepare"):
        GraphStore.open(tmp_path)


def test_a_graph_is_no_basis(folder):
    with pytest.raises(StoreError, match=r"a basis of version 4 .* \(got a graph of version 4\)"):
        BasisStore.open(folder)
    fields = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**fields, "version": 9}))
    with pytest.raises(StoreError, match="version 9"):
        GraphStore.open(folder)
