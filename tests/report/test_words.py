"""Filters of known kind are called by their name, scores read as a person would write them."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from longnn.records import Summary
from longnn.report import interval_text, text_summary
from longnn.report._answer import answer_text, question_text
from longnn.report._filters import (
    chebyshev_response,
    describe_filter,
    jacobi_weight,
    number_text,
    spectral_coordinates,
    waveform_distance,
)
from longnn.report._words import filter_rows, plain_text, score_text, splits_text

LAM = np.linspace(0, 2, 101)
LOW = np.exp(-10 * LAM**2)
HIGH = 1 - LOW
BAND = np.exp(-10 * (LAM - 1) ** 2)

KNOWN = {
    "low-pass": LOW,
    "high-pass": HIGH,
    "band-pass": BAND,
    "band-stop": 1 - BAND,
    "comb": np.abs(np.sin(np.pi * LAM)),
    "all-pass": np.ones_like(LAM),
}


@pytest.mark.parametrize("kind", KNOWN)
def test_a_kind_is_called_by_its_name(kind):
    """Whatever the amplitude, the grid, ripples, and the fit by a polynomial."""
    response = KNOWN[kind]
    for amplitude in (0.02, 1.0, 300.0):
        words = describe_filter(LAM, amplitude * response)
        assert words.startswith(kind)
        assert f"height {number_text(amplitude)}" in words
    for grid in (1 - np.cos(np.linspace(0, np.pi, 77)), np.linspace(0, 2, 21)):
        assert describe_filter(grid, np.interp(grid, LAM, response)).startswith(kind)
    # Five per cent of ripple, as a polynomial of high degree has it.
    assert describe_filter(LAM, response + 0.05 * np.cos(40 * LAM)).startswith(kind)
    fit = np.polynomial.Chebyshev.fit(LAM, response, 10)
    assert describe_filter(LAM, fit(LAM)).startswith(kind)


@pytest.mark.parametrize("centre", [0.5, 0.8, 1.0, 1.4])
def test_bands_are_placed(centre):
    bump = np.exp(-25 * (LAM - centre) ** 2)
    assert describe_filter(LAM, 0.8 * bump) == f"band-pass, centre {centre:.1f}, height 0.8"
    assert f"band-stop, centre {centre:.1f}" in describe_filter(LAM, 1 - bump)


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (1 - 0.7 * LAM, "low-pass, peak at 0, height 1, inverts high frequencies (-0.4 at 2)"),
        (-0.4 + 0.7 * LAM, "peak at 2, height 1, inverts low frequencies (-0.4 at 0)"),
        (1 - LAM, "band-stop, centre 1.0, height 1, inverts high frequencies (-1 at 2)"),
        (-LOW, "low-pass, peak at 0, height 1, negative throughout"),
        (LOW[::-1], "high-pass, peak at 2, height 1"),
        (HIGH, "peak at 2"),
        (0.8 * np.exp(-10 * (LAM - 0.1) ** 2), "peak at 0.1"),
        (1 - 1.5 * BAND, "inverts middle frequencies (-0.5 at 1)"),
        (np.sin(np.pi * LAM), "comb, 2 pass bands, peak at 0.5, height 1, inverts high"),
        (1 - 0.2 * LAM, "mild low-pass"),
        (0 * LAM, "zero"),
        (np.where(LAM > 1, np.nan, 1.0), "not finite"),
    ],
)  # fmt: skip
def test_signs_and_special_cases(response, words):
    assert words in describe_filter(LAM, response)


def test_small_negative_ripples_are_not_called_inversion():
    assert "inverts" not in describe_filter(LAM, LOW - 0.05)


@pytest.mark.parametrize(
    ("channels", "words"),
    [
        ([LOW, -LOW], "low-pass, peak at 0, height 1"),  # a plain mean would be zero
        ([1 - 0.7 * LAM, 0.7 * LAM - 1, 1 - 0.7 * LAM], "inverts high frequencies (-0.4 at 2)"),
        ([LOW] * 5 + [HIGH], "low-pass (5 of 6 channels), peak at 0, height 1"),
        ([LOW] * 3 + [LOW[::-1]] * 3, "mixed (6 channels: 3 low-pass, 3 high-pass)"),
        ([LOW, 1e-4 * HIGH, 1e-5 * BAND], "low-pass, peak at 0, height 1"),  # the dead say nothing
    ],
)
def test_channels_are_described_together(channels, words):
    """The sign of a whole channel is a convention."""
    assert words in describe_filter(LAM, np.stack(channels))
    assert words in describe_filter(torch.from_numpy(LAM), torch.tensor(np.stack(channels)))


@pytest.mark.parametrize("response", [np.ones(7), np.ones((2, 7)), np.ones((1, 2, 101))])
def test_wrong_shapes(response):
    with pytest.raises(ValueError, match=r"Expected `response` of shape \(points,\)"):
        describe_filter(LAM, response)


@pytest.mark.parametrize(
    ("summary", "metric", "text"),
    [
        ((0.886, 0.882, 0.890, 0.006, 10), "accuracy", "88.6 % [88.2, 89.0]"),
        ((0.886, 0.882, 0.890, 0.0, 1), "accuracy", "88.6 % [88.2, 89.0]"),  # over test nodes
        ((0.886, 0.886, 0.886, 0.0, 1), "accuracy", "88.6 %"),
        ((0.7, 0.68, 0.72, 0.1, 3), "r2", "0.700 [0.680, 0.720]"),
        ((float("nan"),) * 4 + (5,), "accuracy", "n/a"),
    ],
)
def test_intervals(summary, metric, text):
    assert interval_text(Summary(*summary), metric) == text


def test_the_answer(runs):
    ten = runs["ten"]
    assert answer_text(ten).startswith(f"Accuracy {score_text(ten.score().mean)} [8")
    assert answer_text(ten).endswith("] on the test nodes of 10 published splits.")
    assert answer_text(runs["single"]).endswith(" % on 542 test nodes.")
    assert answer_text(runs["regression"]).startswith("R² 0.7")
    untested = dataclasses.replace(ten, summary={"val": ten.summary["val"]})
    assert "on the validation nodes of" in answer_text(untested)
    assert answer_text(dataclasses.replace(ten, summary={})) == "Accuracy not scored."


@pytest.mark.parametrize(
    ("values", "question"),
    [
        ({"classes": ("ok", "spam")}, "Is each node of cora ok or spam?"),
        ({}, "Which of 7 classes is each node of cora?"),
        ({"task": "multilabel"}, "Which of 7 labels does each node of cora have?"),
        ({"task": "regression", "classes": ()}, "What is the label of each node of cora?"),
        (
            {
                "task": "regression",
                "classes": (),
                "source": {"options": {"label_column": ["price"]}},
            },
            "What is the price of each node of cora?",
        ),
        (
            {"task": "regression", "classes": (), "targets": ("price", "rent")},
            "What are price and rent of each node of cora?",
        ),
    ],
)
def test_the_question(runs, values, question):
    data = dataclasses.replace(runs["single"].data, **values)
    assert question_text(dataclasses.replace(runs["single"], data=data)) == question


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["low-pass, peak at 0"], "mostly averages over neighbours."),
        (["low-pass"] * 4, "mostly averages over neighbours, in each of its 4 filters."),
        (["all-pass, height 1"], "takes a node's own columns as they are, whatever its"),
        (
            ["mixed (8 channels: 4 comb, 4 low-pass)", *["low-pass"] * 3],
            "first uses averages over neighbours and differences from them in turns, among other "
            "things; then it mostly averages over neighbours.",
        ),
        (["not finite: training diverged"], "does has no plain name; its numbers are below."),
    ],
)
def test_a_filter_in_plain_words(runs, words, said):
    run = runs["single"]
    filters = tuple(dataclasses.replace(run.filters[0], words=each) for each in words)
    repeat = dataclasses.replace(run.repeats[0], filters=filters)
    assert said in plain_text(dataclasses.replace(run, repeats=(repeat,)))


@pytest.mark.parametrize("task", ["regression", "multilabel"])
@pytest.mark.parametrize("protocol", ["stratified", "published"])
def test_without_classes_a_drawn_split_is_random(runs, task, protocol):
    """Nothing can be stratified there; masks that came with the graph keep their name."""
    run = runs["single"]
    split = dataclasses.replace(run.repeats[0].split, protocol=protocol)
    repeat = dataclasses.replace(run.repeats[0], split=split)
    run = dataclasses.replace(run, repeats=(repeat,))
    assert splits_text(run) == f"one {protocol} split"
    other = dataclasses.replace(run, data=dataclasses.replace(run.data, task=task))
    assert splits_text(other) == "one random split"
    said = "\n".join(text_summary(other))
    assert "split random, seed" in said
    assert protocol not in said
    own = dataclasses.replace(repeat, split=dataclasses.replace(split, protocol="own"))
    assert splits_text(dataclasses.replace(other, repeats=(own,))) == "one own split"


def test_what_was_learned_in_numbers(runs):
    """One row per filter; no negative zero, and the response where words say nothing of it."""
    run = runs["single"]
    first = run.filters[0]
    columns, (row,) = filter_rows(run)
    learned = f"{first.learned['a']:.2f}, {first.learned['b']:.2f}"
    assert row == ["the filter", "jacobi", "10", "0.00, 0.00", learned, first.words]
    assert len(columns) == len(row)
    straight = dataclasses.replace(
        first, start={"a": -1e-4, "b": 0.0}, response=(2 - first.eigenvalues)[None]
    )
    data = dataclasses.replace(run.data, outliers=np.array([0.25, 0.5, 0.75]))
    repeat = dataclasses.replace(run.repeats[0], filters=(straight,))
    columns, (row,) = filter_rows(dataclasses.replace(run, repeats=(repeat,), data=data))
    assert (columns[-1], row[-1]) == ("response outside the bulk", "1.2 to 1.8 at 0.25 to 0.75")
    assert row[3] == "0.00, 0.00"
    assert [row[0] for row in filter_rows(runs["bern"])[1]] == ["layer 1", "layer 2"]
    assert filter_rows(runs["bern"])[1][0][3:5] == ["fixed", "fixed"]
    assert "no polynomial filter" in plain_text(runs["gcn"])


# The curves behind the figures, against those of numpy and SciPy


def test_chebyshev_response_is_numpys():
    beta = np.random.default_rng(0).normal(size=(4, 11, 3))
    ours = chebyshev_response(beta, LAM)
    for epoch in range(4):
        reference = np.polynomial.chebyshev.chebval(1 - LAM, beta[epoch])
        np.testing.assert_allclose(ours[epoch], reference, atol=1e-12)


@pytest.mark.parametrize(("a", "b"), [(0, 0), (0.5, -0.3), (-0.5, -0.5), (-0.6, -0.7), (40, 3)])
def test_weight_has_mass_one_and_the_right_shape(a, b):
    def weight(lam):
        return float(jacobi_weight(np.array([lam]), a, b)[0])

    mass = quad(weight, 0, 1, epsabs=1e-10)[0] + quad(weight, 1, 2, epsabs=1e-10)[0]
    assert mass == pytest.approx(1, abs=1e-6)
    ratio = (0.3**a * 1.7**b) / (1.2**a * 0.8**b)  # (1 - x)^a (1 + x)^b at x = 1 - lam
    assert weight(0.3) / weight(1.2) == pytest.approx(ratio)


@pytest.mark.parametrize("degree", [0, 3, 10, 120])  # the last: more terms than points
def test_coordinates_keep_lengths_and_waveforms(degree):
    beta = np.random.default_rng(1).normal(size=(5, degree + 1, 3))
    response, coordinates = chebyshev_response(beta, LAM), spectral_coordinates(beta, LAM)
    np.testing.assert_allclose((coordinates**2).sum(axis=2), (response**2).mean(axis=2))
    np.testing.assert_allclose(
        waveform_distance(coordinates), waveform_distance(response), atol=1e-7
    )


def test_waveform_distance():
    """It ignores the amplitude; shapes that have nothing in common are sqrt(2) apart."""
    shape = np.exp(-LAM)[None]
    response = np.stack([5 * shape, 0.1 * shape, -2 * shape, shape])
    np.testing.assert_allclose(waveform_distance(response), [0, 0, 2, 0], atol=1e-12)
    lam = np.linspace(0, 2, 200, endpoint=False)
    response = np.stack([np.sin(np.pi * lam), np.cos(np.pi * lam), 0 * lam])[:, None]
    assert waveform_distance(response[:2])[0] == pytest.approx(np.sqrt(2))
    assert np.isnan(waveform_distance(response[[2, 0]])[0])  # a zero filter has none
