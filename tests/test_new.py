"""New nodes in the graph of a run: from files to answers, the same as in the grown graph."""

import json
import re
import shutil
import warnings

import numpy as np
import pyarrow
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

import longnn
from longnn.data import DataError, Source
from longnn.runs._new import grown
from longnn.store import prepare
from tests.commands import fail, succeed, without_report
from tests.commands import longnn as command
from tests.test_known import NODES, SETTINGS, answers, write

#: The counties that come tomorrow, and what they touch: old ones, each other, nothing.
NEW = [f"house {NODES + i}" for i in range(4)]
EDGES = [(NEW[0], "house 3"), (NEW[0], NEW[1]), ("house 7", NEW[1]), (NEW[2], "house 100")]


@pytest.fixture(scope="module", autouse=True)
def pages():
    with without_report():
        yield


def table_of_new(ids=NEW):
    rng = np.random.default_rng(5)
    return pyarrow.table(
        {"b": rng.normal(size=len(ids)), "id": ids, "a": rng.normal(size=len(ids))}
    )


def write_new(folder, nodes=None, edges=EDGES):
    folder.mkdir(parents=True)
    pyarrow.csv.write_csv(table_of_new() if nodes is None else nodes, folder / "nodes.csv")
    ends = {"target": [b for _, b in edges], "source": [a for a, _ in edges]}
    pyarrow.csv.write_csv(pyarrow.table(ends), folder / "edges.csv")
    return folder


@pytest.fixture(scope="module", params=["memory", "disk"])
def story(request, tmp_path_factory):
    """A run that uses known answers, the new nodes, and the whole grown graph in files."""
    place = tmp_path_factory.mktemp("street")
    street = write(place / "street", answers())
    options = {"memory": 1, "cache": place / "cache"} if request.param == "disk" else {}
    run = longnn.train(street, SETTINGS, place / "run", **options)
    assert run.trained.known[0].used
    new, whole = write_new(place / "tomorrow"), place / "whole"
    whole.mkdir()
    for name in ("nodes", "edges"):
        parts = [pyarrow.csv.read_csv(folder / f"{name}.csv") for folder in (street, new)]
        joined = pyarrow.concat_tables(parts, promote_options="default")
        pyarrow.csv.write_csv(
            joined,
            whole / f"{name}.csv",
        )
    given = ["--memory", "1", "--cache", place / "cache"] if options else []
    return place, longnn.runs.load_run(place / "run", **options), given


def same(a, b):
    """Predictions of the same nodes, whose labels need not be."""
    assert a["id"].to_pylist() == b["id"].to_pylist()
    for name in ("predicted", "low", "high"):
        np.testing.assert_allclose(a[name].to_numpy(), b[name].to_numpy(), rtol=1e-5, atol=1e-6)


def test_new_nodes_are_predicted_as_in_the_grown_graph(story):
    """By the command and in Python, known answers included; old ones where they are asked for."""
    place, run, given = story
    succeed("predict", place / "run", place / "whole", *given, "--output", place / "whole.parquet")
    whole = pyarrow.parquet.read_table(place / "whole.parquet")
    expected = whole.filter(pc.is_in(whole["id"], pyarrow.array(NEW)))
    result = command("predict", place / "run", "--add", place / "tomorrow", *given)
    assert result.exit_code == 0, result.output
    assert f"known answers: those of {NODES // 4 * 3} nodes of the run's graph" in result.stdout
    assert "New nodes without an edge are predicted by their columns: 1." in result.stderr
    same(pyarrow.parquet.read_table(place / "run" / "predictions-tomorrow.parquet"), expected)
    same(run.predict_new(place / "tomorrow"), expected)
    every = run.predict_new(place / "tomorrow", old=True)
    same(every, whole)
    assert every.filter(every["new"])["id"].to_pylist() == NEW
    alone = run.predict_new(place / "tomorrow", known_answers="none")
    assert not np.allclose(alone["predicted"], expected["predicted"])


