"""Sentences about what went wrong: each is there when it should be, and only then."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longnn.records import BaselineRecord, RunRecord, Summary
from longnn.report import text_summary
from longnn.report._checks import best_baseline, checks, class_rows, graph_text
from longnn.report._page import write_report
from longnn.report._words import headline
from tests.report.examples import write_run


@pytest.fixture
def run(tmp_path: Path) -> RunRecord:
    """Three repeats on seven classes, with nothing wrong."""
    folder = write_run(tmp_path / "run", repeats=3, confusion=True)
    return changed(RunRecord.read(folder), best_epoch=120, stopped="patience")


def changed(run: RunRecord, which: int | None = None, **values: Any) -> RunRecord:
    """The run with values of one repeat, or of all, replaced."""
    repeats = tuple(
        dataclasses.replace(repeat, **values) if which in (None, i) else repeat
        for i, repeat in enumerate(run.repeats)
    )
    return dataclasses.replace(run, repeats=repeats)


def beside(run: RunRecord, mean: float, low: float, high: float, count: int = 3) -> RunRecord:
    """The run with two baselines, the better one this far behind."""
    scores = tuple({"test": {run.metric: 0.5}} for _ in run.repeats)
    far = {run.metric: Summary(0.4, 0.3, 0.5, 0.1, count)}
    near = {run.metric: Summary(mean, low, high, 0.1, count)}
    half = {run.metric: Summary(0.5, 0.4, 0.6, 0.1, count)}
    found = (
        BaselineRecord("constant", "the largest class", scores, half, far),
        BaselineRecord("mlp", "an MLP without the graph", scores, half, near),
    )
    return dataclasses.replace(run, baselines=found)


def only(run: RunRecord) -> str:
    (sentence,) = checks(run)
    return sentence


def test_nothing_is_said_where_nothing_is_wrong(run: RunRecord) -> None:
    assert checks(beside(run, 0.1, 0.05, 0.15)) == []


def test_the_very_start(run: RunRecord) -> None:
    assert only(changed(run, best_epoch=2)).startswith("The epoch that was kept is at the very")
    most = changed(changed(run, 0, best_epoch=1), 1, best_epoch=3)
    assert only(most).startswith("In 2 of 3 repeats, the epoch that was kept")
    assert checks(changed(run, 0, best_epoch=1)) == []  # one of three may happen


def test_the_limit(run: RunRecord) -> None:
    limit = run.config["epochs"]
    late = changed(run, stopped="epochs", best_epoch=limit - 1, epochs=limit)
    assert f"its {limit} epochs were over. Allow more: --set epochs={3 * limit}" in only(late)
    assert checks(changed(late, best_epoch=limit // 2)) == []


def test_divergence(run: RunRecord) -> None:
    assert only(changed(run, 1, stopped="diverged")).startswith("In 1 of 3 repeats, training div")


def test_a_baseline_that_is_better(run: RunRecord) -> None:
    assert only(beside(run, -0.1, -0.2, -0.05)).startswith("An MLP without the graph is better")
    assert "may be better" in only(beside(run, -0.1, -0.2, 0.05))
    assert "is better on this split" in only(beside(run, -0.1, -0.1, -0.1, count=1))
    assert checks(beside(run, -0.0004, -0.0004, -0.0004, count=1)) == []  # even as it is printed


def test_what_the_graph_adds(run: RunRecord) -> None:
    assert graph_text(run) == ""
    better = beside(run, 0.1, 0.05, 0.15)
    assert best_baseline(better).name == "mlp"  # type: ignore[union-attr]
    assert graph_text(better) == (
        "The graph adds 10.0 points (95 % interval 5.0 to 15.0) of accuracy over the best model "
        "without the graph, an MLP (50.0 %)."
    )
    assert "adds nothing that is certain" in graph_text(beside(run, 0.1, -0.05, 0.15))
    assert "does not help" in graph_text(beside(run, -0.1, -0.15, -0.05))
    assert "(one split)" in graph_text(beside(run, 0.1, 0.1, 0.1, count=1))
    assert graph_text(beside(run, 0.0003, -0.02, 0.03)) == (
        "The graph adds nothing here: an MLP, without it, also has 50.0 %."
    )


def test_where_less_is_better_signs_turn(run: RunRecord) -> None:
    errors = dataclasses.replace(run, metric="mae")
    better = beside(errors, -0.1, -0.15, -0.05)
    better = dataclasses.replace(better, baselines=better.baselines[1:])
    assert "adds 0.100" in graph_text(better)


def test_one_class_alone(run: RunRecord) -> None:
    alone = np.zeros((7, 7))
    alone[:, 3] = 20
    assert "Every test node was predicted to be '3'" in only(changed(run, confusion=alone))


def test_validation_far_from_test(run: RunRecord) -> None:
    val = {"accuracy": Summary(0.6, 0.6, 0.6, 0, 3)}
    apart = dataclasses.replace(run, summary={**run.summary, "val": val})
    assert "far apart (60.0 % and" in only(apart)
    small = changed(apart, split=dataclasses.replace(run.repeats[0].split, val=6, test=40))
    assert checks(small) == []  # that may be chance


def test_few_test_nodes_are_counted(run: RunRecord) -> None:
    few = np.diag([2.0, 2, 2, 2, 1, 0, 0])
    few[5, 0] = 1
    split = dataclasses.replace(run.repeats[0].split, test=10)
    one = dataclasses.replace(run, repeats=run.repeats[:1])
    one = changed(one, confusion=few, split=split)
    assert "test nodes 9 of 10 right" in headline(one)
    assert "only 10 test nodes: one more or less" in only(one)


def test_unequal_classes(run: RunRecord) -> None:
    card = {**run.data.card, "class_counts": {"ok": 95, "fraud": 5}}
    data = dataclasses.replace(run.data, card=card)
    rare = dataclasses.replace(run, data=data)
    assert only(rare).startswith("95 % of the labelled nodes are 'ok'.")


def test_few_test_nodes_of_the_rarer_class(run: RunRecord) -> None:
    data = dataclasses.replace(run.data, classes=("ok", "spam"))
    rare = dataclasses.replace(run, data=data, metric="average_precision")
    rare = changed(rare, confusion=np.array([[90.0, 1], [2, 3]]))
    assert only(rare).startswith("Only 5 test nodes are 'spam': the average precision is rough.")
    assert checks(changed(rare, confusion=np.array([[90.0, 1], [2, 8]]))) == []


def test_rows_of_classes_are_those_of_scikit_learn(run: RunRecord) -> None:
    from sklearn.metrics import precision_recall_fscore_support

    counts = np.random.default_rng(0).integers(0, 9, (4, 4))
    counts[3] = 0  # no test node
    true = np.repeat(np.repeat(np.arange(4), 4), counts.reshape(-1))
    chosen = np.repeat(np.tile(np.arange(4), 4), counts.reshape(-1))
    one = changed(dataclasses.replace(run, repeats=run.repeats[:1]), confusion=counts.astype(float))
    rows = class_rows(one)
    precision, recall, f1, nodes = precision_recall_fscore_support(
        true, chosen, labels=range(4), zero_division=0
    )
    for k, (_, there, *found) in enumerate(rows[:3]):
        assert there == nodes[k]
        np.testing.assert_allclose(found, [recall[k], precision[k], f1[k]])
    assert np.isnan(rows[3][2])


def test_terminal_and_page_say_the_same(run: RunRecord) -> None:
    bad = changed(beside(run, -0.1, -0.2, -0.05), best_epoch=1)
    text = "\n".join(text_summary(bad))
    page = write_report(bad).read_text()
    for sentence in checks(bad):
        assert f"check: {sentence}" in text
        assert sentence.split("(")[0] in page
    assert "An MLP" in page or "an MLP" in page
    assert "found (recall)" in page
