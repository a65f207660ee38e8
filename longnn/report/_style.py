"""How figures look, and how they reach the disk.

One style for all: no pyplot and no lasting change to matplotlib's settings. Colours differ in
lightness and go with different line styles, so that they survive greyscale and colour blindness.
"""

from __future__ import annotations

import functools
import io
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

WIDTH = 7.2  # inches: 10 pt text is still 11 pixels high when shown 600 pixels wide
DPI = 150

NAVY = "#12305f"
ORANGE = "#d1600a"
SKY = "#6fb3e0"
GREY = "#5c5c5c"
PALE = "#d9dee6"  # the spectral density behind the curves
FAINT = 0.3  # opacity of the repeats behind the first

LINES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 3)))

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same on every machine
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#404040",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "figure.titlesize": 12,
    "figure.titleweight": "bold",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",  # looks the same whatever fonts the reader has
    "svg.hashsalt": "longnn",  # the same figure gives the same bytes
    "path.simplify_threshold": 0.3,
}

P = ParamSpec("P")


@contextmanager
def styled() -> Iterator[None]:
    """Our style over matplotlib's defaults, whatever the user's own settings are."""
    with mpl.style.context(["default", STYLE]), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes: no reason to fail.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def in_style(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorate a function that draws a figure."""

    @functools.wraps(draw)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with styled():
            return draw(*args, **kwargs)

    return wrapper


def new_figure(
    title: str,
    *,
    height: float,
    rows: int = 1,
    columns: int = 1,
    ratios: Sequence[float] | None = None,
) -> tuple[Figure, Any]:
    """A figure of a height in inches with its own canvas, and its axes, (rows, columns)."""
    figure = Figure(figsize=(WIDTH, height))
    FigureCanvasAgg(figure)
    figure.suptitle(plain(title), x=0.01, ha="left")
    return figure, figure.subplots(rows, columns, squeeze=False, height_ratios=ratios)


def plain(text: str, limit: int = 60) -> str:
    """Text a user gave, as it is: no formula between dollar signs, no endless line.

    A leading underscore would hide the entry from the legend.
    """
    text = "".join(c for c in " ".join(text.split()) if c.isprintable())
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def colours(count: int) -> list[Any]:
    """So many colours of increasing lightness, all visible on white."""
    return [mpl.colormaps["cividis"](x) for x in np.linspace(0, 0.82, max(count, 2))[:count]]


def spectrum_axis(axes: Axes, *, label: str = "Laplacian eigenvalue λ") -> None:
    """The horizontal axis from smooth to rough."""
    axes.set_xlim(0, 2)
    axes.set_xticks([0, 0.5, 1, 1.5, 2])
    axes.set_xlabel(label)


def to_svg(figure: Figure) -> bytes:
    with styled(), io.BytesIO() as stream:
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": "longnn"})
        return stream.getvalue()


def to_png(figure: Figure) -> bytes:
    with styled(), io.BytesIO() as stream:
        figure.savefig(stream, format="png", dpi=DPI, metadata={"Software": "longnn"})
        return stream.getvalue()


def write_atomically(file: Path, content: bytes) -> Path:
    """Write a file whole or not at all: a reader never sees half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with part.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return file
