"""How much sets of candidates lose on one graph: quickly, for every candidate that may come next.

A set is judged as it is used: joined by votes on the validation nodes and scored on the selection
holdout. The votes are those of :func:`longnn.training.ensemble_weights` on all nodes, for many sets
at once.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from lab.studies.portfolio._predictions import Part, Predictions
from longnn.training import ROUNDS

#: A graph counts with at most this regret, in points: beyond, it is lost either way.
CAP = 5.0
#: On large graphs a fixed sample of so many nodes decides.
NODES = 1000
_LEAST = 1e-12  # of a probability, so that its logarithm is finite


class Judge:
    """Regrets of sets of candidates on one graph, against its best single candidate.

    Args:
        p: what all candidates predict.
        nodes: most of each part of a split that are looked at.
    """

    def __init__(self, p: Predictions, nodes: int = NODES) -> None:
        self._p = p.sample(nodes)
        parts = self._p.holdout
        alone = [self._p.scores(part.predicted.float(), part.labels) for part in parts]
        self._oracle = float(np.max(np.mean(alone, axis=0)))
        self._said = [_said(part, p.task == "regression") for part in self._p.val]

    def regrets(self, chosen: Sequence[int], rest: Sequence[int]) -> np.ndarray:
        """The regret in points of the chosen ones and one more, for each of the rest."""
        found = np.mean([self._scores(s, chosen, rest) for s in range(len(self._said))], axis=0)
        regrets: np.ndarray = np.minimum(100 * (self._oracle - found), CAP)
        return regrets

    def _scores(self, split: int, chosen: Sequence[int], rest: Sequence[int]) -> np.ndarray:
        """Holdout scores of the sets, joined by votes."""
        part = self._p.holdout[split]
        sets = torch.tensor([[*chosen, i] for i in rest])  # (sets, members)
        shares = self._votes(split, sets)
        rows = torch.zeros(len(rest), len(part.predicted)).scatter_add(1, sets, shares)
        flat = torch.nan_to_num(part.predicted.float()).flatten(1)  # without a vote it has no say
        joined = (rows @ flat).reshape(len(rest), *part.predicted.shape[1:])
        return self._p.scores(joined, part.labels)

    def _votes(self, split: int, sets: Tensor) -> Tensor:
        """The share of votes of each member in each set, (sets, members)."""
        said, true = self._said[split]
        place = torch.arange(len(sets))
        total = said.new_zeros(len(sets), said.shape[1])  # (sets, nodes)
        votes = torch.zeros(sets.shape)
        for r in range(1, ROUNDS + 1):
            losses = torch.stack(
                [_loss((total + said[own]) / r, true) for own in sets.T]
            )  # (members, sets)
            best = losses.argmin(0)
            total = total + said[sets[place, best]]
            votes[place, best] += 1 / ROUNDS
        return votes


def _said(part: Part, values: bool) -> tuple[Tensor, Tensor | None]:
    """What each candidate says of the truth, (candidates, nodes), and the truth of values.

    One that diverged says what is as wrong as can be.
    """
    if values:
        return torch.nan_to_num(part.predicted.double(), nan=1e6), part.labels.double()
    own = part.labels.expand(len(part.predicted), -1)[..., None]
    said = part.predicted.double().gather(2, own)[..., 0]
    return torch.nan_to_num(said, nan=0.0), None


def _loss(said: Tensor, true: Tensor | None) -> Tensor:
    """The squared error of values, or the log loss of what is said of the true class, (sets,)."""
    if true is not None:
        return (said - true).square().mean(1)
    return -said.clamp_min(_LEAST).log().mean(1)
