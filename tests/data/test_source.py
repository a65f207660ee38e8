"""A graph's name, path and options: one rule, whoever asks."""

import json
import pickle
from pathlib import Path

import pytest
import torch

from longnn.data import DataError, Source, load
from longnn.data._synthetic import csbm
from tests.data.examples import EDGES, NODES

NAMED = ["roman-empire", "roman_empire", "Roman Empire", " ROMAN_EMPIRE "]


@pytest.mark.parametrize("text", NAMED)
def test_case_spaces_and_underscores_do_not_matter(text):
    source = Source.resolve(text)
    assert source == Source("named", "roman-empire")
    assert source.is_named


def test_a_name_wins_over_a_folder_and_a_path_is_never_a_name(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cora").mkdir()
    write("cora/edges.csv", EDGES)
    assert Source.resolve("cora") == Source("named", "cora")
    place = str((tmp_path / "cora").resolve())
    for graph in ("./cora", Path("cora"), tmp_path / "cora"):
        source = Source.resolve(graph)
        assert source == Source("files", place)
        assert not source.is_named
        assert source.load().num_edges == 3
    with_nodes = Source.resolve("cora/edges.csv", write("n.csv", NODES))
    assert with_nodes.graph == str(Path(place) / "edges.csv")
    assert with_nodes.nodes == str((tmp_path / "n.csv").resolve())
    monkeypatch.chdir("/")  # absolute: where the process stands does not matter any more
    assert with_nodes.load().num_features == 2


def test_a_path_need_not_exist_to_be_one():
    assert Source.resolve("nowhere/graph.csv").kind == "files"
    assert Source.resolve("graph.parquet").kind == "files"
    with pytest.raises(DataError, match=r"got 'digit'.*Did you mean digits.*Names: cora, "):
        Source.resolve("digit")


def test_the_dataset_knows_its_source(write):
    source = Source.resolve("csbm", options={"num_nodes": 40, "num_features": 4})
    dataset = source.load()
    assert dataset.source is source
    assert load("csbm", num_nodes=40, num_features=4).source == source
    assert csbm().source is None
    assert dataset.fingerprint() == csbm(num_nodes=40, num_features=4).fingerprint()


def test_ready_features(write):
    edges, nodes = write("e.csv", EDGES), write("n.csv", NODES)
    assert load("csbm", num_nodes=40, num_features=4).ready
    assert load("digits").ready
    assert load(edges, nodes, features="identity").ready
    assert not load(edges, nodes).ready
    assert not load(edges, features="degree").ready


@pytest.mark.parametrize(
    ("graph", "options", "expected"),
    [
        ("csbm", {"phi": "0.5", "num_nodes": "40"}, {"phi": 0.5, "num_nodes": 40}),
        ("csbm", {"phi": 1}, {"phi": 1.0}),
        ("cora", {"row_normalize": "false"}, {"row_normalize": False}),
        ("e.csv", {"feature_columns": "age, height"}, {"feature_columns": ["age", "height"]}),
        ("e.csv", {"feature_columns": ("a", "b")}, {"feature_columns": ["a", "b"]}),
        ("e.csv", {"feature_columns": 3}, {"feature_columns": ["3"]}),
        ("e.csv", {"label_column": 7, "name": 3}, {"label_column": ["7"], "name": "3"}),
        ("e.csv", {"label_column": "price, rent"}, {"label_column": ["price", "rent"]}),
        ("e.csv", {"label_column": None}, {"label_column": None}),
        ("e.csv", {"directed": "True", "task": "regression"}, None),
        ("e.csv", {"directed": "Auto"}, {"directed": "auto"}),
        ("chameleon", {"directed": "true"}, {"directed": True}),
    ],
)
def test_options_as_typed_on_a_command_line(graph, options, expected):
    expected = {"directed": True, "task": "regression"} if expected is None else expected
    found = Source.resolve(graph, options=options).options
    assert found == expected
    assert {k: type(v) for k, v in found.items()} == {k: type(v) for k, v in expected.items()}


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        ("csbm", {"nodes": 3}, r"Unknown data option `nodes` of csbm \(it has phi, num_nodes, .*"
         r"did you mean `num_nodes`\?"),
        ("cora", {"normalize": True}, r"of cora \(it has row_normalize, directed\); did you mean"),
        ("e.csv", {"label_col": "x"}, "did you mean `label_column`"),
        ("csbm", {"phi": "high"}, r"Expected data options of another type \(got phi='high'"),
        ("csbm", {"num_nodes": 2.5}, r"got num_nodes=2.5: a whole number is needed"),
        ("csbm", {"num_nodes": True}, "a whole number is needed"),
        ("csbm", {"phi": [1]}, r"got phi=\[1\]: a number is needed"),
        ("csbm", {"phi": None}, "got phi=None"),
        ("e.csv", {"directed": "maybe"}, "true, false or auto is needed"),
        ("e.csv", {"directed": 1}, "true, false or auto is needed"),
        ("e.csv", {"id_column": ["x"]}, "text is needed"),
        ("e.csv", {"feature_columns": {"x"}}, "a list of text is needed"),
    ],
)  # fmt: skip
def test_refuses_options(graph, options, message):
    with pytest.raises(DataError, match=message):
        Source.resolve(graph, options=options)


