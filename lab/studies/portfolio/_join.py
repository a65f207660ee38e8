"""Ways to join the members of a set, and what a set is worth joined by each."""

from collections.abc import Callable, Collection, Sequence

import numpy as np
import torch
from torch import Tensor

from lab.studies._core._joined import Scored
from lab.studies.portfolio._predictions import Predictions
from longnn.training import (
    DRAWS,
    PRIOR,
    ROUNDS,
    combine,
    ensemble_weights,
    shifted,
)

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


def _voting(draws: int, rounds: int = ROUNDS, prior: float = 0) -> Strategy:
    def votes(p: Predictions, split: int, chosen: Sequence[int]) -> Tensor:
        val = p.val[split]
        return ensemble_weights(
            val.take(chosen), val.labels, p.task, draws=draws, rounds=rounds, prior=prior
        )

    return votes


#: The way to join members by which ways and portfolios are compared.
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


#: As presets do it: votes that few nodes do not decide alone; and then a shift of the whole towards
#: the class frequencies of the validation nodes, where these differ from those of training.
IN_USE, SHIFTED = "votes in use", "votes in use, shifted"


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


def join_in_use(p: Predictions, chosen: Sequence[int]) -> dict[str, Scored]:
    """The scores of the members joined as in use, without and with the shift."""
    found = {IN_USE: Scored([], []), SHIFTED: Scored([], [])}
    votes = _voting(DRAWS, prior=PRIOR)
    for split, (val, holdout) in enumerate(zip(p.val, p.holdout, strict=True)):
        weights = votes(p, split, list(chosen))
        said = [combine(part.take(chosen), weights) for part in (val, holdout)]
        moved = _shift(p, split, said)
        for scored, (of_val, of_holdout) in zip(found.values(), (said, moved), strict=True):
            scored.val.append(p.score(of_val, val.labels))
            scored.test.append(p.score(of_holdout, holdout.labels))
    return found


def _shift(p: Predictions, split: int, said: list[Tensor]) -> list[Tensor]:
    """Probabilities of the validation nodes and of the holdout, shifted as a run shifts them."""
    if not p.train or p.metric == "balanced_accuracy":
        return said
    parts = (p.val[split], p.holdout[split])
    sizes = [len(part.labels) for part in parts]
    val = torch.arange(sum(sizes)) < sizes[0]
    labels = torch.cat([part.labels for part in parts])
    return list(shifted(torch.cat(said), labels, p.train[split], val).split(sizes))


def evaluate(
    p: Predictions, chosen: Sequence[int], strategies: Collection[str] = tuple(STRATEGIES)
) -> dict[str, list[float]]:
    """Strategy -> holdout scores over the splits."""
    return {name: scored.test for name, scored in join(p, chosen, strategies).items()}
