"""Weights of an ensemble: against the exact optimum, and by laws."""

import numpy as np
import pytest
import scipy.optimize
import torch

from longnn.training import combine, ensemble_weights
from longnn.training._ensemble import losses_of


def members(count: int = 5, nodes: int = 300, classes: int = 3) -> tuple[torch.Tensor, ...]:
    """Members of different quality, and the labels."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, classes, (nodes,), generator=generator)
    truth = torch.nn.functional.one_hot(y, classes).double()
    noise = torch.randn(count, nodes, classes, generator=generator, dtype=torch.float64)
    strength = torch.linspace(0.2, 1.5, count, dtype=torch.float64)[:, None, None]
    return torch.softmax(strength * 2 * truth + noise, 2), y


def log_loss(weights: np.ndarray, p: torch.Tensor, y: torch.Tensor) -> float:
    own = p[:, torch.arange(len(y)), y].numpy()  # (members, nodes)
    return float(-np.log(weights @ own).mean())


def test_many_rounds_reach_the_best_weights() -> None:
    """The loss is convex in the weights, so voting converges to the optimum that SciPy finds."""
    p, y = members()
    exact = scipy.optimize.minimize(
        log_loss,
        np.full(len(p), 1 / len(p)),
        (p, y),
        bounds=[(0, 1)] * len(p),
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        tol=1e-12,
    )
    found = ensemble_weights(p, y, "classification", rounds=2000, draws=0, prior=0).numpy()
    assert log_loss(found, p, y) == pytest.approx(exact.fun, abs=1e-6)
    np.testing.assert_allclose(found, exact.x, atol=0.01)


def test_votes_spread_where_nodes_are_few() -> None:
    """Of two members that are alike on the whole, ten nodes prefer one by chance."""
    generator = torch.Generator().manual_seed(3)
    y = torch.randint(0, 2, (10,), generator=generator)
    truth = torch.nn.functional.one_hot(y, 2).double()
    noise = torch.randn(4, 10, 2, generator=generator, dtype=torch.float64)
    p = torch.softmax(truth + noise, 2)
    once = ensemble_weights(p, y, "classification", draws=0, prior=0)
    drawn = ensemble_weights(p, y, "classification", prior=0)
    assert drawn.max() < once.max()
    assert (drawn > 0).sum() > (once > 0).sum()
    uniform = torch.full((4,), 0.25, dtype=torch.float64)
    assert torch.equal(ensemble_weights(p[:, :0], y[:0], "classification"), uniform)


def test_the_average_of_the_better_half_counts_as_some_nodes() -> None:
    p, y = members()
    votes = ensemble_weights(p, y, "classification", prior=0)
    losses = [-np.log(q.gather(1, y[:, None]).numpy()).mean() for q in p]
    half = np.isin(np.arange(len(p)), np.argsort(losses)[: (len(p) + 1) // 2])
    expected = (len(y) * votes.numpy() + 30 * half / half.sum()) / (len(y) + 30)
    found = ensemble_weights(p, y, "classification", prior=30)
    np.testing.assert_allclose(found.numpy(), expected)


def test_weights_follow_their_members() -> None:
    p, y = members()
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(
        ensemble_weights(p[order], y, "classification"),
        ensemble_weights(p, y, "classification")[order],
    )
    assert float(ensemble_weights(p, y, "classification").sum()) == pytest.approx(1)


def test_a_member_that_diverged_gets_no_weight() -> None:
    p, y = members()
    broken = torch.cat([p, torch.full_like(p[:1], torch.nan)])
    weights = ensemble_weights(broken, y, "classification")
    assert weights[-1] == 0
    torch.testing.assert_close(weights[:-1], ensemble_weights(p, y, "classification"))
    assert bool(torch.isfinite(combine(broken, weights)).all())
    with pytest.raises(ValueError, match="at least one member with finite predictions"):
        ensemble_weights(broken[-1:], y, "classification")


def test_unknown_labels_do_not_count() -> None:
    p, y = members()
    hidden = torch.cat([y, torch.full((50,), -1)])
    more = torch.cat([p, p[:, :50].flip(2)], dim=1)
    torch.testing.assert_close(
        ensemble_weights(more, hidden, "classification"), ensemble_weights(p, y, "classification")
    )


def test_labels_of_yes_or_no_are_one_loss() -> None:
    """One label is the same as two classes."""
    p, y = members(classes=2)
    torch.testing.assert_close(
        ensemble_weights(p[..., 1:], y[:, None].double(), "multilabel"),
        ensemble_weights(p, y, "classification"),
    )


def test_targets_count_alike_in_any_unit() -> None:
    generator = torch.Generator().manual_seed(2)
    y = torch.randn(100, 2, generator=generator)
    y[3, 0] = torch.nan
    p = y.nan_to_num(0.0) + torch.randn(4, 100, 2, generator=generator)
    unit = torch.tensor([1.0, 1e6])
    torch.testing.assert_close(
        ensemble_weights(p * unit, y * unit, "regression"), ensemble_weights(p, y, "regression")
    )


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
def test_a_weight_of_a_node_is_a_repetition(task: str) -> None:
    rng = torch.Generator().manual_seed(0)
    weight = torch.randint(4, (30,), generator=rng)
    said = torch.rand(3, 30, 2, generator=rng)
    y = torch.rand(30, 2, generator=rng)
    if task == "classification":
        said, y = said / said.sum(2, keepdim=True), (y[:, 0] > 0.5).long()
    elif task == "multilabel":
        y = (y > 0.5).float()
    else:
        said, y = said[..., 0], y[:, 0]
    often = torch.arange(30).repeat_interleave(weight)
    repeated = losses_of(said[:, often], y[often], task)
    torch.testing.assert_close(losses_of(said, y, task, weight / 9), repeated)
