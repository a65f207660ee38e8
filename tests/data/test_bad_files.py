"""Every flaw of a user's file has its own clear line, and nothing in a file is ever run."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

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
    Write,
    X,
    adjacency,
    columns,
    reference,
    write_table,
)

BAD_NODES = {
    "duplicate": (
        NODES + "b,1,1,cat,\n",
        r"n\.csv, line 6, column 'id': .*unique ids \(got 'b' again, first on line 3\)",
    ),
    "empty id": (NODES + ",1,1,cat,\n", r"line 6, column 'id': Expected an id \(got an empty cell"),
    "text feature": (
        NODES.replace("0.25", "blue"),
        r"n\.csv, line 3, column 'hue': Expected a number \(got 'blue'\)\. Correct it, ",
    ),
    "after a blank line": (
        NODES.replace("c,3", "\n\nc,3").replace(",-1,", ",low,"),
        r"n\.csv, line 6, column 'hue': Expected a number \(got 'low'\)",
    ),
    "infinite feature": (NODES.replace("4e1", "-inf"), r"line 5, column 'size': .*got '-inf'"),
    "huge feature": (NODES.replace("4e1", "4e99"), r"line 5, column 'size': .*fits float32"),
    "nan label": (
        NODES.replace("dog", "nan"),
        r"line 3, column 'label': .*an empty cell for a node to predict \(got 'nan'\)",
    ),
    "bad split": (
        NODES.replace(",val", ",dev"),
        r"line 3, column 'split': Expected train, val, test or an empty cell \(got 'dev'\)",
    ),
    "too few columns": (
        NODES[: NODES.index(",-1")] + "\n",
        r"n\.csv, line 4: Expected 5 columns \(got 2: 'c,3'\); the file may be truncated",
    ),
    "too many columns": (NODES + "e,1,2,cat,train,9\n", r"line 6: Expected 5 columns \(got 6"),
    "header only": ("id,f\n", r"n\.csv: Expected at least one row"),
    "empty": ("", r"n\.csv: Expected rows \(got an empty file\)"),
    "blank": ("\n\n", r"n\.csv: Expected rows \(got only blank lines\)"),
    "column twice": ("id,f,f\na,1,2\n", r"column 'f': Expected each column name once"),
}


@pytest.mark.parametrize("case", BAD_NODES)
def test_bad_node_file(case: str, write: Write) -> None:
    text, message = BAD_NODES[case]
    with pytest.raises(DataError, match=message) as caught:
        load_files(write("e.csv", EDGES), write("n.csv", text))
    assert "\n" not in str(caught.value)
    assert caught.value.path is not None
    assert caught.value.path.name == "n.csv"


BAD_EDGES = {
    "unknown node": (
        EDGES + "d,ghost\n",
        r"e\.csv, line 5, column 'target': Expected the id of a node in n\.csv \(got 'ghost'\); "
        r"1 of 4 edges has such an end. Leave .* unknown_ids=drop, or add .* unknown_ids=add",
    ),
    "no known node": (
        "source,target\nu,v\nv,a\n",
        r"e\.csv, line 2, .* no edge has two known ends. Name the column of the ids with id_column",
    ),
    "empty cell": (EDGES + ",a\n", r"line 5, column 'source': .*id of a node \(got an empty cell"),
    "one column": ("source\na\n", r"column \(got the columns 'source'\); name them"),
    "a space": ("u v\na b\n", r"columns 'u v'; the separator seems to be a space: save it with"),
    "text weight": ("source,target,weight\na,b,heavy\n", r"line 2, column 'weight': .*got 'heavy'"),
    "negative weight": ("source,target,weight\na,b,-1\n", r"line 2, column 'weight': .*got -1"),
    "empty": ("", r"e\.csv: Expected rows \(got an empty file\)"),
}


@pytest.mark.parametrize("case", BAD_EDGES)
def test_bad_edge_file(case: str, write: Write) -> None:
    text, message = BAD_EDGES[case]
    with pytest.raises(DataError, match=message):
        load_files(write("e.csv", text), write("n.csv", NODES))


def test_error_carries_the_place(write: Write) -> None:
    with pytest.raises(DataError) as caught:
        load_files(write("e.csv", EDGES), write("n.csv", NODES.replace("0.25", "blue")))
    error = caught.value
    assert (error.row, error.column, error.value) == (3, "hue", "blue")


def test_regression_refuses_text(write: Write) -> None:
    with pytest.raises(DataError, match=r"line 2, column 'label': .*regression .got 'cat'"):
        load_files(write("e.csv", EDGES), write("n.csv", NODES), task="regression")
    endless = NODES.replace("cat", "inf").replace("dog", "1.5")
    with pytest.raises(DataError, match="line 2, column 'label': Expected a finite label"):
        load_files(write("e.csv", EDGES), write("n.csv", endless))


@pytest.mark.parametrize("option", ["id", "label", "split", "source", "target", "weight"])
def test_unknown_column_lists_the_columns(option: str, write: Write) -> None:
    found = "'id', 'size', 'hue'" if option in ("id", "label", "split") else "'source', 'target'"
    options: dict[str, Any] = {f"{option}_column": "nope"}
    with pytest.raises(DataError, match=rf"a {option} column 'nope' .got the columns {found}"):
        load_files(write("e.csv", EDGES), write("n.csv", NODES), **options)


def test_unclosed_quote_is_a_truncated_file(write: Write) -> None:
    cut = 'id,f,label\na,1,x\nb,2,"y'
    edges = write("e.csv", "source,target\na,b\n")
    with pytest.raises(DataError, match=r"n\.csv, line 4, column 'label': Expected a closing"):
        load_files(edges, write("n.csv", cut + "\nc,3,x\n"))
    assert load_files(edges, write("n.csv", cut + '\nc,3,x"\n')).classes == ("x", "y\nc,3,x")


def test_bad_options(write: Write, tmp_path: Path) -> None:
    edges, nodes = write("e.csv", EDGES), write("n.csv", NODES)
    with pytest.raises(DataError, match="a feature column 'nope'"):
        load_files(edges, nodes, feature_columns=["nope"])
    with pytest.raises(DataError, match=r"`features` to be one of .*identity.* \(got 'all'\)"):
        load_files(edges, nodes, features="all")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"`task` to be one of .* \(got 'ranking'\)"):
        load_files(edges, nodes, task="ranking")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"Expected no `label_column` without .* \(got 'label'\)"):
        load_files(edges, label_column="label")
    with pytest.raises(DataError, match=r"feature columns in bare\.csv \(got none\); use feat"):
        load_files(edges, write("bare.csv", "id\na\nb\nc\nd\n"), features="columns")


def test_identity_features_have_a_limit(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longnn.data._assemble.MAX_IDENTITY", 3)
    with pytest.raises(DataError, match=r"at most 3 nodes for identity features .got 4"):
        load_files(write("e.csv", EDGES), features="identity")


def test_missing_files(write: Write, tmp_path: Path) -> None:
    edges = write("e.csv", EDGES)
    for call in (lambda: load_files(tmp_path / "no.csv"), lambda: load_files(edges, "no.npz")):
        with pytest.raises(MissingFileError, match=r"no\..*: Expected a file here \(found none\)"):
            call()
    with pytest.raises(FileNotFoundError):
        load_files(tmp_path / "no.csv")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(MissingFileError, match=r"empty: Expected a file edges\.\* .*\.parquet"):
        load_files(empty)
    (empty / "payments.csv").write_text(EDGES)
    with pytest.raises(
        MissingFileError, match=r"found none\); it has payments\.csv: give the edge"
    ):
        load_files(empty)
    write("edges.csv", EDGES)
    write("edges.tsv", EDGES)
    with pytest.raises(DataError, match=r"Expected one edges file \(got edges\.csv, edges\.tsv\)"):
        load_files(tmp_path)
    with pytest.raises(DataError, match=r"Expected a file of type \.csv, .* \(got '\.docx'\)"):
        load_files(write("e.docx", EDGES))


def make(path: Path) -> None:
    if path.suffix == ".npz":
        sp.save_npz(path, adjacency())
    elif path.suffix == ".mtx":
        scipy.io.mmwrite(path, adjacency())
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(columns()[0]), path)
    else:
        torch.save(reference().data, path)


def test_a_matrix_with_zero_bytes(tmp_path: Path) -> None:
    """SciPy writes such a file from float32 with precision=17, and crashes on reading it."""
    path = tmp_path / "edges.mtx"
    path.write_bytes(b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1.5\0\0\n")
    with pytest.raises(DataError, match=r"edges.mtx: Expected a text file \(got zero bytes"):
        load_files(path)


@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".mtx", ".pt"])
def test_truncated_empty_and_foreign_files(suffix: str, tmp_path: Path) -> None:
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


def test_unreadable_files(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    with pytest.raises(DataError, match=r"folder\.csv: Expected a readable.*IsADirectoryError"):
        load_files(write("e.csv", EDGES), folder)


class Trap:
    """Unpickled without care, this creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("how", ["torch", "torch in Data", "pickle", "npz"])
