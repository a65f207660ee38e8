"""Records continue where they stopped; tables have three forms; pages are filled from records."""

import csv
import dataclasses
import io
import json
import types
from pathlib import Path

import pytest

from lab import studies
from lab.records import RETIRED, StudyRecord, without_retired
from lab.studies import (
    Context,
    ResultTable,
    get_study,
    sorted_studies,
    study_names,
)
from lab.studies._core import _pages as pages
from longnn.config import Config
from tests.commands import ROOT

HERE = {"cpu": "any", "gpu": None}


@dataclasses.dataclass(frozen=True)
class Plan:
    degree: int = 10


@dataclasses.dataclass(frozen=True)
class Loss:
    loss: float
    steps: list[int] | None = None


def test_a_cell_is_computed_once(tmp_path):
    path, calls = tmp_path / "record.json", []

    def compute():
        calls.append(1)
        return Loss(0.5, [1, 2])

    for _ in range(2):
        cell = StudyRecord(path, Plan()).cell("low", Loss, compute, machine=HERE)
        assert cell == Loss(0.5, [1, 2])
    assert len(calls) == 1
    record = StudyRecord.load(path)
    assert record.machine("low") == HERE
    assert record.made("low").seconds >= 0
    assert record.plan(Plan) == Plan()
    assert record.get("low", Loss) == Loss(0.5, [1, 2])


def test_the_machine_of_a_record_is_this_one(tmp_path):
    machine = Context(tmp_path, device="cpu").machine()
    assert machine["torch"]
    assert not {"load", "threads"} & set(machine)


def test_an_interrupted_cell_leaves_the_others(tmp_path):
    record = StudyRecord(tmp_path / "record.json", Plan())
    record.cell("low", Loss, lambda: Loss(1.0), machine=HERE)

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record.cell("high", Loss, interrupt, machine=HERE)
    assert set(StudyRecord.load(tmp_path / "record.json")) == {"low"}


def test_a_record_of_another_plan_is_refused(tmp_path):
    path = tmp_path / "record.json"
    StudyRecord(path, Plan()).cell("low", Loss, lambda: Loss(1.0), machine=HERE)
    with pytest.raises(ValueError, match="changed: degree"):
        StudyRecord(path, Plan(degree=5))


def test_a_cell_is_copied_with_its_machine(tmp_path):
    one = StudyRecord(tmp_path / "one.json", Plan())
    one.cell("low", Loss, lambda: Loss(1.0), machine={"cpu": "first"})
    other = StudyRecord(tmp_path / "other.json", Plan())
    other.cell("high", Loss, lambda: Loss(2.0), machine={"cpu": "second"})
    assert other.has_plan_of(one)
    other.take("low", one)
    again = StudyRecord.load(tmp_path / "other.json")
    assert again.all(Loss) == {"high": Loss(2.0), "low": Loss(1.0)}
    assert again.machine("low") == {"cpu": "first"}
    assert again.made("low").commit == one.made("low").commit


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "damaged at line 1"),
        ("{}", "'plan' to be an object"),
        ('{"plan": {}, "cells": {"low": {}}}', r"'low.loss' to be a number \(got nothing\)"),
        ('{"plan": {}, "cells": {"low": {"loss": "x"}}}', "'low.loss' to be a number"),
        ('{"plan": {}, "cells": {"low": {"loss": 1, "lost": 2}}}', r"fields among loss, steps"),
        (
            '{"plan": {}, "cells": {"low": {"loss": 1, "steps": [1.5]}}}',
            r"'low.steps\[0\]' to be a whole number",
        ),
    ],
)
def test_a_damaged_record_is_refused_in_one_sentence(text, message, tmp_path):
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        StudyRecord.load(tmp_path / "record.json").get("low", Loss)


TABLE = ResultTable(
    "losses", "Loss in % of 1.", ["filter", "a_b"], [["|sin|", "**1 ± 2**"], ["x", "3"]]
)


def test_a_table_in_three_forms():
    assert TABLE.to_markdown().splitlines()[2] == "| \\|sin\\| | **1 ± 2** |"
    assert r"\textbf{1 $\pm$ 2}" in TABLE.to_latex()
    assert r"Loss in \% of 1." in TABLE.to_latex()
    assert list(csv.reader(io.StringIO(TABLE.to_csv())))[1] == ["|sin|", "1 ± 2"]


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="2 items"):
        ResultTable("t", "", ["x", "y"], [["1"]])


def test_a_page_is_filled_and_stays_filled(tmp_path, monkeypatch):
    fake = types.SimpleNamespace(tables=lambda folder: [TABLE])
    monkeypatch.setattr(pages, "get_study", lambda name: fake)
    text = "Before\n<!-- table filters/losses -->\nold\n<!-- end -->\nafter\n"
    filled = pages.fill_page(text, tmp_path)
    assert "old" not in filled
    assert "| x | 3 |" in filled
    assert filled.endswith("after\n")
    assert pages.fill_page(filled, tmp_path) == filled
    with pytest.raises(ValueError, match="losses"):
        pages.fill_page(text.replace("filters/losses", "filters/other"), tmp_path)


def test_an_unknown_study_names_the_known():
    with pytest.raises(ValueError, match="overpassing"):
        get_study("overpasing")


def test_studies_come_after_those_they_read():
    names = sorted_studies()
    assert names[:3] == ["filters", "accuracy", "ablation"]
    for name in names:
        study = get_study(name)
        assert study.TITLE
        for before in getattr(study, "AFTER", ()):
            assert names.index(before) < names.index(name)


def test_a_study_shows_three_functions_and_hides_its_files():
    for name in study_names():
        study = get_study(name)
        assert all(callable(getattr(study, of)) for of in ("run", "tables", "draw"))
    inner = list(Path(studies.__file__).parent.glob("*/*.py"))
    assert inner
    assert all(path.stem.startswith("_") for path in inner)


def test_a_choice_must_be_known(tmp_path):
    context = Context(tmp_path, datasets=["cora"])
    assert context.choose("datasets", ["cora", "texas"]) == ["cora"]
    assert context.choose("models", ["lon"]) == ["lon"]
    with pytest.raises(ValueError, match="texas"):
        context.choose("datasets", ["texas"])


def test_every_recorded_configuration_is_still_one():
    """Names that went with the one value that did nothing; one operator of arcs went, too."""
    read, gone = 0, set()
    for path in sorted((ROOT / "results").glob("*/records/*.json")):
        for table in _configurations(json.loads(path.read_text(encoding="utf-8"))):
            if table.get("direction") == "magnetic":
                gone.add(path.name)
                continue
            config = Config.from_dict(without_retired(table))
            left_out = {k: v for k, v in table.items() if k not in config.to_dict()}
            assert left_out.items() <= RETIRED.items(), (path, left_out)
            read += 1
    assert read > 2500
    assert gone == {"wisconsin-arcs.json", "chameleon-arcs.json"}


def _configurations(value):
    """The complete tables of configurations in a record, at any depth."""
    if isinstance(value, dict) and {"model", "lr_transform", "epochs", "seed"} <= value.keys():
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _configurations(item)


def test_a_name_that_went_is_kept_where_it_meant_something():
    assert without_retired([{"wd_basis": 0.1, "reversed_sign": False}]) == [{"wd_basis": 0.1}]
