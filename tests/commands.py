"""The command line as tests use it: in this process, or as a process of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longnn.cli import app

ROOT = Path(__file__).parents[1]
CLUB, NEWCOMERS = ROOT / "examples" / "club", ROOT / "examples" / "newcomers"
TINY = ("csbm", "--data", "num_nodes=60", "--data", "num_features=8", "--data", "phi=-0.6")
#: Without baselines, which have tests of their own.
FAST = (
    *("--device", "cpu", "--set", "epochs=8", "--set", "degree=3"),
    *("--set", "baselines=false"),
)


@contextlib.contextmanager
def without_report():
    """Runs without their page, which takes longer than a tiny training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longnn.runs._train.report.write_report", lambda record: None)
        yield


def longnn(*arguments, app=app):
    """Run a command in this process; an exception that no command should leak fails here."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    return result


def succeed(*arguments, app=app):
    result = longnn(*arguments, app=app)
    assert result.exit_code == 0, result.output
    return result.stdout


def succeed_json(*arguments, app=app):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(succeed(*arguments, "--json", app=app), parse_constant=refuse)


def fail(*arguments, app=app):
    """The one line of error; nothing on standard output, exit code 1."""
    result = longnn(*arguments, app=app)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


def start(*arguments, **options):
    """A process of its own, for signals."""
    command = [sys.executable, "-W", "ignore", "-m", "longnn", *map(str, arguments)]
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_listen,
        **options,
    )


def _listen():
    """Let Ctrl-C reach the process, also where the tests run in the background of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
