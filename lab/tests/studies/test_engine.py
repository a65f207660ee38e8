"""The engine: records continue where they stopped, pages are filled, ``python -m lab study`` runs.

Small studies stand in place of ours: files in a folder, of which nothing else has to know.
"""

import importlib
import json
import sys

import pytest

from lab import studies
from lab.records import Record, without_retired
from lab.studies import Context, ResultTable, get_study, sorted_studies
from lab.studies._engine import compute_cells, fill_page, read_records
from lab.tests.commands import fail, run, succeed

HERE = {"cpu": "any", "gpu": None}
PLAN = {"degree": 10}


def loss(value):
    return lambda: {"loss": value, "note": None}


def test_a_cell_is_kept_with_its_machine_and_copied_with_it(tmp_path):
    one = Record(tmp_path / "one.json", PLAN)
    one.add("low", loss(0.5), machine={"cpu": "first"})
    other = Record(tmp_path / "other.json", PLAN)
    other.add("high", loss(2.0), machine={"cpu": "second"})
    other.take("low", one)
    again = Record(tmp_path / "other.json", PLAN)
    assert list(again) == ["high", "low"]
    assert again["low"]["loss"] == 0.5
    assert "note" not in again["low"], "what is None is left out"
    assert again.machine("low") == {"cpu": "first"}
    assert again["low"]["made"]["seconds"] >= 0
    machine = Context(tmp_path, device="cpu").machine()
    assert machine["torch"]
    assert not {"load", "threads"} & set(machine)


def test_a_record_of_another_plan_is_refused(tmp_path):
    path = tmp_path / "record.json"
    Record(path, PLAN).add("low", loss(1.0), machine=HERE)
    with pytest.raises(ValueError, match="changed: degree"):
        Record(path, {"degree": 5})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "damaged at line 1"),
        ("{}", "'plan' to be an object"),
        ('{"plan": {}, "cells": {}}', r"record.json: Expected a cell 'low'"),
        ('{"plan": {}, "cells": {"low": {"x": 1}}}', r"record.json: low: Expected 'test' \(got x"),
        ('{"plan": {}, "cells": {"low": {"test": "x"}}}', "low.test: Expected a list of numbers"),
    ],
)
def test_a_damaged_record_is_refused_in_one_sentence(text, message, tmp_path):
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        Record(tmp_path / "record.json")["low"].scores("test")


def test_retired_names_are_dropped_where_they_mean_nothing_and_stay_in_the_file(tmp_path):
    assert without_retired([{"wd_basis": 0.1, "reversed_sign": False}]) == [{"wd_basis": 0.1}]
    path = tmp_path / "record.json"
    cells = {"low": {"config": {"wd_basis": 0.0, "degree": 4}, "made": {"machine": 0}}}
    path.write_text(json.dumps({"plan": {"wd_basis": 0.0}, "machines": [HERE], "cells": cells}))
    record = Record(path, {})
    assert record["low"]["config"] == {"degree": 4}
    record.add("high", loss(1.0), machine=HERE)
    assert json.loads(path.read_text())["cells"]["low"] == cells["low"]


TABLE = ResultTable("losses", "Loss in %.", ["filter", "a_b"], [["|sin|", "**1 ± 2**"]])


def test_a_page_is_filled_and_stays_filled():
    text = (
        "Before\n<!-- table toy/losses -->\nold\n<!-- end -->\n\n<!-- text toy\n"
        "- A {count!w} on {on!l}.\n- It loses {gain!n:.1f} "
        + "points " * 20
        + "\n-->\n<!-- end -->\nafter\n"
    )
    facts = {"toy": {"count": 9, "gain": -2.04, "on": ["cora", "texas"]}}
    fill = lambda page: fill_page(page, {"toy": [TABLE]}, facts.__getitem__)  # noqa: E731
    filled = fill(text)
    assert "old" not in filled
    assert "| \\|sin\\| | **1 ± 2** |" in filled
    assert "\n- A nine on Cora and Texas.\n- It loses 2.0 points" in filled
    assert all(len(line) <= 100 for line in filled.splitlines() if not line.startswith("- It"))
    assert "\n  points" in filled, "an item of a list goes on under its own text"
    assert filled.endswith("after\n")
    assert fill(filled) == filled
    with pytest.raises(ValueError, match="losses"):
        fill(text.replace("toy/losses", "toy/other"))
    with pytest.raises(ValueError, match="'lost'"):
        fill(text.replace("{count!w}", "{lost}"))


TOY = """
from lab.studies import Cell, ResultTable
from lab.studies._engine import read_record

TITLE = "The {name}"
ORDER = {order}
asked, computed = [], []


def cells(context):
    asked.append(context)
    for name in context.choose("datasets", ["cora", "texas"]):
        def compute(name=name):
            computed.append(name)
            if name in (context.models or ()):
                raise KeyboardInterrupt
            return {{"test": [0.5]}}
        values = yield Cell("record", {{"quick": context.quick}}, name, compute, borrow="toy_zero")
        assert values["test"] == [0.5]


def tables(folder):
    record = read_record(folder)
    wide = ["of", *(f"a wide column {{i}}" for i in range(12))]
    return [
        ResultTable("losses", "[%].", ["x", "y"], [[k, f"{{record[k]['test']}}"] for k in record]),
        ResultTable("wide", "Wide.", wide, [[str(i) * 5 for i in range(13)]]),
    ]


def figures(folder):
    return {{"losses": b"image"}}
"""


