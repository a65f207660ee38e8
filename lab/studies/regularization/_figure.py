"""Two spheres of coefficients, coloured by the squared norm of the filter they make."""

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from longnn.report import WIDTH, in_style

LOW, HIGH = 20.0, 40.0  # of the paper's colours


@in_style
def draw_spheres(grams: Mapping[str, np.ndarray], radius: float, a: float, b: float) -> Figure:
    """A sphere for each Gram matrix G: colour is alpha^T G alpha."""
    figure = Figure(figsize=(WIDTH, 3.7))
    FigureCanvasAgg(figure)
    title = f"Squared norm of filters whose coefficients have length 5, a = {a:g}, b = {b:g}"
    figure.suptitle(title, x=0.01, ha="left")
    polar, around = np.meshgrid(np.linspace(0, np.pi, 41), np.linspace(0, 2 * np.pi, 81))
    points = radius * np.stack(
        [np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)]
    )
    scale = Normalize(LOW, HIGH)
    colours = mpl.colormaps["cividis"]
    axes = []
    for column, (name, G) in enumerate(grams.items()):
        value = np.einsum("ixy,ij,jxy->xy", points, G, points)
        panel = figure.add_subplot(1, len(grams), column + 1, projection="3d", proj_type="ortho")
        panel.plot_surface(
            *points, facecolors=colours(scale(value)), rstride=1, cstride=1, shade=False,
            linewidth=0, antialiased=False,
        )  # fmt: skip
        low, high = value.min(), value.max()
        span = f"{low:.0f}" if high - low < 1e-6 else f"{low:.0f} to {high:.0f}"
        panel.set_title(f"{name}: ‖g‖² = {span}")
        for axis, label in ((panel.xaxis, "α₀"), (panel.yaxis, "α₁"), (panel.zaxis, "α₂")):
            axis.set_label_text(label)
            axis.set_ticks([-5, 0, 5])
        panel.set_box_aspect((1, 1, 1), zoom=0.8)
        axes.append(panel)
    figure.colorbar(
        ScalarMappable(scale, colours), ax=axes, label="‖g‖² = Σ αₖ² ‖pₖ‖²", shrink=0.75, pad=0.08
    )
    return figure
