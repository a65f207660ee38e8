"""Figures say what they show, draw what the record holds, and reach the disk whole."""

import dataclasses
import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from sklearn.calibration import calibration_curve
from sklearn.metrics import mean_squared_error, precision_recall_curve, r2_score

from longnn.records import (
    BaselineRecord,
    Bins,
    Calibration,
    KnownRings,
    PrecisionRecall,
    Residuals,
    RunRecord,
    Summary,
)
from longnn.report import Figures
from longnn.report import _filter_figures as filters
from longnn.report import _score_figures as scores
from longnn.report import _style as style
from longnn.report._comparison import comparison_plates
from longnn.report._filters import align_signs, chebyshev_response, jacobi_weight, mean_response
from longnn.report._page import plates
from tests.report.examples import edit_record, write_run

RNG = np.random.default_rng(0)
CONFIDENCE = RNG.uniform(0.3, 1, 4000)
RIGHT = RNG.random(4000) < CONFIDENCE - 0.1
EDGES = np.linspace(0, 1, 11)
TRUE = RNG.normal(5, 2, 300)
PREDICTED = TRUE + RNG.normal(0, 0.5, 300)
DEGREES = np.concatenate([[0, 0, 1, 1, 2, 2, 70, 500], RNG.integers(3, 40, 292)])
RARE = RNG.random(800) < 0.1
CHANCES = RNG.normal(size=800) + 2 * RARE
RESIDUALS = Residuals("price", PREDICTED, TRUE, DEGREES)


def bins_of(confidence):
    """Mean confidence, accuracy and count in ten bins, those without nodes left out."""
    place = np.digitize(confidence, EDGES[1:-1])
    used = np.unique(place)
    means = ([v[place == k].mean() for k in used] for v in (confidence, RIGHT))
    return Bins(*map(np.array, means), np.array([(place == k).sum() for k in used]))


def pr_curve():
    precision, recall, _ = precision_recall_curve(RARE, CHANCES)
    chosen = (recall[600], precision[600])
    return PrecisionRecall("fraud", RARE.mean(), recall, precision, 0.3, chosen)


def changed(run, **values):
    """The run with values of its first repeat replaced."""
    return dataclasses.replace(
        run, repeats=(dataclasses.replace(run.repeats[0], **values), *run.repeats[1:])
    )


def with_data(run, **values):
    return dataclasses.replace(run, data=dataclasses.replace(run.data, **values))


@pytest.fixture(scope="module")
def trusted(runs):
    """A run with all that says whether it can be trusted; in practice no run has all."""
    before, after = bins_of(CONFIDENCE), bins_of(CONFIDENCE - 0.1)
    half, none = Summary(0.5, 0.45, 0.55, 0.1, 3), Summary(0.7, 0.7, 0.7, 0, 1)
    baselines = tuple(
        BaselineRecord(name, title, (), {"accuracy": score}, {"accuracy": half})
        for name, title, score in [("mlp", "an MLP without the graph", half), ("c", "class", none)]
    )
    found = changed(
        runs["ten"], curve=pr_curve(), residuals=RESIDUALS,
        calibration=Calibration(1.4, before, after),
    )  # fmt: skip
    return dataclasses.replace(found, baselines=baselines)


def curves(figure, axes):
    """The lines of one of the figure's axes, as (points, 2)."""
    return [np.column_stack(line.get_data()) for line in figure.axes[axes].lines]


def legend(figure, axes=0):
    return figure.axes[axes].get_legend_handles_labels()[1]


EXPECTED = {
    "single": "filter_response basis_path amplitude_waveform training_curves confusion",
    "ten": "filter_response basis_path amplitude_waveform score_distribution training_curves "
    "confusion",
    "gcn": "score_distribution training_curves",
    "bern": "filter_response amplitude_waveform score_distribution training_curves",
}
#: What says how far a run can be trusted.
TRUST = "baselines precision_recall predicted_true residuals_by_degree reliability"


