"""The page in a real browser: what it draws is what Python computes."""

import threading
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch

from longnn.explorer import collect, make_server, render, unpack
from longnn.polynomials import Jacobi, jacobi
from longnn.report import chebyshev_response, jacobi_weight, mean_response

from .examples import (
    HOSTILE,
    View,
    dense_contributions,
    dense_filter,
    dense_operator,
    graph,
    train,
    write_hostile,
    write_page,
)

NODE = 7


@pytest.fixture(scope="module")
def run():
    """A LON-GNN in the paper's form with a filter for each class."""
    return train(epochs=12, degree=5, shared=False, a=0.3, b=-0.2)


@pytest.fixture(scope="module")
def data(run):
    return collect([run])


@pytest.fixture(scope="module")
def path(run, tmp_path_factory):
    """One page of three runs: the first, one without sums over nodes, one without a filter."""
    others = train(placement="features", degree=4), train(model="mlp")
    return write_page(tmp_path_factory.mktemp("page") / "explorer.html", run, *others)


def close(found, expected, tolerance=2e-3):
    """As drawn: a thousandth of a pixel, of some hundreds, over the height of the axis."""
    assert np.abs(np.asarray(found) - expected).max() <= tolerance * max(1, np.abs(expected).max())


def alpha_of(run, channel):
    f = run.trained.models[0].filters()[0]
    return f.effective_coefficients().detach().double().numpy()[:, channel]


def test_it_opens(view, run):
    assert "LON-GNN on csbm" in view.text("h1")
    assert "60 nodes" in view.text("#about")
    beta = unpack(collect([run])["runs"][0]["models"][0]["filter"]["beta"])
    x, y = view.curve("filter-chart", "current").T
    close(y, mean_response(chebyshev_response(beta, x)))
    assert "weight function" in view.text("#basis-note")


@pytest.mark.parametrize(
    ("a", "b"), [(0.0, 0.0), (-0.5, -0.5), (-0.9, -0.8), (3.5, -0.7), (7.0, 8.0)]
)
@pytest.mark.parametrize("weight", ["paper", "probability"])
def test_polynomials_are_those_of_python(view, a, b, weight):
    x = np.linspace(-1, 1, 9)
    program = """([xs, K, a, b, weight]) => {
      const { jacobi, basisMatrix, jacobiWeight } = window.longnn.polynomials;
      return [xs.map((x) => [...jacobi(x, K, a, b, weight)]),
              basisMatrix(K, a, b, weight).map((row) => [...row]),
              [0.3, 1, 1.9].map((l) => jacobiWeight(l, a, b))];
    }"""
    values, matrix, mass = view.evaluate(program, [x.tolist(), 12, a, b, weight])
    expected = jacobi(torch.from_numpy(x), 12, a, b, weight=weight).numpy()
    np.testing.assert_allclose(np.array(values).T, expected, rtol=1e-9, atol=1e-9)
    C = Jacobi(a, b, weight=weight).chebyshev_matrix(12).numpy()
    np.testing.assert_allclose(matrix, C, rtol=1e-8, atol=1e-8 * np.abs(C).max())
    np.testing.assert_allclose(mass, jacobi_weight(np.array([0.3, 1, 1.9]), a, b), rtol=1e-9)


def test_sliders_change_the_drawn_curve(view, run):
    """a, b, degree and a coefficient, each to the curve of Python's own polynomials."""
    view.set("#channel", "1")
    alpha = alpha_of(run, 1)
    view.set("#a", 2.5)
    view.set("#b", 0.75)
    weight = run.trained.models[0].filters()[0].basis.weight

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
    close(y, chebyshev_response(_beta(view, run)[:, [1]], x)[0])


def _beta(view, run):
    return run.trained.models[0].filters()[0].chebyshev_coefficients().detach().numpy()


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


