"""The page in a real browser: what it draws and says is what Python computes.

One page of all kinds of runs, opened anew for each test.
"""

import csv
import dataclasses
import itertools
import re
import threading
import xml.etree.ElementTree as ET
from decimal import Decimal

import numpy as np
import pytest
import torch

from longnn.data import from_data
from longnn.data._scaling import Scaling
from longnn.explain._subject import Subject
from longnn.explorer import collect, make_server, render
from longnn.polynomials import Jacobi, jacobi
from longnn.report._filters import chebyshev_response, jacobi_weight, mean_response
from longnn.runs import Run
from tests.test_arcs import random_arcs

from .examples import View, dense_filter, graph, train, write_page

NODE = 7
#: Names that would break a page that does not escape them.
HOSTILE = "</script><script>window.hacked = 1</script><!--"
FORMS = {
    "one filter per class": {"epochs": 12, "degree": 5, "shared": False, "a": 0.3, "b": -0.2},
    "one filter per unit": {"placement": "hidden", "shared": False, "degree": 4},
    "another basis": {"model": "bern", "degree": 4},
    "self loops": {"model": "gpr", "degree": 3},
}
ARCS = {
    "cover": {"placement": "output", "degree": 4},
    "cover, hidden": {"placement": "hidden", "shared": False, "degree": 3},
}


@pytest.fixture(scope="module")
def runs():
    """By name: forms, arcs, what has no sums, other tasks, repeats, ensembles, shifts."""
    data = graph().load().data
    arcs, numbers, labels = (data.clone() for _ in range(3))
    arcs.edge_index = random_arcs(60, probability=0.06, seed=2)
    numbers.y = 100 + 20 * data.x[:, 0]
    labels.y = (data.x[:, :3] > 0).float()
    runs = {name: train(**options) for name, options in FORMS.items()}
    runs |= {name: train(from_data(arcs, directed=True), **o) for name, o in ARCS.items()}
    runs["bent"] = train(placement="features", degree=4)
    runs["no filter"] = train(model="mlp")
    runs["values"], runs["labels"] = train(numbers), train(labels, epochs=8)
    runs["repeats"] = train(repeat=3, degree=3)
    runs["ensemble"] = ensemble(runs["one filter per class"], "lon", "gpr", "mlp")
    runs["mixed"] = ensemble(runs["one filter per class"], "lon", "gcn")
    runs["every kind"] = train(numbers, preset="default")  # deep, of other inputs, trees
    runs["shifted"] = shifted(runs["self loops"])
    runs["shifted ensemble"] = shifted(runs["ensemble"])
    runs["on arcs"] = ensemble(runs["cover"], "lon", "gpr", "mlp", direction="cover")
    return runs


@pytest.fixture(scope="module")
def run(runs):
    """A LON-GNN in the paper's form with a filter for each class; the first of the page."""
    return runs["one filter per class"]


@pytest.fixture(scope="module")
def path(runs, tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("page") / "explorer.html", *runs.values())


def ensemble(run, *models, **table):
    """The same run with an ensemble of models that were not trained in the place of its model."""
    from tests.explain.cases import make_ensemble
    from tests.test_export import FEATURES

    dataset = run.dataset
    data = dataset.data.clone()
    data.x = data.x[:, :FEATURES]
    dataset = dataclasses.replace(dataset, data=data)
    trained = make_ensemble(*models, outputs=2, **table)
    trained = dataclasses.replace(
        trained, scaling=Scaling("none"), classes=run.trained.classes, config=trained.config
    )
    return Run(run.record, trained, dataset, splits=run.splits)


def shifted(run):
    """The same run, its probabilities shifted so that some nodes change their class."""
    odds = run.predicted[0].log().diff(dim=1)[:, 0]  # of the second class
    far = max(odds.quantile(torch.tensor([0.25, 0.75])).tolist(), key=abs)
    own = run.trained.readouts[0]
    own = dataclasses.replace(own, shift=(far / 2, -far / 2), threshold=None)
    trained = dataclasses.replace(run.trained, readouts=(own,))
    return Run(run.record, trained, run.dataset, splits=run.splits)


