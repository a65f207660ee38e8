"""Fixtures of the package's tests, for those of the laboratory."""

from tests.conftest import brief, data_dir, no_report

__all__ = ["brief", "data_dir", "no_report"]
