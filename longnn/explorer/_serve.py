"""The page of large runs from a small server: it shows the nodes around the one that is asked for.

It listens on the loopback address alone, answers nothing but the page, and only requests that name
that address: a page from elsewhere cannot reach it through a name of its own.
"""

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from longnn.data import DataError

LOOPBACK = "127.0.0.1"

#: From the id of a node, or None, to the page around it.
Pages = Callable[[str | None], str]


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
