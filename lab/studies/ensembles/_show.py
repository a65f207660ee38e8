"""The tables of the study: ensembles of recipes beside single models and printed numbers."""

from collections.abc import Mapping
from pathlib import Path

from lab.studies._core._headline import best_in_bold, interval_of, points
from lab.studies._core._joined import (
    BLOCK,
    BLOCKS,
    ONE,
    SEEDS,
    TOGETHER,
    EnsemblesCell,
    Scored,
    read_ensembles,
)
from lab.studies._core._printed import printed_cells
from lab.studies._core._scores import percent
from lab.studies._core._table import ResultTable
from lab.studies.portfolio._join import IN_USE, SHIFTED

#: Rows as tables name them.
NAMED = {
    ONE: "recipe",
    SEEDS: "seeds of it",
    BLOCK: "blocks",
    BLOCKS: "seeds of them",
    TOGETHER: "all seeds",
}
#: The strategy that gives every member the same weight.
AVERAGE = "average"
#: What is subtracted from what.
PAIRS = (
    ((SEEDS, IN_USE), (ONE, IN_USE)),
    ((TOGETHER, IN_USE), (SEEDS, IN_USE)),
    ((TOGETHER, SHIFTED), (TOGETHER, IN_USE)),
)


def title(row: str, way: str) -> str:
    """A column: a row, and whether it is shifted.

    >>> title(SEEDS, SHIFTED)
    'seeds of it, shifted'
    """
    return NAMED[row] + (", shifted" if way == SHIFTED else "")


def tables(folder: Path) -> list[ResultTable]:
    """Nothing before there is a record."""
    cells = read_ensembles(folder)
    if not cells:
        return []
    return [_scores(cells, IN_USE), _scores(cells, SHIFTED), _differences(cells), _averages(cells)]


def _find(cell: EnsemblesCell, column: tuple[str, str]) -> Scored | None:
    row, way = column
    return cell.rows[row][way] if row in cell.rows else None


def _scores(cells: Mapping[str, EnsemblesCell], way: str) -> ResultTable:
    rows = []
    for name, cell in cells.items():
        found = [_find(cell, (row, way)) for row in NAMED]
        shown = iter(best_in_bold([percent(s.test) for s in found if s is not None], 2))
        ours = ["" if s is None else next(shown) for s in found]
        rows.append([name, *ours, *printed_cells(name)])
    caption = (
        "Mean test accuracy in % over ten published splits, the best of ours in bold. Single "
        "models: LON-GNN's recipe with one filter, and with blocks. Ensembles: eight seeds of the "
        "first, two of the second, and all ten, joined by votes. Printed: the paper's LON-GNN, and "
        "the best found anywhere; both are of the defective Cornell."
    )
    if way == SHIFTED:
        caption = (
            "The same, with the class frequencies of the validation nodes; printed numbers have no "
            "such shift."
        )
    return ResultTable(
        "scores" if way == IN_USE else "shifted",
        caption,
        ["graph", *NAMED.values(), "paper's LON-GNN", "best printed"],
        rows,
    )


def _differences(cells: Mapping[str, EnsemblesCell]) -> ResultTable:
    rows = []
    for name, cell in cells.items():
        shown = []
        for one, other in PAIRS:
            a, b = _find(cell, one), _find(cell, other)
            shown.append("" if a is None or b is None else interval_of(points(a.test, b.test)))
        rows.append([name, *shown])
    return ResultTable(
        "differences",
        "Differences in test accuracy, split by split, in points: mean and 95 % bootstrap interval "
        "over the ten splits, bold if it excludes zero.",
        ["graph", *(f"{title(*one)} minus {title(*other)}" for one, other in PAIRS)],
        rows,
    )


def _averages(cells: Mapping[str, EnsemblesCell]) -> ResultTable:
    """Plain averages beside votes."""
    columns = [(row, way) for row in (SEEDS, TOGETHER) for way in (AVERAGE, IN_USE)]
    rows = []
    for name, cell in cells.items():
        found = [_find(cell, column) for column in columns]
        shown = ["" if s is None else f"{percent(s.test):.2f}" for s in found]
        averaged, voted = found[-2:] if found[-1] is not None else found[:2]
        assert averaged is not None
        assert voted is not None
        rows.append([name, *shown, interval_of(points(averaged.test, voted.test))])
    named = [f"{NAMED[row]}, {'averaged' if way == AVERAGE else 'votes'}" for row, way in columns]
    return ResultTable(
        "averages",
        "The same ensembles as plain averages and joined by votes, as trained: mean test accuracy "
        "in % over ten published splits, and the average minus the votes of all seeds that there "
        "are, split by split, in points with the 95 % bootstrap interval (bold without zero).",
        ["graph", *named, "averaged minus votes"],
        rows,
    )


def draw(folder: Path) -> list[Path]:
    """No figures."""
    return []
