"""The record of one trial and of one finalist: plain data, written and read by the same class."""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any, Self

from longnn.tuning._domains import Plain

#: Scores as JSON has them: None where training diverged and left no number.
Scores = tuple[float | None, ...]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What the trainings of one trial gave, one entry per repeat; empty before it is closed.

    Args:
        scores: the best validation score of each repeat.
        losses: the validation loss at the epoch of that score.
        epochs: how many epochs were trained.
        best_epochs: the epoch of the best score.
        stopped: why training ended: ``"epochs"``, ``"patience"``, ``"pruned"`` or ``"diverged"``.
    """

    scores: Scores = ()
    losses: Scores = ()
    epochs: tuple[int, ...] = ()
    best_epochs: tuple[int, ...] = ()
    stopped: tuple[str, ...] = ()

    @property
    def loss(self) -> float:
        """The mean loss; infinite where a repeat has none.

        >>> Outcome(losses=(1.0, 2.0)).loss, Outcome(losses=(1.0, None)).loss
        (1.5, inf)
        """
        known = [loss for loss in self.losses if loss is not None]
        return sum(known) / len(known) if len(known) == len(self.losses) > 0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain data for Optuna's storage and for the record."""
        return {field.name: list(getattr(self, field.name)) for field in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """From :meth:`to_dict`; other entries of the table are ignored."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: tuple(table[name]) for name in names if name in table})


@dataclasses.dataclass(frozen=True)
class TrialRecord:
    """One trial of a search.

    Args:
        number: its place in the order in which trials were drawn.
        state: ``"complete"``, ``"pruned"`` (stopped by halving, or diverged), ``"running"`` or
            ``"fail"`` (lost with its worker, or returned).
        params: the value of every entry of the space.
        value: the mean over the repeats of the best validation score.
        intermediate: that mean at the epochs of halving.
        seconds: from its start to its end.
        worker: the id of the worker that trained it.
        outcome: the single trainings.
        retry_of: the number of the lost trial that this one repeats.
        reason: why it was returned.
    """

    number: int
    state: str
    params: Mapping[str, Plain]
    value: float | None = None
    intermediate: Mapping[int, float | None] = dataclasses.field(default_factory=dict)
    seconds: float | None = None
    worker: str | None = None
    outcome: Outcome = dataclasses.field(default_factory=Outcome)
    retry_of: int | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data: one flat table, with the lists of the outcome in it.

        >>> trial = TrialRecord(3, "complete", {"a": 0.5}, 0.8, {40: 0.7})
        >>> TrialRecord.from_dict(trial.to_dict()) == trial
        True
        """
        own = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        del own["outcome"]
        steps = {str(step): value for step, value in self.intermediate.items()}
        return {
            **own,
            "params": dict(self.params),
            "intermediate": steps,
            **self.outcome.to_dict(),
        }

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """From :meth:`to_dict`."""
        return cls(
            number=table["number"],
            state=table["state"],
            params=table["params"],
            value=table["value"],
            intermediate={int(step): value for step, value in table["intermediate"].items()},
            seconds=table["seconds"],
            worker=table["worker"],
            outcome=Outcome.from_dict(table),
            retry_of=table["retry_of"],
            reason=table["reason"],
        )


@dataclasses.dataclass(frozen=True)
class FinalistRecord:
    """One of the best trials, trained again on further splits.

    Args:
        number: of the trial.
        searched: its score in the search.
        confirmed: its score on each further split.
        value: the mean over the splits of the search and the further ones.

    >>> FinalistRecord(4, 0.8, (0.7, 0.9), 0.8).further
    0.8
    """

    number: int
    searched: float
    confirmed: Scores
    value: float | None

    @property
    def further(self) -> float | None:
        """The mean over the further splits; None where a training diverged."""
        known = [score for score in self.confirmed if score is not None]
        return sum(known) / len(known) if len(known) == len(self.confirmed) > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**dataclasses.asdict(self), "confirmed": list(self.confirmed)}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """From :meth:`to_dict`."""
        return cls(table["number"], table["searched"], tuple(table["confirmed"]), table["value"])


@dataclasses.dataclass(frozen=True)
class Finalists:
    """The further splits by their seeds, and the finalists, the best first."""

    seeds: tuple[int, ...] = ()
    trials: tuple[FinalistRecord, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"seeds": list(self.seeds), "trials": [final.to_dict() for final in self.trials]}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """From :meth:`to_dict`."""
        return cls(tuple(table["seeds"]), tuple(map(FinalistRecord.from_dict, table["trials"])))


@dataclasses.dataclass(frozen=True)
class Start:
    """The trial that a search starts with, to compare the winner with.

    Args:
        name: ``"default"``, what plain training of one model uses, or ``"given"``.
        number: of the trial.
        value: its mean score on the splits of the winner's; None where it diverged.
    """

    name: str
    number: int
    value: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """From :meth:`to_dict`."""
        return cls(table["name"], table["number"], table["value"])


def finite(values: Iterable[float]) -> Scores:
    """Numbers as JSON can hold them.

    >>> finite([0.5, float("-inf")])
    (0.5, None)
    """
    return tuple(value if math.isfinite(value) else None for value in values)
