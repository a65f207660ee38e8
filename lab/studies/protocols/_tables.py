"""Tables and figure: scores under each protocol, paired differences, and the order of models."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.studies import accuracy
from lab.studies._core._context import load_records
from lab.studies._core._printed import FIXED_MASKS, UNIFORM_SPLIT
from lab.studies._core._protocol import QUICK_DATASETS, read_results
from lab.studies._core._scores import (
    Results,
    accuracy_table,
    difference_table,
    interval,
    percent,
    save_dot_plot,
)
from lab.studies._core._table import ResultTable
from lab.studies.protocols._order import order_table, ranks_table
from lab.studies.protocols._plan import GEOM_GCN, GRAPHS, SEARCHED, STRATIFIED, record_name
from lab.studies.protocols._rows import ENSEMBLES, LABELS, MODELS, RECIPE, SINGLE
from lab.studies.protocols._run import CLASSES, ClassesCell
from lab.studies.protocols._train import RowCell

_MEANING = (
    "mean ± half the 95 % bootstrap interval over ten splits; the best single model of each column "
    "in bold. The average rank is among the other models, each by its row of equal budget. An "
    "ensemble is ranked nowhere and never in bold."
)


def read_part(folder: Path, part: str) -> dict[str, dict[str, RowCell]]:
    """Graph -> row -> what was found in one part; without graphs that were only begun."""
    found = {}
    for graph in (*GRAPHS[part], *QUICK_DATASETS):
        name = record_name(graph, part)
        for record in load_records(folder, [name]).values():
            found[graph] = {key: record.get(key, RowCell) for key in LABELS if key in record}
    return {graph: rows for graph, rows in found.items() if rows}


def read_classes(folder: Path) -> dict[str, list[ClassesCell]]:
    """Graph -> its counts of classes without test nodes, under B and then under C."""
    found: dict[str, list[ClassesCell]] = {}
    for part in (STRATIFIED, GEOM_GCN):
        for graph in (*GRAPHS[part], *QUICK_DATASETS):
            for record in load_records(folder, [record_name(graph, part)]).values():
                found.setdefault(graph, []).append(record.get(CLASSES, ClassesCell))
    return found


def tables(folder: Path) -> list[ResultTable]:
    """Scores of each part, the order of models, and the differences to LON-GNN under B."""
    published = read_results(folder.parent / "accuracy")
    stratified, masks = read_part(folder, STRATIFIED), read_part(folder, GEOM_GCN)
    return [
        scores_table(
            stratified,
            "stratified",
            "Protocol B: test accuracy in % on a stratified 60/20/20 (seeds 0 to 9), " + _MEANING,
            UNIFORM_SPLIT,
        ),
        scores_table(
            masks,
            "geom-gcn",
            "Protocol C: test accuracy in % on the ten geom-gcn masks, " + _MEANING,
        ),
        scores_table(
            read_part(folder, SEARCHED),
            "masks",
            "Minesweeper and Tolokers: test ROC AUC in % on their ten fixed masks, " + _MEANING,
            FIXED_MASKS,
        ),
        order_table(published, stratified, masks, read_classes(folder)),
        ranks_table(published, stratified, masks),
        difference_table(
            stratified,
            LABELS,
            "lon",
            "differences",
            "Protocol B: accuracy minus that of LON-GNN (64 trials) on the same splits, in points, "
            "mean and 95 % bootstrap interval; bold if the interval excludes zero.",
        ),
    ]


def scores_table(
    results: Results, name: str, caption: str, printed: Mapping[str, float] | None = None
) -> ResultTable:
    """Single models, then ensembles, then what others printed and how far the best single is.

    >>> from lab.studies._core._evaluation import Scores
    >>> found = {"photo": {"gcn": Scores(val=[], test=[0.95], epochs=[], best_epochs=[])}}
    >>> scores_table(found, "t", "Accuracy.", {"photo": 96.8}).rows[-1]
    ['best single model minus printed', '-1.8', '']
    """
    table = accuracy_table(results, SINGLE, name, caption, MODELS)
    graphs = table.columns[1:-1]
    rows = [*table.rows, *_ensembles(results, graphs)]
    if printed and any(d in printed for d in graphs):
        rows += _printed(results, graphs, printed)
        caption += (
            " Printed: tuned GCN, GraphSAGE or GAT with normalisation and residual connections, "
            "on splits of the same kind."
        )
    return dataclasses.replace(table, rows=rows, caption=caption)


def _ensembles(results: Results, graphs: Sequence[str]) -> list[list[str]]:
    rows = []
    for key, ensemble in ENSEMBLES.items():
        found = [results[d].get(key) for d in graphs]
        if any(found):
            rows.append([ensemble.label, *(interval(c.test) if c else "" for c in found), ""])
    return rows


def _printed(
    results: Results, graphs: Sequence[str], printed: Mapping[str, float]
) -> list[list[str]]:
    best = {d: max(percent(c.test) for k, c in results[d].items() if k in SINGLE) for d in graphs}
    numbers = [f"{printed[d]:.1f}" if d in printed else "" for d in graphs]
    away = [f"{best[d] - printed[d]:+.1f}" if d in printed else "" for d in graphs]
    return [["printed by others", *numbers, ""], ["best single model minus printed", *away, ""]]


def draw(folder: Path) -> list[Path]:
    """Mean and interval of every row on every graph under protocol B."""
    shown = [*accuracy.OWN, RECIPE]
    return save_dot_plot(folder, read_part(folder, STRATIFIED), LABELS, shown, "stratified")
