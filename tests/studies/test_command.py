"""The command ``longnn paper``, with a small experiment in place of the paper's."""

import sys
import types

import pytest

from longnn.studies import _paper as paper
from longnn.studies._record import Record, read_record
from longnn.studies._table import Table
from tests.commands import fail, longnn, succeed


@pytest.fixture(autouse=True)
def experiments(monkeypatch, tmp_path):
    """Two experiments that count; what they were asked is kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    asked = []
    for name in ("filters", "accuracy"):
        module = types.ModuleType(f"tests.fake_{name}")
        module.TITLE = f"The {name}"
        module.run = lambda context: run(context, asked)
        module.tables, module.draw = tables, draw
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(paper.EXPERIMENTS, name, module.__name__)
    for name in [n for n in paper.EXPERIMENTS if n not in ("filters", "accuracy")]:
        monkeypatch.delitem(paper.EXPERIMENTS, name)
    return asked


def run(context, asked):
    asked.append(context)
    record = Record(context.folder / "record.json", {"quick": context.quick}, commit=context.commit)
    for name in context.choose("datasets", ["cora", "texas"]):
        record.part(name, lambda: {"loss": 0.5})
        context.tell(f"{name} [done]")


def tables(folder):
    parts = read_record(folder / "record.json")["parts"]
    rows = [[name, f"**{part['loss']:.2f}**"] for name, part in parts.items()]
    wide = ["of", *(f"a wide column {i}" for i in range(12))]
    return [
        Table("losses", "Losses [%].", ["data", "loss"], rows),
        Table("wide", "Wide.", wide, [[str(i) * 5 for i in range(13)]]),
    ]


def draw(folder):
    (folder / "losses.svg").write_text("<svg/>")
    return [folder / "losses.svg"]


def test_an_experiment_is_run_and_shown(tmp_path, experiments):
    result = longnn("paper", "filters", "--device", "cpu", "--commit", "abc")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == ["filters: cora [done]", "filters: texas [done]"]
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["cora", "0.50"] in lines
    assert ["Losses", "[%]."] in lines
    assert [str(i) * 5 for i in range(13)] in lines, "a wide table is whole"
    assert "tables and figures: paper-results/filters\n" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("next: longnn paper filters")
    folder = tmp_path / "paper-results" / "filters"
    names = {"record.json", "losses.md", "losses.tex", "losses.csv", "losses.svg"}
    assert names <= {path.name for path in folder.iterdir()}
    (context,) = experiments
    assert (context.device, context.quick, context.commit) == ("cpu", False, "abc")
    assert read_record(folder / "record.json")["parts"]["cora"]["made"]["commit"] == "abc"


def test_quick_runs_never_mix_with_full_ones(tmp_path, experiments):
    succeed("paper", "all", "--quick")
    assert {path.name for path in (tmp_path / "paper-results-quick").iterdir()} == {
        "filters",
        "accuracy",
    }
    succeed("paper", "accuracy", "--quick", "--output", "mine-quick", "--data-dir", "raw")
    assert (tmp_path / "mine-quick" / "accuracy" / "record.json").exists()
    assert experiments[-1].quick
    assert experiments[-1].data_dir == "raw"
    succeed("paper", "filters", "--output", "mine")
    assert (tmp_path / "mine" / "filters" / "record.json").exists()


def test_parts_can_be_restricted(tmp_path, experiments):
    result = longnn("paper", "filters", "--dataset", "texas", "--model", "lon", "--model", "gpr")
    assert result.stderr == "filters: texas [done]\n"
    assert experiments[0].models == ["lon", "gpr"]
    assert "among cora, texas (got 'koala')" in fail("paper", "filters", "--dataset", "koala")


def test_rebuild_never_runs(tmp_path, experiments):
    succeed("paper", "filters")
    (tmp_path / "paper-results" / "filters" / "losses.md").unlink()
    printed = succeed("paper", "all", "--rebuild")
    assert (tmp_path / "paper-results" / "filters" / "losses.md").exists()
    assert "0.50" in printed
    assert len(experiments) == 1
    message = fail("paper", "accuracy", "--rebuild")
    assert message == "Expected records in paper-results/accuracy (there are none to rebuild)"
    assert "there are none" in fail("paper", "all", "--rebuild", "--output", "elsewhere")


def test_list():
    assert [line.split() for line in succeed("paper", "--list").splitlines()] == [
        ["name", "experiment"],
        ["filters", "The", "filters"],
        ["accuracy", "The", "accuracy"],
    ]


def test_errors_are_one_line(monkeypatch, experiments):
    assert "all, filters, accuracy (got none)" in fail("paper")
    assert "all, filters, accuracy (got 'filter')" in fail("paper", "filter")
    monkeypatch.setitem(paper.EXPERIMENTS, "accuracy", "longnn.experiments.nowhere")
    assert "'accuracy'" in fail("paper", "filters", "accuracy")
    assert not experiments, "what is wrong is found before anything is run"


def test_interrupted(monkeypatch):
    def stop(context):
        raise KeyboardInterrupt

    monkeypatch.setattr(paper.get_experiment("filters"), "run", stop)
    result = longnn("paper", "filters")
    assert result.exit_code == 130
    assert result.stderr == "interrupted; run the same command to go on\n"
