"""What a click shows is what ``Run.explain`` computes: by ring, by neighbour, by degree."""

import dataclasses
import re
from decimal import Decimal

import numpy as np
import pytest
import torch

from longnn.data import Scaling, from_data
from longnn.explorer import collect, unpack
from longnn.runs import Run
from tests.test_arcs import random_arcs

from .examples import View, graph, train, write_page

NODE = 7
FORMS = {
    "one filter per class": {"degree": 5, "shared": False, "a": 0.3, "b": -0.2},
    "one filter per unit": {"placement": "hidden", "shared": False, "degree": 4},
    "another basis": {"model": "bern", "degree": 4},
    "self loops": {"model": "gpr", "degree": 3},
}
ARCS = {
    "cover": {"placement": "output", "degree": 4},
    "cover, hidden": {"placement": "hidden", "shared": False, "degree": 3},
}


def arcs_graph():
    """The features and classes of a small graph on arcs, most of them without a reverse."""
    data = graph().load().data.clone()
    data.edge_index = random_arcs(60, probability=0.06, seed=2)
    return from_data(data, directed=True)


@pytest.fixture(scope="module")
def runs():
    """By name: those of FORMS, of ARCS, an ensemble, several repeats, numbers to predict."""
    kept = arcs_graph()
    numbers = graph().load().data.clone()
    numbers.y = 100 + 20 * numbers.x[:, 0]
    found = {name: train(**options) for name, options in FORMS.items()}
    found |= {name: train(kept, **options) for name, options in ARCS.items()}
    found["values"] = train(numbers)
    found["repeats"] = train(repeat=3, degree=3)
    found["ensemble"] = ensemble(found["one filter per class"], "lon", "gpr", "mlp")
    found["mixed"] = ensemble(found["one filter per class"], "lon", "gcn")
    found["shifted"] = shifted(found["self loops"])
    found["shifted ensemble"] = shifted(found["ensemble"])
    found["on arcs"] = ensemble(found["cover"], "lon", "gpr", "mlp", direction="cover")
    return found


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


@pytest.fixture(scope="module")
def path(runs, tmp_path_factory):
    """One page of all of them."""
    path = tmp_path_factory.mktemp("page") / "explorer.html"
    return write_page(path, *runs.values())


def choose(view, runs, name, node=NODE):
    """Choose a run, and click where its node is drawn."""
    view.set("#run", str(list(runs).index(name)))
    x, y = view.evaluate("(i) => window.longnn.network.place(i)", node)
    view.page.locator("#graph").click(position={"x": x, "y": y})
    view.settle()
    assert view.text("#node-title") == f"Node {node}"


def as_printed(text, wanted, tolerance=2e-6):
    """Whether a printed number is this one, to the digits that are printed."""
    number = Decimal(text.replace("\u2212", "-"))
    unit = 10.0 ** number.as_tuple().exponent
    assert abs(float(number) - wanted) <= unit / 2 + tolerance * max(1, abs(wanted)), (text, wanted)


def check_shown(view, e):
    """All that the panel shows of a node: state, table, sums by distance and by degree."""
    found = view.evaluate(
        "() => { const e = window.longnn.explanation();"
        "return { value: [...e.value], score: e.score, base: e.base, rest: e.rest }; }"
    )
    wanted = np.zeros(len(found["value"]))
    wanted[list(e.sources)] = e.contribution
    size = max(1, abs(e.score))
    np.testing.assert_allclose(found["value"], wanted, atol=1e-5 * size)
    assert found["score"] == pytest.approx(e.score, abs=1e-5 * size)
    assert found["base"] == pytest.approx(e.constant, abs=1e-5 * size)
    assert abs(found["rest"]) < 1e-4 * size
    check_table(view, e)
    rings = view.page.locator("#rings [data-ring]").all()
    assert len(rings) == max(e.rings) + 1
    for bar in rings:
        as_printed(bar.text_content(), e.rings[int(bar.get_attribute("data-ring"))][1], 1e-5)
    return wanted


def check_table(view, e):
    """Names, distances and numbers of the largest contributions, in their order."""
    rows = view.page.locator("#contributions tbody tr").all()[: min(12, len(e.sources))]
    for row, k in zip(rows, e.order, strict=False):
        name = row.locator("th").inner_text()
        assert name == str(e.sources[k])
        cells = row.locator("td").all_inner_texts()
        assert cells[0] == str(e.distance[k])
        as_printed(cells[-1], float(e.contribution[k]), 1e-5)
        if e.weight is not None:
            as_printed(cells[1], float(e.weight[k]), 1e-5)
            as_printed(cells[2], float(e.says[k]), 1e-5)


def check_degrees(view, values):
    bars = view.page.locator("#degrees [data-degree]").all()
    assert len(bars) == len(values)
    for bar in bars:
        as_printed(bar.text_content(), float(values[int(bar.get_attribute("data-degree"))]), 1e-5)


@pytest.mark.parametrize("name", FORMS)
def test_a_click_shows_what_explain_computes(view, runs, name):
    choose(view, runs, name)
    e = runs[name].explain([NODE], repeat=0)[0]
    check_shown(view, e)
    check_degrees(view, e.chebyshev if name in ("another basis", "self loops") else e.terms)


