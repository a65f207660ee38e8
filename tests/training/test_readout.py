"""Temperatures, thresholds and weights of classes, against what they are defined by."""

import numpy as np
import pytest
import sklearn.metrics as metrics
import torch
from sklearn.utils.class_weight import compute_class_weight

from longnn._base.schema import Node
from longnn.config import Config
from longnn.config._config import parse_class_weight
from longnn.graphs import GraphOperator
from longnn.training import Problem, Readout
from longnn.training._problem import loss_weights
from longnn.training._readout import balancing_factors, best_threshold, fit_temperature

NODES = 400


def drawn(temperature: float, outputs: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores, and labels drawn with the probabilities of these scores over a temperature."""
    generator = torch.Generator().manual_seed(0)
    s = 3 * torch.randn(20_000, outputs, generator=generator)
    p = torch.softmax(s / temperature, 1)
    return s, torch.multinomial(p, 1, generator=generator)[:, 0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_a_temperature_is_found_again(temperature: float) -> None:
    s, y = drawn(temperature)
    assert fit_temperature(s, y, "classification") == pytest.approx(temperature, rel=0.05)


def test_a_temperature_of_labels_leaves_unknown_ones_out() -> None:
    s, y = drawn(2.0, 2)
    logit = (s[:, 1] - s[:, 0])[:, None]
    labels = y.float()[:, None].clone()
    labels[::2] = torch.nan
    assert fit_temperature(logit, labels, "multilabel") == pytest.approx(2.0, rel=0.1)


def test_few_nodes_that_are_all_right_do_not_ask_for_certainty() -> None:
    s = torch.tensor([[2.0, 0.0]] * 6)
    alone = fit_temperature(s, torch.zeros(6, dtype=torch.int64), "classification")
    assert 0.2 < alone < 1


def test_the_threshold_has_the_largest_f1_of_all() -> None:
    generator = torch.Generator().manual_seed(1)
    p = torch.randint(20, (200,), generator=generator) / 20  # tied
    hit = torch.rand(200, generator=generator) < p**2
    chosen = best_threshold(p, hit)
    every = [metrics.f1_score(hit, p >= t) for t in np.linspace(0.001, 1, 200)]
    assert metrics.f1_score(hit, p >= chosen) == pytest.approx(max(every))


def test_a_readout_survives_as_plain_data() -> None:
    readout = Readout("classification", 1.5, 0.2, 0, shift=(0.3, -0.6))
    node = Node(readout.to_dict(), file="x")
    assert Readout.read("classification", node) == readout
    several = Readout("regression", offset=(1.0, 2.0), scale=(3.0, 4.0))
    assert Readout.read("regression", Node(several.to_dict(), file="x")) == several
    mean = Readout.mean([readout, Readout("classification", threshold=0.4, positive=0)])
    assert mean.threshold == pytest.approx(0.3)


def problem(labels: torch.Tensor, task: str = "classification") -> Problem:
    edges = torch.tensor([[0, 1], [1, 0]])
    P = GraphOperator.from_edge_index(edges, num_nodes=len(labels))
    return Problem.make(torch.eye(len(labels)), P, labels, task=task)  # type: ignore[arg-type]


def test_factors_raise_the_balanced_accuracy_of_honest_probabilities() -> None:
    s, _ = drawn(1.0)
    p = torch.softmax(s + torch.tensor([4.0, 0.0, -1.0]), 1)
    y = torch.multinomial(p, 1, generator=torch.Generator().manual_seed(1))[:, 0]
    factors = balancing_factors(torch.bincount(y))
    readout = Readout("classification", factors=factors)
    before, after = (
        metrics.balanced_accuracy_score(y, c) for c in (p.argmax(1), readout.choose(p))
    )
    assert after > before + 0.05


def test_factors_survive_as_plain_data_and_are_averaged() -> None:
    readout = Readout("classification", factors=(1.0, 4.0, 9.0))
    node = Node(readout.to_dict(), file="x")
    assert Readout.read("classification", node) == readout
    other = Readout("classification", factors=(1.0, 1.0, 4.0))
    assert Readout.mean([readout, other]).factors == pytest.approx((1, 2, 6))
    p = torch.tensor([[0.6, 0.3, 0.1]])
    assert readout.choose(p).tolist() == [1]


def test_balanced_weights_are_those_of_scikit_learn() -> None:
    y = torch.tensor([0] * 7 + [1] * 2 + [2])
    w = loss_weights(problem(y), torch.ones(10, dtype=torch.bool), "balanced", ("a", "b", "c"))
    theirs = compute_class_weight("balanced", classes=np.arange(3), y=y.numpy())
    np.testing.assert_allclose(w, theirs[y], rtol=1e-6)


def test_balanced_labels_give_yes_and_no_the_same_weight() -> None:
    y = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, torch.nan]])
    w = loss_weights(problem(y, "multilabel"), torch.ones(4, dtype=torch.bool), "balanced", "ab")
    assert w is not None
    assert [w[0, 0], w[2, 1], w[1, 0]] == [3, 2, 1]


def test_a_weight_of_another_class_is_refused() -> None:
    every = torch.ones(4, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"among a, b \(got 'c'\)"):
        loss_weights(problem(torch.tensor([0, 0, 1, 1])), every, "c=3", ("a", "b"))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        *(("class_weight", t, "a table such as fraud=5") for t in ("fraud", "fraud=-1", "a=1,b")),
        *(("threshold", value, "< 1") for value in (1.0, -0.1)),
    ],
)
def test_bad_settings_of_classes_are_refused(key: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Config.from_dict({key: value})


def test_names_of_classes_may_hold_signs() -> None:
    assert parse_class_weight("a=b=2,c,d=3") == {"a=b": 2.0, "c,d": 3.0}
