"""Tables and the figure of the study, from its record alone."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from lab.records import StudyRecord
from lab.studies._core._context import record_path, save_figure
from lab.studies._core._table import ResultTable
from lab.studies.explanations._measure import GRAPHS, MethodCell, Plan, SumsCell
from longnn.report import GREY, NAVY, ORANGE, SKY, in_style, new_figure

NAMES = {
    "exact": "exact contributions",
    "gnnexplainer": "GNNExplainer",
    "gnnexplainer-tuned": "GNNExplainer, rate 0.1",
    "saliency": "gradient x input",
    "random": "random order",
}
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


def read_cells(folder: Path) -> tuple[Plan, dict[str, dict[str, MethodCell]], dict[str, SumsCell]]:
    """The plan, the methods of each graph, and the sums of each graph."""
    record = StudyRecord.load(record_path(folder))
    sums = record.all(SumsCell, prefix="sums/")
    graphs = [graph for graph in GRAPHS if graph in sums]
    cells = {graph: record.all(MethodCell, prefix=f"method/{graph}/") for graph in graphs}
    return record.plan(Plan), cells, {graph: sums[graph] for graph in graphs}


def _in_order(methods: dict[str, MethodCell]) -> dict[str, MethodCell]:
    """As tables and legends list them, whatever was computed first."""
    return {name: methods[name] for name in NAMES if name in methods}


def area(cell: MethodCell, curve: str) -> float:
    """The mean probability over all nodes and sizes of a curve.

    >>> area(MethodCell([1.0], [0.5], [[0.8, 0.4]], [[0.6, 0.9]], [[0.9, 0.7]], [0.1]), "deletion")
    0.6...
    """
    return float(np.mean(getattr(cell, curve)))


def tables(folder: Path) -> list[ResultTable]:
    """Faithfulness of each method, and exactness and time."""
    plan, cells, sums = read_cells(folder)
    return [_faithfulness(plan, cells), _time(plan, cells, sums)]


def _faithfulness(plan: Plan, cells: dict[str, dict[str, MethodCell]]) -> ResultTable:
    rows = []
    for graph, methods in cells.items():
        for name, cell in _in_order(methods).items():
            hits = "–" if cell.hits is None else f"{100 * cell.hits:.0f} %"
            areas = [f"{area(cell, curve):.3f}" for curve in CURVES]
            rows.append([f"{graph}, {NAMES[name]}", *areas, hits, f"{np.mean(cell.seconds):.2g}"])
    columns = ["graph and method", "deletion (low is good)", "insertion (high is good)"]
    columns += ["removal of nodes (low is good)", "informant first", "seconds per node"]
    sizes = ", ".join(map(str, plan.sizes))
    caption = (
        f"Mean probability of the predicted class over {plan.nodes} test nodes and the first "
        f"{sizes} nodes of each ranking: their features deleted, only they inserted, or other "
        "nodes removed with their edges; how often the planted informant is first among other "
        f"nodes; seconds for one node. GNNExplainer: one mask per node, {plan.explainer_epochs} "
        "epochs, at PyG's learning rate of 0.01 and at 0.1, the best of five settings tried on "
        "eight nodes of the planted graph."
    )
    return ResultTable("faithfulness", caption, columns, rows)


def _time(
    plan: Plan, cells: dict[str, dict[str, MethodCell]], sums: dict[str, SumsCell]
) -> ResultTable:
    rows = []
    for graph, cell in sums.items():
        other = cells[graph]["gnnexplainer"].seconds
        few = FEW * float(np.mean(other))
        rows.append(
            [
                *(graph, str(cell.explained), f"{cell.gap:.0e}", f"{cell.feature_gap:.0e}"),
                *(f"{cell.float32:.0e}", f"{cell.seconds_nodes:.2g}", f"{cell.seconds:.2g}"),
                f"{few:.3g}",
            ]
        )
    columns = ["graph", "nodes explained", "gap by node", "gap by feature", "gap to float32"]
    columns += ["seconds by node", "seconds with features", f"seconds of GNNExplainer, {FEW} nodes"]
    caption = (
        "Largest difference between a score and the sum of its parts, and between that sum and "
        "the score of the float32 model; seconds for all nodes at once, on one thread of a shared "
        f"machine; GNNExplainer: {FEW} times its mean."
    )
    return ResultTable("sums", caption, columns, rows)


def draw(folder: Path) -> list[Path]:
    """All curves: one row per graph, one column per kind."""
    plan, cells, _ = read_cells(folder)
    return [save_figure(folder, "curves", draw_curves(plan, cells))]


@in_style
def draw_curves(plan: Plan, cells: dict[str, dict[str, MethodCell]]) -> Figure:
    """Mean probability of the predicted class over the number of nodes."""
    figure, grid = new_figure(
        "Probability of the predicted class",
        height=0.9 + 2.4 * len(cells), rows=len(cells), columns=len(CURVES),
    )  # fmt: skip
    at = np.arange(len(plan.sizes) + 1)
    for row, (graph, methods) in zip(grid, cells.items(), strict=True):
        for axes, (curve, title) in zip(row, CURVES.items(), strict=True):
            for name, cell in _in_order(methods).items():
                colour, line, mark = LOOKS[name]
                first = np.mean(cell.empty if curve == "insertion" else cell.start)
                values = [first, *np.mean(getattr(cell, curve), axis=0)]
                look = {"color": colour, "linestyle": line, "marker": mark, "markersize": 4.5}
                axes.plot(at, values, **look, label=NAMES[name])
            axes.set_title(f"{graph}: {title}", fontsize=9.5)
            axes.set_xticks(at, ["0", *map(str, plan.sizes)])
            axes.set_ylim(0, 1.03)
        row[0].set_ylabel("probability")
    for axes in grid[-1]:
        axes.set_xlabel("nodes")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
