"""The trials of one search, which its workers share through Optuna's storage.

A search of N trials has N places. A worker takes a place by adding a running trial for it, with its
parameters and its worker, in one write. Where two workers take a place at once, the trial with the
lower number counts, and the other is given up. When a worker dies, its trials are marked as failed,
and another takes their places again, with the same parameters. So a process may be killed at any
moment: in the end every place has exactly one finished trial.
"""

import contextlib
import dataclasses
import math
import os
import platform
import reprlib
import sys
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.samplers import TPESampler
from optuna.storages import BaseStorage, get_storage
from optuna.trial import FrozenTrial, TrialState, create_trial

from longnn._base.schema import from_plain, to_plain
from longnn.tuning._space import Plain, SearchSpace
from longnn.tuning._storage import Attempt

#: Scores as JSON has them: None where training diverged and left no number.
Scores = tuple[float | None, ...]

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
#: Seconds between two signs of life of a worker.
BEAT = 15.0
#: Seconds without one after which a worker on another machine counts as dead.
GRACE = 600.0
#: Starts around which a search of several goes on.
LEADERS = 3
#: The workers of this process that are at work.
ACTIVE: set[str] = set()


@dataclasses.dataclass(frozen=True)
class Worker:
    """One process that works on a search."""

    id: str  # random
    machine: str
    pid: int
    started: str  # when: a later process may have the same number

    @classmethod
    def here(cls) -> "Worker":
        """This process."""
        pid = os.getpid()
        return cls(uuid.uuid4().hex[:12], machine_id(), pid, _start_time(pid) or "")

    def is_alive(self, beat: float) -> bool:
        """Whether it is at work, by its process or, on another machine, its last sign of life."""
        if self.machine != machine_id() or sys.platform == "win32":
            return time.time() - beat < GRACE
        if self.pid == os.getpid() and self.started == (_start_time(self.pid) or ""):
            return self.id in ACTIVE
        return _start_time(self.pid) == self.started


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the trainings of one trial gave, one entry per repeat; empty before it is closed."""

    scores: Scores = ()  # the best of validation
    losses: Scores = ()  # of validation, at the epoch of that score
    epochs: tuple[int, ...] = ()  # how many were trained
    best_epochs: tuple[int, ...] = ()
    stopped: tuple[str, ...] = ()  # by "epochs", "patience", "pruned" or "diverged"

    @classmethod
    def of(cls, trial: FrozenTrial) -> "Outcome":
        """That of one of Optuna's trials."""
        return cls(**{key: tuple(v) for key, v in trial.user_attrs.get("result", {}).items()})

    @property
    def loss(self) -> float:
        """The mean loss; infinite where a repeat has none."""
        losses = [math.inf if loss is None else loss for loss in self.losses]
        return sum(losses) / len(losses) if losses else math.inf


@dataclasses.dataclass(frozen=True)
class Entry:
    """What a search writes to each of Optuna's trials."""

    place: int
    values: Mapping[str, Plain]  # of every entry of the space
    worker: Worker
    result: Outcome = dataclasses.field(default_factory=Outcome)


@dataclasses.dataclass
class Claim:
    """A trial that this worker is to train."""

    id: int  # in Optuna's storage
    place: int
    values: Mapping[str, Plain]
    start: bool  # the search starts with it: halving does not stop it
    done: bool = False  # closed


