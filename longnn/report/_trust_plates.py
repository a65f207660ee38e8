"""The figures that say whether a run can be trusted, with their texts.

What is drawn comes from the record; a figure that a record has nothing for is left out.
"""

from __future__ import annotations

import math

import numpy as np

from longnn.records import Bins, FrequencyShift, PrecisionRecall, Residuals, RunRecord, Summary
from longnn.report._checks import graph_text
from longnn.report._numbers import score_text
from longnn.report._plate import Plate
from longnn.report._trust_figures import PrecisionRecall as Curve
from longnn.report._trust_figures import (
    bin_by_degree,
    precision_recall,
    predicted_true,
    reliability,
    residuals_by_degree,
    what_the_graph_adds,
)
from longnn.report._words import class_names, model_name

#: Classes whose shift a sentence names.
SHIFTED = 3


def trust_plates(run: RunRecord) -> list[Plate]:
    """The figures of this kind that a run has, in reading order."""
    found = []
    if run.baselines and run.score() is not None:
        found.append(_baselines_plate(run))
    first = run.repeats[0]
    if first.curve is not None:
        found.append(_curve_plate(run, first.curve))
    if first.residuals is not None:
        found += [_scatter_plate(first.residuals), _residuals_plate(first.residuals)]
    if first.calibration is not None:
        found.append(_reliability_plate(run))
    return found


def _baselines_plate(run: RunRecord) -> Plate:
    ours = run.score()
    assert ours is not None
    rows = [_row(model_name(run), ours)]
    for baseline in run.baselines:
        if run.metric in baseline.summary:
            rows.append(_row(_short(baseline.title), baseline.summary[run.metric]))
    return Plate(
        "baselines",
        lambda: what_the_graph_adds(rows, metric=run.metric),
        "With and without the graph",
        "Test scores of the model and of models that do not use the graph, on the same splits.",
        graph_text(run),
    )


def _short(title: str) -> str:
    return title.removesuffix(" without the graph")


def _row(name: str, score: Summary) -> tuple[str, float, float, float]:
    low, high = (score.low, score.high) if score.count > 1 else (math.nan, math.nan)
    return name, score.mean, low, high


def _curve_plate(run: RunRecord, curve: PrecisionRecall) -> Plate:
    average = run.repeats[0].scores.get("test", {}).get("average_precision")
    drawn = Curve(
        curve.name, curve.recall, curve.precision, curve.prevalence, average, curve.chosen
    )
    return Plate(
        "precision_recall",
        lambda: precision_recall([drawn]),
        "Precision and recall",
        "Test nodes of the first repeat. Further to the right, more nodes of the class are found; "
        "the lower the curve there, the more others are taken for them. The ring is the threshold "
        "in use, from which on a node is predicted to be of the class.",
        f"At the threshold {curve.threshold:.2f}, {score_text(curve.chosen[0])} of the nodes of "
        f"class {curve.name!r} are found, and {score_text(curve.chosen[1])} of those predicted "
        "are right.",
    )


def _scatter_plate(residuals: Residuals) -> Plate:
    return Plate(
        "predicted_true",
        lambda: predicted_true(residuals.predicted, residuals.true, label=residuals.name),
        "Predicted and true values",
        "Test nodes of the first repeat; on the line the prediction is exact.",
        f"Predicted against true {residuals.name} of {len(residuals.true)} test nodes.",
    )


def _residuals_plate(residuals: Residuals) -> Plate:
    bins = bin_by_degree(residuals.degree, residuals.predicted - residuals.true)
    return Plate(
        "residuals_by_degree",
        lambda: residuals_by_degree(bins, label=residuals.name),
        "Errors by number of neighbours",
        "Errors of nodes with few neighbours, on the left, and with many, on the right. A filter "
        "has less to work with where neighbours are few.",
        "Quantiles of the errors of test nodes, grouped by their number of neighbours.",
    )


def _reliability_plate(run: RunRecord) -> Plate:
    calibration = run.repeats[0].calibration
    assert calibration is not None
    before, after = (_table(bins) for bins in (calibration.before, calibration.after))
    shift = run.repeats[0].shift
    calibrated = calibration.temperature != 1 or shift is not None
    text = f"Expected calibration error {100 * calibration.before.error:.1f} %"
    if calibrated:
        text += f" before and {100 * calibration.after.error:.1f} % after calibration"
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


def _table(bins: Bins) -> np.ndarray:  # (bins, 3)
    return np.stack([bins.confidence, bins.accuracy, bins.count], axis=1)
