"""The figures that a run has, each with its title, caption and alternative text.

A figure that a run cannot have (no filter, only one repeat, a missing file) is left out. The
caption says how to read the figure; the alternative text says what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from longnn.records import FrequencyShift, RunRecord, Summary
from longnn.report import _filter_figures as filters
from longnn.report import _score_figures as scores
from longnn.report._checks import bare_title, graph_text
from longnn.report._html import Plate, save_plates
from longnn.report._numbers import metric_name, score_text
from longnn.report._responses import align_signs
from longnn.report._words import (
    class_names,
    gain_text,
    is_cover,
    is_stack,
    ladder_order,
    learned_text,
    model_name,
    outliers_text,
    result_text,
    splits_text,
    untested,
)

#: Classes whose shift a sentence names.
SHIFTED = 3


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
        return (filters.filter_ladder if is_stack(self.run) else filters.filter_response)(self.run)

    def members(self) -> Figure:
        """The filters of the members of an ensemble, over each other."""
        return filters.member_filters(self.run)

    def training(self) -> Figure:
        """Losses and validation score against the epoch."""
        return scores.training_curves(self.run)

    def basis(self) -> Figure:
        """The path of a and b over training, and the weight functions at its ends."""
        return filters.basis_path(self.run)

    def amplitude(self) -> Figure:
        """The norm of the filter over training, and the change of its waveform."""
        return filters.amplitude_waveform(self.run)

    def confusion(self) -> Figure:
        """True against predicted classes of the first repeat."""
        return scores.confusion(self.run)

    def scores(self) -> Figure:
        """The scores of all repeats, with their mean and its 95 % interval."""
        return scores.score_distribution(self.run)

    def density(self) -> Figure:
        """The spectral density of the graph."""
        if self.run.data.density is None:
            raise ValueError("Expected the spectral density of the graph in the record (got none).")
        outliers = self.run.data.outliers
        return filters.density(*self.run.data.density, outliers=outliers, cover=is_cover(self.run))

    def save(self, folder: str | Path) -> list[Path]:
        """Write all figures of the report into a folder, as PNG and SVG."""
        return save_plates(plates(self.run), Path(folder))

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
    if run.baselines and run.score() is not None:
        found.append(_baselines_plate(run))
    first = run.repeats[0]
    if first.curve is not None:
        found.append(_curve_plate(run))
    if first.residuals is not None:
        found += _residual_plates(run)
    if first.calibration is not None:
        found.append(_reliability_plate(run))
    return found


def _ladder_plate(run: RunRecord) -> Plate:
    return Plate(
        "filter_response",
        lambda: filters.filter_ladder(run),
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
        if first.channels > filters.MANY
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
        lambda: filters.filter_response(run),
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
        lambda: filters.member_filters(run),
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
        lambda: filters.basis_path(run),
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
        lambda: filters.amplitude_waveform(run),
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
        lambda: scores.score_distribution(run),
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
        lambda: scores.training_curves(run),
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
        lambda: scores.confusion(run),
        "Confusion",
        "Rows are true classes, columns are predicted classes; test nodes off the diagonal are "
        "predicted wrongly. Colours show shares of each row, so that small classes are as visible "
        f"as large ones.{empty}",
        f"Confusion matrix of the first repeat over {len(counts)} classes; {right:.0%} of its "
        "test nodes lie on the diagonal.",
    )


def _baselines_plate(run: RunRecord) -> Plate:
    rows = [_score_row(model_name(run), run.score())]
    for baseline in run.baselines:
        if run.metric in baseline.summary:
            rows.append(_score_row(bare_title(baseline), baseline.summary[run.metric]))
    return Plate(
        "baselines",
        lambda: scores.what_the_graph_adds(rows, metric=run.metric),
        "With and without the graph",
        "Test scores of the model and of models that do not use the graph, on the same splits.",
        graph_text(run),
    )


def _score_row(name: str, score: Summary | None) -> tuple[str, float, float, float]:
    assert score is not None
    low, high = (score.low, score.high) if score.count > 1 else (math.nan, math.nan)
    return name, score.mean, low, high


def _curve_plate(run: RunRecord) -> Plate:
    curve = run.repeats[0].curve
    assert curve is not None
    average = run.repeats[0].scores.get("test", {}).get("average_precision")
    return Plate(
        "precision_recall",
        lambda: scores.precision_recall(curve, average),
        "Precision and recall",
        "Test nodes of the first repeat. Further to the right, more nodes of the class are found; "
        "the lower the curve there, the more others are taken for them. The ring is the threshold "
        "in use, from which on a node is predicted to be of the class.",
        f"At the threshold {curve.threshold:.2f}, {score_text(curve.chosen[0])} of the nodes of "
        f"class {curve.name!r} are found, and {score_text(curve.chosen[1])} of those predicted "
        "are right.",
    )


def _residual_plates(run: RunRecord) -> list[Plate]:
    residuals = run.repeats[0].residuals
    assert residuals is not None
    return [
        Plate(
            "predicted_true",
            lambda: scores.predicted_true(residuals),
            "Predicted and true values",
            "Test nodes of the first repeat; on the line the prediction is exact.",
            f"Predicted against true {residuals.name} of {len(residuals.true)} test nodes.",
        ),
        Plate(
            "residuals_by_degree",
            lambda: scores.residuals_by_degree(residuals),
            "Errors by number of neighbours",
            "Errors of nodes with few neighbours, on the left, and with many, on the right. A "
            "filter has less to work with where neighbours are few.",
            "Quantiles of the errors of test nodes, grouped by their number of neighbours.",
        ),
    ]


def _reliability_plate(run: RunRecord) -> Plate:
    calibration = run.repeats[0].calibration
    assert calibration is not None
    before, after = calibration.before, calibration.after
    shift = run.repeats[0].shift
    calibrated = calibration.temperature != 1 or shift is not None
    text = f"Expected calibration error {100 * before.error:.1f} %"
    if calibrated:
        text += f" before and {100 * after.error:.1f} % after calibration"
    return Plate(
        "reliability",
        lambda: scores.reliability(before, after if calibrated else None),
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
    each = "; ".join(f"{run.name}: {' '.join(result_text(run))}" for run in runs)
    return Plate(
        "compare_scores",
        lambda: scores.compare_scores(runs),
        "Test scores",
        f"One row per run. Each mark is the score of one repeat on its test nodes.{bar}",
        f"Test scores: {each}.",
    )


def _compared_filters_plate(runs: Sequence[RunRecord]) -> Plate:
    drawn = [run for run in runs if run.filters]
    absent = ", ".join(run.name for run in runs if not run.filters)
    notes = [
        " Of models with several layers, the first layer is shown."
        if any(len(run.filters) > 1 for run in drawn)
        else "",
        _spectrum_text(drawn[0]) if filters.share_graph(drawn) else "",
        f" Without a filter: {absent}." if absent else "",
    ]
    names = ", ".join(f"{run.name} ({model_name(run)})" for run in drawn)
    return Plate(
        "compare_filters",
        lambda: filters.compare_filters(runs),
        "Learned filters",
        "The response of the first repeat of each run, mean over its channels, from signals that "
        f"neighbours share (0) to signals that alternate between neighbours (2).{''.join(notes)}",
        f"Learned responses against Laplacian eigenvalue of {names}.",
    )
