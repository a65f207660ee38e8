"""Where a notebook of the site runs: a new folder that holds a copy of the examples."""

import atexit
import os
import shlex
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

import matplotlib as mpl
from typer.testing import CliRunner

from longnn.cli import app

EXAMPLES = Path(__file__).parents[2] / "examples"


def enter() -> None:
    """Go to a new folder with the examples in it, which is removed when the notebook ends."""
    folder = Path(tempfile.mkdtemp(prefix="longnn-docs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(EXAMPLES, folder / "examples")
    os.chdir(folder)
    os.environ.pop("FORCE_COLOR", None)  # of Jupyter: it would draw progress into files
    warnings.filterwarnings("ignore", message="IProgress not found")
    mpl.rcParams.update(
        {
            "figure.dpi": 110,
            "figure.figsize": (7, 3.2),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "svg.fonttype": "path",
        }
    )


def show(command: str) -> None:
    """Print what a command of longnn prints, or of the shell, as a terminal would show it."""
    program, *arguments = shlex.split(command)
    if program == "longnn":  # in this process: the packages are loaded already
        done = CliRunner().invoke(app, arguments)
        code, output = done.exit_code, done.output
    else:
        run = subprocess.run([program, *arguments], text=True, capture_output=True)
        code, output = run.returncode, run.stdout + run.stderr
    if code:
        raise RuntimeError(f"Expected a command that succeeds (got {command}): {output}")
    print(output.strip())
