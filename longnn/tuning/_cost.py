"""What a search will cost: a few epochs are timed on the data and the device before it begins.

An epoch of a population costs a fixed part and a part for each member. Two short trainings of the
start, one trial alone and a whole batch, give both. Halving says how many trials are left at which
epoch; early stopping says when the last ones end, which nobody knows before: hence a range.
"""

import dataclasses
import itertools
import statistics
import time
from collections.abc import Sequence

import torch

from longnn.config import Config
from longnn.data import Split
from longnn.registry import find_model
from longnn.training import (
    VARYING,
    Problem,
    TreeGroup,
    Watcher,
    fits,
    make_members,
    make_population,
)
from longnn.tuning._record import counted
from longnn.tuning._space import Choices, SearchSpace
from longnn.tuning._splits import FURTHER
from longnn.tuning._training import Halving

#: Seconds for each of the two timed trainings, and their most epochs.
PROBE, EPOCHS = 0.4, 40
#: Seconds per trial to choose it and store it, and for the pages in the end.
STORED, WRITTEN = 0.03, 2.0
#: A population lasts as long as its longest training: usually two to five times the patience.
SHORT, LONG = 2.0, 5.0


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a search is expected to cost."""

    trials: int
    repeats: int
    populations: int  # about
    epochs: int  # of a training at most
    low: float  # seconds if all trainings stop early
    high: float  # if they stop late

    def text(self) -> str:
        """One line."""
        return (
            f"{counted(self.trials, 'trial')} of {counted(self.repeats, 'split')} in "
            f"{counted(self.populations, 'population')}, at most {counted(self.epochs, 'epoch')} "
            f"each: about {range_text(self.low, self.high)} on this machine"
        )


@dataclasses.dataclass(frozen=True)
class EpochCost:
    """Seconds of one epoch: of any population, and of each of its members."""

    population: float
    member: float

    def seconds(self, members: float) -> float:
        """Of one epoch with so many members."""
        return self.population + self.member * members


def estimate(
    space: SearchSpace,
    start: Config,
    problem: Problem,
    splits: Sequence[Split],
    *,
    trials: int,
    batch: int,
    halving: Halving | None,
    finalists: int,
) -> Estimate:
    """Time a few epochs of a configuration like those of the trials; say what the search will cost.

    Args:
        splits: of each trial.
        trials: that are left to train, ``batch`` of them together.
        finalists: trials that are trained again.
    """
    batch = min(batch, trials)
    cost = _measure(start, problem, splits, batch)
    shapes = 1  # that trials may have; only those of one shape are trained together
    for key, domain in space.search.items():
        if key not in VARYING:
            shapes *= len(domain.values) if isinstance(domain, Choices) else 10
    groups = max(1.0, shapes * (1 - (1 - 1 / shapes) ** batch))  # so many are expected in a batch
    populations = trials / batch * groups
    again = min(groups, finalists)  # populations of finalists
    limit, patience, repeats = start.settings.epochs, start.settings.patience, len(splits)
    ends = [min(limit, round(factor * patience) + 1) for factor in (SHORT, LONG)]
    low, high = (
        populations * _group_seconds(cost, batch / groups, repeats, halving, end)
        + end * again * cost.seconds(finalists * FURTHER / max(again, 1.0))
        + STORED * trials
        + WRITTEN
        for end in ends
    )
    return Estimate(trials, repeats, round(populations + 0.49), limit, low, high)


def _group_seconds(
    cost: EpochCost, trials: float, repeats: int, halving: Halving | None, end: int
) -> float:
    """Of one population from its first epoch to its last."""
    seconds, before = 0.0, 0
    for rung in [*(halving.rungs if halving is not None else ()), end]:
        now = min(rung, end)
        seconds += (now - before) * cost.seconds(trials * repeats)
        before = now
        if halving is not None:
            trials = min(trials, max(halving.keep, trials / 2))
    return seconds


def _measure(config: Config, problem: Problem, splits: Sequence[Split], trials: int) -> EpochCost:
    """The two parts of an epoch's cost, from one trial alone and from a whole batch."""
    seconds = _time_epoch(config, problem, splits)
    count = max(2, min(trials, int(PROBE / seconds)))  # a large graph: a part of the batch will do
    many: list[float] = []
    # Where a batch does not fit, the search makes it smaller; one trial says enough.
    if trials > 1 and seconds <= PROBE:
        probe = lambda: many.append(_time_epoch(config, problem, [*splits] * count))  # noqa: E731
        fits(probe, problem.device)
    if not many:
        return EpochCost(0.0, seconds / len(splits))
    member = max(many[0] - seconds, 0.0) / ((count - 1) * len(splits))
    return EpochCost(max(seconds - member * len(splits), 0.0), member)


def _time_epoch(config: Config, problem: Problem, splits: Sequence[Split]) -> float:
    """The median of the seconds of an epoch of a population with one member per split."""
    members = [config.replace(seed=split.seed) for split in splits]
    clock = [time.perf_counter()]
    if not find_model(config.model).model.by_steps:
        few = [member.replace(epochs=EPOCHS) for member in members]
        group = TreeGroup(range(len(few)), make_members(few, problem, splits), problem)
        group.train(EPOCHS, Watcher())
        return (time.perf_counter() - clock[0]) / EPOCHS
    population = make_population(members, problem, splits)
    while len(clock) <= min(EPOCHS, config.settings.epochs) and clock[-1] - clock[0] <= PROBE:
        population.step()
        if problem.device.type == "cuda":
            torch.cuda.synchronize(problem.device)
        clock.append(time.perf_counter())
    return statistics.median_high(end - begin for begin, end in itertools.pairwise(clock))


def range_text(low: float, high: float) -> str:
    """A range of times in words; one time where both ends read alike.

    >>> range_text(170, 480), range_text(20, 150), range_text(1, 1.2)
    ('3 to 8 minutes', '20 seconds to 2 minutes', '1 second')
    """
    first, last = time_text(low), time_text(high)
    if first == last:
        return last
    number, unit = first.split(" ")
    same = unit.rstrip("s") == last.split(" ")[1].rstrip("s")
    return f"{number} to {last}" if same else f"{first} to {last}"


def time_text(seconds: float) -> str:
    """A time in words, as exactly as an estimate is.

    >>> time_text(4), time_text(95), time_text(600), time_text(5400)
    ('4 seconds', '2 minutes', '10 minutes', '1.5 hours')
    """
    if seconds < 90:
        shown = max(1, round(seconds)) if seconds < 20 else 5 * round(seconds / 5)
        return counted(shown, "second")
    if seconds < 5400:
        return counted(round(seconds / 60), "minute")
    return f"{seconds / 3600:.1f} hours"