def test_a_signal_is_filtered_on_the_graph(view, data):
    view.set("#signal", "label.1")
    view.set("#channel", "0")
    assert view.page.locator("#colour").input_value() == "filtered"
    found, before = view.evaluate(
        "() => [[...window.longnn.network.colouring.value], "
        "[...window.longnn.network.colouring.before]]"
    )
    [one], [found_run] = data["graphs"], data["runs"]
    x = (unpack(one["label"]) == 1).astype(float)
    np.testing.assert_allclose(before, x - x.mean(), atol=1e-12)
    model = found_run["models"][0]
    P = dense_operator(one["operators"][model["operator"]])
    G = dense_filter(P, unpack(model["filter"]["beta"]))
    np.testing.assert_allclose(found, G[0] @ (x - x.mean()), atol=1e-8)
    L = np.eye(60) - P
    frequency = (x - x.mean()) @ L @ (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    assert f"Mean frequency {frequency:#.3g} before" in view.text("#signal-text")


def click(view, node):
    """Click where the node is drawn."""
    place = "(i) => window.longnn.network.place(i)"
    x, y = view.evaluate(place, node)
    view.page.locator("#graph").click(position={"x": x, "y": y})
    view.settle()


def test_a_click_shows_exact_contributions(view, data):
    """The reference: eigenvectors of the operator, no recurrence."""
    click(view, NODE)
    assert view.text("#node-title") == f"Node {NODE}"
    [one], model = data["graphs"], data["runs"][0]["models"][0]
    chosen = int(unpack(data["runs"][0]["chosen"])[NODE])
    expected = dense_contributions(one, model, NODE)[:, chosen]
    found = view.evaluate("() => [...window.longnn.explanation().value]")
    np.testing.assert_allclose(found, expected, atol=1e-7)
    # As shown: the largest first, the score as their sum, and the sums by distance.
    rows = view.page.locator("#contributions tbody tr")
    first = int(np.abs(expected).argmax())
    assert rows.first.locator("th").inner_text() == str(first)
    last = rows.first.locator("td").last.inner_text().replace("\u2212", "-")
    assert float(last) == pytest.approx(expected[first], rel=6e-3)
    score = float(unpack(model["scores"])[NODE, chosen])
    shown = view.page.locator("#score")
    assert float(shown.get_attribute("data-value")) == pytest.approx(score, abs=1e-6)
    assert float(shown.get_attribute("data-sum")) == pytest.approx(score, abs=1e-5)
    P = dense_operator(one["operators"][model["operator"]])
    ring = distances(P, NODE)
    for bar in view.page.locator("#rings [data-ring]").all():
        d = int(bar.get_attribute("data-ring"))
        assert float(bar.get_attribute("data-value")) == pytest.approx(
            expected[ring == d].sum(), abs=1e-7
        )


def distances(P, node):
    """By powers of the adjacency: the first that reaches a node."""
    A = (P != 0).astype(float) + np.eye(len(P))
    reached, ring = np.eye(len(P))[node] > 0, np.where(np.arange(len(P)) == node, 0, -1)
    for d in range(1, len(P)):
        reached = (A @ reached) > 0
        ring = np.where((ring < 0) & reached, d, ring)
    return ring


def test_another_class_has_other_contributions(view, data):
    click(view, NODE)
    chosen = int(unpack(data["runs"][0]["chosen"])[NODE])
    view.set("#output", str(1 - chosen))
    expected = dense_contributions(data["graphs"][0], data["runs"][0]["models"][0], NODE)
    found = view.evaluate("() => [...window.longnn.explanation().value]")
    np.testing.assert_allclose(found, expected[:, 1 - chosen], atol=1e-7)


def test_a_click_beside_all_nodes_selects_none(view):
    click(view, NODE)
    view.page.locator("#graph").click(position={"x": 2, "y": 2})
    view.settle()
    assert "Click a node" in view.text("#node-body")


def test_what_does_not_hold_is_said(view):
    """No sum where something bent follows the filter; nothing to show where there is no filter."""
    view.set("#run", "1")
    click(view, NODE)
    assert "not linear follows the filter" in view.text("#node-body")
    assert view.page.locator("#score").count() == 0
    assert "Filter weights by distance" in view.text("#node-body")
    view.set("#run", "2")
    click(view, NODE)
    assert "no polynomial filter" in view.text("#node-body")
    assert view.page.locator("#no-filter").is_visible()
    assert not view.page.locator("#play").is_visible()


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


@pytest.mark.parametrize(
    "fragment", ["#run=9&model=x&epoch=-1&node=nobody", "#a=-3&b=0&alpha=1", "#compare=1,a.b&%%%"]
)
def test_a_damaged_address_opens_the_page(view, path, fragment):
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


@pytest.mark.parametrize("of", ["filter-chart", "basis-chart", "graph", "rings", "neighbourhood"])
def test_pictures_are_saved(view, of, tmp_path):
    click(view, NODE)
    for kind in ("svg", "png"):
        with view.page.expect_download() as waiting:
            view.page.locator(f"[data-save='{kind}'][data-of='{of}']").click()
        waiting.value.save_as(tmp_path / f"picture.{kind}")
    picture = ET.parse(tmp_path / "picture.svg").getroot()
    assert picture.tag.endswith("svg")
    text = ET.tostring(picture, encoding="unicode")
    assert "var(" not in text  # every colour is written out
    if of == "graph":
        circles = picture.findall(".//{http://www.w3.org/2000/svg}circle")
        assert len(circles) == 61  # the nodes, and the ring around the selected one
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("dark", [False, True])
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


def test_names_are_text(browser, tmp_path):
    """What a stranger's file says is shown, and never run."""
    folder = write_hostile(tmp_path / "graph")
    path = write_page(tmp_path / "page.html", train(str(folder)))
    view = View(browser, path)
    click(view, 3)
    assert view.text("#node-title") == f"Node {HOSTILE}3"
    assert HOSTILE in view.text("#legend")
    assert view.evaluate("() => window.hacked") is None
    view.check()
    view.close()


def test_a_sample_says_what_lies_outside(browser, tmp_path, run):
    """Paths on the page and the rest make up the score of the whole graph."""
    path = write_page(tmp_path / "page.html", run, limit=25, node="17")
    view = View(browser, path)
    assert "shows 25 of them" in view.text("#about")
    assert view.text("#node-title") == "Node 17"
    model = collect([run])["runs"][0]["models"][0]
    found = view.evaluate(
        "() => { const { sum, rest, output } = window.longnn.explanation(); "
        "return [sum, rest, output]; }"
    )
    score = unpack(model["scores"])[17, found[2]]
    assert found[0] + found[1] == pytest.approx(float(score), abs=1e-6)
    assert abs(found[1]) > 1e-3
    assert "paths outside the page" in view.text("#contributions")
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
            away = next(i for i in range(60) if str(i) not in _ids(view))
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


def _ids(view):
    return view.evaluate("() => window.longnn.state.graph.ids")


def test_other_tasks(browser, tmp_path):
    """Numbers to predict: contributions in their unit add up to the prediction."""
    dataset = graph().load()
    data = dataset.data.clone()
    data.y = 100 + 20 * data.x[:, 0]
    run = train(data)
    assert run.record.data.task == "regression"
    view = View(browser, write_page(tmp_path / "page.html", run))
    click(view, NODE)
    shown = view.page.locator("#score")
    predicted = float(run.predicted[0][NODE])
    assert float(shown.get_attribute("data-sum")) == pytest.approx(predicted, rel=1e-5)
    for colour in ("label", "predicted", "error"):
        view.set("#colour", colour)
    view.check()
    view.close()
