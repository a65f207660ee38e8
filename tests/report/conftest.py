"""Run folders of each kind and their pages, made once."""

from pathlib import Path

import pytest

from longnn.records import RunRecord
from longnn.report import write_report
from tests.report.examples import write_all


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Never changed by a test."""
    return write_all(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def runs(folders: dict[str, Path]) -> dict[str, RunRecord]:
    return {name: RunRecord.read(folder) for name, folder in folders.items()}


@pytest.fixture(scope="session")
def pages(runs: dict[str, RunRecord]) -> dict[str, str]:
    return {name: write_report(run).read_text(encoding="utf-8") for name, run in runs.items()}
