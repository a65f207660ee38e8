"""Scores by a category of the nodes: they add up to the whole, in memory and on disk."""

import numpy as np
import pyarrow
import pyarrow.csv
import pytest

import longnn
from longnn.data import DataError, from_pandas
from longnn.runs import load_run
from tests.commands import fail, succeed, succeed_json, without_report
from tests.test_known import NODES, SETTINGS, TEST, answers, write

STATE = np.array(["", *("north" if i % 12 < 8 else "south" for i in range(1, NODES))])


@pytest.fixture(scope="module", params=["memory", "disk"])
def run(request, tmp_path_factory):
    """Houses of two states, which training is not told of; one house has none."""
    root = tmp_path_factory.mktemp("by")
    folder = write(root / "street", answers("classification"))
    table = pyarrow.csv.read_csv(folder / "nodes.csv")
    pyarrow.csv.write_csv(table.append_column("state", [STATE]), folder / "nodes.csv")
    source = longnn.Source.resolve(folder, options={"drop_columns": ["state"]})
    disk = {"memory": 1, "cache": root / "cache"} if request.param == "disk" else {}
    with without_report():
        run = longnn.train(source, SETTINGS, root / "run", **disk)
    assert run.dataset.backing.by_rows == (request.param == "disk")
    return load_run(run.folder, **disk)


def test_they_add_up_to_the_score_of_all(run):
    rows = run.scores_by("state").to_pylist()
    assert [row["state"] for row in rows] == ["north", "south"]  # the largest first
    counts = [row["test nodes"] for row in rows]
    assert counts == [int((STATE[TEST] == name).sum()) for name in ("north", "south")]
    whole = np.average([row["accuracy"] for row in rows], weights=counts)
    assert whole == pytest.approx(run.record.repeats[0].scores["test"]["accuracy"], abs=1e-6)


def test_numbers_of_many_values_are_cut_at_their_quartiles(run):
    rows = run.scores_by("a").to_pylist()
    assert len(rows) == 4
    assert sum(row["test nodes"] for row in rows) == TEST.sum()
    low, high = map(float, rows[0]["a"].split(" to "))
    assert low < high


def test_the_command_shows_them(run):
    shown = succeed("evaluate", run.folder, "--by", "state").splitlines()
    assert shown[0].split()[:3] == ["state", "test", "nodes"]
    assert shown[1].startswith("north ")
    found = succeed_json("evaluate", run.folder, "--by", "split")["categories"]
    assert [row["split"] for row in found] == ["test"]
    assert "(got the columns 'id', 'a', 'b'" in fail("evaluate", run.folder, "--by", "county")
    assert "at most 200 categories (got 320 in 'id')" in fail("evaluate", run.folder, "--by", "id")


def test_of_a_graph_in_memory_the_columns_that_are_features():
    frame = {"id": range(60), "kind": list("aabbab") * 10, "label": list("uvwuvw") * 10}
    edges = pyarrow.table({"source": range(59), "target": range(1, 60)})
    graph = from_pandas(edges, pyarrow.table(frame), name="tiny")
    run = longnn.train(graph, {"preset": "fast", "epochs": 2, "baselines": False})
    assert set(run.scores_by("kind")["kind"].to_pylist()) <= {"a", "b"}
    with pytest.raises(DataError, match=r"Expected a column of the nodes \(got 'town'.*: kind\)"):
        run.scores_by("town")
