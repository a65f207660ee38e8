"""The picture of the README: two graphs, and the filter that the same model learns on each.

It is an SVG with its own colours for light and dark, and letters that a phone still shows. Training
is repeatable on one machine; another may move the curves by a hair.
"""

from pathlib import Path
from typing import Any

import numpy as np

from longnn._base.files import write_text
from longnn.data import NodeDataset, load
from longnn.explain._subject import neighbours
from longnn.explorer import place_nodes
from longnn.records import Density
from longnn.report._filters import density_top, mean_response
from longnn.runs import train

#: Title, and how alike neighbours are, from -1 to 1.
GRAPHS = (("Neighbours are alike", 0.6), ("Neighbours differ", -0.6))
MADE: dict[str, Any] = {"num_nodes": 240, "num_features": 120, "degree": 6.0, "seed": 2}
TRAINED: dict[str, Any] = {"preset": "fast", "baselines": False, "degree": 4}
#: Of a panel, in pixels: its width, and the heights of the graph and of the filter.
WIDTH, GRAPH, FILTER = 340, 300, 190
GAP, MARGIN, TITLE, LABELS = 20, 20, 44, 62
STYLE = """
:root { color-scheme: light dark }
.page { fill: #ffffff } .ink { fill: #1c2430 } .soft { fill: #55606f }
.edges { stroke: #9aa5b5; stroke-width: .7; fill: none; opacity: .6 }
.a { fill: #d1600a } .b { fill: #2f6db3 }
.area { fill: #d9dee6 } .curve { stroke: #12305f; stroke-width: 4; fill: none }
.axis { stroke: #9aa5b5; stroke-width: 1.5 }
text { font: 19px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
.title { font-size: 23px; font-weight: 600 }
@media (prefers-color-scheme: dark) {
.page { fill: #14181f } .ink { fill: #e8ebf0 } .soft { fill: #a9b3c1 }
.edges { stroke: #5a6675 } .a { fill: #f08a3c } .b { fill: #6fb3e0 }
.area { fill: #2c3440 } .curve { stroke: #8fc1ea } .axis { stroke: #5a6675 } }
"""


def write_picture(path: Path, *, options: dict[str, Any] | None = None) -> Path:
    """Train on both graphs and draw what was learned.

    Args:
        path: of the SVG file.
        options: settings and options of the training, besides the defaults of one model.
    """
    panels = []
    for number, (title, phi) in enumerate(GRAPHS):
        dataset = load("csbm", phi=phi, **MADE)
        run = train(dataset, {**TRAINED, **(options or {})})
        (learned, *_), density = run.record.filters, run.record.data.density
        assert density is not None
        graph = neighbours(run.problem.operator)
        left = MARGIN + number * (WIDTH + GAP)
        words = learned.words.partition(",")[0]
        panels += [
            f'<g transform="translate({left} {MARGIN})">',
            _text(title, WIDTH / 2, 24, "title ink"),
            *_graph(dataset, place_nodes(graph)),
            *_filter(learned.eigenvalues, mean_response(learned.response), density, words),
            "</g>",
        ]
    width = 2 * (MARGIN + WIDTH) + GAP
    height = 2 * MARGIN + TITLE + GRAPH + FILTER + LABELS
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>Two graphs, and the filter that one model learns on each</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}" rx="12"/>',
        *panels,
        "</svg>",
    ]
    write_text(path, "\n".join(lines) + "\n")
    return path


def _text(text: str, x: float, y: float, kind: str, anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{text}</text>'


def _line(points: np.ndarray) -> str:
    """Points of shape (count, 2) as a path with a tenth of a pixel."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _graph(dataset: NodeDataset, place: np.ndarray) -> list[str]:
    """Edges as one path, nodes coloured by class."""
    at = np.array([WIDTH / 2, TITLE + GRAPH / 2]) + place * (GRAPH / 2 - 12)
    row, col = dataset.data.edge_index.numpy()
    ends = np.stack([at[row[row < col]], at[col[row < col]]], 1)
    drawn = [f'<path class="edges" d="{"".join(map(_line, ends))}"/>']
    for kind, name in enumerate("ab"):
        nodes = at[dataset.data.y.numpy() == kind]
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in nodes)
        drawn.append(f'<g class="{name}">{dots}</g>')
    return drawn


def _filter(
    eigenvalues: np.ndarray,  # (points,)
    response: np.ndarray,  # (points,)
    density: Density,  # of the graph: eigenvalues, density
    words: str,
) -> list[str]:
    """The learned filter over the spectrum of its graph."""
    top, bottom = TITLE + GRAPH + 24, TITLE + GRAPH + FILTER

    def points(x: np.ndarray, share: np.ndarray) -> np.ndarray:
        return np.stack([x * WIDTH / 2, bottom - share * (bottom - top)], 1)

    where, dense = density
    area = points(where, 0.6 * np.minimum(dense / density_top(where, dense), 1))
    area = np.concatenate([[[area[0, 0], bottom]], area, [[area[-1, 0], bottom]]])
    strength = np.abs(response) / np.abs(response).max()
    return [
        f'<path class="area" d="{_line(area)}Z"/>',
        f'<path class="axis" d="M0 {bottom}H{WIDTH}"/>',
        f'<path class="curve" d="{_line(points(eigenvalues, strength))}"/>',
        _text("shared by neighbours", 0, bottom + 24, "soft", "start"),
        _text("alternating", WIDTH, bottom + 24, "soft", "end"),
        _text(f"learned filter: {words}", WIDTH / 2, bottom + 52, "ink"),
    ]