def test_malicious_pickle_is_never_executed(how: str, tmp_path: Path) -> None:
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


def test_what_pytorch_trusts_is_left_as_it_was(tmp_path: Path) -> None:
    before = set(torch.serialization.get_safe_globals())
    torch.save(reference().data, tmp_path / "g.pt")
    load_files(tmp_path / "g.pt")
    assert set(torch.serialization.get_safe_globals()) == before


def test_arrays_of_the_wrong_kind(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    np.savez(path, a=X)
    with pytest.raises(DataError, match=r"sparse matrix or arrays named x, y, .* \(got a\)"):
        load_files(path)
    np.savez(path, x=X, edge_index=np.array([["a"], ["b"]]))
    with pytest.raises(DataError, match="`edge_index` to hold numbers"):
        load_files(path)
    np.savez(path, x=X)
    with pytest.raises(DataError, match="adjacency matrix or `edge_index`"):
        load_files(path)
    sp.save_npz(path, sp.csr_array(X))
    with pytest.raises(DataError, match=r"a square adjacency \(got \(9, 3\)\)"):
        load_files(path)
    sp.save_npz(path, -adjacency())
    with pytest.raises(DataError, match="weights finite and >= 0"):
        load_files(path)
    torch.save({"x": torch.eye(2)}, tmp_path / "g.pt")
    with pytest.raises(DataError, match=r"`edge_index` in the file \(got x\)"):
        load_files(tmp_path / "g.pt")
    torch.save([1, 2], tmp_path / "g.pt")
    with pytest.raises(DataError, match=r"Expected a PyG Data \(got list\)"):
        load_files(tmp_path / "g.pt")


def test_nan_in_a_data_file_is_located(tmp_path: Path) -> None:
    x = torch.eye(3)
    x[1, 2] = float("nan")
    torch.save(Data(x=x, edge_index=torch.tensor([[0], [1]])), tmp_path / "g.pt")
    with pytest.raises(DataError, match=r"row 2, column 2: Expected finite features .got nan"):
        load_files(tmp_path / "g.pt")


def test_matrix_and_node_file_must_agree(tmp_path: Path) -> None:
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
