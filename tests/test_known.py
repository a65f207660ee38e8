"""No answer leaks: what known answers change, through the command, runs and the estimator, in
memory and on disk."""

import json

import numpy as np
import pyarrow
import pyarrow.csv
import pytest
import torch

import longnn
from longnn import LONGNNClassifier, LONGNNRegressor
from longnn.data import from_pandas, load
from longnn.explorer import collect
from longnn.records import RunRecord
from longnn.report._page import plates
from longnn.runs._dataset import as_dataset
from longnn.store._ranks import Ranks
from tests.commands import fail, succeed, without_report
from tests.commands import longnn as longnn_command
from tests.training.test_known import ring, smooth

NODES = 320
SETTINGS = {"preset": "fast", "epochs": 6, "degree": 2, "placement": "features"}
SETTINGS |= {"hidden_channels": 8, "baselines": False, "device": "cpu"}
NEXT = ("train", "train", "val", "test")
SETS = np.array([NEXT[i % 4] for i in range(NODES)])
TEST = SETS == "test"


def answers(task="regression"):
    """What varies smoothly over the street, and columns know nothing of."""
    return smooth(NODES, task=task)[2].numpy()


def write(folder, y, seed=0):
    """A street: houses with two columns of chance, their answers, and a split of their own."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    labels = y if y.dtype.kind == "f" else np.array(["low", "high"])[y]
    ids = [f"house {i}" for i in range(NODES)]
    columns = {"id": ids, "a": rng.normal(size=NODES), "b": rng.normal(size=NODES)}
    table = pyarrow.table({**columns, "label": labels, "split": SETS})
    pyarrow.csv.write_csv(table, folder / "nodes.csv")
    source, target = ring(NODES)
    ends = {"source": [ids[i] for i in source], "target": [ids[i] for i in target]}
    pyarrow.csv.write_csv(pyarrow.table(ends), folder / "edges.csv")
    return folder


@pytest.fixture(scope="module", autouse=True)
def pages():
    with without_report():
        yield


def numbers(table):
    """What is predicted: values, or the probability of the first class."""
    names = [n for n in table.column_names if n.startswith("p_")]
    return table[names[0] if names else "predicted"].to_numpy()


# Each door: a folder of a street, and what is predicted of its houses.


def in_memory(folder, out):
    return numbers(longnn.train(folder, SETTINGS, out).predictions())


def on_disk(folder, out):
    run = longnn.train(folder, SETTINGS, out, memory=1, cache=out.parent / "cache")
    assert run.dataset.backing.by_rows
    return numbers(run.predictions())


def by_command(folder, out):
    options = [f"--set={key}={str(value).lower()}" for key, value in SETTINGS.items()]
    succeed("train", folder, *options, "--output", out)
    succeed("predict", out, "--output", out / "again.csv")
    succeed("evaluate", out)
    return numbers(pyarrow.csv.read_csv(out / "again.csv"))


def by_estimator(folder, out):
    dataset = load(folder)
    kind = LONGNNRegressor if dataset.task == "regression" else LONGNNClassifier
    options = {"placement": "features"}
    given = {k: v for k, v in SETTINGS.items() if k not in options}
    estimator = kind(**given, model_options=options).fit(dataset)
    estimator.score(dataset, TEST)  # changes nothing, and so does a look at labels
    found = estimator.predict() if kind is LONGNNRegressor else estimator.predict_proba()[:, 0]
    again = estimator.predict(dataset) if kind is LONGNNRegressor else None
    assert again is None or np.array_equal(again, found)
    return found


DOORS = [in_memory, on_disk, by_command, by_estimator]


@pytest.mark.parametrize("door", DOORS)
def test_no_answer_of_a_test_node_changes_any_prediction(door, tmp_path):
    """Neither its own nor another's; and without known answers predictions would be worse."""
    y = answers()
    moved = np.where(TEST, y + 5, y)
    before, after = (
        door(write(tmp_path / name, labels), tmp_path / f"run {name}")
        for name, labels in (("as it is", y), ("moved", moved))
    )
    np.testing.assert_array_equal(before, after)
    assert np.square(before - y)[TEST].mean() < 0.5 * y[TEST].var()  # columns alone know nothing


