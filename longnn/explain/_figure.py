"""The neighbourhood of a node, drawn: rings by distance, sources by sign and size."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Circle

from longnn.explain._words import ring_name, signed
from longnn.report import GREY, NAVY, ORANGE, in_style, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from longnn.explain._explanation import NodeExplanation

LARGEST = 600.0  # area of the largest mark, in square points
NAMED = 8  # sources that have their id beside them
RINGS = 5  # rings that are drawn; those beyond share the last
ROOM = 0.9  # around the node in the middle, in units of the distance between rings


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
            if k in shown[:NAMED]:
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
    if e.constant:
        names, totals = [*names, "constant"], [*totals, e.constant]
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
