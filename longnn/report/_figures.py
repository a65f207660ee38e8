"""The figures that a run has, each with its title, caption and alternative text.

A figure that a run cannot have (no filter, only one repeat, a missing file) is left out. The
caption says how to read the figure; the alternative text says what it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from longnn.records import RunRecord
from longnn.report._filter_figures import (
    MANY,
    amplitude_waveform,
    basis_path,
    compare_filters,
    density,
    filter_response,
    share_graph,
)
from longnn.report._ladder import filter_ladder
from longnn.report._members import gain_text, member_filters
from longnn.report._numbers import metric_name
from longnn.report._plate import Plate
from longnn.report._responses import align_signs
from longnn.report._score_figures import (
    compare_scores,
    confusion,
    score_distribution,
    training_curves,
)
from longnn.report._stack import is_stack, ladder_order
from longnn.report._style import to_png, to_svg, write_atomically
from longnn.report._trust_plates import trust_plates
from longnn.report._words import (
    is_cover,
    learned_text,
    model_name,
    outliers_text,
    result_text,
    splits_text,
    untested,
)

__all__ = [
    "Figures",
    "Plate",
    "amplitude_waveform",
    "basis_path",
    "compare_filters",
    "compare_scores",
    "comparison_plates",
    "confusion",
    "density",
    "figures_of",
    "filter_ladder",
    "filter_response",
    "member_filters",
    "plates",
    "save_figures",
    "save_plates",
    "score_distribution",
    "training_curves",
]


class Figures:
    """The figures of one run, drawn when asked for.

    Each method returns a matplotlib figure, or raises ValueError with the reason why the run has
    no such figure.

    Args:
        run: its record.
    """

    def __init__(self, run: RunRecord) -> None:
        self.run = run

    def filter(self) -> Figure:
        """The learned filters over the spectral density of the graph; of many blocks a ladder."""
        return (filter_ladder if is_stack(self.run) else filter_response)(self.run)

    def members(self) -> Figure:
        """The filters of the members of an ensemble, over each other."""
        return member_filters(self.run)

    def training(self) -> Figure:
        """Losses and validation score against the epoch."""
        return training_curves(self.run)

    def basis(self) -> Figure:
        """The path of a and b over training, and the weight functions at its ends."""
        return basis_path(self.run)

    def amplitude(self) -> Figure:
        """The norm of the filter over training, and the change of its waveform."""
        return amplitude_waveform(self.run)

    def confusion(self) -> Figure:
        """True against predicted classes of the first repeat."""
        return confusion(self.run)

    def scores(self) -> Figure:
        """The scores of all repeats, with their mean and its 95 % interval."""
        return score_distribution(self.run)

    def density(self) -> Figure:
        """The spectral density of the graph."""
        if self.run.data.density is None:
            raise ValueError("Expected the spectral density of the graph in the record (got none).")
        outliers = self.run.data.outliers
        return density(*self.run.data.density, outliers=outliers, cover=is_cover(self.run))

    def save(self, folder: str | Path) -> list[Path]:
        """Write all figures of the report into a folder, as PNG and SVG."""
        return save_figures(self.run, folder)

    def __repr__(self) -> str:
        return f"Figures({self.run.name}: {', '.join(plate.name for plate in plates(self.run))})"


def figures_of(run: RunRecord) -> Figures:
    """The figures of a run: ``figures_of(run).filter()`` draws one of them."""
    return Figures(run)


def plates(run: RunRecord) -> list[Plate]:
    """The figures that this run has, in reading order."""
    found = []
    if run.filters:
        found.append(_filter_plate(run))
    if any(m.response is not None for m in run.members):
        found.append(_members_plate(run))
    if run.history is not None and run.history.has("a", "b"):
        found.append(_basis_plate(run))
    if run.path is not None:
        found.append(_amplitude_plate(run))
    if len(run.repeats) > 1:
        found.append(_scores_plate(run))
    if run.history is not None:
        found.append(_training_plate(run))
    counts = run.repeats[0].confusion
    if counts is not None and counts.any():
        found.append(_confusion_plate(run))
    return [*found, *trust_plates(run)]


def save_figures(run: RunRecord, folder: str | Path) -> list[Path]:
    """Write every figure of a run as PNG and SVG; returns the files."""
    return save_plates(plates(run), Path(folder))


def save_plates(drawn: Sequence[Plate], folder: Path) -> list[Path]:
    """Write plates as ``NAME.svg`` and ``NAME.png``; returns the files in this order."""
    files = []
    for plate in drawn:
        figure = plate.draw()
        files.append(write_atomically(folder / f"{plate.name}.svg", to_svg(figure)))
        files.append(write_atomically(folder / f"{plate.name}.png", to_png(figure)))
    return files


def _ladder_plate(run: RunRecord) -> Plate:
    return Plate(
        "filter_response",
        lambda: filter_ladder(run),
        f"The learned filters, {ladder_order(run)}",
        "What each filter of the model keeps: how strongly its filter passes each frequency of the "
        "signal that reaches it. On the left, at 0, are signals that neighbours share; on the "
        "right, at 2, signals that alternate between neighbours. The bands contain half and 90 % "
        "of the channels, each with the sign that agrees with the others; the bold line is the "
        f"mean. All panels have one scale.{_spectrum_text(run)}",
        "Learned responses against Laplacian eigenvalue. " + " ".join(learned_text(run)),
    )


def _filter_plate(run: RunRecord) -> Plate:
    if is_stack(run):
        return _ladder_plate(run)
    first = run.filters[0]
    lines = (
        "The bands contain half and 90 % of the channels; the bold line is the mean of all."
        if first.channels > MANY
        else "Each thin line is one channel; the bold line is their mean."
        if first.channels > 1
        else "The line is the response."
    )
    turned = align_signs(first.response)[1]
    sign = (
        f" {turned} of {first.channels} channels are drawn with the opposite sign, so that all "
        "agree; the sign of a whole channel has no meaning."
        if turned
        else ""
    )
    others = " Dashed lines are the means of the other repeats." if len(run.repeats) > 1 else ""
    back = _spectrum_text(run)
    if back:
        back += " Where the graph has no eigenvalue, the response has no effect."
    return Plate(
        "filter_response",
        lambda: filter_response(run),
        "The learned filter",
        f"{_spectrum_words(run)} {lines}{others}{back}{sign}",
        "Learned response against Laplacian eigenvalue. " + " ".join(learned_text(run)),
    )


def _spectrum_words(run: RunRecord) -> str:
    """What stands along the axis of a response."""
    if not is_cover(run):
        return (
            "How strongly the filter passes each frequency of a signal on the graph. On the left, "
            "at 0, are signals that neighbours share; on the right, at 2, signals that alternate "
            "between neighbours."
        )
    return (
        "How strongly the filter passes each signal on the double cover of the directed graph, in "
        "which every node stands twice: as a source and as a target of arcs. On the left, at 0, "
        "sources share their signal with their targets; on the right, at 2, they have the opposite "
        "one. What both sides have in common joins nodes with common targets or sources; what they "
        "differ by goes along the arcs."
    )


def _members_plate(run: RunRecord) -> Plate:
    voting = sum(m.weight > 0 for m in run.members)
    return Plate(
        "members",
        lambda: member_filters(run),
        "The filters of the members",
        "What each model of the ensemble learned, its first filter as the mean over its channels, "
        "with the largest magnitude 1. The larger the weight, the thicker the line; models without "
        "a vote are thin and grey. Where the curves agree, all found the same; where they differ, "
        f"they complement each other.{_spectrum_text(run)}",
        f"Responses of {len(run.members)} models against Laplacian eigenvalue, {voting} of them "
        "with a vote. " + gain_text(run),
    )


def _spectrum_text(run: RunRecord) -> str:
    """What is drawn of the graph's spectrum behind a response."""
    few = run.data.outliers
    text = ""
    if run.data.density is not None:
        typed = any(found.edge_type for found in run.filters)
        whose = "the graph of all edges, of whatever type," if typed else "the graph"
        text = f" The grey area shows where the eigenvalues of {whose} are."
    if few is None or len(few) == 0:
        return text
    marks = "Needles mark" if len(few) > 1 else "A needle marks"
    return (
        f"{text} {marks} {outliers_text(few)}: too few for the grey area to show, but they are "
        "what tells the parts of the graph from each other, so the response there matters."
    )


