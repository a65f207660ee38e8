"""LON-GNN's recipes as ensembles: several seeds, with one filter and with blocks, together.

On the graphs of the paper and the published splits, beside single models. Each ensemble also with
its probabilities shifted towards the class frequencies of the validation nodes: under the published
split these differ from those of the training nodes. History: recipes are not chosen again, so the
records stay and the code that trained their seeds went.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lab.records import Values
from lab.studies._engine import read_records
from lab.studies._printed import BEST_ANYWHERE, LEGACY, PAPER, TEN, printed_cells
from lab.studies._views import (
    CAPTIONS,
    Grid,
    ResultTable,
    gains,
    listed,
    means,
    means_in_bold,
    paired,
    pairs_table,
    percent,
    points,
    verdict,
)

TITLE = "LON-GNN's recipes as ensembles (history)"
ORDER = 107
SAYS = CAPTIONS["ensembles"]

#: The rows of a record: one model of the graph's recipe, several seeds of it, the same of the
#: recipe with blocks, and all together.
ONE, SEEDS, BLOCK, BLOCKS, TOGETHER = "one", "seeds", "block", "blocks", "together"
#: Ways to join members: as presets do it, by votes that few nodes do not decide alone; and then
#: shifted as a whole towards the class frequencies of the validation nodes.
IN_USE, SHIFTED = "votes in use", "votes in use, shifted"
#: Rows as tables name them.
NAMED = {
    ONE: "recipe",
    SEEDS: "seeds of it",
    BLOCK: "blocks",
    BLOCKS: "seeds of them",
    TOGETHER: "all seeds",
}
#: The strategy that gives every member the same weight; ends of titles by the way to join.
AVERAGE = "average"
ENDS = {IN_USE: "", SHIFTED: ", shifted"}


def read_ensembles(folder: Path) -> dict[str, Values]:
    """Graph -> row -> way to join -> scores."""
    records = read_records(folder, PAPER)
    return {
        name: record["ensembles"]["rows"]
        for name, record in records.items()
        if "ensembles" in record
    }


def grid_of(rows: Mapping[str, Mapping[str, Values]]) -> dict[str, dict[str, list[float]]]:
    """Graph -> title -> test scores: every row as in use, shifted, and as a plain average."""
    ends = {**ENDS, AVERAGE: ", averaged"}
    return {
        graph: {
            NAMED[row] + end: of[row][way].scores("test")
            for row in of
            for way, end in ends.items()
            if way in of[row]
        }
        for graph, of in rows.items()
    }


def tables(folder: Path) -> list[ResultTable]:
    """Nothing before there is a record."""
    grid = grid_of(read_ensembles(folder))
    if not grid:
        return []
    every = NAMED[TOGETHER]
    pairs = [(NAMED[SEEDS], NAMED[ONE]), (every, NAMED[SEEDS]), (every + ENDS[SHIFTED], every)]
    columns = ["graph", *NAMED.values(), "paper's LON-GNN", "best printed"]
    shown = {"scores": ENDS[IN_USE], "shifted": ENDS[SHIFTED]}
    scores = {
        name: [
            [g, *means_in_bold(row, [t + end for t in NAMED.values()]), *printed_cells(g)]
            for g, row in grid.items()
        ]
        for name, end in shown.items()
    }
    return [
        *(ResultTable(name, SAYS[name], columns, rows) for name, rows in scores.items()),
        pairs_table("differences", SAYS["differences"], grid, pairs),
        _averages(grid),
    ]


def _averages(grid: Grid) -> ResultTable:
    """Plain averages beside votes."""
    titles = [NAMED[row] + end for row in (SEEDS, TOGETHER) for end in (", averaged", "")]
    rows = []
    for graph, row in grid.items():
        shown = [f"{percent(row[title]):.2f}" if title in row else "" for title in titles]
        most = NAMED[TOGETHER if NAMED[TOGETHER] in row else SEEDS]
        rows.append([graph, *shown, paired(row, f"{most}, averaged", most, 1)])
    columns = [title if title.endswith("averaged") else f"{title}, votes" for title in titles]
    columns = ["graph", *columns, "averaged minus votes"]
    return ResultTable("averages", SAYS["averages"], columns, rows)


def facts(folder: Path) -> dict[str, Any]:
    """The numbers of the summary; the paper's Cornell is the defective one."""
    grid = grid_of(read_ensembles(folder))
    graphs = [LEGACY if graph == "cornell" else graph for graph in TEN]
    every = {g: NAMED[TOGETHER if NAMED[TOGETHER] in grid[g] else SEEDS] for g in graphs}
    marks = {g: BEST_ANYWHERE[g.removesuffix("-legacy")] for g in graphs}
    scores, over = means(grid), {of: gains(grid, of) for of in (NAMED[ONE], NAMED[SEEDS])}

    def reached(end: str) -> list[str]:
        return [g for g in graphs if scores[g][every[g] + end] >= marks[g]]

    ways = {AVERAGE: f", {AVERAGE}d", **ENDS}
    reach = {way: reached(ways[way]) for way in (IN_USE, SHIFTED, AVERAGE)}
    added = {g: of[every[g]] for g, of in over[NAMED[SEEDS]].items() if g in graphs[:-1]}
    both = {g: NAMED[TOGETHER if NAMED[TOGETHER] in row else SEEDS] for g, row in grid.items()}
    averaged = {g: points(row[f"{both[g]}, averaged"], row[both[g]]) for g, row in grid.items()}
    return {
        "reached": {way: len(of) for way, of in reach.items()},
        "reached_on": listed(reach[IN_USE]),
        "shifted_too": listed(g for g in reach[SHIFTED] if g not in reach[IN_USE]),
        "average_on": listed(reach[AVERAGE]),
        "below": {g: marks[g] - scores[g][every[g]] for g in graphs},
        "below_shifted": {g: marks[g] - scores[g][f"{every[g]}, shifted"] for g in graphs},
        "seeds": max(of[NAMED[SEEDS]] for of in over[NAMED[ONE]].values()),
        "added": added["squirrel"],
        "added_most": math.ceil(10 * max(v for g, v in added.items() if g != "squirrel")) / 10,
        "blocks": over[NAMED[ONE]]["squirrel"][NAMED[BLOCK]],
        "shift": {row: gains(grid, row)["computers"][f"{row}, shifted"] for row in NAMED.values()},
        "averaged": {g: float(np.mean(of)) for g, of in averaged.items()},
        "verdict": {g: verdict(of) for g, of in averaged.items()},
        "texas": scores["texas"][f"{every['texas']}, averaged"],
    }
