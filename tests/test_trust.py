"""What makes a score believable: baselines, calibration, curves, residuals; in the record too."""

import html
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import average_precision_score, precision_recall_curve
from torch_geometric.data import Data

import longnn
from longnn.config import Config
from longnn.data import NodeDataset, from_data
from longnn.data._synthetic import csbm
from longnn.description import make_bins
from longnn.records import RunRecord
from longnn.report import text_summary
from longnn.report._answer import graph_text
from longnn.rivals import predict_baseline
from longnn.training import Job
from tests.shifted import shifted_graph

FAST = {"epochs": 4, "degree": 2}


@pytest.fixture(scope="module")
def graph() -> NodeDataset:
    return csbm(num_nodes=120, num_features=10)


def relabelled(graph: NodeDataset, y: torch.Tensor, **options: object) -> NodeDataset:
    data = Data(x=graph.data.x, edge_index=graph.data.edge_index, y=y)
    return from_data(data, **options)


@pytest.fixture(scope="module")
def rare(graph: NodeDataset) -> NodeDataset:
    """One node in eight is of the second class."""
    return relabelled(graph, (torch.arange(120) % 8 == 0).long(), classes=("ok", "fraud"))


RIVALS = ["constant", "linear", "mlp", "trees", "neighbours"]


def test_a_run_has_baselines_on_its_own_splits(graph: NodeDataset) -> None:
    run = longnn.train(graph, {**FAST, "repeat": 2})
    record, split, y = run.record, run.splits[0], graph.data.y
    assert [b.name for b in record.baselines] == RIVALS
    assert all(len(b.scores) == 2 for b in record.baselines)
    largest = y[split.train].bincount().argmax()
    expected = (y[split.test] == largest).double().mean().item()
    assert record.baselines[0].scores[0]["test"]["accuracy"] == pytest.approx(expected)
    for baseline in record.baselines:
        gain = record.score().mean - baseline.summary["accuracy"].mean
        assert baseline.ahead["accuracy"].mean == pytest.approx(gain)


def test_baselines_can_be_left_out(graph: NodeDataset) -> None:
    assert longnn.train(graph, {**FAST, "baselines": False}).record.baselines == ()
    record = longnn.train(graph, {"epochs": 4, "model": "mlp"}).record
    assert [b.name for b in record.baselines] == ["constant", "linear", "trees", "neighbours"]


def test_what_the_graph_adds_compares_models_that_are_joined_alike(graph: NodeDataset) -> None:
    """Trees that are members are not trained again, and like is compared with like."""
    run = longnn.train(graph, {"epochs": 4, "preset": "default"})
    record = run.record
    assert [b.name for b in record.baselines] == [*RIVALS, "joined"]
    assert [b.name for b in record.baselines if b.uses_graph] == ["neighbours"]
    of = {m.name: m for m in record.repeats[0].members}
    assert record.baselines[3].scores[0]["test"]["accuracy"] == of["trees, own columns"].test
    ahead = record.baselines[-1].ahead[record.metric]
    assert ahead.low < ahead.high
    assert "joined by the same votes" in graph_text(record)


def test_the_mlp_is_trained_as_it_would_be_alone(graph: NodeDataset) -> None:
    beside = longnn.train(graph, {**FAST, "dropout": 0.2}).record.baselines[2]
    alone = longnn.train(graph, {"epochs": 4, "model": "mlp", "dropout": 0.2}).record
    assert beside.scores[0] == alone.repeats[0].scores


