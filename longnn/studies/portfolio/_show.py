"""The tables of the study: who was chosen, what it is worth, and which way to join members."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from longnn.config import Config
from longnn.studies._core._context import load_records
from longnn.studies._core._headline import METRICS, interval_of, points
from longnn.studies._core._table import ResultTable
from longnn.studies.portfolio._candidates import candidates
from longnn.studies.portfolio._evaluation import TEST, TESTED, EvaluationCell
from longnn.studies.portfolio._graphs import GRAPHS
from longnn.studies.portfolio._run import CANDIDATES, SELECTION, CandidatesCell
from longnn.studies.portfolio._select import STRATEGIES, Selection

#: The way to join members that the tables show.
JOINED = "votes on draws"


def tables(folder: Path) -> list[ResultTable]:
    """Nothing before the choice is made."""
    chosen = load_records(folder, [SELECTION]).get(SELECTION)
    if chosen is None or SELECTION not in chosen:
        return []
    selection = chosen.get(SELECTION, Selection)
    records = load_records(folder, list(GRAPHS))
    cells = {name: record.get(CANDIDATES, CandidatesCell) for name, record in records.items()}
    chosen_tables = [_members(selection), _scores(selection, cells), _strategies(selection)]
    found = load_records(folder, [f"test-{name}" for name in TESTED])
    tests = {
        name.removeprefix("test-"): record.get(TEST, EvaluationCell)
        for name, record in found.items()
    }
    return [*chosen_tables, _test(tests)] if tests else chosen_tables


def differing(config: Config) -> str:
    """Where a configuration differs from the defaults of LON-GNN, as one line of text.

    >>> differing(Config.from_dict({"degree": 4, "lr_basis": 0.01}))
    'degree 4, lr_basis 0.01'
    """
    usual = Config().to_dict()
    found = {k: v for k, v in config.to_dict().items() if k in usual and v != usual[k]}
    return ", ".join(f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in found.items())


def _members(selection: Selection) -> ResultTable:
    """Each member, what it is, and how often it is chosen without a kind."""
    rows = []
    for name in selection.portfolio:
        again = sum(name in left for left in selection.left_out.values())
        text = differing(candidates({})[name])
        rows.append([name, f"{again} of {len(selection.left_out)}", text or "nothing"])
    return ResultTable(
        "members",
        "The portfolio in the order of its choice; in how many of the choices without one kind a "
        "member is chosen again; and where its configuration differs from the defaults.",
        ["member", "chosen again", "differs from the defaults"],
        rows,
    )


def _scores(selection: Selection, cells: dict[str, CandidatesCell]) -> ResultTable:
    shown = ("best by validation", "average", "votes on all nodes", JOINED)
    rows = []
    for name, cell in cells.items():
        default = 100 * float(np.mean(cell.holdout[cell.usual]))
        outside = [100 * float(np.mean(selection.outside[name][s])) for s in shown]
        inside = 100 * float(np.mean(selection.inside[name][shown[-1]]))
        numbers = [default, *outside, inside, 100 * selection.oracle[name]]
        rows.append([name, GRAPHS[name].kind, METRICS[cell.metric], *(f"{v:.1f}" for v in numbers)])
    return ResultTable(
        "scores",
        "Mean score in % on the selection holdout over the splits: the default, the portfolio that "
        "was chosen without the kind of the graph, joined in four ways, the portfolio that was "
        "chosen with it, and the best single candidate, known only afterwards.",
        ["graph", "kind", "score", "default", *shown, "chosen with the kind", "oracle"],
        rows,
    )


def _test(tests: Mapping[str, EvaluationCell]) -> ResultTable:
    """Test scores of the default and of the portfolio, with the paired difference."""
    rows = []
    for name, cell in tests.items():
        joined = cell.joined[JOINED]
        best = max(100 * float(np.mean(scores)) for scores in cell.members.values())
        single, whole = cell.joined["best by validation"], cell.joined["average"]
        numbers = [cell.default, single, whole, joined]
        rows.append(
            [
                name.removeprefix("table-"),
                METRICS[cell.metric],
                *(f"{100 * float(np.mean(scores)):.1f}" for scores in numbers),
                interval_of(points(joined, cell.default)),
                f"{best:.1f}",
            ]
        )
    return ResultTable(
        "test",
        "Mean test score in %: the default, and the portfolio as its best member by validation, as "
        "the average of all, and joined by votes; votes minus the default in points with the 95 % "
        "bootstrap interval over the splits, bold if it excludes zero; and the best single member, "
        "known only afterwards. Graphs of the paper: ten published splits, portfolio chosen "
        "without the kind of the graph. Tables: five stratified splits, the whole portfolio.",
        ["graph", "score", "default", "best member", "average", "votes", "gain", "oracle"],
        rows,
    )


def _strategies(selection: Selection) -> ResultTable:
    """The mean difference of each way to join members to the best single one by validation."""
    rows = []
    for strategy in STRATEGIES:
        gains = {
            name: 100 * float(np.mean(scores[strategy]) - np.mean(scores["best by validation"]))
            for name, scores in selection.outside.items()
        }
        values = np.array(list(gains.values()))
        worst = min(gains, key=lambda name: gains[name])
        numbers = [f"{values.mean():+.2f}", str((values > 0.5).sum()), str((values < -0.5).sum())]
        rows.append([strategy, *numbers, f"{worst} {gains[worst]:+.1f}"])
    return ResultTable(
        "strategies",
        "Ways to join the members of a portfolio, minus its best member by validation: points on "
        "the selection holdout, mean over graphs, each with the portfolio chosen without its kind; "
        "on how many graphs it is better or worse by over half a point; and the worst graph.",
        ["joined by", "mean", "better", "worse", "worst graph"],
        rows,
    )


def draw(folder: Path) -> list[Path]:
    """No figures."""
    return []