def close(values, expected, tolerance=2e-3):
    """As drawn: a thousandth of a pixel, of some hundreds, over the height of the axis."""
    assert np.abs(np.asarray(values) - expected).max() <= tolerance * max(1, np.abs(expected).max())


def click(view, node):
    """Click where the node is drawn."""
    x, y = view.evaluate("(i) => window.longnn.network.place(i)", node)
    view.page.locator("#graph").click(position={"x": x, "y": y})
    view.settle()
    assert view.text("#node-title") == f"Node {node}"


def choose(view, runs, name):
    view.set("#run", str(list(runs).index(name)))


# Filters and bases


def test_it_opens(view, run):
    assert view.text("h1") == "10 of 12 right on the test nodes."
    assert "60 nodes" in view.text("#about")
    x, y = view.curve("filter-chart", "current").T
    close(y, mean_response(chebyshev_response(beta_of(run), x)))
    assert "weight function" in view.text("#basis-note")


def beta_of(run):
    return run.trained.models[0].filters()[0].chebyshev_coefficients().detach().numpy()


def test_polynomials_are_those_of_python(view):
    x = np.linspace(-1, 1, 9)
    program = """([xs, K, a, b, weight]) => {
      const { jacobi, basisMatrix, jacobiWeight } = window.longnn.polynomials;
      return [xs.map((x) => [...jacobi(x, K, a, b, weight)]),
              basisMatrix(K, a, b, weight).map((row) => [...row]),
              [0.3, 1, 1.9].map((l) => jacobiWeight(l, a, b))];
    }"""
    pairs = [(0.0, 0.0), (-0.5, -0.5), (-0.9, -0.8), (3.5, -0.7), (7.0, 8.0)]
    for (a, b), weight in itertools.product(pairs, ("paper", "probability")):
        values, matrix, mass = view.evaluate(program, [x.tolist(), 12, a, b, weight])
        expected = jacobi(torch.from_numpy(x), 12, a, b, weight=weight).numpy()
        np.testing.assert_allclose(np.array(values).T, expected, rtol=1e-9, atol=1e-9)
        C = Jacobi(a, b, weight=weight).chebyshev_matrix(12).numpy()
        np.testing.assert_allclose(matrix, C, rtol=1e-8, atol=1e-8 * np.abs(C).max())
        wanted = jacobi_weight(np.array([0.3, 1, 1.9]), a, b)
        np.testing.assert_allclose(mass, wanted, rtol=1e-9)


def test_sliders_change_the_drawn_curve(view, run):
    """a, b, degree and a coefficient, each to the curve of Python's own polynomials."""
    view.set("#channel", "1")
    f = run.trained.models[0].filters()[0]
    alpha = f.effective_coefficients().detach().double().numpy()[:, 1]
    view.set("#a", 2.5)
    view.set("#b", 0.75)
    weight = f.basis.weight

    def expected(alpha):
        terms = jacobi(torch.from_numpy(1 - x), len(alpha) - 1, 2.5, 0.75, weight=weight)
        return alpha @ terms.numpy()

    x, y = view.curve("filter-chart", "current").T
    close(y, expected(alpha))
    view.set("#degree", 3)
    x, y = view.curve("filter-chart", "current").T
    close(y, expected(alpha[:4]))
    view.set("#coefficients label:nth-child(3) input", 0.625)
    alpha = alpha[:4].copy()
    alpha[2] = 0.625
    x, y = view.curve("filter-chart", "current").T
    close(y, expected(alpha))
    x, y = view.curve("basis-chart", "p1").T  # drawn where it is inside the axis
    close(y, jacobi(torch.from_numpy(1 - x), 1, 2.5, 0.75, weight=weight).numpy()[1])
    # The trained one stays for comparison, and comes back.
    assert view.page.locator("[data-series='trained']").count() == 1
    view.page.locator("#reset").click()
    view.settle()
    x, y = view.curve("filter-chart", "current").T
    close(y, chebyshev_response(beta_of(run)[:, [1]], x)[0])


