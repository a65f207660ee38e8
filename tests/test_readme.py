"""The README is short and true: its Python runs, its commands run in order.

They run in a folder that holds a copy of the examples. Training is cut short, which changes the
meaning of none.
"""

import importlib.util
import re
import shlex
import shutil
from pathlib import Path

import pytest

from lab.__main__ import app as lab_app
from longnn import __version__
from longnn.cli import app
from tests.commands import ROOT, longnn

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
(PYTHON,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
SHELL = [
    line.strip()
    for block in re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    for line in block.splitlines()
    if line.strip()
]


def test_it_is_short_and_has_a_picture():
    assert len(README.encode()) < 7000
    (picture,) = re.findall(r"!\[[^]]{20,}\]\((\S+)\)", README)
    assert (ROOT / picture).exists()


def test_a_run_is_made_and_read_in_python(folder, brief, no_report):
    names = {"__name__": "readme"}
    exec(compile(PYTHON, "README.md", "exec"), names)
    assert Path("filter.png").exists()
    run = names["run"]
    assert run.trained.repeats == 3
    assert run.config.preset == "fast"
    assert len(run.estimator.predict(names["newcomers"])) == 20


def run(line):
    """One command of the README, made brief."""
    program, *arguments = shlex.split(line.replace("python -m lab", "lab"), comments=True)
    brief = ["--set", "epochs=5"] if arguments[0] == "train" else []
    chosen = {"longnn": app, "lab": lab_app}[program]
    result = longnn(*arguments, *brief, app=chosen)
    assert result.exit_code == 0, f"{line}\n{result.output}"
    return result.stdout


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a newcomer stands: a new clone, as far as commands can see."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_examples_are_what_their_script_makes(tmp_path):
    spec = importlib.util.spec_from_file_location("make_club", ROOT / "examples" / "make_club.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path)
    for path in sorted((ROOT / "examples").glob("*/*.csv")):
        made = tmp_path / path.relative_to(ROOT / "examples")
        assert made.read_text() == path.read_text(), path.name


def test_commands_run_in_order(folder):
    lines = [line for line in SHELL if line.startswith("longnn")]
    assert [line.split()[1] for line in lines] == ["info", "train", "explain", "predict"]
    printed = {line.split()[1]: run(line) for line in lines}
    assert "report: runs/" in printed["train"]
    assert len(Path("new.csv").read_text().splitlines()) == 21
    for name in re.findall(r"`(runs/\S+?\.\w+)`", README):
        assert Path(name).exists(), name
    table = COMMANDS.partition("## A run is a folder")[2].partition("##")[0]
    for path in Path("runs/club").iterdir():
        listed = path.name in table or (path.suffix == ".parquet" and "`.parquet`" in table)
        assert listed, path.name


def test_studies_are_listed_and_known():
    lines = [line for line in SHELL if line.startswith("python -m lab")]
    assert lines
    listed = run("python -m lab study --list")
    for word in (line.split()[4] for line in lines):
        assert word.startswith("--") or word in listed


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    made = [line.split()[1] for line in SHELL if line.startswith("make ")]
    assert made == ["demo", "test"]
    for target in (*made, *re.findall(r"`make (\w+)`", README)):
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
    table = COMMANDS.partition("## A run")[0]
    for command in app.registered_commands:
        assert f"longnn {command.callback.__name__}" in table
    for command in lab_app.registered_commands:
        assert f"python -m lab {command.callback.__name__}" in table


def test_what_is_cited_is_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (ROOT / target).exists(), target
