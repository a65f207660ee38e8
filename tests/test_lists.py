"""What every command shares, and the commands that only print."""

import os
import re
import subprocess
import sys

import pytest

import longnn as package
from longnn.cli import app
from longnn.cli._base import OTHER_NAMES, out
from longnn.config._config import explain_options, explain_settings, settings_names
from longnn.recipes import known_recipes
from longnn.registry import MODELS, OPTIONS
from tests.commands import ROOT, fail, longnn, start, succeed

COMMANDS = [command.callback.__name__ for command in app.registered_commands]


def words(text):
    """Text with its line breaks undone, as far as a table allows."""
    return " ".join(text.split())


# Lists


@pytest.mark.parametrize(
    "arguments", [["datasets"], ["models"], ["models", "--settings"]], ids=" ".join
)
def test_lists_fit_the_terminal(arguments, monkeypatch):
    for width in (80, 160):
        monkeypatch.setattr(out, "width", width)
        assert max(map(len, succeed(*arguments).splitlines())) <= width


def test_every_model_is_listed():
    listed = succeed("models").splitlines()
    for entry in MODELS.values():
        (line,) = [line for line in listed if line.startswith(f"{entry.name} ")]
        assert line.split(maxsplit=1)[1].strip().startswith(entry.title)
        assert entry.summary in line


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_explained(name, monkeypatch):
    monkeypatch.setattr(out, "width", 200)
    entry, printed = MODELS[name], succeed("models", name)
    assert printed.startswith(f"{entry.title}: {entry.summary}\n")
    assert entry.formula in printed
    if entry.paper is not None:
        assert f"{entry.paper.authors} ({entry.paper.year}): {entry.paper.title}" in printed
        assert entry.paper.link in printed.splitlines()
    options = explain_options(name)
    for option in options:
        pattern = rf"^{option.name} +(\S+) +{re.escape(', '.join(option.choices) or option.type)} "
        line = re.search(pattern + ".*$", printed, re.MULTILINE)
        assert line, option.name
        assert line[1].lower() == str(option.default).lower()
        assert option.meaning in line[0]
    for model, dataset in known_recipes():
        assert model != name or dataset in printed.rpartition("recipe")[2]
    monkeypatch.setattr(out, "width", 80)  # nothing is lost on a narrow terminal
    lines = succeed("models", name).splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    column = next((line.index("meaning") for line in lines if line.startswith("--set")), 0)
    meanings = words(" ".join(line[column:] for line in lines))
    assert all(option.meaning in meanings for option in options)


def test_settings_are_explained(monkeypatch):
    monkeypatch.setattr(out, "width", 250)
    lines = succeed("models", "--settings").splitlines()
    entries = explain_settings()
    assert [line.split()[0] for line in lines[1:]] == [entry.name for entry in entries]
    for line, entry in zip(lines[1:], entries, strict=True):
        assert entry.meaning in line
        assert "None" not in line
    assert lines[1].split()[:2] == ["preset", "default"]  # what `longnn train` takes


def test_commands_print_text_in_a_notebook_too():
    code = (
        "import rich.console; rich.console._is_jupyter = lambda: True\n"
        "from longnn.cli import app; app(['models'])"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
    assert done.stdout.startswith("--model"), done


def test_datasets_say_which_are_downloaded():
    listed = succeed("datasets")
    named, _, bundled = listed.partition("\nbundled datasets, no download\n")
    assert named.startswith("named datasets, downloaded when first used\n")
    assert all(re.search(rf"^{name} ", named, re.MULTILINE) for name in ("cora", "ogbn-arxiv"))
    assert all(re.search(rf"^{name} ", bundled, re.MULTILINE) for name in ("csbm", "digits"))


# Help, version, completion


def test_version():
    assert succeed("--version") == f"{package.__version__}\n"


def test_help_has_two_names():
    for arguments in ([], *([name] for name in COMMANDS)):
        printed = succeed(*arguments, "-h")
        assert printed == succeed(*arguments, "--help")
        assert f"longnn {' '.join(arguments)}".strip() in words(printed).replace("root", "longnn")


def test_the_shell_completes_commands_and_models():
    def completed(line):
        asked = {"_LONGNN_COMPLETE": "complete_bash", "COMP_WORDS": line}
        asked["COMP_CWORD"] = str(len(line.split(" ")) - 1)
        done = subprocess.run(
            [sys.executable, "-m", "longnn"],
            env={**os.environ, **asked},
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        return done.stdout.split()

    assert completed("longnn tr") == ["train"]
    assert completed("longnn models jacobi-") == ["jacobi-orthnorm", "jacobi-learnable"]


# A pipe that is closed


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["models", "--settings"],
        pytest.param(["info", "csbm", "--json"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_reader_may_stop_early(arguments):
    with start(*arguments) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 0


def test_a_broken_pipe_elsewhere_is_an_error(monkeypatch):
    def broken(*arguments, **options):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("longnn.data.Source.load", broken)
    assert fail("info", "csbm") == "Broken pipe"


# Options that are settings

MEANT = {
    "--epochs 10": "epochs=10",
    "--epochs=10": "epochs=10",
    "--lr 0.01": "lr_transform=0.01",
    "--weight-decay 0": "wd_transform=0",
    "--dropout 0.3": "dropout=0.3",
    "--hidden 64": "hidden_channels=64",
    "--lr-basis 0.1": "lr_basis=0.1",
    "--a -0.5": "a=-0.5",
    "--learn-basis": "learn_basis=VALUE",
    "--shared --quiet": "shared=VALUE",
}


@pytest.mark.parametrize("given", MEANT)
def test_an_option_that_is_a_setting(given):
    option = given.partition("=")[0].split()[0]
    for command in ("train", "tune"):
        result = longnn(command, "cora", *given.split())
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == f"error: No option {option}; did you mean --set {MEANT[given]}?\n"


@pytest.mark.parametrize(
    ("arguments", "suggested"),
    [
        (["train", "cora", "--nonsense", "1"], "No such option: --nonsense"),
        (["train", "cora", "--outptu", "x"], "--output"),
        (["tune", "cora", "--repeat", "3"], "--repeats"),
        (["predict", "run", "--epochs", "3"], "No such option: --epochs"),
    ],
)
def test_other_unknown_options_keep_their_message(arguments, suggested):
    result = longnn(*arguments)
    assert result.exit_code == 2
    assert suggested in result.stderr
    assert "--set " not in result.stderr


def test_other_names_lead_to_settings():
    assert set(OTHER_NAMES.values()) <= {*settings_names(), *OPTIONS}


def test_info_names_the_classes_that_its_split_does_not_test(monkeypatch):
    said = "1 of 3 classes has no test node: rare; scores say nothing about it."
    monkeypatch.setattr("longnn.data._card.untested", lambda dataset: (said,))
    assert f"warning: {said}\n" in longnn("info", "csbm").stderr
