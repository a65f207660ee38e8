"""Trials in training: one population for trials of one shape, halved as it goes.

Successive halving (Jamieson and Talwalkar, 2016): at each rung the worse half of the trials still
in training is stopped. Knows validation scores and nothing of test nodes.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from optuna.trial import TrialState

from longnn.config import Config
from longnn.data import Split
from longnn.training import Population, Problem, Result, make_population
from longnn.tuning._ledger import Claim, Ledger


@dataclasses.dataclass(frozen=True)
class Halving:
    """When to stop the worse half of the trials in training.

    Args:
        rungs: epochs at which to compare.
        keep: how many trials of a population are never stopped.

    >>> Halving().select([0.9, 0.5, 0.7, 0.8], [1.0, 1.0, 1.0, 1.0])
    [1, 2]
    """

    rungs: tuple[int, ...] = (40, 100, 250)
    keep: int = 2

    def __post_init__(self) -> None:
        if list(self.rungs) != sorted(set(self.rungs)) or any(r < 1 for r in self.rungs):
            raise ValueError(f"Expected rising `rungs` >= 1 (got {self.rungs!r})")
        if self.keep < 1:
            raise ValueError(f"Expected `keep` >= 1 (got {self.keep!r})")

    def select(self, scores: Sequence[float], losses: Sequence[float]) -> list[int]:
        """Which to stop: the half with the lower scores; of equals those with the higher loss."""
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], losses[i], i))
        return sorted(order[max(self.keep, math.ceil(len(scores) / 2)) :])


class Training:
    """Trains claimed trials of one shape, each with one member a repeat.

    Args:
        claims, configs: trials and what they are to be trained with, all of one architecture.
        splits: one a repeat; its seed is that of the member's weights and dropout too.
        halving: or None to train all to the end.
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
        """Train; every claim is closed in the ledger as soon as it is decided."""
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
        """Close trials whose repeats have all stopped by themselves."""
        results = self.population.results
        for trial, claim in enumerate(self.claims):
            if not claim.done and all(m in results for m in self._members(trial)):
                self._close(trial, [results[m] for m in self._members(trial)])

    def _close(self, trial: int, results: list[Result]) -> None:
        claim = self.claims[trial]
        scores = [best_score(r) for r in results]
        mean = sum(scores) / len(scores)
        if any(r.stopped == "pruned" for r in results):
            state, value = TrialState.PRUNED, mean if math.isfinite(mean) else None
        elif math.isfinite(mean):
            state, value = TrialState.COMPLETE, mean
        else:  # a repeat diverged at once: there is no score to compare
            state, value = TrialState.PRUNED, None
        self.ledger.finish(claim, state, value, _describe(results))

    def _halve(self, rung: int) -> None:
        assert self.halving is not None
        scores, losses = self._standing()
        active = self._active()
        for i in active:
            self.ledger.report(self.claims[i], rung, scores[i])
        worse = self.halving.select([scores[i] for i in active], [losses[i] for i in active])
        stopped = [active[k] for k in worse]
        # All at once: each call rebuilds the stack.
        self.population.stop([m for i in stopped for m in self._members(i)], "pruned")
        for i in stopped:
            self._close(i, [self.population.results[m] for m in self._members(i)])

    def _active(self) -> list[int]:
        """Trials with a repeat still in training; those that only wait to be dropped are done."""
        alive = set(self.population.index[self.population.alive.cpu()].tolist())
        return [
            i
            for i, claim in enumerate(self.claims)
            if not claim.done and any(m in alive for m in self._members(i))
        ]

    def _standing(self) -> tuple[list[float], list[float]]:
        """The mean over repeats of the best validation score so far, and of its loss."""
        table = torch.full((2, self.population.count), -torch.inf, dtype=torch.float64)
        for member, result in self.population.results.items():
            table[0, member] = best_score(result)
            table[1, member] = _best(result, "val_loss")
        now = torch.stack([self.population.best_score, self.population.best_loss])
        table[:, self.population.index] = now.double().cpu()
        means = table.view(2, -1, self.repeats).mean(-1)
        return means[0].tolist(), means[1].tolist()


def best_score(result: Result) -> float:
    """The validation score at the epoch that is kept; without one (it diverged at once) -inf."""
    return _best(result, "val_score")


def _best(result: Result, field: str) -> float:
    if result.best_epoch < 1:
        return -math.inf
    return float(result.history[field][result.best_epoch - 1])


def _describe(results: Sequence[Result]) -> dict[str, Any]:
    def plain(values: list[float]) -> list[float | None]:
        return [v if math.isfinite(v) else None for v in values]

    return {
        "scores": plain([best_score(r) for r in results]),
        "losses": plain([_best(r, "val_loss") for r in results]),
        "epochs": [r.epochs for r in results],
        "best_epochs": [r.best_epoch for r in results],
        "stopped": [r.stopped for r in results],
    }
