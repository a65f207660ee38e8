"""The filters of a deep model: a ladder of small panels, one per block.

What does each depth keep? The panels share both axes, so that blocks can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longnn.records import FilterRecord, RunRecord
from longnn.report._filter_figures import density_top, largest_eigenvalue
from longnn.report._responses import align_signs
from longnn.report._stack import ends_on_scores, filter_names, kind_of, ladder_order
from longnn.report._style import (
    GREY,
    NARROW,
    NAVY,
    PALE,
    SKY,
    in_style,
    new_figure,
    plain,
    spectrum_axis,
)
from longnn.report._words import filter_text

RUNGS = 24  # most blocks drawn
COLUMNS = 2


@in_style
def filter_ladder(run: RunRecord) -> Figure:
    """The learned responses of all blocks, one small panel each, over the spectral density.

    Raises:
        ValueError: if the model has no filter.
    """
    shown = run.filters[:RUNGS]
    if not shown:
        raise ValueError(f"Expected a model with filters (got {run.model!r}).")
    many = f" (first {RUNGS} of {len(run.filters)})" if len(run.filters) > RUNGS else ""
    rows = math.ceil(len(shown) / COLUMNS)
    title = f"Learned filters on {plain(run.data.name, 20)}, {ladder_order(run)}{many}"
    height = 1.1 + 1.55 * rows
    figure, grid = new_figure(title, height=height, width=NARROW, rows=rows, columns=COLUMNS)
    bands = [_band(found) for found in shown]
    low, high = _limits(run, shown, bands)
    names = filter_names(run.filters, "block", on_scores=ends_on_scores(run))
    for index, (axes, found, band) in enumerate(zip(grid.flat, shown, bands, strict=False)):
        name = plain(names[index], 24)
        _draw_density(axes, run, low, high)
        _draw_rung(axes, found, band)
        axes.set_ylim(low, high)
        axes.axhline(0, color=GREY, lw=0.8)
        words = f"{name}, degree {found.degree}: {kind_of(filter_text(found))}"
        axes.set_title(plain(words), loc="left", color=GREY, fontsize=9)
        last = index + COLUMNS >= len(shown)
        spectrum_axis(axes, label="eigenvalue λ (0 smooth, 2 rough)" if last else "")
        axes.tick_params(labelbottom=last, labelleft=index % COLUMNS == 0)
        if index % COLUMNS == 0:
            axes.set_ylabel("g(λ)")
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    return figure


Band = tuple[np.ndarray, ...]


def _band(found: FilterRecord) -> Band:
    """5, 25, 75 and 95 per cent of the channels and their mean, each (points,)."""
    response = align_signs(found.response)[0]
    return (*np.quantile(response, [0.05, 0.25, 0.75, 0.95], axis=0), response.mean(axis=0))


def _limits(
    run: RunRecord, shown: Sequence[FilterRecord], bands: Sequence[Band]
) -> tuple[float, float]:
    """One scale for all panels, by what lies inside the spectrum of the graph."""
    largest = largest_eigenvalue(run)
    values = [
        np.nan_to_num(np.stack(band)[:, found.eigenvalues <= largest + 0.02]).ravel()
        for found, band in zip(shown, bands, strict=True)
    ]
    every = np.concatenate([*values, np.zeros(1)])
    low, high = float(every.min()), float(every.max())
    margin = 0.08 * (high - low) or 1.0
    return low - margin, high + margin


def _draw_density(axes: Axes, run: RunRecord, low: float, high: float) -> None:
    """The spectral density of the graph at the foot of a panel, half as high as the panel."""
    if run.data.density is None:
        return
    lam, density = run.data.density
    density = np.nan_to_num(density)
    share = np.clip(density / density_top(lam, density), 0, 1)
    axes.fill_between(lam, low, low + 0.5 * (high - low) * share, color=PALE, lw=0)


def _draw_rung(axes: Axes, found: FilterRecord, band: Band) -> None:
    low, lower, upper, high, mean = band
    lam = found.eigenvalues
    if found.channels > 1:
        axes.fill_between(lam, low, high, color=SKY, alpha=0.35, lw=0)
        axes.fill_between(lam, lower, upper, color=SKY, lw=0)
    axes.plot(lam, mean, color=NAVY, lw=2)
