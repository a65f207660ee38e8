"""The user's files: every format gives the same graph, every flaw its own clear line."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from longnn.data import from_data, load
from longnn.data._files import load_files
from tests.data.examples import (
    EDGES,
    NODES,
    PAIRS,
    WEIGHT,
    N,
    X,
    Y,
    adjacency,
    columns,
    reference,
    write_table,
)
from tests.data.test_reader_suite import assert_alike, both


@pytest.mark.parametrize(
    ("edge_format", "node_format"),
    [
        *((".csv", ".csv"), (".tsv", ".parquet"), (".parquet", ".tsv"), (".csv", ".npz")),
        *((".npz", ".npz"), (".npz", ".csv"), (".mtx", ".parquet"), (".mtx", ".npz")),
    ],
)
def test_every_format_gives_the_same_graph(edge_format, node_format, tmp_path):
    """Of edges as of nodes; a matrix beside a table is one more."""
    edges, nodes = columns()
    edge_path, node_path = tmp_path / f"edges{edge_format}", tmp_path / f"nodes{node_format}"
    if edge_format == ".npz":
        sp.save_npz(edge_path, adjacency())
    elif edge_format == ".mtx":
        scipy.io.mmwrite(edge_path, adjacency(), symmetry="symmetric")
    else:
        write_table(edge_path, edges)
    if node_format == ".npz":
        np.savez(node_path, x=X, y=Y)
    else:
        write_table(node_path, nodes)
    d = load_files(edge_path, node_path)
    assert d.fingerprint() == reference().fingerprint()
    assert list(d.ids) == list(range(N))
    assert d.classes == ("0", "1", "2")
    assert d.fingerprint() == load_files(tmp_path).fingerprint() == load(tmp_path).fingerprint()
    assert load(str(edge_path), node_path, name="mine").name == "mine"
    assert d.name == tmp_path.name


@pytest.mark.parametrize("form", ["data", "dict", "processed", "npz"])
def test_one_file_with_everything(form, tmp_path):
    ref = reference()
    path = tmp_path / ("graph.npz" if form == "npz" else "graph.pt")
    mask = np.arange(N) < 4
    if form == "npz":
        np.savez(path, x=X, y=Y, edge_index=PAIRS.T, edge_weight=WEIGHT, train_mask=mask)
    else:
        data = ref.data.clone()
        data.train_mask = torch.from_numpy(mask)
        plain = dict(data)
        saved = {"data": Data(**data), "dict": plain}
        torch.save(saved.get(form, (plain, None, Data)), path)
    d = load_files(path)
    assert d.fingerprint() == ref.fingerprint()
    assert d.data.train_mask.tolist() == mask.tolist()
    assert d.name == "graph"
    assert d.default_split == "own"


def test_sparse_features_and_text_labels(tmp_path):
    sp.save_npz(tmp_path / "edges.npz", adjacency())
    sp.save_npz(tmp_path / "nodes.npz", sp.csr_array(X))
    d = load_files(tmp_path / "edges.npz", tmp_path / "nodes.npz")
    torch.testing.assert_close(d.data.x, torch.from_numpy(X).float())
    np.savez(tmp_path / "nodes.npz", x=X, y=np.array(list("abcabcabc")))
    d = load_files(tmp_path / "edges.npz", tmp_path / "nodes.npz")
    assert d.classes == ("a", "b", "c")
    assert d.data.y.tolist() == [0, 1, 2] * 3


def test_adjacency_of_ones_has_no_weights(tmp_path):
    ones = adjacency()
    ones.data[:] = 1
    scipy.io.mmwrite(tmp_path / "g.mtx", ones, field="pattern")
    d = load_files(tmp_path / "g.mtx")
    assert d.data.get("edge_weight") is None
    assert d.num_edges == len(PAIRS)
    assert d.feature_names == ("log_degree",)


TWO_WAY = [[0, 1, 1, 2], [1, 0, 2, 1]]
PATH = "source,target\na,b\nb,c\n"
WEIGHTED = "source,target,weight\na,b,2\nb,a,2\nb,b,1\nb,c,0\na,c,1\nc,a,3\n"
COLUMNS = (
    "when,x1,x2,strength\n9,a,b,2\n9,b,c,3\n",
    "f,who,kind,part,g\n1,a,u,train,5\n2,b,v,test,6\n3,c,u,,7\n",
)
ENDS = {"source_column": "x1", "target_column": "x2", "id_column": "who"}
NAMED = {"label_column": "kind", "split_column": "part", "weight_column": "strength"}
SEVERAL = "id,f,red,round\na,1,1,true\nb,2,0,\nc,4,,False\n"
HINT = "when, strength; if one is the weight of an edge, name it with weight_column."
#: Edges, nodes, options, and what is read of them.
READ = {
    "named nodes": (EDGES, NODES, {}, {
        "ids": ["a", "b", "c", "d"], "classes": ("cat", "dog"), "y": [0, 1, -1, 0],
        "feature_names": ("size", "hue"), "x": [[1, 0.5], [2, 0.25], [3, -1], [40, 0]],
        "sets": ["train", "val", "", "test"], "edge_weight": None,
        "edge_index": [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]],
        "notes": ("All 3 edges were listed one way; each was made two-way.",),
    }),
    "named columns": (*COLUMNS, {**ENDS, **NAMED, "feature_columns": ["g"]}, {
        "x": [[5], [6], [7]], "feature_names": ("g",), "edge_weight": [2, 2, 3, 3],
        "classes": ("u", "v"), "sets": ["train", "test", ""],
        "note": "Columns of edges.csv not used: when.",
    }),
    "columns without a name": (*COLUMNS, ENDS, {"note": f"Columns of edges.csv not used: {HINT}"}),
    "weights": (WEIGHTED, None, {}, {
        "edge_index": [[0, 0, 1, 2], [1, 2, 0, 0]], "edge_weight": [2, 2, 2, 2],
        "note": "Edges of weight 0, which are none, were dropped: 1.",
    }),
    "weights and loops": (WEIGHTED, None, {"self_loops": True}, {"num_edges": 3}),
    "weights of arcs": (WEIGHTED, None, {"directed": True}, {
        "edge_index": [[0, 0, 1, 2], [1, 2, 0, 0]], "edge_weight": [2, 1, 2, 3],
    }),
    "several labels": (PATH, SEVERAL, {"label_column": ["red", "round"]}, {
        "task": "multilabel", "classes": ("red", "round"), "targets": (), "feature_names": ("f",),
        "y": [[1, 1], [0, None], [None, 0]],
    }),
    "several labels as numbers": (
        PATH, SEVERAL, {"label_column": ["red", "round"], "task": "regression"},
        {"task": "regression", "targets": ("red", "round"), "classes": ()},
    ),
    "several numbers": (
        PATH, "id;f;price;rent\na;1;1,5;3\nb;2;;2\nc;4;0;NA\n", {"label_column": ["price", "rent"]},
        {"task": "regression", "targets": ("price", "rent"), "y": [[1.5, 3], [None, 2], [0, None]]},
    ),
    "labels that may be missing": (
        PATH, "id,f,p\na,1,0\nb,2,1\nc,3,0\n",
        {"label_column": ["p", "q"], "optional_columns": ["label_column"]}, {"y": [-1, -1, -1]},
    ),
    "repeated edges are counted": (EDGES + "a,b\na,b\n", NODES, {"repeats": "count"}, {
        "edge_weight": [3, 3, 1, 1, 1, 1],
    }),
    "commas that could be either": ("0;1\n1;2\n", "0;1,5\n1;2,5\n2;3,5\n", {}, {
        "x": [[1.5], [2.5], [3.5]],
    }),
    "decimal commas": (
        "source;target;weight\na;b;1,5\nb;c;2\n", "id;f;y\na;1.234,5;0,5\nb;-,25;\nc;4;2,25\n", {},
        {"x": [[1234.5], [-0.25], [4]], "y": [0.5, None, 2.25], "edge_weight": [1.5, 1.5, 2, 2],
         "task": "regression"},
    ),
    "unknown ids are dropped": (
        "source,target,weight\na,b,2\nghost,a,7\nb,c,3\nc,ghost,9\nc,d,4\n", NODES,
        {"unknown_ids": "drop"}, {
            "edge_index": [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]],
            "edge_weight": [2, 2, 3, 3, 4, 4],
            "note": "Edges with an end that is not in nodes.csv were dropped: 2 of 5.",
        },
    ),
    "unknown ids are added": (
        "source,target\na,b\nghost,a\nb,c\nc,spirit\nc,d\n", NODES, {"unknown_ids": "add"}, {
            "ids": ["a", "b", "c", "d", "ghost", "spirit"], "y": [0, 1, -1, 0, -1, -1],
            "edge_index": [[0, 0, 1, 1, 2, 2, 2, 3, 4, 5], [1, 4, 0, 2, 1, 3, 5, 2, 0, 2]],
            "x": [[1, 0, 0.5, 0], [2, 0, 0.25, 0], [3, 0, -1, 0], [40, 0, 0, 0],
                  [2.5, 1, 0.125, 1], [2.5, 1, 0.125, 1]],
            "note": "Nodes that only edges.csv names were added, with gaps in all columns: 2. What "
            "is predicted of them and near them rests on medians.",
        },
    ),
    # Nodes that only edges name: as they appear, unless all are numbers of 64 bits.
    "words of edges": ("u,v\nz,a\nb,z\nc,d\n", None, {}, {"ids": ["z", "a", "b", "c", "d"]}),
    "numbers of edges": ("u,v\n10,9\n2,10\n", None, {}, {
        "ids": [2, 9, 10], "edge_index": [[0, 1, 2, 2], [2, 2, 0, 1]],
    }),
    "long numbers": (f"u,v\n{10**30},5\n", None, {}, {"ids": [str(10**30), "5"]}),
    "a negative zero": ("u,v\n-0,1\n", None, {}, {"ids": ["-0", "1"]}),
    "a plus": ("u,v\n+1,1\n", None, {}, {"ids": ["+1", "1"]}),
}  # fmt: skip
IDS = {"1 2 3": [1, 2, 3], "-1 0 20": [-1, 0, 20], "007 8 9": ["007", "8", "9"]}
IDS |= {"1 two 3.5": ["1", "two", "3.5"], "é 東京 NA": ["é", "東京", "NA"]}
for _text, _ids in IDS.items():  # those of the node file, and of the edges alone
    _a, _b, _c = _text.split()
    _edges, _nodes = f"u,v\n{_a},{_b}\n{_b} , {_c}\n", f"node,f\n{_a},1\n{_b},2\n{_c},3\n"
    READ[_text] = (_edges, _nodes, {}, {"ids": _ids, "edge_index": TWO_WAY})
    READ[f"{_text} of edges"] = (_edges, None, {}, {"ids": _ids})
#: Cells of the label, the task that is asked for, and task, classes and labels that are read.
LABELS = [
    ("b a ''", None, "classification", ("a", "b"), [1, 0, -1]),
    ("10 9 NA", None, "classification", ("9", "10"), [1, 0, -1]),
    ("1.0 0.0 ''", None, "classification", ("0", "1"), [1, 0, -1]),
    ("0.5 2 ''", None, "regression", (), [0.5, 2.0, None]),
    ("3 4 ''", "regression", "regression", (), [3.0, 4.0, None]),
    ("0.5 2 0.5", "classification", "classification", ("0.5", "2.0"), [0, 1, 0]),
    ("1 x 2", None, "classification", ("1", "2", "x"), [0, 2, 1]),
    ("'' '' ''", None, "classification", (), [-1, -1, -1]),
]
for _text, _asked, _task, _classes, _y in LABELS:
    _cells = zip("abc", _text.replace("''", "_").split(), strict=True)
    _nodes = "id,f,class\n" + "".join(f"{i},1,{cell.strip('_')}\n" for i, cell in _cells)
    _expected = {"task": _task, "classes": _classes, "y": _y}
    READ[f"labels {_text} {_asked}"] = (PATH, _nodes, {"task": _asked}, _expected)


def plain(tensor):
    """A tensor as lists, with None where there is no number."""
    if tensor is None:
        return None
    values = np.array(tensor.tolist(), dtype=object)
    return np.where(values != values, None, values).tolist()


@pytest.mark.parametrize("name", READ)
def test_what_is_read(name, write, tmp_path):
    """From memory and from disk."""
    edges, nodes, options, expected = READ[name]
    write("edges.csv", edges)
    if nodes is not None:
        write("nodes.csv", nodes)
    d, disk = both(tmp_path, options, tmp_path.parent / f"{tmp_path.name}-made")
    assert_alike(d, disk)
    masks = [(role, d.data.get(f"{role}_mask")) for role in ("train", "val", "test")]
    for field, value in expected.items():
        if field == "note":
            assert value in d.notes
        elif field == "sets":
            in_role = [{k for k, mask in masks if mask[i]} for i in range(d.num_nodes)]
            assert in_role == [{role} if role else set() for role in value]
        elif field in ("x", "y", "edge_index", "edge_weight"):
            assert plain(d.data.get(field)) == value
        else:
            found = getattr(d, field)
            assert (list(found) if field == "ids" else found) == value


def test_integer_column_made_float_by_a_null_still_matches(tmp_path):
    pq.write_table(pa.table({"s": [1.0, 2.0], "t": [2.0, 3.0]}), tmp_path / "edges.parquet")
    nodes = {"id": [1, 2, 3], "f": [1, 2, 3], "label": [5.0, None, 7.0]}
    pq.write_table(pa.table(nodes), tmp_path / "nodes.parquet")
    d = load_files(tmp_path)
    assert list(d.ids) == [1, 2, 3]
    assert d.num_edges == 2
    assert d.task == "classification"
    assert d.classes == ("5", "7")
    assert d.data.y.tolist() == [0, -1, 1]


def test_parquet_types(tmp_path):
    nodes = pa.table(
        {
            "id": pa.array(["a", "b"]).dictionary_encode(),
            "vec": pa.array([[1.0, 2.0], [3.0, 4.0]]),
            "flag": [True, False],
            "n": pa.array([1, 2], pa.uint8()),
        }
    )
    pq.write_table(nodes, tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    d = load_files(tmp_path)
    assert d.data.x.tolist() == [[1, 2, 1, 1], [3, 4, 0, 2]]
    assert d.feature_names == ("vec[0]", "vec[1]", "flag", "n")


def test_many_whole_numbers_are_a_quantity(write):
    rows = "".join(f"n{i},1,{1900 + i}\n" for i in range(150))
    nodes, edges = write("n.csv", "id,f,y\n" + rows), write("e.csv", "source,target\nn0,n1\n")
    d = load_files(edges, nodes)
    assert d.task == "regression"
    assert any("150 distinct whole numbers" in note for note in d.notes)
    assert load_files(edges, nodes, task="classification").num_classes == 150


@pytest.mark.parametrize(("distinct", "told"), [(20, 0), (21, 1)])
def test_whole_numbers_that_may_be_a_quantity_are_said(distinct, told, write):
    rows = "".join(f"n{i},1,{18 + i % distinct}\n" for i in range(60))
    nodes, edges = write("n.csv", "id,f,age\n" + rows), write("e.csv", "source,target\nn0,n1\n")
    said = "distinct whole numbers and was taken for classes; use task='regression'"
    d = load_files(edges, nodes, label_column="age")
    assert (d.task, d.num_classes) == ("classification", distinct)
    assert sum(f"Column 'age' holds {distinct} {said}" in note for note in d.notes) == told
    for task in ("classification", "regression"):  # whoever chooses knows
        chosen = load_files(edges, nodes, label_column="age", task=task)
        assert not any("distinct whole numbers" in note for note in chosen.notes)
    same = Data(x=d.data.x, edge_index=d.data.edge_index, y=d.data.y)
    assert sum(f"`y` holds {distinct} {said}" in note for note in from_data(same).notes) == told
    named = from_data(same, classes=[str(i) for i in range(distinct)])
    assert not any("distinct whole numbers" in note for note in named.notes)


def test_made_features(write):
    edges = write("e.csv", "source,target\na,b\nb,c\nb,a\nc,c\n")
    degree = load_files(edges, features="degree")
    torch.testing.assert_close(degree.data.x[:, 0].expm1(), torch.tensor([1.0, 2, 1]))
    assert torch.equal(load_files(edges, features="identity").data.x, torch.eye(3))
    auto = load_files(edges, write("n.csv", "id,label\na,x\nb,y\nc,x\n"))
    assert torch.equal(auto.data.x, degree.data.x)
    assert "There are no features: log(1 + degree) is used." in auto.notes
    chosen = load_files(edges, write("n2.csv", "id,f\na,text\nb,y\nc,x\n"), features="degree")
    assert torch.equal(chosen.data.x, degree.data.x)  # the text column is not looked at
