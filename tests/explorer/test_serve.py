"""The server: on the loopback address alone, pages alone."""

import http.client
import threading

import pytest

from longnn.data import DataError
from longnn.explorer import make_server


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
