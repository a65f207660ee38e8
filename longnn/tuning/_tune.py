"""``tune``: one worker's share of a search.

It draws a batch of trials and trains it as one population, again and again. Several processes may
work on one search; they share its trials through the ledger. In the end each trains what was best
again, compares it with what the search started from, and writes what it gained.

A search of one model has one space. One without a model has a space around each member of the
default preset: the members are its first trials, and it goes on around those that lead.
"""

import contextlib
import dataclasses
import datetime
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import FrozenTrial

from longnn._base.files import write_json, write_text
from longnn._base.provenance import environment
from longnn._base.schema import to_plain
from longnn.config import Config
from longnn.data import NodeDataset, make_split
from longnn.data._scaling import Scaling
from longnn.data._splits import hold_out
from longnn.metrics import metric_of
from longnn.rivals import ahead_on_nodes
from longnn.training import (
    FREE,
    Job,
    Population,
    Watcher,
    choose_device,
    complete,
    fits,
    make_problem,
    members_of,
    score,
    shape_of,
)
from longnn.tuning._ledger import BEAT, FINISHED, Claim, Ledger, place_of, rank_trials, worker_of
from longnn.tuning._record import (
    RECIPE,
    RECORD,
    VERSIONS,
    DatasetRecord,
    Finalists,
    SearchRecord,
    SpaceRecord,
    Start,
    StartName,
    TrialRecord,
    TuningProgress,
    Verdict,
    finding,
    parameter_importance,
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
#: What the comparison in the end takes, as a multiple of what the members took: they are trained
#: again, alone and with what was found.
AGAIN = 2.5

OnProgress = Callable[[TuningProgress], None]


class OutOfTimeError(Exception):
    """The time for trials is over; those in training are given up."""


class Search:
    """One worker's share of a search; the arguments are those of :func:`~longnn.tuning.tune`."""

    def __init__(
        self,
        dataset: NodeDataset,
        space: SearchSpace | None,
        *,
        fixed: Mapping[str, Plain],
        batch: int | None,
        repeats: int,
        split: str | None,
        scale: str,
        device: str,
        halving: Halving | None,
        time_limit: float | None,
        on_progress: OnProgress | None,
        around: Config | None,
        default: bool,
        memory: int | None = None,
    ) -> None:
        dataset = dataset.asked
        self.dataset, self.halving, self.split = dataset, halving, split
        self.on_progress, self.time_limit = on_progress, time_limit
        self.device = choose_device(device)
        self.batch = batch or BATCH.get(self.device.type, BATCH["cpu"])
        scaling = Scaling.fit(scale, dataset)
        self.scale, self.model = scaling.kind, "" if space is None else space.model
        #: What trials change, by member; of one model without it: what plain training would use.
        self.bases: dict[str, Config] = {} if around is None else {"": around}
        self.notes: list[str] = []
        seeds = tuning_seeds(repeats)
        if space is None:
            base, members = self._around_preset(fixed, seeds)
        else:
            base, members = self._of_one_model(space, seeds, default)
        self.problem = make_problem(
            dataset, base, scaling, device=self.device, members=members, memory=memory
        )
        self.metric = self.problem.watched(base.settings.monitor)
        self.started = self.beaten = time.perf_counter()
        self.done = self.here = 0  # trials finished by all workers, and by this one
        self.begun = False  # whether all starts are among them
        self.best: FrozenTrial | None = None

    def _around_preset(
        self, fixed: Mapping[str, Plain], seeds: Sequence[int]
    ) -> tuple[Config, list[Config]]:
        """Spaces, starts and splits of a search around the members of the default preset.

        Returns:
            one of the members, and all of them.
        """
        self.whole = complete({"preset": "default", **self.shared, **fixed}, self.dataset)
        self.bases = members_of(self.whole, self.dataset)
        self.held_out = hold_out(self.dataset, make_split(self.dataset, self.split))
        self.notes += self.held_out.notes
        split = self.held_out.without_test()
        self.splits = [dataclasses.replace(split, seed=seed) for seed in seeds]
        self.spaces = [
            dataclasses.replace(space_around(base), member=name, fixed={})
            for name, base in self.bases.items()
        ]
        self.starts = [space.values_of(self.bases[space.member]) for space in self.spaces]
        members = list(self.bases.values())
        return members[0], members

    def _of_one_model(
        self, space: SearchSpace, seeds: Sequence[int], default: bool
    ) -> tuple[Config, list[Config]]:
        """The same of a search of one model: what it starts with, in its highest degree, too."""
        self.splits, self.notes = tuning_splits(self.dataset, self.split, seeds)
        if self.dataset.backing.by_rows and "placement" in space.search:
            space = space.fix({"placement": "features"})
            self.notes.append("The filter stays on the features, since the graph is on disk.")
        base = self.config(space.fixed)
        self.starts, self.spaces = [], [space]
        if default or self.bases:
            self.start_name: StartName = "given" if self.bases else "default"
            start = {**space.fixed, **space.values_of(base)}
            wide = space.widen(start)
            added = [f"{k} = {start[k]}" for k, of in wide.search.items() if of != space.search[k]]
            if added:
                note = f"The space was widened to contain the {self.start_name}: "
                self.notes.append(f"{note}{', '.join(added)}.")
            self.starts, self.spaces = [start], [wide]
        if "degree" not in base.options:
            return base, [base]
        return base, [base.replace(degree=space.highest("degree", base.options["degree"]))]

    @property
    def shared(self) -> dict[str, Plain]:
        """What all configurations share."""
        return {"scale": self.scale, **({} if self.split is None else {"split": self.split})}

    def agreement(self) -> dict[str, object]:
        """What every worker of the search must agree on; plain data."""
        spaces = [space.to_dict() for space in self.spaces]
        return {
            "data": self.dataset.fingerprint(),
            "model": self.model or {name: base.to_dict() for name, base in self.bases.items()},
            "space": [{key: space[key] for key in ("search", "fixed")} for space in spaces],
            "split protocol": self.splits[0].protocol,
            "repeats": len(self.splits),
            "scale": self.scale,
            "halving": to_plain(self.halving),
            "start": self.starts,
        }

    def config(self, values: Mapping[str, Plain]) -> Config:
        """The configuration of a trial: its values, the others as at the start."""
        changes = {**values, **self.shared}
        base = self.bases.get(str(changes.pop("member", "")))
        if base is not None:
            return base.replace(seed=0, repeat=1, device="auto", **changes)
        # What plain training of one model would use on this data.
        return complete({"preset": "fast", "model": self.model, **changes}, self.dataset)

    def run(self, ledger: Ledger) -> None:
        """Work until all workers together have finished the trials, or the time is over."""
        with ledger, contextlib.suppress(OutOfTimeError):
            self._count(ledger)
            while self.done < ledger.trials:
                self._check_time(ledger)
                claims = ledger.claim(self.batch)
                if claims:
                    self._train(ledger, claims)
                else:
                    time.sleep(POLL)  # other workers hold the rest; they finish it, or die
                    self._beat(ledger)
                self._count(ledger)

    def _check_time(self, ledger: Ledger) -> None:
        """Raise where it is time to end; what the search starts with is finished in any case."""
        if self.time_limit is None or self.best is None or not self.begun:
            return
        left = self.time_limit - (time.perf_counter() - self.started)
        if not self.model:
            took = [t.duration for t in ledger.get_trials(*FINISHED) if ledger.is_start(t)]
            left -= AGAIN * max(t.total_seconds() for t in took if t is not None)
        if left <= 0:
            raise OutOfTimeError

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
            self._check_time(ledger)
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
        self.begun = sum(map(ledger.is_start, trials)) == len(self.starts)
        self.best = next(iter(rank_trials(trials)), None)
        self._report(ledger, training, epoch)

    def _report(self, ledger: Ledger, training: int, epoch: int) -> None:
        if self.on_progress is None:
            return
        elapsed = time.perf_counter() - self.started
        left = max(ledger.trials - self.done, 0)
        eta = elapsed / self.here * left if self.here else None
        if self.time_limit is not None:
            eta = min(max(self.time_limit - elapsed, 0.0), math.inf if eta is None else eta)
        self.on_progress(
            TuningProgress(
                metric=self.metric,
                done=self.done,
                total=ledger.trials,
                best_value=None if self.best is None else self.best.values[0],
                best_params={} if self.best is None else self.best.user_attrs["values"],
                elapsed=elapsed,
                eta=eta,
                training=training,
                epoch=epoch,
            )
        )

    def finish(
        self, ledger: Ledger, finalists: int, storage: str | None, data_dir: str | Path | None
    ) -> "TuningResult":
        """Train what was best again, and put together the record of all workers.

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
        start, finals, verdict = None, Finalists(), None
        best, value = ranked[0], ranked[0].value
        if self.model:
            starts = [t.number for t in trials if ledger.is_start(t) and t.state in FINISHED]
            first = records[starts[0]] if starts else None
            finals = self._train_finalists(ledger, ranked, finalists, first)
            means = {final.number: final.value for final in finals.trials}
            if finals.trials and finals.trials[0].value is not None:
                best, value = records[finals.trials[0].number], finals.trials[0].value
            if first is not None:
                mean = means.get(first.number) if means else first.value
                start = Start(self.start_name, first.number, mean)
            config = self.config(best.params)
        else:
            config, verdict = self._judge(ledger, ranked)
        assert value is not None, "the winner was trained to the end"
        record = SearchRecord(
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            dataset=DatasetRecord.describe(self.dataset, data_dir),
            model=self.model,
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
            importance=parameter_importance(sorted(trials, key=place_of)) if self.model else {},
            space=SpaceRecord.of(self.spaces),
            seconds=time.perf_counter() - self.started,
            environment=environment(self.device),
            trials=tuple(records.values()),
            start=start,
            verdict=verdict,
        )
        return TuningResult(config, record)

    def _train_finalists(
        self,
        ledger: Ledger,
        ranked: Sequence[TrialRecord],
        count: int,
        start: TrialRecord | None,
    ) -> Finalists:
        """So many of the best trials of one model, and its start, on further splits."""
        again = [*ranked[:count]]
        if again and start is not None and start in ranked and start not in again:
            again.append(start)  # the winner is compared with it on the same splits
        return train_finalists(
            self.dataset,
            again,
            [self.config(trial.params) for trial in again],
            repeats=len(self.splits),
            split=self.split,
            device=str(self.device),
            on_epoch=lambda population: self._report(ledger, len(again), population.epoch),
        )

    def _judge(
        self, ledger: Ledger, ranked: Sequence[TrialRecord]
    ) -> tuple[Config, Verdict | None]:
        """The preset joined by the best trial around each member, where that is ahead of it; and
        what this gains over the preset alone, on nodes that nothing was chosen by.

        Both are trained as ``longnn train`` would. Where nothing is gained beyond chance, the
        preset stays as it is.
        """
        best: dict[str, TrialRecord] = {}
        for trial in ranked:
            best.setdefault(str(trial.params["member"]), trial)
        tuned = {
            f"{name}, tuned": self.config(trial.params)
            for name, trial in best.items()
            if trial.place >= len(self.starts)
        }
        if not tuned:
            return self.whole, None
        tables = {
            name: {key: value for key, value in config.to_dict().items() if key not in FREE}
            for name, config in {**self.bases, **tuned}.items()
        }
        joined = self.whole.replace(members=tables)
        device, splits = str(self.device), [self.held_out] * 2
        job = Job(self.dataset, [self.whole, joined], splits, device=device)
        watcher = Watcher(lambda population: self._report(ledger, len(tables), population.epoch))
        before, after = job.run(watcher=watcher)
        test, sign = self.held_out.test, metric_of(self.metric).sign
        reached = score(before.predicted, self.dataset, test, before.readout).get(self.metric)
        if reached is None:  # of a rare class none is held out
            return self.whole, Verdict(None, 0.0, 0.0, 0.0, int(test.sum()))
        ahead = ahead_on_nodes(after, before.predicted, before.readout, self.dataset, self.metric)
        low, high = sorted((sign * ahead.low, sign * ahead.high))
        verdict = Verdict(reached, sign * ahead.mean, low, high, int(test.sum()))
        voting = {each.name: tables[each.name] for each in after.members if each.weight > 0}
        return joined.replace(members=voting) if verdict.worth else self.whole, verdict


@dataclasses.dataclass(frozen=True)
class TuningResult:
    """A finished search: the winner, and the record as it is in ``tuning.json``.

    Where a search around the default preset gained nothing, the winner is the preset.
    """

    config: Config
    record: SearchRecord

    @property
    def value(self) -> float:
        """The winner's mean validation score, over the splits of the finalists too."""
        return self.record.value

    def write_recipe(self, path: str | Path) -> Path:
        """Write the winner as TOML, for :meth:`Config.from_toml` and ``longnn train --config``."""
        record = self.record
        seeds = [*record.seeds, *record.finalists.seeds]
        versions = ", ".join(f"{name} {record.environment[name]}" for name in VERSIONS)
        header = [
            f"Recipe for {record.subject} on {record.dataset.name}, found by longnn tune.",
            f"Trial {record.best.number} was the best of a search with {record.finished} trials "
            f"and {record.repeats} repeats per trial in the space {record.space.name!r}.",
            f"Tuning splits with seeds {seeds[0]} to {seeds[-1]}. No test node was used.",
            f"{finding(record)}.",
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
    fixed: Mapping[str, Any] | None = None,
    trials: int = 400,
    time_limit: float | None = None,
    repeats: int | None = None,
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
    data_dir: str | Path | None = None,
    memory: int | None = None,
) -> TuningResult:
    """Search for what predicts better than the default preset, or for one model's configuration.

    Call it again with the same arguments to continue after an interruption. Call it in several
    processes to share the work; each returns when the whole search is finished. No test node is
    used.

    Without a space, a model and a configuration to search around, the first trials are the members
    of the default preset, and the others are drawn around those that lead. A fifth of the nodes
    that are not for testing is held out of all of them. In the end the preset, and the preset with
    the best trial around each member, are trained as ``longnn train`` does, and compared on these
    nodes. Where nothing is gained beyond chance, the default is kept, and there is no recipe.

    Else one model is searched. The first trial is the default: what plain training of one model
    would use on this data, as far as the space does not fix other values. Where the space lacks a
    value of it, the space is widened by that value. What the space does not mention has the
    default's value in every trial. Halving stops no trial that a search starts with.

    Args:
        space: a name (``"default"``, ``"paper"``, ``"wide"``, ``"compact"``), a TOML file, its
            table, or a :class:`SearchSpace`; None for the one around ``around``, or ``"default"``.
        model: its name; None for that of ``around`` or of the space.
        around: a configuration to start with instead of the default. Its seed, repeat and device
            are ignored.
        default: whether to start with the default; if not, the first trial is drawn, too.
        fixed: settings that may stand beside a preset, for all of its members.
        trials: how many to finish in total, with those of earlier calls and of other workers.
        time_limit: seconds after which no trial is trained any more. What the search starts with is
            always trained to its end.
        repeats: trainings per trial, by default one for a preset and three for a model, on their
            own tuning splits (seeds 1000, 1001, ...); those of a preset differ in their seed alone.
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
        finalists: the number of best trials of one model to train again on further tuning splits.
            The best mean over all splits wins. With 0 the search alone decides.
        on_progress: called at each epoch with the state of the search.
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
    if time_limit is not None and not 0 < time_limit < math.inf:
        raise ValueError(f"Expected `time_limit` > 0 and finite, in seconds (got {time_limit!r})")
    whole = space is None and model is None and around is None
    if fixed and not whole:
        raise ValueError(f"Expected `fixed` beside a preset alone (got {sorted(fixed)[0]!r})")
    if repeats is None:
        repeats = 1 if whole else 3
    if model is None:
        described = space if isinstance(space, SearchSpace) else around
        model = "lon" if described is None else described.model
    if around is not None and around.model != model:
        raise ValueError(f"Expected `around` to be of model {model!r} (got {around.model!r})")
    if space is None:
        space = "default" if around is None else space_around(around)
    if around is not None:
        split = split or around.split
        scale = around.scale if scale == "auto" else scale
    search = Search(
        dataset,
        None if whole else load_space(space, model),
        fixed=fixed or {},
        batch=batch,
        repeats=repeats,
        split=split,
        scale=scale,
        device=device,
        halving=Halving() if halving is True else halving or None,
        time_limit=time_limit,
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
                name or f"{dataset.name}-{search.model or 'default'}",
                search.agreement(),
                search.spaces,
                trials=trials,
                seed=seed,
                starts=search.starts,
                url=url,
            )
            search.run(ledger)
            shown = None if url is None else shown_url(url)
            result = search.finish(ledger, finalists, shown, data_dir)
        finally:
            if url is not None:
                close_storage(shared)
    if folder is not None:
        write_json(folder / RECORD, result.record.to_dict())
        if result.record.keeps_default:
            (folder / RECIPE).unlink(missing_ok=True)  # of a shorter search
        else:
            result.write_recipe(folder / RECIPE)
        write_page(folder, result.record)
    return result