@pytest.mark.parametrize(("memory", "task"), [(None, "regression"), (1, "classification")])
def test_permuted_answers_teach_nothing(memory, task, tmp_path):
    """Over draws known answers are mostly not used; where chance says so they cost little."""
    costs, used = [], 0
    for seed in range(4):
        y = np.random.default_rng(seed).permutation(answers(task))
        folder = write(tmp_path / f"{seed}", y)
        run = longnn.train(folder, SETTINGS, memory=memory, cache=tmp_path / "cache")
        used += run.trained.known[0].used
        truth = y if task == "regression" else 1 - y
        with_them, without = (
            np.square(numbers(pyarrow.concat_tables(tables)) - truth)[TEST].mean()
            for tables in (run.tables(), run.tables(known_answers="none"))
        )
        costs.append((with_them - without) / truth[TEST].var())
    assert used <= 1
    assert -0.05 < np.mean(costs) < 0.1


@pytest.fixture(scope="module", params=["memory", "disk"])
def run(request, tmp_path_factory):
    """A run that uses known answers."""
    place = tmp_path_factory.mktemp("street")
    folder = write(place / "street", answers())
    options = {"memory": 1, "cache": place / "cache"} if request.param == "disk" else {}
    return longnn.train(folder, SETTINGS, place / "run", **options)


def test_scores_of_a_loaded_run_are_those_it_had(run):
    """In the run's own graph its own answers are known, and no label of a test node."""
    again = longnn.load_run(run.folder, cache=run.folder.parent / "cache")
    scores = again.evaluate()[0][0]["test"]
    assert scores == pytest.approx(run.record.repeats[0].scores["test"], abs=1e-4)
    assert "run's graph" in again.known


def test_the_other_backing_hears_the_same(run, tmp_path):
    """A graph is recognised wherever it is, and its known answers change as much."""
    source, by_rows = run.record.data.source["graph"], run.dataset.backing.by_rows
    other = as_dataset(source, None, None if by_rows else 1, Ranks(), None, tmp_path)
    assert other.backing.by_rows != by_rows
    found = numbers(run.predict(other))
    assert "run's graph" in run.known
    np.testing.assert_allclose(found, numbers(run.predictions()), atol=1e-3)


def test_a_model_that_says_the_same_of_all_is_recognised():
    """Its predictions differ by rounding alone, which is no other graph."""
    from longnn.training._known import Rests, Told

    said = torch.full((40, 1), 0.1)
    told = Told(tuple(map(str, range(40))), Rests(said, torch.zeros(40, dtype=torch.int64)), said)
    assert told.agrees(torch.arange(40), said * (1 + 1e-6))
    assert not told.agrees(torch.arange(40), said * 1.1)


def test_an_answer_of_another_graph_is_not_told_to_its_own_node(run, tmp_path):
    """Labels of a new file correct its other nodes, and the estimator uses none of them."""
    y = answers()
    place = 7
    moved = y.copy()
    moved[place] += 5
    other, changed = (
        load(write(tmp_path / name, labels, seed=9)) for name, labels in (("a", y), ("b", moved))
    )
    before, after = (numbers(run.predict(one, known_answers="file")) for one in (other, changed))
    assert "this graph" in run.known
    assert after[place] == pytest.approx(before[place], abs=1e-3)
    assert np.abs(after - before).max() > 0.1
    estimator = run.estimator
    np.testing.assert_array_equal(estimator.predict(other), estimator.predict(changed))
    without = numbers(run.predict(other, known_answers="none"))
    np.testing.assert_allclose(estimator.predict(other), without, atol=1e-6)


def test_explanations_add_up(run):
    """Value = models + known answers, and these are the sum of what each node adds."""
    ids = ["house 3", "house 8", "house 0"]  # of the test, training and training nodes
    explained = run.explain(ids)
    predicted = dict(zip(run.dataset.ids, run.predicted[0].tolist(), strict=True))
    for e in explained.nodes:
        assert e.score + e.change == pytest.approx(predicted[e.node], abs=1e-4)
        assert e.change == pytest.approx(e.known.contribution.sum(), abs=1e-4)
        rings = sum(total for _, total in e.known.rings.values())
        assert rings == pytest.approx(e.known.contribution.sum())
        assert e.node not in e.known.sources
        assert not {f"house {i}" for i in np.flatnonzero(TEST)} & set(e.known.sources)
    assert abs(explained[0].change) > 0.05
    near = explained[0].known
    assert near.distance[near.order[0]] == 1
    assert "known answers then adds" in explained.why(0)
    (e,) = run.explain(ids[:1], known="none").nodes
    assert (e.change, e.known) == (0.0, None)
    table = explained.arrow()["known"].to_pylist()
    total = sum(row["contribution"] for row in table if row["node"] == ids[0])
    assert total == pytest.approx(explained[0].known.contribution.sum())
    assert "known answers" in " ".join(run.explain().notes)


