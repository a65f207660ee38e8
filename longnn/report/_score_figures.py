"""Figures of how well a run works and whether to trust it: epochs, repeats, classes, errors.

As in ``_filter_figures``, each ``*_plate`` gives a figure with its texts, or raises
:class:`FigureError`; none writes a file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from longnn.metrics import metric_of
from longnn.records import (
    Bins,
    ErrorMap,
    FrequencyShift,
    PrecisionRecall,
    Residuals,
    RunRecord,
    Summary,
)
from longnn.report._answer import graph_text
from longnn.report._html import FigureError, Plate
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
from longnn.report._words import (
    class_names,
    model_name,
    result_text,
    score_text,
    splits_text,
    untested,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NUMBERED = 12  # most classes for which the cells of a confusion matrix show their counts
BINS = 8  # of degrees
#: Areas of marks on a map, in square points: of an error that one in twenty exceeds, and of none.
LARGE, SMALL = 70.0, 5.0
#: Classes whose shift a sentence names.
SHIFTED = 3


def training_plate(run: RunRecord) -> Plate:
    """Losses and validation score against the epoch."""
    if run.history is None:
        raise FigureError("Expected a history of the epochs, history.csv (got none).")
    first = run.repeats[0]
    others = " Faint lines are the other repeats." if len(run.repeats) > 1 else ""
    return Plate(
        "training_curves",
        lambda: training_curves(run),
        "Training",
        f"Loss and validation {metric_of(run.metric).name} of the first repeat at each epoch."
        f"{others} The weights of the best epoch (dotted) were kept. A validation loss that rises "
        "while the training loss falls means overfitting.",
        f"Loss and validation {metric_of(run.metric).name} against epoch; best epoch "
        f"{first.best_epoch} of {first.epochs}.",
    )


@in_style
def training_curves(run: RunRecord) -> Figure:
    """Training and validation loss, and the validation score, against the epoch."""
    from matplotlib.ticker import MaxNLocator

    assert run.history is not None
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


def scores_plate(run: RunRecord) -> Plate:
    """The scores of all repeats, with their mean and its 95 % interval."""
    if len(run.repeats) < 2:
        raise FigureError("Expected at least two repeats (got one).")
    what, score = result_text(run)
    return Plate(
        "score_distribution",
        lambda: score_distribution(run),
        "The scores of all repeats",
        "Each mark is one repeat. The orange bar is the mean with its 95 % confidence interval, "
        "which describes the mean and not single repeats.",
        f"Validation and test scores of {splits_text(run)}; {what} {score}.",
    )


@in_style
def score_distribution(run: RunRecord) -> Figure:
    """The scores of the repeats, with their mean and its 95 % interval."""
    figure, grid = new_figure(f"Scores of {len(run.repeats)} repeats", height=2.6, width=NARROW)
    axes = grid[0, 0]
    sets, scale = {"val": (SKY, "D"), "test": (NAVY, "o")}, metric_of(run.metric).scale
    for row, (name, (colour, marker)) in enumerate(sets.items()):
        values = [repeat.scores.get(name, {}).get(run.metric, np.nan) for repeat in run.repeats]
        _draw_scores(axes, row, values, run.score(name), scale, colour, marker)
    axes.set_yticks([0, 1], ["validation", "test"])
    axes.set_ylim(1.65, -0.45)
    axes.set_ylabel("scored nodes")
    axes.set_xlabel(metric_of(run.metric).axis)
    axes.grid(False, axis="y")
    _explain_scores(figure)
    return figure


def _explain_scores(figure: Figure) -> None:
    """A legend in neutral grey: the colours of the dots differ from row to row."""
    from matplotlib.lines import Line2D

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
    height = row + spread + 0.0 * scores
    axes.plot(scores, height, marker, color=colour, mec="white", ms=6, alpha=0.8)
    if summary is None or not np.isfinite(summary.mean):
        return
    mean = scale * summary.mean
    if summary.low < summary.high and np.isfinite(summary.low + summary.high):
        reach = [[mean - scale * summary.low], [scale * summary.high - mean]]
        axes.errorbar(
            [mean], [row + 0.36], xerr=np.maximum(reach, 0), fmt="|", color=ORANGE, ms=12, mew=2.5,
            elinewidth=2, capsize=4, label="mean and its 95 % interval",
        )  # fmt: skip


def compared_scores_plate(runs: Sequence[RunRecord]) -> Plate:
    """Test scores of several runs, one panel per metric and one row per run."""
    scores = [score for run in runs if (score := run.score()) is not None]
    spread = [score.low < score.high for score in scores]
    bar = " The orange bar below them is their mean with its 95 % interval." if any(spread) else ""
    bar += "" if all(spread) else " A run with one repeat may have no interval."
    each = "; ".join(f"{run.name}: {' '.join(result_text(run))}" for run in runs)
    return Plate(
        "compare_scores",
        lambda: compare_scores(runs),
        "Test scores",
        f"One row per run. Each mark is the score of one repeat on its test nodes.{bar}",
        f"Test scores: {each}.",
    )


@in_style
def compare_scores(runs: Sequence[RunRecord]) -> Figure:
    """Test scores of several runs, one panel per metric and one row per run."""
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


def confusion_plate(run: RunRecord) -> Plate:
    """True against predicted classes of the first repeat."""
    counts = run.repeats[0].confusion
    if counts is None or not counts.any():
        raise FigureError("Expected a confusion matrix in the first repeat (got none).")
    right = counts.trace() / max(counts.sum(), 1)
    empty = " Grey rows are classes without test nodes." if untested(counts) else ""
    return Plate(
        "confusion",
        lambda: confusion(run),
        "Confusion",
        "Rows are true classes, columns are predicted classes; test nodes off the diagonal are "
        "predicted wrongly. Colours show shares of each row, so that small classes are as visible "
        f"as large ones.{empty}",
        f"Confusion matrix of the first repeat over {len(counts)} classes; {right:.0%} of its "
        "test nodes lie on the diagonal.",
    )


@in_style
def confusion(run: RunRecord) -> Figure:
    """True against predicted classes of the test nodes of the first repeat.

    Rows of classes without test nodes are grey and say so.
    """
    from matplotlib.colors import LinearSegmentedColormap

    counts = run.repeats[0].confusion
    assert counts is not None
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
                cell: dict[str, Any] = {"ha": "center", "va": "center", "color": colour}
                axes.text(column, row, f"{count:.0f}", fontsize=9, **cell)
    for row in empty:
        axes.axhspan(row - 0.5, row + 0.5, color=PALE, lw=0)
        axes.text(
            (size - 1) / 2, row, "no test node", ha="center", va="center", color=GREY,
            fontsize=9 if size <= 20 else 6,
        )  # fmt: skip
    figure.colorbar(image, ax=axes, shrink=0.8).set_label("share of the true class")
    return figure


def reliability_plate(run: RunRecord) -> Plate:
    """How often predictions of a certain confidence are right, before and after calibration."""
    calibration = run.repeats[0].calibration
    if calibration is None:
        raise FigureError("Expected a calibration in the first repeat (got none).")
    before, after = calibration.before, calibration.after
    shift = run.repeats[0].shift
    calibrated = calibration.temperature != 1 or shift is not None
    text = f"Expected calibration error {100 * before.error:.1f} %"
    if calibrated:
        text += f" before and {100 * after.error:.1f} % after calibration"
    return Plate(
        "reliability",
        lambda: reliability(before, after if calibrated else None),
        "How sure it is, and how often it is right",
        "Test nodes of the first repeat, grouped by the probability of their predicted class. On "
        "the dotted line a model that is 80 % sure is right in 80 % of the cases; below it, the "
        "model is too sure. Large marks have many nodes. Calibration divides the class scores by a "
        f"temperature, here {calibration.temperature:.2f}, fitted on the validation nodes."
        + ("" if shift is None else _shift_text(run, shift)),
        f"{text}.",
    )


def _shift_text(run: RunRecord, shift: FrequencyShift) -> str:
    """What is added to the class scores, of the classes that are moved most."""
    names = class_names(run, len(shift.shift))
    order = [int(k) for k in np.argsort(-np.abs(shift.shift), kind="stable")][:SHIFTED]
    each = ", ".join(f"{shift.shift[k]:+z.2f} for {names[k]!r}" for k in order)
    more = len(names) - len(order)
    rest = f", less for the {more} others" if more > 1 else ", less for the other" if more else ""
    return (
        " It then adds a constant to the score of each class, since the validation nodes have "
        f"other class frequencies than the training nodes: {each}{rest}. A difference of 0.69 "
        "between two classes doubles the odds."
    )


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


def curve_plate(run: RunRecord) -> Plate:
    """Precision against recall of a class, with its share and the threshold in use."""
    curve = run.repeats[0].curve
    if curve is None:
        raise FigureError("Expected precision against recall in the first repeat (got none).")
    average = run.repeats[0].scores.get("test", {}).get("average_precision")
    return Plate(
        "precision_recall",
        lambda: precision_recall(curve, average),
        "Precision and recall",
        "Test nodes of the first repeat. Further to the right, more nodes of the class are found; "
        "the lower the curve there, the more others are taken for them. The ring is the threshold "
        "in use, from which on a node is predicted to be of the class.",
        f"At the threshold {curve.threshold:.2f}, {score_text(curve.chosen[0])} of the nodes of "
        f"class {curve.name!r} are found, and {score_text(curve.chosen[1])} of those predicted "
        "are right.",
    )


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


def map_plate(run: RunRecord) -> Plate:
    """Test nodes on a map, the larger the more wrong they are."""
    errors = run.repeats[0].error_map
    if errors is None:
        raise FigureError("Expected test nodes with coordinates (got none).")
    classes = run.data.task == "classification"
    signs = "A filled mark is predicted too high, a hollow one too low."
    if classes:
        signs = "A large mark is predicted wrongly, a small grey one rightly."
    size = "the surer it was" if classes else "the farther off"
    return Plate(
        "error_map",
        lambda: draw_map(errors, classes=classes),
        "Where errors are",
        f"Test nodes at their {errors.x_name} and {errors.y_name}. {signs} The larger a mark, "
        f"{size}. Where like marks lie together, something about the place is not in the columns.",
        f"A map of {len(errors.x)} test nodes with the sizes of their errors.",
    )


@in_style
def draw_map(errors: ErrorMap, *, classes: bool) -> Figure:
    """Test nodes at their places: filled and hollow marks, the area is the error."""
    figure, grid = new_figure("Where errors are", height=5.6, width=NARROW)
    axes, error = grid[0, 0], errors.error
    far = float(np.quantile(np.abs(error), 0.95)) or float(np.abs(error).max()) or 1.0
    above = "wrong" if classes else f"too high by {far:.3g}"
    kinds = [(error > 0, NAVY, NAVY, above), (error < 0, "none", ORANGE, f"too low by {far:.3g}")]
    if classes:
        kinds[1] = (error == 0, PALE, GREY, "right")
    for who, face, edge, name in kinds:
        area = np.minimum(np.abs(error[who]) / far, 2) * LARGE + SMALL
        look: dict[str, Any] = {"facecolor": face, "edgecolor": edge, "linewidth": 0.9}
        axes.scatter(errors.x[who], errors.y[who], s=area, alpha=0.75, **look)
        axes.scatter([], [], s=SMALL if name == "right" else LARGE + SMALL, label=name, **look)
    axes.set_aspect(errors.aspect, adjustable="datalim")
    axes.set_xlabel(plain(errors.x_name, 40))
    axes.set_ylabel(plain(errors.y_name, 40))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
    return figure


def predicted_plate(run: RunRecord) -> Plate:
    """Predicted against true values, with the diagonal on which both agree."""
    residuals = _residuals_of(run)
    return Plate(
        "predicted_true",
        lambda: predicted_true(residuals),
        "Predicted and true values",
        "Test nodes of the first repeat; on the line the prediction is exact.",
        f"Predicted against true {residuals.name} of {len(residuals.true)} test nodes.",
    )


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


def degree_plate(run: RunRecord) -> Plate:
    """The spread of the residuals against the number of neighbours."""
    residuals = _residuals_of(run)
    return Plate(
        "residuals_by_degree",
        lambda: residuals_by_degree(residuals),
        "Errors by number of neighbours",
        "Errors of nodes with few neighbours, on the left, and with many, on the right. Half of "
        "the nodes are within a box, 90 % within its whiskers; the bold line is the median. A "
        "filter has less to work with where neighbours are few.",
        "Quantiles of the errors of test nodes, grouped by their number of neighbours.",
    )


def _residuals_of(run: RunRecord) -> Residuals:
    residuals = run.repeats[0].residuals
    if residuals is None:
        raise FigureError("Expected predicted and true values in the first repeat (got none).")
    return residuals


@in_style
def residuals_by_degree(residuals: Residuals) -> Figure:
    """The spread of the residuals in bins of degrees: 0, 1, 2, 3-4, 5-8, ..., 33 and more."""
    degree, residual = residuals.degree, residuals.predicted - residuals.true
    bins = np.minimum(np.ceil(np.log2(np.maximum(degree, 0.5))) + 1, BINS - 1)
    inside = [bins == index for index in np.unique(bins)]
    figure, grid = new_figure("Errors by number of neighbours", height=4.0, width=NARROW)
    axes = grid[0, 0]
    axes.boxplot(
        [residual[who] for who in inside], whis=(5, 95), showfliers=False, patch_artist=True,
        boxprops={"facecolor": SKY, "edgecolor": NAVY}, medianprops={"color": "black", "lw": 2.4},
    )  # fmt: skip
    axes.axhline(0, color=GREY, lw=1, ls="--")
    ends = [(f"{degree[who].min():.0f}", f"{degree[who].max():.0f}") for who in inside]
    names = [low if low == high else f"{low}–{high}" for low, high in ends]
    counted = [f"{name}\n({who.sum():,})" for name, who in zip(names, inside, strict=True)]
    axes.set_xticks(range(1, len(inside) + 1), counted, fontsize=8)
    axes.set_xlabel("neighbours of a node (and how many nodes have so many)")
    axes.set_ylabel(f"predicted − true {plain(residuals.name, 30)}")
    axes.grid(False, axis="x")
    return figure


def baselines_plate(run: RunRecord) -> Plate:
    """Scores of the model and of baselines without the graph, with their 95 % intervals."""
    ours = run.score()
    rows = [
        (baseline.title, baseline.summary[run.metric])
        for baseline in run.baselines
        if run.metric in baseline.summary
    ]
    if ours is None or not rows:
        raise FigureError("Expected the scores of the model and of a baseline (got none).")
    rows.insert(0, (model_name(run), ours))
    return Plate(
        "baselines",
        lambda: what_the_graph_adds(rows, run.metric),
        "With and without the graph",
        "Test scores of the model and of what it is compared with, on the same splits.",
        graph_text(run),
    )


@in_style
def what_the_graph_adds(rows: Sequence[tuple[str, Summary]], metric: str) -> Figure:
    """The model first, then the baselines; an interval where there are several repeats."""
    from matplotlib.ticker import MaxNLocator

    scale = metric_of(metric).scale
    height = 1.5 + 0.42 * len(rows)
    figure, grid = new_figure("What the graph adds", height=height, width=NARROW)
    axes = grid[0, 0]
    axes.axvline(scale * rows[0][1].mean, color=PALE, lw=3, zorder=0)
    spread = False
    for row, (_, score) in enumerate(rows):
        mean, low, high = (scale * value for value in (score.mean, score.low, score.high))
        colour, marker, face = (NAVY, "o", NAVY) if row == 0 else (GREY, "D", "white")
        reach = np.nan_to_num([[mean - low], [high - mean]]).clip(min=0)
        spread |= math.isfinite(low + high) and low < high
        axes.errorbar(
            [mean], [row], xerr=reach, fmt=marker, color=colour, mfc=face, mew=1.6, ms=6,
            elinewidth=1.8, capsize=5 if reach.any() else 0,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), ["\n".join(wrap(plain(name), 24)) for name, _ in rows])
    axes.get_yticklabels()[0].set_fontweight("bold")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_ylabel("model and baselines")
    axes.set_xlabel(f"test {metric_of(metric).axis}" + "\nmean and 95 % interval" * spread)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.grid(False, axis="y")
    return figure
