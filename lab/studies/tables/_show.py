"""The tables of the study: scores, paired differences, and what the data filled in."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lab.studies._core._context import load_records
from lab.studies._core._headline import best_in_bold, interval_of, metric_words, points
from lab.studies._core._table import ResultTable
from lab.studies.tables._run import LABELS, TABLES, TableCell
from longnn.config import Config

#: What a default must not be below: rivals that know the columns alone.
BASELINES = ("constant", "linear", "mlp")
Results = Mapping[str, Mapping[str, TableCell]]


def read(folder: Path) -> dict[str, dict[str, TableCell]]:
    """Table -> model -> its cell, as far as they are there."""
    records = load_records(folder, list(TABLES))
    return {
        name: {m: record.get(m, TableCell) for m in LABELS if m in record}
        for name, record in records.items()
    }


def best_baseline(cells: Mapping[str, TableCell]) -> str:
    """The baseline of the highest mean test score: a choice that favours the baselines."""
    return max((m for m in BASELINES if m in cells), key=lambda m: float(np.mean(cells[m].test)))


def differences(cell: TableCell, other: TableCell) -> list[float]:
    """Test scores minus the other's, split by split, in points.

    >>> cell = TableCell("", "accuracy", [], [0.75, 0.5], [], {})
    >>> differences(cell, TableCell("", "accuracy", [], [0.5, 0.5], [], {}))
    [25.0, 0.0]
    """
    return points(cell.test, other.test)


def tables(folder: Path) -> list[ResultTable]:
    """Scores of all models, differences of LON-GNN to the rivals, and the settings."""
    results = {name: cells for name, cells in read(folder).items() if len(cells) == len(LABELS)}
    return [_scores(results), _differences(results), _settings(results)]


def _scores(results: Results) -> ResultTable:
    rows = []
    for name, cells in results.items():
        means = [100 * float(np.mean(cell.test)) for cell in cells.values()]
        rows.append([name, metric_words(cells["lon"].metric), *best_in_bold(means)])
    return ResultTable(
        "scores",
        "Mean test score in % over five stratified splits, nothing set; the best of each row in "
        "bold. LON-GNN, MLP and GCN are ours, the others those of scikit-learn, trained on the "
        "same nodes.",
        ["table", "score", *LABELS.values()],
        rows,
    )


def _differences(results: Results) -> ResultTable:
    rows = []
    for name, cells in results.items():
        best = best_baseline(cells)
        boosted = max(
            ("boosting", "histogram-boosting"), key=lambda m: float(np.mean(cells[m].test))
        )
        shown = [
            interval_of(differences(cells["lon"], cells[rival]))
            for rival in (best, "linear", "mlp", boosted)
        ]
        rows.append([name, LABELS[best], *shown])
    return ResultTable(
        "differences",
        "LON-GNN's test score minus that of a rival on the same splits, in points: mean and 95 % "
        "bootstrap interval over five splits; bold if the interval excludes zero. The best "
        "baseline (constant, linear, MLP) and the better boosting are those of the highest mean "
        "test score.",
        ["table", "best baseline", "to it", "to linear", "to MLP", "to the better boosting"],
        rows,
    )


def _settings(results: Results) -> ResultTable:
    """Where LON-GNN's configuration differs from the defaults."""
    defaults = Config().to_dict()
    rows = []
    for name, cells in results.items():
        config = cells["lon"].config
        changed = [
            f"{key} {value}"
            for key, value in config.items()
            if key != "device" and value != defaults.get(key)
        ]
        epochs = cells["lon"].best_epochs
        rows.append([name, ", ".join(changed) or "as elsewhere", f"{min(epochs)} to {max(epochs)}"])
    return ResultTable(
        "settings",
        "What the data filled in for LON-GNN, where it differs from the defaults for named graphs, "
        "and the epochs that were kept.",
        ["table", "filled in", "kept epochs"],
        rows,
    )
