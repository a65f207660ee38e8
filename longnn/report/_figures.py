"""All figures, and which of them a run has, each with the words that go with it.

A figure that a run cannot have (a model without filter, one repeat, a missing file) is left
out. Captions say how to read it; the alternative text says what it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from longnn.records import Run
from longnn.report._filter_figures import (
    MANY,
    amplitude_waveform,
    basis_path,
    compare_filters,
    density,
    filter_response,
)
from longnn.report._responses import align_signs
from longnn.report._score_figures import (
    compare_scores,
    confusion,
    score_distribution,
    training_curves,
)
from longnn.report._style import to_png, to_svg, write_atomically
from longnn.report._words import learned_text, metric_name, model_name, result_text, splits_text

__all__ = [
    "Plate",
    "amplitude_waveform",
    "basis_path",
    "compare_filters",
    "compare_scores",
    "comparison_plates",
    "confusion",
    "density",
    "filter_response",
    "plates",
    "save_figures",
    "save_plates",
    "score_distribution",
    "training_curves",
]


@dataclass(frozen=True)
class Plate:
    """A figure with the words around it."""

    name: str
    draw: Callable[[], Figure]
    title: str
    caption: str
    alt: str


def plates(run: Run) -> list[Plate]:
    """The figures this run can have, in reading order."""
    found = []
    if run.filters:
        found.append(_filter_plate(run))
    if run.history is not None and run.history.has("a", "b"):
        found.append(_basis_plate(run))
    if run.path is not None:
        found.append(_amplitude_plate(run))
    if len(run.repeats) > 1:
        found.append(_scores_plate(run))
    if run.history is not None:
        found.append(_training_plate(run))
    if run.repeats[0].confusion is not None:
        found.append(_confusion_plate(run))
    return found


def save_figures(run: Run, folder: str | Path) -> list[Path]:
    """Write every figure of a run as PNG and SVG, each file whole or not at all."""
    return save_plates(plates(run), Path(folder))


def save_plates(drawn: Sequence[Plate], folder: Path) -> list[Path]:
    """Write plates as `NAME.svg` and `NAME.png`, in this order."""
    files = []
    for plate in drawn:
        figure = plate.draw()
        files.append(write_atomically(folder / f"{plate.name}.svg", to_svg(figure)))
        files.append(write_atomically(folder / f"{plate.name}.png", to_png(figure)))
    return files


def _filter_plate(run: Run) -> Plate:
    first = run.filters[0]
    lines = (
        "The bands hold half and 90 % of the channels, the bold line is their mean."
        if first.channels > MANY
        else "Each thin line is a channel, the bold line their mean."
        if first.channels > 1
        else "The line is the response."
    )
    turned = align_signs(first.response)[1]
    sign = (
        f" {turned} of {first.channels} channels are drawn with their sign turned, so that all "
        "agree; the sign of a whole channel has no meaning."
        if turned
        else ""
    )
    others = " Dashed: the means of the other repeats." if len(run.repeats) > 1 else ""
    back = (
        " The grey area says how many of the graph's eigenvalues lie where; where there are "
        "none, the response has no effect."
        if run.data.density is not None
        else ""
    )
    return Plate(
        "filter_response",
        lambda: filter_response(run),
        "The learned filter",
        "How strongly each frequency of a signal on the graph is passed on. Left, at 0, are "
        "signals that neighbours share; right, at 2, signals that alternate between neighbours. "
        f"{lines}{others}{back}{sign}",
        "Learned response against Laplacian eigenvalue. " + " ".join(learned_text(run)),
    )


def _basis_plate(run: Run) -> Plate:
    learned = run.filters[0].learned if run.filters else {}
    start = run.filters[0].start if run.filters else {}
    ends = ""
    if {"a", "b"} <= learned.keys() and {"a", "b"} <= start.keys():
        ends = (
            f" It moved from ({start['a']:z.2f}, {start['b']:z.2f}) to "
            f"({learned['a']:z.2f}, {learned['b']:z.2f})."
        )
    return Plate(
        "basis_path",
        lambda: basis_path(run),
        "The path of the basis",
        "The model picks its polynomial basis by two numbers, a and b. Left: their path from the "
        "start (circle) to the epoch that was kept (square); crosses mark bases with a name. "
        "Right: the weight function that belongs to them, which says where on the spectrum the "
        "basis looks closely.",
        f"Path of the basis parameters a and b over training, and their weight functions.{ends}",
    )


def _amplitude_plate(run: Run) -> Plate:
    return Plate(
        "amplitude_waveform",
        lambda: amplitude_waveform(run),
        "Amplitude and waveform",
        "Left: how strong the filter is. Right: how far its shape, whatever the strength, still "
        "was from its shape at the last epoch. A curve on the left that keeps growing after the "
        "one on the right has come down to zero is over-passing: the filter only gets louder.",
        "Norm of the filter against epoch, and distance of its waveform from the last one.",
    )


def _scores_plate(run: Run) -> Plate:
    what, score = result_text(run)
    return Plate(
        "score_distribution",
        lambda: score_distribution(run),
        "The scores of all repeats",
        "Each mark is one repeat. The orange bar is the mean with its 95 % confidence interval, "
        "which is about the mean and not about single runs.",
        f"Validation and test scores of {splits_text(run)}; {what} {score}.",
    )


def _training_plate(run: Run) -> Plate:
    first = run.repeats[0]
    others = " Faint: the other repeats." if len(run.repeats) > 1 else ""
    return Plate(
        "training_curves",
        lambda: training_curves(run),
        "Training",
        f"Loss and validation {metric_name(run.metric)} of the first repeat at each epoch.{others} "
        "The weights of the best epoch (dotted) were kept. Validation loss that rises while "
        "training loss falls is overfitting.",
        f"Loss and validation {metric_name(run.metric)} against epoch; best epoch "
        f"{first.best_epoch} of {first.epochs}.",
    )


def _confusion_plate(run: Run) -> Plate:
    counts = run.repeats[0].confusion
    assert counts is not None
    right = counts.trace() / max(counts.sum(), 1)
    return Plate(
        "confusion",
        lambda: confusion(run),
        "Confusion",
        "Rows are the true classes, columns the predicted ones; what lies off the diagonal is "
        "wrong. Colours give the share of each row, so that small classes are as visible as "
        "large ones.",
        f"Confusion matrix of the first repeat over {len(counts)} classes; {right:.0%} of its "
        "test nodes lie on the diagonal.",
    )


def comparison_plates(runs: Sequence[Run]) -> list[Plate]:
    """The figures of a comparison."""
    found = [
        Plate(
            "compare_scores",
            lambda: compare_scores(runs),
            "Test scores",
            "Each mark is one repeat; the orange bar is the mean with its 95 % confidence "
            "interval.",
            "Test scores: "
            + "; ".join(f"{run.name}: {' '.join(result_text(run))}" for run in runs)
            + ".",
        )
    ]
    drawn = [run for run in runs if run.filters]
    if drawn:
        names = ", ".join(f"{run.name} ({model_name(run)})" for run in drawn)
        found.append(
            Plate(
                "compare_filters",
                lambda: compare_filters(drawn),
                "Learned filters",
                "The mean response over channels of each run's first repeat, from signals that "
                "neighbours share (0) to signals that alternate between neighbours (2).",
                f"Learned responses against Laplacian eigenvalue of {names}.",
            )
        )
    return found