@pytest.mark.parametrize(
    "task", ["regression", pytest.param("classification", marks=pytest.mark.slow)]
)
def test_the_record_says_how_far_away_known_answers_count(task, tmp_path, monkeypatch):
    """By step what explanations have by node; the figure draws it from the record alone."""
    monkeypatch.setattr("longnn.description.ASKED", NODES)
    folder = write(tmp_path / "street", answers(task))
    precision = {"regression": "float32", "classification": "float64"}[task]
    run = longnn.train(folder, {**SETTINGS, "precision": precision}, tmp_path / "run")
    told, test = run.trained.told[0], [f"house {i}" for i in np.flatnonzero(TEST)]
    rest = dict(zip(told.ids, told.rests.r[:, 0].tolist(), strict=True))
    weights, counts = np.zeros((2, 7)), np.zeros(7)
    first = {"output": run.trained.classes[0]} if task == "classification" else {}
    for e in run.explain(test, **first).nodes:
        for name, d, part in zip(
            e.known.sources, e.known.distance, e.known.contribution, strict=True
        ):
            weight, d = part / rest[name], min(d, 6)
            weights[int(weight < 0), d] += abs(weight)
            counts[d] += 1 / len(test)
    rings = RunRecord.read(run.folder).repeats[0].known_rings
    assert rings.nodes == len(test)
    found = np.stack([rings.alike, rings.opposed])
    np.testing.assert_allclose(found, weights[:, 1:] / weights.sum(), atol=1e-4)
    np.testing.assert_allclose(rings.answers, counts[1:])
    heights = [bar.get_height() for bar in run.figures.known().axes[0].patches]
    np.testing.assert_allclose(heights, 100 * np.concatenate([rings.alike, -rings.opposed]))
    (plate,) = [p for p in plates(run.record) if p.name == "known_rings"]
    assert f"distance: {100 * found.sum(0)[0]:.0f} % at 1," in plate.alt
    assert f"Means over {len(test)} test nodes" in plate.caption


def test_where_known_answers_are_not_used_none_are_drawn(tmp_path):
    run = longnn.train(write(tmp_path / "a", answers()), {**SETTINGS, "known_answers": "none"})
    assert run.record.repeats[0].known_rings is None
    with pytest.raises(ValueError, match="a run that uses known answers"):
        run.figures.known()


def test_the_command_explains_and_the_explorer_shows_it(run, tmp_path):
    disk = run.dataset.backing.by_rows
    again = ["--memory", "1", "--cache", run.folder.parent / "cache"] if disk else []
    text = succeed("explain", run.folder, "house 3", "--html", tmp_path / "why.html", *again)
    assert "known answer of" in text
    assert "Known answers by distance" in (tmp_path / "why.html").read_text(encoding="utf-8")
    text = succeed("explain", run.folder, "house 3", "--known-answers", "none", *again)
    assert "known answer" not in text
    alone = (
        "predict",
        run.folder,
        "--known-answers",
        "none",
        "--output",
        tmp_path / "p.csv",
        *again,
    )
    assert "too narrow" in longnn_command(*alone).stderr
    page = collect([run])
    assert page["runs"][0]["change"]["shape"] == [NODES, 1]
    assert "known_answers among auto, run" in fail(
        "predict", run.folder, "--known-answers", "all", "--output", tmp_path / "p.csv", *again
    )


