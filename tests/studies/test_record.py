"""Records go on where they were; tables come out in three forms; pages are filled from records."""

import csv
import io
import types

import pytest

from longnn.studies import _paper as paper
from longnn.studies._record import Record, read_record
from longnn.studies._table import Table


def test_a_part_is_computed_once(tmp_path):
    path, calls = tmp_path / "record.json", []

    def compute():
        calls.append(1)
        return {"loss": 0.5}

    for _ in range(2):
        part = Record(path, {"degree": 10}).part("low", compute)
        assert part["loss"] == 0.5
    assert len(calls) == 1
    record = read_record(path)
    assert record["machines"][record["parts"]["low"]["made"]["machine"]]["torch"]


def test_an_interrupted_part_leaves_the_others(tmp_path):
    record = Record(tmp_path / "record.json", {})
    record.part("low", lambda: {"loss": 1.0})
    with pytest.raises(KeyboardInterrupt):
        record.part("high", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    assert set(read_record(tmp_path / "record.json")["parts"]) == {"low"}


def test_a_record_of_other_settings_is_refused(tmp_path):
    Record(tmp_path / "record.json", {"degree": 10}).part("low", dict)
    with pytest.raises(ValueError, match="changed: degree"):
        Record(tmp_path / "record.json", {"degree": 5})


TABLE = Table("losses", "Loss in % of 1.", ["filter", "a_b"], [["|sin|", "**1 ± 2**"], ["x", "3"]])


def test_a_table_in_three_forms():
    assert TABLE.to_markdown().splitlines()[2] == "| \\|sin\\| | **1 ± 2** |"
    assert r"\textbf{1 $\pm$ 2}" in TABLE.to_latex()
    assert r"Loss in \% of 1." in TABLE.to_latex()
    assert list(csv.reader(io.StringIO(TABLE.to_csv())))[1] == ["|sin|", "1 ± 2"]


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="2 cells"):
        Table("t", "", ["x", "y"], [["1"]])


def test_a_page_is_filled_and_stays_filled(tmp_path, monkeypatch):
    fake = types.SimpleNamespace(tables=lambda folder: [TABLE])
    monkeypatch.setattr(paper, "get_experiment", lambda name: fake)
    text = "Before\n<!-- table filters/losses -->\nold\n<!-- end -->\nafter\n"
    filled = paper.fill_page(text, tmp_path)
    assert "old" not in filled
    assert "| x | 3 |" in filled
    assert filled.endswith("after\n")
    assert paper.fill_page(filled, tmp_path) == filled
    with pytest.raises(ValueError, match="losses"):
        paper.fill_page(text.replace("filters/losses", "filters/other"), tmp_path)


def test_an_unknown_experiment_names_the_known():
    with pytest.raises(ValueError, match="overpassing"):
        paper.get_experiment("overpasing")


def test_a_choice_must_be_known(tmp_path):
    context = paper.Context(tmp_path, datasets=["cora"])
    assert context.choose("datasets", ["cora", "texas"]) == ["cora"]
    assert context.choose("models", ["lon"]) == ["lon"]
    with pytest.raises(ValueError, match="texas"):
        context.choose("datasets", ["texas"])
