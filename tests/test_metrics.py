"""Scores, in training and of results, against scikit-learn; ties and gaps too."""

import dataclasses

import numpy as np
import pytest
import sklearn.metrics as metrics
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

import longnn
from longnn import report
from longnn.data import from_data
from longnn.graphs import GraphOperator
from longnn.metrics import (
    METRICS,
    Metric,
    bootstrap_interval,
    score_classes,
    score_labels,
    score_numbers,
    summarize,
)
from longnn.training import Objective, Problem
from longnn.training._readout import best_threshold
from longnn.tuning import tune

NODES, MEMBERS = 40, 3
ERRORS = {
    "r2": metrics.r2_score,
    "mae": metrics.mean_absolute_error,
    "rmse": metrics.root_mean_squared_error,
}
EDGES = torch.stack([torch.arange(NODES), (torch.arange(NODES) + 1) % NODES])


def problem(labels: torch.Tensor, task: str = "classification") -> Problem:
    P = GraphOperator.from_edge_index(
        torch.cat([EDGES, EDGES.flip(0)], dim=1), num_nodes=NODES, dtype=torch.float64
    )
    return Problem.make(torch.eye(NODES), P, labels, task=task)


def masks() -> list[torch.Tensor]:
    """Of different sizes: the smaller ones are filled up with nodes of weight zero."""
    generator = torch.Generator().manual_seed(3)
    return [torch.rand(NODES, generator=generator) < share for share in (0.5, 0.8, 0.9)]


def scores(columns: int) -> torch.Tensor:
    """Few distinct values, so that many are tied."""
    generator = torch.Generator().manual_seed(4)
    return torch.randint(-3, 4, (MEMBERS, NODES, columns), generator=generator).double() / 2


def of_classes(y: torch.Tensor, p: torch.Tensor, positive: int) -> dict[str, float]:
    """What scikit-learn says of the most probable classes, and of the probabilities."""
    said, there = p.argmax(1), np.unique(y)
    expected = {
        "accuracy": metrics.accuracy_score(y, said),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, said),
        "macro_f1": metrics.f1_score(y, said, average="macro", labels=there),
    }
    for name in ("roc_auc", "average_precision"):
        score, which = getattr(metrics, f"{name}_score"), [positive] if p.shape[1] == 2 else there
        expected[name] = np.mean([score(y == c, p[:, c]) for c in which])
    return expected


@pytest.mark.parametrize("classes", [2, 4])
def test_classes(classes: int) -> None:
    """In training, of many members at once, and of a result."""
    y = torch.randint(classes, (NODES,), generator=torch.Generator().manual_seed(5))
    s, made = scores(classes), problem(y)
    p = s.softmax(-1)
    expected = [of_classes(y[m], p[i, m], made.positive) for i, m in enumerate(masks())]
    for metric in expected[0]:
        _, found = Objective(made, masks(), masks(), monitor=metric).validate(s)
        np.testing.assert_allclose(found, [each[metric] for each in expected])
    for i, m in enumerate(masks()):
        result = score_classes(p[i, m], y[m], positive=made.positive)
        assert result == pytest.approx({name: expected[i][name] for name in result})
        assert len(result) == (5 if classes == 2 else 3)


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "roc_auc", "average_precision"])
def test_labels_of_yes_or_no_with_gaps(metric: str) -> None:
    generator = torch.Generator().manual_seed(6)
    y = torch.randint(2, (NODES, 3), generator=generator).float()
    y[torch.rand(NODES, 3, generator=generator) < 0.2] = torch.nan
    s = scores(3)
    made = problem(y, "multilabel")
    loss, found = Objective(made, masks(), masks(), monitor=metric).validate(s)
    for i, m in enumerate(masks()):
        cells = [(y[m, k][~y[m, k].isnan()], s[i, m, k][~y[m, k].isnan()]) for k in range(3)]
        if metric == "accuracy":  # labels count alike, however many are known
            theirs = np.mean([((c > 0) == (t > 0.5)).double().mean() for t, c in cells])
        elif metric == "macro_f1":
            theirs = np.mean([metrics.f1_score(t, c > 0) for t, c in cells])
        else:
            theirs = np.mean([getattr(metrics, f"{metric}_score")(t, c) for t, c in cells])
        assert found[i].item() == pytest.approx(theirs)
        bce = [F.binary_cross_entropy_with_logits(c, t.double()) for t, c in cells]
        assert loss[i].item() == pytest.approx(torch.stack(bce).mean().item())


