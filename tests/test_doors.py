"""One answer through every door: command and Python, in memory and on disk, for every task.

A table of 80 nodes is trained on by the command, and by Python with the same words. What each door
says must be what the other says, and what the run already knows of itself.
"""

import json

import numpy as np
import pandas
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch

import longnn
from longnn.data import Source, from_pandas, load
from longnn.runs._export import Program
from tests.commands import succeed, succeed_json, without_report

NODES = 80
LABELS = {
    "two classes": "team",
    "rare class": "fraud",
    "many classes": "county",
    "numbers": "price",
    "several labels": "likes_tea,likes_rum",
}
HEADLINES = dict(zip(LABELS, ["accuracy", "average_precision", "accuracy", "r2"], strict=False))
HEADLINES["several labels"] = "average_precision"
#: Edges of this task are arcs.
ARCS = "many classes"
SETTINGS = {"epochs": 4, "degree": 2, "placement": "features", "baselines": False}
#: Compiling a program takes seconds: of the others, what is compiled is asked.
EXPORTED = {("two classes", "memory"), ("numbers", "disk")}


def write_table(folder, seed=0):
    """People with two numbers and a kind, answers of every task, and a split of their own."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    x, y, kind = *rng.normal(size=(2, NODES)).round(3), rng.integers(3, size=NODES)
    columns = {
        "id": [f"p{i}" for i in range(NODES)],
        "x": x,
        "y": y,
        "kind": [f"k{k}" for k in kind],
        "team": np.where(x + y > 0, "red", "blue"),
        "fraud": np.where(np.arange(NODES) % 10 == 3, "yes", "no"),
        "county": [f"c{(k + i) % 5}" for i, k in enumerate(kind)],
        "price": (3 * x + kind).round(3),
        "likes_tea": (x > 0).astype(int),
        "likes_rum": (y > 0.3).astype(int),
        "split": [("train", "train", "val", "test")[i // 10 % 4] for i in range(NODES)],
    }
    pyarrow.csv.write_csv(pyarrow.table(columns), folder / "nodes.csv")
    ends = rng.integers(NODES, size=(2, 4 * NODES))
    ends = ends[:, ends[0] != ends[1]]
    edges = {"source": [f"p{i}" for i in ends[0]], "target": [f"p{i}" for i in ends[1]]}
    pyarrow.csv.write_csv(pyarrow.table(edges), folder / "edges.csv")
    return folder


def answer(path):
    """The numbers of a table of predictions, and what is predicted."""
    table = pyarrow.parquet.read_table(path) if str(path).endswith("parquet") else path
    names = [n for n in table.column_names if n.startswith(("p_", "predicted"))]
    return {name: table[name].to_pylist() for name in names}


def assert_same(one, other, tolerance=0.0):
    assert one.keys() == other.keys()
    for name, values in one.items():
        if isinstance(values[0], str):
            assert values == other[name]
        else:
            np.testing.assert_allclose(values, other[name], atol=tolerance, rtol=tolerance)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The table, another one of the same columns, a cache and a place for runs."""
    root = tmp_path_factory.mktemp("doors")
    return write_table(root / "old"), write_table(root / "new", seed=1), root


@pytest.fixture(scope="module", params=LABELS)
def task(request):
    return request.param


@pytest.fixture(scope="module", params=["memory", "disk"])
def backing(request):
    return request.param


@pytest.fixture(scope="module")
def options(task):
    """The columns that say what to learn, for the command and for Python; and what edges are."""
    columns = {"label_column": LABELS[task].split(","), "feature_columns": ["x", "y", "kind"]}
    return columns | ({"directed": True} if task == ARCS else {})


def words(options):
    texts = {k: v if v is True else ",".join(v) for k, v in options.items()}
    return [w for k, v in texts.items() for w in ("--data", f"{k}={v}")]