def _first_of(run: RunRecord) -> str:
    """Which filter the history follows, where there is a stack of them."""
    what = "blocks" if len({found.edge_type for found in run.filters}) == 1 else "filters"
    return f" This is the first of {len(run.filters)} {what}." if is_stack(run) else ""


def _basis_plate(run: RunRecord) -> Plate:
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
        "Two learned numbers, a and b, define the polynomial basis. Above: their path from the "
        "start (circle) to the epoch that was kept (square); crosses mark bases that have a name. "
        "Below: the weight function of the basis at these two points. The basis resolves the "
        f"spectrum best where the weight is large.{_first_of(run)}",
        f"Path of the basis parameters a and b over training, and their weight functions.{ends}",
    )


def _amplitude_plate(run: RunRecord) -> Plate:
    return Plate(
        "amplitude_waveform",
        lambda: amplitude_waveform(run),
        "Amplitude and waveform",
        "Above: the amplitude, which is the norm of the filter. Below: the waveform, which is the "
        "shape of the filter whatever its amplitude, as the distance from the shape at the last "
        "epoch. If the upper curve still grows after the lower curve has reached zero, the model "
        f"is over-passing: its filter gets stronger without changing shape.{_first_of(run)}",
        "Norm of the filter against epoch, and distance of its waveform from the last one.",
    )


