"""Figures of how well a run works: curves over training, scores of repeats, confusion.

Each function takes a run and returns a matplotlib figure; none writes a file.
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

from longnn.metrics import metric_of
from longnn.records import RunRecord, Summary
from longnn.report._numbers import metric_name
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
    scores.set_title(f"Validation {metric_name(run.metric)}", loc="left")
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
    parts = {"val": (SKY, "D"), "test": (NAVY, "o")}
    for row, (part, (colour, marker)) in enumerate(parts.items()):
        values = [repeat.scores.get(part, {}).get(run.metric, np.nan) for repeat in run.repeats]
        _draw_scores(
            axes, row, values, run.score(part), metric_of(run.metric).scale, colour, marker
        )
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
    _write_counts(axes, counts, share, empty)
    for row in empty:
        axes.axhspan(row - 0.5, row + 0.5, color=PALE, lw=0)
        axes.text(
            (size - 1) / 2, row, "no test node", ha="center", va="center", color=GREY,
            fontsize=9 if size <= 20 else 6,
        )  # fmt: skip
    figure.colorbar(image, ax=axes, shrink=0.8).set_label("share of the true class")
    return figure


def _write_counts(axes: Axes, counts: np.ndarray, share: np.ndarray, empty: set[int]) -> None:
    """The counts in their cells, where the cells are large enough."""
    if len(counts) > NUMBERED:
        return
    for (row, column), count in np.ndenumerate(counts):
        if row not in empty:
            colour = "white" if share[row, column] > 0.5 else "black"
            axes.text(
                column, row, f"{count:.0f}", ha="center", va="center", color=colour, fontsize=9
            )


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
        own = [run for run in runs if run.metric == metric]
        for row, run in enumerate(own):
            values = [repeat.scores.get("test", {}).get(metric, np.nan) for repeat in run.repeats]
            summary = run.score("test")
            _draw_scores(axes, row, values, summary, metric_of(metric).scale, shades[id(run)])
        axes.set_yticks(range(len(own)), [plain(run.name, 24) for run in own])
        axes.set_ylim(len(own) - 0.35, -0.45)
        axes.set_ylabel("run")
        axes.set_xlabel(metric_of(metric).axis)
        axes.grid(False, axis="y")
    _explain_scores(figure)
    return figure
