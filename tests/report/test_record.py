"""A run folder is read whole, or the error says what is wrong with which file."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from longnn.records import RunRecord
from tests.report.examples import edit_record


@pytest.fixture
def folder(folders, tmp_path):
    """A copy a test may damage."""
    return Path(shutil.copytree(folders["single"], tmp_path / "run"))


def test_what_was_written_is_read(folder):
    run = RunRecord.read(folder)
    record = json.loads((folder / "record.json").read_text())
    assert (run.name, run.model, run.metric, run.missing) == ("run", "lon", "accuracy", ())
    written = record["repeats"][0]
    assert run.repeats[0].scores == written["scores"]
    assert run.repeats[0].split.train == 1624
    np.testing.assert_array_equal(run.filters[0].response, written["filters"][0]["response"])
    assert run.filters[0].learned == written["filters"][0]["learned"]
    assert run.score() is not None
    assert run.score("test", "macro_f1").mean == pytest.approx(
        written["scores"]["test"]["macro_f1"]
    )
    assert len(run.history["epoch"]) == written["epochs"]
    assert run.path.beta.shape[1:] == (11, 7)


def test_eigenvalues_outside_the_bulk_are_optional(folder):
    assert RunRecord.read(folder).data.outliers is None
    for values in ([0.1, 1.9], []):
        run = edit_record(folder, lambda record, v=values: record["data"].update(outliers=v))
        assert run.data.outliers.tolist() == values
        assert run.to_dict()["data"]["outliers"] == values
    expected = r"'data\.outliers' to be a list of numbers .*\(got \['x'\]\)"
    with pytest.raises(ValueError, match=expected):
        edit_record(folder, lambda record: record["data"].update(outliers=["x"]))


def test_history_by_repeat(runs):
    history = runs["ten"].history
    assert history.repeats == list(range(10))
    for index, repeat in enumerate(runs["ten"].repeats):
        np.testing.assert_array_equal(history.of(index)["epoch"], np.arange(1, repeat.epochs + 1))
    gcn, bern = runs["gcn"].history, runs["bern"].history  # empty cells are no numbers
    assert (gcn.has("amplitude"), bern.has("amplitude"), bern.has("a", "b")) == (False, True, False)


def test_no_record(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Expected a run folder, which holds a record\.js"):
        RunRecord.read(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        RunRecord.read(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", r"record\.json: Expected a JSON record .*line 1"),
        (b'{"longnn": "0.1.0", "conf', r"record\.json: Expected a JSON record .*breaks off"),
        (b"[1, 2]", r"record\.json: Expected a JSON object \(got \[1, 2\]\)"),
        (b"\xff\xfe\x00", r"record\.json: Expected JSON text in UTF-8"),
    ],
)
def test_damaged_text(folder, content, expected):
    (folder / "record.json").write_bytes(content)
    with pytest.raises(ValueError, match=expected) as caught:
        RunRecord.read(folder)
    assert "\n" not in str(caught.value)


def _set(*path, to):
    def change(record):
        for key in path[:-1]:
            record = record[key]
        if to is None:
            del record[path[-1]]
        else:
            record[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_set("repeats", to=None), r"'repeats' to be a list \(got nothing\)"),
        (_set("metric", to=3), r"'metric' to be text \(got 3\)"),
        (_set("data", to="cora"), r"'data' to be an object \(got 'cora'\)"),
        (_set("summary", "test", "accuracy", "mean", to="high"), r"test.accuracy.mean' to be"),
        (_set("repeats", 0, "filters", 0, "response", to=[[1], [2, 3]]), r"\[0\].response' to"),
        (_set("repeats", 0, "confusion", to=[[1, 2]]), r"of shape classes x classes"),
        (_set("data", "card", "nodes", to=10**400), r"'data.card.nodes' to be a whole number"),
        (_set("data", "density", "density", to=[1.0]), r"'data.density.density' to be a list of"),
    ],
)  # fmt: skip
def test_a_record_that_lacks_something(folder, change, expected):
    with pytest.raises(ValueError, match=r"record\.json: Expected .*" + expected) as caught:
        edit_record(folder, change)
    assert "\n" not in str(caught.value)


HEAD = "repeat,epoch,train_loss,val_loss,val_score,amplitude,a,b\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "Expected the columns repeat, epoch"),
        ("repeat,epoch\n0,1\n", "Expected the columns train_loss"),
        (HEAD + "0,1,2,3,4,5,6,7\n0,2,1.", "as many values as columns in line 3"),
        (HEAD + "0,1,x,3,4,5,6,7\n", "only numbers in line 2"),
        (HEAD + "0,1.5,2,3,4,5,6,7\n", "whole numbers as epoch"),
        (HEAD + "0,1,2,3,4,5,-1,7\n", "Expected a > -1"),
    ],
)
def test_damaged_history_is_left_out(folder, text, expected):
    (folder / "history.csv").write_text(text)
    run = RunRecord.read(folder)
    assert run.history is None
    assert "history.csv is damaged" in run.missing[0]
    assert expected in run.missing[0]


def test_damaged_filter_path_is_left_out(folder):
    file = folder / "filter_path.npz"

    def said():
        return RunRecord.read(folder).missing[0]

    file.write_bytes(file.read_bytes()[:2000])
    assert "filter_path.npz is damaged" in said()
    np.savez(file, epochs=np.arange(3), beta=np.ones((4, 2, 1)))
    assert "Expected beta of shape" in said()
    with file.open("wb") as stream:
        np.save(stream, np.ones(3))  # an array where an archive is expected
    assert "filter_path.npz is damaged" in said()
    np.savez(file, other=np.ones(3))
    assert "filter_path.npz is damaged" in said()


def test_a_pickle_in_the_filter_path_is_not_executed(folder):
    marker = folder / "executed"

    class Malicious:
        def __reduce__(self):
            return (Path.touch, (marker,))

    np.savez(folder / "filter_path.npz", epochs=np.array([Malicious()]), beta=np.ones((1, 2, 1)))
    assert RunRecord.read(folder).path is None
    assert not marker.exists()


@pytest.mark.parametrize("name", ["single", "ten", "gcn", "regression"])
def test_written_and_read_are_the_same(folders, name, tmp_path):
    """One class writes and reads: what it writes of what it read is what it read."""
    run = RunRecord.read(folders[name])
    (tmp_path / "copy").mkdir()
    copy = run.write(tmp_path / "copy")
    assert copy.folder == (tmp_path / "copy").resolve()
    again = RunRecord.read(tmp_path / "copy")
    assert json.dumps(again.to_dict()) == json.dumps(run.to_dict())
    for column, values in run.history.columns.items():
        np.testing.assert_array_equal(again.history[column], values)
    if run.path is not None:
        assert again.path is not None
        np.testing.assert_array_equal(again.path.beta, run.path.beta)


def test_numbers_that_are_none(folder):
    def change(record):
        record["repeats"][0]["scores"]["test"]["accuracy"] = None
        record["repeats"][0]["filters"][0]["response"][0][3] = float("inf")
        del record["seconds"]

    run = edit_record(folder, change)
    assert np.isnan(run.repeats[0].scores["test"]["accuracy"])
    assert np.isnan(run.filters[0].response[0, 3])
    assert run.seconds == {}
    for place, value in (("eigenvalues", float("inf")), ("density", 1e308)):
        with pytest.raises(ValueError, match=r"record\.json.*a density of the eigenvalues"):
            edit_record(folder, _set("data", "density", place, 3, to=value))
