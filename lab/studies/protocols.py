"""The models of Table 3 again under honest protocols, side by side with the published split.

A. The published split, which leaves whole classes out of the test set: from the records of
   ``accuracy``.
B. A plain stratified 60/20/20, seeds 0 to 9.
C. The ten fixed geom-gcn masks, where a graph has them.

History: every model was trained with the configuration that the equal-budget search of ``accuracy``
chose for it on that graph, and ensembles with portfolios that were chosen without the graph. On
Minesweeper and Tolokers, which have ten fixed masks and are scored by ROC AUC, every family had the
same small random search on validation nodes. The records stay; the code that trained went.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from lab.records import Values
from lab.studies import accuracy
from lab.studies._engine import read_records
from lab.studies._printed import FIXED_MASKS, PAPER, TEN, UNIFORM_SPLIT
from lab.studies._views import (
    CAPTIONS,
    Grid,
    ResultTable,
    Scores,
    average_ranks,
    dot_plot,
    gains,
    interval,
    listed,
    means,
    minus_base,
    models_table,
    numbered,
    percent,
    pivot,
    printed_rows,
)

TITLE = "Honest protocols: the models of Table 3 on stratified splits and fixed masks (history)"
ORDER, AFTER = 95, ("accuracy", "recipes")
SAYS = CAPTIONS["protocols"]

#: The parts, by name: protocols B and C, and the graphs whose configurations were searched there.
STRATIFIED, GEOM_GCN, SEARCHED = "stratified", "geom-gcn", "searched"
#: Graphs of each part. Cora, Citeseer and Pubmed are read from files that have no geom-gcn masks,
#: and there are none for Computers and Photo.
GRAPHS = {
    STRATIFIED: PAPER,
    GEOM_GCN: ("chameleon", "squirrel", "actor", "texas", "cornell", "cornell-legacy"),
    SEARCHED: ("minesweeper", "tolokers"),
}
#: The keys of LON-GNN's recipe as a single model, and of the cell about classes.
RECIPE, CLASSES = "lon-recipe", "classes"
ENSEMBLES = {
    "lon-recipe-seeds": "ensemble: LON-GNN's recipe, 8 seeds averaged",
    "portfolio": "ensemble: portfolio chosen without the graph",
    "portfolio-best": "ensemble: portfolio of best, without the graph",
}
#: Single models: the rows of Table 3, and the recipe.
SINGLE = {**accuracy.LABELS, RECIPE: "LON-GNN's recipe"}
#: Single row -> the model that it is a variant of.
MODELS = {**accuracy.MODELS, RECIPE: "lon"}
LABELS = {**SINGLE, **ENSEMBLES}
#: One row per model: what the order of models is taken from.
EQUAL = accuracy.EQUAL
ALONE = {key: key for key in EQUAL}


def read_part(folder: Path, part: str) -> dict[str, dict[str, list[float]]]:
    """Graph -> row -> test scores of one part."""
    names = {f"{graph}-{part}": graph for graph in GRAPHS[part]}
    records = {names[n]: record for n, record in read_records(folder, list(names)).items()}
    return pivot(records, LABELS)


def read_grids(folder: Path) -> dict[str, Grid]:
    """Protocol -> its grid; A, the published split, is of the study ``accuracy``."""
    grids = {part: read_part(folder, part) for part in GRAPHS}
    return {"A": pivot(accuracy.read(folder.parent / "accuracy")), **grids}


def tables(folder: Path) -> list[ResultTable]:
    """Scores of each part, the order of models, and the differences to LON-GNN under B."""
    grids = read_grids(folder)
    return [
        scores_table("stratified", grids[STRATIFIED], UNIFORM_SPLIT),
        scores_table("geom-gcn", grids[GEOM_GCN]),
        scores_table("masks", grids[SEARCHED], FIXED_MASKS),
        order_table(grids, read_classes(folder)),
        ranks_table(grids),
        minus_base("differences", SAYS["differences"], grids[STRATIFIED], LABELS, "lon"),
    ]


def scores_table(name: str, grid: Grid, printed: Mapping[str, float] | None = None) -> ResultTable:
    """Single models, then ensembles, then what others printed and how far the best single is."""
    table = models_table(name, SAYS[name], grid, SINGLE, MODELS)
    graphs = table.columns[1:-1]
    rows = [*table.rows]
    for key, label in ENSEMBLES.items():
        if any(key in grid[g] for g in graphs):
            shown = [interval(grid[g][key]) if key in grid[g] else "" for g in graphs]
            rows.append([label, *shown, ""])
    if printed:
        best = "best single model"
        rows += [[*row, ""] for row in printed_rows(grid, graphs, printed, best, ENSEMBLES)]
    return dataclasses.replace(table, rows=rows)


def read_classes(folder: Path) -> dict[str, list[Values]]:
    """Graph -> its counts of classes without test nodes, under B and then under C."""
    counts: dict[str, list[Values]] = {}
    for part in (STRATIFIED, GEOM_GCN):
        for graph in GRAPHS[part]:
            for record in read_records(folder, [f"{graph}-{part}"]).values():
                counts.setdefault(graph, []).append(record[CLASSES])
    return counts


def rank_correlation(one: Mapping[str, Scores], other: Mapping[str, Scores]) -> float | None:
    """Spearman's correlation of the mean scores of the models that both have."""
    shared = [key for key in EQUAL if key in one and key in other]
    means = [[percent(row[key]) for key in shared] for row in (one, other)]
    if len(shared) < 2 or any(np.ptp(values) == 0 for values in means):
        return None
    return round(float(spearmanr(*means).statistic), 12)


