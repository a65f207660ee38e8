"""Figures of trust draw the numbers they are given, and those that scikit-learn would."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    average_precision_score,
    mean_squared_error,
    precision_recall_curve,
    r2_score,
)

from longnn import report
from longnn.report import _style as style
from longnn.report import _trust_figures as trust
from longnn.report import to_png

RNG = np.random.default_rng(0)
CONFIDENCE = RNG.uniform(0.3, 1, 4000)
RIGHT = RNG.random(4000) < CONFIDENCE - 0.1
EDGES = np.linspace(0, 1, 11)
TRUE = RNG.normal(5, 2, 300)
PREDICTED = TRUE + RNG.normal(0, 0.5, 300)
DEGREES = np.concatenate([[0, 0, 1, 1, 2, 2, 70, 500], RNG.integers(3, 40, 292)])
RARE = RNG.random(800) < 0.1
SCORES = RNG.normal(size=800) + 2 * RARE
NAN = float("nan")
ROWS = [("LON-GNN", 0.9, 0.88, 0.92), ("MLP", 0.7, 0.65, 0.74), ("majority class", 0.3, NAN, NAN)]


def bins_of(confidence: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Mean confidence, accuracy and count in ten bins; NaN and 0 where one is empty."""
    place = np.digitize(confidence, EDGES[1:-1])
    with np.errstate(invalid="ignore"):
        sums = [np.bincount(place, w, minlength=10) for w in (confidence, right, None)]
        return np.column_stack([sums[0] / sums[2], sums[1] / sums[2], sums[2]])


def pr_curve(name: str = "fraud") -> report.PrecisionRecall:
    precision, recall, _ = precision_recall_curve(RARE, SCORES)
    average = average_precision_score(RARE, SCORES)
    return report.PrecisionRecall(
        name, recall, precision, RARE.mean(), average, (recall[600], precision[600])
    )


