"""Trials in training: one population for trials of one shape, halved at some epochs.

Every trial is closed in the ledger as soon as it is decided. Knows validation scores, and nothing
of test nodes.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence

import torch
from optuna.trial import TrialState

from longnn.config import Config
from longnn.data import Split
from longnn.registry import find_model
from longnn.training import (
    Population,
    Problem,
    Result,
    TreeGroup,
    Watcher,
    make_members,
    make_population,
)
from longnn.tuning._ledger import Claim, Ledger, Outcome, Scores


@dataclasses.dataclass(frozen=True)
class Halving:
    """When to stop the worse half of the trials in training.

    `"Non-stochastic Best Arm Identification and Hyperparameter Optimization"
    <https://arxiv.org/abs/1502.07943>`_ (Jamieson and Talwalkar, 2016).

    Args:
        rungs: epochs at which trials are compared, rising.
        keep: the number of trials of a population that are never stopped.
    """

    rungs: tuple[int, ...] = (40, 100, 250)
    keep: int = 2

    def __post_init__(self) -> None:
        if list(self.rungs) != sorted(set(self.rungs)) or any(r < 1 for r in self.rungs):
            raise ValueError(f"Expected rising `rungs` >= 1 (got {self.rungs!r})")
        if self.keep < 1:
            raise ValueError(f"Expected `keep` >= 1 (got {self.keep!r})")

    def select(self, scores: Sequence[float], losses: Sequence[float]) -> list[int]:
        """The positions to stop: the half with the lower scores, ties by the higher loss."""
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], losses[i], i))
        return sorted(order[max(self.keep, math.ceil(len(scores) / 2)) :])


class Training:
    """Trains claimed trials of one shape, each with one member per split.

    The seed of a split is also that of the member's weights and dropout.
    """

    def __init__(
        self,
        claims: Sequence[Claim],
        configs: Sequence[Config],
        problem: Problem,
        splits: Sequence[Split],
        ledger: Ledger,
        halving: Halving | None,
        on_epoch: Callable[[Population], None],
    ) -> None:
        self.claims, self.ledger, self.on_epoch = claims, ledger, on_epoch
        self.repeats, self.halving = len(splits), halving
        members = [c.replace(seed=split.seed) for c in configs for split in splits]
        every = [*splits] * len(claims)
        self.population: Population | TreeGroup
        if find_model(configs[0].model).model.by_steps:
            self.population = make_population(members, problem, every)
        else:
            trained = make_members(members, problem, every)
            self.population = TreeGroup(range(len(trained)), trained, problem)
        limit = configs[0].settings.epochs
        self.rungs = [r for r in halving.rungs if r < limit] if halving is not None else []

    def run(self) -> None:
        """Train until every claim is closed."""
        if isinstance(self.population, TreeGroup):
            self.population.train(0, Watcher())  # to their end, one by one
        else:
            self.population.run(self._watch)
        self._close_finished()

    def _watch(self, population: Population) -> None:
        self._close_finished()
        passed = [rung for rung in self.rungs if rung <= population.epoch]
        if passed:
            self.rungs = self.rungs[len(passed) :]
            self._halve(passed[-1])
        self.on_epoch(population)

    def _members(self, trial: int) -> range:
        return range(trial * self.repeats, (trial + 1) * self.repeats)

    def _close_finished(self) -> None:
        """Close the trials whose repeats have all ended."""
        results = self.population.results
        for trial, claim in enumerate(self.claims):
            if not claim.done and all(m in results for m in self._members(trial)):
                self._close(trial)

    def _close(self, trial: int) -> None:
        results = [self.population.results[m] for m in self._members(trial)]
        scores = [best_score(result) for result in results]
        mean = sum(scores) / len(scores)
        # Where a repeat diverged at once there is no score to compare.
        complete = math.isfinite(mean) and all(result.stopped != "pruned" for result in results)
        outcome = Outcome(
            scores=finite(scores),
            losses=finite(_best(result, "val_loss") for result in results),
            epochs=tuple(result.epochs for result in results),
            best_epochs=tuple(result.best_epoch for result in results),
            stopped=tuple(result.stopped for result in results),
        )
        state = TrialState.COMPLETE if complete else TrialState.PRUNED
        self.ledger.finish(self.claims[trial], state, finite([mean])[0], outcome)

    def _halve(self, rung: int) -> None:
        assert self.halving is not None
        assert isinstance(self.population, Population)
        scores, losses = self._standing()
        # Members that wait to be dropped have ended.
        alive = set(self.population.index[self.population.standing.alive.cpu()].tolist())
        active = [
            i
            for i, claim in enumerate(self.claims)
            if not claim.done and not alive.isdisjoint(self._members(i))
        ]
        for i in active:
            self.ledger.report(self.claims[i], rung, scores[i])
        worse = self.halving.select([scores[i] for i in active], [losses[i] for i in active])
        stopped = [active[k] for k in worse if not self.claims[active[k]].start]
        # All at once: each call rebuilds the stack.
        self.population.stop([m for i in stopped for m in self._members(i)], "pruned")
        for i in stopped:
            self._close(i)

    def _standing(self) -> tuple[list[float], list[float]]:
        """The means over repeats of the best validation score until now and of its loss."""
        assert isinstance(self.population, Population)
        table = torch.full((2, self.population.count), -torch.inf, dtype=torch.float64)
        for member, result in self.population.results.items():
            table[0, member] = best_score(result)
            table[1, member] = _best(result, "val_loss")
        standing = self.population.standing
        now = torch.stack([standing.best_score, standing.best_loss])
        table[:, self.population.index] = now.double().cpu()
        means = table.view(2, -1, self.repeats).mean(-1)
        return means[0].tolist(), means[1].tolist()


def best_score(result: Result) -> float:
    """The validation score at the best epoch, negative where less is better; -inf where training
    diverged at once.
    """
    score = _best(result, "val_score")
    return -score if result.falling and math.isfinite(score) else score


def _best(result: Result, field: str) -> float:
    if result.best_epoch < 1:
        return -math.inf
    return float(result.history[field][result.best_epoch - 1])


def finite(values: Iterable[float]) -> Scores:
    """Numbers as JSON can hold them."""
    return tuple(value if math.isfinite(value) else None for value in values)
