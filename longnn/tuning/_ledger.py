"""The ledger that the workers of one search share: its trials, and who trains them.

Optuna stores it. A trial is claimed in one transaction, with its parameters and its worker,
so a process may be killed at any moment: finished trials stay, and those of a dead worker are
queued again. The budget is exact: where workers claim trials at the same time, those beyond the
budget are returned.

A batch that was interrupted is trained again as a whole. Its finished trials keep their results;
they are trained beside the others, because what halving stops depends on all of them.
"""

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from longnn.tuning._domains import Plain
from longnn.tuning._draws import Batch, Draw, Sample, find_flaw, sample
from longnn.tuning._guard import damage
from longnn.tuning._space import SearchSpace
from longnn.tuning._trials import Outcome
from longnn.tuning._workers import Sign, Worker, is_alive, is_sign

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
        draw: its place in the search.
        repeated: it is finished, and trained only beside others of its batch: nothing is written.
        done: whether it is closed.
        start: it is where the search starts; halving does not stop it.
        reported: the epochs of its scores in the storage.
    """

    id: int
    number: int
    values: Mapping[str, Plain]
    draw: Draw
    repeated: bool = False
    done: bool = False
    start: bool = False
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
        start: the values of the first trial; None to draw it, too.

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
        start: Mapping[str, Plain] | None = None,
    ) -> None:
        self.storage, self.space, self.trials, self.seed = storage, space, trials, seed
        self.start = start
        self.search = optuna.create_study(
            storage=storage, study_name=name, direction="maximize", load_if_exists=True
        )
        self.search_id = storage.get_study_id_from_name(name)
        self._agree(agreement)
        self.worker = Worker.here()
        self.held: set[int] = set()  # the numbers of all trials that this worker has claimed
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
        if not isinstance(written, Mapping):
            raise damage(self.storage, "it does not say what its workers agreed on")
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
        signs = {k.removeprefix("worker:"): v for k, v in attributes.items() if "worker:" in k}
        return {worker: sign for worker, sign in signs.items() if is_sign(sign)}

    def get_trials(self, *states: TrialState) -> list[FrozenTrial]:
        """The trials in the order of their numbers: all, or those in the given states."""
        trials = self.search.get_trials(deepcopy=False, states=states or None)
        for trial in trials:
            flaw = None if trial.state == TrialState.FAIL else find_flaw(trial)
            if flaw is not None:
                raise damage(self.storage, f"trial {trial.number} has {flaw}")
        return trials

    @property
    def finished(self) -> int:
        """How many trials all workers have finished."""
        return len(self.get_trials(*FINISHED))

    def recover(self) -> int:
        """Mark the trials of dead workers as failed and queue them again; returns how many."""
        signs, recovered = self._signs(), 0
        for trial in self.get_trials(TrialState.RUNNING):
            if self._is_lost(trial, signs):
                recovered += self._requeue(self._id(trial.number), trial)
        # A worker may die after it has marked a trial, before it has queued it again.
        repeated = {t.user_attrs.get("retry_of") for t in self.get_trials()}
        for trial in self.get_trials(TrialState.FAIL):
            closer: str = trial.user_attrs.get("closer", "")
            waits = "reason" not in trial.user_attrs and trial.number not in repeated
            if waits and (closer == self.worker.id or not is_alive(signs.get(closer))):
                self._queue(trial)
                recovered += 1
        return recovered

    def _is_lost(self, trial: FrozenTrial, signs: Mapping[str, Sign]) -> bool:
        """Whether nobody trains a running trial."""
        worker, claimant = (trial.user_attrs.get(key) for key in ("worker", "claimant"))
        if worker is not None:
            return worker != self.worker.id and not is_alive(signs.get(worker))
        if claimant is not None and not is_alive(signs.get(claimant)):
            return True
        now = datetime.datetime.now()
        started = trial.datetime_start or now
        return (now - started.replace(tzinfo=None)).total_seconds() > NAMELESS

    def _id(self, number: int) -> int:
        return self.storage.get_trial_id_from_study_id_trial_number(self.search_id, number)

    def _requeue(self, trial_id: int, trial: FrozenTrial) -> bool:
        try:
            self.storage.set_trial_user_attr(trial_id, "closer", self.worker.id)
        except UpdateFinishedTrialError:
            return False
        if not self._close(trial_id, TrialState.FAIL):
            return False  # another worker was first
        self._queue(trial)
        return True

    def _queue(self, trial: FrozenTrial) -> None:
        kept = {k: v for k, v in trial.user_attrs.items() if k in ("values", "draw", "start")}
        self.storage.create_new_trial(
            self.search_id,
            create_trial(
                state=TrialState.WAITING,
                params=trial.params,
                distributions=trial.distributions,
                user_attrs={**kept, "retry_of": trial.number},
            ),
        )

    def claim(self, most: int) -> list[Claim]:
        """Claim up to ``most`` trials, or one interrupted batch; none if the budget is spent."""
        taken = self.get_trials(*FINISHED, TrialState.RUNNING)
        wanted = min(most, self.trials - len(taken))
        if wanted <= 0:
            return []
        claims = self._take_up(most, wanted)
        if not claims:
            start = 1 + max((Draw.of(trial).index for trial in self.get_trials()), default=-1)
            batch = Batch(start, wanted, self.salt)
            claims = self._draw([Draw(index, batch) for index in batch.indices()])
        claims = self._return_surplus(claims)
        claims += self._finished_beside(claims, most)
        return sorted(claims, key=lambda claim: claim.draw)

    def _take_up(self, most: int, wanted: int) -> list[Claim]:
        """Claim queued trials: those of one batch if it fits, with what is missing in it."""
        queued = self._queued()
        if not queued:
            return []
        batch = Draw.of(queued[0]).batch
        if not 0 < batch.size <= most:
            return self._take(queued, wanted)
        drawn = [Draw.of(trial) for trial in self.get_trials()]
        present = {draw.index for draw in drawn if draw.batch == batch}
        claims = self._take([t for t in queued if Draw.of(t).batch == batch], wanted)
        missing = [Draw(index, batch) for index in batch.indices() if index not in present]
        return claims + self._draw(missing[: wanted - len(claims)] if claims else [])

    def _queued(self) -> list[FrozenTrial]:
        """The queued trials; of two that repeat the same trial the first counts."""
        first: dict[int, int] = {}
        for trial in self.get_trials():
            if "retry_of" in trial.user_attrs:
                first.setdefault(trial.user_attrs["retry_of"], trial.number)
        queued = []
        for trial in self.get_trials(TrialState.WAITING):
            if first.get(trial.user_attrs.get("retry_of", -1), trial.number) == trial.number:
                queued.append(trial)
            else:
                self._give_back(self._id(trial.number), "queued twice")
        return queued

    def _take(self, queued: Sequence[FrozenTrial], most: int) -> list[Claim]:
        claims: list[Claim] = []
        for trial in queued[:most]:
            trial_id = self._id(trial.number)
            try:
                # Before it runs: if this worker dies now, others know at once that it is lost.
                self.storage.set_trial_user_attr(trial_id, "claimant", self.worker.id)
                won = self.storage.set_trial_state_values(trial_id, TrialState.RUNNING)
            except UpdateFinishedTrialError:
                won = False
            if won:
                self.storage.set_trial_user_attr(trial_id, "worker", self.worker.id)
                claims.append(_claim(trial_id, trial))
        return claims

    def _draw(self, draws: Sequence[Draw]) -> list[Claim]:
        """Claim new trials, chosen by the sampler."""
        if not draws:
            return []
        known = self.get_trials(*FINISHED, TrialState.RUNNING)
        drawn = sample(self.space, known, draws, seed=self.seed, start=self.start)
        return [self._create(one) for one in drawn]

    def _create(self, drawn: Sample) -> Claim:
        trial = create_trial(
            state=TrialState.RUNNING,
            params=drawn.params,
            distributions=drawn.distributions,
            user_attrs={
                "values": drawn.values,
                "draw": drawn.draw.to_dict(),
                "worker": self.worker.id,
                **({"start": True} if drawn.start else {}),
            },
        )
        trial_id = self.storage.create_new_trial(self.search_id, trial)
        number = self.storage.get_trial_number_from_id(trial_id)
        return Claim(trial_id, number, drawn.values, drawn.draw, start=drawn.start)

    def _finished_beside(self, claims: Sequence[Claim], most: int) -> list[Claim]:
        """The finished trials of a batch that is taken up again as a whole."""
        batches = {claim.draw.batch for claim in claims}
        if len(batches) != 1 or not 0 < claims[0].draw.batch.size <= most:
            return []
        return [
            dataclasses.replace(_claim(self._id(t.number), t), repeated=True)
            for t in self.get_trials(*FINISHED)
            if Draw.of(t).batch in batches
        ]

    def _return_surplus(self, claims: list[Claim]) -> list[Claim]:
        """Return the claims beyond the budget, the latest first: other workers were faster."""
        self.held = {c.number for c in claims} | self.held
        for trial in self.get_trials(TrialState.RUNNING):
            # The storage was asked again because its answer was lost, and did it twice.
            if trial.user_attrs.get("worker") == self.worker.id and trial.number not in self.held:
                self._give_back(self._id(trial.number), "written twice")
        taken = [t.number for t in self.get_trials(*FINISHED, TrialState.RUNNING)]
        within = set(taken[: self.trials])
        for claim in claims:
            if claim.number not in within:
                self._give_back(claim.id, "beyond the budget")
        # Workers that begin at the same time all start with the same trial: the first counts.
        starts = [t.number for t in self.get_trials(*FINISHED, TrialState.RUNNING) if is_start(t)]
        for claim in claims:
            if claim.start and claim.number in within and claim.number != min(starts):
                within.discard(claim.number)
                self._give_back(claim.id, "begun by another worker")
        return [claim for claim in claims if claim.number in within]

    def _give_back(self, trial_id: int, reason: str) -> None:
        try:
            self.storage.set_trial_user_attr(trial_id, "reason", reason)
        except UpdateFinishedTrialError:
            return
        self._close(trial_id, TrialState.FAIL)

    def report(self, claim: Claim, epoch: int, score: float) -> None:
        """Store the score of a trial at an epoch; a second report for that epoch is ignored."""
        if not claim.repeated and epoch not in claim.reported and np.isfinite(score):
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
        if claim.repeated:
            return
        try:
            self.storage.set_trial_user_attr(claim.id, "result", outcome.to_dict())
        except UpdateFinishedTrialError:
            return
        self._close(claim.id, state, None if score is None else [score])

    def release(self, claims: Sequence[Claim]) -> None:
        """Queue unfinished trials again, for the next worker."""
        for claim in claims:
            if not claim.done and not claim.repeated:
                claim.done = True
                self._requeue(claim.id, self.storage.get_trial(claim.id))

    def _close(self, trial_id: int, state: TrialState, values: list[float] | None = None) -> bool:
        try:
            return self.storage.set_trial_state_values(trial_id, state, values)
        except UpdateFinishedTrialError:
            return False


def is_start(trial: FrozenTrial) -> bool:
    """Whether a trial is the one that the search starts with."""
    return bool(trial.user_attrs.get("start", False))


def _claim(trial_id: int, trial: FrozenTrial) -> Claim:
    values, draw = trial.user_attrs["values"], Draw.of(trial)
    return Claim(trial_id, trial.number, values, draw, start=is_start(trial))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
