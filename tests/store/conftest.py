"""No test prepares files in the user's own cache."""

import pytest


@pytest.fixture(autouse=True)
def private_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("LONGNN_CACHE", str(tmp_path_factory.mktemp("cache")))
