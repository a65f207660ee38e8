"""The book that workers of one search share: an Optuna study, its trials and who does them.

A trial is claimed in one transaction, with its parameters and its worker, so that a process may
be killed at any moment: what is finished stays, what a dead worker held is taken up again. The
budget is exact: of trials claimed by several workers at once, those beyond it are given back.
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

from longnn.tuning._space import SearchSpace
from longnn.tuning._workers import Worker, is_alive

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
#: Seconds until a running trial that names no worker is taken up.
NAMELESS = 60.0


@dataclasses.dataclass
class Claim:
    """A trial that this worker is to train."""

    id: int
    number: int
    values: Mapping[str, Any]  # of every key of the space
    done: bool = False
    reported: set[int] = dataclasses.field(default_factory=set)


class Ledger:
    """The trials of one search.

    Args:
        storage: where they are kept.
        name: of the study; created if it is not there.
        terms: what all workers must agree on (data, model, splits, space); plain data.
        trials: how many are to be finished in all.
        seed: of the sampler.
    """

    def __init__(
        self,
        storage: BaseStorage,
        name: str,
        terms: Mapping[str, Any],
        space: SearchSpace,
        *,
        trials: int,
        seed: int = 0,
    ) -> None:
        self.storage, self.space, self.trials, self.seed = storage, space, trials, seed
        self.study = optuna.create_study(
            storage=storage, study_name=name, direction="maximize", load_if_exists=True
        )
        self.study_id = storage.get_study_id_from_name(name)
        self._agree(terms)
        self.worker = Worker.here()
        self.beat()
        # Of two workers that start at once at least one sees the other, so that they draw
        # differently; a worker alone draws by the seed and nothing else.
        others = any(
            is_alive(sign) for sign in self._signs().values() if sign["id"] != self.worker.id
        )
        self.salt = int(self.worker.id, 16) if others else 0

    def _agree(self, terms: Mapping[str, Any]) -> None:
        written = self.study.user_attrs.get("terms")
        if written is None:
            self.storage.set_study_user_attr(self.study_id, "terms", dict(terms))
            return
        for key, value in terms.items():
            if written.get(key) != value:
                raise ValueError(
                    f"Expected the {key} that study {self.study.study_name!r} was begun with "
                    f"(got {_short(value)}, not {_short(written.get(key))}); choose another "
                    "folder or study name, or go on with the same"
                )

    def beat(self, *, done: bool = False) -> None:
        """Leave a sign of life."""
        self.storage.set_study_user_attr(
            self.study_id, f"worker:{self.worker.id}", self.worker.sign(done=done)
        )

    def _signs(self) -> dict[str, dict[str, Any]]:
        attributes = self.storage.get_study_user_attrs(self.study_id)
        return {k.removeprefix("worker:"): v for k, v in attributes.items() if "worker:" in k}

    def get_trials(self, *states: TrialState) -> list[FrozenTrial]:
        """Trials in the order of their numbers; all, or those in some states."""
        return self.study.get_trials(deepcopy=False, states=states or None)

    @property
    def finished(self) -> int:
        return len(self.get_trials(*FINISHED))

    def recover(self) -> int:
        """Take up what dead workers held: mark it failed and queue it again; how many."""
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
        return self.storage.get_trial_id_from_study_id_trial_number(self.study_id, number)

    def _requeue(self, trial_id: int, trial: FrozenTrial) -> bool:
        if not self._close(trial_id, TrialState.FAIL):
            return False  # another worker was first
        self.storage.create_new_trial(
            self.study_id,
            create_trial(
                state=TrialState.WAITING,
                params=trial.params,
                distributions=trial.distributions,
                user_attrs={"values": trial.user_attrs["values"], "retry_of": trial.number},
            ),
        )
        return True

    def claim(self, most: int) -> list[Claim]:
        """Up to so many trials to train, queued ones first; none if the budget is taken."""
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
    ) -> list[tuple[dict[str, Any], dict[str, BaseDistribution], dict[str, Any]]]:
        """New parameters by TPE, asked together from a copy of the study in memory."""
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
        params: dict[str, Any],
        distributions: dict[str, BaseDistribution],
        values: dict[str, Any],
    ) -> Claim:
        trial = create_trial(
            state=TrialState.RUNNING,
            params=params,
            distributions=distributions,
            user_attrs={"values": values, "worker": self.worker.id},
        )
        trial_id = self.storage.create_new_trial(self.study_id, trial)
        return Claim(trial_id, self.storage.get_trial_number_from_id(trial_id), values)

    def _return_surplus(self, claims: list[Claim]) -> list[Claim]:
        """Give back what several workers at once claimed beyond the budget, the latest first."""
        taken = [t.number for t in self.get_trials(*FINISHED, TrialState.RUNNING)]
        within = set(taken[: self.trials])
        for claim in claims:
            if claim.number not in within:
                self.storage.set_trial_user_attr(claim.id, "reason", "beyond the budget")
                self._close(claim.id, TrialState.FAIL)
        return [claim for claim in claims if claim.number in within]

    def report(self, claim: Claim, epoch: int, score: float) -> None:
        """Write down how a trial stands at an epoch; a second report of one is ignored."""
        if epoch not in claim.reported and np.isfinite(score):
            claim.reported.add(epoch)
            try:
                self.storage.set_trial_intermediate_value(claim.id, epoch, score)
            except UpdateFinishedTrialError:
                claim.done = True

    def finish(
        self, claim: Claim, state: TrialState, score: float | None, result: Mapping[str, Any]
    ) -> None:
        """Close a trial; silently if it was taken from us as that of a dead worker."""
        claim.done = True
        try:
            self.storage.set_trial_user_attr(claim.id, "result", dict(result))
        except UpdateFinishedTrialError:
            return
        self._close(claim.id, state, None if score is None else [score])

    def release(self, claims: Sequence[Claim]) -> None:
        """Give unfinished trials back, to be taken up by whoever comes next."""
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
