"""Accuracies over splits as tables and a figure: means, intervals, paired differences, ranks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from lab.studies._core._context import save_figure
from lab.studies._core._evaluation import Scores
from lab.studies._core._table import ResultTable
from longnn.metrics import summarize
from longnn.report import GREY, NAVY, ORANGE, in_style, new_figure

#: Dataset -> row -> what it reached.
Results = Mapping[str, Mapping[str, Scores]]


def interval(values: Sequence[float]) -> str:
    """Mean ± half the width of the 95 % bootstrap interval, in per cent.

    >>> interval([0.5, 0.5])
    '50.00 ± 0.00'
    """
    s = summarize(values)
    return f"{100 * s['mean']:.2f} ± {50 * (s['high'] - s['low']):.2f}"


def percent(accuracies: Sequence[float]) -> float:
    """Mean accuracy in per cent.

    >>> percent([0.5, 0.75])
    62.5
    """
    return 100 * float(np.mean(accuracies))


def accuracy_table(
    results: Results,
    labels: Mapping[str, str],
    name: str,
    caption: str,
    models: Mapping[str, str] | None = None,
) -> ResultTable:
    """One row per label and one column per dataset; the best of each column in bold.

    Args:
        results: what was found.
        labels: row -> its label, in order.
        name: of the table.
        caption: of the table.
        models: row -> its model; see :func:`average_ranks`. By default all rows are models.
    """
    datasets = [d for d in results if any(key in results[d] for key in labels)]
    best = {d: max(percent(c.test) for k, c in results[d].items() if k in labels) for d in datasets}
    ranks = average_ranks(results, models or {key: key for key in labels})
    rows = []
    for key, label in labels.items():
        if not any(key in results[d] for d in datasets):
            continue
        shown = []
        for d in datasets:
            cell = results[d].get(key)
            text = "" if cell is None else interval(cell.test)
            bold = cell is not None and percent(cell.test) >= best[d] - 1e-9
            shown.append(f"**{text}**" if bold else text)
        rows.append([label, *shown, f"{ranks[key]:.1f}" if key in ranks else ""])
    return ResultTable(name, caption, ["model", *datasets, "average rank"], rows)


def average_ranks(results: Results, models: Mapping[str, str]) -> dict[str, float]:
    """Mean rank of each row (1 = best, ties share) over the datasets that have it.

    A row is ranked among the other models, each by its own row, the one that is named as the model:
    one model in three variants would take three ranks otherwise, and push the others down.

    Args:
        results: what was found.
        models: row -> the model that it is a variant of. A model without a row of its name takes
            part with all its rows.
    """
    ranks: dict[str, list[float]] = {}
    for cells in results.values():
        here = {key: percent(cells[key].test) for key in models if key in cells}
        for key, value in here.items():
            others = [
                v
                for k, v in here.items()
                if models[k] != models[key] and (k == models[k] or models[k] not in here)
            ]
            above = sum(v > value + 1e-9 for v in others)
            equal = sum(abs(v - value) <= 1e-9 for v in others)
            ranks.setdefault(key, []).append(1 + above + equal / 2)
    return {key: float(np.mean(of)) for key, of in ranks.items()}


def paired_difference(scores: Scores, base: Scores) -> str:
    """Test accuracy minus the base's, split by split, in points: mean and 95 % bootstrap interval.

    In bold if the interval excludes zero.
    """
    difference = 100 * (np.array(scores.test) - np.array(base.test))
    s = summarize(difference.tolist())
    text = f"{s['mean']:+.2f} [{s['low']:+.2f}, {s['high']:+.2f}]"
    return f"**{text}**" if s["low"] > 0 or s["high"] < 0 else text


def difference_table(
    results: Results, labels: Mapping[str, str], base: str, name: str, caption: str
) -> ResultTable:
    """Paired differences of each row to the base row, with their intervals."""
    datasets = [d for d in results if base in results[d]]
    rows = []
    for key, label in labels.items():
        if key == base or not any(key in results[d] for d in datasets):
            continue
        shown = []
        for d in datasets:
            cell = results[d].get(key)
            shown.append("" if cell is None else paired_difference(cell, results[d][base]))
        rows.append([label, *shown])
    return ResultTable(name, caption, ["model", *datasets], rows)


@in_style
def dot_plot(
    results: Results,
    labels: Mapping[str, str],
    highlight: Sequence[str],
    metrics: Mapping[str, str] | None = None,
) -> Figure:
    """Each model's mean and interval on each dataset, side by side.

    Args:
        results: dataset -> row -> scores.
        labels: of the rows.
        highlight: rows that stand out.
        metrics: what the scores of a dataset are, where it is not the accuracy.
    """
    datasets = list(results)
    named = {d: (metrics or {}).get(d, "accuracy") for d in datasets}
    what = "score" if len({*named.values()}) > 1 else next(iter(named.values()), "score")
    columns = 4 if len(datasets) > 2 else max(len(datasets), 1)
    lines = -(-len(datasets) // columns)
    present = [k for k in labels if any(k in results[d] for d in datasets)]
    figure, grid = new_figure(
        f"Test {what}: mean and 95 % interval over the splits",
        height=0.6 + lines * (0.5 + 0.16 * len(present)),
        rows=lines,
        columns=columns,
    )
    for axes in grid.flat[len(datasets) :]:
        axes.set_visible(False)
    for i, (axes, d) in enumerate(zip(grid.flat, datasets, strict=False)):
        for y, key in enumerate(reversed(present)):
            if key not in results[d]:
                continue
            s = summarize([100 * v for v in results[d][key].test])
            marked = key in highlight
            axes.plot([s["low"], s["high"]], [y, y], color=NAVY if marked else GREY, lw=1.4)
            axes.plot(
                s["mean"],
                y,
                "D" if marked else "o",
                color=ORANGE if marked else GREY,
                markeredgecolor=NAVY if marked else GREY,
                ms=4.5 if marked else 3.5,
            )
        axes.set_title(d, fontsize=9)
        axes.set_yticks(range(len(present)))
        axes.set_yticklabels([labels[k] for k in reversed(present)] if i % columns == 0 else [])
        axes.tick_params(labelsize=7)
        axes.set_ylim(-0.6, len(present) - 0.4)
        if i + columns >= len(datasets) or what == "score":  # the last of its column, or its own
            axes.set_xlabel(f"{named[d]}, %", fontsize=8)
    return figure


def save_dot_plot(
    folder: Path,
    results: Results,
    labels: Mapping[str, str],
    highlight: Sequence[str],
    name: str,
    metrics: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write the figure, if there is anything to draw."""
    if not results:
        return []
    return [save_figure(folder, name, dot_plot(results, labels, highlight, metrics))]