@pytest.mark.parametrize("targets", [1, 2])
def test_regression(targets: int) -> None:
    generator = torch.Generator().manual_seed(7)
    y = torch.randn(NODES, targets, generator=generator).double() * 3 + 10
    y[0] = torch.nan
    made = problem(y[:, 0] if targets == 1 else y, "regression")
    s = scores(targets)
    known = [m & ~y[:, 0].isnan() for m in masks()]
    for name, of in ERRORS.items():
        objective = Objective(made, known, known, monitor=name)
        assert objective.falling == (name != "r2")
        predicted = [
            y[m].mean(0) + y[m].std(0, correction=0) * s[i, m] for i, m in enumerate(known)
        ]
        theirs = [of(y[m], p) for m, p in zip(known, predicted, strict=True)]
        np.testing.assert_allclose(objective.validate(s)[1], theirs)


def test_the_headline_depends_on_the_data() -> None:
    equal = torch.arange(NODES) % 2
    assert Objective(problem(equal), masks(), masks()).metric == "accuracy"
    rare = (torch.arange(NODES) % 10 == 0).long()
    assert Objective(problem(rare), masks(), masks()).metric == "average_precision"
    three = rare + 2 * (torch.arange(NODES) % 10 == 1).long()
    three[torch.arange(NODES) % 20 == 1] = 0
    assert problem(three).metric == "balanced_accuracy"
    assert problem(1 - rare).positive == 0


def test_a_score_of_another_task_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`monitor` for classification .*got 'r2'"):
        Objective(problem(torch.arange(NODES) % 2), masks(), masks(), monitor="r2")


@pytest.mark.parametrize("task", ["classes", "two classes", "labels", "numbers"])
def test_a_weight_of_a_node_is_a_repetition(task: str) -> None:
    rng = torch.Generator().manual_seed(3)
    weight = torch.randint(5, (NODES,), generator=rng)
    outputs = {"classes": 3, "two classes": 2}.get(task, 4)
    p = torch.rand(NODES, outputs, dtype=torch.float64, generator=rng)
    if task in ("classes", "two classes"):
        y, compute = torch.randint(outputs, (NODES,), generator=rng), score_classes
        p = p / p.sum(1, keepdim=True)
    else:
        y = torch.rand(NODES, outputs, dtype=torch.float64, generator=rng)
        y, compute = ((y > 0.6).double(), score_labels) if task == "labels" else (y, score_numbers)
        y[::7, 1] = torch.nan
    often = torch.arange(NODES).repeat_interleave(weight)
    assert compute(p, y, weight=weight / 7) == pytest.approx(compute(p[often], y[often]))
    if task == "two classes":
        there = weight > 0  # a threshold lies between two nodes
        once = best_threshold(p[there, 1], y[there] == 1, weight[there])
        assert once == pytest.approx(best_threshold(p[often, 1], y[often] == 1))


