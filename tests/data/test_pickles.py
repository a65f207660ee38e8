"""Planetoid's pickles: nothing in them is run, and what they hold is what PyG reads."""

import collections
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.datasets import Planetoid

from longnn.data import DataError
from longnn.data._catalog import find_named
from longnn.data._named import load_named
from longnn.data._pickles import read_pickle
from longnn.data._rawreaders import READERS
from tests.data.examples import Trap

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write_planetoid(folder, name, *, gap=False, protocol=4):
    """Raw files of a small citation graph: 510 nodes before the test nodes, 5 test nodes."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    words = sp.random_array((515, 6), density=0.3, rng=rng, dtype=np.float32).tocsr()
    labels = np.eye(3, dtype=np.int32)[rng.integers(3, size=515)]
    test = np.array([513, 510, 514, 511, 516 if gap else 512])
    graph = collections.defaultdict(list)
    for i in range(515):
        graph[i] += [int(k) for k in rng.integers(515, size=2)]
    made = {
        "x": sp.csr_matrix(words[:9]),
        "allx": sp.csr_matrix(words[:510]),
        "tx": sp.csr_matrix(words[510:]),
        "y": labels[:9],
        "ally": labels[:510],
        "ty": labels[510:],
        "graph": graph,
    }
    for part, value in made.items():
        (folder / f"ind.{name}.{part}").write_bytes(pickle.dumps(value, protocol))
    (folder / f"ind.{name}.test.index").write_text("".join(f"{i}\n" for i in test))


@pytest.mark.parametrize(("name", "gap"), [("Cora", False), ("CiteSeer", True)])
@pytest.mark.parametrize("protocol", [4, 5])
def test_the_numbers_are_those_of_pyg(name, gap, protocol, tmp_path):
    write_planetoid(tmp_path / name / "raw", name.lower(), gap=gap, protocol=protocol)
    entry = find_named(name)
    paths = [tmp_path / entry.folder / file for file in entry.files]
    ours = READERS[entry.reader](paths)
    theirs = Planetoid(str(tmp_path), name)[0]
    for key in ("x", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(ours[key], theirs[key]), key
    arcs = {tuple(arc) for arc in ours.edge_index.t().tolist()}
    assert arcs == {tuple(arc) for arc in theirs.edge_index.t().tolist()}
    assert load_named(name, tmp_path).num_nodes == len(theirs.x)


@pytest.mark.parametrize("part", PARTS)
def test_a_crafted_pickle_runs_nothing(part, tmp_path):
    folder, target = tmp_path / "Cora/raw", tmp_path / "pwned"
    write_planetoid(folder, "cora")
    (folder / f"ind.cora.{part}").write_bytes(pickle.dumps(Trap(target)))
    if part != "x":  # not read: the training nodes are the first of allx
        with pytest.raises(DataError, match=rf"ind\.cora\.{part}: .*refers to posix\.mkdir") as e:
            load_named("cora", tmp_path)
        assert "\n" not in str(e.value)
    else:
        load_named("cora", tmp_path)
    assert not target.exists()
    with pytest.raises(DataError, match="refers to posix"):
        read_pickle(folder / f"ind.cora.{part}")
    pickle.loads((folder / f"ind.cora.{part}").read_bytes())
    assert target.exists()  # so the trap was a live one


HOSTILE = {
    "eval": b"cbuiltins\neval\n(S'1'\ntR.",
    "a method of an allowed class": b"\x80\x04\x8c\x08builtins\x8c\x0blist.append\x93.",
    "getattr": b"cbuiltins\ngetattr\n.",
    "numpy's loader": b"cnumpy\nload\n(S'x'\ntR.",
    "subclasses": b"cnumpy.core.multiarray\n__dict__\n.",
    "an attribute of a class": b"cscipy.sparse.csr\ncsr_matrix\n(NS'a'\nI1\ndtb.",
    "changes list": b"c__builtin__\nlist\n}b.",
    "objects": pickle.dumps(np.array([None, 1], dtype=object)),
    "a structured array": pickle.dumps(np.zeros(2, dtype="i4,i8")),
    "persistent": b"P1\n.",
    "an extension": b"\x82\x01.",
    "nothing": b"",
    "text": b"hello",
    "a number": pickle.dumps(7),
    "a string": pickle.dumps("seven"),
    "a large memo": b"]r\xff\xff\xff\x7f.",
    "a long string": b"T\xff\xff\xff\x7f.",
    "a negative shape": pickle.dumps(np.zeros(3), 4).replace(
        b"K\x03\x85", b"J\xfd\xff\xff\xff\x85"
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_a_pickle_must_not_do(case, tmp_path):
    path = tmp_path / "ind.cora.x"
    path.write_bytes(HOSTILE[case])
    with pytest.raises(
        DataError, match=r"ind\.cora\.x: Expected a readable, complete pickle"
    ) as error:
        read_pickle(path)
    assert "\n" not in str(error.value)


def test_scalars_are_numbers(tmp_path):
    path = tmp_path / "graph"
    path.write_bytes(pickle.dumps({0: [np.int64(3)], 1: np.float32(0.5)}, 4))
    assert read_pickle(path) == {0: [3], 1: 0.5}


@pytest.mark.parametrize(
    ("field", "values", "reason"),
    [
        ("indices", np.array([0, -1, 1], np.int32), r"indices in 0\.\.2 \(got -1 at position 1"),
        ("indptr", np.array([0, 5, 1, 3], np.int32), r"rise from 0 to 3 \(got 1 at position 2"),
        ("_shape", (10**9, 3), r"1000000001 pointers"),
    ],
)
def test_a_matrix_whose_arrays_lie(field, values, reason, tmp_path):
    matrix = sp.csr_matrix(np.eye(3))
    vars(matrix)[field] = values
    (tmp_path / "x").write_bytes(pickle.dumps(matrix, 4))
    with pytest.raises(DataError, match=reason):
        read_pickle(tmp_path / "x")


def test_labels_and_edges_of_other_graphs(tmp_path):
    folder = tmp_path / "Cora/raw"
    write_planetoid(folder, "cora")
    (folder / "ind.cora.test.index").write_text("510\n511\n512\n513\n1000000000\n")
    with pytest.raises(DataError, match=r"test\.index: Expected the test nodes 510"):
        load_named("cora", tmp_path)
    (folder / "ind.cora.test.index").write_text("510\n511\n512\n513\n514\n")
    (folder / "ind.cora.graph").write_bytes(pickle.dumps({0: [10**12]}))
    with pytest.raises(DataError, match=r"graph: Expected edges between the nodes 0\.\.514"):
        load_named("cora", tmp_path)
    (folder / "ind.cora.graph").write_bytes(pickle.dumps({0: [10**30]}))
    with pytest.raises(DataError, match=r"graph: Expected nodes 0\.\.514"):
        load_named("cora", tmp_path)
