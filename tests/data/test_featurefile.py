"""Feature files: a matrix or a long table gives what the same numbers in a node file give."""

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp
import torch

from longnn import LONGNNClassifier
from longnn.data import DataError, Source, load
from longnn.data._errors import MissingFileError
from longnn.data._files import load_files
from longnn.matrices import DenseMatrix

EDGES = "source,target\nann,bob\nbob,eve\neve,ann\n"
NODES = "id,age,label\nann,3,x\nbob,4,y\neve,5,x\n"
LONG = "id,feature,value\neve,pear,2\nann,apple,1.5\nann,pear,1\nann,apple,0.5\n"
LONG_X = [[2.0, 1.0], [0.0, 0.0], [0.0, 2.0]]


def dense(dataset):
    return dataset.data.x.to_dense().tolist()


@pytest.fixture
def words():
    """Few words per node, each word at some node."""
    rng = np.random.default_rng(0)
    found = sp.random_array((40, 30), density=0.1, rng=rng).toarray().astype(np.float32)
    found[np.arange(30), np.arange(30)] = 1.0
    return sp.csr_array(found)


def ring(size=40):
    return "source,target\n" + "".join(f"{i},{(i + 1) % size}\n" for i in range(size))


def labels(size=40):
    return "id,label\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(size))


def long_table(matrix, name="w{:02d}".format):
    found = matrix.tocoo()
    lines = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    return "id,feature,value\n" + "".join(f"{r},{name(c)},{v!r}\n" for r, c, v in lines)


@pytest.mark.parametrize("kind", ["tsv", "parquet", "no value", "no header", "other names"])
def test_forms_of_a_long_table(kind, write, tmp_path):
    edges = write("e.csv", "source,target\n0,1\n1,2\n")
    expected = [[1, 2.0], [0, 0], [0, 1]]
    path = tmp_path / "f.csv"
    if kind == "tsv":
        path = write("f.tsv", "id\tfeature\tvalue\n0\t2\t1\n0\t10\t2\n2\t10\t1\n")
    elif kind == "parquet":
        path = tmp_path / "f.parquet"
        table = {"node": [0, 0, 2], "word": [2, 10, 10], "count": [1.0, 2.0, 1.0]}
        pq.write_table(pa.table(table), path)
    elif kind == "no value":
        path.write_text("id,feature\n0,2\n0,10\n0,10\n2,10\n")
    elif kind == "no header":
        path.write_text("0,2,1\n0,10,2\n2,10,1\n")
    else:
        path.write_text("who,Term,Weight\n0,2,1\n0,10,2\n2,10,1\n")
    d = load_files(edges, feature_file=str(path))
    assert d.feature_names == ("2", "10")  # numbers by value, not as text
    assert dense(d) == expected
    assert any("no header" in note for note in d.notes) == (kind == "no header")


@pytest.mark.parametrize("suffix", [".npz", ".mtx"])
@pytest.mark.parametrize("nodes", [True, False])
def test_a_matrix(suffix, nodes, words, write):
    path = write(f"f{suffix}", "")
    if suffix == ".npz":
        sp.save_npz(path, words)
    else:
        scipy.io.mmwrite(path, words)
    node_file = write("n.csv", labels()) if nodes else None
    d = load_files(write("e.csv", ring()), node_file, feature_file=str(path))
    assert d.data.x.layout is torch.sparse_csr
    np.testing.assert_allclose(d.data.x.to_dense(), words.toarray(), rtol=1e-6)
    assert (d.feature_names, d.open_features) == ((), 0)


def test_columns_and_file_side_by_side(write, words, tmp_path):
    long = load_files(
        write("e.csv", EDGES), write("n.csv", NODES), feature_file=str(write("f.csv", LONG))
    )
    assert long.feature_names == ("age", "apple", "pear")
    assert long.open_features == 2
    assert dense(long) == [[3, *LONG_X[0]], [4, *LONG_X[1]], [5, *LONG_X[2]]]
    folder = tmp_path / "graph"
    folder.mkdir()
    (folder / "edges.csv").write_text(ring())
    ages = "".join(f"{i},{1 + i % 2}\n" for i in range(40))
    (folder / "nodes.csv").write_text(f"id,age\n{ages}")
    sp.save_npz(folder / "features.npz", words)
    both = load(folder)
    assert both.feature_names[:3] == ("age", "features[0]", "features[1]")
    assert both.data.x.layout is torch.sparse_csr
    assert both.data.x.to_dense()[:3, 0].tolist() == [1, 2, 1]
    np.testing.assert_array_equal(both.data.x.to_dense()[:, 1:], words.toarray())
    degrees = load(folder, features="degree")  # the file that was found is not asked for
    assert degrees.feature_names == ("log_degree",)