FIGURES: dict[str, Callable[[], Figure]] = {
    "reliability": lambda: report.reliability(bins_of(CONFIDENCE, RIGHT)),
    "reliability after": lambda: report.reliability(
        bins_of(CONFIDENCE, RIGHT), bins_of(CONFIDENCE - 0.1, RIGHT)
    ),
    "precision_recall": lambda: report.precision_recall([pr_curve()]),
    "six curves": lambda: report.precision_recall([pr_curve("x" * 40)] * 6),
    "predicted_true": lambda: report.predicted_true(PREDICTED, TRUE, label="price"),
    "hexagons": lambda: report.predicted_true(np.tile(PREDICTED, 9), np.tile(TRUE, 9)),
    "residuals": lambda: report.residuals_by_degree(
        report.bin_by_degree(DEGREES, PREDICTED - TRUE), label="price in thousands of euros"
    ),
    "adds": lambda: report.what_the_graph_adds(ROWS),
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_says_what_it_shows_and_fits_a_phone(name: str) -> None:
    figure = FIGURES[name]()
    figure.canvas.draw()
    axes = figure.axes[0]
    assert figure.get_suptitle()
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert figure.get_figwidth() == style.NARROW
    box = figure.get_tightbbox()
    assert box.x0 >= -0.05
    assert box.x1 <= style.NARROW + 0.05
    assert axes.get_position().width > 0.5
    assert to_png(FIGURES[name]()) == to_png(FIGURES[name]())


def test_reliability_is_scikit_learns() -> None:
    bins = bins_of(CONFIDENCE, RIGHT)
    figure = report.reliability(bins)
    diagonal, line = figure.axes[0].lines
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    accuracy, confidence = calibration_curve(RIGHT, CONFIDENCE, n_bins=10)
    np.testing.assert_allclose(line.get_xdata(), 100 * confidence)  # empty bins are left out
    np.testing.assert_allclose(line.get_ydata(), 100 * accuracy)
    (marks,) = figure.axes[0].collections
    assert list(np.argsort(marks.get_sizes())) == list(np.argsort(bins[3:, 2]))


def test_calibration_error_is_the_mean_over_nodes() -> None:
    bins = bins_of(CONFIDENCE, RIGHT)
    place = np.digitize(CONFIDENCE, EDGES[1:-1])
    each = np.abs(bins[place, 0] - bins[place, 1])  # of the bin that a node is in
    error = report.calibration_error(bins)
    assert error == pytest.approx(each.mean())
    assert 0.08 < error < 0.12
    labels = FIGURES["reliability after"]().axes[0].get_legend_handles_labels()[1]
    assert f"before calibration: error {100 * error:.1f} %" in labels
    after = 100 * report.calibration_error(bins_of(CONFIDENCE - 0.1, RIGHT))
    assert f"after calibration: error {after:.1f} %" in labels
    assert after < 3


def test_precision_recall_marks_prevalence_and_threshold() -> None:
    curve = pr_curve()
    axes = report.precision_recall([curve]).axes[0]
    line, prevalence, chosen, *_ = axes.lines
    np.testing.assert_allclose(line.get_xdata(), 100 * np.asarray(curve.recall))
    np.testing.assert_allclose(line.get_ydata(), 100 * np.asarray(curve.precision))
    assert line.get_drawstyle() == "steps-post"
    assert prevalence.get_ydata()[0] == pytest.approx(100 * RARE.mean())
    assert curve.chosen is not None
    assert (chosen.get_xdata()[0], chosen.get_ydata()[0]) == pytest.approx(
        tuple(100 * value for value in curve.chosen)
    )
    labels = axes.get_legend_handles_labels()[1]
    assert labels[0] == f"fraud, average precision {curve.average:.2f}"
    assert labels[-1] == "threshold in use"
    bare = report.PrecisionRecall("rest", [1.0, 0.0], [0.5, 1.0], 0.5)
    labels = report.precision_recall([bare]).axes[0].get_legend_handles_labels()[1]
    assert labels == ["rest", "share of the class: precision of a guess"]


def test_predicted_against_true_has_scikit_learns_scores() -> None:
    axes = FIGURES["predicted_true"]().axes[0]
    _, nodes = axes.lines
    np.testing.assert_array_equal(nodes.get_xdata(), TRUE)
    np.testing.assert_array_equal(nodes.get_ydata(), PREDICTED)
    root = mean_squared_error(TRUE, PREDICTED) ** 0.5
    title = f"R² {r2_score(TRUE, PREDICTED):.3f}, RMSE {root:.3g}, 300 nodes"
    assert axes.get_title(loc="left") == title
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("true price", "predicted price")
    assert axes.get_xlim() == axes.get_ylim()


def test_many_nodes_are_counted_in_hexagons() -> None:
    assert len(TRUE) < trust.DOTS < 9 * len(TRUE)
    (hexagons,) = FIGURES["hexagons"]().axes[0].collections
    assert isinstance(hexagons, PolyCollection)
    assert hexagons.get_array().sum() == 9 * len(TRUE)


def test_one_value_has_no_r2() -> None:
    axes = report.predicted_true([1.0, 3.0], [2.0, 2.0]).axes[0]
    assert axes.get_title(loc="left") == "RMSE 1, 2 nodes"


def test_every_node_is_in_the_bin_of_its_degree() -> None:
    residuals = PREDICTED - TRUE
    bins = report.bin_by_degree(DEGREES, residuals)
    ranges = [(0, 0), (1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 500)]
    assert [tuple(row[:2]) for row in bins] == ranges
    assert bins[:, 2].sum() == len(DEGREES)
    for low, high, count, *quantiles in bins:
        inside = residuals[(low <= DEGREES) & (high >= DEGREES)]
        assert count == len(inside)
        np.testing.assert_allclose(quantiles, np.quantile(inside, [0.05, 0.25, 0.5, 0.75, 0.95]))


def test_residuals_are_drawn_by_their_quantiles() -> None:
    bins = report.bin_by_degree(DEGREES, PREDICTED - TRUE)
    axes = report.residuals_by_degree(bins, label="price").axes[0]
    whiskers, medians = (c for c in axes.collections if isinstance(c, LineCollection))
    np.testing.assert_allclose([s[:, 1] for s in whiskers.get_segments()], bins[:, [3, 7]])
    np.testing.assert_allclose([s[0, 1] for s in medians.get_segments()], bins[:, 5])
    np.testing.assert_allclose([bar.get_y() for bar in axes.patches], bins[:, 4])
    tops = [bar.get_y() + bar.get_height() for bar in axes.patches]
    np.testing.assert_allclose(tops, bins[:, 6])
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels[0] == "0\n(2)"
    assert labels[3].startswith("3–4\n(")
    many = report.residuals_by_degree([[1, 1, 25_300, 0, 0, 0, 0, 0]]).axes[0]
    assert many.get_xticklabels()[0].get_text() == "1\n(25k)"


def test_what_the_graph_adds_has_a_row_per_model() -> None:
    axes = report.what_the_graph_adds(ROWS).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [row[0] for row in ROWS]
    marks = [bar.lines[0].get_xdata()[0] for bar in axes.containers]
    assert marks == pytest.approx([90, 70, 30])
    reaches = [bar.lines[2][0].get_segments()[0][:, 0] for bar in axes.containers]
    np.testing.assert_allclose(reaches, [[88, 92], [65, 74], [30, 30]])
    assert axes.get_xlabel() == "test accuracy (%)\nmean and 95 % interval"
    share = report.what_the_graph_adds(ROWS, metric="r2").axes[0]
    assert share.containers[0].lines[0].get_xdata()[0] == 0.9
    assert share.get_xlabel() == "test R²\nmean and 95 % interval"
    nan = float("nan")
    once = report.what_the_graph_adds([(name, mean, nan, nan) for name, mean, *_ in ROWS]).axes[0]
    assert once.get_xlabel() == "test accuracy (%)"


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: report.reliability(np.zeros((4, 3))), r"at least one node \(got \(4, 3\)\)"),
        (lambda: report.reliability([0.1, 0.2]), r"Expected bins of shape \(bins, 3\)"),
        (lambda: report.precision_recall([]), r"Expected 1 to 6 .* curves \(got 0\)"),
        (lambda: report.precision_recall([pr_curve()] * 7), r"\(got 7\)"),
        (lambda: report.predicted_true([1.0], [1.0, 2.0]), r"of one length \(got \(1,\) and \(2"),
        (lambda: report.bin_by_degree([1], [1.0, 2.0]), "Expected one degree per residual"),
        (lambda: report.residuals_by_degree([[1.0, 2.0]]), r"shape \(bins, 8\) \(got \(1, 2\)\)"),
        (lambda: report.what_the_graph_adds(ROWS[:1]), r"at least one baseline \(got 1 rows\)"),
    ],
)
def test_errors_say_what_is_wrong(draw: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()
