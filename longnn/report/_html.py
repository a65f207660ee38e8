"""HTML: escaped text, tables, figures, and the frame of a page.

All text from users passes through :func:`html.escape` here. Pages need no network, no script and
no font, and work in light mode, in dark mode, on paper and on a phone.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longnn.report._style import to_svg_and_png, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST_SVG = 300_000  # bytes; above this a PNG is smaller

CSS = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #55606f; --line: #d5dae1;
  --page: #ffffff; --card: #f5f7fa; --accent: #12305f; --alert: #fff4e5; --edge: #d1600a;
  --paper: #ffffff; --turn: none; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebf0; --soft: #a9b3c1; --line: #3a4452;
  --page: #14181f; --card: #1d232c; --accent: #8fc1ea; --alert: #33270f; --edge: #e08a3c;
  --paper: #171717; --turn: invert(.91) hue-rotate(180deg); } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main, header, footer { max-width: 52rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 .5rem; color: var(--accent);
  text-wrap: balance; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .75rem; padding-top: .75rem;
  border-top: 1px solid var(--line); }
details { border-top: 1px solid var(--line); margin-top: .75rem; padding-top: .5rem; }
summary { cursor: pointer; } summary h2 { display: inline; border: 0; font-size: 1.1rem; }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
p, li { overflow-wrap: anywhere; }
.soft, figcaption { color: var(--soft); }
.learned { font-size: 1.1rem; border-left: 4px solid var(--accent); padding: .25rem 0 .25rem 1rem;
  margin: 1.25rem 0; }
.learned p { margin: .5rem 0; } .answer { font-weight: 600; }
.alert { background: var(--alert); border-left: 4px solid var(--edge); padding: .5rem 1rem;
  margin: 1rem 0; }
.alert ul { margin: 0; padding-left: 1.1rem; }
figure { margin: 1.5rem 0 2rem; }
.picture { background: var(--paper); border: 1px solid var(--line); border-radius: .5rem;
  padding: .75rem; }
.picture img { display: block; width: 100%; max-width: 38rem; height: auto; margin: 0 auto;
  filter: var(--turn); }
figcaption { font-size: .925rem; margin-top: .6rem; }
figcaption b { color: var(--ink); }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .925rem; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; }
th, td { text-align: left; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 500; white-space: nowrap; }
td { font-variant-numeric: tabular-nums; }
.pairs th { width: 42%; }
.pairs td, .pairs th { overflow-wrap: anywhere; white-space: normal; }
td.number, th.number { text-align: right; } td.number { white-space: nowrap; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", Consolas, monospace; font-size: .9em; }
code { overflow-wrap: anywhere; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: .4rem;
  padding: .75rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
footer { color: var(--soft); font-size: .875rem; margin-top: 3rem; padding-bottom: 2.5rem; }
@media (max-width: 34rem) { h1 { font-size: 1.4rem; } header { padding-top: 1.5rem; }
  .picture { padding: .4rem; } main, header, footer { padding-left: .9rem; padding-right: .9rem; }
  td.number, tbody th { white-space: normal; } th, td { padding-right: .4rem; font-size: .85rem; } }
@media print { :root { --ink: #000; --soft: #444; --page: #fff; --card: #fff; --accent: #000;
  --alert: #fff; --line: #bbb; --paper: #fff; --turn: none; }
  main, header, footer { max-width: none; }
  figure, tr, .alert { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .picture img { max-width: 34rem; } .scroll { overflow: visible; }
  details::details-content { content-visibility: visible; block-size: auto; } }
"""


def paragraph(text: str, *, kind: str = "") -> str:
    """A paragraph; ``kind`` is its CSS class, and what stands between backticks is code.

    >>> paragraph("Call `f`.")
    '<p>Call <code>f</code>.</p>'
    """
    attribute = f' class="{kind}"' if kind else ""
    content = re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))
    return f"<p{attribute}>{content}</p>"


def heading(text: str) -> str:
    """The title of the page."""
    return f"<h1>{escape(text)}</h1>\n"


def code_block(text: str) -> str:
    """Commands or code."""
    return f"<pre><code>{escape(text)}</code></pre>"


