"""The command ``python -m lab study``, with small studies in place of ours: files in a folder."""

import importlib
import sys

import pytest

from lab import studies
from lab.records import StudyRecord
from lab.tests.commands import fail, run, succeed

#: A study is a file: nothing else has to know of it.
TOY = """
import dataclasses

from lab.records import StudyRecord
from lab.studies import ResultTable

TITLE = "The {name}"
ORDER = {order}
asked = []


@dataclasses.dataclass
class Plan:
    quick: bool


@dataclasses.dataclass
class Loss:
    loss: float


def run(context):
    asked.append(context)
    record = context.record("record", Plan(context.quick))
    for name in context.choose("datasets", ["cora", "texas"]):
        record.cell(name, Loss, lambda: Loss(0.5), machine=context.machine("cpu"))
        context.tell(f"{{name}} [done]")


def tables(folder):
    cells = StudyRecord.load(folder / "records" / "record.json").all(Loss)
    rows = [[name, f"**{{cell.loss:.2f}}**"] for name, cell in cells.items()]
    wide = ["of", *(f"a wide column {{i}}" for i in range(12))]
    return [
        ResultTable("losses", "Losses [%].", ["data", "loss"], rows),
        ResultTable("wide", "Wide.", wide, [[str(i) * 5 for i in range(13)]]),
    ]


def draw(folder):
    (folder / "losses.svg").write_text("<svg/>")
    return [folder / "losses.svg"]
"""


@pytest.fixture(autouse=True)
def package(monkeypatch, tmp_path):
    """A package of two studies, one of which reads what the other makes."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "toy_zero.py").write_text(TOY.format(name="first", order=1))
    (folder / "toy_also.py").write_text(
        TOY.format(name="second", order=0) + 'AFTER = ("toy_zero",)\n'
    )
    (folder / "_private.py").write_text("raise AssertionError")
    monkeypatch.setattr(studies, "__path__", [str(folder)])
    for name in ("toy_zero", "toy_also", "toy_broken"):
        monkeypatch.delitem(sys.modules, f"lab.studies.{name}", raising=False)
    importlib.invalidate_caches()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return folder


@pytest.fixture
def asked(package):
    return studies.get_study("toy_zero").asked


def test_a_study_is_run_and_shown(tmp_path, asked):
    result = run("study", "toy_zero", "--device", "cpu", "--commit", "abc")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == ["toy_zero: cora [done]", "toy_zero: texas [done]"]
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["cora", "0.50"] in lines
    assert ["Losses", "[%]."] in lines
    assert [str(i) * 5 for i in range(13)] in lines, "a wide table is whole"
    assert "tables and figures: study-results/toy_zero\n" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("next: python -m lab study toy_zero")
    folder = tmp_path / "study-results" / "toy_zero"
    assert {"records", "tables", "losses.svg"} == {path.name for path in folder.iterdir()}
    tables = {"losses.md", "losses.tex", "losses.csv"}
    assert tables <= {path.name for path in (folder / "tables").iterdir()}
    (context,) = asked
    assert (context.device, context.quick, context.commit) == ("cpu", False, "abc")
    record = StudyRecord.load(folder / "records" / "record.json")
    assert record.made("cora").commit == "abc"


def test_quick_runs_never_mix_with_full_ones(tmp_path, asked):
    succeed("study", "all", "--quick")
    folders = {path.name for path in (tmp_path / "study-results-quick").iterdir()}
    assert folders == {"toy_zero", "toy_also"}
    succeed("study", "toy_zero", "--quick", "--output", "mine-quick", "--data-dir", "raw")
    assert (tmp_path / "mine-quick" / "toy_zero" / "records" / "record.json").exists()
    assert asked[-1].quick
    assert asked[-1].data_dir == "raw"
    succeed("study", "toy_zero", "--output", "mine")
    assert (tmp_path / "mine" / "toy_zero" / "records" / "record.json").exists()


def test_datasets_and_models_can_be_restricted(tmp_path, asked):
    result = run("study", "toy_zero", "--dataset", "texas", "--model", "lon", "--model", "gpr")
    assert result.stderr == "toy_zero: texas [done]\n"
    assert asked[0].models == ["lon", "gpr"]
    assert "among cora, texas (got 'koala')" in fail("study", "toy_zero", "--dataset", "koala")


def test_rebuild_never_runs(tmp_path, asked):
    succeed("study", "toy_zero")
    file = tmp_path / "study-results" / "toy_zero" / "tables" / "losses.md"
    file.unlink()
    printed = succeed("study", "all", "--rebuild")
    assert file.exists()
    assert "0.50" in printed
    assert len(asked) == 1
    message = fail("study", "toy_also", "--rebuild")
    assert message == "Expected records in study-results/toy_also (there are none to rebuild)"
    assert "there are none" in fail("study", "all", "--rebuild", "--output", "elsewhere")


def test_the_list_is_in_the_order_in_which_studies_run():
    assert [line.split() for line in succeed("study", "--list").splitlines()] == [
        ["name", "study"],
        ["toy_zero", "The", "first"],
        ["toy_also", "The", "second"],
    ]


def test_studies_that_wait_for_each_other_are_refused(package):
    file = package / "toy_zero.py"
    file.write_text(file.read_text() + 'AFTER = ("toy_also",)\n')
    assert "wait for each other" in fail("study", "all")


def test_errors_are_one_line(package, asked):
    assert "all, toy_also, toy_zero (got none)" in fail("study")
    assert "all, toy_also, toy_zero (got 'toy')" in fail("study", "toy")
    (package / "toy_broken.py").write_text("import longnn.nowhere\n")
    assert "'toy_broken'" in fail("study", "toy_zero", "toy_broken")
    assert not asked, "what is wrong is found before anything is run"


def test_interrupted(monkeypatch):
    def stop(context):
        raise KeyboardInterrupt

    monkeypatch.setattr(studies.get_study("toy_zero"), "run", stop)
    result = run("study", "toy_zero")
    assert result.exit_code == 130
    assert result.stderr == "interrupted; run the same command again to continue\n"
