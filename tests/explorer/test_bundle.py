"""The committed page is what its sources make, small, and free of what does not belong to it."""

import json
import shutil
import subprocess

import pytest

import longnn.explorer
from tests.commands import ROOT

SOURCES = ROOT / "explorer"
PAGE = ROOT / "longnn" / "explorer" / "page.html"


@pytest.fixture(scope="module")
def modules():
    """The packages that the lock file names, installed or a skip."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("no Node: install the packages nodejs and npm")
    if not (SOURCES / "node_modules" / "esbuild").is_dir():
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip("npm could not install the packages of the explorer")


def test_the_bundle_is_what_the_sources_make(modules, tmp_path):
    command = ["node", "build.mjs", tmp_path / "page.html"]
    subprocess.run(command, cwd=SOURCES, check=True, capture_output=True)
    message = "run `npm run build` in the folder explorer, and commit the page"
    assert (tmp_path / "page.html").read_bytes() == PAGE.read_bytes(), message


def test_the_page_is_small():
    assert PAGE.stat().st_size < 1_500_000
    assert longnn.explorer.render({"runs": []}).count("@DATA@") == 0


def test_the_licences_of_bundled_code_are_in_it():
    page = PAGE.read_text(encoding="utf-8")
    packages = json.loads((SOURCES / "package.json").read_text())["dependencies"]
    for name, version in packages.items():
        assert f"{name} {version}" in page
    assert "Permission to use, copy, modify, and/or distribute this software" in page


def test_the_lock_file_names_no_registry():
    text = (SOURCES / "package-lock.json").read_text()
    assert "://" not in text.replace('"url": "https://', "")
    assert '"resolved"' not in text
    for name, found in json.loads(text)["packages"].items():
        assert not name or found["license"] in ("ISC", "MIT", "BSD-3-Clause")