@pytest.fixture(scope="module")
def run(folders, task, backing, options):
    """A run made by the command."""
    old, _, root = folders
    folder = root / f"{task}-{backing}".replace(" ", "-")
    given = [w for k, v in SETTINGS.items() for w in ("--set", f"{k}={json.dumps(v)}")]
    disk = ["--memory", "1K"] if backing == "disk" else []
    with without_report():
        succeed(
            *("train", old, *words(options), "--preset", "fast", *given, *disk),
            *("--device", "cpu", "--cache", root / "cache", "--output", folder, "--quiet"),
        )
    return longnn.load_run(folder)


def test_train(run, folders, task, backing, options):
    old, _, root = folders
    source = Source.resolve(old, options=options)
    memory = 1 << 10 if backing == "disk" else None
    table = {**SETTINGS, "preset": "fast", "device": "cpu"}
    here = longnn.train(source, table, memory=memory, cache=root / "cache")
    assert here.record.metric == run.record.metric == HEADLINES[task]
    assert [r.scores for r in here.record.repeats] == [r.scores for r in run.record.repeats]
    assert_same(answer(here.predictions()), answer(run.folder / "predictions.parquet"))
    frames = [pandas.read_csv(old / f"{name}.csv") for name in ("edges", "nodes")]
    assert (
        from_pandas(*frames, name=old.name, **options).fingerprint()
        == load(old, **options).fingerprint()
    )


def test_estimator(run, folders, task, backing, options):
    """Fitted by itself in memory; that of the run on disk."""
    graph = load(folders[0], **options)
    estimator = run.estimator
    if backing == "memory":
        kind = longnn.LONGNNRegressor if task == "numbers" else longnn.LONGNNClassifier
        table = {"epochs": 4, "degree": 2, "model_options": {"placement": "features"}}
        estimator = kind(**table, preset="fast", device="cpu").fit(graph)
    ask = estimator.predict if task == "numbers" else estimator.predict_proba
    expected = run.trained.predict(run.trained.problem(graph))
    np.testing.assert_array_equal(ask(graph), expected.numpy())


def test_evaluate(run):
    said = succeed_json("evaluate", run.folder)
    (scores,), _ = run.evaluate()
    assert said["repeats"] == [{"seed": 0, "scores": scores}]
    for part in ("train", "val", "test"):
        assert scores[part] == pytest.approx(run.record.repeats[0].scores[part], abs=1e-6)


def test_predict(run, folders, options, tmp_path):
    """Its own graph as it was left in the folder, and another one through both doors."""
    old, new, _ = folders
    kept = answer(run.folder / "predictions.parquet")
    for graph in (old, new):
        path = tmp_path / f"{graph.name}.csv"
        succeed("predict", run.folder, graph, *words(options), "--output", path)
        said = answer(path.with_suffix(".parquet"))
        here = answer(run.predict(load(graph, **options)))
        assert_same(said, here, 1e-6)
        if graph is old:
            assert_same(said, kept, 1e-5)


def test_explain(run):
    said = succeed_json("explain", run.folder, "p3", "--no-features")
    here = run.explain(["p3"], features=False).arrow()
    for name in ("summary", "contributions"):
        assert said[name] == json.loads(json.dumps(here[name].to_pylist()))
    assert said["summary"][0]["node"] == "p3"


def test_export(run, folders, task, backing, options, tmp_path):
    old, _, _ = folders
    graph = load(old, **options)
    weight = torch.ones(graph.data.edge_index.shape[1])
    program = Program(run.trained)
    if (task, backing) in EXPORTED:
        succeed("export", run.folder, tmp_path / "run.pt2")
        program = torch.export.load(tmp_path / "run.pt2").module()
    said = program(graph.data.x, graph.data.edge_index, weight)
    expected = run.trained.predict(run.trained.problem(graph))
    torch.testing.assert_close(said.reshape(expected.shape), expected, atol=1e-5, rtol=1e-4)


def test_info(run, folders, task, options):
    said = succeed_json("info", folders[0], *words(options))
    card = run.record.data.card
    for key in ("nodes", "edges", "features", "degree_max", "class_counts"):
        assert said[key] == card[key], key
    assert said["task"] == run.record.data.task
