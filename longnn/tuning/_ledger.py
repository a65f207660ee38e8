"""The ledger that the workers of one search share: its trials, and who trains them.

Optuna stores it. A trial is claimed in one transaction, with its parameters and its worker,
so a process may be killed at any moment: finished trials stay, and those of a dead worker are
queued again. The budget is exact: where workers claim trials at the same time, those beyond the
budget are returned.
"""

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.samplers import TPESampler
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from longnn.tuning._domains import Plain
from longnn.tuning._space import SearchSpace
from longnn.tuning._trials import Outcome
from longnn.tuning._workers import Sign, Worker, is_alive

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
#: Seconds after which a running trial that names no worker is queued again.
NAMELESS = 60.0


@dataclasses.dataclass
class Claim:
    """A trial that this worker is to train.

    Args:
        id: of the trial in Optuna's storage.
        number: of the trial in the search.
        values: of every entry of the space.
        done: whether it is closed.
        reported: the epochs of its scores in the storage.
    """

    id: int
    number: int
    values: Mapping[str, Plain]
    done: bool = False
    reported: set[int] = dataclasses.field(default_factory=set)


class Ledger:
    """The trials of one search.

    Args:
        storage: where they are stored.
        name: of the search, which is created if it does not exist.
        agreement: what all workers must agree on (data, model, splits, space); plain data.
        space: what to search.
        trials: how many to finish in total.
        seed: of the sampler.

    Raises:
        ValueError: if the search was started with another agreement.
    """

    def __init__(
        self,
        storage: BaseStorage,
        name: str,
        agreement: Mapping[str, Any],
        space: SearchSpace,
        *,
        trials: int,
        seed: int = 0,
    ) -> None:
        self.storage, self.space, self.trials, self.seed = storage, space, trials, seed
        self.search = optuna.create_study(
            storage=storage, study_name=name, direction="maximize", load_if_exists=True
        )
        self.search_id = storage.get_study_id_from_name(name)
        self._agree(agreement)
        self.worker = Worker.here()
        self.beat()
        # Of two workers that start at the same time at least one sees the other, so they draw
        # different trials; a single worker draws by the seed alone.
        others = any(
            is_alive(sign) for sign in self._signs().values() if sign["id"] != self.worker.id
        )
        self.salt = int(self.worker.id, 16) if others else 0

    @property
    def name(self) -> str:
        """The name of the search."""
        return self.search.study_name

    def _agree(self, agreement: Mapping[str, Any]) -> None:
        written = self.search.user_attrs.get("agreement")
        if written is None:
            self.storage.set_study_user_attr(self.search_id, "agreement", dict(agreement))
            return
        for key, value in agreement.items():
            if written.get(key) != value:
                raise ValueError(
                    f"Expected the {key} that the search {self.name!r} was started with "
                    f"(got {_short(value)}, not {_short(written.get(key))}); use the same "
                    "arguments, or choose another folder or name"
                )

    def beat(self, *, done: bool = False) -> None:
        """Write a sign of life into the storage."""
        self.storage.set_study_user_attr(
            self.search_id, f"worker:{self.worker.id}", self.worker.sign(done=done)
        )

    def _signs(self) -> dict[str, Sign]:
        attributes = self.storage.get_study_user_attrs(self.search_id)
        return {k.removeprefix("worker:"): v for k, v in attributes.items() if "worker:" in k}

    def get_trials(self, *states: TrialState) -> list[FrozenTrial]:
        """The trials in the order of their numbers: all, or those in the given states."""
        return self.search.get_trials(deepcopy=False, states=states or None)

    @property
    def finished(self) -> int:
        """How many trials all workers have finished."""
        return len(self.get_trials(*FINISHED))

    def recover(self) -> int:
        """Mark the trials of dead workers as failed and queue them again; returns how many."""
        signs, recovered = self._signs(), 0
        now = datetime.datetime.now()
        for trial in self.get_trials(TrialState.RUNNING):
            worker = trial.user_attrs.get("worker")
            if worker is None:
                started = trial.datetime_start or now
                dead = (now - started.replace(tzinfo=None)).total_seconds() > NAMELESS
            else:
                dead = worker != self.worker.id and not is_alive(signs.get(worker))
            if dead:
                recovered += self._requeue(self._id(trial.number), trial)
        return recovered

    def _id(self, number: int) -> int:
        return self.storage.get_trial_id_from_study_id_trial_number(self.search_id, number)

    def _requeue(self, trial_id: int, trial: FrozenTrial) -> bool:
        if not self._close(trial_id, TrialState.FAIL):
            return False  # another worker was first
        self.storage.create_new_trial(
            self.search_id,
            create_trial(
                state=TrialState.WAITING,
                params=trial.params,
                distributions=trial.distributions,
                user_attrs={"values": trial.user_attrs["values"], "retry_of": trial.number},
            ),
        )
        return True

    def claim(self, most: int) -> list[Claim]:
        """Claim up to ``most`` trials, queued ones first; none if the budget is spent."""
        taken = self.get_trials(*FINISHED, TrialState.RUNNING)
        wanted = min(most, self.trials - len(taken))
        claims = self._take_queued(wanted) if wanted > 0 else []
        for params, distributions, values in self._sample(wanted - len(claims)):
            claims.append(self._create(params, distributions, values))
        return self._return_surplus(claims)

    def _take_queued(self, most: int) -> list[Claim]:
        claims: list[Claim] = []
        for trial in self.get_trials(TrialState.WAITING):
            if len(claims) == most:
                break
            trial_id = self._id(trial.number)
            try:
                won = self.storage.set_trial_state_values(trial_id, TrialState.RUNNING)
            except UpdateFinishedTrialError:
                won = False
            if won:
                self.storage.set_trial_user_attr(trial_id, "worker", self.worker.id)
                claims.append(Claim(trial_id, trial.number, trial.user_attrs["values"]))
        return claims

    def _sample(
        self, count: int
    ) -> list[tuple[dict[str, Plain], dict[str, BaseDistribution], dict[str, Plain]]]:
        """New parameters by TPE, drawn together from a copy of the search in memory."""
        if count <= 0:
            return []
        known = self.get_trials(*FINISHED, TrialState.RUNNING)
        drawn = len(self.get_trials())
        state = np.random.SeedSequence([self.seed, self.salt, drawn]).generate_state(1)
        sampler = TPESampler(
            seed=int(state[0]),
            multivariate=True,
            group=self.space.conditional,
            constant_liar=True,
        )
        mirror = optuna.create_study(direction="maximize", sampler=sampler)
        mirror.add_trials(known)
        asked = []
        for _ in range(count):
            trial = mirror.ask()
            values = self.space.suggest(trial)
            asked.append((dict(trial.params), dict(trial.distributions), values))
        return asked

    def _create(
        self,
        params: dict[str, Plain],
        distributions: dict[str, BaseDistribution],
        values: dict[str, Plain],
    ) -> Claim:
        trial = create_trial(
            state=TrialState.RUNNING,
            params=params,
            distributions=distributions,
            user_attrs={"values": values, "worker": self.worker.id},
        )
        trial_id = self.storage.create_new_trial(self.search_id, trial)
        return Claim(trial_id, self.storage.get_trial_number_from_id(trial_id), values)

    def _return_surplus(self, claims: list[Claim]) -> list[Claim]:
        """Return the claims beyond the budget, the latest first: other workers were faster."""
        taken = [t.number for t in self.get_trials(*FINISHED, TrialState.RUNNING)]
        within = set(taken[: self.trials])
        for claim in claims:
            if claim.number not in within:
                self.storage.set_trial_user_attr(claim.id, "reason", "beyond the budget")
                self._close(claim.id, TrialState.FAIL)
        return [claim for claim in claims if claim.number in within]

    def report(self, claim: Claim, epoch: int, score: float) -> None:
        """Store the score of a trial at an epoch; a second report for that epoch is ignored."""
        if epoch not in claim.reported and np.isfinite(score):
            claim.reported.add(epoch)
            try:
                self.storage.set_trial_intermediate_value(claim.id, epoch, score)
            except UpdateFinishedTrialError:
                claim.done = True

    def finish(
        self, claim: Claim, state: TrialState, score: float | None, outcome: Outcome
    ) -> None:
        """Close a trial. Does nothing if another worker took it over, thinking this one dead."""
        claim.done = True
        try:
            self.storage.set_trial_user_attr(claim.id, "result", outcome.to_dict())
        except UpdateFinishedTrialError:
            return
        self._close(claim.id, state, None if score is None else [score])

    def release(self, claims: Sequence[Claim]) -> None:
        """Queue unfinished trials again, for the next worker."""
        for claim in claims:
            if not claim.done:
                claim.done = True
                self._requeue(claim.id, self.storage.get_trial(claim.id))

    def _close(self, trial_id: int, state: TrialState, values: list[float] | None = None) -> bool:
        try:
            return self.storage.set_trial_state_values(trial_id, state, values)
        except UpdateFinishedTrialError:
            return False


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
