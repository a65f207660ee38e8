"""Arcs are kept where asked; without a word the graph is undirected, byte for byte as ever."""

import networkx
import numpy as np
import pyarrow
import pytest
import scipy.io
import scipy.sparse
import torch
from torch_geometric.data import Data

from longnn.data import (
    DataError,
    Source,
    describe,
    from_data,
    from_networkx,
    from_pandas,
    from_scipy,
    load,
)
from longnn.data._catalog import list_named
from longnn.data._convert import undirected
from longnn.data._files import load_files
from longnn.data._named import load_named
from longnn.data._synthetic import csbm

from .test_named import write_webkb

ARCS = torch.tensor([[2, 0, 1, 1, 2], [0, 1, 0, 2, 2]])  # 0 <-> 1 -> 2 -> 0, and a loop


def data(**entries):
    return Data(x=torch.eye(3), edge_index=ARCS, y=torch.tensor([0, 1, 0]), **entries)


def test_arcs_are_sorted_and_counted():
    d = from_data(data(), directed=True)
    assert d.directed
    assert d.data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 0]]
    assert (d.num_edges, d.one_way) == (4, 2)
    assert d.degrees.tolist() == [2, 2, 2]
    assert d.notes[0] == "Arcs are kept: 2 of 4 have no reverse."
    assert "1 self loop was dropped." in d.notes
    assert repr(d).startswith("NodeDataset('graph', nodes=3, arcs=4,")
    looped = from_data(data(), directed=True, self_loops=True)
    assert looped.num_edges == 5
    assert looped.one_way == 2  # a loop is its own reverse


def test_auto_says_what_it_found():
    found = from_data(data(), directed="auto")
    assert found.directed
    assert found.notes[0] == "Arcs are kept: 2 of 4 have no reverse."
    both = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.arange(2))
    plain = from_data(both, directed="auto")
    assert not plain.directed
    assert plain.notes == ("Every arc has its reverse: the graph is undirected.",)
    assert plain.fingerprint() == from_data(both).fingerprint()
    both.edge_weight = torch.tensor([1.0, 2.0])
    weighted = from_data(both, directed="auto")
    assert weighted.directed
    assert weighted.data.edge_weight.tolist() == [1, 2]
    assert weighted.notes == ("Arcs are kept: all have a reverse, some with another weight.",)
    both.edge_weight = torch.tensor([2.0, 2.0])
    assert not from_data(both, directed="auto").directed
    asked = from_data(both, directed=True)
    assert asked.directed
    assert "directed=true tells no more" in asked.notes[0]
    with pytest.raises(DataError, match=r"`directed` to be true, false or 'auto' \(got 'yes'\)"):
        from_data(both, directed="yes")


def test_undirected_is_what_loading_without_arcs_gives():
    weight = torch.tensor([1.0, 2.0, 4.0, 8.0, 1.0])
    for entries in ({}, {"edge_weight": weight}):
        plain, kept = from_data(data(**entries)), from_data(data(**entries), directed=True)
        assert undirected(kept).fingerprint() == plain.fingerprint()
        assert kept.fingerprint() != plain.fingerprint()
        assert undirected(kept).one_way == plain.one_way


def test_the_fingerprint_of_undirected_graphs_is_as_ever():
    """Records and caches of earlier versions hold it."""
    expected = "c04f3dc72d8a3d026fff8ed0467f166293a0e02e7252390cc950cc133adb3eb1"
    assert from_data(data()).fingerprint() == expected
    same = torch.tensor([[0, 1], [1, 0]])
    graph = Data(x=torch.eye(2), edge_index=same, y=torch.arange(2))
    assert from_data(graph).fingerprint() != from_data(graph, directed=True).fingerprint()


def test_the_card_says_so():
    plain, kept = describe(from_data(data())), describe(from_data(data(), directed=True))
    assert any(line.startswith("arcs        4, directed: 2 have no") for line in kept.lines())
    assert any(line.startswith("edges       3") for line in plain.lines())
    assert "directed" not in plain.to_dict()
    assert (kept.to_dict()["directed"], kept.to_dict()["one_way"]) == (True, 2)
    for name in ("degree_mean", "components", "isolated_nodes", "edge_homophily"):
        assert getattr(kept, name) == getattr(plain, name)
    alone = Data(x=torch.eye(3), edge_index=torch.tensor([[0], [1]]), y=torch.arange(3))
    assert describe(from_data(alone, directed=True)).isolated_nodes == 1


def test_files_keep_arcs(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("source,target\na,b\nb,a\nb,c\n")
    kept = load(str(path), directed="auto")
    assert kept.directed
    assert kept.data.edge_index.tolist() == [[0, 1, 1], [1, 0, 2]]
    assert kept.feature_names == ("log_out_degree", "log_in_degree")
    np.testing.assert_allclose(kept.data.x.exp() - 1, [[1, 1], [2, 1], [0, 1]], rtol=1e-6)
    assert any("log(1 + degree) of arcs out, and of arcs in, is used" in n for n in kept.notes)
    # What was found is what a record says, and what a new graph is read with.
    assert kept.source is not None
    assert kept.source.options == {"directed": True}
    new = Source.resolve(tmp_path / "other.csv").like(kept.source)
    assert new.options["directed"] is True
    frame = pyarrow.table({"source": ["a", "b"], "target": ["b", "c"]})
    assert from_pandas(frame, directed=True).one_way == 2


def test_matrices_keep_arcs(tmp_path):
    matrix = scipy.sparse.csr_array(np.array([[0, 2.0, 0], [0, 0, 3.0], [0, 0, 0]]))
    kept = from_scipy(matrix, features=np.eye(3), directed=True)
    assert kept.data.edge_index.tolist() == [[0, 1], [1, 2]]
    assert kept.data.edge_weight.tolist() == [2, 3]
    scipy.io.mmwrite(tmp_path / "general.mtx", matrix)
    assert load_files(tmp_path / "general.mtx", directed=True).num_edges == 2
    scipy.io.mmwrite(tmp_path / "half.mtx", matrix + matrix.T, symmetry="symmetric")
    with pytest.raises(DataError, match=r"half\.mtx.*general matrix for directed=true"):
        load_files(tmp_path / "half.mtx", directed=True)
    assert not load_files(tmp_path / "half.mtx", directed="auto").directed


def test_networkx_knows_whether_it_is_directed():
    arcs = networkx.DiGraph([("a", "b"), ("b", "c")])
    assert from_networkx(arcs, directed=True).num_edges == 2
    assert from_networkx(arcs, directed="auto").directed
    assert not from_networkx(arcs).directed
    edges = networkx.Graph([("a", "b"), ("b", "c")])
    assert not from_networkx(edges, directed="auto").directed  # each is listed once
    with pytest.raises(DataError, match="directed NetworkX graph for directed=True"):
        from_networkx(edges, directed=True)


def test_named_datasets_have_arcs_or_not(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_webkb(tmp_path / "texas/raw")
    kept, plain = (load_named("texas", tmp_path, directed=d) for d in (True, False))
    assert kept.directed
    assert undirected(kept).fingerprint() == plain.fingerprint()
    with pytest.raises(DataError, match=r"'cora', whose files list undirected edges .* chameleon"):
        load_named("cora", tmp_path, directed=True)
    having = {entry.name for entry in list_named() if entry.arcs}
    assert {"chameleon", "squirrel", "actor", "texas", "cornell", "wisconsin"} < having
    with pytest.raises(DataError, match="Unknown data option `directed` of csbm"):
        Source.resolve("csbm", options={"directed": True})
    assert not csbm(num_nodes=40, num_features=4).directed
