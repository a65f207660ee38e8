"""A built page loads nothing from the network, and names no folder of the machine that built it."""

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

#: What a browser fetches by itself: scripts, pictures, styles, fonts. Links are not fetched.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["'](?:https?:)?//[^"']*"""
    r"""|<link\b[^>]*\brel=["'](?:stylesheet|preload|icon)["'][^>]*\bhref=["'](?:https?:)?//[^"']*"""
    r"""|url\(["']?https?://[^)]*"""
)


def problems(text: str, root: str) -> list[str]:
    """What is wrong with a page: addresses that it loads, and lines with the folder of the build.

    >>> problems('<script src="https://cdn.example/m.js"></script>', "/home/me/longnn")
    ['loads <script src="https://cdn.example/m.js']
    >>> problems('<a href="https://arxiv.org">see /home/me/longnn/x.py</a>', "/home/me/longnn")
    ['names /home/me/longnn']
    """
    found = [f"loads {match}" for match in LOADED.findall(text)]
    return [*found, f"names {root}"] if root in text else found


def check(app: Sphinx, exception: Exception | None) -> None:
    """Raise for the first page that has a problem."""
    if exception is not None or app.builder.format != "html":
        return
    for page in sorted(Path(app.outdir).rglob("*.html")):
        for problem in problems(page.read_text(encoding="utf-8"), str(Path(app.srcdir).parent)):
            raise ExtensionError(f"Expected a page that stands alone (got {page.name}: {problem})")


def setup(app: Sphinx) -> dict[str, bool]:
    """Check the pages when they are written."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
