"""``longnn explore``: a page on disk, or served until Ctrl-C."""

import signal
import urllib.request

import pytest

from longnn.cli._explore import NODES
from longnn.explorer import NODES as DEFAULT
from tests.commands import FAST, TINY, fail, longnn, start, succeed, without_report


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    with without_report():
        succeed("train", *TINY, *FAST, "--output", folder, "--quiet")
    return folder


def test_it_writes_one_file(run, tmp_path):
    output = tmp_path / "page.html"
    printed = succeed("explore", run, run, "--output", output)
    assert printed.startswith(f"page: {output} (")
    assert output.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert list(tmp_path.iterdir()) == [output]


def test_it_says_that_a_page_shows_a_part(run, tmp_path):
    few = ("explore", run, "--limit", 20, "--output", tmp_path / "page.html")
    found = longnn(*few).stderr
    assert "csbm has 60 nodes; the page has the 20 nearest to one of them" in found
    assert "the 20 nearest to 33;" in longnn(*few, "--node", "33").stderr


def test_mistakes(run, tmp_path):
    assert "Expected a run folder" in fail("explore", tmp_path / "nothing")
    elsewhere = tmp_path / "no" / "page.html"
    assert "--output in an existing folder" in fail("explore", run, "--output", elsewhere)
    assert "got nobody" in fail("explore", run, "--node", "nobody")
    assert "at least 1 node (got 0)" in fail("explore", run, "--limit", 0)
    assert "(got both)" in fail("explore", run, "--serve", "--output", tmp_path / "page.html")
    assert "--port from 0 to 65535" in fail("explore", run, "--serve", "--port", 65536)


def test_the_default_shown_is_the_default():
    assert NODES == DEFAULT


def test_it_serves_until_it_is_stopped(run):
    process = start("explore", run, "--serve", "--limit", 20)
    line = process.stdout.readline()
    address = line.split()[2]
    assert address.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(f"{address}?node=33") as answer:
        page = answer.read().decode()
    assert '"served":true' in page
    assert '"node":"33"' in page
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert errors.strip() == "stopped"
    assert process.returncode == 0
