"""Every flaw of a user's file has its own clear line, and nothing in a file is ever run."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from longnn.data import DataError
from longnn.data._errors import MissingFileError
from longnn.data._files import load_files
from tests.data.examples import (
    EDGES,
    NODES,
    PAIRS,
    Trap,
    X,
    adjacency,
    columns,
    reference,
    write_table,
)


@pytest.mark.parametrize(
    ("nodes", "options", "message"),
    [
        (NODES, {"feature_columns": ["nope"]}, "a feature column 'nope'"),
        (NODES, {"features": "all"}, r"`features` to be one of .*identity.* \(got 'all'\)"),
        (NODES, {"task": "ranking"}, r"`task` to be one of .* \(got 'ranking'\)"),
        (NODES, {"unknown_ids": "keep"}, r"`unknown_ids` to be one of .*'drop'.*got 'keep'"),
        (NODES, {"unknown_ids": "add", "missing": "error"}, "missing='fill' where unknown_ids"),
        (None, {"label_column": "label"}, r"Expected no `label_column` without .*got 'label'"),
        ("id\na\nb\nc\nd\n", {"features": "columns"}, r"columns in n\.csv \(got none\); use feat"),
    ],
)
def test_bad_options(nodes, options, message, write):
    with pytest.raises(DataError, match=message):
        load_files(write("e.csv", EDGES), nodes and write("n.csv", nodes), **options)


def test_identity_features_have_a_limit(write, monkeypatch):
    monkeypatch.setattr("longnn.data._assemble.MAX_IDENTITY", 3)
    with pytest.raises(DataError, match=r"at most 3 nodes for identity features .got 4"):
        load_files(write("e.csv", EDGES), features="identity")


#: The files of a folder, what is asked of it, and words of the error.
FOLDERS = [
    ({}, ".", MissingFileError, r": Expected a file edges\.\* .*\.parquet"),
    ({}, "no.csv", MissingFileError, r"no\.csv: Expected a file here \(found none\)"),
    ({"payments.csv": EDGES, "people.csv": "id,age\nx,1\n"}, ".", DataError,
     r"people\.csv: .*one table, give the edge file itself"),
    ({"payments.csv": EDGES, "old.tsv": EDGES}, ".", DataError,
     r"\(got \.csv, \.tsv; it has old\.tsv, .*: give the edge"),
    ({"edges.csv": EDGES, "edges.tsv": EDGES}, ".", DataError,
     r"one edges file or folder \(got edges\.csv, edges\.tsv\)"),
    ({"e.docx": EDGES}, "e.docx", DataError, r"a file of type \.csv, .* \(got '\.docx'\)"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "graph", "kind", "message"), FOLDERS)
def test_files_that_are_not_there_or_too_many(files, graph, kind, message, write, tmp_path):
    for name, text in files.items():
        write(name, text)
    with pytest.raises(kind, match=message):
        load_files(tmp_path / graph)


def test_missing_node_files(write, tmp_path):
    edges = write("e.csv", EDGES)
    with pytest.raises(FileNotFoundError, match=r"no\.npz: Expected a file here \(found none\)"):
        load_files(edges, "no.npz")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=r"folder\.csv: Expected parts of a table .*in the folder"):
        load_files(edges, tmp_path / "folder.csv")


def make(path):
    if path.suffix == ".npz":
        sp.save_npz(path, adjacency())
    elif path.suffix == ".mtx":
        scipy.io.mmwrite(path, adjacency())
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(columns()[0]), path)
    else:
        torch.save(Data(**reference().data), path)


def test_a_matrix_with_zero_bytes(tmp_path):
    """SciPy writes such a file from float32 with precision=17, and crashes on reading it."""
    path = tmp_path / "edges.mtx"
    path.write_bytes(b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1.5\0\0\n")
    with pytest.raises(DataError, match=r"edges.mtx: Expected a text file \(got zero bytes"):
        load_files(path)


@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".mtx", ".pt"])
def test_truncated_empty_and_foreign_files(suffix, tmp_path):
    path = tmp_path / f"g{suffix}"
    make(path)
    whole = path.read_bytes()
    assert load_files(path).num_edges == len(PAIRS)
    for content in (b"", whole[: len(whole) // 2], whole[:40], b"\x00garbage\xff" * 9):
        path.write_bytes(content)
        with pytest.raises(
            DataError, match=rf"g\{suffix}: Expected a|g\{suffix}: Expected rows"
        ) as e:
            load_files(path)
        assert "\n" not in str(e.value)


@pytest.mark.parametrize("how", ["torch", "torch in Data", "pickle", "npz"])
def test_malicious_pickle_is_never_executed(how, tmp_path):
    target = tmp_path / "pwned"
    path = tmp_path / ("g.npz" if how == "npz" else "g.pt")
    if how == "torch":
        torch.save(Trap(target), path)
    elif how == "torch in Data":
        torch.save(Data(x=torch.eye(2), edge_index=torch.zeros(2, 0), y=Trap(target)), path)
    elif how == "pickle":
        path.write_bytes(pickle.dumps({"edge_index": Trap(target)}))
    else:
        np.savez(path, edge_index=np.array([Trap(target)], dtype=object))
    with pytest.raises(
        DataError, match=r"without running code|Object arrays cannot be loaded"
    ) as e:
        load_files(path)
    assert "\n" not in str(e.value)
    assert not target.exists()
    if how == "npz":
        np.load(path, allow_pickle=True)["edge_index"]
    elif how == "pickle":
        pickle.loads(path.read_bytes())
    else:
        torch.load(path, weights_only=False)
    assert target.exists()  # so the trap was a live one


def test_what_pytorch_trusts_is_left_as_it_was(tmp_path):
    before = set(torch.serialization.get_safe_globals())
    torch.save(Data(**reference().data), tmp_path / "g.pt")
    load_files(tmp_path / "g.pt")
    assert set(torch.serialization.get_safe_globals()) == before


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": X}, r"sparse matrix or arrays named x, y, .* \(got a\)"),
        ({"x": X, "edge_index": np.array([["a"], ["b"]])}, "`edge_index` to hold numbers"),
        ({"x": X}, "adjacency matrix or `edge_index`"),
        (sp.csr_array(X), r"a square adjacency \(got \(9, 3\)\)"),
        (-adjacency(), "finite and >= 0"),
        ({"x": torch.eye(2)}, r"`edge_index` in the file \(got x\)"),
        ([1, 2], r"Expected a PyG Data \(got list\)"),
    ],
)
def test_arrays_of_the_wrong_kind(arrays, message, tmp_path):
    path = tmp_path / (
        "g.pt" if message.startswith((r"`edge_index` in", "Expected a PyG")) else "g.npz"
    )
    if path.suffix == ".pt":
        torch.save(arrays, path)
    elif isinstance(arrays, dict):
        np.savez(path, **arrays)
    else:
        sp.save_npz(path, arrays)
    with pytest.raises(DataError, match=message):
        load_files(path)


def test_matrix_and_node_file_must_agree(tmp_path):
    sp.save_npz(tmp_path / "edges.npz", adjacency())
    _, nodes = columns()
    short = {key: values[:-1] for key, values in nodes.items()}
    write_table(tmp_path / "nodes.csv", short)
    with pytest.raises(DataError, match=r"Expected 9 nodes, .* \(got 8 in nodes\.csv\)"):
        load_files(tmp_path)
    backwards = {key: values[::-1] for key, values in nodes.items()}
    write_table(tmp_path / "nodes.csv", backwards)
    with pytest.raises(DataError, match=r"in the order of the matrix \(got id 8 as row 1\); sort"):
        load_files(tmp_path)
    del nodes["node_id"]  # without ids, rows are rows
    write_table(tmp_path / "nodes.csv", nodes)
    assert load_files(tmp_path).fingerprint() == reference().fingerprint()
