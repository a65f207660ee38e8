"""One worker's share of a search: draw a batch of trials, train it as one population, repeat.

Several processes may work on one search; they share its trials through the ledger.
"""

import contextlib
import datetime
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from optuna.trial import FrozenTrial

from longnn._base.provenance import environment
from longnn.config import Config
from longnn.data import NodeDataset, Scaling
from longnn.training import Population, choose_device, fits, make_problem, shape_of
from longnn.tuning._cost import Estimate, estimate
from longnn.tuning._domains import Plain
from longnn.tuning._draws import in_order
from longnn.tuning._finalists import train_finalists
from longnn.tuning._halving import Halving
from longnn.tuning._importance import parameter_importance
from longnn.tuning._ledger import FINISHED, Claim, Ledger, is_start
from longnn.tuning._ranking import best_trial, describe_trial, rank_trials
from longnn.tuning._record import DatasetRecord, SearchRecord, SpaceRecord
from longnn.tuning._result import TuningProgress
from longnn.tuning._space import SearchSpace
from longnn.tuning._splits import tuning_splits
from longnn.tuning._start import default_config
from longnn.tuning._training import Training
from longnn.tuning._trials import Finalists, Start, TrialRecord
from longnn.tuning._workers import BEAT

#: Trials trained together, by the kind of device.
BATCH = {"cpu": 8, "cuda": 64}
#: Seconds between checks whether other workers have finished.
POLL = 0.5

OnProgress = Callable[[TuningProgress], None]


