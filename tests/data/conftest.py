"""Fixtures of the data tests: a private cache, the shared raw files, small graphs."""

import os
import warnings
from pathlib import Path

import pytest

with warnings.catch_warnings():  # PyG 2.8 calls a deprecated torch.jit.script on import
    warnings.simplefilter("ignore", DeprecationWarning)
    import torch_geometric  # noqa: F401


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def private_cache(cache_home, monkeypatch):
    """No test reads or writes the user's own cache or data folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home))
    monkeypatch.delenv("LONGNN_DATA", raising=False)


_SHARED = os.environ.get("LONGNN_DATA") or Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data():
    folder = Path(_SHARED)
    if not (folder / "README.md").is_file():
        pytest.skip(f"no raw datasets in {folder}; set LONGNN_DATA to a folder that has them")
    return folder


@pytest.fixture
def write(tmp_path):
    """Write a text file into the test's folder."""

    def write_text(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_text
