"""Figures of how well a run works and whether to trust it: epochs, repeats, classes, errors.

Each function takes a run, or a piece of its record, and returns a matplotlib figure; none writes a
file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from longnn.metrics import metric_of
from longnn.records import Bins, PrecisionRecall, Residuals, RunRecord, Summary
from longnn.report._style import (
    FAINT,
    GREY,
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
from longnn.report._words import class_names, untested

NUMBERED = 12  # most classes for which the cells of a confusion matrix show their counts
DOTS = 2000  # nodes; more are drawn as hexagons, the darker the more nodes
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BINS = 8  # of degrees: 0, 1, 2, 3-4, 5-8, 9-16, 17-32, and all above


@in_style
def training_curves(run: RunRecord) -> Figure:
    """Training and validation loss, and the validation score, against the epoch.

    Raises:
        ValueError: if the run has no history.
    """
    if run.history is None:
        raise ValueError("Expected a history of the epochs, history.csv (got none).")
    figure, grid = new_figure("Training", height=5.6, width=NARROW, rows=2)
    losses, scores = grid[:, 0]
    scale = metric_of(run.metric).scale
    first, *others = run.history.repeats
    for repeat in others:
        rows = run.history.of(repeat)
        losses.plot(rows["epoch"], rows["train_loss"], color=SKY, ls="--", lw=0.8, alpha=FAINT)
        losses.plot(rows["epoch"], rows["val_loss"], color=NAVY, lw=0.8, alpha=FAINT / 2)
        scores.plot(rows["epoch"], scale * rows["val_score"], color=NAVY, lw=0.8, alpha=FAINT / 2)
    rows = run.history.of(first)
    train, *_ = losses.plot(rows["epoch"], rows["train_loss"], color=SKY, ls="--", lw=1.6)
    val, *_ = losses.plot(rows["epoch"], rows["val_loss"], color=NAVY, lw=1.6)
    scores.plot(rows["epoch"], scale * rows["val_score"], color=NAVY, lw=1.6)
    epoch = run.repeats[0].best_epoch
    for axes in (losses, scores):
        best = axes.axvline(epoch, color=ORANGE, ls=":", lw=1.5)
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    losses.set_title("Loss", loc="left")
    losses.set_ylabel("loss")
    scores.set_title(f"Validation {metric_of(run.metric).name}", loc="left")
    scores.set_ylabel(metric_of(run.metric).axis)
    figure.legend(
        [train, val, best],
        ["training", "validation", f"best epoch ({epoch})"],
        loc="outside lower center",
        ncols=3,
    )
    return figure


@in_style
def score_distribution(run: RunRecord) -> Figure:
    """The scores of the repeats, with their mean and its 95 % interval.

    Raises:
        ValueError: if there is only one repeat.
    """
    if len(run.repeats) < 2:
        raise ValueError("Expected at least two repeats (got one).")
    figure, grid = new_figure(f"Scores of {len(run.repeats)} repeats", height=2.6, width=NARROW)
    axes = grid[0, 0]
    parts, scale = {"val": (SKY, "D"), "test": (NAVY, "o")}, metric_of(run.metric).scale
    for row, (part, (colour, marker)) in enumerate(parts.items()):
        values = [repeat.scores.get(part, {}).get(run.metric, np.nan) for repeat in run.repeats]
        _draw_scores(axes, row, values, run.score(part), scale, colour, marker)
    axes.set_yticks([0, 1], ["validation", "test"])
    axes.set_ylim(1.65, -0.45)
    axes.set_ylabel("scored nodes")
    axes.set_xlabel(metric_of(run.metric).axis)
    axes.grid(False, axis="y")
    _explain_scores(figure)
    return figure


def _explain_scores(figure: Figure) -> None:
    """A legend in neutral grey: the colours of the dots differ from row to row."""
    dot = Line2D([], [], ls="", marker="o", color=GREY, mec="white", ms=6)
    entries: dict[str, Any] = {"one repeat": dot}
    for axes in figure.axes:
        entries |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(
        list(entries.values()), list(entries), loc="outside lower center", ncols=len(entries)
    )


def _draw_scores(
    axes: Axes,
    row: int,
    values: Sequence[float],
    summary: Summary | None,
    scale: float,
    colour: object,
    marker: str = "o",
) -> None:
    """Dots in a row, spread vertically so that equal scores do not hide each other."""
    scores = scale * np.asarray(values, dtype=float)
    spread = 0.16 * ((np.argsort(np.argsort(scores)) % 3) - 1) if len(scores) > 1 else 0.0
    place = row + spread + 0.0 * scores
    axes.plot(scores, place, marker, color=colour, mec="white", ms=6, alpha=0.8)
    if summary is None or not np.isfinite(summary.mean):
        return
    mean = scale * summary.mean
    if summary.count > 1 and np.isfinite(summary.low + summary.high):
        reach = [[mean - scale * summary.low], [scale * summary.high - mean]]
        axes.errorbar(
            [mean], [row + 0.36], xerr=np.maximum(reach, 0), fmt="|", color=ORANGE, ms=12, mew=2.5,
            elinewidth=2, capsize=4, label="mean and its 95 % interval",
        )  # fmt: skip


@in_style
def confusion(run: RunRecord) -> Figure:
    """True against predicted classes of the test nodes of the first repeat.

    Rows of classes without test nodes are grey and say so.

    Raises:
        ValueError: if the record has no confusion matrix.
    """
    counts = run.repeats[0].confusion
    if counts is None:
        raise ValueError("Expected a confusion matrix in the first repeat (got none).")
    size = len(counts)
    names = [plain(name, 16) for name in class_names(run, size)]
    totals = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    figure, grid = new_figure("Which classes are confused", height=4.8, width=NARROW)
    axes = grid[0, 0]
    image = axes.imshow(
        share,
        cmap=LinearSegmentedColormap.from_list("shares", ["white", SKY, NAVY]),
        vmin=0,
        vmax=1,
    )
    step = max(1, size // 20)
    ticks = np.arange(0, size, step)
    turned = size > 8 or max(map(len, names)) > 5
    axes.set_xticks(ticks, names[::step], rotation=90 if turned else 0)
    axes.set_yticks(ticks, names[::step])
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    axes.set_title("Test nodes of the first repeat", loc="left", color=GREY)
    axes.grid(False)
    empty = untested(counts)
    if size <= NUMBERED:
        for (row, column), count in np.ndenumerate(counts):
            if row not in empty:
                colour = "white" if share[row, column] > 0.5 else "black"
                place: dict[str, Any] = {"ha": "center", "va": "center", "color": colour}
                axes.text(column, row, f"{count:.0f}", fontsize=9, **place)
    for row in empty:
        axes.axhspan(row - 0.5, row + 0.5, color=PALE, lw=0)
        axes.text(
            (size - 1) / 2, row, "no test node", ha="center", va="center", color=GREY,
            fontsize=9 if size <= 20 else 6,
        )  # fmt: skip
    figure.colorbar(image, ax=axes, shrink=0.8).set_label("share of the true class")
    return figure


@in_style
def compare_scores(runs: Sequence[RunRecord]) -> Figure:
    """Test scores of several runs, one panel per metric and one row per run."""
    if not runs:
        raise ValueError("Expected at least one run (got none).")
    metrics = list(dict.fromkeys(run.metric for run in runs))
    sizes = [sum(run.metric == metric for run in runs) + 0.2 for metric in metrics]
    height = 0.9 + 0.5 * sum(sizes) + 0.6 * len(metrics)
    figure, grid = new_figure(
        "Test scores", height=height, width=NARROW, rows=len(metrics), ratios=sizes
    )
    shades = dict(zip([id(run) for run in runs], colours(len(runs)), strict=True))
    for axes, metric in zip(grid[:, 0], metrics, strict=True):
        rows = [run for run in runs if run.metric == metric]
        for row, run in enumerate(rows):
            values = [repeat.scores.get("test", {}).get(metric, np.nan) for repeat in run.repeats]
            summary = run.score("test")
            _draw_scores(axes, row, values, summary, metric_of(metric).scale, shades[id(run)])
        axes.set_yticks(range(len(rows)), [plain(run.name, 24) for run in rows])
        axes.set_ylim(len(rows) - 0.35, -0.45)
        axes.set_ylabel("run")
        axes.set_xlabel(metric_of(metric).axis)
        axes.grid(False, axis="y")
    _explain_scores(figure)
    return figure


@in_style
def reliability(before: Bins, after: Bins | None = None) -> Figure:
    """How often predictions of a certain confidence are right, before and after calibration."""
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


def _draw_bins(axes: Axes, bins: Bins, name: str, colour: str, *, filled: bool) -> None:
    line, width = ("-", 1.6) if filled else ("--", 1.2)
    x, y = 100 * bins.confidence, 100 * bins.accuracy
    axes.plot(x, y, color=colour, ls=line, lw=width, label=f"{name} {100 * bins.error:.1f} %")
    size = 25 + 250 * bins.count / max(bins.count.sum(), 1)
    axes.scatter(x, y, s=size, color=colour if filled else "white", edgecolors=colour, zorder=3)


@in_style
def precision_recall(curve: PrecisionRecall, average: float | None = None) -> Figure:
    """Precision against recall of a class, with its share and the threshold in use.

    Args:
        curve: of the class.
        average: the average precision; None to leave it out.
    """
    figure, grid = new_figure("Precision and recall", height=4.5, width=NARROW)
    axes = grid[0, 0]
    label = plain(curve.name, 24) + (
        "" if average is None else f", average precision {average:.2f}"
    )
    recall, precision = 100 * curve.recall, 100 * curve.precision
    axes.plot(recall, precision, color=NAVY, drawstyle="steps-post", label=label)
    axes.axhline(100 * curve.prevalence, color=NAVY, ls=":", lw=1)
    ring: dict[str, Any] = {"marker": "o", "ls": "", "mfc": "white", "mew": 2}
    at, right = (100 * value for value in curve.chosen)
    axes.plot([at], [right], color=NAVY, ms=9, zorder=4, **ring)
    axes.plot([], [], color=GREY, ls=":", lw=1, label="share of the class: precision of a guess")
    axes.plot([], [], color=GREY, label="threshold in use", **ring)
    axes.set_xlabel("recall: share of the class that is found (%)")
    axes.set_ylabel("precision: share that is right (%)")
    axes.set_xlim(0, 102)
    axes.set_ylim(0, 104)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=1)
    return figure


@in_style
def predicted_true(residuals: Residuals) -> Figure:
    """Predicted against true values, with the diagonal on which both agree."""
    x, y = residuals.true, residuals.predicted
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
    squares, spread = ((y - x) ** 2).sum(), ((x - x.mean()) ** 2).sum()
    r2 = f"R² {1 - squares / spread:.3f}, " if spread > 0 else ""
    count = f"{len(x):,} node{'s' * (len(x) != 1)}"
    fit = f"{r2}RMSE {np.sqrt(squares / len(x)):.3g}, {count}"
    axes.set_title(fit, loc="left", color=GREY)
    axes.set_xlabel(f"true {plain(residuals.name, 40)}")
    axes.set_ylabel(f"predicted {plain(residuals.name, 40)}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    return figure


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
    degree, residual = np.asarray(degrees), np.asarray(residuals, dtype=float)
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
def residuals_by_degree(residuals: Residuals) -> Figure:
    """The spread of the residuals against the number of neighbours."""
    rows = bin_by_degree(residuals.degree, residuals.predicted - residuals.true)
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
    axes.set_ylabel(f"predicted − true {plain(residuals.name, 30)}")
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
    scale = metric_of(metric).scale
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
    axes.set_xlabel(f"test {metric_of(metric).axis}" + "\nmean and 95 % interval" * spread)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.grid(False, axis="y")
    return figure
