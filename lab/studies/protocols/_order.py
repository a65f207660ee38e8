"""How the order of the models depends on the protocol: winners, ranks, rank correlations.

Only rows of one search budget count, one per model (:data:`~._rows.EQUAL`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import spearmanr

from lab.studies._core._evaluation import Scores
from lab.studies._core._scores import Results, average_ranks, percent
from lab.studies._core._table import ResultTable
from lab.studies.protocols._rows import EQUAL, SINGLE
from lab.studies.protocols._run import ClassesCell

#: What a model reached on one graph, by row.
Cells = Mapping[str, Scores]


def rank_correlation(one: Cells, other: Cells) -> float | None:
    """Spearman's correlation of the mean scores of the models that both have.

    >>> def at(score): return Scores(val=[], test=[score], epochs=[], best_epochs=[])
    >>> up = {"lon": at(0.9), "gcn": at(0.8), "mlp": at(0.7)}
    >>> down = {"lon": at(0.1), "gcn": at(0.2), "mlp": at(0.3)}
    >>> rank_correlation(up, down)
    -1.0
    """
    shared = [key for key in EQUAL if key in one and key in other]
    means = [[percent(cells[key].test) for key in shared] for cells in (one, other)]
    if len(shared) < 2 or any(np.ptp(values) == 0 for values in means):
        return None
    return round(float(spearmanr(*means).statistic), 12)


def winner(cells: Cells) -> str:
    """The row with the best mean test score, the first of equals; empty where there is none."""
    means = {key: percent(cells[key].test) for key in EQUAL if key in cells}
    return max(means, key=lambda key: means[key]) if means else ""


def order_table(
    published: Results,
    stratified: Results,
    masks: Results,
    classes: Mapping[str, Sequence[ClassesCell]],
) -> ResultTable:
    """One line per graph of protocol B.

    Args:
        published: protocol A.
        stratified: protocol B.
        masks: protocol C.
        classes: graph -> its counts under B and, where it has masks, under C.
    """
    rows = []
    for d, b in stratified.items():
        a, c = published.get(d, {}), masks.get(d, {})
        pairs = ((a, b), (a, c), (b, c))
        found = [rank_correlation(one, other) for one, other in pairs]
        ranks = [_rank(cells) for cells in (a, b, c)]
        rows.append(
            [
                d,
                _untested(classes.get(d, ())),
                *(SINGLE.get(winner(cells), "") for cells in (a, b, c)),
                *("" if value is None else f"{value:.2f}" for value in found),
                " / ".join(ranks),
            ]
        )
    return ResultTable(
        "order",
        f"Order of the {len(EQUAL)} models with one search budget each under the published split "
        "(A), the stratified one (B) and the geom-gcn masks (C): classes without test nodes, of "
        "all, under A / B / C; the model with the best mean; Spearman's rank correlation of the "
        "means; the rank of LON-GNN.",
        ["graph", "untested classes", *(f"best, {p}" for p in "ABC"), *_PAIRS, "rank of LON-GNN"],
        rows,
    )


_PAIRS = ("A and B", "A and C", "B and C")


def ranks_table(published: Results, stratified: Results, masks: Results) -> ResultTable:
    """Average ranks of the models under each protocol, on the same graphs."""
    models = {key: key for key in EQUAL}
    columns: dict[str, Results] = {
        "A": {d: published[d] for d in stratified if d in published},
        "B": stratified,
        "A, graphs with masks": {d: published[d] for d in masks if d in published},
        "B, graphs with masks": {d: stratified[d] for d in masks if d in stratified},
        "C": masks,
    }
    ranks = {title: average_ranks(results, models) for title, results in columns.items()}
    shown = [key for key in EQUAL if any(key in found for found in ranks.values())]
    return ResultTable(
        "ranks",
        "Average rank (1 is best) of the models with one search budget each, over all graphs under "
        "A and B, and over the graphs that have geom-gcn masks under A, B and C.",
        ["model", *columns],
        [[SINGLE[k], *(f"{r[k]:.1f}" if k in r else "" for r in ranks.values())] for k in shown],
    )


def _rank(cells: Cells) -> str:
    ranks = average_ranks({"": cells}, {key: key for key in EQUAL})
    return f"{ranks['lon']:g}" if "lon" in ranks else "-"


def _untested(cells: Sequence[ClassesCell]) -> str:
    """Classes without test nodes under A, B and C, and how many classes there are.

    >>> _untested([ClassesCell(10, untested=[0, 0], published=[6, 6])])
    '6 / 0 / - of 10'
    """
    if not cells:
        return ""
    counts = [cells[0].published, *(cell.untested for cell in cells)]
    shown = [_span(numbers) for numbers in counts] + ["-"] * (3 - len(counts))
    return f"{' / '.join(shown)} of {cells[0].classes}"


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"
