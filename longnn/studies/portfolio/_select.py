"""The choice: greedy selection of the set of candidates that loses least, kind by kind left out."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from longnn.studies.portfolio._predictions import Predictions
from longnn.training import DRAWS, ROUNDS, combine, ensemble_weights

#: A graph counts with at most this regret, in points: beyond, it is lost either way.
CAP = 5.0
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
    order = p.val_losses[split][chosen].argsort()[: (len(chosen) + 1) // 2]
    weights = torch.zeros(len(chosen), dtype=torch.float64)
    weights[torch.from_numpy(order)] = 1 / len(order)
    return weights


def _voting(draws: int, rounds: int = ROUNDS) -> Strategy:
    def votes(p: Predictions, split: int, chosen: Sequence[int]) -> Tensor:
        val = p.val[split]
        return ensemble_weights(val.take(chosen), val.labels, p.task, draws=draws, rounds=rounds)

    return votes


STRATEGIES: dict[str, Strategy] = {
    "best by validation": _best,
    "average": _average,
    "average of the better half": _half,
    "votes on all nodes": _voting(0),
    "25 votes on all nodes": _voting(0, 25),
    "votes on draws": _voting(DRAWS),
    "25 votes on draws": _voting(DRAWS, 25),
}
#: By these two a set is chosen: quick to compute, one for a single model, one for an ensemble.
_JUDGES = ("best by validation", "average of the better half")


@dataclasses.dataclass(frozen=True)
class Selection:
    """What was chosen, and what it is worth.

    Args:
        portfolio: candidates in the order in which they were chosen, on all graphs.
        left_out: kind -> the same, chosen without the graphs of that kind.
        inside: graph -> strategy -> holdout scores over the splits, of the portfolio.
        outside: the same, each graph with the portfolio that was chosen without its kind.
        oracle: graph -> the mean holdout score of its best single candidate.
    """

    portfolio: list[str]
    left_out: dict[str, list[str]]
    inside: dict[str, dict[str, list[float]]]
    outside: dict[str, dict[str, list[float]]]
    oracle: dict[str, float]


def choose_all(
    names: Sequence[str],
    graphs: Mapping[str, Predictions],
    kinds: Mapping[str, str],
    size: int,
    *,
    allowed: Collection[str] | None = None,
) -> Selection:
    """Choose on all graphs, and on all but each kind.

    Args:
        names: of the candidates, in the order of the predictions.
        graphs: what they predict.
        kinds: of the graphs.
        size: of the portfolio.
        allowed: candidates to choose from, by default all.
    """
    pool = [i for i, name in enumerate(names) if allowed is None or name in allowed]
    oracle = {name: max(_single(p)) for name, p in graphs.items()}
    found = _greedy(pool, graphs, oracle, kinds, size)
    left_out = {}
    for kind in dict.fromkeys(kinds.values()):
        others = {name: p for name, p in graphs.items() if kinds[name] != kind}
        left_out[kind] = _greedy(pool, others, oracle, kinds, size) if others else found
    return Selection(
        portfolio=[names[i] for i in found],
        left_out={kind: [names[i] for i in chosen] for kind, chosen in left_out.items()},
        inside={name: evaluate(p, found) for name, p in graphs.items()},
        outside={name: evaluate(p, left_out[kinds[name]]) for name, p in graphs.items()},
        oracle=oracle,
    )


def evaluate(
    p: Predictions, chosen: Sequence[int], strategies: Collection[str] = tuple(STRATEGIES)
) -> dict[str, list[float]]:
    """Strategy -> holdout scores over the splits."""
    found: dict[str, list[float]] = {name: [] for name in strategies}
    for split, holdout in enumerate(p.holdout):
        for name in strategies:
            weights = STRATEGIES[name](p, split, list(chosen))
            joined = combine(holdout.take(chosen), weights)
            found[name].append(p.score(joined, holdout.labels))
    return found


def _single(p: Predictions) -> list[float]:
    """The mean holdout score of each candidate."""
    count = len(p.holdout[0].predicted)
    return [
        float(np.mean([p.score(part.predicted[i], part.labels) for part in p.holdout]))
        for i in range(count)
    ]


def _greedy(
    pool: Sequence[int],
    graphs: Mapping[str, Predictions],
    oracle: Mapping[str, float],
    kinds: Mapping[str, str],
    size: int,
) -> list[int]:
    """Candidates, each the one that lowers the mean regret of the set most; kinds count alike."""
    chosen: list[int] = []
    while len(chosen) < min(size, len(pool)):
        rest = [i for i in pool if i not in chosen]
        regrets = [_regret([*chosen, i], graphs, oracle, kinds) for i in rest]
        chosen.append(rest[int(np.argmin(regrets))])
    return chosen


def _regret(
    chosen: Sequence[int],
    graphs: Mapping[str, Predictions],
    oracle: Mapping[str, float],
    kinds: Mapping[str, str],
) -> float:
    by_kind: dict[str, list[float]] = {}
    for name, p in graphs.items():
        for scores in evaluate(p, chosen, _JUDGES).values():
            regret = 100 * (oracle[name] - float(np.mean(scores)))
            by_kind.setdefault(kinds[name], []).append(min(regret, CAP))
    return float(np.mean([np.mean(values) for values in by_kind.values()]))
