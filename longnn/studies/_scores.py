"""Accuracies over splits as tables and a figure: means, intervals, paired differences, ranks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from longnn.report import GREY, NAVY, ORANGE, in_style, new_figure, to_png, write_atomically
from longnn.studies._table import Table
from longnn.training import summarize

#: Dataset -> row -> what was found; see :func:`longnn.studies.read_study`.
Study = Mapping[str, Mapping[str, Any]]


def interval(values: Sequence[float]) -> str:
    """Mean ± half the width of the 95 % bootstrap interval, in per cent.

    >>> interval([0.5, 0.5])
    '50.00 ± 0.00'
    """
    s = summarize(values)
    return f"{100 * s['mean']:.2f} ± {50 * (s['high'] - s['low']):.2f}"


def mean(part: Mapping[str, Any], key: str = "test") -> float:
    """Mean accuracy in per cent."""
    return 100 * float(np.mean(part[key]))


def accuracy_table(
    study: Study,
    labels: Mapping[str, str],
    name: str,
    caption: str,
    models: Mapping[str, str] | None = None,
) -> Table:
    """Rows = models, columns = datasets; the best of each column in bold; average rank last.

    ``models`` tells which rows are variants of one model, as in :func:`average_ranks`.
    """
    datasets = [d for d in study if any(key in study[d] for key in labels)]
    best = {d: max(mean(p) for k, p in study[d].items() if k in labels) for d in datasets}
    ranks = average_ranks(study, models or {key: key for key in labels})
    rows = []
    for key, label in labels.items():
        if not any(key in study[d] for d in datasets):
            continue
        cells = []
        for d in datasets:
            part = study[d].get(key)
            text = "" if part is None else interval(part["test"])
            bold = part is not None and mean(part) >= best[d] - 1e-9
            cells.append(f"**{text}**" if bold else text)
        rows.append([label, *cells, f"{ranks[key]:.1f}" if key in ranks else ""])
    return Table(name, caption, ["model", *datasets, "average rank"], rows)


def average_ranks(study: Study, models: Mapping[str, str]) -> dict[str, float]:
    """Mean rank of each row (1 = best, ties share) over the datasets that have it.

    ``models`` tells which model a row is of. A row is ranked among the rows of other models: one
    model in three variants would take three ranks otherwise.
    """
    ranks: dict[str, list[float]] = {}
    for parts in study.values():
        here = {key: mean(parts[key]) for key in models if key in parts}
        for key, value in here.items():
            others = [v for k, v in here.items() if models[k] != models[key]]
            above = sum(v > value + 1e-9 for v in others)
            equal = sum(abs(v - value) <= 1e-9 for v in others)
            ranks.setdefault(key, []).append(1 + above + equal / 2)
    return {key: float(np.mean(of)) for key, of in ranks.items()}


def paired_difference(part: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    """Test accuracy minus the base's, split by split, in points: mean and 95 % bootstrap interval,
    bold where that leaves out zero."""
    difference = 100 * (np.array(part["test"]) - np.array(base["test"]))
    s = summarize(difference.tolist())
    text = f"{s['mean']:+.2f} [{s['low']:+.2f}, {s['high']:+.2f}]"
    return f"**{text}**" if s["low"] > 0 or s["high"] < 0 else text


def difference_table(
    study: Study, labels: Mapping[str, str], base: str, name: str, caption: str
) -> Table:
    """Paired differences of each row to the base, split by split, with their intervals."""
    datasets = [d for d in study if base in study[d]]
    rows = []
    for key, label in labels.items():
        if key == base or not any(key in study[d] for d in datasets):
            continue
        cells = []
        for d in datasets:
            part = study[d].get(key)
            cells.append("" if part is None else paired_difference(part, study[d][base]))
        rows.append([label, *cells])
    return Table(name, caption, ["model", *datasets], rows)


@in_style
def dot_plot(study: Study, labels: Mapping[str, str], highlight: Sequence[str]) -> Figure:
    """Each model's mean and interval on each dataset, side by side."""
    datasets = list(study)
    columns = 4 if len(datasets) > 2 else max(len(datasets), 1)
    lines = -(-len(datasets) // columns)
    present = [k for k in labels if any(k in study[d] for d in datasets)]
    figure, grid = new_figure(
        "Test accuracy: mean and 95 % interval over the splits",
        height=0.6 + lines * (0.5 + 0.16 * len(present)),
        rows=lines,
        columns=columns,
    )
    for axes in grid.flat[len(datasets) :]:
        axes.set_visible(False)
    for i, (axes, d) in enumerate(zip(grid.flat, datasets, strict=False)):
        for y, key in enumerate(reversed(present)):
            if key not in study[d]:
                continue
            s = summarize([100 * v for v in study[d][key]["test"]])
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
    for axes in grid[-1]:
        axes.set_xlabel("accuracy, %", fontsize=8)
    return figure


def save_dot_plot(
    folder: Path, study: Study, labels: Mapping[str, str], highlight: Sequence[str], name: str
) -> list[Path]:
    """Write the figure, where there is anything to draw."""
    if not study:
        return []
    figure = dot_plot(study, labels, highlight)
    return [write_atomically(folder / f"{name}.png", to_png(figure))]
