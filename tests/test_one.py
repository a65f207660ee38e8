"""One new node now: the answer that the grown graph has, or a sentence on why not."""

import csv

import pytest

import longnn
from longnn.data import DataError, load
from longnn.runs import _serve
from tests.commands import without_report
from tests.test_known import NODES, SETTINGS, answers, write

NEW = {"a": 0.3, "b": -1.2}
QUICK = {"epochs": 3, "baselines": False, "device": "cpu"}
#: Between old houses, so that there are more ways than one.
SHORTCUTS = [(i, (i * 37 + 11) % NODES) for i in range(0, NODES, 9)]


@pytest.fixture(scope="module", autouse=True)
def pages():
    with without_report():
        yield


def street(folder, y, *, weights=False):
    """The street of known answers with short cuts, and perhaps weights of edges."""
    write(folder, y)
    with (folder / "edges.csv").open("a") as file:
        for a, b in SHORTCUTS:
            file.write(f"house {a},house {b}\n")
    if weights:
        lines = (folder / "edges.csv").read_text().splitlines()
        lines = [f"{line},{1 + i % 3}" for i, line in enumerate(lines[1:])]
        (folder / "edges.csv").write_text("\n".join(["source,target,weight", *lines]) + "\n")
    return folder


def slowly(run, place, row, neighbours):
    """The same node by the files of a grown graph."""
    place.mkdir()
    weights = neighbours.values() if isinstance(neighbours, dict) else [""] * len(neighbours)
    with (place / "nodes.csv").open("w") as file:
        csv.writer(file).writerows([["id", *row], ["new", *row.values()]])
    with (place / "edges.csv").open("w") as file:
        names = ["source", "target", *(["weight"] if isinstance(neighbours, dict) else [])]
        ends = zip(["new"] * len(neighbours), neighbours, weights, strict=True)
        csv.writer(file).writerows([names, *(each[: len(names)] for each in ends)])
    (found,) = run.predict_new(place).drop(["id"]).to_pylist()
    return found


def differ(quick, slow):
    """By how much numbers differ; words and sets must not."""
    assert quick.keys() - {"exact", "outside"} == slow.keys() - {"label"}
    numbers = [name for name, value in slow.items() if isinstance(value, float)]
    assert all(quick[name] == slow[name] for name in slow.keys() - {*numbers, "label"})
    return max(abs(quick[name] - slow[name]) for name in numbers)


@pytest.fixture(scope="module", params=["memory", "disk"])
def known(request, tmp_path_factory):
    """A run that uses known answers."""
    place = tmp_path_factory.mktemp("known")
    options = {"memory": 1, "cache": place / "cache"} if request.param == "disk" else {}
    longnn.train(street(place / "street", answers()), SETTINGS, place / "run", **options)
    run = longnn.runs.load_run(place / "run", cache=place / "cache")
    assert run.trained.known[0].used
    return run


def test_known_answers_are_told_to_a_node_that_comes_now(known, tmp_path, monkeypatch):
    """Exact where the ball is all that there is; else nearer than a tenth of the spread of answers,
    the nearer the larger it is."""
    near = ["house 3", "house 7", "house 100"]
    slow = slowly(known, tmp_path / "new", NEW, near)
    quick = known.predict_one(NEW, near)
    assert quick["exact"]
    errors = [differ(quick, slow)]
    for steps in (12, 4):
        monkeypatch.setattr(_serve, "STEPS", steps)
        rough = known.predict_one(NEW, near)
        assert not rough["exact"]
        errors.append(differ(rough, slow))
    assert errors[0] < 1e-5 * answers().std()
    assert errors[0] < errors[1] < errors[2] < 0.1 * answers().std()
    lonely = known.predict_one(NEW)
    assert differ(lonely, slowly(known, tmp_path / "alone", NEW, [])) < 1e-6
    assert lonely["exact"]
    wide = known.predict_one(NEW, near, coverage=0.99)
    assert wide["high"] - wide["low"] > quick["high"] - quick["low"]


@pytest.fixture(scope="module")
def portfolio(tmp_path_factory):
    """Trees, deep models, filters, structure and pieces, in two repeats, of classes."""
    place = tmp_path_factory.mktemp("portfolio")
    longnn.train(
        street(place / "street", answers(), weights=True),
        {**QUICK, "preset": "default", "repeat": 2, "known_answers": "none"},
        place / "run",
    )
    return longnn.runs.load_run(place / "run")


def test_every_member_of_a_portfolio_answers_as_in_the_grown_graph(portfolio, tmp_path):
    """With weights of edges, in the mean over repeats; exact to rounding, and said so."""
    kinds = {config.model for config in portfolio.trained.members.values()}
    assert {"lon", "lon-deep", "trees"} <= kinds
    assert {config.inputs for config in portfolio.trained.members.values()} >= {"structure"}
    near = {"house 3": 2.0, "house 7": 1.0, "house 100": 0.5}
    quick = portfolio.predict_one(NEW, near)
    assert quick["exact"]
    assert differ(quick, slowly(portfolio, tmp_path / "new", NEW, near)) < 1e-5


