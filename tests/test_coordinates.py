"""Nodes with coordinates are on a map, in the report and in the explorer; others are not."""

import base64

import numpy as np
import pyarrow
import pyarrow.csv
import pytest

import longnn
from longnn.data import load
from longnn.data._coordinates import coordinates_of
from longnn.explorer import collect
from tests.test_known import NODES, SETTINGS, TEST, answers, write

TURN = 2 * np.pi * np.arange(NODES) / NODES


def placed(folder, task="regression", **columns):
    """A street with two more columns."""
    write(folder, answers(task))
    table = pyarrow.csv.read_csv(folder / "nodes.csv")
    for name, values in columns.items():
        table = table.append_column(name, [values])
    pyarrow.csv.write_csv(table, folder / "nodes.csv")
    return folder


@pytest.mark.parametrize(
    ("x", "y", "names"),
    [
        ("Lon", "LAT", ("Lon", "LAT")),
        ("longitude", "latitude", ("longitude", "latitude")),
        ("x", "y", None),  # y is what is to be predicted
        ("X", "northing", None),
        ("lonely", "late", None),
    ],
)
def test_columns_are_recognised_by_their_names_alone(tmp_path, x, y, names):
    columns = {x: 10 * np.cos(TURN) - 70, y: 5 * np.sin(TURN) + 42}
    graph = load(placed(tmp_path / "street", **columns), label_column="y" if y == "y" else "label")
    found = coordinates_of(graph)
    assert (None if found is None else found[:2]) == names
    if found is not None:
        assert found.xy == pytest.approx(np.stack([*columns.values()], 1), abs=1e-4)
        assert found.aspect == pytest.approx(1 / np.cos(np.radians(42)), rel=1e-3)


def test_impossible_degrees_and_one_point_are_no_map(tmp_path):
    far = placed(tmp_path / "far", lon=np.cos(TURN), lat=1000 * np.sin(TURN))
    assert coordinates_of(load(far)) is None
    words = placed(tmp_path / "words", lon=np.cos(TURN), lat=["north", "south"] * (NODES // 2))
    assert coordinates_of(load(words)) is None


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("place", ["memory", "disk"])
def test_the_report_and_the_explorer_have_a_map(tmp_path, task, place):
    folder = placed(tmp_path / "street", task, easting=900 * np.cos(TURN), northing=np.sin(TURN))
    disk = {"memory": 1, "cache": tmp_path / "cache"} if place == "disk" else {}
    run = longnn.train(folder, SETTINGS, tmp_path / "run", **disk)
    errors = run.record.repeats[0].error_map
    assert errors.x == pytest.approx(900 * np.cos(TURN[TEST]), abs=1e-3)
    wrong = errors.error != 0
    if task == "classification":
        right = run.record.repeats[0].scores["test"]["accuracy"]
        assert 1 - wrong.mean() == pytest.approx(right)
    page = (run.folder / "report.html").read_text()
    assert 'id="error_map"' in page
    assert "Test nodes at their easting and northing." in page
    (graph,) = collect([run])["graphs"]
    drawn = np.frombuffer(base64.b64decode(graph["position"]["data"]), "f4").reshape(-1, 2)
    assert drawn[:, 0] == pytest.approx(np.cos(TURN), abs=1e-3)
    assert drawn[:, 1] == pytest.approx(-np.sin(TURN) / 900, abs=1e-3)  # the page counts down