def test_a_run_has_the_figures_it_can_have(runs, trusted):
    for name, figures in EXPECTED.items():
        assert [plate.name for plate in plates(runs[name])] == figures.split()
    more = {plate.name: plate.alt for plate in plates(trusted)}
    assert list(more) == f"{EXPECTED['ten']} {TRUST}".split()
    error = 100 * bins_of(CONFIDENCE).error
    assert more["reliability"].startswith(f"Expected calibration error {error:.1f} % before and ")
    recall, precision = pr_curve().chosen
    assert f"At the threshold 0.30, {100 * recall:.1f} % of" in more["precision_recall"]
    assert f"and {100 * precision:.1f} % of those" in more["precision_recall"]


def test_every_figure_fits_a_phone_and_says_what_it_shows(runs, trusted):
    """One panel above the other, and nothing sticks out of the picture."""
    marked = [with_data(runs[name], outliers=np.array([0.1, 0.2])) for name in ("ten", "wide")]
    long = [dataclasses.replace(run, label=f"{run.name}-{'x' * 40}") for run in runs.values()]
    rings = KnownRings(
        32, np.array([3.8, 9, 6400]), np.array([0.8, 0, 0.0]), np.array([0, 0.1, 0.1])
    )
    others = [changed(runs["bern"], known_rings=rings), runs["deep"]]
    every = [plate for run in [*marked, *others, trusted] for plate in plates(run)]
    drawn = every + comparison_plates(list(runs.values())) + comparison_plates(long)
    for plate in drawn:
        figure = plate.draw()
        figure.canvas.draw()
        assert figure.get_suptitle()
        assert figure.get_figwidth() == style.NARROW
        box = figure.get_tightbbox()
        assert box.x0 >= -0.05, plate.name
        assert box.x1 <= style.NARROW + 0.05, plate.name
        ladder = plate.title.startswith("The learned filters")
        for axes in figure.axes if not ladder else []:
            if axes.lines or axes.images:  # neither the density behind nor a colour bar
                assert axes.get_xlabel(), plate.name
                assert axes.get_ylabel(), plate.name
        panels = [axes.get_position() for axes in figure.axes if axes.get_xlabel()]
        if not ladder:
            assert len({round(panel.x1, 2) for panel in panels}) == 1, plate.name
            assert all(panel.width > 0.5 for panel in panels), plate.name
        assert len(plate.caption) > 60
        assert len(plate.alt) > 30


def test_the_users_settings_neither_matter_nor_change(runs):
    before = dict(mpl.rcParams)
    with mpl.rc_context({"axes.facecolor": "black", "font.size": 30}):  # a user's own style
        figure = scores.training_curves(runs["single"])
    assert figure.axes[0].get_facecolor() == (1, 1, 1, 1)
    assert dict(mpl.rcParams) == before


# Filters


def test_the_response_has_channels_mean_repeats_and_density(runs):
    run = runs["single"]
    figure = filters.filter_response(run)
    drawn = [curve[:, 1] for curve in curves(figure, 0) if len(curve) == 101]
    for channel in [*run.filters[0].response, run.filters[0].response.mean(axis=0)]:
        assert any(np.allclose(y, channel) for y in drawn)
    (area,) = figure.axes[1].collections
    assert area.get_paths()[0].vertices[:, 1].max() == pytest.approx(run.data.density.density.max())
    assert list(figure.axes[1].get_yticks()) == []  # no scale that could be misread
    drawn = curves(filters.filter_response(runs["ten"]), 0)
    for repeat in runs["ten"].repeats:
        mean = repeat.filters[0].response.mean(axis=0)
        assert any(len(y) == 101 and np.allclose(y[:, 1], mean) for y in drawn)
    titles = [axes.get_title(loc="left") for axes in filters.filter_response(runs["bern"]).axes]
    wanted = [f"layer {k}: Chebyshev basis, degree 10" for k in (1, 2)]
    assert [title for title in titles if title] == wanted
    wide = filters.filter_response(runs["wide"])
    assert len(curves(wide, 0)) < 10  # 64 channels are a band
    assert {"90 % of the channels", "half of the channels", "mean of 64 channels"} <= {
        *legend(wide)
    }
    drawn = [c.get_paths() for c in wide.axes[0].collections if c.get_paths()]
    bands = [paths[0].vertices[:, 1] for paths in drawn[:2]]
    response = align_signs(runs["wide"].filters[0].response)[0]
    for band, limits in zip(bands, [[0.05, 0.95], [0.25, 0.75]], strict=True):
        low, high = np.quantile(response, limits, axis=0)
        assert (band.min(), band.max()) == pytest.approx((low.min(), high.max()))


