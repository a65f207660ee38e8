r"""Does the learned basis follow the graph? Learned (a, b) against each graph's spectral density.

A Jacobi basis is orthogonal for the weight :math:`(1-x)^a(1+x)^b`, which over the Laplacian
eigenvalue :math:`\lambda = 1 - x` is a Beta density: :math:`\lambda/2 \sim
\mathrm{Beta}(a+1, b+1)`. It can be compared with the density of the graph's eigenvalues by the
Wasserstein distance, :math:`W_1 = \int_0^2 |F(\lambda) - G(\lambda)|\,d\lambda` of their
distribution functions: at the start of training, for the learned a and b, and for those that
have the mean and variance of the eigenvalues. A graph without self loops has
:math:`\mathrm{tr}\,P = 0`, so its mean eigenvalue is 1 (isolated nodes count as 1): by moments
alone, a = b on every such graph.

History: LON-GNN was trained on ten published splits of each graph, with rates at which a and b can
go where they want. The records stay, the code that trained and measured went.
"""

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import scipy.special
import scipy.stats
from matplotlib.figure import Figure

from lab.records import Values
from lab.studies._engine import read_record
from lab.studies._printed import TEN
from lab.studies._views import CAPTIONS, ResultTable
from longnn.report._filters import jacobi_weight
from longnn.report._style import NAVY, ORANGE, PALE, in_style, new_figure, spectrum_axis, to_png

TITLE = "Learned bases against the spectra of their graphs (history)"
ORDER = 80
SAYS = CAPTIONS["basis"]

COLUMNS = 2  # of the figure


def fit_moments(mean: float, variance: float) -> tuple[float, float]:
    r"""The a and b whose weight has this mean and variance of the eigenvalue.

    With :math:`m = \mathrm{mean}/2`, :math:`v = \mathrm{variance}/4` and :math:`s = m(1-m)/v - 1`:
    :math:`a + 1 = m s`, :math:`b + 1 = (1-m) s`.
    """
    m, v = mean / 2, variance / 4
    s = m * (1 - m) / v - 1
    return round(m * s - 1, 12), round((1 - m) * s - 1, 12)


def distance(histogram: np.ndarray, a: float, b: float) -> float:
    """W_1 between a histogram over equal bins of [0, 2] and the weight of a and b."""
    ours = np.concatenate([[0.0], np.cumsum(histogram)])
    edges = np.linspace(0, 2, len(ours))
    gap = np.abs(ours - scipy.special.betainc(a + 1, b + 1, edges / 2))
    return float(np.trapezoid(gap, edges))


def weight_moments(a: float, b: float) -> tuple[float, float]:
    """Mean and variance of the eigenvalue under the weight of a and b."""
    p, q = a + 1, b + 1
    return 2 * p / (p + q), 4 * p * q / ((p + q) ** 2 * (p + q + 1))