@pytest.fixture
def package(monkeypatch, tmp_path):
    """A package of two studies, one of which borrows what the other makes."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "toy_zero.py").write_text(TOY.format(name="first", order=1))
    also = TOY.format(name="second", order=0) + 'AFTER = ("toy_zero",)\n'
    (folder / "toy_also.py").write_text(also)
    (folder / "_private.py").write_text("raise AssertionError")
    monkeypatch.setattr(studies, "__path__", [str(folder)])
    for name in ("toy_zero", "toy_also", "toy_broken"):
        monkeypatch.delitem(sys.modules, f"lab.studies.{name}", raising=False)
    importlib.invalidate_caches()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return folder


def test_an_interrupted_study_continues_where_it_stopped(package, tmp_path):
    study = get_study("toy_zero")
    told = []
    context = Context(tmp_path / "toy_zero", device="cpu", models=["texas"], tell=told.append)
    with pytest.raises(KeyboardInterrupt):
        compute_cells(study, context)
    path = tmp_path / "toy_zero" / "records" / "record.json"
    assert list(Record(path)) == ["cora"]
    assert told == ["record, cora: 50.00 %"]
    finished = Context(tmp_path / "toy_zero", device="cpu", tell=told.append)
    compute_cells(study, finished)
    assert study.computed == ["cora", "texas", "texas"], "what is recorded is not computed again"
    before = path.read_bytes()
    compute_cells(study, finished)
    assert path.read_bytes() == before
    beside = get_study("toy_also")
    compute_cells(beside, Context(tmp_path / "toy_also", device="cpu", tell=told.append))
    assert beside.computed == [], "cells of the same plan are copied"
    compute_cells(beside, Context(tmp_path / "toy_also-quick", quick=True, tell=told.append))
    assert beside.computed == ["cora", "texas"], "but not those of another"
    cells = read_records(tmp_path / "toy_also", ["record"])["record"]
    assert cells["cora"]["made"] == Record(path)["cora"]["made"]


def test_a_study_is_run_and_shown(package, tmp_path):
    result = run("study", "toy_zero", "--device", "cpu", "--commit", "abc")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == [
        "toy_zero: record, cora: 50.00 %",
        "toy_zero: record, texas: 50.00 %",
    ]
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["cora", "[0.5]"] in lines
    assert [str(i) * 5 for i in range(13)] in lines, "a wide table is whole"
    assert "tables and figures: study-results/toy_zero\n" in result.stdout
    folder = tmp_path / "study-results" / "toy_zero"
    assert {path.name for path in (folder / "tables").iterdir()} >= {"losses.md", "losses.tex"}
    assert (folder / "figures" / "losses.png").read_bytes() == b"image"
    (context,) = get_study("toy_zero").asked
    assert (context.device, context.quick, context.commit) == ("cpu", False, "abc")
    assert Record(folder / "records" / "record.json")["cora"]["made"]["commit"] == "abc"


def test_quick_runs_never_mix_with_full_ones(package, tmp_path):
    succeed("study", "all", "--quick")
    folders = {path.name for path in (tmp_path / "study-results-quick").iterdir()}
    assert folders == {"toy_zero", "toy_also"}
    succeed("study", "toy_zero", "--quick", "--output", "mine-quick", "--data-dir", "raw")
    assert (tmp_path / "mine-quick" / "toy_zero" / "records" / "record.json").exists()
    context = get_study("toy_zero").asked[-1]
    assert (context.quick, context.data_dir) == (True, "raw")


def test_datasets_and_models_can_be_restricted(package):
    result = run("study", "toy_zero", "--dataset", "texas", "--model", "lon", "--model", "gpr")
    assert result.stderr == "toy_zero: record, texas: 50.00 %\n"
    assert get_study("toy_zero").asked[0].models == ["lon", "gpr"]
    assert "among cora, texas (got 'koala')" in fail("study", "toy_zero", "--dataset", "koala")


def test_the_list_is_in_the_order_in_which_studies_run(package):
    listed = [line.split()[0] for line in succeed("study", "--list").splitlines()]
    assert listed == ["name", "toy_zero", "toy_also"]
    file = package / "toy_zero.py"
    file.write_text(file.read_text() + 'AFTER = ("toy_also",)\n')
    importlib.invalidate_caches()
    del sys.modules["lab.studies.toy_zero"]
    assert "wait for each other" in fail("study", "all")


def test_errors_are_one_line(package):
    assert "all, toy_also, toy_zero (got none)" in fail("study")
    assert "all, toy_also, toy_zero (got 'toy')" in fail("study", "toy")
    (package / "toy_broken.py").write_text("import longnn.nowhere\n")
    assert "'toy_broken'" in fail("study", "toy_zero", "toy_broken")
    assert not get_study("toy_zero").asked, "what is wrong is found before anything is run"


def test_history_is_shown_and_not_computed(package, tmp_path):
    succeed("study", "toy_zero")
    (package / "toy_also.py").write_text(
        TOY.format(name="past", order=2).replace("cells(", "past(")
    )
    message = fail("study", "toy_also")
    assert "(got 'toy_also', which is history" in message
    succeed("study", "all")
    assert {path.name for path in (tmp_path / "study-results").iterdir()} == {"toy_zero"}
    (tmp_path / "study-results" / "toy_zero").rename(tmp_path / "study-results" / "toy_also")
    assert "[0.5]" in succeed("study", "toy_also")


def test_interrupted(package):
    result = run("study", "toy_zero", "--model", "cora")
    assert result.exit_code == 130
    assert result.stderr == "interrupted; run the same command again to continue\n"


def test_studies_come_after_those_they_read():
    names = sorted_studies()
    assert names[:3] == ["filters", "accuracy", "ablation"]
    for name in names:
        study = get_study(name)
        assert study.TITLE
        for before in getattr(study, "AFTER", ()):
            assert names.index(before) < names.index(name)
    with pytest.raises(ValueError, match="overpassing"):
        get_study("overpasing")