def _scores_plate(run: RunRecord) -> Plate:
    what, score = result_text(run)
    return Plate(
        "score_distribution",
        lambda: score_distribution(run),
        "The scores of all repeats",
        "Each mark is one repeat. The orange bar is the mean with its 95 % confidence interval, "
        "which describes the mean and not single repeats.",
        f"Validation and test scores of {splits_text(run)}; {what} {score}.",
    )


def _training_plate(run: RunRecord) -> Plate:
    first = run.repeats[0]
    others = " Faint lines are the other repeats." if len(run.repeats) > 1 else ""
    return Plate(
        "training_curves",
        lambda: training_curves(run),
        "Training",
        f"Loss and validation {metric_name(run.metric)} of the first repeat at each epoch.{others} "
        "The weights of the best epoch (dotted) were kept. A validation loss that rises while the "
        "training loss falls means overfitting.",
        f"Loss and validation {metric_name(run.metric)} against epoch; best epoch "
        f"{first.best_epoch} of {first.epochs}.",
    )


def _confusion_plate(run: RunRecord) -> Plate:
    counts = run.repeats[0].confusion
    assert counts is not None
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


def comparison_plates(runs: Sequence[RunRecord]) -> list[Plate]:
    """The figures of a comparison."""
    found = [_compared_scores_plate(runs)]
    if any(run.filters for run in runs):
        found.append(_compared_filters_plate(runs))
    return found


def _compared_scores_plate(runs: Sequence[RunRecord]) -> Plate:
    bar = " The orange bar below them is their mean with its 95 % confidence interval."
    if all(len(run.repeats) == 1 for run in runs):
        bar = " No run has more than one repeat, so there is no interval."
    elif any(len(run.repeats) == 1 for run in runs):
        bar += " A run with one repeat has none."
    scores = "; ".join(f"{run.name}: {' '.join(result_text(run))}" for run in runs)
    return Plate(
        "compare_scores",
        lambda: compare_scores(runs),
        "Test scores",
        f"One row per run. Each mark is the score of one repeat on its test nodes.{bar}",
        f"Test scores: {scores}.",
    )


def _compared_filters_plate(runs: Sequence[RunRecord]) -> Plate:
    drawn = [run for run in runs if run.filters]
    absent = ", ".join(run.name for run in runs if not run.filters)
    notes = [
        " Of models with several layers, the first layer is shown."
        if any(len(run.filters) > 1 for run in drawn)
        else "",
        _spectrum_text(drawn[0]) if share_graph(drawn) else "",
        f" Without a filter: {absent}." if absent else "",
    ]
    names = ", ".join(f"{run.name} ({model_name(run)})" for run in drawn)
    return Plate(
        "compare_filters",
        lambda: compare_filters(runs),
        "Learned filters",
        "The response of the first repeat of each run, mean over its channels, from signals that "
        f"neighbours share (0) to signals that alternate between neighbours (2).{''.join(notes)}",
        f"Learned responses against Laplacian eigenvalue of {names}.",
    )
