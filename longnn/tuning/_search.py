"""One worker's share of a search: draw a batch of trials, train it as one population, repeat.

Several processes may work on one search; they share its trials through the ledger.
"""

import datetime
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from optuna.trial import FrozenTrial

from longnn._base.provenance import environment
from longnn._base.schema import from_plain
from longnn.config import Config
from longnn.data import NodeDataset
from longnn.data._scaling import Scaling
from longnn.training import Population, choose_device, complete, fits, make_problem, shape_of
from longnn.tuning._cost import Estimate, estimate
from longnn.tuning._ledger import BEAT, FINISHED, Claim, Ledger, place_of, rank_trials, worker_of
from longnn.tuning._record import (
    DatasetRecord,
    SearchRecord,
    SpaceRecord,
    Start,
    TrialRecord,
    TuningProgress,
    parameter_importance,
)
from longnn.tuning._space import Plain, SearchSpace
from longnn.tuning._splits import train_finalists, tuning_seeds, tuning_splits
from longnn.tuning._training import Halving, Training

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
        around: Config | None,
        default: bool,
    ) -> None:
        self.dataset, self.space, self.halving, self.split = dataset, space, halving, split
        self.around, self.on_progress = around, on_progress
        self.device = choose_device(device)
        self.batch = batch or BATCH.get(self.device.type, BATCH["cpu"])
        self.splits, self.notes = tuning_splits(dataset, split, tuning_seeds(repeats))
        scaling = Scaling.fit(scale, dataset)
        self.scale = scaling.kind
        base = self.config(space.fixed)
        self.problem = make_problem(dataset, base, scaling, device=self.device)
        self.metric = self.problem.watched(base.settings.monitor)
        #: What the search starts with.
        self.start_name = "default" if around is None else "given"
        self.start: dict[str, Plain] | None = None
        if default or around is not None:
            flat = base.to_dict()
            self.start = {**space.fixed, **{key: flat[key] for key in space.search}}
            self.space = space.widen(self.start)
            added = [
                f"{key} = {self.start[key]}"
                for key, domain in self.space.search.items()
                if domain != space.search[key]
            ]
            if added:
                name, values = self.start_name, ", ".join(added)
                self.notes.append(f"The space was widened to contain the {name}: {values}.")
        self.started = self.beaten = time.perf_counter()
        self.done = self.here = 0  # trials finished by all workers, and by this one
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
            "halving": self.halving
            and {"rungs": list(self.halving.rungs), "keep": self.halving.keep},
            "start": self.start,
        }

    def config(self, values: Mapping[str, Plain]) -> Config:
        """The configuration of a trial: its values, the others as at the start."""
        asked: dict[str, Plain] = {} if self.split is None else {"split": self.split}
        asked["scale"] = self.scale
        if self.around is not None:
            once = {"seed": 0, "repeat": 1, "device": "auto"}
            return self.around.replace(**once, **values, **asked)
        # What plain training of one model would use on this data.
        table = {"preset": "fast", "model": self.space.model, **values, **asked}
        return complete(table, self.dataset)

    def estimate(self, ledger: Ledger, finalists: int) -> Estimate | None:
        """What is left to train and what that will cost; None if nothing is."""
        left = ledger.trials - len(ledger.get_trials(*FINISHED))
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
        with ledger:
            self._count(ledger)
            while self.done < ledger.trials:
                claims = ledger.claim(self.batch)
                if claims:
                    self._train(ledger, claims)
                else:
                    time.sleep(POLL)  # other workers hold the rest; they finish it, or die
                    self._beat(ledger)
                self._count(ledger)

    def _train(self, ledger: Ledger, claims: Sequence[Claim]) -> None:
        """Train trials in groups of equal shape; when memory runs out, in smaller groups."""
        groups: dict[object, list[Claim]] = {}
        for claim in claims:
            groups.setdefault(shape_of(self.config(claim.values)), []).append(claim)
        queue = deque(groups.values())
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
        closed = 0

        def on_epoch(population: Population) -> None:
            nonlocal closed
            self._beat(ledger)
            before, closed = closed, sum(claim.done for claim in group)
            if closed != before:
                self._count(ledger, len(group) - closed, population.epoch)
            else:
                self._report(ledger, len(group) - closed, population.epoch)

        def train() -> None:
            configs = [self.config(claim.values) for claim in group]
            Training(
                group,
                configs,
                self.problem,
                self.splits,
                ledger,
                halving=self.halving,
                on_epoch=on_epoch,
            ).run()

        return fits(train, self.device)

    def _beat(self, ledger: Ledger) -> None:
        if time.perf_counter() - self.beaten > BEAT:
            self.beaten = time.perf_counter()
            ledger.beat()

    def _count(self, ledger: Ledger, training: int = 0, epoch: int = 0) -> None:
        trials = ledger.get_trials(*FINISHED)
        self.done = len(trials)
        self.here = sum(worker_of(trial) == ledger.worker for trial in trials)
        self.best = next(iter(rank_trials(trials)), None)
        self._report(ledger, training, epoch)

    def _report(self, ledger: Ledger, training: int, epoch: int) -> None:
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

    def finish(
        self, ledger: Ledger, finalists: int, storage: str | None, data_dir: str | Path | None
    ) -> SearchRecord:
        """Train the finalists, and put together the record of all workers.

        Args:
            finalists: how many of the best trials to train again.
            storage: its URL, for the record.
            data_dir: the folder of the named datasets, for the record.

        Raises:
            ValueError: if every trial diverged.
        """
        trials = ledger.get_trials()
        records = {trial.number: TrialRecord.of(trial) for trial in trials}
        ranked = [records[trial.number] for trial in rank_trials(trials)]
        if not ranked:
            raise ValueError(
                f"Expected a trial that trains to its end (all {self.done} diverged); lower the "
                "learning rates of the space"
            )
        starts = [t.number for t in trials if ledger.is_start(t) and t.state in FINISHED]
        first = records[starts[0]] if starts else None
        again = ranked[:finalists]
        if again and first in ranked and first not in again:
            again.append(first)  # the winner is compared with it on the same splits
        finals = train_finalists(
            self.dataset,
            again,
            [self.config(trial.params) for trial in again],
            repeats=len(self.splits),
            split=self.split,
            device=str(self.device),
            on_epoch=lambda population: self._report(ledger, len(again), population.epoch),
        )
        means = {final.number: final.value for final in finals.trials}
        best, value = ranked[0], ranked[0].value
        if finals.trials and finals.trials[0].value is not None:
            best, value = records[finals.trials[0].number], finals.trials[0].value
        assert value is not None, "the winner was trained to the end"
        start = None
        if first is not None:
            mean = means.get(first.number) if means else first.value
            start = Start(self.start_name, first.number, mean)
        return SearchRecord(
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            dataset=DatasetRecord.describe(self.dataset, data_dir),
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
            best=best,
            value=value,
            finalists=finals,
            importance=parameter_importance(sorted(trials, key=place_of)),
            space=from_plain(SpaceRecord, self.space.to_dict()),
            seconds=time.perf_counter() - self.started,
            environment=environment(self.device),
            trials=tuple(records.values()),
            start=start,
        )
