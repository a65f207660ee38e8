"""Table 4: what each ingredient of LON-GNN is worth, with rows that the paper does not have.

In the paper's form (the filter on class channels), each row with a search and a budget of its own.
Rows that ``accuracy`` has are copied from it. JacobiConv has a linear transform and LON-GNN an MLP:
the row between them shows how much of the next step is due to the basis.

A second table has an MLP of filtered features, normalised, with LON-GNN's basis, with the same
basis fixed, and with GPRGNN's: where that form gains, it shows whether the basis has a share.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lab.records import Record
from lab.studies import accuracy
from lab.studies._engine import Cells, Context
from lab.studies._printed import TEN
from lab.studies._search import read_rows, row_cells
from lab.studies._views import (
    CAPTIONS,
    ResultTable,
    difference_table,
    dot_plot,
    gain,
    gains,
    interval,
    is_clear,
    minus_base,
    models_table,
    numbered,
    pivot,
    points,
)

TITLE = "Table 4: the ablation, with rows that the paper does not have"
ORDER, AFTER = 30, ("accuracy",)
SAYS = CAPTIONS["ablation"]

ROWS, FILTERED = read_rows("ablation"), read_rows("filtered")
LABELS = {key: row.label for key, row in ROWS.items()}
FILTERED_LABELS = {
    "lon-paper": LABELS["lon-paper"],
    **{key: row.label for key, row in FILTERED.items()},
}

#: From JacobiConv to LON-GNN in single steps: what changes, to which row from which.
STEPS = {
    "a linear transform to an MLP": ("jacobi-mlp", "jacobi"),
    "Jacobi polynomials to orthonormal ones": ("jacobi-orthnorm", "jacobi-mlp"),
    "fixed a and b to learned ones": ("lon-paper", "jacobi-orthnorm"),
}


def cells(context: Context) -> Cells:
    """Search, confirm and report every row on every graph."""
    return row_cells(context, {**ROWS, **FILTERED}, TEN, borrow="accuracy")


def tables(folder: Path) -> list[ResultTable]:
    """Accuracies, paired differences, single steps, filtered features, and dropout left on."""
    records = accuracy.read(folder)
    grid = pivot(records)
    filtered = {g: row for g, row in grid.items() if any(k in row for k in FILTERED)}
    base, name = "lon-paper", "ablation-differences"
    of_features = "filtered-differences"
    return [
        models_table("ablation", SAYS["ablation"], grid, LABELS),
        minus_base(name, SAYS[name], grid, LABELS, base),
        difference_table("steps", SAYS["steps"], grid, STEPS, "from ... to ..."),
        models_table("filtered", SAYS["filtered"], filtered, FILTERED_LABELS),
        minus_base(of_features, SAYS[of_features], filtered, FILTERED_LABELS, "features"),
        _dropout_on(records),
    ]


def _dropout_on(records: Mapping[str, Record]) -> ResultTable:
    """A bug of the authors' code: the hidden dropout stays on at evaluation."""
    rows = []
    for graph, record in records.items():
        if "lon-paper" in record and "test_dropout_on" in record["lon-paper"]:
            cell = record["lon-paper"]
            off, on = cell.scores("test"), cell.scores("test_dropout_on")
            rate = f"{cell['config']['dropout']:g}"
            rows.append([graph, interval(off), interval(on), f"{gain(on, off):+.2f}", rate])
    columns = ["graph", "off", "left on", "difference, points", "its rate"]
    return ResultTable("dropout-on", SAYS["dropout-on"], columns, rows)


def figures(folder: Path) -> dict[str, Figure]:
    """Mean and interval of every row on every graph."""
    grid = pivot(accuracy.read(folder))
    return {"ablation": dot_plot(grid, LABELS, ["lon-paper"])} if grid else {}


def facts(folder: Path) -> dict[str, Any]:
    """On which graphs each change clearly gains or loses, and how much."""
    grid = pivot(accuracy.read(folder))
    names = ("mlp", "basis", "learned")
    pairs = {
        **dict(zip(names, STEPS.values(), strict=True)),
        **{
            key: (key, "lon-paper")
            for key in ("probability", "penalty", "free", "degree", "features")
        },
        "gpr": ("features", "features-gpr"),
    }
    changes = {
        name: {g: points(row[one], row[two]) for g, row in grid.items() if {one, two} <= {*row}}
        for name, (one, two) in pairs.items()
    }
    clear = {
        name: {g: float(np.mean(of)) for g, of in graphs.items() if is_clear(of)}
        for name, graphs in changes.items()
    }
    up = {name: {g: v for g, v in graphs.items() if v > 0} for name, graphs in clear.items()}
    down = {name: {g: v for g, v in graphs.items() if v < 0} for name, graphs in clear.items()}
    over = gains(grid, "jacobi")
    return {
        "orthonormal": max(row["jacobi-orthnorm"] for row in over.values()),
        "up": up,
        "down": down,
        "gain": {name: numbered(graphs) for name, graphs in up.items()},
        "loss": {name: numbered(graphs) for name, graphs in down.items()},
        "probability": [min(up["probability"].values()), max(up["probability"].values())],
        "features": up["features"],
        "gpr": up["gpr"],
        "dropout_on": max(
            gain(cell.scores("test"), cell.scores("test_dropout_on"))
            for cell in (record["lon-paper"] for record in accuracy.read(folder).values())
        ),
    }
