"""Figures of filter fitting: least loss by degree, and distance to the floor while training."""

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.records import StudyRecord
from lab.studies._core._context import record_path, save_figure
from lab.studies.filters._cells import FloorCell, Plan, TrainedCell
from lab.studies.filters._task import FILTERS
from longnn.report import (
    GREY,
    LINES,
    ORANGE,
    colours,
    in_style,
    new_figure,
)

PANELS = ("low", "band", "comb")  # high looks like band, and rejection like low
#: Only in the table: one is much like Legendre, the other's curve lies under LON-GNN's.
LEFT_OUT = ("Jacobi (1, 1), orthonormal", "Jacobi of the image, orthonormal")
MARKERS = ("o", "x", "s", "+", "^")


def draw(folder: Path) -> list[Path]:
    """Write the figures that the record of a folder has numbers for."""
    record = StudyRecord.load(record_path(folder))
    floor = record.get("floor", FloorCell)
    files = [save_figure(folder, "degrees", degrees(floor, record.plan(Plan).degree))]
    bases = record.all(TrainedCell, prefix="basis/")
    if bases:
        lon = record.get("model/LON-GNN", TrainedCell)
        files.append(save_figure(folder, "steps", steps(floor, bases, lon)))
    return files


@in_style
def degrees(floor: FloorCell, degree: int) -> Figure:
    """The least loss of every degree, one curve per filter."""
    figure, grid = new_figure("Least loss of a polynomial filter, by degree", height=4.2)
    axes: Axes = grid[0, 0]
    for i, (name, colour) in enumerate(zip(FILTERS, colours(len(FILTERS)), strict=True)):
        axes.plot(
            floor.degrees,
            floor.by_degree[name],
            ls=LINES[i],
            marker=MARKERS[i],
            ms=6 if i % 2 else 4,  # pairs of filters share their losses: show both marks
            markevery=2,
            lw=1.4,
            color=colour,
            label=name,
        )
    axes.axvline(degree, color=GREY, lw=1, ls=":")
    axes.text(degree + 0.4, axes.get_ylim()[1], f"degree {degree}: the floor", va="top", fontsize=9)
    axes.set_yscale("log")
    axes.set_xlim(1, floor.degrees[-1] + 1)
    axes.set_xlabel("degree")
    axes.set_ylabel("sum of squared errors, mean of images")
    figure.legend(loc="outside lower center", ncols=5)
    return figure


@in_style
def steps(floor: FloorCell, bases: Mapping[str, TrainedCell], lon: TrainedCell) -> Figure:
    """How far above the floor each basis still is, by steps of Adam; one panel per filter."""
    title = "Distance to the floor while training, by basis"
    figure, grid = new_figure(title, height=4.6, rows=2, columns=2)
    names = [name for name in bases if name not in LEFT_OUT]
    names.sort(key=lambda name: -(bases[name].condition_scaled or 0.0))
    shades = colours(len(names))
    for axes, panel in zip(grid.flat, PANELS, strict=False):
        least = statistics.fmean(floor.losses[panel])
        for i, name in enumerate(names):
            label = f"{name}: {bases[name].condition_scaled:.1g}"
            look = {"ls": LINES[i % len(LINES)], "color": shades[i], "label": label}
            _curve(axes, bases[name], panel, least, **look)
        label = "LON-GNN (a, b from the image, trained)"
        _curve(axes, lon, panel, least, lw=2.6, color=ORANGE, label=label)
        axes.axhline(1e-3, color=GREY, lw=1, ls=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(bottom=1e-6)
        axes.minorticks_off()
        axes.set_title(panel)
        axes.set_ylabel("loss / floor − 1")
        axes.set_xlabel("steps of Adam")
    _legend(grid[0, 0], grid[1, 1])
    return figure


def _legend(drawn: Axes, free: Axes) -> None:
    """The legend of one panel in the place of another."""
    free.set_axis_off()
    handles, labels = drawn.get_legend_handles_labels()
    free.legend(
        handles,
        labels,
        loc="center left",
        title="basis: condition number (scaled)\nthin dotted line: 0.1 % above the floor",
        alignment="left",
        fontsize=8,
        title_fontsize=8.5,
    )


def _curve(axes: Axes, cell: TrainedCell, name: str, least: float, **options: Any) -> None:
    above = np.array(cell.curve[name]) / least - 1
    above = np.where(above > 1e-7, above, np.nan)  # below, the digits kept end
    axes.plot(cell.marks, above, **{"lw": 1.5, **options})