class Search:
    """One worker's share of a search; the arguments are those of :func:`~longnn.tuning.tune`."""

    def __init__(
        self,
        dataset: NodeDataset,
        space: SearchSpace,
        *,
        batch: int | None,
        repeats: int,
        split: str | None,
        scale: str,
        device: str,
        halving: Halving | None,
        on_progress: OnProgress | None,
        around: Config | None = None,
        default: bool = True,
    ) -> None:
        self.dataset, self.space, self.halving = dataset, space, halving
        self.around = around
        self.on_progress = on_progress
        self.device = choose_device(device)
        self.batch = batch or BATCH.get(self.device.type, BATCH["cpu"])
        self.splits, self.notes = tuning_splits(dataset, split, repeats)
        self.split = split
        scaling = Scaling.fit(scale, dataset)
        self.scale = scaling.kind
        base = self.config(space.fixed)
        self.problem = make_problem(dataset, base, scaling, device=self.device)
        self.metric = self.problem.watched(base.settings.monitor)
        self.start: dict[str, Plain] | None = None
        if default or around is not None:
            flat = base.to_dict()
            self.start = {**space.fixed, **{key: flat[key] for key in space.search}}
            self.space = space.widen(self.start)
            self.notes += self._widened(space)
        self.started = self.beaten = time.perf_counter()
        self.done = self.here = 0  # trials finished by all workers, and by this one
        self.closed = 0  # trials closed of the group in training
        self.best: FrozenTrial | None = None

    def agreement(self) -> dict[str, object]:
        """What every worker of the search must agree on; plain data."""
        space = self.space.to_dict()
        return {
            "data": self.dataset.fingerprint(),
            "model": self.space.model,
            "space": {key: space[key] for key in ("search", "fixed")},
            "split protocol": self.splits[0].protocol,
            "repeats": len(self.splits),
            "scale": self.scale,
            "halving": None if self.halving is None else self.halving.to_dict(),
            "start": self.start,
        }

    def _widened(self, given: SearchSpace) -> list[str]:
        """What the space has beyond the given one, in a sentence."""
        assert self.start is not None
        own = given.search
        added = [f"{k} = {self.start[k]}" for k, d in self.space.search.items() if d != own[k]]
        if not added:
            return []
        return [f"The space was widened to contain the {self.start_name}: {', '.join(added)}."]

    @property
    def start_name(self) -> str:
        """What the search starts with."""
        return "default" if self.around is None else "given"

    def config(self, values: Mapping[str, Plain]) -> Config:
        """The configuration of a trial: its values, the others as at the start."""
        asked: dict[str, Plain] = {} if self.split is None else {"split": self.split}
        asked["scale"] = self.scale
        if self.around is not None:
            once = {"seed": 0, "repeat": 1, "device": "auto"}
            return self.around.replace(**once, **values, **asked)
        return default_config({"model": self.space.model, **values, **asked}, self.dataset)

    def estimate(self, ledger: Ledger, finalists: int) -> Estimate | None:
        """What is left to train and what that will cost; None if nothing is."""
        left = ledger.trials - ledger.finished
        if left < 1:
            return None
        return estimate(
            self.space,
            self.config(self.space.fixed),
            self.problem,
            self.splits,
            trials=left,
            batch=self.batch,
            halving=self.halving,
            finalists=finalists and finalists + (self.start is not None),
        )

    def run(self, ledger: Ledger) -> None:
        """Work until all workers together have spent the budget."""
        ledger.recover()
        self._count(ledger)
        self._report(ledger)
        try:
            while self.done < ledger.trials:
                claims = ledger.claim(self.batch)
                if claims:
                    self._train_batch(ledger, claims)
                else:
                    time.sleep(POLL)  # other workers hold the rest; they finish it, or die
                    self._beat(ledger)
                    ledger.recover()
                self._count(ledger)
                self._report(ledger)
        finally:
            with contextlib.suppress(Exception):
                ledger.beat(done=True)

    def _train_batch(self, ledger: Ledger, claims: Sequence[Claim]) -> None:
        try:
            self._train(ledger, claims)
        finally:
            # Interrupted: return what is not finished. If even that fails, the process is about
            # to die, and the next worker takes over its trials.
            with contextlib.suppress(Exception):
                ledger.release(claims)

    def _train(self, ledger: Ledger, claims: Sequence[Claim]) -> None:
        """Train trials in groups of equal shape; when memory runs out, in smaller groups."""
        groups: dict[object, list[Claim]] = {}
        for claim in claims:
            groups.setdefault(shape_of(self.config(claim.values)), []).append(claim)
        queue = deque(g for g in groups.values() if not all(claim.repeated for claim in g))
        while queue:
            group = queue.popleft()
            if self._fits(ledger, group):
                continue
            if len(group) == 1:
                raise MemoryError(
                    f"Expected room for one trial of {len(self.splits)} repeats on {self.device} "
                    "(it ran out of memory); use fewer repeats or fewer hidden channels"
                )
            self.batch = max(1, len(group) // 2)
            left = [claim for claim in group if not claim.done]
            smaller = [left[i : i + self.batch] for i in range(0, len(left), self.batch)]
            queue.extendleft(reversed(smaller))

    def _fits(self, ledger: Ledger, group: Sequence[Claim]) -> bool:
        """Train a group; False where it ran out of memory."""
        self.closed = 0

        def on_epoch(population: Population) -> None:
            self._beat(ledger)
            closed = sum(claim.done for claim in group)
            if closed != self.closed:
                self.closed = closed
                self._count(ledger)
            self._report(ledger, len(group) - closed, population.epoch)

        def train() -> None:
            training = Training(
                group,
                [self.config(claim.values) for claim in group],
                self.problem,
                self.splits,
                ledger,
                halving=self.halving,
                on_epoch=on_epoch,
            )
            training.run()

        return fits(train, self.device)

    def _beat(self, ledger: Ledger) -> None:
        if time.perf_counter() - self.beaten > BEAT:
            self.beaten = time.perf_counter()
            ledger.beat()

    def _count(self, ledger: Ledger) -> None:
        trials = ledger.get_trials(*FINISHED)
        self.done = len(trials)
        self.here = sum(t.user_attrs.get("worker") == ledger.worker.id for t in trials)
        self.best = best_trial(trials)

    def _report(self, ledger: Ledger, training: int = 0, epoch: int = 0) -> None:
        if self.on_progress is None:
            return
        elapsed = time.perf_counter() - self.started
        left = max(ledger.trials - self.done, 0)
        self.on_progress(
            TuningProgress(
                metric=self.metric,
                done=self.done,
                total=ledger.trials,
                best_value=None if self.best is None else self.best.values[0],
                best_params={} if self.best is None else self.best.user_attrs["values"],
                elapsed=elapsed,
                eta=elapsed / self.here * left if self.here else None,
                training=training,
                epoch=epoch,
            )
        )

    def finish(self, ledger: Ledger, finalists: int, storage: str | None) -> SearchRecord:
        """Train the finalists, and put together the record of all workers.

        Args:
            finalists: how many of the best trials to train again.
            storage: its URL, for the record.

        Raises:
            ValueError: if every trial diverged.
        """
        trials = ledger.get_trials()
        ranked = rank_trials(trials)
        if not ranked:
            raise ValueError(
                f"Expected a trial that trains to its end (all {self.done} diverged); lower the "
                "learning rates of the space"
            )
        first = next((t for t in trials if is_start(t) and t.state in FINISHED), None)
        again = ranked[:finalists]
        if again and first in ranked and first not in again:
            again.append(first)  # the winner is compared with it on the same splits
        finals = self._train_finalists(ledger, again)
        number, value = ranked[0].number, ranked[0].values[0]
        if finals.trials and finals.trials[0].value is not None:
            number, value = finals.trials[0].number, finals.trials[0].value
        records = [describe_trial(trial) for trial in trials]
        return SearchRecord(
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            dataset=DatasetRecord.describe(self.dataset),
            model=self.space.model,
            metric=self.metric,
            search=ledger.name,
            storage=storage,
            finished=self.done,
            repeats=len(self.splits),
            protocol=self.splits[0].protocol,
            seeds=tuple(split.seed for split in self.splits),
            seed=ledger.seed,
            halving=self.halving,
            notes=tuple(self.notes),
            best=next(record for record in records if record.number == number),
            value=value,
            finalists=finals,
            importance=parameter_importance(in_order(trials)),
            space=SpaceRecord.from_dict(self.space.to_dict()),
            seconds=time.perf_counter() - self.started,
            environment=environment(self.device),
            trials=tuple(record for record in records if record.state != "waiting"),
            start=None if first is None else self._describe_start(describe_trial(first), finals),
        )

    def _describe_start(self, trial: TrialRecord, finals: Finalists) -> Start:
        values = {final.number: final.value for final in finals.trials}
        value = values.get(trial.number) if finals.trials else trial.value
        return Start(self.start_name, trial.number, value)

    def _train_finalists(self, ledger: Ledger, trials: Sequence[FrozenTrial]) -> Finalists:
        return train_finalists(
            self.dataset,
            trials,
            [self.config(trial.user_attrs["values"]) for trial in trials],
            repeats=len(self.splits),
            split=self.split,
            device=str(self.device),
            on_epoch=lambda population: self._report(ledger, len(trials), population.epoch),
        )
