"""Spectra of graphs with the weights of learned bases over them, one panel per graph."""

import io
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import PIL.Image
from matplotlib.figure import Figure

from lab.studies._core._context import save_figure
from lab.studies.basis._measure import BasisCell
from lab.studies.basis._tables import read_cells
from longnn.report import (
    NAVY,
    ORANGE,
    PALE,
    in_style,
    jacobi_weight,
    new_figure,
    spectrum_axis,
    to_png,
)

COLUMNS = 2


def draw(folder: Path) -> list[Path]:
    """The spectrum of each graph with the weight at the start and the learned ones over it."""
    return [save_figure(folder, "weights", to_small_png(draw_panels(read_cells(folder))))]


@in_style
def draw_panels(cells: Mapping[str, BasisCell]) -> Figure:
    """Histogram of the eigenvalues behind, start dashed, each split's learned weight in front."""
    rows = math.ceil(len(cells) / COLUMNS)
    figure, grid = new_figure(
        "Learned weight and the graph's spectrum", height=0.9 + 1.75 * rows, rows=rows,
        columns=COLUMNS,
    )  # fmt: skip
    lam = np.linspace(0.004, 1.996, 300)
    for axes, (name, cell) in zip(grid.flat, cells.items(), strict=False):
        shares = np.array(cell.histogram)
        edges = np.linspace(0, 2, len(shares) + 1)
        density = shares / np.diff(edges)
        axes.stairs(density, edges, fill=True, color=PALE, label="graph's eigenvalues")
        curve = jacobi_weight(lam, cell.start["a"], cell.start["b"])
        axes.plot(lam, curve, "--", color=ORANGE, lw=1.8, label="weight at the start")
        inner = (lam > 0.1) & (lam < 1.9)  # a weight with a or b < 0 has no bound at the ends
        top = curve[inner].max()
        for seed, (a, b) in enumerate(zip(cell.a, cell.b, strict=True)):
            curve = jacobi_weight(lam, a, b)
            top = max(top, curve[inner].max())
            label = "learned, each split" if seed == 0 else None
            axes.plot(lam, curve, color=NAVY, lw=0.9, label=label)
        # Many equal eigenvalues make a spike that would hide all else: it is cut off.
        axes.set_ylim(0, 1.15 * max(top, np.quantile(density, 0.97)))
        axes.set_title(f"{name}: a = {np.mean(cell.a):.2f}, b = {np.mean(cell.b):.2f}")
        spectrum_axis(axes, label="Laplacian eigenvalue λ" if axes in grid[-1] else "")
    for axes in grid.flat[len(cells) :]:
        axes.set_visible(False)
    for row in grid:
        row[0].set_ylabel("density")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def to_small_png(figure: Figure) -> bytes:
    """The figure in 64 colours: ten panels of thin lines would take 400 kB in millions."""
    image = PIL.Image.open(io.BytesIO(to_png(figure))).convert("RGB")
    with io.BytesIO() as stream:
        image.quantize(64, dither=PIL.Image.Dither.NONE).save(stream, "png", optimize=True)
        return stream.getvalue()
