"""``longnn explore``: a page on disk, or served on the loopback address until Ctrl-C."""

import http.client
import signal
import threading
import urllib.request

import pytest

from longnn.cli._runs import NODES
from longnn.data import DataError
from longnn.explorer import NODES as DEFAULT
from longnn.explorer import make_server
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
    assert "got 'nobody'" in fail("explore", run, "--node", "nobody")
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


@pytest.fixture
def server():
    def page(node):
        if node == "nobody":
            raise DataError("Expected --node to be the id of a node (got nobody)")
        return f"page of {node}"

    with make_server(page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address
        server.shutdown()
        thread.join()


def ask(address, path, **headers):
    connection = http.client.HTTPConnection(*address)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), answer.getheader("Content-Type")
    connection.close()
    return found


def test_pages(server):
    assert server[0] == "127.0.0.1"
    assert ask(server, "/") == (200, "page of None", "text/html; charset=utf-8")
    assert ask(server, "/?node=a%20b")[1] == "page of a b"


def test_what_is_no_page(server):
    status, text, kind = ask(server, "/?node=nobody")
    assert (status, kind) == (404, "text/plain; charset=utf-8")
    assert "got nobody" in text
    assert ask(server, "/../etc/passwd")[0] == 404


def test_a_name_from_elsewhere_is_refused(server):
    """So that no page of the web can read the run through a name that it controls."""
    assert ask(server, "/", Host="example.org")[0] == 403
    assert ask(server, "/", Host=f"localhost:{server[1]}")[0] == 200
