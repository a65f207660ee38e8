"""What an epoch is judged by, against scikit-learn on one member at a time; ties and gaps too."""

import numpy as np
import pytest
import sklearn.metrics as metrics
import torch
import torch.nn.functional as F

from longnn.graphs import GraphOperator
from longnn.training import Objective, Problem

NODES, MEMBERS = 40, 3
EDGES = torch.stack([torch.arange(NODES), (torch.arange(NODES) + 1) % NODES])


def problem(labels: torch.Tensor, task: str = "classification") -> Problem:
    P = GraphOperator.from_edge_index(
        torch.cat([EDGES, EDGES.flip(0)], dim=1), num_nodes=NODES, dtype=torch.float64
    )
    return Problem.make(torch.eye(NODES), P, labels, task=task)  # type: ignore[arg-type]


def masks() -> list[torch.Tensor]:
    """Of different sizes: the smaller ones are filled up with nodes of weight zero."""
    generator = torch.Generator().manual_seed(3)
    return [torch.rand(NODES, generator=generator) < share for share in (0.5, 0.8, 0.9)]


def scores(columns: int) -> torch.Tensor:
    """Few distinct values, so that many are tied."""
    generator = torch.Generator().manual_seed(4)
    return torch.randint(-3, 4, (MEMBERS, NODES, columns), generator=generator).double() / 2


def classification(name: str, classes: int):
    return {
        "accuracy": metrics.accuracy_score,
        "balanced_accuracy": metrics.balanced_accuracy_score,
        "macro_f1": lambda y, c: metrics.f1_score(y, c, average="macro", labels=np.unique(y)),
    }[name]


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "macro_f1"])
def test_chosen_classes(metric: str, classes: int) -> None:
    y = torch.randint(classes, (NODES,), generator=torch.Generator().manual_seed(5))
    s = scores(classes)
    objective = Objective(problem(y), masks(), masks(), monitor=metric)
    _, found = objective.validate(s)
    theirs = [
        classification(metric, classes)(y[m], s[i, m].argmax(1)) for i, m in enumerate(masks())
    ]
    np.testing.assert_allclose(found, theirs)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("metric", ["roc_auc", "average_precision"])
def test_ranked_classes(metric: str, classes: int) -> None:
    y = torch.randint(classes, (NODES,), generator=torch.Generator().manual_seed(5))
    y[:4] = torch.tensor([0, 1, 0, 1])
    s, p = scores(classes), scores(classes).softmax(-1)
    made = problem(y)
    _, found = Objective(made, masks(), masks(), monitor=metric).validate(s)
    score = getattr(metrics, f"{metric}_score")
    which = [made.positive] if classes == 2 else range(classes)
    theirs = [
        np.mean([score(y[m] == c, p[i, m, c]) for c in which if (y[m] == c).any()])
        for i, m in enumerate(masks())
    ]
    np.testing.assert_allclose(found, theirs)


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
    labels = y[:, 0] if targets == 1 else y
    s = scores(targets)
    known = [m & ~y[:, 0].isnan() for m in masks()]
    r2 = Objective(problem(labels, "regression"), known, known, monitor="r2")
    mae = Objective(problem(labels, "regression"), known, known, monitor="mae")
    assert mae.falling
    assert not r2.falling
    for i, m in enumerate(known):
        predicted = y[m].mean(0) + y[m].std(0, correction=0) * s[i, m]
        theirs = metrics.r2_score(y[m], predicted)
        assert r2.validate(s)[1][i].item() == pytest.approx(theirs)
        theirs = metrics.mean_absolute_error(y[m], predicted)
        assert mae.validate(s)[1][i].item() == pytest.approx(theirs)


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


def test_weights_of_nodes_weigh_the_loss_and_not_the_score() -> None:
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
