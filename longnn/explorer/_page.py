"""The page: the bundled program (``page.html``, made from ``explorer/`` by esbuild) with the data.

The program is the same in every page, so that a Content-Security-Policy can name it by its hash.
The data is JSON in a block that no browser runs; no ``<`` is left in it to end that block. Arrays
in it are base64 of little-endian numbers, which a page reads at once.

A server makes pages around the nodes that are asked for, where a graph is too large for one. It
listens on the loopback address alone, answers nothing but pages, and only requests that name that
address: a page from elsewhere cannot reach it through a name of its own.
"""

import base64
import importlib.resources
import json
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from longnn._base.files import write_text, writing
from longnn.data import DataError

LOOPBACK = "127.0.0.1"

#: From the id of a node, or None, to the page around it.
Pages = Callable[[str | None], str]
#: Where the data goes in the bundled file.
MARK = "@DATA@"
#: How the page names the types: those of JavaScript's typed arrays.
KINDS = {"f4": "<f4", "f8": "<f8", "i4": "<i4", "u1": "|u1"}


def pack(array: Any, kind: str = "f4") -> dict[str, Any]:
    """An array as plain data.

    Args:
        array: of any shape.
        kind: ``f4``, ``f8``, ``i4`` or ``u1``.

    >>> pack(np.array([1, 2]), "i4")
    {'kind': 'i4', 'shape': [2], 'data': 'AQAAAAIAAAA='}
    """
    plain = np.ascontiguousarray(np.asarray(array), dtype=KINDS[kind])
    text = base64.b64encode(plain.tobytes()).decode("ascii")
    return {"kind": kind, "shape": list(plain.shape), "data": text}


def unpack(packed: dict[str, Any]) -> np.ndarray:
    """What :func:`pack` was given.

    >>> unpack(pack(np.array([[0.5, -2.0]])))
    array([[ 0.5, -2. ]], dtype=float32)
    """
    content = base64.b64decode(packed["data"])
    return np.frombuffer(content, dtype=KINDS[packed["kind"]]).reshape(packed["shape"])


def to_text(data: Mapping[str, Any]) -> str:
    r"""Plain data as JSON that can stand inside HTML.

    >>> to_text({"label": "</script>"})
    '{"label":"\\u003c/script>"}'
    """
    text = json.dumps(data, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def render(data: Mapping[str, Any]) -> str:
    """The whole page of what :func:`~longnn.explorer.collect` gave.

    >>> page = render({"runs": []})
    >>> page.startswith("<!DOCTYPE html>"), '{"runs":[]}' in page
    (True, True)
    """
    package = importlib.resources.files("longnn.explorer")
    head, mark, tail = (package / "page.html").read_text(encoding="utf-8").partition(MARK)
    assert mark, "page.html has no place for the data"
    return head + to_text(data) + tail


def write_explorer(data: Mapping[str, Any], path: Path) -> Path:
    """Write the page to one file that needs no other, and no network."""
    with writing(path):
        write_text(path, render(data))
    return path


def make_server(pages: Pages, port: int = 0) -> ThreadingHTTPServer:
    """A server of pages, not yet running; its address is ``server.server_address``.

    Args:
        pages: makes the page around a node; raises DataError where there is no such node.
        port: 0 for any that is free.

    >>> with make_server(lambda node: "page") as server:
    ...     server.server_address[0]
    '127.0.0.1'
    """
    lock = threading.Lock()  # a page takes all cores: one at a time

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            port = self.connection.getsockname()[1]
            if self.headers.get("Host") not in (f"{LOOPBACK}:{port}", f"localhost:{port}"):
                self._answer(HTTPStatus.FORBIDDEN, "Expected a request to the loopback address.")
            elif asked.path != "/":
                self._answer(HTTPStatus.NOT_FOUND, "Expected / or /?node=ID.")
            else:
                self._page(parse_qs(asked.query).get("node", [None])[0])

        def _page(self, node: str | None) -> None:
            try:
                with lock:
                    text = pages(node)
            except DataError as error:
                self._answer(HTTPStatus.NOT_FOUND, str(error))
                return
            self._answer(HTTPStatus.OK, text, "text/html")

        def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
            content = text.encode("utf-8", "replace")
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the terminal is the user's."""

    return ThreadingHTTPServer((LOOPBACK, port), Handler)
