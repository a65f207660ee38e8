"""The figures of the filter-fitting experiment, from its record."""

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longnn.report import (
    GREY,
    LINES,
    ORANGE,
    colours,
    in_style,
    new_figure,
    to_png,
    write_atomically,
)
from longnn.studies._fitting_task import FILTERS
from longnn.studies._record import read_record

Parts = Mapping[str, Any]
PANELS = ("low", "band", "comb")  # high looks like band, and rejection like low
#: In the table only: one is much as Legendre, the other's curve lies under LON-GNN's.
LEFT_OUT = ("Jacobi (1, 1), orthonormal", "Jacobi of the image, orthonormal")
MARKERS = ("o", "x", "s", "+", "^")


def draw(folder: Path) -> list[Path]:
    """Write the figures that the record of a folder has numbers for."""
    record = read_record(folder / "record.json")
    parts, degree = record["parts"], record["settings"]["degree"]
    files = [write_atomically(folder / "degrees.png", to_png(degrees(parts, degree)))]
    if any(key.startswith("basis/") for key in parts):
        files.append(write_atomically(folder / "steps.png", to_png(steps(parts))))
    return files


@in_style
def degrees(parts: Parts, degree: int) -> Figure:
    """The least loss of every degree, one curve a filter."""
    figure, grid = new_figure("Least loss of a polynomial filter, by degree", height=4.2)
    axes: Axes = grid[0, 0]
    floor = parts["floor"]
    for i, (name, colour) in enumerate(zip(FILTERS, colours(len(FILTERS)), strict=True)):
        axes.plot(
            floor["degrees"],
            floor["by_degree"][name],
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
    axes.set_xlim(1, floor["degrees"][-1] + 1)
    axes.set_xlabel("degree")
    axes.set_ylabel("sum of squared errors, mean of images")
    figure.legend(loc="outside lower center", ncols=5)
    return figure


@in_style
def steps(parts: Parts) -> Figure:
    """How far above the floor each basis still is, by steps of Adam; one panel a filter."""
    title = "Distance to the floor while training, by basis"
    figure, grid = new_figure(title, height=4.6, rows=2, columns=2)
    keys = [key for key in parts if key.startswith("basis/")]
    keys = [key for key in keys if key.removeprefix("basis/") not in LEFT_OUT]
    keys.sort(key=lambda key: -parts[key]["condition_scaled"])
    shades = colours(len(keys))
    for axes, name in zip(grid.flat, PANELS, strict=False):
        least = statistics.fmean(parts["floor"]["losses"][name])
        for i, key in enumerate(keys):
            part = parts[key]
            label = f"{key.removeprefix('basis/')}: {part['condition_scaled']:.1g}"
            _curve(axes, part, name, least, ls=LINES[i % len(LINES)], color=shades[i], label=label)
        label = "LON-GNN (a, b from the image, trained)"
        _curve(axes, parts["model/LON-GNN"], name, least, lw=2.6, color=ORANGE, label=label)
        axes.axhline(1e-3, color=GREY, lw=1, ls=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(bottom=1e-6)
        axes.minorticks_off()
        axes.set_title(name)
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


def _curve(axes: Axes, part: Parts, name: str, least: float, **options: Any) -> None:
    above = np.array(part["curve"][name]) / least - 1
    above = np.where(above > 1e-7, above, np.nan)  # below, the digits kept end
    axes.plot(part["marks"], above, **{"lw": 1.5, **options})
