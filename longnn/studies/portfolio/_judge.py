"""How much sets of candidates lose on one graph: quickly, for every candidate that may come next.

A set is judged in two ways: as its best member by validation, a single model, and as the average
of the half with the least validation losses, an ensemble. Both are kept in mind: the scores of
single candidates, and those of the averages of some members and each candidate.
"""

from collections.abc import Sequence

import numpy as np

from longnn.studies.portfolio._predictions import Predictions

#: A graph counts with at most this regret, in points: beyond, it is lost either way.
CAP = 5.0
#: On large graphs a fixed sample of so many nodes decides.
NODES = 2000


class Judge:
    """Regrets of sets of candidates on one graph, against its best single candidate.

    Args:
        p: what all candidates predict.
        nodes: most of each part of a split that are looked at.
    """

    def __init__(self, p: Predictions, nodes: int = NODES) -> None:
        few = p.sample(nodes)
        self._splits = [_Split(few, split) for split in range(len(few.holdout))]
        self._oracle = float(np.max(np.mean([split.alone for split in self._splits], axis=0)))

    def regrets(self, chosen: Sequence[int], rest: Sequence[int]) -> np.ndarray:
        """The regret in points of the chosen ones and one more, for each of the rest."""
        best = np.mean([split.best(chosen, rest) for split in self._splits], axis=0)
        half = np.mean([split.half(chosen, rest) for split in self._splits], axis=0)
        found = [100 * (self._oracle - scores) for scores in (best, half)]
        return np.minimum(found, CAP).mean(0)


class _Split:
    """One split of a graph."""

    def __init__(self, p: Predictions, split: int) -> None:
        self._p, self._part = p, p.holdout[split]
        self._predicted = self._part.predicted.float()
        self._losses = p.val_losses[split]
        order = np.lexsort((self._losses, -p.val_scores[split]))
        self._rank = np.argsort(order)  # by validation, best first
        self.alone = p.scores(self._predicted, self._part.labels)
        self._averaged: dict[tuple[int, ...], np.ndarray] = {(): self.alone}

    def best(self, chosen: Sequence[int], rest: Sequence[int]) -> np.ndarray:
        """The best member by validation."""
        if not chosen:
            return self.alone[list(rest)]
        leader = min(chosen, key=lambda i: self._rank[i])
        better = self._rank[list(rest)] < self._rank[leader]
        return np.where(better, self.alone[list(rest)], self.alone[leader])

    def half(self, chosen: Sequence[int], rest: Sequence[int]) -> np.ndarray:
        """The average of the better half: of those that are in it for sure, and one more."""
        if not chosen:
            return self.alone[list(rest)]
        count = (len(chosen) + 2) // 2
        order = sorted(chosen, key=lambda i: self._losses[i])
        last = order[count - 1]
        scores = self._with_each(tuple(sorted(order[: count - 1])))
        joins = self._losses[list(rest)] < self._losses[last]
        return np.where(joins, scores[list(rest)], scores[last])

    def _with_each(self, base: tuple[int, ...]) -> np.ndarray:
        """The scores of the averages of some candidates and each one."""
        if base not in self._averaged:
            total = self._predicted[list(base)].sum(0)
            averages = (self._predicted + total) / (len(base) + 1)
            self._averaged[base] = self._p.scores(averages, self._part.labels)
        return self._averaged[base]
