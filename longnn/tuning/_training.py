"""Trials in training: one population for trials of one shape, halved at some epochs.

Every trial is closed in the ledger as soon as it is decided. Knows validation scores, and nothing
of test nodes.
"""

import math
from collections.abc import Callable, Sequence

import torch
from optuna.trial import TrialState

from longnn.config import Config
from longnn.data import Split
from longnn.training import Population, Problem, Result, make_population
from longnn.tuning._halving import Halving
from longnn.tuning._ledger import Claim, Ledger
from longnn.tuning._trials import Outcome, finite


class Training:
    """Trains claimed trials of one shape, each with one member per repeat.

    Args:
        claims: the trials.
        configs: their configurations, all of one shape (:func:`~longnn.training.shape_of`).
        problem: the graph, its features and labels.
        splits: one per repeat. Its seed is also that of the member's weights and dropout.
        ledger: where the trials are closed.
        halving: when to stop the worse half; None to train all trials to the end.
        on_epoch: called after each epoch.
    """

    def __init__(
        self,
        claims: Sequence[Claim],
        configs: Sequence[Config],
        problem: Problem,
        splits: Sequence[Split],
        ledger: Ledger,
        *,
        halving: Halving | None,
        on_epoch: Callable[[Population], None],
    ) -> None:
        self.claims, self.ledger, self.on_epoch = claims, ledger, on_epoch
        self.repeats = len(splits)
        members = [c.replace(seed=split.seed) for c in configs for split in splits]
        self.population = make_population(members, problem, [*splits] * len(claims))
        limit = configs[0].settings.epochs
        self.rungs = [r for r in halving.rungs if r < limit] if halving is not None else []
        self.halving = halving

    def run(self) -> None:
        """Train until every claim is closed."""
        self.population.run(self._watch)
        self._close_finished()

    def _watch(self, population: Population) -> None:
        self._close_finished()
        if self.rungs and population.epoch >= self.rungs[0]:
            rungs = [r for r in self.rungs if r <= population.epoch]
            self.rungs = self.rungs[len(rungs) :]
            self._halve(rungs[-1])
        self.on_epoch(population)

    def _members(self, trial: int) -> range:
        return range(trial * self.repeats, (trial + 1) * self.repeats)

    def _close_finished(self) -> None:
        """Close the trials whose repeats have all ended."""
        results = self.population.results
        for trial, claim in enumerate(self.claims):
            if not claim.done and all(m in results for m in self._members(trial)):
                self._close(trial, [results[m] for m in self._members(trial)])

    def _close(self, trial: int, results: list[Result]) -> None:
        claim = self.claims[trial]
        mean = sum(map(best_score, results)) / len(results)
        if any(r.stopped == "pruned" for r in results):
            state, value = TrialState.PRUNED, mean if math.isfinite(mean) else None
        elif math.isfinite(mean):
            state, value = TrialState.COMPLETE, mean
        else:  # a repeat diverged at once: there is no score to compare
            state, value = TrialState.PRUNED, None
        self.ledger.finish(claim, state, value, describe_outcome(results))

    def _halve(self, rung: int) -> None:
        assert self.halving is not None
        scores, losses = self._standing()
        active = self._active()
        for i in active:
            self.ledger.report(self.claims[i], rung, scores[i])
        worse = self.halving.select([scores[i] for i in active], [losses[i] for i in active])
        stopped = [active[k] for k in worse if not self.claims[active[k]].start]
        # All at once: each call rebuilds the stack.
        self.population.stop([m for i in stopped for m in self._members(i)], "pruned")
        for i in stopped:
            self._close(i, [self.population.results[m] for m in self._members(i)])

    def _active(self) -> list[int]:
        """The trials with a repeat in training; members that wait to be dropped have ended."""
        alive = set(self.population.index[self.population.standing.alive.cpu()].tolist())
        return [
            i
            for i, claim in enumerate(self.claims)
            if not claim.done and any(m in alive for m in self._members(i))
        ]

    def _standing(self) -> tuple[list[float], list[float]]:
        """The means over repeats of the best validation score until now and of its loss."""
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


def describe_outcome(results: Sequence[Result]) -> Outcome:
    """The trainings of one trial, for its record."""
    return Outcome(
        scores=finite(map(best_score, results)),
        losses=finite(_best(result, "val_loss") for result in results),
        epochs=tuple(result.epochs for result in results),
        best_epochs=tuple(result.best_epoch for result in results),
        stopped=tuple(result.stopped for result in results),
    )
