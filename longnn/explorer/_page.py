"""The page: the bundled program (``page.html``, made from ``explorer/`` by esbuild) with the data.

The program is the same in every page, so that a Content-Security-Policy can name it by its hash.
The data is JSON in a block that no browser runs; no ``<`` is left in it to end that block.
"""

import importlib.resources
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longnn._base.files import write_text, writing

#: Where the data goes in the bundled file.
MARK = "@DATA@"


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
