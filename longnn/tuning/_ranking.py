"""Optuna's trials as records, and which of them is the best."""

import math
from collections.abc import Sequence

from optuna.trial import FrozenTrial, TrialState

from longnn.tuning._draws import Draw
from longnn.tuning._trials import Outcome, TrialRecord


def describe_trial(trial: FrozenTrial) -> TrialRecord:
    """The record of one of Optuna's trials.

    >>> import optuna
    >>> trial = optuna.trial.create_trial(value=0.5, user_attrs={"values": {"a": 1.0}})
    >>> describe_trial(trial).value, describe_trial(trial).params
    (0.5, {'a': 1.0})
    """
    start, end = trial.datetime_start, trial.datetime_complete
    attributes = trial.user_attrs
    return TrialRecord(
        number=trial.number,
        state=trial.state.name.lower(),
        params=attributes.get("values", {}),
        value=_finite(trial.values[0] if trial.values else None),
        intermediate={step: _finite(v) for step, v in sorted(trial.intermediate_values.items())},
        seconds=(end - start).total_seconds() if start and end else None,
        worker=attributes.get("worker"),
        outcome=Outcome.from_dict(attributes.get("result", {})),
        retry_of=attributes.get("retry_of"),
        reason=attributes.get("reason"),
    )


def best_trial(trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
    """The trial with the highest mean score; of equals the lowest loss, then the first."""
    return next(iter(rank_trials(trials)), None)


def rank_trials(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that were trained to the end, the best first."""
    complete = [t for t in trials if t.state == TrialState.COMPLETE and t.values]

    def rank(trial: FrozenTrial) -> tuple[float, float, Draw]:
        outcome = Outcome.from_dict(trial.user_attrs.get("result", {}))
        return (-trial.values[0], outcome.loss, Draw.of(trial))

    return sorted(complete, key=rank)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
