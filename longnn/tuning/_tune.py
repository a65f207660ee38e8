"""``tune``: one worker's share of a search.

It draws a batch of trials and trains it as one population, again and again. Several processes may
work on one search; they share its trials through the ledger. In the end each trains the finalists,
and writes what the search gave.
"""

import dataclasses
import datetime
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import FrozenTrial

from longnn._base.files import write_json, write_text
from longnn._base.provenance import environment
from longnn._base.schema import from_plain, to_plain
from longnn.config import Config
from longnn.data import NodeDataset
from longnn.data._scaling import Scaling
from longnn.metrics import metric_of
from longnn.training import Population, choose_device, complete, fits, make_problem, shape_of
from longnn.tuning._cost import Estimate, estimate
from longnn.tuning._ledger import BEAT, FINISHED, Claim, Ledger, place_of, rank_trials, worker_of
from longnn.tuning._record import (
    RECIPE,
    RECORD,
    VERSIONS,
    DatasetRecord,
    SearchRecord,
    SpaceRecord,
    Start,
    StartName,
    TrialRecord,
    TuningProgress,
    gain_text,
    parameter_importance,
    shown_score,
    write_page,
)
from longnn.tuning._space import Plain, SearchSpace, load_space, space_around
from longnn.tuning._splits import train_finalists, tuning_seeds, tuning_splits
from longnn.tuning._storage import (
    close_storage,
    default_url,
    open_storage,
    quiet_optuna,
    shown_url,
)
from longnn.tuning._training import Halving, Training

#: Trials trained together, by the kind of device.
BATCH = {"cpu": 8, "cuda": 64}
#: Seconds between checks whether other workers have finished.
POLL = 0.5

