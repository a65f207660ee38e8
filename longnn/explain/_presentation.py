"""How explanations are shown: sentences, rows of tables, a figure, a page."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longnn._base.files import writing
from longnn._base.version import __version__
from longnn.explain._forms import WAYS
from longnn.report import _html as html
from longnn.report._style import GREY, NAVY, ORANGE, in_style, new_figure, plain, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from longnn.explain._nodes import Explanation, NodeExplanation, Shares

#: Sources that a sentence names.
NAMED = 3
#: Contributions below this share of the constant hardly matter.
SMALL = 0.25
LARGEST = 600.0  # area of the largest mark, in square points
LABELLED = 8  # sources that have their id beside them
RINGS = 5  # rings that are drawn; those beyond share the last
BARS = 12  # bars that all have their number below
ROOM = 0.9  # around the node in the middle, in units of the distance between rings
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


def ring_name(distance: int) -> str:
    """A distance in words.

    >>> [ring_name(d) for d in (0, 1, 3, -1)]
    ['the node itself', '1 hop', '3 hops', 'elsewhere']
    """
    if distance < 0:
        return "elsewhere"
    return "the node itself" if distance == 0 else f"{distance} hop{'s' if distance > 1 else ''}"


def signed(value: float) -> str:
    """A number with its sign; what rounds to nothing has none.

    >>> signed(0.1234), signed(-2.0), signed(1e-9)
    ('+0.123', '-2.000', '0.000')
    """
    text = f"{value:+.3f}"
    return "0.000" if text in ("+0.000", "-0.000") else text


def why(explanation: "Explanation", e: "NodeExplanation") -> list[str]:
    """Why a node has its score, in sentences."""
    sure = "" if e.probability is None else f", with probability {e.probability:.2f} for {e.output}"
    told = [f"Node {e.node} is predicted {e.predicted}{sure}."]
    if e.without:
        told.append(
            f"The scores alone would say {e.without}: the shift towards the class frequencies of "
            f"the validation nodes adds {e.shift:.2f} to the log-odds of {e.predicted} against "
            f"{e.without}."
        )
    output = "" if e.probability is None else f" for {e.output}"
    told.append(f"The numbers below add up to {e.score:.3f}{output}: {explanation.what}.")
    of_node = float(e.contribution[e.distance == 0].sum())
    others = e.contribution[e.distance != 0]
    told.append(
        f"The node itself gives {signed(of_node)}, {len(others)} other node"
        f"{'' if len(others) == 1 else 's'} {signed(float(others.sum()))}"
        + (f", and {signed(e.constant)} is constant." if e.constant else ".")
    )
    largest = _largest(e)
    if largest:
        told.append(f"The largest of these: {largest}.")
    if np.abs(e.contribution).sum() < SMALL * abs(e.constant):
        told.append(
            "So this is nearly the score where all features are zero: no node stands out for it."
        )
    if e.known is not None:
        what = "it" if e.probability is None else f"the logarithm of {e.output}'s probability"
        largest = _largest(e.known)
        told.append(
            f"What the models left unexplained at {len(e.known.sources)} known answers then adds "
            f"{signed(e.change)} to {what}{f'; the largest: {largest}' if largest else ''}."
        )
    return told


def _largest(e: "Shares") -> str:
    """The other nodes that contribute most."""
    order = [k for k in e.order if e.distance[k] != 0 and abs(e.contribution[k]) > 0]
    return ", ".join(
        f"{e.sources[k]} ({ring_name(int(e.distance[k]))}, {signed(float(e.contribution[k]))})"
        for k in order[:NAMED]
    )


def sums(e: "NodeExplanation") -> str:
    """The sum that adds up, in one line."""
    *parts, score = sum_rows(e)
    return ", ".join(" ".join(row) for row in parts) + f": {' '.join(score)}"


def sum_rows(e: "NodeExplanation") -> list[list[str]]:
    """The parts and the score that they add up to; known answers change the prediction, not it."""
    known = [] if e.known is None else [["known answers", signed(e.change)]]
    return [
        *known,
        ["constant", signed(e.constant)],
        ["contributions", signed(float(e.contribution.sum()))],
        ["gap", f"{e.gap:.1e}"],
        ["score", f"{e.score:.4f}"],
    ]


def tables(
    explanation: "Explanation", e: "NodeExplanation", limit: int
) -> list[tuple[str, list[str], list[list[str]]]]:
    """The tables of a node, for the terminal and for the page: title, columns and rows."""
    rings = ["by distance", "nodes", "contribution"]
    each = [("Largest contributions", *source_rows(e, limit)), ("By distance", rings, ring_rows(e))]
    if e.ways is not None:
        ways = [[way, signed(float(value))] for way, value in zip(WAYS, e.ways, strict=True)]
        each.append(("By way", ["by way", "contribution"], ways))
    if e.features is not None:
        rows = feature_rows(explanation, e, limit)
        each.append(("By feature", ["by feature", "contribution"], rows))
    if e.known is not None:
        columns, rows = source_rows(e.known, limit)
        each.append(("Largest known answers", ["known answer of", *columns[1:]], rows))
        rings = ["known answers", *rings[1:]]
        each.append(("Known answers by distance", rings, ring_rows(e.known)))
    return each


def source_rows(e: "Shares", limit: int) -> tuple[list[str], list[list[str]]]:
    """The table of sources: columns and rows, the largest first, the others in one row."""
    weighed = e.weight is not None and e.says is not None
    columns = ["node", "distance", *(["weight", "says"] if weighed else []), "contribution"]
    rows = []
    for k in e.order[:limit]:
        cells = [str(e.sources[k]), str(e.distance[k]) if e.distance[k] >= 0 else "far"]
        if e.weight is not None and e.says is not None:
            cells += [f"{e.weight[k]:.4f}", signed(float(e.says[k]))]
        rows.append([*cells, signed(float(e.contribution[k]))])
    rest = e.order[limit:]
    if len(rest):
        blank = [""] * (3 if weighed else 1)
        rows.append(
            [
                f"{len(rest)} other{'s' * (len(rest) > 1)}",
                *blank,
                signed(float(e.contribution[rest].sum())),
            ]
        )
    return columns, rows


def ring_rows(e: "Shares") -> list[list[str]]:
    """The table of distances; the last of them, if they give nothing, share a row.

    >>> from types import SimpleNamespace
    >>> e = SimpleNamespace(rings={0: (1, 2.0), 1: (3, -0.5), 2: (4, 0.0), 3: (9, 1e-6)})
    >>> ring_rows(e)[1:]
    [['1 hop', '3', '-0.500'], ['2 to 3 hops', '13', '0.000']]
    """
    rings = [(d, n, signed(total)) for d, (n, total) in e.rings.items()]
    near = [*rings]
    while near[-1][0] > 1 and near[-1][2] == "0.000":
        near.pop()
    rest = rings[len(near) :]
    if len(rest) < 2:
        near, rest = rings, []
    rows = [[ring_name(d), f"{n}", total] for d, n, total in near]
    if rest:
        nodes = sum(n for _, n, _ in rest)
        total = signed(sum(e.rings[d][1] for d, _, _ in rest))
        rows.append([f"{rest[0][0]} to {rest[-1][0]} hops", f"{nodes}", total])
    return rows


def feature_rows(explanation: "Explanation", e: "NodeExplanation", limit: int) -> list[list[str]]:
    """The table of features, the largest first; the rest and what has no feature below."""
    assert e.features is not None
    order = [int(f) for f in abs(e.features).argsort()[::-1] if e.features[f]]
    rows = [[explanation.feature_names[f], signed(float(e.features[f]))] for f in order[:limit]]
    if order[limit:]:
        rest = float(e.features[order[limit:]].sum())
        rows.append([f"{len(order) - limit} other{'s' * (len(order) - limit > 1)}", signed(rest)])
    return [*rows, ["(no feature: biases)", signed(e.base + e.constant)]]


@in_style
def draw_neighbourhood(e: "NodeExplanation", *, limit: int = 40) -> "Figure":
    """Node in the middle, sources on circles by distance; below, the sum of each ring.

    Filled marks add to the score, hollow ones take from it; the area is the size.
    """
    figure, grid = new_figure(
        f"Where the score of {plain(str(e.node), 30)} comes from",
        height=8.2,
        rows=2,
        ratios=[3.4, 1.0],
    )
    _draw_rings(grid[0, 0], e, limit)
    _draw_bars(grid[1, 0], e)
    return figure


def _draw_rings(axes: Any, e: "NodeExplanation", limit: int) -> None:
    from matplotlib.patches import Circle

    shown = e.order[:limit]
    reach = np.where(e.distance < 0, RINGS, np.minimum(e.distance, RINGS))
    outer = max(1, int(reach[shown].max()))
    for radius in range(1, outer + 1):
        axes.add_patch(Circle((0, 0), radius + ROOM, fill=False, color="#b8b8b8", lw=0.8, zorder=1))
    top = float(np.abs(e.contribution).max()) or 1.0
    for radius in range(outer + 1):
        ring = [k for k in shown if reach[k] == radius]
        for turn, k in zip(spread(len(ring)), ring, strict=True):
            angle = 2 * np.pi * turn / len(ring) + np.pi / 2 - radius
            away = radius + ROOM if radius else 0.0
            x, y = away * np.cos(angle), away * np.sin(angle)
            value = float(e.contribution[k])
            face, line = (NAVY, NAVY) if value > 0 else ("white", ORANGE)
            axes.scatter(
                [x], [y], s=max(LARGEST * abs(value) / top, 8.0), facecolor=face, edgecolor=line,
                linewidth=2.0, zorder=3 if value > 0 else 4,
            )  # fmt: skip
            if k in shown[:LABELLED]:
                text = f"{plain(str(e.sources[k]), 16)}\n{signed(value)}"
                axes.annotate(
                    text, (x, y), xytext=(0, -13), textcoords="offset points", ha="center",
                    va="top", fontsize=8, zorder=5,
                    bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8},
                )  # fmt: skip
    hidden = e.order[limit:]
    rest = ""
    if len(hidden):
        rest = f"; not drawn: {len(hidden)} others, {signed(float(e.contribution[hidden].sum()))}"
    axes.set_title(f"filled: adds to the score, hollow: takes from it{rest}", fontsize=9)
    axes.set_aspect("equal")
    edge = outer + ROOM
    axes.set_xlim(-edge - 0.55, edge + 0.55)
    axes.set_ylim(-edge - 0.75, edge + 0.45)
    axes.axis("off")


def _draw_bars(axes: Any, e: "NodeExplanation") -> None:
    rings = e.rings
    names = ["self" if d == 0 else "far" if d < 0 else str(d) for d in rings]
    totals = [total for _, total in rings.values()]
    if len(names) > BARS:
        names = [name if k % 2 == 0 or name == "far" else "" for k, name in enumerate(names)]
    if e.constant:  # its name is below the numbers, which leave no room
        names, totals = [*names, "\nconstant"], [*totals, e.constant]
    colours = [NAVY if total > 0 else "white" for total in totals]
    edges = [NAVY if total > 0 else ORANGE for total in totals]
    axes.bar(range(len(totals)), totals, color=colours, edgecolor=edges, linewidth=1.6)
    axes.axhline(0, color=GREY, lw=0.8)
    axes.set_xticks(range(len(names)), names)
    axes.set_xlabel("distance in hops")
    axes.set_ylabel("contribution")


def describe(e: "NodeExplanation") -> str:
    """The figure in words, for readers who cannot see it."""
    rings = ", ".join(f"{ring_name(d)} {signed(total)}" for d, (_, total) in e.rings.items())
    return f"The score of node {e.node}, {e.score:.3f}, by distance: {rings}."


def spread(count: int) -> list[int]:
    """Places on a circle for marks in order of size, so that the largest are far apart.

    >>> spread(5)
    [0, 3, 1, 4, 2]
    """
    golden = (1 + 5**0.5) / 2
    return np.argsort(np.argsort(np.arange(count) * golden % 1)).tolist()


def write_page(explanation: "Explanation", path: Path) -> Path:
    """Write the page of an explanation; returns its path."""
    plates = [
        html.Plate(
            f"node-{k}",
            lambda e=e: draw_neighbourhood(e),  # type: ignore[misc]
            f"Node {e.node}",
            "The node is in the middle, sources lie on circles by their distance in hops. Filled "
            "marks add to the score, hollow ones take from it; the area is the size.",
            describe(e),
        )
        for k, e in enumerate(explanation.nodes[:DRAWN])
    ]
    with tempfile.TemporaryDirectory() as folder:
        pictures = html.embed(plates, Path(folder))
    sections = [
        html.section(f"Why {e.node}?", *_node(explanation, e, pictures.get(f"node-{k}", "")))
        for k, e in enumerate(explanation.nodes)
    ]
    title = f"Why? {len(explanation)} explained prediction{'s' if len(explanation) > 1 else ''}"
    method = [HOW] if explanation.exact else [HOW, INTEGRATED]
    about = f"Model: {explanation.model}. Method: {explanation.method}."
    content = html.document(
        title=title,
        header=html.heading(title) + html.paragraph(about, kind="soft"),
        main=[
            *sections,
            html.section(
                "How to read this", *(html.paragraph(text) for text in method),
                html.alert(explanation.notes),
            ),
        ],
        footer=html.paragraph(
            f"Written by longnn {__version__}. This page needs no network and no other file."
        ),
    )  # fmt: skip
    with writing(path):
        return write_atomically(path, content)


def short_page(explanation: "Explanation") -> str:
    """The first nodes for a notebook: why, and the largest contributions."""
    blocks = []
    for e in explanation.nodes[:NAMED]:
        columns, rows = source_rows(e, NAMED)
        blocks.append(html.paragraph(" ".join(why(explanation, e))))
        blocks.append(html.table("Largest contributions", columns, rows, words=[0]))
    rest = len(explanation) - NAMED
    return "\n".join([*blocks, html.paragraph(f"{rest} more") if rest > 0 else ""])


def _node(explanation: "Explanation", e: "NodeExplanation", picture: str) -> Sequence[str]:
    """The blocks of one node: words, picture, tables whose sums add up."""
    each = [("Sums", ["part", "value"], sum_rows(e)), *tables(explanation, e, ROWS)]
    blocks = [html.table(caption, head, rows, words=[0]) for caption, head, rows in each if rows]
    return [html.paragraph(" ".join(why(explanation, e))), picture, *blocks]
