"""Figures of a record: epoch times, memory, and how time grows."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from lab.bench._record import KINDS, Cells, Record, cells, values
from lab.bench._tables import contender_labels
from longnn.report._style import (
    GREY,
    NAVY,
    ORANGE,
    colours,
    in_style,
    new_figure,
    to_png,
    to_svg,
    write_atomically,
)

MARKERS = ("o", "D", "s", "^", "v", "<", "P")
#: Sizes of a sweep that are named, at most: more would touch each other.
TICKS = 6


def save_figures(record: Record, folder: Path, name: str) -> list[Path]:
    """Write each figure that the record has numbers for, as SVG and as PNG."""
    figures = {}
    if KINDS[record["format"]] == "epochs":
        tf32 = ", in TF32" if record["settings"].get("precision") == "tf32" else ""
        title, unit = f"Time of an epoch, training and evaluation{tf32}", "milliseconds per model"
        times, memory = cells(record, "contenders"), cells(record, "memory_mib")
        if times:
            figures[f"{name}-epoch_times"] = draw_dots(record, times, "ms", title, unit)
        if any(cell["memory_mib"]["value"] for cell in memory.values()):
            title = "Peak memory of training"
            figures[f"{name}-memory"] = draw_dots(record, memory, "memory_mib", title, "MiB")
    for what, file in (("scaling", f"{name}-scaling"), ("sweeps", name)):
        if sweeps := values(record, what):
            figures[file] = draw_sweeps(sweeps)
    return [
        write_atomically(folder / f"{file}.{kind}", draw(figure))
        for file, figure in figures.items()
        for kind, draw in (("svg", to_svg), ("png", to_png))
    ]


@in_style
def draw_dots(record: Record, found: Cells, metric: str, title: str, unit: str) -> Figure:
    """One row per dataset, one mark per contender with its quartiles, on a logarithmic axis."""
    labels = contender_labels(record)
    names = list(dict.fromkeys(graph for graph, _ in found))
    figure, grid = new_figure(title, height=1.7 + 0.42 * len(names))
    axes: Axes = grid[0, 0]
    for i, (key, colour) in enumerate(zip(labels, colours(len(labels)), strict=True)):
        rows = [(y, found.get((name, key), {}).get(metric)) for y, name in enumerate(names)]
        marked = [(y, row) for y, row in rows if row and row["value"]]
        if not marked:
            continue
        shift = 0.09 * (i - (len(labels) - 1) / 2)
        middle = np.array([row["value"] for _, row in marked])
        low, high = (
            np.array([row["value"] if row[end] is None else row[end] for _, row in marked])
            for end in ("low", "high")
        )
        ours = key in ("single", "population")
        axes.errorbar(
            middle,
            [y + shift for y, _ in marked],
            xerr=[middle - low, high - middle],
            fmt=MARKERS[i % len(MARKERS)],
            ms=6,
            lw=1,
            color=ORANGE if ours else colour,
            mfc=ORANGE if key == "single" else "white" if ours else colour,
            label=labels[key],
        )
    axes.set_xscale("log")
    _plain_numbers(axes.xaxis)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    figure.legend(loc="outside lower center", ncols=4)
    axes.set_xlabel(f"{unit} (log scale)")
    return figure


def _plain_numbers(axis: Axis) -> None:
    """Ticks of a logarithmic axis at 1, 2, 5, 10, ..., in few letters."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())


def short(value: float) -> str:
    """A size in few letters.

    >>> short(64.0), short(12_800.0), short(400_000.0), short(8_000_000.0)
    ('64', '12.8k', '400k', '8M')
    """
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:g}"


@in_style
def draw_sweeps(sweeps: Sequence[Mapping[str, Any]]) -> Figure:
    """The sweeps, each with the line fitted to its larger half."""
    rows = -(-len(sweeps) // 2)
    figure, grid = new_figure("How time grows", height=0.6 + 2.9 * rows, rows=rows, columns=2)
    for axes, sweep in itertools.zip_longest(grid.flat, sweeps):
        axes.set_visible(sweep is not None)
        if sweep is not None:
            _draw_sweep(axes, sweep)
    return figure


def _draw_sweep(axes: Axes, sweep: Mapping[str, Any]) -> None:
    x, ms = np.array(sweep["x"], dtype=float), np.array(sweep["ms"])
    axis, exponent = sweep["axis"], sweep["exponent"]
    axes.plot(x, ms, "o", color=NAVY, ms=5, label="measured")
    tail = x[x >= sweep["from"]]
    text = f"fit: time ~ {axis}^{exponent:.2f}"
    axes.plot(tail, sweep["factor"] * tail**exponent, "--", color=ORANGE, label=text)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    marked = x[:: -(-len(x) // TICKS)]
    axes.set_xticks(marked, labels=[short(value) for value in marked])
    axes.xaxis.set_minor_locator(NullLocator())
    _plain_numbers(axes.yaxis)
    # At least a factor of ten apart, so that a flat line looks flat.
    stretch = max(10 / (ms.max() / ms.min()), 2.0) ** 0.5
    axes.set_ylim(ms.min() / stretch, ms.max() * stretch**1.5)
    axes.set_title(sweep["what"], fontsize=10)
    axes.set_xlabel(f"{axis} ({sweep['fixed']})", fontsize=8, color=GREY)
    axes.set_ylabel("milliseconds")
    axes.legend(loc="upper left")