def test_epochs_move_everything(view, run):
    """Filter, coefficients, path of a and b, amplitude: all at the epoch that was chosen."""
    history, path = run.record.history, run.record.path
    view.set("#epoch", 3)
    assert "epoch 4" in view.text("#epoch-value")
    x, y = view.curve("filter-chart", "current").T
    close(y, mean_response(chebyshev_response(path.beta[3], x)))
    assert float(view.text("#a-value").replace("\u2212", "-")) == pytest.approx(
        history["a"][3], abs=2e-3
    )
    found = view.evaluate("() => { const { a, b } = window.longnn.state.current(); return [a, b] }")
    np.testing.assert_allclose(found, [history["a"][3], history["b"][3]], rtol=1e-12)
    picture = view.page.locator("#amplitude-chart svg")
    assert "at epoch 4" in picture.get_attribute("aria-label")
    view.page.locator("#best").click()
    view.settle()
    assert "(kept)" in view.text("#epoch-value")


def test_amplitude_and_waveform_are_those_of_the_report(view, run):
    program = """() => { const { amplitude, distance } =
        window.longnn.amplitudeWaveform(window.longnn.state.history);
      return [[...amplitude], [...distance]]; }"""
    amplitude, distance = view.evaluate(program)
    np.testing.assert_allclose(amplitude, run.record.history["amplitude"])
    grid = np.linspace(0, 2, 201)
    curves = chebyshev_response(run.record.path.beta, grid)
    wave = curves / np.sqrt((curves**2).mean(axis=(1, 2), keepdims=True))
    expected = np.sqrt(((wave - wave[-1]) ** 2).mean(axis=(1, 2)))
    np.testing.assert_allclose(distance, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["one filter per class", "cover"])
