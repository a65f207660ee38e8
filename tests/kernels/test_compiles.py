"""Kernels compile for a GPU, also where there is none."""

import os
import subprocess
import sys

import pytest

from tests.commands import ROOT

pytest.importorskip("triton")


@pytest.mark.slow
def test_kernels_compile_without_a_gpu(tmp_path):
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.kernels.compiles"],
        cwd=ROOT,
        env={**env, "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert {"_series", "_gradient", "_normalize", "_sums"} <= set(ran.stdout.split())
