"""Explanations as one HTML page, from the pieces of the report."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from longnn import report
from longnn._base.files import writing
from longnn._base.version import __version__
from longnn.explain import _figure, _words
from longnn.explain._words import feature_rows, ring_rows, signed, source_rows, way_rows

if TYPE_CHECKING:
    from longnn.explain._explanation import Explanation, NodeExplanation

#: Rows of a table of sources and of features; nodes with a figure.
ROWS, DRAWN = 20, 20

HOW = (
    "A filter is linear in its signal. The score of a node is a sum over source nodes: the weight "
    "that the filter gives a source, times what the source says of itself. No model of the model "
    "is fitted, and nothing is sampled."
)
INTEGRATED = (
    "Where a model is not linear after its filter, contributions are integrated gradients from a "
    "graph without features. They add up to the score but for the gap that is shown."
)


def write_page(explanation: "Explanation", path: Path) -> Path:
    """Write the page of an explanation; returns its path."""
    plates = [
        report.Plate(
            f"node-{k}",
            lambda e=e: _figure.draw_neighbourhood(e),  # type: ignore[misc]
            f"Node {e.node}",
            "The node is in the middle, sources lie on circles by their distance in hops. Filled "
            "marks add to the score, hollow ones take from it; the area is the size.",
            _figure.describe(e),
        )
        for k, e in enumerate(explanation.nodes[:DRAWN])
    ]
    with tempfile.TemporaryDirectory() as folder:
        pictures = report.embed(plates, Path(folder))
    sections = [
        report.section(f"Why {e.node}?", *_node(explanation, e, pictures.get(f"node-{k}", "")))
        for k, e in enumerate(explanation.nodes)
    ]
    title = f"Why? {len(explanation)} explained prediction{'s' if len(explanation) > 1 else ''}"
    method = [HOW] if explanation.exact else [HOW, INTEGRATED]
    about = f"Model: {explanation.model}. Method: {explanation.method}."
    content = report.document(
        title=title,
        header=report.heading(title) + report.paragraph(about, kind="soft"),
        main=[
            *sections,
            report.section(
                "How to read this", *(report.paragraph(text) for text in method),
                report.alert(explanation.notes),
            ),
        ],
        footer=report.paragraph(
            f"Written by longnn {__version__}. This page needs no network and no other file."
        ),
    )  # fmt: skip
    with writing(path):
        return report.write_atomically(path, content)


def _node(explanation: "Explanation", e: "NodeExplanation", picture: str) -> Sequence[str]:
    """The blocks of one node: words, picture, tables whose sums add up."""
    blocks = [report.paragraph(" ".join(_words.why(explanation, e))), picture]
    blocks.append(report.table("Sums", ["part", "value"], _sums(e), words=[0]))
    rings = ring_rows(e)
    blocks.append(report.table("By distance", ["distance", "nodes", "sum"], rings, words=[0]))
    if e.ways is not None:
        blocks.append(report.table("By way", ["way", "sum"], way_rows(e), words=[0]))
    columns, rows = source_rows(e, ROWS)
    blocks.append(report.table("Largest contributions", columns, rows, words=[0]))
    if e.features is not None:
        rows = feature_rows(explanation, e, ROWS)
        blocks.append(report.table("By feature", ["feature", "contribution"], rows, words=[0]))
    return blocks


def _sums(e: "NodeExplanation") -> list[list[str]]:
    rows = [["constant", signed(e.constant)]]
    rows.append(["contributions of nodes", signed(float(e.contribution.sum()))])
    return [*rows, ["gap", f"{e.gap:.1e}"], ["score", f"{e.score:.4f}"]]
