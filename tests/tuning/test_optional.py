"""Without Optuna the package works, and a search says in one line what to install."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MESSAGE = (
    'Expected the package optuna for a search (it is not installed); pip install "longnn[tune]"'
)


def run(code):
    blocked = "import sys; sys.modules['optuna'] = None\n"
    return subprocess.run(
        [sys.executable, "-c", blocked + code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("kind", ["ImportError", "ValueError"])
def test_the_import_says_what_to_install(kind):
    done = run(f"try:\n    import longnn.tuning\nexcept {kind} as error:\n    print(error)")
    assert done.stdout.strip() == MESSAGE, done.stderr


def test_the_command_says_what_to_install():
    done = run("sys.argv = ['longnn', 'tune', 'csbm']\nfrom longnn import cli\ncli.main()")
    assert done.stderr.strip() == f"error: {MESSAGE}"
    assert done.returncode == 1
    assert done.stdout == ""


def test_everything_else_is_imported_without_it():
    code = "import longnn.data, longnn.training, longnn.report, longnn.estimator, longnn.cli"
    done = run(code)
    assert done.returncode == 0, done.stderr
