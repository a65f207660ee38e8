"""Trainings killed by SIGKILL at random moments: resumed, they end with the same bits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def kill(*arguments):
    """What ``python -m tests.kills`` finds."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
    environment["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, "-W", "ignore", "-m", "tests.kills", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_killed_training_loses_nothing():
    found, said = kill("--count", 3, "--seed", 1)
    assert found["kills"] >= 3
    assert not found["lost"], said


@pytest.mark.slow
@pytest.mark.parametrize("pages", [(), ("--pages",)])
def test_many_killed_trainings_lose_nothing(pages):
    found, said = kill("--count", 15, "--seed", 2, *pages)
    assert found["kills"] >= 15
    assert not found["lost"], said