OnProgress = Callable[[TuningProgress], None]
OnEstimate = Callable[[Estimate], None]


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
        memory: int | None = None,
    ) -> None:
        dataset = dataset.asked
        self.dataset, self.space, self.halving, self.split = dataset, space, halving, split
        self.around, self.on_progress = around, on_progress
        self.device = choose_device(device)
        self.batch = batch or BATCH.get(self.device.type, BATCH["cpu"])
        self.splits, self.notes = tuning_splits(dataset, split, tuning_seeds(repeats))
        scaling = Scaling.fit(scale, dataset)
        self.scale = scaling.kind
        if dataset.backing.by_rows and "placement" in space.search:
            space = self.space = space.fix({"placement": "features"})
            self.notes.append("The filter stays on the features, since the graph is on disk.")
        base = self.config(space.fixed)
        highest = space.highest("degree", base.options.get("degree", 0))
        members = [base.replace(degree=highest)] if "degree" in base.options else [base]
        self.problem = make_problem(
            dataset, base, scaling, device=self.device, members=members, memory=memory
        )
        self.metric = self.problem.watched(base.settings.monitor)
        self.start_name: StartName = "default" if around is None else "given"
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
                note = f"The space was widened to contain the {self.start_name}: "
                self.notes.append(f"{note}{', '.join(added)}.")
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
            "halving": to_plain(self.halving),
            "start": self.start,
        }

    def config(self, values: Mapping[str, Plain]) -> Config:
        """The configuration of a trial: its values, the others as at the start."""
        values = {**values, "scale": self.scale}
        if self.split is not None:
            values["split"] = self.split
        if self.around is not None:
            return self.around.replace(seed=0, repeat=1, device="auto", **values)
        # What plain training of one model would use on this data.
        return complete({"preset": "fast", "model": self.space.model, **values}, self.dataset)

    def left(self, ledger: Ledger) -> int:
        """How many trials are left to finish."""
        return max(ledger.trials - len(ledger.get_trials(*FINISHED)), 0)

    def estimate(self, ledger: Ledger, finalists: int) -> Estimate:
        """What the trials that are left will cost."""
        return estimate(
            self.space,
            self.config(self.space.fixed),
            self.problem,
            self.splits,
            trials=self.left(ledger),
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
            tell = self._report if closed == before else self._count
            tell(ledger, len(group) - closed, population.epoch)

        def train() -> None:
            configs = [self.config(claim.values) for claim in group]
            shared = self.problem, self.splits, ledger, self.halving
            Training(group, configs, *shared, on_epoch).run()

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
        """Train so many finalists, and put together the record of all workers.

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
            start = Start(
                self.start_name, first.number, means.get(first.number) if means else first.value
            )
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


@dataclasses.dataclass(frozen=True)
class TuningResult:
    """A finished search: the winner, and the record as it is in ``tuning.json``."""

    config: Config
    record: SearchRecord

    @property
    def value(self) -> float:
        """The winner's mean validation score, over the splits of the finalists too."""
        return self.record.value

    def sentence(self) -> str:
        """The score of the winner, and what it gained over the start on the same splits."""
        record = self.record
        score = f"validation {metric_of(record.metric).name} {shown_score(record, record.value)}"
        return score if record.start is None else f"{score}, {gain_text(record)}"

    def write_recipe(self, path: str | Path) -> Path:
        """Write the winner as TOML, for :meth:`Config.from_toml` and ``longnn train --config``."""
        record = self.record
        seeds = [*record.seeds, *record.finalists.seeds]
        versions = ", ".join(f"{name} {record.environment[name]}" for name in VERSIONS)
        header = [
            f"Recipe for {record.model} on {record.dataset.name}, found by longnn tune.",
            f"Trial {record.best.number} of a search with {record.finished} trials and "
            f"{record.repeats} repeats per trial in the space {record.space.name!r}.",
            f"Validation {metric_of(record.metric).name}: {shown_score(record, record.value)}, the "
            f"mean over the tuning splits with seeds {seeds[0]} to {seeds[-1]}. No test node was "
            "used.",
            *([f"On the same splits: {gain_text(record)}."] if record.start is not None else []),
            f"Versions: {versions}.",
        ]
        # A dataset's name may hold any character, but a comment ends with its line.
        printable = ("".join(c if c.isprintable() else " " for c in line) for line in header)
        comments = [f"# {' '.join(line.split())}" for line in printable]
        write_text(Path(path), "\n".join([*comments, "", *self.config.to_toml(), ""]))
        return Path(path)


def tune(
    dataset: NodeDataset,
    space: SearchSpace | Mapping[str, Any] | str | Path | None = None,
    *,
    model: str | None = None,
    around: Config | None = None,
    default: bool = True,
    trials: int = 400,
    repeats: int = 3,
    batch: int | None = None,
    storage: str | BaseStorage | None = None,
    name: str | None = None,
    folder: str | Path | None,
    split: str | None = None,
    scale: str = "auto",
    seed: int = 0,
    device: str = "auto",
    halving: bool | Halving = True,
    finalists: int = 8,
    on_progress: OnProgress | None = None,
    on_estimate: OnEstimate | None = None,
    data_dir: str | Path | None = None,
    memory: int | None = None,
) -> TuningResult:
    """Search for the configuration with the best mean validation score.

    Call it again with the same arguments to continue after an interruption. Call it in several
    processes to share the work; each returns when the whole search is finished. No test node is
    used.

    The first trial is the default: what plain training of one model would use on this data, as far
    as the space does not fix other values. Halving does not stop it. Where the space lacks a value
    of it, the space is widened by that value. What the space does not mention has the default's
    value in every trial.

    Args:
        space: a name (``"default"``, ``"paper"``, ``"wide"``, ``"compact"``), a TOML file, its
            table, or a :class:`SearchSpace`; None for the one around ``around``, or ``"default"``.
        model: its name; None for that of ``around``, or ``"lon"``.
        around: a configuration to start with instead of the default. Its seed, repeat and device
            are ignored.
        default: whether to start with the default; if not, the first trial is drawn, too.
        trials: how many to finish in total, with those of earlier calls and of other workers.
        repeats: trainings per trial, on their own tuning splits (seeds 1000, 1001, ...).
        batch: trials trained together; by default 8 on a CPU and 64 on a GPU. It is halved when
            memory runs out.
        storage: an Optuna storage URL or object (:func:`~longnn.tuning.open_storage`); by default
            the SQLite file ``search.db`` in the folder.
        name: of the search in its storage; by default DATASET-MODEL.
        folder: for the storage, the record ``tuning.json``, ``recipe.toml``, figures and page.
            None keeps the search in memory and writes nothing.
        split: the split protocol; None for the dataset's own.
        seed: of the sampler. A search by a single worker can be repeated exactly.
        halving: stop the worse half of each batch at some epochs; a :class:`Halving` says when.
        finalists: the number of best trials to train again on further tuning splits. The best mean
            over all splits wins. With 0 the search alone decides.
        on_progress: called at each epoch with the state of the search.
        on_estimate: called before the search with its expected cost; a few epochs are timed for it.
        data_dir: the folder that a named dataset was read from, for the command on the page.
        memory: bytes that computing the terms of a graph on disk may use.

    Raises:
        ValueError: for an invalid argument, or a search that was started with other arguments.
        MemoryError: if a single trial does not fit the device.

    >>> from longnn.data import csbm
    >>> space = {"epochs": 2, "degree": 2, "dropout": {"choices": [0.1, 0.5]}}
    >>> graph = csbm(num_nodes=60, num_features=8)
    >>> result = tune(graph, space, trials=2, repeats=1, finalists=0, folder=None, device="cpu")
    >>> result.config.model, len(result.record.trials)
    ('lon', 2)
    """
    for key, value, least in (
        ("trials", trials, 1),
        ("batch", 1 if batch is None else batch, 1),
        ("finalists", finalists, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"Expected `{key}` to be an integer >= {least} (got {value!r})")
    model = model or ("lon" if around is None else around.model)
    if around is not None and around.model != model:
        raise ValueError(f"Expected `around` to be of model {model!r} (got {around.model!r})")
    if space is None:
        space = "default" if around is None else space_around(around)
    if around is not None:
        split = split or around.split
        scale = around.scale if scale == "auto" else scale
    search = Search(
        dataset,
        load_space(space, model),
        batch=batch,
        repeats=repeats,
        split=split,
        scale=scale,
        device=device,
        halving=Halving() if halving is True else halving or None,
        on_progress=on_progress,
        around=around,
        default=default,
        memory=memory,
    )
    if folder is not None:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        storage = storage or default_url(folder)
    url = storage if isinstance(storage, str) else None
    with quiet_optuna():
        shared = open_storage(url) if url is not None else storage or InMemoryStorage()
        assert isinstance(shared, BaseStorage)
        try:
            ledger = Ledger(
                shared,
                name or f"{dataset.name}-{model}",
                search.agreement(),
                search.space,
                trials=trials,
                seed=seed,
                start=search.start,
                url=url,
            )
            if on_estimate is not None and search.left(ledger):
                on_estimate(search.estimate(ledger, finalists))
            search.run(ledger)
            shown = None if url is None else shown_url(url)
            record = search.finish(ledger, finalists, shown, data_dir)
        finally:
            if url is not None:
                close_storage(shared)
    result = TuningResult(search.config(record.best.params), record)
    if folder is not None:
        write_json(folder / RECORD, record.to_dict())
        result.write_recipe(folder / RECIPE)
        write_page(folder, record)
    return result
