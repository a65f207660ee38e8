"""Figures say what they show, draw what the record holds, and reach the disk whole."""

from __future__ import annotations

import ast
import dataclasses
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from longnn.records import RunRecord
from longnn.report import Figures, figures_of, save_figures
from longnn.report import _figures as figures
from longnn.report import _filter_figures as filter_figures
from longnn.report import _style as style
from longnn.report._figures import comparison_plates, plates
from longnn.report._responses import chebyshev_response, jacobi_weight
from tests.report.examples import edit_record, write_run

EXPECTED = {
    "single": [
        "filter_response", "basis_path", "amplitude_waveform", "training_curves", "confusion",
    ],
    "ten": [
        "filter_response", "basis_path", "amplitude_waveform", "score_distribution",
        "training_curves", "confusion",
    ],
    "gcn": ["score_distribution", "training_curves"],
    "bern": ["filter_response", "amplitude_waveform", "score_distribution", "training_curves"],
}  # fmt: skip


def curves(figure: Figure, axes: int) -> list[np.ndarray]:
    """The lines of one of the figure's axes, as (points, 2)."""
    return [np.column_stack(line.get_data()) for line in figure.axes[axes].lines]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_run_has_the_figures_it_can_have(runs: dict[str, RunRecord], name: str) -> None:
    assert [plate.name for plate in plates(runs[name])] == EXPECTED[name]


def test_every_figure_has_title_labels_and_words(runs: dict[str, RunRecord]) -> None:
    every = [plate for run in runs.values() for plate in plates(run)]
    for plate in every + comparison_plates(list(runs.values())):
        figure = plate.draw()
        assert figure.get_suptitle()
        for axes in figure.axes:
            if axes.lines or axes.images:  # neither the density behind nor a colour bar
                assert axes.get_xlabel(), plate.name
                assert axes.get_ylabel(), plate.name
        assert len(plate.caption) > 60
        assert len(plate.alt) > 30


def test_every_figure_fits_a_phone(runs: dict[str, RunRecord]) -> None:
    """One panel above the other, and nothing sticks out of the picture."""
    marked = [with_outliers(runs[name], 0.1, 0.2) for name in ("ten", "wide")]
    long = [dataclasses.replace(run, label=f"{run.name}-{'x' * 40}") for run in runs.values()]
    every = [plate for run in [*runs.values(), *marked] for plate in plates(run)]
    for plate in every + comparison_plates(list(runs.values())) + comparison_plates(long):
        figure = plate.draw()
        figure.canvas.draw()
        assert figure.get_figwidth() == style.NARROW
        box = figure.get_tightbbox()
        assert box.x0 >= -0.05, plate.name
        assert box.x1 <= style.NARROW + 0.05, plate.name
        panels = [axes.get_position() for axes in figure.axes if axes.get_xlabel()]
        assert len({round(panel.x1, 2) for panel in panels}) == 1, plate.name
        assert all(panel.width > 0.5 for panel in panels), plate.name