@pytest.mark.parametrize(
    "source",
    [
        Source.resolve("cora", options={"row_normalize": False}),
        Source.resolve("digits", options={"neighbours": 4}),
        Source.resolve(Path("csbm"), options={"feature_columns": ["a"], "self_loops": True}),
        Source.resolve("e.csv", "n.csv", options={"label_column": "x"}),
    ],
)
def test_is_plain_data(source):
    assert Source.from_dict(json.loads(json.dumps(source.to_dict()))) == source
    assert pickle.loads(pickle.dumps(source)) == source


def test_reads_records_without_kind_and_refuses_others():
    old = {"graph": "cora", "nodes": None, "options": {}}
    assert Source.from_dict(old) == Source("named", "cora")
    old = {"graph": "/a/edges.csv", "nodes": "/a/n.csv", "options": {"label_column": "x"}}
    assert Source.from_dict(old) == Source(
        "files", "/a/edges.csv", "/a/n.csv", {"label_column": ["x"]}
    )
    with pytest.raises(DataError, match="with a `graph`"):
        Source.from_dict({"kind": "named"})


class TestLike:
    """A new graph is read as the run's own files were, except for what it need not have."""

    OPTIONS = {  # noqa: RUF012
        "label_column": "kind",
        "split_column": "part",
        "feature_columns": ["f"],
        "name": "old",
    }

    @pytest.fixture
    def old(self, write):
        nodes = write("n.csv", "id,f,g,kind,part\na,1,9,u,train\nb,2,9,v,val\nc,3,9,u,test\n")
        edges = write("e.csv", "source,target\na,b\nb,c\n")
        return Source.resolve(edges, nodes, options=self.OPTIONS)

    def load(self, write, old, header, **options):
        width = header.count(",")
        rows = "".join(f"{i},{','.join(str(k) for k in range(width))}\n" for i in "abc")
        edges, nodes = write("e2.csv", "source,target\na,c\n"), write("n2.csv", header + rows)
        return Source.resolve(edges, nodes, options=options).like(old).load()

    def test_labels_and_splits_may_be_absent(self, write, old):
        d = self.load(write, old, "id,g,f\n")
        assert d.feature_names == ("f",)
        assert not d.labelled.any()
        assert d.num_splits == 0

    def test_what_was_said_of_the_new_graph_must_hold(self, write, old):
        assert self.load(write, old, "id,f,sort\n", label_column="sort").classes == ("1",)
        with pytest.raises(DataError, match="Expected a label column 'sort'"):
            self.load(write, old, "id,g,f\n", label_column="sort")

    def test_without_a_node_table_there_is_no_label_column(self, write, tmp_path):
        torch.save({"edge_index": torch.tensor([[0], [1]]), "x": torch.eye(2)}, tmp_path / "g.pt")
        old = Source.resolve("e.csv", "n.csv", options={"label_column": "kind"})
        assert not Source.resolve(tmp_path / "g.pt").like(old).load().labelled.any()

    def test_names_take_nothing_over(self, old):
        cora = Source.resolve("cora")
        assert cora.like(old) is cora
        assert old.like(cora) is old

    def test_what_is_dropped_may_be_absent(self, write, old):
        old = Source.resolve(old.graph, old.nodes, options={"drop_columns": "secret,g"})
        assert self.load(write, old, "id,f,g\n").feature_names == ("f",)
        with pytest.raises(DataError, match="Expected a feature column 'secret'"):
            self.load(write, old, "id,g,f\n", drop_columns="secret")

    def test_only_some_can_be_optional(self, old):
        match = r"among label_column, split_column, time_column, .* \(got 'id_column'"
        with pytest.raises(DataError, match=match):
            load(old.graph, old.nodes, optional_columns="id_column")


def test_the_node_file_beside_the_edges_is_found_and_named(write, tmp_path):
    edges = write("edges.csv", EDGES)
    assert load(edges).source == Source("files", str(edges))
    nodes = write("nodes.tsv", NODES.replace(",", "\t"))
    found = load(edges)
    assert found.feature_names == ("size", "hue")
    assert "The nodes are those of nodes.tsv, beside the edges." in found.notes
    assert found.source == Source("files", str(edges), str(nodes))
    given = load(edges, nodes)
    assert given.fingerprint() == found.fingerprint()
    assert not any("beside" in note for note in given.notes)
    assert Source.from_dict(found.source.to_dict()).load().fingerprint() == found.fingerprint()
    other = write("other.csv", EDGES)  # only a file that is called edges has nodes beside it
    assert load(other).feature_names == ("log_degree",)
    write("nodes.csv", NODES)  # which of the two is not sure
    assert load(edges).feature_names == ("log_degree",)
