"""The second day of a run: labels that came later are scored, and no others; what lies outside what
was trained on is said, in memory and on disk, by the command and in Python."""

import dataclasses
import re

import numpy as np
import pyarrow
import pyarrow.csv
import pytest
import torch

import longnn
from longnn.data import DataError, load
from longnn.metrics import score_numbers
from tests.commands import fail, succeed_json, without_report
from tests.commands import longnn as command
from tests.test_known import NODES, SETTINGS, answers, write

#: Houses whose answers come later.
LATE = np.arange(NODES) % 10 == 5


@pytest.fixture(scope="module", autouse=True)
def pages():
    with without_report():
        yield


def change(folder, target, **columns):
    """The street in another folder, columns replaced."""
    table = pyarrow.csv.read_csv(folder / "nodes.csv")
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pyarrow.array(values))
    target.mkdir()
    pyarrow.csv.write_csv(table, target / "nodes.csv")
    (target / "edges.csv").write_bytes((folder / "edges.csv").read_bytes())
    return target


@pytest.fixture(scope="module", params=["memory", "disk"])
def street(request, tmp_path_factory):
    """A run of before the late answers, these answers, and the options of its backing."""
    place = tmp_path_factory.mktemp("street")
    whole = write(place / "whole", answers())
    early = change(whole, place / "early", label=np.where(LATE, np.nan, answers()))
    text = (early / "nodes.csv").read_text()
    (early / "nodes.csv").write_text(text.replace(",nan,", ",,"))
    options = {"memory": 1, "cache": place / "cache"} if request.param == "disk" else {}
    longnn.train(early, {**SETTINGS, "repeat": 2}, place / "run", **options)
    given = ["--memory", "1", "--cache", place / "cache"] if options else []
    return place, longnn.runs.load_run(place / "run", **options), given


def test_labels_that_came_later_are_scored_and_no_others(street):
    """As the predictions of these nodes are; the run's own labels change nothing."""
    place, run, given = street
    predicted = run.predictions(0)["predicted"].to_numpy()
    lies = np.where(LATE, answers(), 99.0 + np.arange(NODES))  # nobody may look at the others
    later = change(place / "whole", place / "later", label=lies)
    plain = succeed_json("evaluate", place / "run", later, *given)
    expected = score_numbers(*(torch.tensor(v[LATE]) for v in (predicted, answers())))
    for name, value in expected.items():
        assert plain["repeats"][0]["scores"]["test"][name] == pytest.approx(value, rel=1e-4)
    assert not plain["repeats"][0]["scores"]["train"]
    assert f"{LATE.sum()} nodes whose label came later" in plain["scored"]
    assert f"{(~LATE).sum()} nodes whose label the run knew" in plain["scored"]
    printed = command("evaluate", place / "run", later, *given)
    assert "came later" in printed.stdout
    assert "outside" not in printed.output
    scores, summary = run.evaluate(load(later))
    assert scores[1]["test"] == pytest.approx(plain["repeats"][1]["scores"]["test"], rel=1e-4)
    assert summary["test"]["r2"].mean == pytest.approx(plain["summary"]["test"]["r2"]["mean"])


def test_no_label_that_came_later_is_an_error_that_says_so(street):
    place, run, given = street
    line = fail("evaluate", place / "run", place / "early", *given)
    assert re.search(r"Expected labels that the run did not know \(got 288 nodes .*--another", line)
    plain = succeed_json("evaluate", place / "run", place / "early", "--another", *given)
    assert plain["scored"].startswith("288 nodes")
    assert "--truncate without a graph" in fail(
        "evaluate", place / "run", place / "early", "--truncate"
    )
    assert "Expected a graph" in fail("evaluate", place / "run", "--another")
    new = change(place / "whole", place / "unlabelled", label=[None] * NODES)
    assert "Expected labels" in fail("evaluate", place / "run", new, *given)
    with pytest.raises(DataError, match=r"labels for regression.*task=regression"):
        run.evaluate(load(place / "whole", label_column="split", task="classification"))


