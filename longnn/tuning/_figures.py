"""The figures of a search, from its record alone, in the style of all figures."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from longnn.metrics import metric_of
from longnn.registry import find_model
from longnn.report import (
    GREY,
    NARROW,
    NAVY,
    ORANGE,
    SKY,
    Plate,
    in_style,
    metric_name,
    new_figure,
    plain,
    score_text,
)
from longnn.tuning._record import SearchRecord

#: The most entries in the figure of importance.
SHOWN = 16


def plates(record: SearchRecord) -> list[Plate]:
    """The figures of a search, in reading order."""
    best = record.best
    found = [
        Plate(
            "tuning_history",
            lambda: draw_history(record),
            "The search",
            "Each mark is one trial. Dots were trained to the end. Crosses were stopped early, "
            "because the better half had higher scores at the same epoch. The line shows the best "
            "score until then.",
            f"Validation scores of {record.finished} trials in their order; the best is trial "
            f"{best.number} with {score_text(best.value or 0.0, record.metric, digits=2)}.",
        )
    ]
    if record.importance:
        top = list(record.importance.items())[:3]
        first = ", ".join(f"{key} {value:.2f}" for key, value in top)
        found.append(
            Plate(
                "tuning_importance",
                lambda: draw_importance(record),
                "What mattered",
                "How much each setting decided whether a trial was among the best fifth "
                "(PED-ANOVA; the bars sum to one). A low bar means that the values that were tried "
                "made little difference, not that every value is good.",
                f"Importance of the searched settings, highest first: {first}.",
            )
        )
    return found


@in_style
def draw_history(record: SearchRecord) -> Figure:
    """The score of each trial in their order, and the best until then."""
    title = f"{find_model(record.model).title} on {record.dataset.name}: {record.finished} trials"
    figure, grid = new_figure(title, height=3.6, width=NARROW)
    axes = grid[0, 0]
    scale, unit = (100, " in %") if metric_of(record.metric).share else (1, "")
    known = [(t.state, t.number, scale * t.value) for t in record.trials if t.value is not None]
    for state, marker, colour, label in (
        ("pruned", "x", GREY, "stopped early"),
        ("complete", "o", SKY, "trained to the end"),
    ):
        points = [(number, value) for at, number, value in known if at == state]
        if points:
            x, y = zip(*points, strict=True)
            axes.scatter(x, y, marker=marker, c=colour, s=22, linewidths=1.2, label=label)
    best, steps = -math.inf, []
    for number, value in ((n, v) for state, n, v in known if state == "complete"):
        best = max(best, value)
        steps.append((number, best))
    axes.step(*zip(*steps, strict=True), where="post", color=NAVY, label="best until then")
    winner = record.best
    assert winner.value is not None, "the winner was trained to the end"
    top = scale * winner.value
    axes.scatter([winner.number], [top], marker="*", s=140, c=ORANGE, zorder=3, label="winner")
    start = [(n, v) for _, n, v in known if record.start is not None and n == record.start.number]
    if record.start is not None and start and record.start.number != winner.number:
        axes.scatter(*start[0], marker="D", s=36, c=NAVY, zorder=3, label=record.start.name)
    _focus(axes, [score for *_, score in known], top)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("trial")
    axes.set_ylabel(f"validation {metric_name(record.metric)}{unit}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
    return figure


def _focus(axes: Axes, values: list[float], best: float) -> None:
    """Cut off the few worst trials where they would flatten all others."""
    ordered = sorted(values)
    low = ordered[len(ordered) // 10]
    if best > low > ordered[0]:
        margin = 0.15 * (best - low)
        axes.set_ylim(max(ordered[0] - margin, low - 4 * (best - low)), best + margin)


@in_style
def draw_importance(record: SearchRecord) -> Figure:
    """Bars of importance, the highest first."""
    importance = list(record.importance.items())[:SHOWN]
    title = f"{find_model(record.model).title} on {record.dataset.name}: what mattered"
    figure, grid = new_figure(title, height=1.2 + 0.26 * len(importance), width=NARROW)
    axes = grid[0, 0]
    names = [plain(key) for key, _ in importance]
    axes.barh(names, [value for _, value in importance], color=NAVY, height=0.65)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0)
    axes.set_xlabel("importance")
    return figure