def test_the_layer_imports_no_other_and_no_pyplot() -> None:
    allowed = set(sys.stdlib_module_names) | {"numpy", "matplotlib"}
    lower = ("report", "records", "registry", "metrics", "_base")
    for file in Path(style.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                ours = name.startswith(tuple(f"longnn.{layer}" for layer in lower))
                assert ours or name.split(".")[0] in allowed
                assert "pyplot" not in name


def test_the_users_settings_neither_matter_nor_change(runs: dict[str, RunRecord]) -> None:
    before = dict(mpl.rcParams)
    with mpl.rc_context({"axes.facecolor": "black", "font.size": 30}):  # a user's own style
        figure = figures.training_curves(runs["single"])
    assert figure.axes[0].get_facecolor() == (1, 1, 1, 1)
    assert dict(mpl.rcParams) == before


def test_response_figure_draws_channels_mean_and_density(runs: dict[str, RunRecord]) -> None:
    run = runs["single"]
    figure = figures.filter_response(run)
    response = run.filters[0].response
    drawn = [curve[:, 1] for curve in curves(figure, 0)]
    for channel in [*response, response.mean(axis=0)]:
        assert any(len(y) == 101 and np.allclose(y, channel) for y in drawn)
    (area,) = figure.axes[1].collections
    assert run.data.density is not None
    assert area.get_paths()[0].vertices[:, 1].max() == pytest.approx(run.data.density[1].max())
    assert list(figure.axes[1].get_yticks()) == []  # no scale that could be misread


def test_response_figure_shows_other_repeats_and_bands(runs: dict[str, RunRecord]) -> None:
    ten = figures.filter_response(runs["ten"])
    means = [repeat.filters[0].response.mean(axis=0) for repeat in runs["ten"].repeats]
    drawn = [curve[:, 1] for curve in curves(ten, 0)]
    assert all(any(len(y) == 101 and np.allclose(y, mean) for y in drawn) for mean in means)
    wide = figures.filter_response(runs["wide"])
    assert len(curves(wide, 0)) < 10  # 64 channels are a band
    labels = wide.axes[0].get_legend_handles_labels()[1]
    assert {"90 % of the channels", "half of the channels", "mean of 64 channels"} <= set(labels)


def test_layers_have_their_own_panels(runs: dict[str, RunRecord]) -> None:
    titles = [axes.get_title(loc="left") for axes in figures.filter_response(runs["bern"]).axes]
    assert [title for title in titles if title] == [
        "layer 1: Chebyshev basis, degree 10",
        "layer 2: Chebyshev basis, degree 10",
    ]


def test_training_curves_mark_the_best_epoch(runs: dict[str, RunRecord]) -> None:
    run = runs["ten"]
    figure = figures.training_curves(run)
    best = run.repeats[0].best_epoch
    for index in (0, 1):
        vertical = [curve for curve in curves(figure, index) if len(curve) == 2]
        assert [float(curve[0, 0]) for curve in vertical] == [best]
    assert run.history is not None
    scores = run.history.of(0)["val_score"]
    assert any(np.allclose(c[:, 1], 100 * scores) for c in curves(figure, 1) if len(c) > 2
               and len(c) == len(scores))  # fmt: skip
    assert figure.axes[1].get_ylabel() == "accuracy (%)"


def test_basis_path_starts_and_ends_right(runs: dict[str, RunRecord]) -> None:
    run = runs["single"]
    figure = figures.basis_path(run)
    assert run.history is not None
    points = [curve[0] for curve in curves(figure, 0) if len(curve) == 1]
    a, b, epoch = (run.history[name] for name in ("a", "b", "epoch"))
    best = int(np.flatnonzero(epoch == run.repeats[0].best_epoch)[0])
    for special in [(0, 0), (-0.5, -0.5), (0.5, 0.5), (a[0], b[0]), (a[best], b[best])]:
        assert any(np.allclose(point, special) for point in points)
    start, end = curves(figure, 1)
    np.testing.assert_allclose(start[:, 1], jacobi_weight(start[:, 0], a[0], b[0]))
    np.testing.assert_allclose(end[:, 1], jacobi_weight(end[:, 0], a[best], b[best]))


def test_amplitude_falls_back_on_the_filter_path(runs: dict[str, RunRecord]) -> None:
    run = dataclasses.replace(runs["single"], history=None)
    assert run.path is not None
    response = chebyshev_response(run.path.beta, np.linspace(0, 2, 101))
    drawn = curves(figures.amplitude_waveform(run), 0)[0]
    np.testing.assert_allclose(drawn[:, 1], np.sqrt((response**2).mean(axis=(1, 2))))
    distance = curves(figures.amplitude_waveform(run), 1)[0][:, 1]
    assert distance[-1] == 0
    assert distance[0] > 0.5
    # The norm of the basis is not known from the path: what is drawn says what it is.
    labels = [figures.amplitude_waveform(r).axes[0].get_ylabel() for r in (run, runs["single"])]
    assert labels == ["root mean square of g(λ)", "norm ‖g‖"]


def test_scores_are_drawn_at_their_place(runs: dict[str, RunRecord]) -> None:
    run = runs["ten"]
    val, test = (curve for curve in curves(figures.score_distribution(run), 0) if len(curve) == 10)
    for drawn, part in ((val, "val"), (test, "test")):
        scores = [100 * repeat.scores[part]["accuracy"] for repeat in run.repeats]
        np.testing.assert_allclose(drawn[:, 0], scores)


def test_confusion_counts_and_names(tmp_path: Path) -> None:
    classes = ("cat", "$\\frac{", "a very long name of a class")
    run = RunRecord.read(write_run(tmp_path / "run", classes=classes, confusion=True, epochs=10))
    figure = figures.confusion(run)
    counts = run.repeats[0].confusion
    assert counts is not None
    drawn = [int(text.get_text()) for text in figure.axes[0].texts]
    assert drawn == counts.astype(int).ravel().tolist()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[0] == "cat"
    assert len(labels[2]) == 16
    style.to_svg(figure)  # the dollar sign is no formula


@pytest.mark.parametrize("size", [3, 25])
def test_classes_without_test_nodes_have_a_grey_row(tmp_path: Path, size: int) -> None:
    classes = tuple(f"c{k}" for k in range(size))
    folder = write_run(tmp_path / "run", classes=classes, confusion=True, epochs=10)

    def empty(record: dict) -> None:  # type: ignore[type-arg]
        record["repeats"][0]["confusion"][1] = [0] * size

    edit_record(folder, empty)
    run = RunRecord.read(folder)
    axes = figures.confusion(run).axes[0]
    noted = [text for text in axes.texts if text.get_text() == "no test node"]
    assert [text.get_position() for text in noted] == [((size - 1) / 2, 1)]
    assert len(axes.texts) == (1 + 6 if size == 3 else 1)  # no zeros in the empty row
    assert len(axes.patches) == 1
    (plate,) = [plate for plate in plates(run) if plate.name == "confusion"]
    assert plate.caption.endswith("Grey rows are classes without test nodes.")


def test_every_figure_of_a_run_can_be_drawn_alone(
    runs: dict[str, RunRecord], tmp_path: Path
) -> None:
    drawn = figures_of(runs["ten"])
    assert isinstance(drawn, Figures)
    titles = {
        "filter": "Learned filter on cora",
        "training": "Training",
        "basis": "How the basis was learned",
        "amplitude": "Amplitude and waveform of the filter",
        "confusion": "Which classes are confused",
        "scores": "Scores of 10 repeats",
        "density": "Spectral density of the graph",
    }
    for name, title in titles.items():
        figure = getattr(drawn, name)()
        assert isinstance(figure, Figure)
        assert figure.get_suptitle() == title
    assert repr(figures_of(runs["gcn"])) == "Figures(gcn: score_distribution, training_curves)"
    files = figures_of(runs["gcn"]).save(tmp_path)
    assert [file.name for file in files] == [
        "score_distribution.svg",
        "score_distribution.png",
        "training_curves.svg",
        "training_curves.png",
    ]


@pytest.mark.parametrize(
    ("name", "run", "expected"),
    [
        ("filter", "gcn", r"Expected a model with filters \(got 'gcn'\)"),
        ("basis", "bern", "Expected the history of a and b"),
        ("amplitude", "gcn", "Expected the path of the filter"),
        ("scores", "single", r"Expected at least two repeats \(got one\)"),
        ("confusion", "gcn", "Expected a confusion matrix"),
    ],
)
def test_a_figure_that_a_run_has_not_says_why(
    runs: dict[str, RunRecord], name: str, run: str, expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        getattr(figures_of(runs[run]), name)()


def test_a_run_without_history_or_density_says_so(runs: dict[str, RunRecord]) -> None:
    data = dataclasses.replace(runs["single"].data, density=None)
    bare = figures_of(dataclasses.replace(runs["single"], history=None, data=data))
    with pytest.raises(ValueError, match="Expected a history of the epochs"):
        bare.training()
    with pytest.raises(ValueError, match="Expected the spectral density of the graph"):
        bare.density()


def test_a_run_has_one_colour_in_a_comparison(runs: dict[str, RunRecord]) -> None:
    compared = [runs["gcn"], runs["ten"], runs["bern"]]
    scores = [line.get_color() for line in figures.compare_scores(compared).axes[0].lines]
    curves = figures.compare_filters(compared).axes[0].get_legend_handles_labels()
    for handle, label in zip(*curves, strict=True):
        if label in ("ten", "bern (layer 1)"):
            assert handle.get_color() in scores


@pytest.mark.parametrize("names", [("single",), ("single", "ten"), ("regression", "single")])
def test_the_legend_of_scores_names_every_mark(
    runs: dict[str, RunRecord], names: tuple[str, ...]
) -> None:
    (legend,) = figures.compare_scores([runs[name] for name in names]).legends
    texts = [text.get_text() for text in legend.get_texts()]
    bar = [] if names == ("single",) else ["mean and its 95 % interval"]
    assert texts == ["one repeat", *bar]


def test_density_for_info() -> None:
    lam = np.linspace(0, 2, 201)
    figure = figures.density(lam.tolist(), np.exp(-lam))
    np.testing.assert_allclose(curves(figure, 0)[0][:, 1], np.exp(-lam))
    assert figure.axes[0].get_ylim()[1] > 0.95
    assert not figure.axes[0].texts
    with pytest.raises(ValueError, match="Expected eigenvalues and density of one length"):
        figures.density(lam, lam[:3])


def test_a_narrow_peak_does_not_flatten_the_density() -> None:
    lam = np.linspace(0, 2, 201)
    flat = np.full(201, 0.5)
    for place in (0, 100, 200):  # at an end, or a multiple eigenvalue in the middle
        peaked = flat.copy()
        peaked[place] = 1000.0
        figure = figures.density(lam, peaked)
        assert figure.axes[0].get_ylim()[1] < 60
        assert figure.axes[0].texts[0].get_text() == "narrow peaks are cut off"


@pytest.mark.parametrize(
    ("draw", "run", "expected"),
    [
        (figures.filter_response, "gcn", "Expected a model with filters"),
        (figures.basis_path, "bern", "Expected the history of a and b"),
        (figures.amplitude_waveform, "gcn", "Expected the path of the filter"),
        (figures.score_distribution, "single", "Expected at least two repeats"),
        (figures.confusion, "gcn", "Expected a confusion matrix"),
    ],
)
def test_a_figure_that_cannot_be_drawn(
    runs: dict[str, RunRecord], draw: object, run: str, expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        draw(runs[run])  # type: ignore[operator]


def test_a_diverged_run_is_still_drawn(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", channels=20, epochs=10)

    def diverge(record: dict) -> None:  # type: ignore[type-arg]
        found = record["repeats"][0]["filters"][0]
        found["response"] = [[float("inf")] * 101] * 20
        found["words"] = ""

    edit_record(folder, diverge)
    run = RunRecord.read(folder)
    assert "not finite" in plates(run)[0].alt
    style.to_svg(figures.filter_response(run))


def test_comparison_leaves_out_runs_without_filter(runs: dict[str, RunRecord]) -> None:
    figure = figures.compare_filters([runs["ten"], runs["gcn"], runs["bern"]])
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert [label for label in labels if "spectrum" not in label] == ["ten", "bern (layer 1)"]
    with pytest.raises(ValueError, match="Expected at least one run with a filter"):
        figures.compare_filters([runs["gcn"]])


def test_compared_scores_have_a_panel_for_each_metric(runs: dict[str, RunRecord]) -> None:
    figure = figures.compare_scores([runs["ten"], runs["regression"], runs["gcn"]])
    assert [axes.get_xlabel() for axes in figure.axes] == ["accuracy (%)", "R²"]
    ticks = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert ticks == ["ten", "gcn"]


def test_saved_figures_are_whole_and_repeatable(runs: dict[str, RunRecord], tmp_path: Path) -> None:
    files = save_figures(runs["gcn"], tmp_path / "figures")
    assert [file.name for file in files] == [
        "score_distribution.svg",
        "score_distribution.png",
        "training_curves.svg",
        "training_curves.png",
    ]
    assert sorted(tmp_path.joinpath("figures").iterdir()) == sorted(files)  # nothing left over
    for file in files:
        if file.suffix == ".svg":
            ET.parse(file)
        else:
            header = file.read_bytes()[:24]
            assert header.startswith(b"\x89PNG")
            assert int.from_bytes(header[16:20]) == 810  # 5.4 inches at 150 dpi
    before = [file.read_bytes() for file in files]
    save_figures(runs["gcn"], tmp_path / "figures")
    assert [file.read_bytes() for file in files] == before


def test_writing_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = style.write_atomically(tmp_path / "deep" / "page.html", b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        style.write_atomically(file, b"new and longer")
    assert file.read_bytes() == b"old"
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    "name", ["$x^2$", "_hidden", "a -- b --> c", "a\x00b\ud800c", "日本語", "&<>"]
)
def test_hostile_names_are_drawn_as_they_are(runs: dict[str, RunRecord], name: str) -> None:
    run = dataclasses.replace(runs["ten"], label=name)
    figure = figures.compare_filters([run, runs["single"]])
    assert len(figure.axes[0].get_legend_handles_labels()[1]) == 3  # density and both runs
    ET.fromstring(style.to_svg(figure))


def test_a_filter_is_scaled_by_what_lies_inside_the_spectrum():
    """Beyond the largest eigenvalue of the graph a polynomial may go anywhere."""
    figure = Figure()
    axes = figure.subplots()
    lam = np.linspace(0, 2, 101)
    axes.plot(lam, np.where(lam > 1.8, -100.0, 1.0))
    filter_figures.show_inside(axes, 1.7)
    low, high = axes.get_ylim()
    assert -0.2 < low < 0
    assert 1 < high < 1.2


def with_outliers(run: RunRecord, *outliers: float) -> RunRecord:
    return dataclasses.replace(run, data=dataclasses.replace(run.data, outliers=np.array(outliers)))


def needles(figure: Figure) -> list[float]:
    """Where the needles of the first axes stand."""
    found = [c for c in figure.axes[0].collections if isinstance(c, LineCollection)]
    return [float(path[0, 0]) for c in found for path in c.get_segments()]


def test_eigenvalues_outside_the_bulk_are_marked(runs: dict[str, RunRecord]) -> None:
    run = with_outliers(runs["single"], 0.1, 0.2, 0.2)
    legend = "3 eigenvalues outside the bulk (communities)"
    for figure in (
        figures.filter_response(run),
        figures.compare_filters([run, run]),
        figures_of(run).density(),
    ):
        assert needles(figure) == [0.1, 0.2, 0.2]
        labels = figure.axes[0].get_legend_handles_labels()[1]
        assert "3 eigenvalues outside the bulk" in labels
        assert figure.axes[0].get_ylim()[1] > 0.5  # needles are shares of the axis, no responses
    plate = plates(run)[0]
    assert f"Needles mark {legend}: too few for the grey area" in plate.caption
    assert "At the 3 eigenvalues outside the bulk (0.1 to 0.2), its response is" in plate.alt
    assert f"Needles mark {legend}" in comparison_plates([run, run])[1].caption
    for none in (runs["single"], with_outliers(runs["single"])):
        assert needles(figures.filter_response(none)) == []
        assert "outside the bulk" not in plates(none)[0].caption + plates(none)[0].alt


def test_the_response_beyond_the_bulk_is_shown_where_an_eigenvalue_is(
    runs: dict[str, RunRecord],
) -> None:
    lam = runs["single"].filters[0].eigenvalues
    steep = dataclasses.replace(runs["single"].filters[0], response=np.exp(4 * (lam - 1))[None])
    repeat = dataclasses.replace(runs["single"].repeats[0], filters=(steep,))
    bulk = np.where(abs(lam - 1) < 0.5, 1.0, 0.0)
    data = dataclasses.replace(runs["single"].data, density=(lam, bulk))
    run = dataclasses.replace(runs["single"], repeats=(repeat,), data=data)
    assert figures.filter_response(run).axes[0].get_ylim()[1] < 12  # exp(4 * 0.5) is 7
    assert figures.filter_response(with_outliers(run, 1.9)).axes[0].get_ylim()[1] > 36
