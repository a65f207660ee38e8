"""Tables of the learned bases: one row per graph, and the answer over all graphs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import scipy.stats

from lab.records import StudyRecord
from lab.studies._core._context import record_path
from lab.studies._core._protocol import TEN
from lab.studies._core._table import ResultTable
from lab.studies.basis._measure import BUNDLED, BasisCell
from lab.studies.basis._weights import Distances, compare_weights


def read_cells(folder: Path) -> dict[str, BasisCell]:
    """Dataset -> what was measured, in the order of the paper."""
    record = StudyRecord.load(record_path(folder))
    return {name: record.get(name, BasisCell) for name in (*TEN, *BUNDLED) if name in record}


def tables(folder: Path) -> list[ResultTable]:
    """Start, learned and fitted a and b with their distances; and the answer over all graphs."""
    cells = read_cells(folder)
    found = {name: compare_weights(cell) for name, cell in cells.items()}
    seeds = len(next(iter(cells.values())).a)
    rows = [[name, *_shown(cells[name], of)] for name, of in found.items()]
    learned = ResultTable(
        "learned",
        "Jacobi parameters of LON-GNN at the start, learned (at the best epoch; mean over "
        f"{seeds} published splits) and with the mean and variance of the graph's eigenvalues; "
        "Wasserstein distance between the weight of each and the graph's spectral density, "
        "in units of the eigenvalue.",
        _COLUMNS,
        rows,
    )
    return [learned, ResultTable("answer", _ANSWER, ["question", "answer"], _answers(cells, found))]


_COLUMNS = [
    "graph",
    "(a, b) at the start",
    "learned (± standard deviation)",
    "(a, b) by moments",
    "distance at the start",
    "distance, learned",
    "distance, by moments",
    "splits that came closer",
    "mean eigenvalue",
    "deviation of the eigenvalues",
    "mean eigenvalue of the labels",
    "mean of the learned weight",
    "deviation of the learned weight",
]
_ANSWER = "Does the basis follow the graph? Over the graphs of the table above."


def _shown(cell: BasisCell, found: Distances) -> list[str]:
    a, b = np.array(cell.a), np.array(cell.b)
    return [
        f"({cell.start['a']:g}, {cell.start['b']:g})",
        f"({a.mean():.2f} ± {a.std(ddof=1):.2f}, {b.mean():.2f} ± {b.std(ddof=1):.2f})",
        f"({found.fitted[0]:.2f}, {found.fitted[1]:.2f})",
        f"{found.before:.3f}",
        f"{np.mean(found.after):.3f}",
        f"{found.best:.3f}",
        f"{found.closer} of {len(cell.a)}",
        f"{cell.mean:.2f}",
        f"{np.sqrt(cell.variance):.3f}",
        f"{cell.label_mean:.2f}",
        f"{found.weight_mean:.2f}",
        f"{found.weight_deviation:.3f}",
    ]


def _answers(cells: Mapping[str, BasisCell], found: Mapping[str, Distances]) -> list[list[str]]:
    count, all_of = len(found), list(found.values())
    closer = sum(np.mean(of.after) < of.before for of in all_of)
    gain = [of.before - np.mean(of.after) for of in all_of]
    room = [of.before - of.best for of in all_of]
    learned = [of.weight_deviation for of in all_of]
    means = [of.weight_mean for of in all_of]
    spread = [np.sqrt(cell.variance) for cell in cells.values()]
    labels = [cell.label_mean for cell in cells.values()]
    homophily = [cell.node_homophily for cell in cells.values()]
    answers = {
        "graphs where the learned weight is closer to the spectrum": f"{closer} of {count}",
        "mean change of the distance by learning (positive: closer)": f"{np.mean(gain):+.3f}",
        "the same by the fit of two moments": f"{np.mean(room):+.3f}",
        "rank correlation, deviation of the learned weight and of the eigenvalues": _correlate(
            learned, spread
        ),
        "rank correlation, mean of the learned weight and of the labels' spectrum": _correlate(
            means, labels
        ),
        "rank correlation, mean of the learned weight and node homophily": _correlate(
            means, homophily
        ),
    }
    return [list(pair) for pair in answers.items()]


def _correlate(x: Sequence[float], y: Sequence[float | None]) -> str:
    """Spearman's coefficient and its p-value.

    >>> _correlate([1.0, 2.0], [2.0, 1.0])
    'too few graphs'
    """
    if len(x) < 4 or len(set(x)) == 1 or len(set(y)) == 1:
        return "too few graphs"
    found = scipy.stats.spearmanr(x, y)
    return f"{found.statistic:+.2f} (p = {found.pvalue:.2f}, n = {len(x)})"
