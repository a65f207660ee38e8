"""How figures look, and how they are written.

All figures share one style. Nothing uses pyplot or changes the settings of matplotlib for others,
and matplotlib, which is slow to load, is loaded where something is drawn.
Colours differ in lightness and are combined with different line styles, so that they can be told
apart in greyscale and with colour blindness.
"""

from __future__ import annotations

import functools
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from longnn._base.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.2  # inches: 10 pt text is still 11 pixels high when shown 600 pixels wide
NARROW = 5.4  # of a run's figures, one panel above the other: 9 pixels when a phone shows 350
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
    """Use this style over the defaults of matplotlib, whatever the settings of the user are."""
    import matplotlib.style

    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; that is no error.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def in_style(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorate a function that draws a figure, so that it draws in this style."""

    @functools.wraps(draw)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with styled():
            return draw(*args, **kwargs)

    return wrapper


def new_figure(
    title: str,
    *,
    height: float,
    width: float = WIDTH,
    rows: int = 1,
    columns: int = 1,
    ratios: Sequence[float] | None = None,
) -> tuple[Figure, Any]:
    """A figure with its own canvas, and its axes.

    Args:
        title: of the figure.
        height: in inches.
        width: in inches.
        rows, columns: of the grid of axes.
        ratios: relative heights of the rows.

    Returns:
        The figure, and its axes as an array of shape (rows, columns).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    figure.suptitle(plain(title), x=0.01, ha="left")
    return figure, figure.subplots(rows, columns, squeeze=False, height_ratios=ratios)


def plain(text: str, limit: int = 60) -> str:
    """Text from a user, drawn literally: no formula between dollar signs, at most one line.

    A leading underscore would hide an entry from the legend, so it gets a space in front.
    """
    text = "".join(c for c in " ".join(text.split()) if c.isprintable())
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def colours(count: int) -> list[Any]:
    """``count`` colours of increasing lightness, all visible on white."""
    import matplotlib as mpl

    return [mpl.colormaps["cividis"](x) for x in np.linspace(0, 0.82, max(count, 2))[:count]]


def spectrum_axis(axes: Axes, *, label: str = "Laplacian eigenvalue λ") -> None:
    """Make the horizontal axis the spectrum, from smooth (0) to rough (2)."""
    axes.set_xlim(0, 2)
    axes.set_xticks([0, 0.5, 1, 1.5, 2])
    axes.set_xlabel(label)


def to_svg(figure: Figure) -> bytes:
    """The figure as SVG; the same figure gives the same bytes."""
    with styled(), io.BytesIO() as stream:
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": "longnn"})
        return stream.getvalue()


def to_png(figure: Figure) -> bytes:
    """The figure as PNG; the same figure gives the same bytes."""
    with styled(), io.BytesIO() as stream:
        figure.savefig(stream, format="png", dpi=DPI, metadata={"Software": "longnn"})
        return stream.getvalue()


def to_svg_and_png(figure: Figure) -> tuple[bytes, bytes]:
    """The figure as both, laid out once and drawn once each; it cannot be laid out again."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with styled(), io.BytesIO() as svg, io.BytesIO() as png:
        figure.dpi = 72  # a point is a unit of SVG
        FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None, "Creator": "longnn"})
        figure.set_layout_engine("none")
        figure.dpi = DPI
        FigureCanvasAgg(figure).print_png(png, metadata={"Software": "longnn"})
        return svg.getvalue(), png.getvalue()


def write_atomically(file: Path, content: bytes) -> Path:
    """Write a file completely or not at all: readers never see half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(file) as temporary:
        temporary.write_bytes(content)
    return file
