"""Figures of whether to trust a result: calibration, rare classes, residuals, what the graph adds.

Each function takes plain arrays and returns a matplotlib figure with one panel; none knows records,
and none writes a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from longnn.metrics import metric_of
from longnn.report._style import (
    GREY,
    LINES,
    NARROW,
    NAVY,
    ORANGE,
    PALE,
    SKY,
    colours,
    in_style,
    new_figure,
    plain,
)

DOTS = 2000  # nodes; more are drawn as hexagons, the darker the more nodes
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CURVES = 6  # most curves in one figure
BINS = 8  # of degrees: 0, 1, 2, 3-4, 5-8, 9-16, 17-32, and all above


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """The precision-recall curve of one class.

    Args:
        name: of the class.
        recall: (points,), falling, as :func:`sklearn.metrics.precision_recall_curve` gives it.
        precision: (points,).
        prevalence: the share of the class among the nodes: the precision of a guess.
        average: the average precision; None to leave it out.
        chosen: recall and precision at the threshold in use; None if there is none.
    """

    name: str
    recall: ArrayLike
    precision: ArrayLike
    prevalence: float
    average: float | None = None
    chosen: tuple[float, float] | None = None


def calibration_error(bins: ArrayLike) -> float:
    r"""The expected calibration error :math:`\sum_b \frac{n_b}{n}\,|\text{accuracy}_b -
    \text{confidence}_b|`.

    Args:
        bins: (bins, 3) mean confidence, accuracy and count; empty bins may be NaN.

    >>> round(calibration_error([[0.6, 0.5, 10], [0.9, 0.9, 30]]), 6)
    0.025
    """
    confidence, accuracy, count = _filled(bins).T
    return float((count * np.abs(accuracy - confidence)).sum() / count.sum())


def _filled(bins: ArrayLike) -> np.ndarray:
    """The bins with nodes in them, (bins, 3)."""
    values = np.asarray(bins, dtype=float)
    if values.ndim != 2 or values.shape[1] != 3 or not np.nansum(values[:, 2]) > 0:
        raise ValueError(
            "Expected bins of shape (bins, 3), confidence, accuracy and count, with at least one "
            f"node (got {values.shape})"
        )
    return values[np.nan_to_num(values[:, 2]) > 0]


@in_style
def reliability(before: ArrayLike, after: ArrayLike | None = None) -> Figure:
    """How often predictions of a certain confidence are right, before and after calibration.

    Args:
        before: (bins, 3) mean confidence, accuracy and count of each bin.
        after: the same after calibration; None without one.

    Raises:
        ValueError: if there is no node in any bin.
    """
    figure, grid = new_figure("Can the probabilities be trusted?", height=4.6, width=NARROW)
    axes = grid[0, 0]
    axes.plot([0, 100], [0, 100], color=GREY, lw=1, ls=":", label="confidence = share right")
    name = "calibration error" if after is None else "before calibration: error"
    _draw_bins(axes, before, name, ORANGE, filled=False)
    if after is not None:
        _draw_bins(axes, after, "after calibration: error", NAVY, filled=True)
    axes.set_title("The larger the mark, the more nodes", loc="left", color=GREY)
    axes.set_xlabel("confidence of the prediction (%)")
    axes.set_ylabel("share that is right (%)")
    axes.set_xlim(0, 102)
    axes.set_ylim(0, 102)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=1)
    return figure


def _draw_bins(axes: Axes, bins: ArrayLike, name: str, colour: str, *, filled: bool) -> None:
    confidence, accuracy, count = _filled(bins).T
    label = f"{name} {100 * calibration_error(bins):.1f} %"
    line, width = ("-", 1.6) if filled else ("--", 1.2)
    x, y = 100 * confidence, 100 * accuracy
    axes.plot(x, y, color=colour, ls=line, lw=width, label=label)
    size = 25 + 250 * count / count.sum()
    axes.scatter(x, y, s=size, color=colour if filled else "white", edgecolors=colour, zorder=3)


@in_style
def precision_recall(curves: Sequence[PrecisionRecall]) -> Figure:
    """Precision against recall, with the share of each class and the threshold in use.

    Args:
        curves: one per class, or that of the rare class alone; at most six.

    Raises:
        ValueError: if there are none or more.
    """
    if not 1 <= len(curves) <= CURVES:
        raise ValueError(f"Expected 1 to {CURVES} precision-recall curves (got {len(curves)})")
    height = 3.9 + 0.2 * (len(curves) + 2)
    figure, grid = new_figure("Precision and recall", height=height, width=NARROW)
    axes = grid[0, 0]
    shades = [NAVY] if len(curves) == 1 else colours(len(curves))
    for curve, shade, line in zip(curves, shades, LINES, strict=False):
        recall, precision = (100 * np.asarray(v, float) for v in (curve.recall, curve.precision))
        average = "" if curve.average is None else f", average precision {curve.average:.2f}"
        label = plain(curve.name, 24) + average
        axes.plot(recall, precision, color=shade, ls=line, drawstyle="steps-post", label=label)
        axes.axhline(100 * curve.prevalence, color=shade, ls=":", lw=1)
        if curve.chosen is not None:
            place = [100 * value for value in curve.chosen]
            axes.plot(*place, "o", color=shade, mfc="white", mew=2, ms=9, zorder=4)
    axes.plot([], [], color=GREY, ls=":", lw=1, label="share of the class: precision of a guess")
    if any(curve.chosen is not None for curve in curves):
        axes.plot([], [], "o", color=GREY, mfc="white", mew=2, label="threshold in use")
    axes.set_xlabel("recall: share of the class that is found (%)")
    axes.set_ylabel("precision: share that is right (%)")
    axes.set_xlim(0, 102)
    axes.set_ylim(0, 104)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=1)
    return figure


@in_style
def predicted_true(predicted: ArrayLike, true: ArrayLike, *, label: str = "label") -> Figure:
    """Predicted against true values, with the diagonal on which both agree.

    Args:
        predicted: (nodes,).
        true: (nodes,).
        label: the name of the target, with its unit.

    Raises:
        ValueError: if they do not have the same length, or there are none.
    """
    x, y = (np.asarray(values, dtype=float).ravel() for values in (true, predicted))
    if x.shape != y.shape or len(x) == 0:
        raise ValueError(
            f"Expected predicted and true values of one length (got {y.shape} and {x.shape})"
        )
    figure, grid = new_figure("Predicted against true", height=4.9, width=NARROW)
    axes = grid[0, 0]
    low, high = float(min(x.min(), y.min())), float(max(x.max(), y.max()))
    margin = 0.04 * (high - low or 1.0)
    span = (low - margin, high + margin)
    axes.plot(span, span, color=ORANGE, ls="--", lw=1.4, zorder=3, label="predicted = true")
    if len(x) > DOTS:
        drawn = axes.hexbin(
            x, y, gridsize=40, extent=(*span, *span), mincnt=1, cmap="Blues", bins="log", lw=0.1
        )
        figure.colorbar(drawn, ax=axes, shrink=0.8).set_label("nodes")
    else:
        axes.plot(x, y, "o", color=NAVY, ms=4, mew=0, alpha=0.5, label="one node")
    axes.set_xlim(span)
    axes.set_ylim(span)
    axes.set_aspect("equal")
    axes.set_title(_fit_text(y, x), loc="left", color=GREY)
    axes.set_xlabel(f"true {plain(label, 40)}")
    axes.set_ylabel(f"predicted {plain(label, 40)}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    return figure


def _fit_text(predicted: np.ndarray, true: np.ndarray) -> str:
    """R² and the root mean squared error, over how many nodes."""
    residual, spread = ((predicted - true) ** 2).sum(), ((true - true.mean()) ** 2).sum()
    r2 = f"R² {1 - residual / spread:.3f}, " if spread > 0 else ""
    count = f"{len(true):,} node{'s' * (len(true) != 1)}"
    return f"{r2}RMSE {np.sqrt(residual / len(true)):.3g}, {count}"


def bin_by_degree(degrees: ArrayLike, residuals: ArrayLike) -> np.ndarray:
    """Quantiles of residuals in bins of the nodes' degrees: 0, 1, 2, 3-4, 5-8, ..., 33 and more.

    Args:
        degrees: (nodes,) numbers of neighbours.
        residuals: (nodes,) predicted minus true.

    Returns:
        (bins, 8): the smallest and largest degree of the bin, its nodes, and the 5, 25, 50, 75 and
        95 % quantiles of their residuals; bins without nodes are left out.

    >>> bin_by_degree([1, 3, 4, 4], [0.5, -1.0, 0.0, 1.0])[:, [0, 1, 2, 5]].tolist()
    [[1.0, 1.0, 1.0, 0.5], [3.0, 4.0, 3.0, 0.0]]
    """
    degree, residual = np.asarray(degrees).ravel(), np.asarray(residuals, dtype=float).ravel()
    if degree.shape != residual.shape or len(degree) == 0:
        raise ValueError(
            f"Expected one degree per residual (got {degree.shape} and {residual.shape})"
        )
    bins = np.where(degree > 0, np.ceil(np.log2(np.maximum(degree, 1))) + 1, 0)
    bins = np.minimum(bins, BINS - 1).astype(int)  # 0 -> 0, 1 -> 1, 2 -> 2, 3..4 -> 3, 5..8 -> 4
    rows = []
    for index in np.unique(bins):
        inside = bins == index
        low = index if index < 3 else 2 ** (index - 2) + 1
        high = degree[inside].max() if index == BINS - 1 else (index and 2 ** (index - 1))
        quantiles = np.quantile(residual[inside], QUANTILES)
        rows.append([low, high, inside.sum(), *quantiles])
    return np.array(rows, dtype=float)


@in_style
def residuals_by_degree(bins: ArrayLike, *, label: str = "label") -> Figure:
    """The spread of the residuals against the number of neighbours.

    Args:
        bins: (bins, 8) as :func:`bin_by_degree` gives them.
        label: the name of the target, with its unit.

    Raises:
        ValueError: if the bins are not of this shape.
    """
    rows = np.asarray(bins, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != 8 or len(rows) == 0:
        raise ValueError(f"Expected bins of shape (bins, 8) (got {rows.shape})")
    figure, grid = new_figure("Residuals by number of neighbours", height=4.0, width=NARROW)
    axes = grid[0, 0]
    place = np.arange(len(rows))
    low, lower, middle, upper, high = rows[:, 3:].T
    axes.vlines(place, low, high, color=NAVY, lw=1.2, label="90 % of the nodes")
    axes.bar(
        place, upper - lower, 0.5, lower, color=SKY, edgecolor=NAVY, lw=0.8, zorder=2,
        label="half of the nodes",
    )  # fmt: skip
    axes.hlines(middle, place - 0.25, place + 0.25, color="black", lw=2.4, label="median")
    axes.axhline(0, color=GREY, lw=1, ls="--")
    axes.set_xticks(place, [_degree_text(*row[:3]) for row in rows], fontsize=8)
    axes.set_xlabel("neighbours of a node (and how many nodes have so many)")
    axes.set_ylabel(f"predicted − true {plain(label, 30)}")
    axes.grid(False, axis="x")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, columnspacing=1.2)
    return figure


def _degree_text(low: float, high: float, count: float) -> str:
    degrees = f"{low:.0f}" if low == high else f"{low:.0f}–{high:.0f}"
    many = f"{count:,.0f}" if count < 10_000 else f"{count / 1000:,.0f}k"
    return f"{degrees}\n({many})"


@in_style
def what_the_graph_adds(
    rows: Sequence[tuple[str, float, float, float]], *, metric: str = "accuracy"
) -> Figure:
    """Scores of the model and of baselines without the graph, with their 95 % intervals.

    Args:
        rows: name, mean, low and high; the model first, then the baselines. Low and high are NaN
            where there is no interval.
        metric: the name of the score.

    Raises:
        ValueError: if there are not at least two rows.
    """
    if len(rows) < 2:
        raise ValueError(f"Expected the model and at least one baseline (got {len(rows)} rows)")
    scale, unit = metric_of(metric).scale, metric_of(metric).axis
    height = 1.5 + 0.42 * len(rows)
    figure, grid = new_figure("What the graph adds", height=height, width=NARROW)
    axes = grid[0, 0]
    axes.axvline(scale * rows[0][1], color=PALE, lw=3, zorder=0)
    for place, (_, *numbers) in enumerate(rows):
        mean, low, high = (scale * number for number in numbers)
        colour, marker, face = (NAVY, "o", NAVY) if place == 0 else (GREY, "D", "white")
        reach = np.nan_to_num([[mean - low], [high - mean]]).clip(min=0)
        axes.errorbar(
            [mean], [place], xerr=reach, fmt=marker, color=colour, mfc=face, mew=1.6, ms=6,
            elinewidth=1.8, capsize=5 if reach.any() else 0,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [plain(row[0], 26) for row in rows])
    axes.get_yticklabels()[0].set_fontweight("bold")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_ylabel("model and baselines")
    spread = any(np.isfinite(low + high) for _, _, low, high in rows)
    axes.set_xlabel(f"test {unit}" + "\nmean and 95 % interval" * spread)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.grid(False, axis="y")
    return figure
