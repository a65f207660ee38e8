"""What every page must be: well formed, self-contained, accessible."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Walks a page: tags balanced, attributes collected, visible text kept."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.tables: list[list[list[str]]] = []  # table -> row -> cell
        self.feed(html)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.text += data
        if self.open and {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


def check_page(html: str) -> Page:
    """Assert what holds for every page, and return it for more."""
    assert html.startswith("<!DOCTYPE html>")
    page = Page(html)
    assert page.all("html")[0]["lang"] == "en"
    assert not page.all("script")
    assert not page.all("link")
    assert "@import" not in html
    assert "url(" not in html
    for _, attrs in page.tags:
        assert not [name for name in attrs if name.startswith("on")]
        for name in ("src", "href"):
            assert (attrs.get(name) or "data:").startswith(("data:image/", "data:"))
    assert 'src="http' not in html
    assert len(page.all("h1")) == 1
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for image in page.all("img"):
        assert len(image["alt"] or "") > 20
        check_picture(image["src"] or "")
    for table in page.tables:
        assert len({len(row) for row in table}) == 1, table
    for cell in page.all("th"):
        assert cell["scope"] in ("row", "col")
    return page


def check_picture(source: str) -> None:
    head, data = source.split(",", 1)
    content = base64.b64decode(data, validate=True)
    if head == "data:image/svg+xml;base64":
        root = ET.fromstring(content)
        assert root.tag.endswith("svg")
        assert not [node for node in root.iter() if node.tag.endswith("script")]
    else:
        assert head == "data:image/png;base64"
        assert content.startswith(b"\x89PNG")
