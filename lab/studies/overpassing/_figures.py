"""Figures of over-passing: responses at the paper's epochs, amplitude and waveform over all."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.studies._core._context import save_figure
from lab.studies.overpassing._measure import GRAPHS, MODELS, SHOWN, Curve, Variant
from lab.studies.overpassing._tables import read_variants
from longnn.report import (
    GREY,
    LINES,
    NAVY,
    PALE,
    SKY,
    chebyshev_response,
    colours,
    in_style,
    new_figure,
    spectrum_axis,
)


def draw(folder: Path) -> list[Path]:
    """Write the figures of each graph, at fast and at slow rates."""
    files = []
    for graph, found in read_variants(folder).items():
        models = {MODELS[m]: variants for m, variants in found.items()}
        for rates in ("", ", slow"):
            kept = {
                label: {k: v for k, v in of.items() if k.endswith(", slow") == bool(rates)}
                for label, of in models.items()
            }
            if not all(kept.values()):
                continue
            free = {label: of[f"nothing{rates}"] for label, of in kept.items()}
            title, end = f"{GRAPHS[graph]}{rates}", f"{graph}{rates.replace(', ', '-')}"
            responses = draw_responses(free, SHOWN, title)
            files.append(save_figure(folder, f"responses-{end}", responses))
            files.append(save_figure(folder, f"curves-{end}", draw_curves(kept, title)))
    return files


@in_style
def draw_responses(models: Mapping[str, Variant], epochs: Sequence[int], graph: str) -> Figure:
    """The response at some epochs, one row per model: the first split dark, the others light."""
    figure, grid = new_figure(
        f"Filters without regularisation, {graph}",
        height=0.8 + 2.1 * len(models),
        rows=len(models),
        columns=len(epochs),
    )
    lam = np.linspace(0, 2, 101)
    for row, (name, found) in zip(grid, models.items(), strict=True):
        top = 0.0
        assert found.chebyshev is not None
        for axes, epoch in zip(row, epochs, strict=True):
            axes.axhspan(0, 1, color=PALE, lw=0)
            axes.axhline(0, color=GREY, lw=0.8)
            for seed, beta in reversed(list(enumerate(found.chebyshev[str(epoch)]))):
                response = chebyshev_response(np.array(beta), lam)  # (channels, points)
                top = max(top, np.abs(response).max())
                dark = {"color": NAVY, "lw": 1.6} if seed == 0 else {"color": SKY, "lw": 0.7}
                axes.plot(lam, response.T, **dark)
            axes.set_title(f"{name}, epoch {epoch}", loc="left", fontsize=9)
            spectrum_axis(axes, label="eigenvalue λ")
            axes.set_xticks([0, 1, 2])
        low = min(axes.dataLim.y0 for axes in row)
        for axes in row:
            axes.set_ylim(min(low, 0) - 0.05 * top, 1.05 * top)
            if axes is not row[0]:
                axes.tick_params(labelleft=False)
        row[0].set_ylabel("response g(λ)")
    note = "dark: first split (all channels); light: the other splits; shaded: 0 to 1"
    figure.supxlabel(note, fontsize=8, color=GREY)
    return figure


@in_style
def draw_curves(models: Mapping[str, Mapping[str, Variant]], graph: str) -> Figure:
    """Amplitude, and distance from the last waveform, over the epochs: one column per model."""
    figure, grid = new_figure(
        f"Amplitude and waveform, {graph}", height=5.2, rows=2, columns=len(models)
    )
    for (amplitude, waveform), (name, variants) in zip(grid.T, models.items(), strict=True):
        shades = colours(len(variants))
        for (variant, found), line, colour in zip(variants.items(), LINES, shades, strict=False):
            look = {"ls": line, "color": colour, "label": variant.removesuffix(", slow")}
            for axes, curve in ((amplitude, found.amplitude), (waveform, found.movement)):
                _band(axes, found.epochs, curve, look)
        amplitude.set_title(f"{name}: amplitude ‖g‖")
        waveform.set_title(f"{name}: waveform g/‖g‖")
        waveform.set_xlabel("epoch")
    for row in grid:
        top = max(axes.get_ylim()[1] for axes in row)
        for axes in row:
            axes.set_ylim(0, top)
    grid[0, 0].set_ylabel("rms response")
    grid[1, 0].set_ylabel("1 − cosine to the last")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, title="held back by")
    return figure


def _band(axes: Axes, epochs: list[int], curve: Curve, look: Mapping[str, Any]) -> None:
    """The mean over the splits, and from the lowest to the highest of them."""
    axes.fill_between(epochs, curve.low, curve.high, color=look["color"], alpha=0.12, lw=0)
    axes.plot(epochs, curve.mean, **look)
