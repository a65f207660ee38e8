"""Figures of a record: epoch times, memory, and how time grows."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from lab.bench._contenders import LABELS
from lab.bench._record import BenchRecord, DatasetResult, Spread, Sweep
from lab.bench._tables import contender_keys, contender_label
from longnn.report import (
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


def save_figures(record: BenchRecord, folder: Path, name: str) -> list[Path]:
    """Write each figure that the record has numbers for, as ``NAME-FIGURE.svg`` and ``.png``."""
    files = []
    for what, draw in _drawings(record).items():
        figure = draw(record)
        files.append(write_atomically(folder / f"{name}-{what}.svg", to_svg(figure)))
        files.append(write_atomically(folder / f"{name}-{what}.png", to_png(figure)))
    return files


def _drawings(record: BenchRecord) -> dict[str, Callable[[BenchRecord], Figure]]:
    found: dict[str, Callable[[BenchRecord], Figure]] = {}
    if record.datasets:
        found["epoch_times"] = epoch_times
    if any(_memory(result) for result in record.datasets.values()):
        found["memory"] = memory
    if record.sweeps:
        found["scaling"] = scaling
    return found


def _memory(result: DatasetResult) -> dict[str, float]:
    found = result.memory_mib if isinstance(result.memory_mib, dict) else {}
    return {key: value for key, value in found.items() if key in LABELS and value}


@in_style
def epoch_times(record: BenchRecord) -> Figure:
    """Median epoch time of each contender on each dataset, with quartiles."""
    values = {
        name: {key: contender.ms for key, contender in result.contenders.items()}
        for name, result in record.datasets.items()
    }
    title = "Time of an epoch, training and evaluation"
    title += ", in TF32" if record.settings.precision == "tf32" else ""
    figure, axes = _dots(title, record, values)
    axes.set_xlabel("milliseconds per model (log scale)")
    return figure


@in_style
def memory(record: BenchRecord) -> Figure:
    """Peak memory of each contender on each dataset."""
    values = {
        name: {key: Spread(median=v, low=v, high=v) for key, v in _memory(result).items()}
        for name, result in record.datasets.items()
    }
    figure, axes = _dots("Peak memory of training", record, values)
    axes.set_xlabel("MiB (log scale)")
    return figure


def _dots(
    title: str, record: BenchRecord, values: Mapping[str, Mapping[str, Spread]]
) -> tuple[Figure, Axes]:
    """One row per dataset, one mark per contender, on a logarithmic axis."""
    keys = contender_keys(record)
    figure, grid = new_figure(title, height=1.7 + 0.42 * len(values))
    axes: Axes = grid[0, 0]
    names = list(values)
    for i, (key, colour) in enumerate(zip(keys, colours(len(keys)), strict=True)):
        rows = [(y, values[name][key]) for y, name in enumerate(names) if key in values[name]]
        if not rows:
            continue
        shift = 0.09 * (i - (len(keys) - 1) / 2)
        middle = np.array([v.median for _, v in rows])
        ours = key in ("single", "population")
        axes.errorbar(
            middle,
            [y + shift for y, _ in rows],
            xerr=[
                middle - np.array([v.low for _, v in rows]),
                np.array([v.high for _, v in rows]) - middle,
            ],
            fmt=MARKERS[i % len(MARKERS)],
            ms=6,
            lw=1,
            color=ORANGE if ours else colour,
            mfc=ORANGE if key == "single" else "white" if ours else colour,
            label=contender_label(key, record),
        )
    axes.set_xscale("log")
    _plain_numbers(axes.xaxis)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    figure.legend(loc="outside lower center", ncols=4)
    return figure, axes


def _plain_numbers(axis: Axis) -> None:
    """Ticks of a logarithmic axis at 1, 2, 5, 10, ..., in few letters."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axis.set_minor_formatter(NullFormatter())


def _decade(low: float, high: float) -> tuple[float, float]:
    """Limits around two values, at least a factor of ten apart: a flat line looks flat."""
    stretch = max(10 / (high / low), 2.0) ** 0.5
    return low / stretch, high * stretch**1.5


def save_sweeps(sweeps: Sequence[Sweep], folder: Path, name: str) -> list[Path]:
    """Write a figure of sweeps alone, as ``NAME.svg`` and ``NAME.png``."""
    figure = draw_sweeps(sweeps)
    return [
        write_atomically(folder / f"{name}.svg", to_svg(figure)),
        write_atomically(folder / f"{name}.png", to_png(figure)),
    ]


def scaling(record: BenchRecord) -> Figure:
    """The sweeps of a record."""
    return draw_sweeps(record.sweeps)


#: Sizes of a sweep that are named, at most: more would touch each other.
TICKS = 6


def _short(value: float) -> str:
    """A size in few letters.

    >>> _short(64.0), _short(12_800.0), _short(400_000.0), _short(8_000_000.0)
    ('64', '12.8k', '400k', '8M')
    """
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:g}"


@in_style
def draw_sweeps(sweeps: Sequence[Sweep]) -> Figure:
    """The sweeps, each with the line fitted to its larger half."""
    columns = 2
    rows = -(-len(sweeps) // columns)
    figure, grid = new_figure("How time grows", height=0.6 + 2.9 * rows, rows=rows, columns=columns)
    flat = list(grid.flat)
    for axes, sweep in zip(flat, sweeps, strict=False):
        _draw_sweep(axes, sweep)
    for axes in flat[len(sweeps) :]:
        axes.set_visible(False)
    return figure


def _draw_sweep(axes: Axes, sweep: Sweep) -> None:
    x, ms = np.array(sweep.x, dtype=float), np.array(sweep.ms)
    axes.plot(x, ms, "o", color=NAVY, ms=5, label="measured")
    tail = x[x >= sweep.from_]
    text = f"fit: time ~ {sweep.axis}^{sweep.exponent:.2f}"
    axes.plot(tail, sweep.factor * tail**sweep.exponent, "--", color=ORANGE, label=text)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    marked = x[:: -(-len(x) // TICKS)]
    axes.set_xticks(marked, labels=[_short(value) for value in marked])
    axes.xaxis.set_minor_locator(NullLocator())
    _plain_numbers(axes.yaxis)
    axes.set_ylim(_decade(float(ms.min()), float(ms.max())))
    axes.set_title(sweep.what, fontsize=10)
    axes.set_xlabel(f"{sweep.axis} ({sweep.fixed})", fontsize=8, color=GREY)
    axes.set_ylabel("milliseconds")
    axes.legend(loc="upper left")
