"""Data frames, NetworkX graphs and matrices give the same graph as the files they could be."""

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch

from longnn.data import DataError, from_networkx, from_pandas, from_scipy
from longnn.data._files import load_files
from tests.data.examples import PAIRS, WEIGHT, N, X, Y, adjacency, columns, reference, write_table

MESSY = {
    "id": ["a", "b", "c", "d"],
    "age": [3.0, None, 5.0, 4.0],
    "team": ["x", "y", "x", "y"],
    "joined": ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"],
    "label": ["cat", None, "dog", "cat"],
}
EDGES = {"source": ["a", "b", "c"], "target": ["b", "c", "d"], "weight": [1.0, 2.0, 3.0]}


class Interchange:
    """A frame that offers nothing but the interchange protocol."""

    def __init__(self, table):
        self.frame = pd.DataFrame(table)

    def __dataframe__(self, **options):
        return self.frame.__dataframe__(**options)


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "record batch": pa.RecordBatch.from_pydict,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_equal_files(kind, tmp_path):
    d = from_pandas(FRAMES[kind](EDGES), FRAMES[kind](MESSY), name="g")
    for name, table in (("edges", EDGES), ("nodes", MESSY)):
        write_table(tmp_path / f"{name}.csv", table)
    files = load_files(tmp_path)
    assert d.fingerprint() == files.fingerprint()
    assert d.feature_names == files.feature_names
    assert d.classes == files.classes == ("cat", "dog")
    assert list(d.ids) == list(files.ids) == ["a", "b", "c", "d"]
    assert d.encoding == files.encoding
    assert d.name == "g"
    assert d.source is None


@pytest.mark.filterwarnings("ignore:.*interchange.*")
def test_the_interchange_protocol_is_enough():
    numbers = {"source": [0, 1], "target": [1, 2]}
    assert from_pandas(Interchange(numbers)).num_edges == 2


def test_the_index_of_pandas_is_the_id_only_without_an_id_column():
    edges = pd.DataFrame({"u": ["a", "b"], "v": ["b", "c"]})
    nodes = pd.DataFrame({"f": [1, 2, 3], "g": [3.5, 1, 2]}, index=["a", "b", "c"])
    d = from_pandas(edges, nodes)
    assert list(d.ids) == ["a", "b", "c"]
    assert d.feature_names == ("f", "g")
    named = nodes.rename_axis("who")
    assert list(from_pandas(edges, named, id_column="who").ids) == ["a", "b", "c"]
    other = nodes.assign(id=["c", "b", "a"])
    assert list(from_pandas(edges, other).ids) == ["c", "b", "a"]
    plain = pd.DataFrame({"f": [1.5, 2, 3]})  # an index 0, 1, 2
    numbers = pd.DataFrame({"u": [0, 1], "v": [1, 2]})
    assert list(from_pandas(numbers, plain).ids) == [0, 1, 2]
    with pytest.raises(DataError, match=r"nodes: Expected a id column 'nope'"):
        from_pandas(edges, nodes, id_column="nope")


def test_types_of_frames():
    nodes = pd.DataFrame(
        {
            "id": [1, 2, 3, 4],
            "kind": pd.Categorical(["u", "v", "u", "v"]),
            "flag": [True, False, True, True],
            "when": pd.to_datetime(["2024-01-01", None, "2024-01-03", "2024-01-04"]),
            "mixed": [1, "a", "a", 1],
            "y": [0.5, np.nan, 1.5, 2.5],
        }
    )
    d = from_pandas(pd.DataFrame({"a": [1, 2, 3], "b": [2, 3, 4]}), nodes)
    assert d.task == "regression"
    assert torch.isnan(d.data.y).tolist() == [False, True, False, False]
    made = {"kind=u", "kind=v", "flag", "when days", "when missing", "mixed=1", "mixed=a"}
    assert made <= set(d.feature_names)


_E, _N = pd.DataFrame(EDGES), pd.DataFrame(MESSY)
FLAWS = [
    (_E, _N.assign(size=["1", "2", "3", "large"]),
     r"^nodes, row 4, column 'size': Expected a number .got 'la"),
    (_E.assign(target=["b", "c", "ghost"]), _N,
     r"^edges, row 3, column 'target': .*node in nodes .got 'g"),
    (_E.assign(weight=[1, -1, 1]), _N, r"^edges, row 2, column 'weight': Expected a weight >= 0"),
    (_E, pd.concat([_N, _N["age"]], axis=1), "nodes, column 'age': Expected each column name once"),
    ("edges.csv", None, r"`edges` to be a pandas, .* table \(got str\)"),
    (_E.iloc[:0], _N, r"edges: Expected at least one edge \(got none\)"),
    (_E, pd.DataFrame({"f": [1, 2]}, index=["a", "a"]), r"nodes, row 2, .*unique ids .*on row 1"),
]  # fmt: skip


