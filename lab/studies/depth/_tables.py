"""Tables and figure: scores of stacks and single filters, with arcs and without, and of what is
left out; and a stack beside the recipes of the paper's graphs."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.studies._core._context import load_records
from lab.studies._core._printed import DIRECTED_MASKS, FIXED_MASKS, UNIFORM_SPLIT
from lab.studies._core._protocol import QUICK_DATASETS
from lab.studies._core._scores import (
    Results,
    accuracy_table,
    difference_table,
    interval,
    paired_difference,
    percent,
    save_dot_plot,
)
from lab.studies._core._table import ResultTable
from lab.studies.depth._plan import (
    ARCS,
    DEEP,
    KEYS,
    LABELS,
    PLANS,
    PUBLISHED,
    ROWS,
    TUNED,
    rows_of,
)
from lab.studies.depth._textbook import TEXTBOOK
from lab.studies.protocols._plan import record_name
from lab.studies.protocols._train import RowCell
from lab.studies.recipes._selection import read_choices

_SPLITS = (
    "mean ± half the 95 % bootstrap interval over ten splits; the best of each column in bold."
)
_MEANING = f"{_SPLITS} Every row had the same random search on validation nodes."
_DIFFERENCE = "mean and 95 % bootstrap interval over ten splits; bold if the interval excludes zero"


def read_part(folder: Path, part: str) -> dict[str, dict[str, RowCell]]:
    """Graph -> row -> what was found in one part; without graphs that were only begun."""
    found = {}
    for graph in (*PLANS[part], *QUICK_DATASETS):
        for record in load_records(folder, [record_name(graph, part)]).values():
            found[graph] = {key: record.get(key, RowCell) for key in KEYS[part] if key in record}
    return {graph: rows for graph, rows in found.items() if rows}


def tables(folder: Path) -> list[ResultTable]:
    """Scores of each part, what each part of a stack is worth, and the graphs of the paper."""
    deep, arcs = read_part(folder, DEEP), read_part(folder, ARCS)
    score = "test ROC AUC (Minesweeper, Tolokers) or accuracy (Computers, Photo) in %"
    return [
        _scores(deep, DEEP, f"Depth: {score}, {_MEANING}", {**FIXED_MASKS, **UNIFORM_SPLIT}),
        difference_table(
            deep,
            {key: LABELS[key] for key in KEYS[DEEP]},
            "lon-deep",
            "worth",
            f"What it is worth: {score} minus that of blocks of LON-GNN's filters, {_DIFFERENCE}.",
        ),
        _scores(
            arcs,
            ARCS,
            f"Direction: test accuracy in % on the geom-gcn masks, {_MEANING}",
            DIRECTED_MASKS,
        ),
        _arcs_against_both_ways(arcs),
        _longer(read_part(folder, TUNED)),
        _published(folder, read_part(folder, PUBLISHED)),
    ]


def _longer(results: Results) -> ResultTable:
    """Longer searches, and the networks as printed where they were trained."""
    books = any(key in cells for cells in results.values() for key in TEXTBOOK)
    caption = (
        f"Longer searches: test ROC AUC (Minesweeper, Tolokers) or accuracy in %, {_SPLITS} "
        "Features are as the files have them; 12 or 16 configurations per row (6 of the wider "
        "filter), in a space made for the kind of graph. Printed scores of Computers and Photo are "
        "means over seeds on one split."
    )
    if books:
        caption += " Networks as printed are trained on our splits, with normalised rows."
    return _scores(results, TUNED, caption, {**FIXED_MASKS, **UNIFORM_SPLIT, **DIRECTED_MASKS})


def _scores(results: Results, part: str, caption: str, printed: Mapping[str, float]) -> ResultTable:
    labels = {key: LABELS[key] for key in KEYS[part]}
    table = accuracy_table(results, labels, part, caption, {key: key for key in labels})
    graphs = table.columns[1:-1]
    rows = [row[:-1] for row in table.rows]  # ranks say little over rows that repeat a model
    if any(d in printed for d in graphs):
        best = {d: max(percent(cell.test) for cell in results[d].values()) for d in graphs}
        rows.append(["printed by others", *_marks(graphs, printed)])
        away = [f"{best[d] - printed[d]:+.1f}" if d in printed else "" for d in graphs]
        rows.append(["best here minus printed", *away])
    return dataclasses.replace(table, rows=rows, columns=table.columns[:-1])


def _marks(graphs: Sequence[str], printed: Mapping[str, float]) -> list[str]:
    return [f"{printed[d]:.1f}" if d in printed else "" for d in graphs]


def _arcs_against_both_ways(results: Results) -> ResultTable:
    """A model on arcs minus the same model with edges both ways."""
    pairs = [
        (key, key.removesuffix(way))
        for way in ("-arcs", "-magnetic")
        for key in KEYS[ARCS]
        if key.endswith(way)
    ]
    rows = [
        [
            LABELS[one],
            *(
                paired_difference(cells[one], cells[other])
                if one in cells and other in cells
                else ""
                for cells in results.values()
            ),
        ]
        for one, other in pairs
    ]
    rows = [row for row in rows if any(row[1:])]
    return ResultTable(
        "direction",
        "What direction is worth: test accuracy in % on arcs minus that of the same model with "
        f"edges both ways, each with its own search, {_DIFFERENCE}.",
        ["model", *results],
        rows,
    )


def _graphs_with(property: str) -> str:
    """The graphs of the paper whose blocks have a property of :class:`Deep`, in words."""
    names = [
        graph.capitalize()
        for graph in PLANS[PUBLISHED]
        if any(getattr(ROWS[key], property) for key in rows_of(PUBLISHED, graph))
    ]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _published(folder: Path, results: Results) -> ResultTable:
    """A stack beside LON-GNN's recipe, on the graphs of the paper."""
    choices = read_choices(folder.parent)
    rows = []
    for d, cells in results.items():
        (stack,) = cells.values()
        recipe = choices[d].scores if d in choices else None
        rows.append(
            [
                d,
                interval(stack.test),
                interval(recipe.test) if recipe else "",
                paired_difference(stack, recipe) if recipe else "",
            ]
        )
    return ResultTable(
        PUBLISHED,
        "Blocks of LON-GNN's filters after a random search in a space for the kind of graph, and "
        "LON-GNN's recipe, which has one filter and a longer selection: test accuracy in % on the "
        f"published split, {_SPLITS} On {_graphs_with('raw')} blocks see features as the files "
        f"have them, recipes normalised rows. On {_graphs_with('halved')} the winner of the search "
        "was chosen on tuning splits, by validation nodes that stopped no training.",
        ["graph", "blocks", "recipe", "difference"],
        rows,
    )


def draw(folder: Path) -> list[Path]:
    """Mean and interval of every row on every graph."""
    made = []
    for part, shown in ((DEEP, ["lon", "lon-deep"]), (ARCS, ["lon-arcs", "lon-deep-arcs"])):
        found = read_part(folder, part)
        if found:
            labels = {key: LABELS[key] for key in KEYS[part]}
            metrics = {d: "ROC AUC" for d, plan in PLANS[part].items() if plan.metric == "roc_auc"}
            made += save_dot_plot(folder, found, labels, shown, part, metrics)
    return made