def test_weights_of_nodes_in_losses_and_scores_of_training() -> None:
    y = torch.arange(NODES) % 2
    s, w = scores(2), torch.rand(NODES, dtype=torch.float64)
    weighed = Objective(dataclasses.replace(problem(y), weight=w), masks(), masks())
    for i, m in enumerate(masks()):
        each = F.cross_entropy(s[i, m], y[m], reduction="none")
        expected = (each * w[m]).sum() / w[m].sum()
        torch.testing.assert_close(weighed.train_loss(s)[i], expected)
        loss, score = (value[i] for value in weighed.validate(s))
        torch.testing.assert_close(loss, expected)
        right = (s[i, m].argmax(-1) == y[m]) * w[m]
        torch.testing.assert_close(score, right.sum() / w[m].sum())
    values = torch.randn(NODES, dtype=torch.float64)
    numbers = Objective(
        dataclasses.replace(problem(values, "regression"), weight=w), masks(), masks()
    )
    for i, m in enumerate(masks()):
        mean = np.average(values[m], weights=w[m])
        assert float(numbers.offset[i]) == pytest.approx(mean)
        said = s[i, m, 0] * numbers.scale[i] + mean
        expected = metrics.r2_score(values[m], said, sample_weight=w[m])
        assert float(numbers.validate(s[..., :1])[1][i]) == pytest.approx(expected)


def test_weights_of_classes_weigh_the_loss_and_not_the_score() -> None:
    y = torch.arange(NODES) % 2
    s = scores(2)
    weights = [torch.rand(NODES, dtype=torch.float64) for _ in range(MEMBERS)]
    plain = Objective(problem(y), masks(), masks())
    weighed = Objective(problem(y), masks(), masks(), weights=weights)
    for i, (m, w) in enumerate(zip(masks(), weights, strict=True)):
        each = F.cross_entropy(s[i, m], y[m], reduction="none")
        expected = (each * w[m]).sum() / w[m].sum()
        torch.testing.assert_close(weighed.train_loss(s)[i], expected)
        torch.testing.assert_close(weighed.validate(s)[0][i], expected)
    torch.testing.assert_close(weighed.validate(s)[1], plain.validate(s)[1])
    one = Objective(problem(y), masks(), masks(), weights=[None, weights[1], None])
    torch.testing.assert_close(one.train_loss(s)[0], plain.train_loss(s)[0])


def test_what_is_chosen_counts_and_not_the_most_probable() -> None:
    y = torch.randint(2, (NODES,), generator=torch.Generator().manual_seed(5))
    p = scores(2)[0].softmax(-1)
    chosen = p.argmax(-1)
    chosen[:4] = y[:4]  # by a threshold
    result = score_classes(p, y, chosen=chosen)
    assert result["accuracy"] == metrics.accuracy_score(y, chosen)
    assert result["macro_f1"] == pytest.approx(metrics.f1_score(y, chosen, average="macro"))
    assert score_classes(p, y, chosen=y)["accuracy"] == 1  # exactly, of any number of nodes
    assert score_classes(p[:39], y[:39], chosen=y[:39])["balanced_accuracy"] == 1
    one = y == 1
    assert set(score_classes(p[one], y[one])) == {"accuracy", "balanced_accuracy", "macro_f1"}
    assert score_classes(p[:0], y[:0]) == {}


def test_few_classes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    y = torch.randint(5, (NODES,), generator=torch.Generator().manual_seed(5))
    at_once = score_classes(scores(5)[0], y)
    monkeypatch.setattr("longnn.metrics.CELLS", 2 * NODES)
    assert score_classes(scores(5)[0], y) == pytest.approx(at_once, rel=1e-12)


def test_a_class_without_test_nodes_does_not_count() -> None:
    y = torch.tensor([0, 0, 1, 1])
    taken = torch.eye(3)[torch.tensor([0, 0, 1, 2])]  # one node taken for the absent class
    found = score_classes(taken, y)
    assert found["accuracy"] == 0.75
    assert found["macro_f1"] == pytest.approx((1 + 2 / 3) / 2)
    assert found["balanced_accuracy"] == 0.75


