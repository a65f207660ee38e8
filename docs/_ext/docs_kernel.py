"""Where a notebook of the site runs: a new folder that holds a copy of the examples."""

import atexit
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib as mpl

EXAMPLES = Path(__file__).parents[2] / "examples"


def enter() -> None:
    """Go to a new folder with the examples in it, which is removed when the notebook ends."""
    folder = Path(tempfile.mkdtemp(prefix="longnn-docs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(EXAMPLES, folder / "examples")
    os.chdir(folder)
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
    """Print what a command prints, as a terminal without colours and progress would show it."""
    run = subprocess.run(
        command, shell=True, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    print(run.stdout.strip())