def test_a_deep_model_has_a_ladder_of_panels_on_one_scale(runs):
    deep = runs["deep"]
    figure = Figures(deep).filter()
    panels = [axes for axes in figure.axes if axes.axison]
    assert len(panels) == 5
    assert len({axes.get_ylim() for axes in panels}) == 1
    for index, (axes, record) in enumerate(zip(panels, deep.filters, strict=True)):
        assert axes.get_title(loc="left").startswith(f"block {index + 1}, degree 10: low-pass")
        mean = mean_response(record.response)
        assert any(np.array_equal(line.get_ydata(), mean) for line in axes.lines)
        low, high = axes.get_ylim()
        assert low < mean.min() < mean.max() < high
    texts = {plate.name: plate.title + plate.caption for plate in plates(deep)}
    assert "block by block" in texts["filter_response"]
    for name in ("basis_path", "amplitude_waveform"):
        assert "This is the first of 5 blocks." in texts[name]
    assert Figures(deep).basis().get_suptitle().endswith(", block 1")
    cut = filters.filter_ladder(changed(deep, filters=deep.filters * 6))
    assert "(first 24 of 30)" in cut.get_suptitle()
    assert sum(axes.axison for axes in cut.axes) == 24


def test_a_filter_is_scaled_by_what_lies_inside_the_spectrum(runs):
    """Beyond the largest eigenvalue, in the bulk or not, a polynomial may go anywhere."""
    run = runs["single"]
    lam = run.filters[0].eigenvalues
    steep = dataclasses.replace(run.filters[0], response=np.exp(4 * (lam - 1))[None])
    run = with_data(
        changed(run, filters=(steep,)), density=(lam, np.where(abs(lam - 1) < 0.5, 1.0, 0.0))
    )
    assert 7 < filters.filter_response(run).axes[0].get_ylim()[1] < 12  # exp(4 * 0.5) is 7
    run = with_data(run, outliers=np.array([1.9]))
    assert filters.filter_response(run).axes[0].get_ylim()[1] > 36


def test_eigenvalues_outside_the_bulk_are_marked(runs):
    run = with_data(runs["single"], outliers=np.array([0.1, 0.2, 0.2]))
    name = "3 eigenvalues outside the bulk"
    compared = filters.compare_filters([run, run])
    for figure in (filters.filter_response(run), compared, Figures(run).density()):
        lines = [c for c in figure.axes[0].collections if isinstance(c, LineCollection)]
        needles = [float(path[0, 0]) for c in lines for path in c.get_segments()]
        assert needles == [0.1, 0.2, 0.2]
        assert name in legend(figure)
        assert figure.axes[0].get_ylim()[1] > 0.5  # needles are shares of the axis, no responses
    plate = plates(run)[0]
    assert f"Needles mark {name} (communities): too few for the grey area" in plate.caption
    assert f"Needles mark {name}" in comparison_plates([run, run])[1].caption
    for none in (runs["single"], with_data(runs["single"], outliers=np.zeros(0))):
        assert "outside the bulk" not in plates(none)[0].caption + plates(none)[0].alt
        assert not any("outside" in text for text in legend(filters.filter_response(none)))


def test_the_density_shows_all_but_narrow_peaks(runs):
    lam = np.linspace(0, 2, 201)
    figure = Figures(with_data(runs["single"], density=(lam, np.exp(-lam)))).density()
    np.testing.assert_allclose(curves(figure, 0)[0][:, 1], np.exp(-lam))
    assert figure.axes[0].get_ylim()[1] > 0.95
    assert not figure.axes[0].texts
    for at in (0, 100, 200):  # at an end, or a multiple eigenvalue in the middle
        peak = np.where(np.arange(201) == at, 1000.0, 0.5)
        axes = Figures(with_data(runs["single"], density=(lam, peak))).density().axes[0]
        assert axes.get_ylim()[1] < 60
        assert axes.texts[0].get_text() == "narrow peaks are cut off"