def items(texts: Iterable[str]) -> str:
    """A list."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def section(title: str, *blocks: str) -> str:
    """A section with its title; empty blocks are dropped, and so is a section without blocks."""
    content = "\n".join(block for block in blocks if block)
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>" if content else ""


def folded(title: str, *blocks: str) -> str:
    """A section that opens when its title is clicked, and on paper.

    >>> folded("The data", "", "<p>Ten nodes.</p>")
    '<details>\\n<summary><h2>The data</h2></summary>\\n<p>Ten nodes.</p>\\n</details>'
    """
    content = "\n".join(block for block in blocks if block)
    summary = f"<summary><h2>{escape(title)}</h2></summary>"
    return f"<details>\n{summary}\n{content}\n</details>" if content else ""


def alert(texts: Sequence[str]) -> str:
    """Sentences that a reader must not miss."""
    return f'<div class="alert" role="note">{items(texts)}</div>' if texts else ""


def pairs(caption: str, rows: Mapping[str, Any]) -> str:
    """A table of names and values; nothing without any."""
    lines = [[str(name), value_text(value)] for name, value in rows.items()]
    return table(caption, [], lines, words=[0, 1]) if rows else ""


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[int]
) -> str:
    """A table with a head; the first cell of a row is its name.

    Args:
        caption: of the table.
        columns: their names; none in a table of names and values.
        rows: cells as text.
        words: the columns that hold words; the others hold numbers, which are aligned right.
    """

    def attribute(column: int) -> str:
        return "" if column in words else ' class="number"'

    head = "".join(
        f'<th scope="col"{attribute(k)}>{escape(name)}</th>' for k, name in enumerate(columns)
    )
    lines = []
    for first, *cells in rows:
        line = f'<tr><th scope="row"{attribute(0)}>{escape(first)}</th>'
        line += "".join(f"<td{attribute(k)}>{escape(cell)}</td>" for k, cell in enumerate(cells, 1))
        lines.append(line + "</tr>")
    kind = "" if columns else ' class="pairs"'
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f"<table{kind}><caption>{escape(caption)}</caption>\n"
        + f"<thead><tr>{head}</tr></thead>\n" * bool(columns)
        + "<tbody>\n"
        + "\n".join(lines)
        + "\n</tbody></table></div>"
    )


def value_text(value: Any) -> str:
    """A value of a configuration as a person would write it.

    >>> [value_text(value) for value in (None, True, 0.0005, [1, 2], {"a": 1})]
    ['none', 'yes', '0.0005', '1, 2', 'a: 1']
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {value_text(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(value_text(item) for item in value)
    return str(value)


class FigureError(ValueError):
    """A run does not have what a figure shows."""


@dataclass(frozen=True)
class Plate:
    """A figure with the texts around it.

    Args:
        name: of its files, and its anchor on the page.
        draw: makes the figure.
        title: of the caption.
        caption: how to read the figure.
        alt: what the figure shows, for readers who cannot see it.

    >>> Plate("empty", lambda: "a figure", "Nothing", "There is nothing to read.", "Nothing.").title
    'Nothing'
    """

    name: str
    draw: Callable[[], Figure]
    title: str
    caption: str
    alt: str


def save_plates(plates: Sequence[Plate], folder: Path) -> list[Path]:
    """Write figures as ``NAME.svg`` and ``NAME.png``; returns the files in this order."""
    files = []
    for plate in plates:
        for kind, image in zip(("svg", "png"), to_svg_and_png(plate.draw()), strict=True):
            files.append(write_atomically(folder / f"{plate.name}.{kind}", image))
    return files


def embed(plates: Sequence[Plate], folder: Path) -> dict[str, str]:
    """Save figures, and return each as HTML with its caption, by name."""
    files = save_plates(plates, folder)
    pictures = {}
    for plate, svg, png in zip(plates, files[::2], files[1::2], strict=True):
        content, kind = svg.read_bytes(), "svg+xml"
        if len(content) > LARGEST_SVG:
            content, kind = png.read_bytes(), "png"
        data = base64.b64encode(content).decode("ascii")
        pictures[plate.name] = (
            f'<figure id="{escape(plate.name)}">\n<div class="picture">'
            f'<img alt="{escape(plate.alt)}" src="data:image/{kind};base64,{data}"></div>\n'
            f"<figcaption><b>{escape(plate.title)}.</b> {escape(plate.caption)}</figcaption>\n"
            "</figure>"
        )
    return pictures


def document(title: str, header: str, main: Iterable[str], footer: str) -> bytes:
    """The whole page."""
    blocks = "\n".join(block for block in main if block)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>{CSS}</style>
</head>
<body>
<header>
{header}
</header>
<main>
{blocks}
</main>
<footer>
{footer}
</footer>
</body>
</html>
""".encode("utf-8", "replace")