def test_a_ball_that_is_too_small_is_said_to_be_inexact(portfolio, tmp_path, monkeypatch):
    """The larger the ball the nearer; none is far off."""
    near = {"house 3": 2.0, "house 7": 1.0}
    slow = slowly(portfolio, tmp_path / "new", NEW, near)
    errors = []
    for inside in (1, 40):
        monkeypatch.setattr(_serve, "INSIDE", inside)
        quick = portfolio.predict_one(NEW, near)
        assert not quick["exact"]
        errors.append(differ(quick, slow))
    assert errors[1] < errors[0] < 0.05 * answers().std()


CLASSES = ["lon", "gcn", "arma", "gcn-deep", "mlp"]
REFUSED = ["sage-deep", "gat-deep", "optbasis"]


@pytest.mark.parametrize("model", [*CLASSES, *REFUSED])
def test_one_model_alone(model, tmp_path):
    """Exact or refused: nothing between."""
    y = answers("classification")
    settings = {**QUICK, "model": model, "known_answers": "none"}
    run = longnn.train(street(tmp_path / "street", y), settings, tmp_path / "run")
    near = ["house 3", "house 7"]
    if model in REFUSED:
        with pytest.raises(DataError, match=r"models that hear by products alone.*predict_new"):
            run.predict_one(NEW, near)
        return
    quick = run.predict_one(NEW, near)
    assert quick["exact"]
    assert differ(quick, slowly(run, tmp_path / "new", NEW, near)) < 1e-5


def test_trees_see_what_is_around_a_new_node(tmp_path):
    """Many rounds, so that there are trees that ask for the extremes of its neighbours."""
    settings = {"model": "trees", "columns": "around", "known_answers": "none", "baselines": False}
    run = longnn.train(street(tmp_path / "street", answers()), settings, tmp_path / "run")
    for k in range(6):
        near = [f"house {3 + 7 * k}", f"house {90 + 5 * k}"][: 1 + k % 2]
        quick = run.predict_one(NEW, near)
        assert quick["exact"]
        assert differ(quick, slowly(run, tmp_path / f"new {k}", NEW, near)) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("model", sorted(longnn.registry.MODELS))
def test_every_model_alone(model, tmp_path):
    if model not in (*CLASSES, *REFUSED):
        test_one_model_alone(model, tmp_path)


def test_a_graph_of_tensors_takes_features_in_order():
    """Of a graph without a table; the same numbers as an old node and its edges: nearly it."""
    run = longnn.train(load("csbm", num_nodes=60, num_features=4), {**QUICK, "model": "lon"})
    quick = run.predict_one(run.dataset.data.x[5].tolist(), [3, 4])
    assert quick["predicted"] in run.trained.classes
    with pytest.raises(DataError, match=r"Expected the row of a node as 4 numbers"):
        run.predict_one({"a": 1}, [3])


@pytest.mark.parametrize(
    ("row", "neighbours", "message"),
    [
        ({"a": 1}, [], r"missing column 'b'; the row has a"),
        ({**NEW, "a": "much"}, [], r"much"),
        ([1.0, 2.0], [], r"row of a node as a mapping from columns to values"),
        (NEW, ["house 9999"], r"Expected ids of nodes of the graph \(got 'house 9999'\)"),
        (NEW, {"house 3": 1.0}, r"Expected neighbours as a list of ids"),
    ],
)
def test_a_node_that_does_not_go_with_the_graph(known, row, neighbours, message):
    with pytest.raises(DataError, match=message):
        known.predict_one(row, neighbours)


def test_weights_are_given_where_edges_have_them(portfolio):
    with pytest.raises(DataError, match="Expected neighbours as a mapping from ids to weights"):
        portfolio.predict_one(NEW, ["house 3"])
    with pytest.raises(DataError, match="Expected finite weights above 0"):
        portfolio.predict_one(NEW, {"house 3": -1})


def test_what_one_node_cannot_be_added_to(tmp_path):
    """Features of degrees, which the node would change; and arcs."""
    folder = street(tmp_path / "street", answers())
    for options, wanted in (
        ({"features": "degree"}, "features that are columns of a table"),
        ({"directed": True}, "edges of one kind that go both ways"),
    ):
        run = longnn.train(load(folder, **options), {**QUICK, "model": "lon"})
        with pytest.raises(DataError, match=rf"{wanted}.*run\.predict_new"):
            run.predict_one(NEW, ["house 3"])


def test_more_than_memory_holds_is_refused(portfolio, monkeypatch):
    monkeypatch.setattr("longnn.data._errors.memory.available_memory", lambda: 1)
    with pytest.raises(DataError, match="Expected what models hear at every node to fit"):
        _serve.Served(portfolio.trained, portfolio.dataset)