def test_a_run_forgets_no_label_where_its_own_files_get_more(street, tmp_path):
    """Its files are written over: what it knew is kept with it."""
    place, _, _ = street
    longnn.train(
        change(place / "early", tmp_path / "street", a=np.arange(NODES) / NODES),
        SETTINGS,
        tmp_path / "run",
    )
    (tmp_path / "street" / "nodes.csv").write_bytes((place / "whole" / "nodes.csv").read_bytes())
    plain = succeed_json("evaluate", tmp_path / "run", tmp_path / "street")
    assert plain["scored"].startswith(f"{LATE.sum()} nodes whose label came later")


def test_what_lies_outside_is_said_and_nothing_else(street):
    """A column and the degrees in their own units; nothing of the graph that was trained on."""
    place, run, given = street
    a = pyarrow.csv.read_csv(place / "whole" / "nodes.csv")["a"].to_numpy()
    far = a.copy()
    far[:32] = a.max() + 1000
    moved = change(place / "whole", place / "moved", a=far)
    extra = "".join(f"house 9,house {i}\n" for i in range(20, 60, 2))
    with (moved / "edges.csv").open("a") as file:
        file.write(extra)
    words = r"1 of 3 columns lies outside what was trained on: a "
    words += rf"\(10 % of nodes above {a.max():,.6g}\)\."
    to = ("--output", place / "out.parquet")
    for arguments in (("predict", place / "run", moved, *to), ("evaluate", place / "run", moved)):
        result = command(*arguments, *given)
        assert result.exit_code == 0, result.output
        assert re.search(words, result.stderr)
    run.predict(load(moved))
    assert re.fullmatch(words, run.outside)
    for graph in ((), (place / "whole",)):
        result = command("predict", place / "run", *graph, *to, *given)
        assert "outside" not in result.output


def test_of_a_graph_that_has_grown_the_new_nodes_are_judged(street):
    """One of two new nodes is half, however many old ones there are."""
    place, run, given = street
    new = place / "joiners"
    new.mkdir()
    (new / "nodes.csv").write_text("id,a,b\nx,0.1,0.2\ny,77,0.1\n")
    edges = "".join(f"x,house {i}\n" for i in range(0, NODES, 10))
    (new / "edges.csv").write_text("source,target\n" + edges)
    result = command("predict", place / "run", "--add", new, *given)
    assert "2 of 3 columns lie outside what was trained on: a (50 % of nodes above" in result.stderr
    assert re.search(
        r"number of neighbours \(50 % of nodes above \d, 50 % .* below 2\)", result.stderr
    )
    run.predict_new(new)
    assert run.outside.startswith("2 of 3 columns")
    one = run.predict_one({"a": -50, "b": 0}, ["house 3", "house 9"])
    assert one["outside"].startswith("1 of 3 columns lies outside what was trained on: a (100 %")


def test_a_class_that_the_run_does_not_know_is_counted(tmp_path):
    y = answers("classification")
    folder = write(tmp_path / "street", y)
    text = (folder / "nodes.csv").read_text()
    lines = text.splitlines()
    rows = enumerate(lines[1:])
    early = [re.sub("low|high", "", line) if LATE[i] else line for i, line in rows]
    (folder / "nodes.csv").write_text("\n".join([lines[0], *early]))
    longnn.train(folder, SETTINGS, tmp_path / "run")
    rows = enumerate(lines[1:])
    late = [line.replace("high", "strange") if LATE[i] else line for i, line in rows]
    (folder / "nodes.csv").write_text("\n".join([lines[0], *late]))
    plain = succeed_json("evaluate", tmp_path / "run", folder)
    strange = int((LATE & (y == 1)).sum())
    assert f"{strange} nodes of a class unknown to it" in plain["scored"]
    assert plain["scored"].startswith(f"{int(LATE.sum()) - strange} node")


def test_a_run_from_before_reads_its_graph_again(tmp_path):
    """A weights file of version 0.13 says nothing of what was seen."""
    folder = write(tmp_path / "street", answers())
    longnn.train(folder, SETTINGS, tmp_path / "run")
    run = longnn.runs.load_run(tmp_path / "run")
    run.trained = dataclasses.replace(run.trained, seen=None)
    with pytest.raises(DataError, match="Expected labels that the run did not know"):
        run.evaluate(load(folder))
    assert run.outside == ""