@pytest.mark.parametrize(("edges", "nodes", "message"), FLAWS)
def test_errors_name_the_frame_and_the_row(edges, nodes, message):
    with pytest.raises(DataError, match=message):
        from_pandas(edges, nodes)


def test_an_unknown_option_has_a_near_one():
    with pytest.raises(DataError, match=r"Unknown option `label_columm`; did you mean `label"):
        from_pandas(_E, _N, label_columm="age")


def test_networkx_equals_files():
    graph = nx.Graph()
    _, nodes = columns()
    for i in range(N):
        held = {key: values[i] for key, values in nodes.items() if values[i] is not None}
        graph.add_node(held.pop("node_id"), **held)
    pairs = zip(PAIRS.tolist(), WEIGHT.tolist(), strict=True)
    graph.add_weighted_edges_from([(i, j, w) for (i, j), w in pairs])
    d = from_networkx(graph)
    assert d.fingerprint() == reference().fingerprint()
    assert list(d.ids) == list(range(N))


def test_networkx_attributes_keys_and_weights():
    graph = nx.karate_club_graph()
    d = from_networkx(graph, label_column="club")
    assert d.classes == ("Mr. Hi", "Officer")
    assert d.num_nodes == 34
    assert d.num_edges == 78
    assert d.data.edge_weight is not None
    odd = nx.DiGraph()
    odd.add_node(("a", 1), id=5, size=1.0)
    odd.add_node("b", id=6, size=2.0, vec=[1.0])
    odd.add_edge(("a", 1), "b", strength=3)
    d = from_networkx(odd, weight_column="strength")
    assert list(d.ids) == ["('a', 1)", "b"]
    assert d.feature_names[:2] == ("id", "size")
    assert d.data.edge_weight.tolist() == [3, 3]
    with pytest.raises(DataError, match="Expected no `id_column`: a NetworkX graph knows"):
        from_networkx(graph, id_column="club")
    with pytest.raises(DataError, match="Expected edges with an attribute 'nope'"):
        from_networkx(graph, weight_column="nope")
    with pytest.raises(DataError, match=r"Expected nodes in the graph \(got none\)"):
        from_networkx(nx.Graph())


@pytest.mark.parametrize("sparse", [False, True])
def test_scipy_equals_files(sparse):
    features = sp.csr_array(X) if sparse else X
    d = from_scipy(adjacency(), features, Y, feature_names=["p", "q", "r"], ids=list("abcdefghi"))
    ref = reference()
    assert torch.equal(d.data.x.to_dense(), ref.data.x)
    assert torch.equal(d.data.edge_weight, ref.data.edge_weight)
    assert d.data.y.tolist() == ref.data.y.tolist()
    assert list(d.ids) == list("abcdefghi")
    assert d.feature_names == ("p", "q", "r")
    full = from_scipy(adjacency().toarray(), torch.from_numpy(X), Y)
    assert full.fingerprint() == ref.fingerprint()


def test_scipy_labels_and_errors():
    path = sp.coo_array(np.diag([1.0, 1.0], 1))
    names = from_scipy(path, np.eye(3), np.array(["b", None, "a"], dtype=object))
    assert names.classes == ("a", "b")
    assert names.data.y.tolist() == [1, -1, 0]
    several = from_scipy(path, y=np.array([[0.5, 1], [2, np.nan], [3, 4]]))
    assert several.task == "regression"
    assert several.feature_names == ("log_degree",)
    assert from_scipy(path, y=np.array([[0, 1.0], [1, 1], [0, np.nan]])).task == "multilabel"
    cases = [
        (np.ones((2, 3)), {}, r"a square adjacency \(got \(2, 3\)\)"),
        (path, {"features": np.eye(2)}, r"Expected features of 3 nodes \(got 2\)"),
        (path, {"y": [0, 1]}, r"Expected labels of 3 nodes \(got 2\)"),
        (path, {"ids": ["a", "a", "b"]}, "unique ids"),
        (-path, {}, "finite and >= 0"),
        (path, {"label_column": "y"}, "Expected no `label_column`: a matrix has no columns"),
        (path, {"tusk": "regression"}, r"Unknown option `tusk`; did you mean `task`"),
    ]
    for matrix, options, message in cases:
        with pytest.raises(DataError, match=message):
            from_scipy(matrix, **options)
