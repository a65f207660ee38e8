"""What a step of training sees: the whole graph, or one batch of rows after the other."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn.nn._terms import Terms
from longnn.store._ranks import Ranks
from longnn.training._problem import Problem


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Features and operator of one call of the models; ``place`` says which of the picked nodes
    these are, int64 (rows,), or None where all nodes of the graph are there. ``first`` is where
    they begin in the batch that they are a share of."""

    features: Any
    operator: Any
    place: Tensor | None = None
    first: int = 0


class WholeGraph:
    """Every step sees all of the graph: one per epoch."""

    steps = 1
    by_rows = False

    def __init__(self, problem: Problem) -> None:
        self.batch = Batch(problem.features, problem.operator)
        self.ranks = Ranks()

    def train(self, epoch: int) -> Iterator[Batch]:
        """The steps of an epoch."""
        yield self.batch

    def validate(self) -> Iterator[Batch]:
        """What to validate on."""
        yield self.batch

    def gather(self, scores: Tensor) -> Tensor:
        """The scores of all that is validated on."""
        return scores


class RowBatches:
    """Steps on batches of the training rows; validation rows are read in batches, too.

    Ranks share the rows of each batch, and those of validation.

    Args:
        problem: on rows of stored terms.
        train, val: bool (rows,), the same for all members.
        size: rows of a step.
        degree: of the terms that the models need.
    """

    by_rows = True

    def __init__(
        self, problem: Problem, train: Tensor, val: Tensor, *, size: int, degree: int
    ) -> None:
        self.operator, self.size, self.ranks = problem.operator, size, problem.ranks
        self.terms = problem.features.narrowed(self.operator.self_loops, degree)
        self.rows, self.val = (m.cpu().numpy().nonzero()[0] for m in (train, val))
        self.steps = max(1, -(-len(self.rows) // size))

    def train(self, epoch: int) -> Iterator[Batch]:
        """The steps of an epoch."""
        for first, place, terms in self.terms.shuffled(self.rows, self.size, epoch, self.ranks):
            yield self._batch(place, terms, first)

    def validate(self) -> Iterator[Batch]:
        """What to validate on."""
        own = self.val[self.ranks.share(len(self.val))]
        for place, terms in self.terms.in_order(own, self.size):
            yield self._batch(place, terms)

    def gather(self, scores: Tensor) -> Tensor:  # (members, its rows, outputs)
        """The scores of all validation rows, (members, rows, outputs)."""
        return self.ranks.join(scores, len(self.val), 1)

    def _batch(self, place: np.ndarray, terms: Terms, first: int = 0) -> Batch:
        where = torch.from_numpy(place).to(self.terms.device)
        return Batch(terms, self.operator, where, first)


def make_feed(
    problem: Problem,
    train: Sequence[Tensor],
    val: Sequence[Tensor],
    *,
    size: int,
    degree: int | None,
) -> WholeGraph | RowBatches:
    """What the members of a population see; on rows they must share one split."""
    if not problem.by_rows:
        return WholeGraph(problem)
    same = all(torch.equal(m, masks[0]) for masks in (train, val) for m in masks[1:])
    if not same:
        raise ValueError("Expected members with one split to be trained on rows (got several)")
    assert degree is not None  # whoever made the problem has seen to it
    return RowBatches(problem, train[0], val[0], size=size, degree=degree)
