"""The published formats: the same numbers as PyG's readers, and nothing in a file is trusted."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.datasets import Amazon, HeterophilousGraphDataset, WebKB

from longnn.data import DataError
from longnn.data._catalog import find_named
from longnn.data._rawreaders import READERS
from tests.data.examples import write_webkb

ARCHIVE = Path("Photo/raw/amazon_electronics_photo.npz")


def read(name, root):
    entry = find_named(name)
    return READERS[entry.reader]([root / entry.folder / file for file in entry.files])


def write_archive(path, **changed):
    path.parent.mkdir(parents=True, exist_ok=True)
    adjacency = sp.csr_array(np.diag([1.0, 1, 1], 1) + np.eye(4))
    words = sp.csr_array(np.array([[2.0, 0], [0, 0], [0, 1], [1, 1]], dtype=np.float32))
    fields = {"labels": np.arange(4) % 2}
    for prefix, matrix in (("adj", adjacency), ("attr", words)):
        for part in ("data", "indices", "indptr", "shape"):
            fields[f"{prefix}_{part}"] = np.array(getattr(matrix, part))
    np.savez(path, **{**fields, **changed})


def write_heterophilous(path, **changed):
    path.parent.mkdir(parents=True, exist_ok=True)
    masks = {f"{part}_masks": np.eye(4, dtype=bool)[:2] for part in ("train", "val", "test")}
    fields = {
        "node_features": np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32),
        "node_labels": np.arange(4) % 2,
        "edges": np.array([[0, 1], [1, 2], [2, 3]]),
    }
    np.savez(path, **{**fields, **masks, **changed})


def test_the_numbers_are_those_of_pyg(tmp_path):
    write_archive(tmp_path / ARCHIVE)
    write_heterophilous(tmp_path / "minesweeper/raw/minesweeper.npz")
    write_webkb(tmp_path / "texas/raw")
    for name, theirs in (
        ("photo", Amazon(str(tmp_path), "Photo")),
        ("minesweeper", HeterophilousGraphDataset(str(tmp_path), "Minesweeper")),
        ("texas", WebKB(str(tmp_path), "texas")),
    ):
        ours, expected = read(name, tmp_path), theirs[0]
        assert set(ours.keys()) == set(expected.keys())
        for key in ours.keys():  # noqa: SIM118
            assert torch.equal(ours[key], expected[key]), (name, key)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"adj_indices": np.array([9**9] * 7)}, r"photo\.npz: .*indices in 0\.\.3"),
        ({"attr_indptr": np.array([0, 9**9, 1, 1, 4])}, "pointers that rise from 0 to 4"),
        ({"attr_shape": np.array([4, 10**15])}, "4 x 1000000000000000 to fit into memory"),
        ({"labels": np.zeros(3, dtype=int)}, r"Expected 4 labels \(got 3\)"),
        ({"labels": np.zeros(4)}, r"`labels` of 1 dimensions \(got float64"),
    ],
)
def test_an_archive_that_lies(changed, message, tmp_path):
    write_archive(tmp_path / ARCHIVE, **changed)
    with pytest.raises(DataError, match=message):
        read("photo", tmp_path)


def test_edges_outside_of_the_graph(tmp_path):
    write_heterophilous(tmp_path / "minesweeper/raw/minesweeper.npz", edges=np.array([[0, 10**12]]))
    with pytest.raises(
        DataError, match=r"minesweeper\.npz: Expected edges between the nodes 0\.\.3"
    ):
        read("minesweeper", tmp_path)


def test_features_by_number_are_bounded(tmp_path):
    write_webkb(tmp_path / "actor/raw", "film")
    words = "id\tfeature\tlabel\n0\t1,2\t0\n1\t999999999999\t1\n2\t0\t1\n3\t4\t0\n"
    (tmp_path / "actor/raw/out1_node_feature_label.txt").write_text(words)
    with pytest.raises(DataError, match=r"1000000000000 features of 4 nodes to fit into memory"):
        read("actor", tmp_path)