def test_basis_path_starts_and_ends_right(runs):
    run = runs["single"]
    figure = filters.basis_path(run)
    points = [curve[0] for curve in curves(figure, 0) if len(curve) == 1]
    a, b, epoch = (run.history[name] for name in ("a", "b", "epoch"))
    best = int(np.flatnonzero(epoch == run.repeats[0].best_epoch)[0])
    for special in [(0, 0), (-0.5, -0.5), (0.5, 0.5), (a[0], b[0]), (a[best], b[best])]:
        assert any(np.allclose(point, special) for point in points)
    start, end = curves(figure, 1)
    np.testing.assert_allclose(start[:, 1], jacobi_weight(start[:, 0], a[0], b[0]))
    np.testing.assert_allclose(end[:, 1], jacobi_weight(end[:, 0], a[best], b[best]))


def test_amplitude_falls_back_on_the_filter_path(runs):
    run = dataclasses.replace(runs["single"], history=None)
    response = chebyshev_response(run.path.beta, np.linspace(0, 2, 101))
    figure = filters.amplitude_waveform(run)
    drawn = curves(figure, 0)[0]
    np.testing.assert_allclose(drawn[:, 1], np.sqrt((response**2).mean(axis=(1, 2))))
    distance = curves(figure, 1)[0][:, 1]
    assert distance[-1] == 0 < 0.5 < distance[0]
    # The norm of the basis is not known from the path: what is drawn says what it is.
    labels = [filters.amplitude_waveform(r).axes[0].get_ylabel() for r in (run, runs["single"])]
    assert labels == ["root mean square of g(λ)", "norm ‖g‖"]


# Scores


def test_training_curves_and_scores_are_those_of_the_run(runs):
    run = runs["ten"]
    figure = scores.training_curves(run)
    rows = run.history.of(0)
    for index in (0, 1):
        vertical = [curve for curve in curves(figure, index) if len(curve) == 2]
        assert [float(curve[0, 0]) for curve in vertical] == [run.repeats[0].best_epoch]
    for index, values in enumerate((rows["val_loss"], 100 * rows["val_score"])):
        same = [c for c in curves(figure, index) if len(c) == len(values)]
        assert any(np.allclose(c[:, 1], values) for c in same)
    assert figure.axes[1].get_ylabel() == "accuracy (%)"
    drawn = (curve for curve in curves(scores.score_distribution(run), 0) if len(curve) == 10)
    for points, part in zip(drawn, ("val", "test"), strict=True):
        wanted = [100 * repeat.scores[part]["accuracy"] for repeat in run.repeats]
        np.testing.assert_allclose(points[:, 0], wanted)


def test_confusion_counts_and_names(tmp_path):
    classes = ("cat", "$\\frac{", "a very long name of a class")
    folder = write_run(tmp_path / "run", classes=classes, confusion=True, epochs=10)
    run = RunRecord.read(folder)
    figure = scores.confusion(run)
    drawn = [int(text.get_text()) for text in figure.axes[0].texts]
    assert drawn == run.repeats[0].confusion.astype(int).ravel().tolist()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert (labels[0], len(labels[2])) == ("cat", 16)
    style.to_svg(figure)  # the dollar sign is no formula


@pytest.mark.parametrize("size", [3, 25])
def test_classes_without_test_nodes_have_a_grey_row(tmp_path, size):
    classes = tuple(f"c{k}" for k in range(size))
    folder = write_run(tmp_path / "run", classes=classes, confusion=True, epochs=10)
    run = edit_record(
        folder, lambda record: record["repeats"][0]["confusion"].__setitem__(1, [0] * size)
    )
    axes = scores.confusion(run).axes[0]
    noted = [text for text in axes.texts if text.get_text() == "no test node"]
    assert [text.get_position() for text in noted] == [((size - 1) / 2, 1)]
    assert len(axes.texts) == (1 + 6 if size == 3 else 1)  # no zeros in the empty row
    assert len(axes.patches) == 1
    (plate,) = [plate for plate in plates(run) if plate.name == "confusion"]
    assert plate.caption.endswith("Grey rows are classes without test nodes.")


