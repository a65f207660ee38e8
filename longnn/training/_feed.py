"""What a step of training sees: the whole graph, or one batch of rows after the other."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn.training._problem import Problem
from longnn.training._rows import RowProblem


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Features and operator of one call of the models; ``place`` says which of the picked nodes
    these are, int64 (rows,), or None where all nodes of the graph are there."""

    features: Any
    operator: Any
    place: Tensor | None = None


class WholeGraph:
    """Every step sees all of the graph: one per epoch."""

    steps = 1
    by_rows = False

    def __init__(self, problem: Problem) -> None:
        self.batch = Batch(problem.features, problem.operator)

    def train(self, epoch: int) -> Iterator[Batch]:
        """The steps of an epoch."""
        yield self.batch

    def validate(self) -> Iterator[Batch]:
        """What to validate on."""
        yield self.batch


class RowBatches:
    """Steps on batches of the training rows; validation rows are read in batches, too.

    Args:
        problem: on rows of stored terms.
        train, val: bool (rows,), the same for all members.
        size: rows of a step.
        degree: of the terms that the models need.
    """

    by_rows = True

    def __init__(
        self, problem: RowProblem, train: Tensor, val: Tensor, *, size: int, degree: int
    ) -> None:
        self.operator, self.size = problem.operator, size
        self.terms = problem.features.narrowed(self.operator.self_loops, degree)
        self.rows, self.val = (m.cpu().numpy().nonzero()[0] for m in (train, val))
        self.steps = max(1, -(-len(self.rows) // size))

    def train(self, epoch: int) -> Iterator[Batch]:
        """The steps of an epoch."""
        yield from map(self._batch, self.terms.shuffled(self.rows, self.size, epoch))

    def validate(self) -> Iterator[Batch]:
        """What to validate on."""
        yield from map(self._batch, self.terms.in_order(self.val, self.size))

    def _batch(self, found: tuple[np.ndarray, Any]) -> Batch:
        place, terms = found
        return Batch(terms, self.operator, torch.from_numpy(place).to(self.terms.device))


def make_feed(
    problem: Problem,
    train: Sequence[Tensor],
    val: Sequence[Tensor],
    *,
    size: int,
    degree: int | None,
) -> WholeGraph | RowBatches:
    """What the members of a population see; on rows they must share one split."""
    if not isinstance(problem, RowProblem):
        return WholeGraph(problem)
    same = all(torch.equal(m, masks[0]) for masks in (train, val) for m in masks[1:])
    if not same:
        raise ValueError("Expected members with one split to be trained on rows (got several)")
    assert degree is not None  # whoever made the problem has seen to it
    return RowBatches(problem, train[0], val[0], size=size, degree=degree)
