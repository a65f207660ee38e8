"""Whole stories: a stranger's files become predictions, by command and in Python, alike.

Each story writes files as people have them, trains by the command line and in Python, compares
every number of the predictions, and uses the model on a second graph of the same kind.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

import longnn
from longnn.data import from_pandas
from longnn.records import RunRecord
from tests.commands import succeed
from tests.stories import tables

QUICK = {"epochs": 20, "device": "cpu"}


def options(table: dict[str, Any], name: str) -> list[str]:
    return [part for key, value in table.items() for part in (name, f"{key}={value}")]


def told(folder: Path, run: Path, data: dict[str, str], settings: dict[str, Any]) -> pd.DataFrame:
    """Train by the command, and read what it predicts."""
    graph = [folder, *options(data, "--data")]
    succeed("train", *graph, "--output", run, *options(settings, "--set"))
    assert (run / "report.html").exists()
    return pq.read_table(run / "predictions.parquet").to_pandas()


def listed(data: dict[str, str]) -> dict[str, Any]:
    """Options of the command as Python has them."""
    many = ("text_columns", "label_column")
    return {k: v.split(",") if k in many else v for k, v in data.items()}


def same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """Every number and name of two tables of predictions."""
    assert list(one.columns) == list(other.columns)
    for column in one.columns:
        if pd.api.types.is_float_dtype(one[column]):
            np.testing.assert_allclose(one[column], other[column], rtol=1e-6, err_msg=column)
        else:
            assert one[column].astype(str).tolist() == other[column].astype(str).tolist(), column


def story(
    tmp_path: Path, make: Any, data: dict[str, str], settings: dict[str, Any], **writing: Any
) -> tuple[longnn.runs.Run, RunRecord]:
    """Files to predictions by both ways, and the model on another graph by both ways.

    Returns the run in Python, which leaves out the baselines, and the record of the command.
    """
    edges, nodes = make()
    folder, out = tables.write(tmp_path / "graph", edges, nodes, **writing), tmp_path / "run"
    by_command = told(folder, out, data, settings)
    frame = from_pandas(edges, nodes, name="graph", **listed(data))
    run = longnn.train(frame, {**settings, "baselines": False})
    same(by_command, run.predictions().to_pandas())
    new_edges, new_nodes = make(seed=1)
    other = tables.write(tmp_path / "other", new_edges, new_nodes, **writing)
    succeed("predict", out, other, "--output", tmp_path / "new.csv")
    frame = from_pandas(new_edges, new_nodes, name="other", **listed(data))
    same(
        pq.read_table(tmp_path / "new.parquet").to_pandas(),
        longnn.load_run(out).predict(frame).to_pandas(),
    )
    evaluated = json.loads(succeed("evaluate", out, "--json"))["summary"]["test"]
    for metric, summary in run.record.summary["test"].items():
        assert evaluated[metric]["mean"] == pytest.approx(summary.mean, rel=1e-6)
    return run, RunRecord.read(out)


def test_frauds_among_accounts(tmp_path: Path) -> None:
    """Directed weighted transfers, one fraud in twenty, gaps, dates, countries, words for yes."""
    settings = {"preset": "fast", "repeat": 2, "epochs": 60, "device": "cpu"}
    run, record = story(tmp_path, tables.fraud, {}, settings)
    assert record.metric == "average_precision"
    linear = next(b for b in record.baselines if b.name == "linear")
    assert linear.ahead["average_precision"].low > 0  # found where logistic regression does not
    assert {"opened", "balance", "country"} <= {row[0] for row in record.data.columns}
    y, test = run.dataset.data.y, run.splits[0].test
    x = np.nan_to_num(run.trained.problem(run.dataset).features.values.numpy())
    model = LogisticRegression(max_iter=1000).fit(x[run.splits[0].train], y[run.splits[0].train])
    alone = average_precision_score(y[test] == 0, model.predict_proba(x[test])[:, 0])
    assert record.repeats[0].scores["test"]["average_precision"] > alone


def test_prices_of_houses(tmp_path: Path) -> None:
    """Decimal commas and semicolons, a gap here and there; a quantity to predict."""
    data = {"label_column": "price"}
    settings = {"preset": "fast", "epochs": 60, "device": "cpu"}
    run, _ = story(tmp_path, tables.houses, data, settings, sep=";", decimal=",")
    assert run.record.metric == "r2"
    assert run.record.summary["test"]["r2"].mean > 0.8
    split = run.splits[0]
    estimator = longnn.LONGNNRegressor(**settings)
    estimator.fit(run.dataset, train_mask=split.train.numpy(), val_mask=split.val.numpy())
    np.testing.assert_allclose(estimator.predict(), run.predicted[0], rtol=1e-6)


def test_fields_of_papers(tmp_path: Path) -> None:
    """A column of text."""
    run, _ = story(tmp_path, tables.papers, {"text_columns": "abstract"}, QUICK)
    assert any("quantum" in name for name in run.dataset.feature_names)
    assert run.record.summary["test"]["accuracy"].mean > 0.7


def test_genres_of_films(tmp_path: Path) -> None:
    """Several labels of yes or no, some of them unknown."""
    run, record = story(tmp_path, tables.films, {"label_column": "comedy,drama,action"}, QUICK)
    assert run.dataset.task == "multilabel"
    assert [b.ahead["average_precision"].mean > 0 for b in record.baselines] == [True] * 3


@pytest.mark.parametrize("count", [5_000, pytest.param(50_000, marks=pytest.mark.slow)])
def test_thousands_of_nodes_in_parquet(count: int, tmp_path: Path) -> None:
    edges, nodes = tables.large(count)
    folder = tmp_path / "graph"
    folder.mkdir()
    edges.to_parquet(folder / "edges.parquet")
    nodes.to_parquet(folder / "nodes.parquet")
    quick = {"epochs": 3, "degree": 3, "device": "cpu"}
    by_command = told(folder, tmp_path / "run", {}, quick)
    run = longnn.train(from_pandas(edges, nodes, name="graph"), quick)
    same(by_command, run.predictions().to_pandas())
    assert len(by_command) == count