def test_a_signal_is_filtered_on_the_graph(view, runs, name):
    """On arcs the mean over the copies of g(B) (x; x)."""
    run = runs[name]
    choose(view, runs, name)
    view.set("#signal", "label.1")
    if name != "cover":  # with one filter for all
        view.set("#channel", "0")
    assert view.page.locator("#colour").input_value() == "filtered"
    after, before = view.evaluate(
        "() => [[...window.longnn.network.colouring.value], "
        "[...window.longnn.network.colouring.before]]"
    )
    P = run.problem.operator.to_dense().double().numpy()
    x = (run.dataset.data.y == 1).double().numpy()
    x -= x.mean()
    np.testing.assert_allclose(before, x, atol=1e-12)
    copies = np.tile(x, len(P) // 60)
    filtered = dense_filter(P, beta_of(run)[:, :1])[0] @ copies
    np.testing.assert_allclose(after, filtered.reshape(-1, 60).mean(0), atol=1e-6)
    frequency = copies @ (copies - P @ copies) / (copies @ copies)
    assert f"Mean frequency {frequency:#.3g} before" in view.text("#signal-text")


# Why a node is predicted as it is


def as_printed(text, wanted, tolerance=1e-5):
    """Whether a printed number is this one, to the digits that are printed."""
    number = Decimal(text.replace("\u2212", "-"))
    unit = 10.0 ** number.as_tuple().exponent
    assert abs(float(number) - wanted) <= unit / 2 + tolerance * max(1, abs(wanted)), (text, wanted)


def check_shown(view, e):
    """All that the panel shows of a node: state, table, sums by distance."""
    program = """() => { const e = window.longnn.explanation();
      return { value: [...e.value], score: e.score, base: e.base, rest: e.rest }; }"""
    found = view.evaluate(program)
    wanted = np.zeros(len(found["value"]))
    wanted[list(e.sources)] = e.contribution
    size = max(1, abs(e.score))
    np.testing.assert_allclose(found["value"], wanted, atol=1e-6 * size)
    assert found["score"] == pytest.approx(e.score, abs=1e-6 * size)
    assert found["base"] == pytest.approx(e.constant, abs=1e-6 * size)
    assert abs(found["rest"]) < 1e-5 * size
    shown = view.page.locator("#score")
    for name in ("data-value", "data-sum"):
        assert float(shown.get_attribute(name)) == pytest.approx(e.score, abs=1e-5 * size)
    rows = view.page.locator("#contributions tbody tr").all()[: min(12, len(e.sources))]
    for row, k in zip(rows, e.order, strict=False):  # the largest first
        assert row.locator("th").inner_text() == str(e.sources[k])
        cells = row.locator("td").all_inner_texts()
        assert cells[0] == str(e.distance[k])
        as_printed(cells[-1], float(e.contribution[k]))
        if e.weight is not None:
            as_printed(cells[1], float(e.weight[k]))
            as_printed(cells[2], float(e.says[k]))
    check_bars(view, "ring", {d: total for d, (_, total) in e.rings.items()})


def check_bars(view, kind, values):
    """The bars by distance or by degree."""
    bars = view.page.locator(f"#{kind}s [data-{kind}]").all()
    assert len(bars) == len(values)
    for bar in bars:
        as_printed(bar.text_content(), float(values[int(bar.get_attribute(f"data-{kind}"))]))


@pytest.mark.parametrize("name", [*FORMS, *ARCS, "values", "labels"])
def test_a_click_shows_what_explain_computes(view, runs, name):
    """The same number for the same question: what is asked where nothing is said is the same."""
    choose(view, runs, name)
    click(view, NODE)
    e = runs[name].explain([NODE])[0]
    outputs = view.page.locator("#output option").all_inner_texts()
    assert outputs[int(view.page.locator("#output").input_value())] == e.output
    check_shown(view, e)
    check_bars(view, "degree", e.chebyshev if name in ("another basis", "self loops") else e.terms)
    if name in ARCS:
        assert "arcs" in view.text("#about")
        assert view.page.locator("#neighbourhood .arrow").count() > 0
    if name == "one filter per class":  # another class has other contributions
        classes = runs[name].dataset.classes
        [other] = [k for k, output in enumerate(classes) if output != e.output]
        view.set("#output", str(other))
        check_shown(view, runs[name].explain([NODE], output=classes[other])[0])
        view.page.locator("#graph").click(position={"x": 2, "y": 2})  # beside all nodes
        view.settle()
        assert "Click a node" in view.text("#node-body")
    if name == "labels":  # the first label is not the most probable everywhere
        explained = runs[name].explain(list(range(60)))
        other = next(k for k, e in enumerate(explained.nodes) if e.output != outputs[0])
        click(view, other)
        check_shown(view, explained[other])


def test_what_does_not_hold_is_said(view, runs):
    """No sum where something bent follows the filter; nothing to show where there is no filter."""
    choose(view, runs, "bent")
    click(view, NODE)
    assert "not linear follows the filter" in view.text("#node-body")
    assert view.page.locator("#score").count() == 0
    assert "Filter weights by distance" in view.text("#node-body")
    choose(view, runs, "no filter")
    click(view, NODE)
    assert "no polynomial filter" in view.text("#node-body")
    assert view.page.locator("#no-filter").is_visible()
    assert not view.page.locator("#play").is_visible()
    choose(view, runs, "values")
    for colour in ("label", "predicted", "error"):
        view.set("#colour", colour)


@pytest.mark.parametrize("name", ["values", "labels", "one filter per class"])
def test_how_sure_the_run_is_stands_beside_the_prediction(view, runs, name):
    """Low and high, or what is plausible, as in the predictions of the run."""
    run = runs[name]
    row = run.predictions().slice(NODE, 1).to_pylist()[0]
    choose(view, runs, name)
    click(view, NODE)
    assert "for about 90 % of nodes like those of the validation set" in view.text("#interval")
    cells = view.page.locator("#node-body table").first.locator("tbody td").all_inner_texts()
    if name == "values":
        for shown, column in zip(cells[:3], ("predicted", "low", "high"), strict=True):
            as_printed(shown, row[column])
    elif name == "labels":
        plausible = [v.replace("|", " or ") for k, v in row.items() if k.startswith("plausible_")]
        named = [v.replace("0", "no").replace("1", "yes") for v in plausible]
        assert cells[1::3] == named
    else:
        named = row["plausible"].replace("|", ", ")
        assert view.text("#interval").startswith(f"Plausible: {named}. The true class")
    choose(view, runs, "mixed")  # it has none
    assert view.page.locator("#interval").count() == 0


@pytest.mark.parametrize("name", ["shifted", "shifted ensemble"])
def test_what_is_shown_is_the_shifted_prediction(view, runs, name):
    """The class and its probability are those of the run; the sums are those of explain."""
    run = runs[name]
    table, explained = run.predictions().to_pydict(), run.explain(list(range(60)))
    moved = [k for k, e in enumerate(explained.nodes) if e.without]
    same = [k for k, e in enumerate(explained.nodes) if not e.without]
    for node in (moved[0], same[0]):
        choose(view, runs, name)
        view.page.locator("#find").fill(str(node))
        view.page.locator("#find").press("Enter")
        view.settle()
        e, chosen = explained[node], table["predicted"][node]
        assert e.predicted == chosen
        text = view.text("#node-body")
        shown = re.search(r"Predicted: (\w+) \(([\d.]+) %\)", text)
        assert shown[1] == chosen
        as_printed(shown[2], 100 * table[f"p_{chosen}"][node])
        said = view.text("#shift")
        if e.without:
            assert said.startswith(f"The scores alone would say {e.without}: the shift towards")
            assert f"adds {e.shift:.2f} to the log-odds of {chosen} against {e.without}." in said
        else:
            assert said.startswith("Probabilities include the shift")
        check_shown(view, e)
    view.set("#run", "0")
    assert view.page.locator("#shift").count() == 0


@pytest.mark.parametrize("name", ["ensemble", "on arcs"])
def test_the_whole_of_an_ensemble(view, runs, name):
    """The averaged probability, split as explain splits it; its filters over each other."""
    choose(view, runs, name)
    click(view, NODE)
    e = runs[name].explain([NODE])[0]
    check_shown(view, e)
    check_bars(view, "degree", e.chebyshev)
    assert "log of the averaged probability" in view.text("#sum")
    lines = view.page.locator("#filter-chart [data-series^='member']")
    shares = [one["share"] for one in collect([runs[name]])["runs"][0]["models"] if one["filter"]]
    opacity = [float(line.get_attribute("stroke-opacity")) for line in lines.all()]
    np.testing.assert_array_equal(np.argsort(opacity), np.argsort(shares))
    assert not view.page.locator("#play").is_visible()
    view.set("#model", "0")
    assert view.page.locator("#play").is_visible()
    assert view.page.locator("#filter-chart [data-series='current']").count() == 1
    assert 'by the model "' in view.text("#sum")


@pytest.mark.parametrize("name", ["mixed", "every kind"])
def test_every_member_gives_what_explain_says(view, runs, name):
    """What is explained is the number of explain, and so is the part of every member; those whose
    scores are no sums have one row."""
    run = runs[name]
    choose(view, runs, name)
    click(view, NODE)
    e = run.explain([NODE])[0]
    found = view.evaluate(
        "() => { const { score, base, opaque, value } = window.longnn.explanation();"
        "return { score, base, opaque, sum: value.reduce((a, b) => a + b, 0) }; }"
    )
    assert found["score"] == pytest.approx(e.score, abs=1e-5)
    total = found["base"] + found["opaque"] + found["sum"]
    assert total == pytest.approx(e.score, abs=1e-5)
    assert "whose scores are no sums" in view.text("#contributions")
    assert view.page.locator("#degrees").count() == 0
    subject, at = Subject(run.trained, run.dataset, 0, known="run"), np.array([NODE])
    z = [scores[at] for scores in subject.scores]
    _, constant, A = subject.question.ask(z, subject.default_outputs(at))
    value, opaque = 0.0, 0.0
    shown = {one["name"]: one for one in collect([run])["runs"][0]["models"]}
    for member, form, scores, q in zip(
        run.trained.models[0].members, subject.forms, z, A, strict=True
    ):
        if member not in shown:  # it has no vote
            assert not q.any()
        elif shown[member]["form"] or shown[member]["alone"]:
            part = form.explain(at, q, features=False)
            value, constant = value + part.contributions.sum(), constant + part.constant[0]
        else:
            opaque += float((q * scores).sum())
    assert found["sum"] == pytest.approx(value, abs=1e-4)
    assert found["base"] == pytest.approx(float(constant[0]), abs=1e-4)
    assert found["opaque"] == pytest.approx(opaque, abs=1e-4)


def test_every_repeat_can_be_chosen(view, runs):
    run = runs["repeats"]
    choose(view, runs, "repeats")
    click(view, NODE)
    assert "Repeat 1 of 3 is shown" in view.text("#about")
    for number in range(3):
        view.set("#repeat", str(number))
        assert view.text("#node-title") == f"Node {NODE}"
        check_shown(view, run.explain([NODE], repeat=number)[0])
        sets = view.evaluate("() => [...window.longnn.state.run.set]")
        for kind, mask in enumerate(("train", "val", "test"), start=1):
            own = getattr(run.splits[number], mask).numpy()
            np.testing.assert_array_equal(np.array(sets) == kind, own)
    assert "the first repeat alone" in view.text("#no-epochs")
    view.page.wait_for_timeout(300)
    assert "repeat=2" in view.evaluate("() => location.hash")


@pytest.mark.parametrize("name", ["one filter per class", "cover"])
def test_a_sample_says_what_lies_outside(browser, runs, tmp_path, name):
    """Paths on the page and the rest make up the score of the whole graph."""
    view = View(browser, write_page(tmp_path / "page.html", runs[name], limit=20, node="17"))
    assert "shows 20 of them" in view.text("#about")
    assert view.text("#node-title") == "Node 17"
    e = runs[name].explain([17])[0]
    program = """() => { const { sum, rest, score } = window.longnn.explanation();
      return [sum + rest, score, rest]; }"""
    whole, score, rest = view.evaluate(program)
    assert (whole, score) == pytest.approx((e.score, e.score), abs=1e-5)
    assert abs(rest) > 1e-3
    assert "paths outside the page" in view.text("#contributions")
    view.check()
    view.close()


# The page as a page


def test_the_address_restores_the_view(view, path):
    view.set("#channel", "1")
    view.set("#a", 1.5)
    view.set("#colour", "confidence")
    view.page.locator("#compare input").nth(1).check()
    click(view, NODE)
    view.page.wait_for_timeout(300)  # the address is written when nothing has moved for a while
    address = view.evaluate("() => location.hash")
    before = view.curve("filter-chart", "current")
    view.open(path, address)
    np.testing.assert_allclose(view.curve("filter-chart", "current"), before, atol=1e-4)
    assert view.page.locator("#colour").input_value() == "confidence"
    assert view.text("#node-title") == f"Node {NODE}"
    assert view.page.locator("#compare input").nth(1).is_checked()
    assert view.page.locator("[data-series='compare 1.0']").count() == 1


def test_a_damaged_address_opens_the_page(view, path):
    for fragment in (
        "#run=99&model=x&epoch=-1&node=nobody",
        "#a=-3&b=0&alpha=1",
        "#compare=1,a.b&%%%",
    ):
        view.open(path, fragment)
        assert view.page.locator("[data-series='current']").count() == 1
        assert view.evaluate("() => window.longnn.state.edit") is None


def test_the_keyboard_is_enough(view):
    view.page.locator("#graph").focus()
    view.page.keyboard.press("n")
    view.settle()
    assert view.text("#node-title") == "Node 0"
    for key in ("+", "ArrowLeft", "-", "0"):
        view.page.keyboard.press(key)
    view.page.locator("#find").fill("12")
    view.page.keyboard.press("Enter")
    view.settle()
    assert view.text("#node-title") == "Node 12"
    view.page.locator("#contributions button").first.press("Enter")
    view.page.locator("#epoch").focus()
    view.page.keyboard.press("Home")
    view.settle()
    assert "epoch 1" in view.text("#epoch-value")
    view.page.locator("#find").fill("nobody")
    view.page.keyboard.press("Enter")
    assert "There is no node nobody" in view.text("#find-note")


def test_readers_of_screens_have_words(view):
    """Pictures have a label, fields a name, and there is one heading of the page."""
    click(view, NODE)
    unnamed = """() => {
      const name = (e) => e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText;
      const seen = [...document.querySelectorAll('button, select, input, canvas, svg')]
        .filter((e) => e.checkVisibility());
      return seen.filter((e) => !(name(e) || '').trim()).map((e) => e.outerHTML.slice(0, 80));
    }"""
    assert view.evaluate(unnamed) == []
    assert view.page.locator("h1").count() == 1
    label = view.page.locator("#filter-chart svg").get_attribute("aria-label")
    assert label.startswith("Response of the filter: ")


def test_pictures_are_saved(view, tmp_path):
    click(view, NODE)
    for of in ("filter-chart", "basis-chart", "graph", "rings", "neighbourhood"):
        for kind in ("svg", "png"):
            with view.page.expect_download() as waiting:
                view.page.locator(f"[data-save='{kind}'][data-of='{of}']").click()
            waiting.value.save_as(tmp_path / f"picture.{kind}")
        picture = ET.parse(tmp_path / "picture.svg").getroot()
        assert picture.tag.endswith("svg")
        assert "var(" not in ET.tostring(picture, encoding="unicode")  # colours are written out
        if of == "graph":
            circles = picture.findall(".//{http://www.w3.org/2000/svg}circle")
            assert len(circles) == 61  # the nodes, and the ring around the selected one
        assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1400, True)])
