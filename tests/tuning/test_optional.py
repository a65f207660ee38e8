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
CODE = """
import sys
sys.modules["optuna"] = None
import longnn.data, longnn.training, longnn.report, longnn.estimator
from longnn import cli
try:
    import longnn.tuning
except ImportError as error:
    assert isinstance(error, ValueError)
    print(error)
sys.argv = ["longnn", "tune", "csbm"]
cli.main()
"""


@pytest.mark.slow  # the test of the wheel has no Optuna either
def test_a_search_says_what_to_install_and_all_else_is_imported():
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == MESSAGE, done.stderr
    assert done.stderr.strip() == f"error: {MESSAGE}"
    assert done.returncode == 1