def test_reliability_is_scikit_learns():
    bins = bins_of(CONFIDENCE)
    figure = scores.reliability(bins)
    diagonal, line = figure.axes[0].lines
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    accuracy, confidence = calibration_curve(RIGHT, CONFIDENCE, n_bins=10)
    np.testing.assert_allclose(line.get_xdata(), 100 * confidence)
    np.testing.assert_allclose(line.get_ydata(), 100 * accuracy)
    (marks,) = figure.axes[0].collections
    assert list(np.argsort(marks.get_sizes())) == list(np.argsort(bins.count))
    place = np.searchsorted(np.unique(np.digitize(CONFIDENCE, EDGES[1:-1])),
                            np.digitize(CONFIDENCE, EDGES[1:-1]))  # fmt: skip
    each = np.abs(bins.confidence - bins.accuracy)[place]  # of the bin that a node is in
    assert bins.error == pytest.approx(each.mean())
    after = bins_of(CONFIDENCE - 0.1)
    labels = legend(scores.reliability(bins, after))[1:]
    wanted = [("before", bins), ("after", after)]
    assert labels == [f"{w} calibration: error {100 * b.error:.1f} %" for w, b in wanted]
    assert after.error < 0.03 < bins.error


def test_precision_recall_marks_prevalence_and_threshold():
    curve = pr_curve()
    figure = scores.precision_recall(curve, 0.625)
    line, prevalence, chosen, *_ = figure.axes[0].lines
    np.testing.assert_allclose(line.get_xdata(), 100 * curve.recall)
    np.testing.assert_allclose(line.get_ydata(), 100 * curve.precision)
    assert line.get_drawstyle() == "steps-post"
    assert prevalence.get_ydata()[0] == pytest.approx(100 * RARE.mean())
    place = chosen.get_xdata()[0], chosen.get_ydata()[0]
    assert place == pytest.approx(tuple(100 * value for value in curve.chosen))
    assert legend(figure)[0] == "fraud, average precision 0.62"
    assert legend(figure)[-1] == "threshold in use"
    assert legend(scores.precision_recall(curve))[0] == "fraud"


def test_predicted_against_true_has_scikit_learns_scores():
    axes = scores.predicted_true(RESIDUALS).axes[0]
    _, nodes = axes.lines
    np.testing.assert_array_equal(nodes.get_xdata(), TRUE)
    np.testing.assert_array_equal(nodes.get_ydata(), PREDICTED)
    root = mean_squared_error(TRUE, PREDICTED) ** 0.5
    title = f"R² {r2_score(TRUE, PREDICTED):.3f}, RMSE {root:.3g}, 300 nodes"
    assert axes.get_title(loc="left") == title
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("true price", "predicted price")
    assert axes.get_xlim() == axes.get_ylim()
    one = Residuals("y", np.array([1.0, 3.0]), np.array([2.0, 2.0]), np.ones(2))
    assert scores.predicted_true(one).axes[0].get_title(loc="left") == "RMSE 1, 2 nodes"


def test_residuals_are_drawn_by_quantiles_in_bins_of_degrees():
    axes = scores.residuals_by_degree(RESIDUALS).axes[0]
    labels = [label.get_text().partition("\n") for label in axes.get_xticklabels()]
    assert labels[0] == ("0", "\n", "(2)")
    ranges = [(0, 0), (1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 500)]
    assert len(labels) == len(axes.patches) == len(ranges)
    for box, (_, _, count), (low, high) in zip(axes.patches, labels, ranges, strict=True):
        inside = (PREDICTED - TRUE)[(low <= DEGREES) & (high >= DEGREES)]
        assert count == f"({len(inside)})"
        heights = box.get_path().vertices[:, 1]
        expected = np.quantile(inside, [0.25, 0.75])
        np.testing.assert_allclose([heights.min(), heights.max()], expected)


