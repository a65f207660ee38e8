"""Fixtures shared by all tests."""

import os
import signal
from pathlib import Path

import pytest
import torch

from longnn.config import Settings
from tests.commands import CLUB, FAST, longnn, without_report

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


@pytest.fixture(scope="session")
def club(tmp_path_factory):
    """A run on the files of the example: its folder, to copy or to read, and what was printed."""
    folder = tmp_path_factory.mktemp("own") / "club"
    result = longnn("train", CLUB, *FAST, "--preset", "fast", "--output", folder)
    assert result.exit_code == 0, result.output
    return folder, result


@pytest.fixture
def no_report():
    """Runs without their page; see :func:`tests.commands.without_report` for wider fixtures."""
    with without_report():
        yield


@pytest.fixture
def ctrl_c():
    """A function that interrupts this process; in the background of a shell it would be ignored."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, previous)


@pytest.fixture
def brief(monkeypatch):
    """Every training in this process ends after a few epochs, whatever was asked for."""
    check = Settings.__post_init__

    def cut(settings):
        check(settings)
        object.__setattr__(settings, "epochs", min(settings.epochs, 5))

    monkeypatch.setattr(Settings, "__post_init__", cut)
