"""Run folders of each kind and their pages, made once."""

from pathlib import Path

import pytest

from longnn.records import RunRecord
from longnn.report import write_report
from tests.report.examples import KINDS, write_run


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Never changed by a test."""
    folder = tmp_path_factory.mktemp("runs")
    return {name: write_run(folder / name, **options) for name, options in KINDS.items()}


@pytest.fixture(scope="session")
def runs(folders: dict[str, Path]) -> dict[str, RunRecord]:
    return {name: RunRecord.read(folder) for name, folder in folders.items()}


@pytest.fixture(scope="session")
def pages(runs: dict[str, RunRecord]) -> dict[str, str]:
    """Pages with all figures, which take most of the time; others are tested without."""
    drawn = ("single", "gcn", "bern", "deep")
    return {name: write_report(runs[name]).read_text(encoding="utf-8") for name in drawn}