def test_what_the_graph_adds_has_a_row_per_model(trusted):
    (plate,) = [plate for plate in plates(trusted) if plate.name == "baselines"]
    axes = plate.draw().axes[0]
    ours = trusted.score()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["LON-GNN", "an MLP without the graph", "class"]
    marks = [bar.lines[0].get_xdata()[0] for bar in axes.containers]
    assert marks == pytest.approx([100 * ours.mean, 50, 70])
    reaches = [bar.lines[2][0].get_segments()[0][:, 0] for bar in axes.containers]
    np.testing.assert_allclose(reaches, [[100 * ours.low, 100 * ours.high], [45, 55], [70, 70]])
    assert axes.get_xlabel() == "test accuracy (%)\nmean and 95 % interval"
    once = [Summary(mean, mean, mean, 0, 1) for mean in (0.9, 1)]
    share = scores.what_the_graph_adds(list(zip("ab", once, strict=True)), "r2")
    assert share.axes[0].containers[0].lines[0].get_xdata()[0] == 0.9
    assert share.axes[0].get_xlabel() == "test R²"


# Several runs


def test_a_comparison_has_a_panel_per_score_and_one_colour_per_run(runs):
    figure = scores.compare_scores([runs["ten"], runs["regression"], runs["gcn"]])
    assert [axes.get_xlabel() for axes in figure.axes] == ["accuracy (%)", "R²"]
    ticks = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert ticks == ["ten", "gcn"]
    compared = [runs["gcn"], runs["ten"], runs["bern"]]
    dots = [line.get_color() for line in scores.compare_scores(compared).axes[0].lines]
    lines = filters.compare_filters(compared).axes[0].get_legend_handles_labels()
    drawn = {label: handle for handle, label in zip(*lines, strict=True) if "spec" not in label}
    assert list(drawn) == ["ten", "bern (layer 1)"]  # the other has none
    assert all(handle.get_color() in dots for handle in drawn.values())


def test_hostile_names_are_drawn_as_they_are(runs):
    names = ("$x^2$", "_hidden", "a -- b --> c", "a\x00b\ud800c", "日本語", "&<>")
    hostile = [dataclasses.replace(runs["single"], label=name) for name in names]
    figure = filters.compare_filters(hostile)
    assert len(legend(figure)) == 1 + len(names)  # the density, and every run
    ET.fromstring(style.to_svg(figure))


# One at a time, and on the disk


@pytest.mark.parametrize(
    ("name", "run", "expected"),
    [
        ("filter", "gcn", r"Expected a model with filters \(got 'gcn'\)"),
        ("members", "gcn", "Expected an ensemble with a filter"),
        ("basis", "bern", "Expected the history of a and b"),
        ("amplitude", "gcn", "Expected the path of the filter"),
        ("scores", "single", r"Expected at least two repeats \(got one\)"),
        ("confusion", "gcn", "Expected a confusion matrix"),
        ("training", "bare", "Expected a history of the epochs"),
        ("density", "bare", "Expected the spectral density of the graph"),
    ],
)
def test_a_figure_that_a_run_has_not_says_why(runs, name, run, expected):
    bare = with_data(dataclasses.replace(runs["single"], history=None), density=None)
    with pytest.raises(ValueError, match=expected):
        getattr(Figures({**runs, "bare": bare}[run]), name)()


def test_a_diverged_run_is_still_drawn(tmp_path):
    def diverge(record):
        record["repeats"][0]["filters"][0]["response"] = [[float("inf")] * 101] * 20
        record["repeats"][0]["filters"][0]["words"] = ""

    run = edit_record(write_run(tmp_path / "run", channels=20, epochs=10), diverge)
    assert "not finite" in plates(run)[0].alt
    style.to_svg(filters.filter_response(run))


def test_saved_figures_are_whole_and_repeatable(runs, tmp_path):
    figures = Figures(runs["gcn"])
    assert repr(figures) == "Figures(gcn: score_distribution, training_curves)"
    files = figures.save(tmp_path / "figures")
    names = EXPECTED["gcn"].split()
    assert [file.name for file in files] == [f"{n}.{end}" for n in names for end in ("svg", "png")]
    assert sorted(tmp_path.joinpath("figures").iterdir()) == sorted(files)  # nothing left over
    for file in files:
        if file.suffix == ".svg":
            ET.parse(file)
        else:
            header = file.read_bytes()[:24]
            assert header.startswith(b"\x89PNG")
            assert int.from_bytes(header[16:20]) == 810  # 5.4 inches at 150 dpi
    before = [file.read_bytes() for file in files]
    figures.save(tmp_path / "figures")
    assert [file.read_bytes() for file in files] == before