def test_linear_baselines_are_those_of_scikit_learn(graph: NodeDataset) -> None:
    split = longnn.data.make_split(graph)
    problem = Job(graph, [Config()], [split]).problem_of(0)
    x, train = graph.data.x.numpy(), split.train.numpy()
    theirs = LogisticRegression(max_iter=1000).fit(x[train], graph.data.y[train]).predict_proba(x)
    np.testing.assert_allclose(predict_baseline("linear", problem, split), theirs, atol=5e-3)
    numbers = relabelled(graph, graph.data.x[:, :2] @ torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
    problem = Job(numbers, [Config.from_dict({"scale": "none"})], [split]).problem_of(0)
    theirs = Ridge().fit(x[train], numbers.data.y[train]).predict(x)
    np.testing.assert_allclose(predict_baseline("linear", problem, split), theirs, atol=1e-3)


def test_calibration_error_by_hand() -> None:
    bins = make_bins(np.array([0.91, 0.99, 0.62, 0.68]), np.array([True, True, False, True]))
    assert bins.count.tolist() == [2, 2]
    assert bins.error == pytest.approx((abs(0.65 - 0.5) + abs(0.95 - 1)) / 2)


def test_calibration_lowers_the_error_of_a_model_that_is_too_sure() -> None:
    graph = csbm(num_nodes=400, num_features=200, phi=0.0)
    options = {"epochs": 60, "monitor": "accuracy", "dropout": 0.0, "input_dropout": 0.0}
    repeat = longnn.train(graph, {**options, "degree": 2, "baselines": False}).record.repeats[0]
    assert repeat.calibration is not None
    assert repeat.calibration.temperature > 1.1
    assert repeat.calibration.after.error < repeat.calibration.before.error


def test_class_frequencies_that_differ_are_said_once(tmp_path: Path) -> None:
    """On the command line, in the report and, in numbers, in the record; elsewhere not."""
    graph, config = shifted_graph(), {**FAST, "preset": "fast", "repeat": 2, "baselines": False}
    run = longnn.train(graph, config, tmp_path / "run")
    counts = [graph.data.y[mask].bincount() for mask in (run.splits[0].train, run.splits[0].val)]
    shares = [f"{100 * c[0] / c.sum():.0f} %" for c in counts]
    for repeat, readout in zip(run.record.repeats, run.trained.readouts, strict=True):
        assert repeat.shift is not None
        np.testing.assert_array_equal([repeat.shift.train, repeat.shift.val], np.stack(counts))
        assert repeat.shift.shift.tolist() == list(readout.shift)
    lines = "\n".join(text_summary(run.record))
    note = f"(class 'minus': {shares[0]} in training, {shares[1]} in validation); probabilities"
    assert lines.count(note) == lines.count("--set frequencies=train") == 1
    page = html.unescape((tmp_path / "run" / "report.html").read_text(encoding="utf-8"))
    assert page.count(note) == 1
    assert "the temperature and the shift of probabilities" in page
    shift = run.trained.readouts[0].shift
    assert f"{shift[1]:+.2f} for 'plus', {shift[0]:+.2f} for 'minus'. A difference" in page
    again = RunRecord.read(tmp_path / "run")
    assert again.repeats[0].to_dict() == run.record.repeats[0].to_dict()
    plain = longnn.train(graph, {**config, "frequencies": "train"}).record
    assert "shift" not in plain.repeats[0].to_dict()
    assert not [line for line in text_summary(plain) if "frequen" in line]


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
def test_one_split_has_an_interval_and_its_worst_errors(graph: NodeDataset, task: str) -> None:
    """Both are those of the predictions that are written."""
    noise = torch.rand(120, 2, generator=torch.Generator().manual_seed(0))
    y = {"classification": (noise[:, 0] < 0.4).long(), "regression": noise[:, 0]}
    given = relabelled(graph, y.get(task, (noise < 0.4).float()))
    run = longnn.train(given, {**FAST, "model": "lon", "baselines": False})
    score = run.record.score()
    assert score.low < score.mean < score.high
    table, worst = run.predictions().to_pandas(), run.record.repeats[0].worst
    table = table[table["set"] == "test"].set_index("id")
    assert len(worst) > 3
    assert [e.error for e in worst] == sorted((e.error for e in worst), reverse=True)
    for e in worst:
        row, what = table.loc[int(e.node)], f"_{e.what}" * (task == "multilabel")
        if task == "regression":
            assert e.error == pytest.approx(abs(row["predicted"] - row["label"]), rel=1e-5)
        elif task == "classification":
            assert (e.predicted, e.true) == (row["predicted"], row["label"])
            assert e.error == pytest.approx(1 - row[f"p_{e.true}"], abs=1e-6)
        else:
            assert (e.predicted == "yes") == row[f"predicted{what}"] != (e.true == "yes")
            assert e.error == pytest.approx(abs(row[f"p{what}"] - row[f"label{what}"]), abs=1e-6)
    if task == "regression":
        far = (table["predicted"] - table["label"]).abs().sort_values(ascending=False)
        assert [int(e.node) for e in worst] == far.index[:20].tolist()


def test_told_not_to_calibrate_it_does_not(graph: NodeDataset) -> None:
    run = longnn.train(graph, {**FAST, "calibrate": False, "baselines": False, "device": "cpu"})
    assert run.record.repeats[0].calibration.temperature == 1
    softmax = torch.softmax(run.trained.models[0].scores(*_inputs(run)), dim=1).detach()
    torch.testing.assert_close(run.predicted[0], softmax)


def _inputs(run: longnn.runs.Run) -> tuple[object, object]:
    problem = run.trained.problem(run.dataset)
    return problem.features, problem.operator


def test_where_a_class_is_rare_its_average_precision_is_the_headline(rare: NodeDataset) -> None:
    run = longnn.train(rare, {**FAST, "baselines": False})
    record, repeat = run.record, run.record.repeats[0]
    assert record.metric == "average_precision"
    test, y = run.splits[0].test, rare.data.y
    p = run.predicted[0][:, 1]
    found = average_precision_score(y[test], p[test])
    assert record.summary["test"]["average_precision"].mean == pytest.approx(found)
    assert repeat.threshold is not None
    chosen = (p >= repeat.threshold).long()
    assert repeat.scores["test"]["accuracy"] == pytest.approx(
        (chosen == y)[test].double().mean().item()
    )
    table = run.predictions().to_pydict()
    assert [name == "fraud" for name in table["predicted"]] == chosen.bool().tolist()
    assert set(table["threshold_fraud"]) == {repeat.threshold}
    curve = repeat.curve
    assert curve is not None
    assert curve.name == "fraud"
    precision, recall, _ = precision_recall_curve(y[test], p[test])
    np.testing.assert_allclose(curve.precision, precision)
    np.testing.assert_allclose(curve.recall, recall)


def test_residuals_are_those_of_the_test_nodes(graph: NodeDataset) -> None:
    numbers = relabelled(graph, graph.data.x[:, 0].clone())
    run = longnn.train(numbers, {**FAST, "baselines": False})
    residuals = run.record.repeats[0].residuals
    test = run.splits[0].test
    assert residuals is not None
    np.testing.assert_allclose(residuals.true, numbers.data.y[test], rtol=1e-6)
    np.testing.assert_allclose(residuals.predicted, run.predicted[0][test], rtol=1e-6)
    row = numbers.data.edge_index[0]
    np.testing.assert_allclose(residuals.degree, torch.bincount(row, minlength=120)[test])


def test_several_labels_are_scored_and_tabled(graph: NodeDataset) -> None:
    y = (graph.data.x[:, :2] > 0).float()
    y[0] = torch.nan
    options = {**FAST, "epochs": 60, "baselines": False}
    run = longnn.train(relabelled(graph, y, classes=("tall", "old")), options)
    assert run.record.metric == "average_precision"
    table = run.predictions().to_pydict()
    assert table["label_tall"][0] is None
    assert set(table["predicted_old"]) <= {0, 1}
    counts = run.record.repeats[0].counts
    assert counts is not None
    test = run.splits[0].test
    assert counts[:, 0].tolist() == (y[test] == 1).sum(0).tolist()
    best = run.record.summary["test"]["average_precision"].mean
    assert best > y[test].mean() + 0.1