def test_any_width_light_and_dark(browser, path, width, dark):
    view = View(browser, path, f"#node={NODE}", width=width, dark=dark)
    wide, inner = view.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= inner
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light_now = view.evaluate(ground) == "rgb(255, 255, 255)"
    assert light_now != dark
    view.page.locator("#theme").click()
    view.settle()
    assert (view.evaluate(ground) == "rgb(255, 255, 255)") == dark
    view.check()
    view.close()


def test_the_picture_follows_the_hand(view):
    """While the graph is dragged its picture moves; at rest it is drawn where the nodes are."""
    picture = "() => document.getElementById('graph').toDataURL()"
    view.page.wait_for_timeout(200)
    before = view.evaluate(picture)
    x, y = view.evaluate("() => window.longnn.network.place(3)")
    box = view.page.locator("#graph").bounding_box()
    mouse = view.page.mouse
    mouse.move(box["x"] + 5, box["y"] + 5)
    mouse.down()
    mouse.move(box["x"] + 45, box["y"] + 25, steps=4)
    mouse.up()
    view.page.wait_for_timeout(200)
    assert not view.evaluate("() => window.longnn.network.moving || window.longnn.network.stale")
    assert view.evaluate("() => window.longnn.network.place(3)") == pytest.approx([x + 40, y + 20])
    assert view.evaluate(picture) != before
    view.page.locator("#graph").focus()
    view.page.keyboard.press("0")
    view.page.wait_for_timeout(200)
    assert view.evaluate(picture) == before