class Ledger:
    """The trials of one search. As a context it signs this worker on and off.

    Args:
        name: of the search, which is created if it does not exist.
        agreement: what all workers must agree on (data, model, splits, spaces); plain data.
        spaces: what trials are drawn from: of several, from those whose starts lead.
        trials: how many to finish in total.
        seed: of the sampler.
        starts: the values of the first trials, one of each space; none to draw them, too.
        url: of the storage, for errors.

    Raises:
        ValueError: if the search was started with another agreement.
    """

    def __init__(
        self,
        storage: BaseStorage,
        name: str,
        agreement: Mapping[str, Any],
        spaces: Sequence[SearchSpace],
        *,
        trials: int,
        seed: int = 0,
        starts: Sequence[Mapping[str, Plain]] = (),
        url: str | None = None,
    ) -> None:
        self.spaces, self.trials, self.seed, self.starts = spaces, trials, seed, starts
        self.name, self.attempt, self.worker = name, Attempt(url), Worker.here()
        self.storage = get_storage(storage)  # with Optuna's cache of finished trials
        options: dict[str, Any] = {"study_name": name, "direction": "maximize"}
        self.study: optuna.Study = self.attempt(
            lambda: optuna.create_study(storage=self.storage, load_if_exists=True, **options)
        )
        try:
            for trial in self.get_trials():
                from_plain(Entry, trial.user_attrs, f"trial {trial.number}")
        except ValueError as error:
            raise self.attempt.damaged(str(error)) from error
        written = self.attempt(lambda: self.study.user_attrs).get("agreement")
        if written is None:
            self.attempt(self.study.set_user_attr, "agreement", dict(agreement))
            return
        if not isinstance(written, Mapping):
            raise self.attempt.damaged("it does not say what its workers agreed on")
        for key, value in agreement.items():
            if written.get(key) != value:
                given, before = (reprlib.repr(v) for v in (value, written.get(key)))
                raise ValueError(
                    f"Expected the {key} that the search {name!r} was started with (got {given}, "
                    f"not {before}); use the same arguments, or choose another folder or name"
                )

    def __enter__(self) -> "Ledger":
        ACTIVE.add(self.worker.id)
        self.beat()
        return self

    def __exit__(self, *_: object) -> None:
        """Give up what is not finished. If even that fails, others find this worker dead."""
        ACTIVE.discard(self.worker.id)
        with contextlib.suppress(Exception):
            for trial in self.get_trials(TrialState.RUNNING):
                if worker_of(trial) == self.worker:
                    self._close(trial._trial_id, TrialState.FAIL)

    def beat(self) -> None:
        """Write a sign of life into the storage."""
        self.attempt(self.study.set_user_attr, f"beat:{self.worker.id}", time.time())

    def get_trials(self, *states: TrialState) -> list[FrozenTrial]:
        """The trials in the order of their numbers: all, or those in the given states."""
        return self.attempt(self.study.get_trials, False, states or None)

    def is_start(self, trial: FrozenTrial) -> bool:
        """Whether the search starts with this trial."""
        return place_of(trial) < len(self.starts)

    def claim(self, most: int) -> list[Claim]:
        """Take places until this worker has ``most``; none if others have all."""
        attributes = self.attempt(lambda: self.study.user_attrs)
        for trial in self.get_trials(TrialState.RUNNING):
            worker = worker_of(trial)
            if not worker.is_alive(attributes.get(f"beat:{worker.id}", 0.0)):
                self._close(trial._trial_id, TrialState.FAIL)
        claims = self._keep_first()
        while len(claims) < most:
            trials = self.get_trials()
            taken = {place_of(t) for t in trials if t.state != TrialState.FAIL}
            free = [place for place in range(self.trials) if place not in taken]
            if len(self.spaces) > 1 and free and free[0] < len(self.starts):
                # What is drawn depends on which of them lead.
                most = min(most, len(claims) + len([p for p in free if p < len(self.starts)]))
            free = free[: max(0, min(most - len(claims), self.trials - len(taken)))]
            if not free:
                break
            for trial in self._fill(free, trials):
                self.attempt(self.study.add_trial, trial)
            claims = self._keep_first()
        return claims

    def _fill(self, places: Sequence[int], trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Trials for places: those that were lost again, the starts, the others by TPE.

        Each draw has a seed of its own, and is made in a copy of the search in memory.
        """
        ranked = [place_of(trial) for trial in rank_trials(trials) if self.is_start(trial)]
        leading = [self.spaces[place] for place in ranked[:LEADERS]] or self.spaces
        mirror = optuna.create_study(direction="maximize")
        mirror.add_trials(trial for trial in trials if trial.state != TrialState.FAIL)
        lost = {place_of(trial): trial for trial in reversed(trials)}
        filled = []
        for place in places:
            drawn: FrozenTrial | optuna.Trial
            if place in lost:
                drawn, values = lost[place], lost[place].user_attrs["values"]
            else:
                state = np.random.SeedSequence([self.seed, place]).generate_state(1)
                mirror.sampler = TPESampler(
                    seed=int(state[0]),
                    multivariate=True,
                    group=len(self.spaces) > 1 or self.spaces[0].conditional,
                    constant_liar=True,
                )
                space = leading[place % len(leading)]
                if place < len(self.starts):
                    space = self.spaces[place]
                    mirror.enqueue_trial(space.encode(self.starts[place]))
                drawn = mirror.ask()
                values = space.suggest(drawn)
            trial = create_trial(
                state=TrialState.RUNNING,
                params=drawn.params,
                distributions=drawn.distributions,
                user_attrs=to_plain(Entry(place, values, self.worker)),
            )
            filled.append(trial)
            if place in lost:
                mirror.add_trial(trial)
        return filled

    def _keep_first(self) -> list[Claim]:
        """This worker's running trials, without those whose place another trial has."""
        claims: dict[int, Claim] = {}
        taken: set[int] = set()
        for trial in self.get_trials(*FINISHED, TrialState.RUNNING):
            place = place_of(trial)
            if trial.state == TrialState.RUNNING and worker_of(trial) == self.worker:
                if place in taken:  # another was faster, or a lost answer made it ask twice
                    self._close(trial._trial_id, TrialState.FAIL)
                else:
                    values, start = trial.user_attrs["values"], self.is_start(trial)
                    claims[place] = Claim(trial._trial_id, place, values, start)
            taken.add(place)
        return [claims[place] for place in sorted(claims)]

    def report(self, claim: Claim, epoch: int, score: float) -> None:
        """Store a trial's score at an epoch."""
        if np.isfinite(score):
            try:
                self.attempt(self.storage.set_trial_intermediate_value, claim.id, epoch, score)
            except UpdateFinishedTrialError:  # another worker thought this one dead
                claim.done = True

    def finish(
        self, claim: Claim, state: TrialState, score: float | None, outcome: Outcome
    ) -> None:
        """Close a trial. Does nothing if another worker thought this one dead."""
        claim.done = True
        with contextlib.suppress(UpdateFinishedTrialError):
            result = to_plain(outcome)
            self.attempt(self.storage.set_trial_user_attr, claim.id, "result", result)
            self._close(claim.id, state, None if score is None else [score])

    def _close(self, trial: int, state: TrialState, values: list[float] | None = None) -> None:
        with contextlib.suppress(UpdateFinishedTrialError):
            self.attempt(self.storage.set_trial_state_values, trial, state, values)


def place_of(trial: FrozenTrial) -> int:
    """The place of a trial in its search."""
    return int(trial.user_attrs["place"])


def worker_of(trial: FrozenTrial) -> Worker:
    """Who trains a trial, or trained it."""
    return Worker(**trial.user_attrs["worker"])


def rank_trials(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that were trained to the end: by score, of equals by loss, then by place."""

    def rank(trial: FrozenTrial) -> tuple[float, float, int]:
        return (-trial.values[0], Outcome.of(trial).loss, place_of(trial))

    return sorted((t for t in trials if t.state == TrialState.COMPLETE and t.values), key=rank)


def machine_id() -> str:
    """This machine since it was started. Containers with their own processes have their own ids."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return "/".join(parts)


def _start_time(pid: int) -> str | None:
    """When a process started, in ticks since boot, or "" where that is not known; None if it is
    gone.
    """
    try:
        # The name, in brackets, may hold anything; field 22 of proc(5) is the 20th after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except OSError:
        if Path("/proc/self/stat").exists():
            return None
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return None
    except PermissionError:
        pass
    return ""
