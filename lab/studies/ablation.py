"""Table 4: what each ingredient of LON-GNN is worth, with rows that the paper does not have.

In the paper's form (the filter on class channels), each row with a search and a budget of its own.
Rows that ``accuracy`` has are copied from it. JacobiConv has a linear transform and LON-GNN an MLP:
the row between them shows how much of the next step is due to the basis.

A second table has an MLP of filtered features, normalised, with LON-GNN's basis, with the same
basis fixed, and with GPRGNN's: where that form gains, it shows whether the basis has a share.
"""

from pathlib import Path

from lab.studies._core._context import Context
from lab.studies._core._protocol import TEN, Results, Row, Space, read_results, run_rows
from lab.studies._core._scores import (
    accuracy_table,
    difference_table,
    interval,
    paired_difference,
    percent,
    save_dot_plot,
)
from lab.studies._core._table import ResultTable
from lab.studies.accuracy import ROWS as ACCURACY_ROWS
from longnn.registry import FEATURES_FORM, PAPER_FORM

TITLE = "Table 4: the ablation, with rows that the paper does not have"
ORDER, AFTER = 30, ("accuracy",)

_NO_DECAY: Space = {**PAPER_FORM, "wd_coefficients": 0.0, "wd_factors": 0.0}
_LON_FEATURES: Space = {
    **FEATURES_FORM,
    "weight": "probability",
    "coefficients": "free",
    "shared": True,
}
_START: Space = {"restart": {"choices": [0.1, 0.3, 1.0]}}

ROWS = {
    "jacobi": ACCURACY_ROWS["jacobi"],
    "jacobi-mlp": Row("JacobiConv after an MLP", "jacobi", fixed={"transform": "mlp"}),
    "jacobi-orthnorm": Row("Jacobi+OrthNorm", "jacobi-orthnorm"),
    "jacobi-learnable": Row("Jacobi+Learnable", "jacobi-learnable"),
    "lon-paper": ACCURACY_ROWS["lon-paper"],
    "probability": Row(
        "LON-GNN, probability weight", "lon", fixed={**PAPER_FORM, "weight": "probability"}
    ),
    "penalty": Row(
        "LON-GNN, norm penalty for weight decay",
        "lon",
        fixed=_NO_DECAY,
        searched={"penalty": {"choices": [1e-5, 1e-4, 1e-3, 1e-2]}},
    ),
    "free": Row("LON-GNN, free coefficients", "lon", fixed={**PAPER_FORM, "coefficients": "free"}),
    "degree": Row(
        "LON-GNN, degree learned from 20",
        "lon",
        fixed={**PAPER_FORM, "degree": 20},
        searched={"degree_penalty": {"choices": [1e-5, 1e-4, 1e-3]}},
    ),
}
FILTERED = {
    "features": Row("LON-GNN, filtered features", "lon", fixed=_LON_FEATURES, searched=_START),
    "features-fixed": Row(
        "the same, a and b fixed",
        "lon",
        fixed={**_LON_FEATURES, "learn_basis": False},
        searched=_START,
    ),
    "features-gpr": Row("GPRGNN, filtered features", "gpr", fixed=FEATURES_FORM),
}
LABELS = {key: row.label for key, row in ROWS.items()}
FILTERED_LABELS = {
    "lon-paper": LABELS["lon-paper"],
    **{key: row.label for key, row in FILTERED.items()},
}


def run(context: Context) -> None:
    """Search, confirm and report every row on every graph, as far as the records lack it."""
    run_rows(context, {**ROWS, **FILTERED}, TEN, borrow="accuracy")


def tables(folder: Path) -> list[ResultTable]:
    """Accuracies, paired differences, single steps, filtered features, and dropout left on."""
    results = read_results(folder)
    filtered = {d: cells for d, cells in results.items() if any(k in cells for k in FILTERED)}
    accuracies = (
        "Test accuracy in %, mean ± half the 95 % bootstrap interval over the published splits; "
        "the best of each column in bold."
    )
    return [
        accuracy_table(results, LABELS, "ablation", accuracies),
        difference_table(
            results,
            LABELS,
            "lon-paper",
            "ablation-differences",
            "Accuracy minus that of LON-GNN in the paper's form on the same splits, in points, "
            "mean and 95 % bootstrap interval; bold if the interval excludes zero.",
        ),
        _steps(results),
        accuracy_table(filtered, FILTERED_LABELS, "filtered", accuracies),
        difference_table(
            filtered,
            FILTERED_LABELS,
            "features",
            "filtered-differences",
            "Accuracy minus that of LON-GNN on filtered features on the same splits, in points, "
            "mean and 95 % bootstrap interval; bold if the interval excludes zero.",
        ),
        _dropout_on(results),
    ]


#: From JacobiConv to LON-GNN in single steps: what changes, from which row to which.
STEPS = (
    ("a linear transform to an MLP", "jacobi", "jacobi-mlp"),
    ("Jacobi polynomials to orthonormal ones", "jacobi-mlp", "jacobi-orthnorm"),
    ("fixed a and b to learned ones", "jacobi-orthnorm", "lon-paper"),
)


def _steps(results: Results) -> ResultTable:
    """What each step on the way to LON-GNN gains."""
    rows = [
        [
            what,
            *(
                paired_difference(cells[after], cells[before])
                if before in cells and after in cells
                else ""
                for cells in results.values()
            ),
        ]
        for what, before, after in STEPS
    ]
    return ResultTable(
        "steps",
        "From JacobiConv to LON-GNN in the paper's form, one change at a time: gain in test "
        "accuracy on the same splits, in points, mean and 95 % bootstrap interval; bold if the "
        "interval excludes zero.",
        ["from ... to ...", *results],
        rows,
    )


def _dropout_on(results: Results) -> ResultTable:
    """A bug of the authors' code: the hidden dropout stays on at evaluation."""
    rows = []
    for d, cells in results.items():
        cell = cells.get("lon-paper")
        if cell is not None and cell.test_dropout_on is not None:
            rows.append(
                [
                    d,
                    interval(cell.test),
                    interval(cell.test_dropout_on),
                    f"{percent(cell.test_dropout_on) - percent(cell.test):+.2f}",
                    f"{cell.config['dropout']:g}",
                ]
            )
    return ResultTable(
        "dropout-on",
        "What evaluation as in the authors' code costs: the same trained weights of LON-GNN in the "
        "paper's form, tested with the hidden dropout off and left on (mean of ten draws). The "
        "best epoch was chosen with dropout off in both.",
        ["graph", "off", "left on", "difference, points", "its rate"],
        rows,
    )


def draw(folder: Path) -> list[Path]:
    """Mean and interval of every row on every graph."""
    return save_dot_plot(folder, read_results(folder), LABELS, ["lon-paper"], "ablation")