def test_names_are_text(browser, tmp_path):
    """What a stranger's files say is shown, and never run; predictions keep it."""
    folder = tmp_path / "graph"
    folder.mkdir()
    names = [f"{HOSTILE}{k}" for k in range(24)]
    rows = [[name, k % 2, (HOSTILE, "plain")[k % 2]] for k, name in enumerate(names)]
    ends = [[names[k], names[(k + step) % 24]] for k in range(24) for step in (2, 5)]
    tables = {"nodes": [["id", HOSTILE, "label"], *rows], "edges": [["source", "target"], *ends]}
    for name, table in tables.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(table)
    run = train(str(folder))
    assert run.predictions()["id"].to_pylist() == names
    assert f"p_{HOSTILE}" in run.predictions().column_names
    view = View(browser, write_page(tmp_path / "page.html", run))
    view.page.locator("#find").fill(names[3])
    view.page.keyboard.press("Enter")
    view.settle()
    assert view.text("#node-title") == f"Node {HOSTILE}3"
    assert HOSTILE in view.text("#legend")
    assert view.evaluate("() => window.hacked") is None
    view.check()
    view.close()


def test_a_served_page_goes_to_any_node(browser, run):
    """A node that is not on the page is fetched with those around it."""

    def page(node):
        return render({**collect([run], limit=15, node=node or "0"), "served": True})

    with make_server(page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            view = View(browser, f"http://127.0.0.1:{server.server_port}/")
            ids = view.evaluate("() => window.longnn.state.graph.ids")
            away = next(i for i in range(60) if str(i) not in ids)
            view.page.locator("#find").fill(str(away))
            view.page.keyboard.press("Enter")
            view.page.wait_for_url(f"**/?node={away}*")
            view.settle()
            assert view.text("#node-title") == f"Node {away}"
            assert view.errors == []
            view.close()
        finally:
            server.shutdown()
            thread.join()
