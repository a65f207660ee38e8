"""The tables of the study: the preset against references, and each choice undone."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lab.studies._core._context import load_records
from lab.studies._core._headline import best_in_bold, interval_of, metric_words, points
from lab.studies._core._table import ResultTable
from lab.studies.presets._candidates import CHANGES, LABELS
from lab.studies.presets._data import DEVELOPMENT
from lab.studies.presets._run import KEY, HoldoutCell

#: The columns of the first table.
REFERENCES = ("preset", "defaults", "mlp", "linear", "histogram-boosting")
#: A difference of fewer points is called a tie.
TIE = 0.5
Results = Mapping[str, HoldoutCell]


def read(folder: Path) -> dict[str, HoldoutCell]:
    """Table -> its cell, as far as they are there."""
    records = load_records(folder, list(DEVELOPMENT))
    return {name: record.get(KEY, HoldoutCell) for name, record in records.items()}


def mean_score(cell: HoldoutCell, candidate: str) -> float:
    """The mean holdout score of a candidate over the splits, in %.

    >>> mean_score(HoldoutCell("", "r2", {}, {"preset": [0.5, 0.25]}, {}, {}), "preset")
    37.5
    """
    return 100 * float(np.mean(cell.holdout[candidate]))


def changes_of(results: Results, candidate: str) -> dict[str, float]:
    """Table -> mean difference of a candidate to the preset in points, where it was trained."""
    return {
        name: float(np.mean(points(cell.holdout[candidate], cell.holdout["preset"])))
        for name, cell in results.items()
        if candidate in cell.holdout
    }


def tables(folder: Path) -> list[ResultTable]:
    """Scores of the preset and its references, and what each change of the preset costs."""
    results = read(folder)
    return [_scores(results), _changes(results)]


def _scores(results: Results) -> ResultTable:
    rows = []
    for name, cell in results.items():
        means = [mean_score(cell, candidate) for candidate in REFERENCES]
        rows.append([name, metric_words(cell.metric), *best_in_bold(means)])
    return ResultTable(
        "scores",
        "Mean score in % on the selection holdout over three splits; the best of each row in bold. "
        "LON-GNN with the preset and with the usual defaults, our MLP with the preset, and two "
        "models of scikit-learn.",
        ["table", "score", *(LABELS[candidate] for candidate in REFERENCES)],
        rows,
    )


def _changes(results: Results) -> ResultTable:
    rows = []
    for candidate in ("defaults", *CHANGES):
        found = changes_of(results, candidate)
        better = sum(d > TIE for d in found.values())
        worse = sum(d < -TIE for d in found.values())
        each = [f"{found[name]:+.1f}" if name in found else "–" for name in results]
        summary = interval_of(list(found.values())) if found else "–"
        rows.append([LABELS[candidate], summary, str(better), str(worse), *each])
    return ResultTable(
        "changes",
        "The preset with one choice undone, minus the preset: points on the selection holdout, "
        "mean over three splits. First the mean over the tables with its 95 % bootstrap interval, "
        f"and the number of tables where the change is better or worse by over {TIE} points.",
        ["instead of the preset", "mean", "better", "worse", *results],
        rows,
    )