def test_results_of_labels_with_gaps() -> None:
    """Accuracy is over all cells, the others over labels with nodes of both kinds."""
    generator = torch.Generator().manual_seed(6)
    y = torch.randint(2, (NODES, 4), generator=generator).float()
    y[torch.rand(NODES, 4, generator=generator) < 0.2] = torch.nan
    y[:, 3] = 1.0  # nothing to tell apart
    p = scores(4)[0].sigmoid()
    known = ~y.isnan()
    columns = [(y[known[:, k], k], p[known[:, k], k]) for k in range(3)]
    expected = {
        "accuracy": ((p >= 0.5) == (y > 0.5))[known].double().mean().item(),
        "macro_f1": np.mean([metrics.f1_score(t, c >= 0.5) for t, c in columns]),
        "roc_auc": np.mean([metrics.roc_auc_score(t, c) for t, c in columns]),
        "average_precision": np.mean([metrics.average_precision_score(t, c) for t, c in columns]),
    }
    assert score_labels(p, y) == pytest.approx(expected)
    assert set(score_labels(p[:, 3:], y[:, 3:])) == {"accuracy"}
    assert score_labels(p, torch.full_like(y, torch.nan)) == {}


def test_results_of_numbers_with_gaps() -> None:
    y = torch.randn(NODES, 2, generator=torch.Generator().manual_seed(7)).double() * 3
    y[:5, 0] = torch.nan
    y[:, 1] = 2.5  # no spread: R2 has no meaning
    s = scores(2)[0]
    m = ~y[:, 0].isnan()
    r2 = metrics.r2_score(y[m, 0], s[m, 0])
    errors = {
        name: (ERRORS[name](y[m, 0], s[m, 0]) + ERRORS[name](y[:, 1], s[:, 1])) / 2
        for name in ("mae", "rmse")
    }
    found = score_numbers(s, y, targets=("price", "flat"))
    assert found == pytest.approx({"r2": r2, **errors, "r2 price": r2})
    assert score_numbers(s[:0], y[:0]) == {}


def test_summary_and_interval() -> None:
    values = [0.8, 0.82, 0.85, 0.9]
    low, high = bootstrap_interval(values)
    summary = summarize(values)
    assert min(values) <= low < summary["mean"] < high <= max(values)
    assert summary["count"] == 4
    assert summarize([0.5]) == {"mean": 0.5, "low": 0.5, "high": 0.5, "std": 0.0, "count": 1}


def ring(labels: torch.Tensor) -> longnn.data.NodeDataset:
    x = torch.randn(NODES, 3, generator=torch.Generator().manual_seed(8))
    return from_data(Data(x=x, edge_index=torch.cat([EDGES, EDGES.flip(0)], 1), y=labels))


SPACE = {"epochs": 2, "degree": 2, "dropout": {"choices": [0.1, 0.5]}}


def test_a_new_metric_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training is judged by it, a search names it, and pages show it in its own direction."""

    def worst(said, true, weight, unit):
        return (((said - true).abs() * unit[:, None]) * (weight > 0)).amax((-1, -2))

    r2 = METRICS["r2"]
    monkeypatch.setitem(METRICS, "r2", Metric(r2.name, r2.compute, share=False))
    entry = Metric("worst error", {"regression": worst}, ("numbers",), higher=False, share=False)
    monkeypatch.setitem(METRICS, "worst", entry)
    dataset = ring(torch.linspace(0, 1, NODES))
    run = longnn.train(dataset, {"model": "lon", "epochs": 3, "baselines": True})
    record, (repeat,) = run.record, run.record.repeats
    predicted = torch.tensor(run.predictions()["predicted"].to_pylist())
    (split,) = run.splits
    expected = (predicted - dataset.data.y)[split.test].abs().max().item()
    assert record.metric == "worst"
    assert repeat.scores["test"]["worst"] == pytest.approx(expected, rel=1e-5)
    history = run.record.history.of(0)["val_score"]
    assert history.argmin() + 1 == repeat.best_epoch
    answer = report.text_summary(record)[2]
    assert answer.strip().startswith("Worst error")
    best = min(b.summary["worst"].mean for b in record.baselines if b.name != "constant")
    assert report.score_text(best, "worst") in answer
    found = tune(dataset, SPACE, trials=2, repeats=1, finalists=0, folder=None).record
    assert found.metric == "worst"