def test_errors(write, words, tmp_path):
    edges, nodes = write("e.csv", EDGES), write("n.csv", NODES)
    sp.save_npz(tmp_path / "m.npz", words)
    np.savez(tmp_path / "y.npz", y=np.arange(3))
    cases = {
        "id,feature,value\nann,a,1\n,b,1\n": r"line 3, column 'id': .*an empty cell",
        "id,feature,value\nann,,1\n": r"line 2, column 'feature': .*an empty cell",
        "id,feature,value\nann,a,much\n": r"line 2, column 'value': Expected a number",
        "id,feature,value\nann,a,\n": r"line 2, column 'value': Expected a finite number",
        "id,feature,value\nann,a,1e300\n": r"got inf at node 0",
        "id,height,width\nann,1,2\n": r"the columns id, feature and value.*'height', 'width'\);",
        "id,feature,value,unit\nann,a,1,cm\n": r"the columns id, feature and value.*'unit'",
    }
    for text, message in cases.items():
        with pytest.raises(DataError, match=message):
            load_files(edges, nodes, feature_file=str(write("f.csv", text)))
    for name, message in {
        "m.npz": r"m.npz: Expected 3 rows, one per node in their order \(got 40\)",
        "y.npz": r"Expected a matrix \(nodes, features\)",
        "e.csv": r"the columns id, feature and value",
    }.items():
        with pytest.raises(DataError, match=message):
            load_files(edges, nodes, feature_file=str(tmp_path / name))
    with pytest.raises(MissingFileError, match=r"none.csv: Expected a file here"):
        load_files(edges, nodes, feature_file="none.csv")
    with pytest.raises(DataError, match=r"Expected a file of type .*\(got '.docx'\)"):
        load_files(edges, nodes, feature_file=str(write("f.docx", LONG)))
    with pytest.raises(DataError, match="no `feature_file` with features='degree'"):
        load_files(edges, nodes, feature_file=str(tmp_path / "m.npz"), features="degree")
    folder = tmp_path / "two"
    folder.mkdir()
    for name, text in {"edges.csv": EDGES, "features.csv": LONG, "features.tsv": LONG}.items():
        (folder / name).write_text(text)
    with pytest.raises(DataError, match=r"one features file or folder \(got features.csv, feat"):
        load(folder)


def test_the_source_keeps_the_path(write, monkeypatch, tmp_path):
    write("e.csv", EDGES)
    write("f.csv", LONG)
    monkeypatch.chdir(tmp_path)
    source = Source.resolve("e.csv", options={"feature_file": "f.csv"})
    monkeypatch.chdir("/")
    assert source.options["feature_file"] == str((tmp_path / "f.csv").resolve())
    assert Source.from_dict(source.to_dict()).load().feature_names == ("apple", "pear")
    new = Source.resolve("new.csv").like(source)
    assert "feature_file" not in new.options
    own = Source.resolve("new.csv", options={"feature_file": "/g.csv"}).like(source)
    assert own.options["feature_file"] == str(Path("/g.csv").resolve())


def test_another_graph_may_have_other_words(words, write, tmp_path):
    edges, nodes = write("e.csv", ring()), write("n.csv", labels())
    write("f.csv", long_table(words))
    d = load_files(edges, nodes, feature_file=str(tmp_path / "f.csv"))
    classifier = LONGNNClassifier(epochs=3, device="cpu").fit(d)
    classifier.save(tmp_path / "model.safetensors")
    loaded = LONGNNClassifier.load(tmp_path / "model.safetensors")

    found = words.toarray()
    found[:, [4, 7]] = 0  # two words that the new graph does not have, and one that is new
    keep = sp.csr_array(found)
    zeroed = dataclasses.replace(d, data=d.data.clone())
    zeroed.data.x = torch.from_numpy(keep.toarray())
    expected = classifier.predict_proba(zeroed)
    lines = long_table(keep) + "3,aardvark,9\n"
    new = load_files(edges, nodes, feature_file=str(write("new.csv", lines)))
    assert new.num_features == 29  # 30 - 2 + 1
    np.testing.assert_array_equal(loaded.predict_proba(new), expected)

    strange = load_files(edges, nodes, feature_file=str(write("s.csv", "id,feature\n0,zebra\n")))
    with pytest.raises(DataError, match=r"such as 'w00' \(got only unknown ones, such as 'zebra'"):
        loaded.predict_proba(strange)
    # Fixed columns stay fixed: a graph without a feature file lacks them all.
    columns = load_files(edges, nodes, features="degree")
    with pytest.raises(ValueError, match="Expected the features the run was trained with"):
        loaded.predict_proba(columns)


def test_fixed_columns_stay_fixed(write):
    """Of two files only the long table is an open vocabulary, by name on each side."""
    edges = write("e.csv", EDGES)

    def graph(nodes, long):
        path = str(write("f.csv", long))
        return load_files(edges, write("n.csv", nodes), feature_file=path)

    first = graph(NODES, LONG)
    masks = {"train_mask": [True, True, False], "val_mask": [False, False, True]}
    trained = LONGNNClassifier(epochs=2, device="cpu").fit(first, **masks).trained_
    matched = trained.problem(graph(NODES, "id,feature,value\nann,pear,1\nann,fig,7\n")).features
    assert isinstance(matched, DenseMatrix)
    same = torch.tensor([[3.0, 0, 1], [4, 0, 0], [5, 0, 0]])  # age, apple, pear
    assert torch.equal(matched.values, trained.scaling.apply(same))
    with pytest.raises(DataError, match="missing column 'age'"):
        trained.problem(graph(NODES.replace("age", "size"), LONG))
    with pytest.raises(DataError, match="missing 'age'"):  # a word is not a column
        trained.problem(graph("id,label\nann,x\nbob,y\neve,x\n", LONG + "ann,age,3\nann,fig,1\n"))
    with pytest.raises(DataError, match="missing 'apple'"):  # no feature file at all
        trained.problem(load_files(edges, write("n.csv", NODES)))


def test_identity_is_sparse(write):
    d = load_files(write("e.csv", ring()), features="identity")
    assert d.data.x.layout is torch.sparse_csr
    assert torch.equal(d.data.x.to_dense(), torch.eye(40))
    assert d.ready