def winner(row: Mapping[str, Scores]) -> str:
    """The model with the best mean test score, the first of equals; empty where there is none."""
    means = {key: percent(row[key]) for key in EQUAL if key in row}
    return max(means, key=lambda key: means[key], default="")


def order_table(grids: Mapping[str, Grid], classes: Mapping[str, Sequence[Values]]) -> ResultTable:
    """One line per graph of protocol B: how the order of the models depends on the protocol."""
    rows = []
    for graph in grids[STRATIFIED]:
        a, b, c = (grids[part].get(graph, {}) for part in ("A", STRATIFIED, GEOM_GCN))
        ranks = [average_ranks({"": row}, ALONE).get("lon") for row in (a, b, c)]
        correlations = [rank_correlation(*two) for two in ((a, b), (a, c), (b, c))]
        rows.append(
            [
                graph,
                _untested(classes.get(graph, ())),
                *(SINGLE.get(winner(row), "") for row in (a, b, c)),
                *("" if value is None else f"{value:.2f}" for value in correlations),
                " / ".join("-" if rank is None else f"{rank:g}" for rank in ranks),
            ]
        )
    best, pairs = [f"best, {p}" for p in "ABC"], ["A and B", "A and C", "B and C"]
    columns = ["graph", "untested classes", *best, *pairs, "rank of LON-GNN"]
    return ResultTable("order", SAYS["order"].format(models=len(EQUAL)), columns, rows)


def ranks_table(grids: Mapping[str, Grid]) -> ResultTable:
    """Average ranks of the models under each protocol, on the same graphs."""

    def some(of: str, graphs: Grid) -> Grid:
        return {g: grids[of][g] for g in graphs if g in grids[of]}

    stratified, masks = grids[STRATIFIED], grids[GEOM_GCN]
    columns: dict[str, Grid] = {
        "A": some("A", stratified),
        "B": stratified,
        "A, graphs with masks": some("A", masks),
        "B, graphs with masks": some(STRATIFIED, masks),
        "C": masks,
    }
    ranks = [average_ranks(grid, ALONE) for grid in columns.values()]
    rows = [
        [SINGLE[k], *(f"{of[k]:.1f}" if k in of else "" for of in ranks)]
        for k in EQUAL
        if any(k in of for of in ranks)
    ]
    return ResultTable("ranks", SAYS["ranks"], ["model", *columns], rows)


