"""How faithful explanations are: the exact split against GNNExplainer, saliency and chance.

History: nodes were ranked by what they give to a prediction, then deleted in that order, or
inserted into a graph without features. A faithful ranking makes the probability of the predicted
class fall, or rise, at once. On a planted graph the node that decides is known. The records stay;
the code that trained and ranked went.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lab.records import Values
from lab.studies._engine import read_record
from lab.studies._printed import read_toml
from lab.studies._views import CAPTIONS, ResultTable
from longnn.report._style import GREY, NAVY, ORANGE, SKY, in_style, new_figure

TITLE = "How faithful explanations are, and how fast (history)"
ORDER = 120

NAMES: dict[str, str] = read_toml("labels")["explanations"]
CURVES = {"deletion": "deletion", "insertion": "insertion", "removal": "removal of nodes"}
LOOKS = {
    "exact": (NAVY, "-", "o"),
    "gnnexplainer": (ORANGE, "--", "s"),
    "gnnexplainer-tuned": (ORANGE, (0, (1, 1)), "D"),
    "saliency": (SKY, "-.", "^"),
    "random": (GREY, ":", "x"),
}
#: Nodes of GNNExplainer that the time of many exact ones is compared with.
FEW = 10
GRAPHS = ("planted", "cora")


def read(folder: Path) -> tuple[Values, dict[str, dict[str, Values]], dict[str, Values]]:
    """The plan, the methods of each graph as tables list them, and the sums of each graph."""
    record = read_record(folder)
    measured = {g: {n: record[f"method/{g}/{n}"] for n in NAMES} for g in GRAPHS}
    return record.plan, measured, {graph: record[f"sums/{graph}"] for graph in GRAPHS}


def tables(folder: Path) -> list[ResultTable]:
    """Faithfulness of each method, and exactness and time."""
    _, measured, sums = read(folder)
    faithful, times = [], []
    for graph, by_method in measured.items():
        for name, cell in by_method.items():
            hits = f"{100 * cell['hits']:.0f} %" if "hits" in cell else "–"
            areas = [f"{np.mean(cell[curve]):.3f}" for curve in CURVES]
            each = f"{np.mean(cell['seconds']):.2g}"
            faithful.append([f"{graph}, {NAMES[name]}", *areas, hits, each])
    for graph, cell in sums.items():
        few = FEW * float(np.mean(measured[graph]["gnnexplainer"]["seconds"]))
        gaps = [f"{cell[key]:.0e}" for key in ("gap", "feature_gap", "float32")]
        took = [f"{cell[key]:.2g}" for key in ("seconds_nodes", "seconds")]
        times.append([graph, str(cell["explained"]), *gaps, *took, f"{few:.3g}"])
    curves = [
        "deletion (low is good)",
        "insertion (high is good)",
        "removal of nodes (low is good)",
    ]
    gaps = ["gap by node", "gap by feature", "gap to float32"]
    columns = {
        "faithfulness": ["graph and method", *curves, "informant first", "seconds per node"],
        "sums": [
            *("graph", "nodes explained", *gaps, "seconds by node", "seconds with features"),
            f"seconds of GNNExplainer, {FEW} nodes",
        ],
    }
    rows = {"faithfulness": faithful, "sums": times}
    says = CAPTIONS["explanations"]
    return [ResultTable(name, says[name], columns[name], rows[name]) for name in columns]


def figures(folder: Path) -> dict[str, Figure]:
    """All curves: one row per graph, one column per kind."""
    plan, measured, _ = read(folder)
    return {"curves": draw_curves(plan, measured)}


@in_style
def draw_curves(plan: Values, cells: Mapping[str, Mapping[str, Values]]) -> Figure:
    """Mean probability of the predicted class over the number of nodes."""
    figure, grid = new_figure(
        "Probability of the predicted class",
        height=0.9 + 2.4 * len(cells), rows=len(cells), columns=len(CURVES),
    )  # fmt: skip
    at = np.arange(len(plan["sizes"]) + 1)
    for row, (graph, methods) in zip(grid, cells.items(), strict=True):
        for axes, (curve, title) in zip(row, CURVES.items(), strict=True):
            for name, cell in methods.items():
                colour, line, mark = LOOKS[name]
                first = np.mean(cell["empty" if curve == "insertion" else "start"])
                values = [first, *np.mean(cell[curve], axis=0)]
                look = {"color": colour, "linestyle": line, "marker": mark, "markersize": 4.5}
                axes.plot(at, values, **look, label=NAMES[name])
            axes.set_title(f"{graph}: {title}", fontsize=9.5)
            axes.set_xticks(at, ["0", *map(str, plan["sizes"])])
            axes.set_ylim(0, 1.03)
        row[0].set_ylabel("probability")
    for axes in grid[-1]:
        axes.set_xlabel("nodes")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def facts(folder: Path) -> dict[str, Any]:
    """On how many graphs the exact ranking is better than the others, and how much faster."""
    _, measured, sums = read(folder)
    learned = ("gnnexplainer", "gnnexplainer-tuned")

    def area(cell: Values, curve: str) -> float:
        return float(np.mean(cell[curve]))

    def better(of: Mapping[str, Values], other: str) -> bool:
        lower = area(of["exact"], "deletion") < area(of[other], "deletion")
        return lower and area(of["exact"], "insertion") > area(of[other], "insertion")

    nearly = [
        abs(area(of["exact"], curve) - area(of["saliency"], curve))
        for of in measured.values()
        for curve in CURVES
    ]
    few = {g: FEW * np.mean(of["gnnexplainer"]["seconds"]) for g, of in measured.items()}
    return {
        "graphs": len(measured),
        "better": sum(all(better(of, other) for other in learned) for of in measured.values()),
        "gap": max(max(of["gap"], of["feature_gap"]) for of in sums.values()),
        "nearly": math.ceil(100 * max(nearly)) / 100,
        "explained": min(of["explained"] for of in sums.values()),
        "few": FEW,
        "faster": sum(sums[g]["seconds"] < seconds for g, seconds in few.items()),
    }