@pytest.mark.parametrize("name", ARCS)
def test_arcs_are_explained(view, runs, name):
    choose(view, runs, name)
    assert "arcs" in view.text("#about")
    e = runs[name].explain([NODE], repeat=0)[0]
    check_shown(view, e)
    check_degrees(view, e.terms)
    assert view.page.locator("#neighbourhood .arrow").count() > 0


def test_a_signal_is_filtered_on_arcs(view, runs):
    """The mean over the copies of g(B) (x; x), by dense products."""
    run = runs["cover"]
    view.set("#run", str(list(runs).index("cover")))
    view.set("#signal", "label.1")
    found = view.evaluate("() => [...window.longnn.network.colouring.value]")
    B = run.problem.operator.to_dense().double().numpy()
    f = run.trained.models[0].filters()[0]
    beta = f.chebyshev_coefficients().detach().double().numpy().mean(1)
    x = (run.dataset.data.y == 1).double().numpy()
    both = np.concatenate([x - x.mean()] * 2)
    terms = [both, B @ both]
    while len(terms) < len(beta):
        terms.append(2 * B @ terms[-1] - terms[-2])
    after = sum(b * t for b, t in zip(beta, terms, strict=False))
    np.testing.assert_allclose(found, (after[:60] + after[60:]) / 2, atol=1e-6)
    frequency = both @ (both - B @ both) / (both @ both)
    assert f"Mean frequency {frequency:#.3g} before" in view.text("#signal-text")


def test_values_are_explained_in_their_unit(view, runs):
    choose(view, runs, "values")
    check_shown(view, runs["values"].explain([NODE], repeat=0)[0])


@pytest.mark.parametrize("name", ["shifted", "shifted ensemble"])
def test_what_is_shown_is_the_shifted_prediction(view, runs, name):
    """The class and its probability are those of the run; the sums are those of explain."""
    run = runs[name]
    table, found = run.predictions().to_pydict(), run.explain(list(range(60)), repeat=0)
    moved = [k for k, e in enumerate(found.nodes) if e.without]
    same = [k for k, e in enumerate(found.nodes) if not e.without]
    assert moved
    assert same
    for node in (moved[0], same[0]):
        view.set("#run", str(list(runs).index(name)))
        view.page.locator("#find").fill(str(node))
        view.page.locator("#find").press("Enter")
        view.settle()
        e, chosen = found[node], table["predicted"][node]
        assert e.predicted == chosen
        text = view.text("#node-body")
        shown = re.search(r"Predicted: (\w+) \(([\d.]+) %\)", text)
        assert shown[1] == chosen
        as_printed(shown[2], 100 * table[f"p_{chosen}"][node], 1e-5)
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
    e = runs[name].explain([NODE], repeat=0)[0]
    check_shown(view, e)
    check_degrees(view, e.chebyshev)
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


def test_members_that_are_no_sums_have_one_row(view, runs):
    """What is explained is the number of explain; their part of it stands by itself."""
    choose(view, runs, "mixed")
    e = runs["mixed"].explain([NODE], repeat=0)[0]
    found = view.evaluate(
        "() => { const { score, base, opaque, value } = window.longnn.explanation();"
        "return { score, base, opaque, sum: value.reduce((a, b) => a + b, 0) }; }"
    )
    assert found["score"] == pytest.approx(e.score, abs=1e-5)
    total = found["base"] + found["opaque"] + found["sum"]
    assert total == pytest.approx(e.score, abs=1e-5)
    assert "one model whose scores are no sums" in view.text("#contributions")
    assert view.page.locator("#degrees").count() == 0


def test_every_repeat_can_be_chosen(view, runs):
    run = runs["repeats"]
    choose(view, runs, "repeats")
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


def test_repeats_are_left_out_where_there_is_no_room(runs, monkeypatch):
    monkeypatch.setattr("longnn.explorer._data.CHARACTERS", 1)
    [found] = collect([runs["repeats"]])["runs"]
    assert (found["repeats"], found["others"]) == (3, [])
    monkeypatch.undo()
    [found] = collect([runs["repeats"]])["runs"]
    assert len(found["others"]) == 2
    predicted = unpack(found["others"][1]["predicted"])
    torch.testing.assert_close(torch.tensor(predicted), runs["repeats"].predicted[2])


def test_a_part_of_a_graph_of_arcs_says_what_lies_outside(browser, runs, tmp_path):
    path = write_page(tmp_path / "page.html", runs["cover"], limit=20, node="17")
    view = View(browser, path)
    e = runs["cover"].explain([17], repeat=0)[0]
    found = view.evaluate(
        "() => { const { sum, rest, score } = window.longnn.explanation();"
        "return [sum + rest, score]; }"
    )
    assert found == pytest.approx([e.score, e.score], abs=1e-5)
    assert "paths outside the page" in view.text("#contributions")
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
    # What is drawn while it moves is the last picture, moved.
    moved = """() => { const { network } = window.longnn;
      network.transform = network.transform.translate(30, 0);
      const near = network.isNear();
      network.move();
      network.transform = network.transform.translate(-30, 0);
      network.move();
      return near; }"""
    assert view.evaluate(moved)
    assert view.evaluate(picture) == before