def compare_weights(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Distances between the weights of one graph and its spectrum.

    Returns:
        ``before``: at the start; ``after``: learned, by split; ``fitted``: a and b by moments, and
        ``best``, their distance; ``mean`` and ``deviation`` of the eigenvalue under the learned
        weight, over the splits.
    """
    histogram = np.array(cell["histogram"])
    pairs = list(zip(cell["a"], cell["b"], strict=True))
    fitted = fit_moments(cell["mean"], cell["variance"])
    mean, variance = np.array([weight_moments(a, b) for a, b in pairs]).mean(0)
    return {
        "before": distance(histogram, cell["start"]["a"], cell["start"]["b"]),
        "after": [distance(histogram, a, b) for a, b in pairs],
        "fitted": fitted,
        "best": distance(histogram, *fitted),
        "mean": float(mean),
        "deviation": float(np.sqrt(variance)),
    }


def read(folder: Path) -> dict[str, Values]:
    """Graph -> what was measured, in the order of the paper."""
    record = read_record(folder)
    return {name: record[name] for name in TEN}


def tables(folder: Path) -> list[ResultTable]:
    """Start, learned and fitted a and b with their distances; and the answer over all graphs."""
    graphs = read(folder)
    compared = {name: compare_weights(cell) for name, cell in graphs.items()}
    learned = SAYS["learned"].format(seeds=len(next(iter(graphs.values()))["a"]))
    rows = [[name, *_shown(graphs[name], of)] for name, of in compared.items()]
    answers = _answers([*graphs.values()], [*compared.values()])
    return [
        ResultTable("learned", learned, _COLUMNS, rows),
        ResultTable("answer", SAYS["answer"], ["question", "answer"], answers),
    ]


_COLUMNS = [
    "graph",
    *("(a, b) at the start", "learned (± standard deviation)", "(a, b) by moments"),
    *("distance at the start", "distance, learned", "distance, by moments"),
    *("splits that came closer", "mean eigenvalue", "deviation of the eigenvalues"),
    *("mean eigenvalue of the labels", "mean of the learned weight"),
    "deviation of the learned weight",
]


def _shown(cell: Values, compared: Mapping[str, Any]) -> list[str]:
    start, a, b = cell["start"], np.array(cell["a"]), np.array(cell["b"])
    fitted, before, after = (compared[key] for key in ("fitted", "before", "after"))
    return [
        f"({start['a']:g}, {start['b']:g})",
        f"({a.mean():.2f} ± {a.std(ddof=1):.2f}, {b.mean():.2f} ± {b.std(ddof=1):.2f})",
        f"({fitted[0]:.2f}, {fitted[1]:.2f})",
        f"{before:.3f}",
        f"{np.mean(after):.3f}",
        f"{compared['best']:.3f}",
        f"{sum(d < before for d in after)} of {len(a)}",
        f"{cell['mean']:.2f}",
        f"{np.sqrt(cell['variance']):.3f}",
        f"{cell['label_mean']:.2f}",
        f"{compared['mean']:.2f}",
        f"{compared['deviation']:.3f}",
    ]


def _answers(graphs: Sequence[Values], compared: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    closer = sum(np.mean(of["after"]) < of["before"] for of in compared)
    learning = np.mean([of["before"] - np.mean(of["after"]) for of in compared])
    moments = np.mean([of["before"] - of["best"] for of in compared])
    means, deviations = ([of[key] for of in compared] for key in ("mean", "deviation"))
    spread = [np.sqrt(cell["variance"]) for cell in graphs]
    labels = [cell["label_mean"] for cell in graphs]
    homophily = [cell.get("node_homophily") for cell in graphs]
    rank = "rank correlation,"
    answers = {
        "graphs where the learned weight is closer to the spectrum": f"{closer} of {len(graphs)}",
        "mean change of the distance by learning (positive: closer)": f"{learning:+.3f}",
        "the same by the fit of two moments": f"{moments:+.3f}",
        f"{rank} deviation of the learned weight and of the eigenvalues": _correlate(
            deviations, spread
        ),
        f"{rank} mean of the learned weight and of the labels' spectrum": _correlate(means, labels),
        f"{rank} mean of the learned weight and node homophily": _correlate(means, homophily),
    }
    return [list(pair) for pair in answers.items()]


def _correlate(x: Sequence[float], y: Sequence[float | None]) -> str:
    """Spearman's coefficient and its p-value."""
    rank = scipy.stats.spearmanr(x, y)
    return f"{rank.statistic:+.2f} (p = {rank.pvalue:.2f}, n = {len(x)})"


def figures(folder: Path) -> dict[str, bytes]:
    """The spectrum of each graph with the weight at the start and the learned ones over it."""
    return {"weights": to_small_png(draw_panels(read(folder)))}


@in_style
def draw_panels(graphs: Mapping[str, Values]) -> Figure:
    """Histogram of the eigenvalues behind, start dashed, each split's learned weight in front."""
    rows = math.ceil(len(graphs) / COLUMNS)
    figure, grid = new_figure(
        "Learned weight and the graph's spectrum", height=0.9 + 1.75 * rows, rows=rows,
        columns=COLUMNS,
    )  # fmt: skip
    lam = np.linspace(0.004, 1.996, 300)
    for axes, (name, cell) in zip(grid.flat, graphs.items(), strict=False):
        shares = np.array(cell.scores("histogram"))
        edges = np.linspace(0, 2, len(shares) + 1)
        density = shares / np.diff(edges)
        axes.stairs(density, edges, fill=True, color=PALE, label="graph's eigenvalues")
        curve = jacobi_weight(lam, cell["start"]["a"], cell["start"]["b"])
        axes.plot(lam, curve, "--", color=ORANGE, lw=1.8, label="weight at the start")
        inner = (lam > 0.1) & (lam < 1.9)  # a weight with a or b < 0 has no bound at the ends
        top = curve[inner].max()
        for seed, (a, b) in enumerate(zip(cell["a"], cell["b"], strict=True)):
            curve = jacobi_weight(lam, a, b)
            top = max(top, curve[inner].max())
            label = "learned, each split" if seed == 0 else None
            axes.plot(lam, curve, color=NAVY, lw=0.9, label=label)
        # Many equal eigenvalues make a spike that would hide all else: it is cut off.
        axes.set_ylim(0, 1.15 * max(top, np.quantile(density, 0.97)))
        axes.set_title(f"{name}: a = {np.mean(cell['a']):.2f}, b = {np.mean(cell['b']):.2f}")
        spectrum_axis(axes, label="Laplacian eigenvalue λ" if axes in grid[-1] else "")
    for axes in grid.flat[len(graphs) :]:
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


def facts(folder: Path) -> dict[str, Any]:
    """What the learned weights follow."""
    graphs = read(folder)
    compared = {name: compare_weights(cell) for name, cell in graphs.items()}
    away = [np.mean(of["after"]) > of["before"] for of in compared.values()]
    means = [of["mean"] for of in compared.values()]
    follows = {
        key: scipy.stats.spearmanr(means, [cell[key] for cell in graphs.values()]).statistic
        for key in ("node_homophily", "label_mean")
    }
    return {
        "graphs": len(graphs),
        "away": int(sum(away)),
        "homophily": follows["node_homophily"],
        "labels": follows["label_mean"],
    }
