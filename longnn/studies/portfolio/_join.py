"""Ways to join the members of a set, and what a set is worth joined by each."""

import dataclasses
from collections.abc import Callable, Collection, Sequence

import numpy as np
import torch
from torch import Tensor

from longnn.studies.portfolio._predictions import Predictions
from longnn.training import DRAWS, ROUNDS, combine, ensemble_weights

#: Weights of the members of a set from the validation nodes of one split.
Strategy = Callable[[Predictions, int, Sequence[int]], Tensor]


def _best(p: Predictions, split: int, chosen: Sequence[int]) -> Tensor:
    """The member with the best validation score; among equals the one of the least loss."""
    scores, losses = p.val_scores[split][chosen], p.val_losses[split][chosen]
    weights = torch.zeros(len(chosen), dtype=torch.float64)
    weights[np.lexsort((losses, -scores))[0]] = 1.0
    return weights


def _average(p: Predictions, split: int, chosen: Sequence[int]) -> Tensor:
    return torch.full((len(chosen),), 1 / len(chosen), dtype=torch.float64)


def _half(p: Predictions, split: int, chosen: Sequence[int]) -> Tensor:
    """The plain average of the half with the least validation losses."""
    order = p.val_losses[split][chosen].argsort(kind="stable")[: (len(chosen) + 1) // 2]
    weights = torch.zeros(len(chosen), dtype=torch.float64)
    weights[torch.from_numpy(order)] = 1 / len(order)
    return weights


def _voting(draws: int, rounds: int = ROUNDS) -> Strategy:
    def votes(p: Predictions, split: int, chosen: Sequence[int]) -> Tensor:
        val = p.val[split]
        return ensemble_weights(
            val.take(chosen), val.labels, p.task, draws=draws, rounds=rounds, prior=0
        )

    return votes


#: The way to join members that is in use.
JOINED = "votes on draws"
STRATEGIES: dict[str, Strategy] = {
    "best by validation": _best,
    "average": _average,
    "average of the better half": _half,
    "votes on all nodes": _voting(0),
    "25 votes on all nodes": _voting(0, 25),
    "votes on draws": _voting(DRAWS),
    "25 votes on draws": _voting(DRAWS, 25),
}


@dataclasses.dataclass(frozen=True)
class Scored:
    """Scores of one model, or of several joined, over the splits.

    Args:
        val: on the validation nodes; these chose the epoch and the weights.
        test: on nodes that chose nothing: the selection holdout, or the test nodes.
    """

    val: list[float]
    test: list[float]


def join(
    p: Predictions, chosen: Sequence[int], strategies: Collection[str] = tuple(STRATEGIES)
) -> dict[str, Scored]:
    """Strategy -> scores of the members joined by it."""
    found = {name: Scored([], []) for name in strategies}
    for split, (val, holdout) in enumerate(zip(p.val, p.holdout, strict=True)):
        for name, scored in found.items():
            weights = STRATEGIES[name](p, split, list(chosen))
            for part, scores in ((val, scored.val), (holdout, scored.test)):
                scores.append(p.score(combine(part.take(chosen), weights), part.labels))
    return found


def evaluate(
    p: Predictions, chosen: Sequence[int], strategies: Collection[str] = tuple(STRATEGIES)
) -> dict[str, list[float]]:
    """Strategy -> holdout scores over the splits."""
    return {name: scored.test for name, scored in join(p, chosen, strategies).items()}