def test_new_nodes_go_to_a_graph_that_has_moved_and_to_one_that_was_prepared(story, tmp_path):
    """Say where it is; of a prepared folder the files count. One row is enough, without labels."""
    place, run, given = story
    expected = run.predict_new(place / "tomorrow")
    shutil.copytree(place / "run", tmp_path / "run")
    shutil.copytree(place / "street", tmp_path / "moved")
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    record["data"]["source"] |= {"graph": str(tmp_path / "gone"), "nodes": None}
    (tmp_path / "run" / "record.json").write_text(json.dumps(record))
    how = ("--add", place / "tomorrow", "--output", tmp_path / "new.parquet", *given)
    line = fail("predict", tmp_path / "run", *how)
    assert re.search(
        r"gone: Expected the graph of the run.*longnn predict RUN GRAPH --add NEW", line
    )
    succeed("prepare", tmp_path / "moved", "--output", tmp_path / "prepared")
    for graph in ("moved", "prepared"):
        succeed("predict", tmp_path / "run", tmp_path / graph, *how)
        same(pyarrow.parquet.read_table(tmp_path / "new.parquet"), expected)
    one = write_new(tmp_path / "one", table_of_new(NEW[:1]), EDGES[:1])
    assert run.predict_new(one)["id"].to_pylist() == NEW[:1]


@pytest.mark.parametrize("prepared", [False, True])
def test_a_graph_that_has_changed_since_training_is_said_to(prepared, story, tmp_path):
    """Of a prepared folder it is the files that new nodes are added to."""
    place, run, given = story
    shutil.copytree(place / "street", tmp_path / "street")
    graph = tmp_path / "street"
    if prepared:
        graph = prepare(graph, output=tmp_path / "prepared").folder
    run = longnn.train(Source.resolve(graph), {**SETTINGS, "epochs": 1}, tmp_path / "run")
    how = ("--add", place / "tomorrow", "--output", tmp_path / "new.parquet", *given)
    said = "The files of the run's graph have changed since training"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.predict_new(place / "tomorrow")
    assert said not in command("predict", tmp_path / "run", *how).stderr
    with (tmp_path / "street" / "edges.csv").open("a") as file:
        file.write("house 1,house 9\n")
    assert said in command("predict", tmp_path / "run", *how).stderr
    with pytest.warns(UserWarning, match=said):
        longnn.runs.load_run(tmp_path / "run").predict_new(place / "tomorrow")


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (table_of_new(["x", "house 7"]), [], r"tomorrow/nodes\.csv, line 3, column 'id': .*"
         r"got 'house 7' again, first on line 9 of \S*street/nodes\.csv"),
        (table_of_new().drop(["b"]), [], r"tomorrow/nodes\.csv: Expected the columns of nodes\.csv "
         r"in every part \(got no 'b'\)"),
        (None, [("house 1", "nobody")], r"tomorrow/edges\.csv, line 2, .*got 'nobody'"),
    ],
)  # fmt: skip
def test_new_nodes_that_do_not_go_with_the_graph(story, tmp_path, nodes, edges, message):
    """The error names file, line and value of the new files."""
    place, run, given = story
    new = write_new(tmp_path / "tomorrow", nodes, edges or EDGES[:1])
    line = fail("predict", place / "run", "--add", new, *given)
    assert re.search(message, line)
    with pytest.raises(DataError, match=message):
        run.predict_new(new)


def test_what_new_nodes_cannot_be_added_to(story, tmp_path):
    place, run, _ = story
    new = place / "tomorrow"
    assert "Expected --add" in fail("predict", place / "run", "--old")
    assert "--add NEW" in fail("predict", place / "run", new)  # it is no graph of its own
    for source in (None, Source.resolve("csbm")):
        with pytest.raises(DataError, match=r"Expected a graph in files.*run\.predict\(graph\)"):
            grown(source, new)
    other = write_new(tmp_path / "other")
    pyarrow.parquet.write_table(table_of_new(), other / "nodes.parquet")
    (other / "nodes.csv").unlink()
    with pytest.raises(DataError, match=r"of the kind .*\(nodes\.csv; got nodes\.parquet\)"):
        run.predict_new(other)
    (other / "nodes.parquet").unlink()
    with pytest.raises(DataError, match="other: Expected a table of nodes where rows are added"):
        run.predict_new(other)
