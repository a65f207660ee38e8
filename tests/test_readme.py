"""The README is true: its Python blocks run, its commands run in order.

They run in a folder that holds a copy of the examples. Training is cut short, which changes the
meaning of none; ``make`` and downloads have stand-ins or are skipped.
"""

import importlib.util
import re
import shlex
import shutil
from pathlib import Path

import pytest

from lab.__main__ import app as lab_app
from longnn import report
from longnn.cli import app
from tests.commands import ROOT, longnn

README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
RUN = next(block for block in PYTHON if "longnn.train(" in block)
BLOCKS = [block for block in PYTHON if block != RUN]
SHELL = [
    line.strip()
    for block in re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    for line in block.splitlines()
    if line.strip()
]
BRIEF = {"train": ["--set", "epochs=5"], "tune": ["--set", "epochs=5"]}
NEEDS_DOWNLOAD = ("cora",)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[-1][:40])
def test_python_block_runs(block, folder, brief):
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


def test_a_run_is_made_and_read_in_python(folder, brief, no_report):
    names = {"__name__": "readme"}
    exec(compile(RUN, "README.md", "exec"), names)
    assert Path("filter.png").exists()
    run, made = names["run"], names["run"].record
    assert run.trained.repeats == 3
    assert run.config.preset == "fast"
    assert names["summary"]["test"]["accuracy"].mean == made.summary["test"]["accuracy"].mean
    assert len(run.estimator.predict(names["newcomers"])) == 20


def test_the_training_loop_is_short():
    loop = next(block for block in PYTHON if "LONConv(" in block)
    assert len([line for line in loop.splitlines() if line.strip()]) < 25


def run(line):
    """One command of the README, made brief."""
    program, *arguments = shlex.split(line.replace("python -m lab", "lab"), comments=True)
    chosen = {"longnn": app, "lab": lab_app}[program]
    result = longnn(*arguments, *BRIEF.get(arguments[0], []), app=chosen)
    assert result.exit_code == 0, f"{line}\n{result.output}"
    return result.stdout


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a newcomer stands: a new clone, as far as commands can see."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def few_reports(monkeypatch):
    """A report of the first run only: each takes longer than a brief training."""
    write = report.write_report
    monkeypatch.setattr(
        "longnn.runs._train.report.write_report", lambda r: write(r) if r.name == "club" else None
    )


def is_benchmark(line):
    return any(re.search(rf"\b{name}\b", line) for name in NEEDS_DOWNLOAD)


def test_the_examples_are_what_their_script_makes(tmp_path):
    spec = importlib.util.spec_from_file_location("make_club", ROOT / "examples" / "make_club.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path)
    for path in sorted((ROOT / "examples").glob("*/*.csv")):
        made = tmp_path / path.relative_to(ROOT / "examples")
        assert made.read_text() == path.read_text(), path.name


def test_commands_run_in_order(folder, few_reports):
    lines = [line for line in SHELL if line.startswith("longnn") and not is_benchmark(line)]
    assert len(lines) >= 9
    printed = {line: run(line) for line in lines}
    for line in lines:
        output = re.search(r"--output (\S+)", line)
        if output:
            assert Path(output[1]).exists(), line
        if line.startswith("longnn train"):
            assert "report: runs/" in printed[line]
    assert len(Path("newcomers.csv").read_text().splitlines()) == 21
    for name in re.findall(r"`(runs/\S+?\.\w+)`", README):
        assert Path(name).exists(), name
    table = README.partition("## A run is a folder")[2].partition("##")[0]
    for path in Path("runs/club").iterdir():
        listed = path.name in table or (path.suffix == ".parquet" and "`.parquet`" in table)
        assert listed, path.name


def test_commands_on_benchmark_graphs(folder, data_dir, few_reports, monkeypatch):
    monkeypatch.setenv("LONGNN_DATA", str(data_dir))
    lines = [line for line in SHELL if line.startswith("longnn") and is_benchmark(line)]
    assert any(line.startswith("longnn train cora") for line in lines)
    for line in lines:
        run(line.replace("--repeat 10", "--repeat 2"))
    assert Path("comparison.html").exists()


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    made = [line.split()[1] for line in SHELL if line.startswith("make ")]
    assert made == ["demo", "test"]
    for target in made:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
    others = [line for line in SHELL if not line.startswith(("longnn ", "python -m lab ", "make "))]
    assert not others


def test_demo(folder):
    """The command behind ``make demo``; the target clears its own folder, so it runs again."""
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    (command,) = re.findall(r"\$\(BIN\)/(longnn .*)", recipe[1])
    assert "rm -rf demo-run" in recipe[1].split("$(BIN)")[0]
    assert "report: demo-run/report.html" in run(command)
    assert (folder / "demo-run" / "report.html").exists()


def test_every_command_is_in_the_table():
    table = README.partition("## The commands")[2].partition("##")[0]
    for command in app.registered_commands:
        assert f"longnn {command.callback.__name__}" in table
    for command in lab_app.registered_commands:
        assert f"python -m lab {command.callback.__name__}" in table


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (ROOT / target).exists(), target
