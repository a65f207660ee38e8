"""Runs as one page to explore: filters by epoch, a basis to play with, the graph and its nodes.

:func:`collect` gathers what the page shows, :func:`write_explorer` writes it as one HTML file that
opens offline, and :func:`make_server` serves it where a graph is too large for a page. Like the
report it reads runs and never trains. The page itself, in JavaScript, is made from the folder
``explorer`` of the repository; the bundle is part of the package.
"""

from longnn.explorer._data import NODES, collect
from longnn.explorer._layout import place_nodes
from longnn.explorer._page import make_server, pack, render, unpack, write_explorer

__all__ = [
    "NODES", "collect", "make_server", "pack", "place_nodes", "render", "unpack", "write_explorer",
]  # fmt: skip