def test_a_program_knows_no_answers(run, tmp_path):
    from longnn.runs._export import describe_program

    assert "not in the program" in describe_program(run.trained)["known_answers"]
    result = succeed("export", run.folder, tmp_path / "m.pt2")
    assert "call" in result


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_through_every_door(run, coverage):
    """Those of the estimator are those of the tables, on both backings and of new graphs."""
    table = run.predictions(coverage=coverage)
    wanted = np.stack([table["low"], table["high"]], 1)
    found = run.estimator.predict_interval(run.dataset, coverage)
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    covered = ((found[:, 0] <= answers()) & (answers() <= found[:, 1]))[TEST].mean()
    assert covered == pytest.approx(coverage, abs=0.15)
    if coverage == 0.9:
        assert run.record.repeats[0].covered.share == pytest.approx(covered)
        assert run.record.repeats[0].covered.size == pytest.approx(
            np.diff(found[TEST]).mean(), rel=1e-4
        )


def test_sets_of_the_estimator():
    dataset = classes_on_a_street()
    estimator = LONGNNClassifier(preset="fast", epochs=6, coverage=0.8).fit(dataset)
    sets = estimator.predict_set()
    assert sets.shape == (NODES, 2)
    assert sets.dtype == bool
    predicted = np.searchsorted(estimator.classes_, estimator.predict())
    assert sets[np.arange(NODES), predicted].all()
    assert (estimator.predict_set([5, 3], 0.99) >= sets[[5, 3]]).all()
    with pytest.raises(ValueError, match="coverage between 0 and 1"):
        estimator.predict_set(coverage=1.5)


def classes_on_a_street(**changes):
    from tests.training.test_known import street

    return street(NODES, task="classification", **changes)


def test_repeats_on_one_split_are_runs_not_splits(tmp_path):
    """The interval is over the test nodes that all share, and words say so."""
    folder = write(tmp_path / "street", answers())
    run = longnn.train(folder, {**SETTINGS, "repeat": 3, "epochs": 2})
    score = run.record.score()
    assert score.over_nodes
    assert score.low < score.mean < score.high
    lines = "\n".join(longnn.report.text_summary(run.record))
    assert "3 runs on one own split" in lines
    assert "3 own splits" not in lines
    assert "over the test nodes" in lines
    assert "The split was given, not drawn" in lines
    assert json.loads(json.dumps(run.record.to_dict()))["summary"]["test"]["r2"]["over_nodes"]
    drawn = longnn.train(folder, {**SETTINGS, "repeat": 2, "epochs": 2, "split": "stratified"})
    assert not drawn.record.score().over_nodes
    assert "The split was given" not in "\n".join(longnn.report.text_summary(drawn.record))


KINDS = {
    "arcs": {"directed": True},
    "weights": {"weight_column": "weight"},
    "types": {"type_column": "kind"},
    "several targets": {"label_column": ("label", "other")},
    "several labels": {"label_column": ("tall", "short")},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_graph_uses_known_answers(kind):
    """Along arcs and against them, of each target and label its own; explained, they add up."""
    y, ids = answers(), [f"house {i}" for i in range(NODES)]
    source, target = ring(NODES)
    keep = source < target
    edges = {"source": [ids[i] for i in source[keep]], "target": [ids[i] for i in target[keep]]}
    edges |= {"weight": np.arange(int(keep.sum())) % 3 + 1.0}
    edges |= {"kind": ["road" if i % 2 else "river" for i in range(int(keep.sum()))]}
    nodes = {"id": ids, "a": np.random.default_rng(0).normal(size=NODES)}
    several = kind.startswith("several")
    if kind == "several labels":
        nodes |= {"tall": (y > 0).astype(int), "short": (np.roll(y, 9) < 0).astype(int)}
    else:
        nodes |= {"label": y} | ({"other": 100 * y[::-1]} if several else {})
    used = {"source", "target", KINDS[kind].get("weight_column"), KINDS[kind].get("type_column")}
    table = pyarrow.table({name: values for name, values in edges.items() if name in used})
    graph = from_pandas(table, pyarrow.table(nodes), name="street", **KINDS[kind])
    run = longnn.train(graph, {**SETTINGS, "placement": "hidden"})
    (filters,) = run.trained.known
    assert [any(row) for row in filters.coefficients] == [True] * (1 + several)
    table = run.predictions(coverage=0.8)
    assert any(name.startswith(("low", "plausible")) for name in table.column_names)
    if kind != "types":  # these are not explained
        (e,) = run.explain(["house 11"]).nodes
        assert e.change == pytest.approx(e.known.contribution.sum(), abs=1e-4)
        assert e.change != 0
