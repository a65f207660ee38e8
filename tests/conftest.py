"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # kernels run on the CPU, slowly


@pytest.fixture(scope="session")
def data_dir():
    """A folder with the raw files of the public datasets, or a skip where there is none."""
    candidates = [os.environ.get("LONGNN_DATA"), Path(__file__).parents[2] / "shared" / "data"]
    for candidate in candidates:
        if candidate and Path(candidate).is_dir():
            return Path(candidate)
    pytest.skip("no folder of public datasets: set LONGNN_DATA")
