"""The tables of graphs of unseen kinds: scores beside rivals, and paired differences."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from lab.studies._core._context import load_records
from lab.studies._core._headline import best_in_bold, metric_words
from lab.studies._core._joined import Scored
from lab.studies._core._scores import percent
from lab.studies._core._table import ResultTable
from lab.studies.portfolio._evaluation import (
    RIVALS,
    TEST,
    TESTED_UNSEEN,
    TWO_WAY,
    EvaluationCell,
)
from lab.studies.portfolio._join import JOINED
from lab.studies.portfolio._rows import NAMED, compared, paired
from lab.studies.portfolio._unseen import UNSEEN
from lab.studies.tables._run import LABELS, TableCell

#: The title of the smaller portfolio on the same graph with every arc made two-way.
BOTH_WAYS = "portfolio, two-way"


@dataclasses.dataclass(frozen=True)
class UnseenScores:
    """What was reached on one graph.

    Args:
        metric: of the scores.
        found: title -> scores.
    """

    metric: str
    found: dict[str, Scored]


def read_unseen(folder: Path) -> dict[str, UnseenScores]:
    """Graph -> scores of the rivals, of one model and of the portfolios, as far as they are there.

    Args:
        folder: of the study.
    """
    names = {f"test-{key}": name for key, name in TESTED_UNSEEN.items()}
    read = {}
    for key, record in load_records(folder, list(names)).items():
        cell = record.get(TEST, EvaluationCell)
        rivals = {m: record.get(m, TableCell) for m in RIVALS}
        found = {LABELS[m]: Scored(own.val, own.test) for m, own in rivals.items()}
        found |= compared(cell)
        if TWO_WAY in record:
            both = record.get(TWO_WAY, EvaluationCell)
            found[BOTH_WAYS] = both.portfolios["default"].joined[JOINED]
        read[names[key]] = UnseenScores(cell.metric, found)
    return read


def unseen_tables(folder: Path) -> list[ResultTable]:
    """Nothing before a graph is tested."""
    read = read_unseen(folder)
    return [_scores(read), _differences(read)] if read else []


def _scores(read: Mapping[str, UnseenScores]) -> ResultTable:
    titles = [*(LABELS[rival] for rival in RIVALS), "default", *NAMED.values()]
    rows = []
    for name, own in read.items():
        means = best_in_bold([percent(own.found[title].test) for title in titles])
        rows.append([name, UNSEEN[name].kind, metric_words(own.metric), *means])
    return ResultTable(
        "unseen",
        "Mean test score in % over five stratified splits of graphs of kinds that are not in the "
        "collection, the best of each row in bold: gradient boosting without the graph, a GCN and "
        "a LON-GNN with the defaults, and the whole portfolios, joined by votes.",
        ["graph", "kind", "score", *titles],
        rows,
    )


def _differences(read: Mapping[str, UnseenScores]) -> ResultTable:
    small, large = NAMED["default"], NAMED["best"]
    rivals = [LABELS[rival] for rival in RIVALS]
    pairs = [(small, "default"), (large, "default"), *((small, rival) for rival in rivals)]
    both = (small, BOTH_WAYS)
    rows = []
    for name, own in read.items():
        arcs = paired(own.found, [both]) if BOTH_WAYS in own.found else [""]
        rows.append([name, *paired(own.found, pairs), *arcs])
    return ResultTable(
        "unseen_differences",
        "Differences in test score on graphs of unseen kinds, split by split, in points: mean and "
        "95 % bootstrap interval over the five splits, bold if it excludes zero. The last column "
        "is what the portfolio gains by arcs, against the same graph with every arc made two-way.",
        ["graph", *(f"{one} minus {other}" for one, other in [*pairs, both])],
        rows,
    )
