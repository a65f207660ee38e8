"""A model as the training loop calls it: its scores, and what is penalised and written down."""

from typing import Any

import torch
from torch import Tensor, nn

from longnn.training._member import TrainableModel


class Watched(nn.Module):
    """A model that also reports its penalties, amplitude and basis."""

    def __init__(self, model: TrainableModel) -> None:
        super().__init__()
        self.model: Any = model
        self.filters = model.filters()  # found once: it is a walk through all modules

    def train_scores(self, x: Any, operator: Any, penalties: tuple[bool, bool]) -> tuple[Any, ...]:
        """Scores, and of the filter-norm and the degree penalty those that are asked for."""
        scores = self.model.scores(x, operator)
        out = [scores]
        if penalties[0]:
            out.append(self.model.penalty().to(scores))
        if penalties[1]:
            each = [f.degree_penalty() for f in self.filters]
            out.append(sum(each, scores.new_zeros(())).to(scores))
        return tuple(out)

    def watched_scores(self, x: Any, operator: Any) -> tuple[Tensor, ...]:
        """Scores, amplitude, a and b; NaN where there is no such thing."""
        scores = self.model.scores(x, operator)
        known = self.filters[0].summary() if self.filters else {}
        watched = (known.get(name) for name in ("amplitude", "a", "b"))
        nan = scores.new_full((), torch.nan) if len(known) < 3 else scores
        return scores, *(nan if value is None else value.to(scores) for value in watched)
