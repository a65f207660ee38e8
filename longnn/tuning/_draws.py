"""The draws of a search: what was drawn, in which order, and what was trained together.

A draw is a configuration that the sampler chose. If its worker dies, another trial of Optuna's
repeats it: it is the same draw. Each draw has its own seed, and it depends on the draws before it
alone. So a search that is continued draws what it would have drawn without the interruption.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, Self

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial

from longnn.tuning._domains import Plain
from longnn.tuning._space import SearchSpace


@dataclasses.dataclass(frozen=True, order=True)
class Batch:
    """Draws that are trained together.

    Args:
        start: the index of the first.
        size: how many there are; 0 for the trials of a version that did not write it.
        salt: what sets the draws of one worker apart from those of others.
    """

    start: int
    size: int
    salt: int

    def indices(self) -> range:
        """The places of its draws in the search."""
        return range(self.start, self.start + self.size)


@dataclasses.dataclass(frozen=True, order=True)
class Draw:
    """The place of a draw in its search, and its batch."""

    index: int
    batch: Batch

    @classmethod
    def of(cls, trial: FrozenTrial) -> Self:
        """The draw that one of Optuna's trials trains.

        >>> Draw.of(optuna.trial.create_trial(value=0.5)).batch.size
        0
        """
        written = trial.user_attrs.get("draw")
        if written is None:  # version 0.3 did not write it
            index = trial.user_attrs.get("retry_of", trial.number)
            return cls(index, Batch(index, 0, 0))
        return cls(written["index"], Batch(written["start"], written["size"], written["salt"]))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for Optuna's storage."""
        return {"index": self.index, **dataclasses.asdict(self.batch)}


@dataclasses.dataclass(frozen=True)
class Sample:
    """What the sampler chose for one draw: Optuna's parameters, and the values of the space."""

    draw: Draw
    params: dict[str, Plain]
    distributions: dict[str, BaseDistribution]
    values: dict[str, Plain]
    start: bool = False  # it is where the search starts, and not drawn


def find_flaw(trial: FrozenTrial) -> str | None:
    """What is wrong with a trial as it was read from a storage; None if it is whole.

    >>> find_flaw(optuna.trial.create_trial(value=0.5))
    'no values'
    """
    attributes = trial.user_attrs
    scores = [*(trial.values or []), *trial.intermediate_values.values()]
    if not all(isinstance(score, float | int) for score in scores):
        return "no score"
    if not _is_table(attributes.get("values"), bool | int | float | str):
        return "no values"
    if not isinstance(attributes.get("retry_of", 0), int):
        return "no number of the trial that it repeats"
    draw = attributes.get("draw", {"index": 0, "start": 0, "size": 0, "salt": 0})
    if not _is_table(draw, int) or not {"index", "start", "size", "salt"} <= set(draw):
        return "no place in its search"
    result = attributes.get("result", {})
    if not _is_table(result, list):
        return "no result"
    kinds = {"epochs": int, "best_epochs": int, "stopped": str}
    for key, entries in result.items():
        if not all(isinstance(e, kinds.get(key, float | int | None)) for e in entries):
            return "no result"
    return None


def _is_table(value: object, kind: type | UnionType) -> bool:
    return isinstance(value, dict) and all(isinstance(entry, kind) for entry in value.values())


def in_order(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Trials in the order in which they were drawn."""
    return sorted(trials, key=lambda trial: (Draw.of(trial), trial.number))


def sample(
    space: SearchSpace,
    known: Sequence[FrozenTrial],
    draws: Sequence[Draw],
    *,
    seed: int,
    start: Mapping[str, Plain] | None = None,
) -> list[Sample]:
    """New values by TPE, drawn one after the other from a copy of the search in memory.

    Args:
        space: what to search.
        known: the trials of the draws before these.
        draws: the places to fill.
        seed: of the search.
        start: the values of the first draw; None to draw it, too.
    """
    mirror = optuna.create_study(direction="maximize")
    mirror.add_trials(in_order(known))
    samples = []
    for draw in draws:
        state = np.random.SeedSequence([seed, draw.batch.salt, draw.index]).generate_state(1)
        mirror.sampler = TPESampler(
            seed=int(state[0]),
            multivariate=True,
            group=space.conditional,
            constant_liar=True,
        )
        first = start is not None and draw.index == 0
        if start is not None and first:
            mirror.enqueue_trial(space.encode(start))
        trial = mirror.ask()
        values = space.suggest(trial)
        drawn = (dict(trial.params), dict(trial.distributions), values)
        samples.append(Sample(draw, *drawn, start=first))
    return samples
