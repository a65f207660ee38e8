"""A model trained on one table predicts on another: by command, in Python, after saving."""

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from longnn.data import DataError, load
from longnn.runs import load_run
from longnn.training import Trained
from tests.commands import FAST, fail, succeed, without_report
from tests.helpers import changing

TOPICS = {"cat": "purring whiskers soft", "dog": "barking tail loyal"}


def write_graph(folder: Path, rows: list[dict[str, object]]) -> Path:
    folder.mkdir()
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    edges = [f"n{i},n{(i + step) % len(rows)}" for i in range(len(rows)) for step in (1, 4)]
    (folder / "edges.csv").write_text("source,target\n" + "\n".join(edges) + "\n")
    return folder


def make_rows(count: int, seed: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for i in range(count):
        label = "cat" if rng.random() < 0.5 else "dog"
        rows.append(
            {
                "id": f"n{i}",
                "weight": "" if rng.random() < 0.2 else round(float(rng.normal(label == "dog")), 3),
                "city": rng.choice(["Paris", "Rome", "Oslo"]),
                "tame": rng.choice(["yes", "no"]),
                "seen": f"2024-0{rng.integers(1, 9)}-15",
                "about": rng.choice(TOPICS[label].split()) + " animal",
                "label": label,
            }
        )
    return rows


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run on one table; another has no gaps, new categories, another order, one more column."""
    folder = tmp_path_factory.mktemp("columns")
    first = write_graph(folder / "first", make_rows(60, 0))
    others = []
    for row in make_rows(12, 1):
        row |= {"weight": row["weight"] or 0.25, "city": "Lima", "new": len(others)}
        del row["label"]
        others.append(dict(reversed(row.items())))
    second = write_graph(folder / "second", others)
    run = folder / "run"
    graph = (first, "--data", "text_columns=about")
    with without_report():
        succeed("train", *graph, *FAST, "--output", run)
    return {"first": first, "second": second, "run": run}


def test_another_table_by_command_and_in_python(story: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "p.csv"
    succeed("predict", story["run"], story["second"], "--output", out)
    table = pyarrow.csv.read_csv(out)
    by_command = np.stack([table["p_cat"], table["p_dog"]], axis=1)
    run = load_run(story["run"])
    graph = load(story["second"], text_columns=["about"])
    np.testing.assert_allclose(run.estimator.predict_proba(graph), by_command, rtol=1e-6)
    assert table["id"].to_pylist() == list(graph.ids) == [f"n{i}" for i in range(12)]
    encoding = run.trained.encoding
    assert encoding is not None
    expected = encoding.apply(graph.columns)
    matched = run.trained.encode(graph)
    assert np.array_equal(matched.data.x.to_dense(), expected.to_dense())
    names = matched.feature_names
    assert {"weight missing", "city=Rome", "tame", "seen days", "about: tail"} <= set(names)
    assert matched.data.x[:, names.index("city=Rome")].sum() == 0


def test_a_missing_column_is_named(story: dict[str, Path], tmp_path: Path) -> None:
    rows = [{k: v for k, v in row.items() if k != "weight"} for row in make_rows(8, 2)]
    third = write_graph(tmp_path / "third", rows)
    message = fail("predict", story["run"], third, "--output", tmp_path / "p.csv")
    assert "missing column 'weight'; nodes.csv has city, tame, seen, about" in message
    rows = [row | {"weight": "heavy"} for row in make_rows(8, 2)]
    wrong = write_graph(tmp_path / "wrong", rows)
    message = fail("predict", story["run"], wrong, "--output", tmp_path / "p.csv")
    assert "nodes.csv, line 2, column 'weight': Expected a number (got 'heavy')" in message


def test_one_node_alone_can_be_predicted(story: dict[str, Path], tmp_path: Path) -> None:
    """Its own columns are all constant, and no word occurs twice: that does not matter."""
    one = tmp_path / "one"
    one.mkdir()
    row = make_rows(1, 3)[0]
    header, cells = ",".join(row), ",".join(map(str, row.values()))
    (one / "nodes.csv").write_text(f"{header}\n{cells}\n")
    (one / "edges.csv").write_text("source,target\nn0,n0\n")
    succeed("predict", story["run"], one, "--output", tmp_path / "p.csv")
    assert pyarrow.csv.read_csv(tmp_path / "p.csv").num_rows == 1


def test_weights_without_an_encoding_still_load(tmp_path: Path, no_report: None) -> None:
    """As files of earlier versions: columns of numbers, by name, in any order."""
    rows = [{"id": f"n{i}", "f": i % 5, "g": -i, "label": "ab"[i % 2]} for i in range(20)]
    run = tmp_path / "run"
    graph = write_graph(tmp_path / "graph", rows)
    succeed("train", graph, *FAST, "--output", run)
    path = run / "weights.safetensors"
    with changing(path) as (_, metadata):
        about = json.loads(metadata["about"])
        del about["encoding"]
        metadata["about"] = json.dumps(about)
    trained, _ = Trained.load(path)
    assert trained.encoding is None
    constant = write_graph(tmp_path / "other", [{"g": 3, "f": 2, "id": f"n{i}"} for i in range(6)])
    made = trained.encode(load(constant))
    assert made.feature_names == ("f", "g")
    assert made.data.x[0].tolist() == [2, 3]
    with pytest.raises(DataError, match="features the run was trained with"):
        trained.problem(
            load(write_graph(tmp_path / "none", [{"id": f"n{i}", "h": i} for i in range(6)]))
        )
