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
        nan = scores.new_full((), torch.nan)
        if not self.filters:
            return scores, nan, nan, nan
        first = self.filters[0]
        # A fixed basis has nothing to watch, and its numbers are not on the device.
        basis = first.basis_parameters() if first.learn_basis else {}
        a, b = (basis[k].to(scores) if _scalar(basis.get(k)) else nan for k in ("a", "b"))
        return scores, first.squared_norm().mean().sqrt().to(scores), a, b


def _scalar(value: Tensor | None) -> bool:
    return value is not None and value.dim() == 0