def _untested(cells: Sequence[Mapping[str, Any]]) -> str:
    """Classes without test nodes under A, B and C, and how many classes there are."""
    if not cells:
        return ""
    counts = [cells[0]["published"], *(cell["untested"] for cell in cells)]
    spans = [sorted({min(numbers), max(numbers)}) for numbers in counts]
    shown = [" to ".join(map(str, span)) for span in spans] + ["-"] * (3 - len(counts))
    return f"{' / '.join(shown)} of {cells[0]['classes']}"


def figures(folder: Path) -> dict[str, Figure]:
    """Mean and interval of every row on every graph under protocol B."""
    grid = read_part(folder, STRATIFIED)
    return {"stratified": dot_plot(grid, LABELS, [*accuracy.OWN, RECIPE])} if grid else {}


def facts(folder: Path) -> dict[str, Any]:
    """The numbers of the summary."""
    records, grids = accuracy.read(folder.parent / "accuracy"), read_grids(folder)
    published, stratified, masks, searched = grids.values()
    both = {"A": {g: published[g] for g in stratified}, "B": stratified}
    ranks = {protocol: average_ranks(grid, ALONE) for protocol, grid in both.items()}
    forms = {
        p: average_ranks(grid, accuracy.MODELS) for p, grid in (("B", stratified), ("C", masks))
    }
    first = {p: min(EQUAL, key=of.__getitem__) for p, of in forms.items()}
    single = {
        g: max(percent(scores) for key, scores in row.items() if key not in ENSEMBLES)
        for g, row in {**stratified, **searched}.items()
    }
    short = {g: single[g] - percent(row["portfolio"]) for g, row in stratified.items()}
    printed = UNIFORM_SPLIT | FIXED_MASKS
    best = {
        part: {g: of["portfolio-best"] for g, of in gains(grid, "portfolio").items()}
        for part, grid in (("B", stratified), ("C", {g: masks[g] for g in TEN if g in masks}))
    }
    above = {part: {g: v for g, v in of.items() if v > 0.05} for part, of in best.items()}
    beyond = {
        key
        for row in searched.values()
        for key, scores in row.items()
        if key in EQUAL and percent(scores) > percent(row["portfolio-best"])
    }
    (plan,) = (r.plan for r in read_records(folder, [f"minesweeper-{SEARCHED}"]).values())
    return {
        "trials": {key: records["cora"][key]["search"]["trials"] for key in accuracy.OWN},
        "models": len(EQUAL),
        "order": {g: rank_correlation(published[g], row) for g, row in stratified.items()},
        "other_best": sum(winner(published[g]) != winner(row) for g, row in stratified.items()),
        "ranks": ranks,
        "place": {p: 1 + sum(v < of["lon"] for v in of.values()) for p, of in ranks.items()},
        "first": SINGLE[min(ranks["B"], key=lambda key: ranks["B"][key])],
        "best_rank": min(ranks["B"].values()),
        "forms": forms,
        "next": {p: f"{SINGLE[key]} {forms[p][key]:.1f}" for p, key in first.items()},
        "A": means(published),
        "B": means(stratified),
        "untuned": [g for g, of in gains(stratified, "lon").items() if of["lon-default"] > 0],
        "ahead": [g for g, gap in short.items() if gap < 0],
        "near": [g for g, gap in short.items() if 0 <= gap <= 0.2],
        "behind": numbered({g: gap for g, gap in short.items() if gap > 0.2}),
        "least": {part: min(of.values()) for part, of in above.items()},
        "most": {part: max(of.values()) for part, of in above.items()},
        "above": above,
        "above_b": len(above["B"]),
        "level": [g for g, gap in best["B"].items() if abs(gap) < 0.05],
        "below": numbered({g: gap for g, gap in best["C"].items() if g not in above["C"]}),
        "searched": means(searched),
        "beyond": listed((SINGLE[key] for key in beyond), plain=True),
        "first_searched": listed({SINGLE[winner(row)] for row in searched.values()}, plain=True),
        "printed": {g: printed[g] - single[g] for g in printed},
        "draws": plan["draws"],
        "epochs": plan["epochs"],
    }
