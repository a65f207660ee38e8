"""Table 4: what each part of LON-GNN is worth, and rows the paper has not.

In the paper's form (the filter on class channels), each row with a search of its own and the budget
of :mod:`longnn.studies`. Rows that ``accuracy`` has are taken from it. JacobiConv has a
linear transform and LON-GNN an MLP: the row between them tells how much of the next step is due to
the basis.

A second table has an MLP of filtered features, normalised, with LON-GNN's basis, the same basis
fixed, and GPRGNN's: where that form gains, it tells whether the basis has a share.
"""

from pathlib import Path

from longnn.registry import FEATURES_FORM, PAPER_FORM
from longnn.studies._accuracy import ENTRIES as ACCURACY_ENTRIES
from longnn.studies._paper import Context
from longnn.studies._scores import (
    Study,
    accuracy_table,
    difference_table,
    interval,
    mean,
    paired_difference,
    save_dot_plot,
)
from longnn.studies._study import TEN, Entry, read_study, run_entries
from longnn.studies._table import Table

TITLE = "Table 4: the ablation, with rows the paper has not"

_NO_DECAY = {**PAPER_FORM, "wd_coefficients": 0.0, "wd_factors": 0.0}
_LON_FEATURES = {
    **FEATURES_FORM,
    "weight": "probability",
    "coefficients": "free",
    "shared": True,
}
_START = {"restart": {"choices": [0.1, 0.3, 1.0]}}

ENTRIES = {
    "jacobi": ACCURACY_ENTRIES["jacobi"],
    "jacobi-mlp": Entry("JacobiConv after an MLP", "jacobi", fixed={"transform": "mlp"}),
    "jacobi-orthnorm": Entry("Jacobi+OrthNorm", "jacobi-orthnorm"),
    "jacobi-learnable": Entry("Jacobi+Learnable", "jacobi-learnable"),
    "lon-paper": ACCURACY_ENTRIES["lon-paper"],
    "probability": Entry(
        "LON-GNN, probability weight", "lon", fixed={**PAPER_FORM, "weight": "probability"}
    ),
    "penalty": Entry(
        "LON-GNN, norm penalty for weight decay",
        "lon",
        fixed=_NO_DECAY,
        searched={"penalty": {"choices": [1e-5, 1e-4, 1e-3, 1e-2]}},
    ),
    "free": Entry(
        "LON-GNN, free coefficients", "lon", fixed={**PAPER_FORM, "coefficients": "free"}
    ),
    "degree": Entry(
        "LON-GNN, degree learned from 20",
        "lon",
        fixed={**PAPER_FORM, "degree": 20},
        searched={"degree_penalty": {"choices": [1e-5, 1e-4, 1e-3]}},
    ),
}
FILTERED = {
    "features": Entry("LON-GNN, filtered features", "lon", fixed=_LON_FEATURES, searched=_START),
    "features-fixed": Entry(
        "the same, a and b fixed",
        "lon",
        fixed={**_LON_FEATURES, "learn_basis": False},
        searched=_START,
    ),
    "features-gpr": Entry("GPRGNN, filtered features", "gpr", fixed=FEATURES_FORM),
}
LABELS = {key: entry.label for key, entry in ENTRIES.items()}
FILTERED_LABELS = {
    "lon-paper": LABELS["lon-paper"],
    **{key: entry.label for key, entry in FILTERED.items()},
}


def run(context: Context) -> None:
    """Search, confirm and report every row on every graph, as far as not done."""
    run_entries(context, {**ENTRIES, **FILTERED}, TEN, borrow="accuracy")


def tables(folder: Path) -> list[Table]:
    study = read_study(folder)
    filtered = {d: parts for d, parts in study.items() if any(k in parts for k in FILTERED)}
    accuracies = (
        "Test accuracy in %, mean ± half the 95 % bootstrap interval over the published splits; "
        "the best of a column in bold."
    )
    return [
        accuracy_table(study, LABELS, "ablation", accuracies),
        difference_table(
            study,
            LABELS,
            "lon-paper",
            "ablation-differences",
            "Accuracy minus that of LON-GNN in the paper's form on the same splits, in points, "
            "mean and 95 % bootstrap interval; bold where the interval leaves out zero.",
        ),
        _steps(study),
        accuracy_table(filtered, FILTERED_LABELS, "filtered", accuracies),
        difference_table(
            filtered,
            FILTERED_LABELS,
            "features",
            "filtered-differences",
            "Accuracy minus that of LON-GNN on filtered features on the same splits, in points, "
            "mean and 95 % bootstrap interval; bold where the interval leaves out zero.",
        ),
        _dropout_on(study),
    ]


#: From JacobiConv to LON-GNN in single steps: what changes, from which row to which.
STEPS = (
    ("a linear transform to an MLP", "jacobi", "jacobi-mlp"),
    ("Jacobi polynomials to orthonormal ones", "jacobi-mlp", "jacobi-orthnorm"),
    ("fixed a and b to learned ones", "jacobi-orthnorm", "lon-paper"),
)


def _steps(study: Study) -> Table:
    """What each step on the way to LON-GNN gains."""
    rows = [
        [
            what,
            *(
                paired_difference(parts[after], parts[before])
                if before in parts and after in parts
                else ""
                for parts in study.values()
            ),
        ]
        for what, before, after in STEPS
    ]
    return Table(
        "steps",
        "From JacobiConv to LON-GNN in the paper's form, one change at a time: gain in test "
        "accuracy on the same splits, in points, mean and 95 % bootstrap interval; bold where the "
        "interval leaves out zero.",
        ["from ... to ...", *study],
        rows,
    )


def _dropout_on(study: Study) -> Table:
    """The published bug: the hidden dropout stays on at evaluation."""
    rows = []
    for d, parts in study.items():
        part = parts.get("lon-paper", {})
        if "test_dropout_on" in part:
            rows.append(
                [
                    d,
                    interval(part["test"]),
                    interval(part["test_dropout_on"]),
                    f"{mean(part, 'test_dropout_on') - mean(part):+.2f}",
                    f"{part['config']['dropout']:g}",
                ]
            )
    return Table(
        "dropout-on",
        "What the published evaluation costs: the same trained weights of LON-GNN in the paper's "
        "form, tested with the hidden dropout off and left on (mean of ten draws). The best "
        "epoch was chosen with dropout off in both.",
        ["graph", "off", "left on", "difference, points", "its rate"],
        rows,
    )


def draw(folder: Path) -> list[Path]:
    return save_dot_plot(folder, read_study(folder), LABELS, ["lon-paper"], "ablation")
