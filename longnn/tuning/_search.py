"""The search: batches of trials asked together, trained as one population, halved as they go.

Several processes may work on one study; see :mod:`longnn.tuning` for how they share it.
"""

import contextlib
import dataclasses
import datetime
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import TrialState

from longnn._base.provenance import environment
from longnn.config import Config
from longnn.data import NodeDataset
from longnn.training import Population, Scaling, choose_device, fits, make_problem
from longnn.tuning._finalists import hold_final, resolve_scale
from longnn.tuning._importance import parameter_importance
from longnn.tuning._ledger import FINISHED, Claim, Ledger
from longnn.tuning._page import write_page
from longnn.tuning._result import (
    RECIPE,
    TuningProgress,
    TuningResult,
    best_trial,
    rank_trials,
    trial_rows,
    write_record,
)
from longnn.tuning._space import SearchSpace, architecture, load_space
from longnn.tuning._splits import tuning_splits
from longnn.tuning._storage import close_storage, default_url, open_storage, quiet_optuna, shown_url
from longnn.tuning._training import Halving, Training
from longnn.tuning._workers import BEAT

#: Trials trained together, by the kind of device.
BATCH = {"cpu": 8, "cuda": 64}
#: Seconds between looks at what other workers still do.
POLL = 0.5

OnProgress = Callable[[TuningProgress], None]


def tune(
    dataset: NodeDataset,
    space: SearchSpace | Mapping[str, Any] | str | Path = "published",
    *,
    model: str = "lon",
    trials: int = 400,
    repeats: int = 3,
    batch: int | None = None,
    storage: str | BaseStorage | None = None,
    study_name: str | None = None,
    folder: str | Path | None,
    split: str | None = None,
    scale: str = "auto",
    seed: int = 0,
    device: str = "auto",
    halving: bool | Halving = True,
    finalists: int = 8,
    on_progress: OnProgress | None = None,
) -> TuningResult:
    """Search for the configuration with the best mean validation score.

    Call it again with the same arguments to go on after an interruption, or in several processes
    at once to share the work; each returns when the whole search is done. No test node is used.

    Args:
        dataset: what to learn.
        space: a name (``"published"``, ``"wide"``), a TOML file, a table or a :class:`SearchSpace`.
        model: a short name, see ``longnn models``.
        trials: how many to finish in all, those of earlier calls and other workers included.
        repeats: trainings a trial, on tuning splits of their own (seeds 1000, 1001, ...).
        batch: trials trained together; by default 8 on a CPU, 64 on a GPU. Halved where memory
            runs out.
        storage: an Optuna storage URL or object (:func:`~longnn.tuning.open_storage`); by default
            the SQLite file ``study.db`` in the folder.
        study_name: by default DATASET-MODEL.
        folder: for the study, the record ``tuning.json``, ``recipe.toml``, figures and page; None
            keeps the study in memory and writes nothing.
        split: the protocol, or None for the dataset's own.
        scale: of the features, as in :class:`~longnn.config.Config`.
        seed: of the sampler. A single worker repeats a search exactly.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        halving: stop the worse half of each batch at some epochs; a :class:`Halving` says when.
        finalists: so many of the best trials are trained again on further tuning splits, and the
            best mean over all splits wins; 0 to trust the search alone.
        on_progress: called at each epoch with the state of the search.

    Raises:
        ValueError: for a bad argument, or a study that was begun with other ones.
        MemoryError: where a single trial does not fit the device.
    """
    for name, value, least in (
        ("trials", trials, 1),
        ("batch", batch or 1, 1),
        ("finalists", finalists, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"Expected `{name}` to be an integer >= {least} (got {value!r})")
    chosen = load_space(space, model)
    if folder is None:
        storage = InMemoryStorage() if storage is None else storage
    else:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
    url = storage if isinstance(storage, str) else default_url(folder or Path())
    with quiet_optuna():
        place = storage if isinstance(storage, BaseStorage) else open_storage(url)
        try:
            search = _Search(
                dataset,
                chosen,
                batch=batch,
                repeats=repeats,
                split=split,
                scale=scale,
                device=device,
                halving=Halving() if halving is True else halving or None,
                on_progress=on_progress,
            )
            name = study_name or f"{dataset.name}-{model}"
            search.ledger = Ledger(place, name, search.terms(), chosen, trials=trials, seed=seed)
            search.run()
            shown = shown_url(url) if place is not storage else None
            result = search.result(folder, shown, finalists)
        finally:
            if place is not storage:
                close_storage(place)
    if folder is not None:
        write_record(folder, result.record)
        result.write_recipe(folder / RECIPE)
        write_page(folder)
    return result


class _Search:
    """One worker's part of a search."""

    ledger: Ledger

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
    ) -> None:
        self.dataset, self.space, self.halving = dataset, space, halving
        self.on_progress = on_progress
        self.device = choose_device(device)
        self.batch = batch or BATCH.get(self.device.type, BATCH["cpu"])
        self.scale = resolve_scale(scale, dataset)
        self.splits, self.notes = tuning_splits(dataset, split, repeats)
        self.split = split
        base = space.config(space.fixed)
        scaling = Scaling.fit(self.scale, dataset.data.x)
        self.problem = make_problem(dataset, base, scaling, device=self.device)
        self.started = self.beaten = time.perf_counter()
        self.done = self.here = 0  # trials finished by all workers, and by this one
        self.closed = 0  # trials closed of the group in training
        self.best: Any = None

    def terms(self) -> dict[str, Any]:
        """What every worker on the study must share."""
        halving = None if self.halving is None else _plain(self.halving)
        return {
            "data": self.dataset.fingerprint(),
            "model": self.space.model,
            "space": {k: v for k, v in self.space.to_dict().items() if k in ("search", "fixed")},
            "split protocol": self.splits[0].protocol,
            "repeats": len(self.splits),
            "scale": self.scale,
            "halving": halving,
        }

    def run(self) -> None:
        """Work until the budget is spent by all workers together."""
        self.ledger.recover()
        self._count()
        self._tell(0, 0)
        try:
            while self.done < self.ledger.trials:
                claims = self.ledger.claim(self.batch)
                if claims:
                    self._train_batch(claims)
                else:
                    time.sleep(POLL)  # others hold what is left; they finish it, or die
                    self._beat()
                    self.ledger.recover()
                self._count()
                self._tell(0, 0)
        finally:
            with contextlib.suppress(Exception):
                self.ledger.beat(done=True)

    def _train_batch(self, claims: Sequence[Claim]) -> None:
        try:
            self._train(claims)
        finally:
            # Interrupted: give back what is not finished. If even that fails, the process is
            # about to die, and whoever comes next takes it up.
            with contextlib.suppress(Exception):
                self.ledger.release(claims)

    def _train(self, claims: Sequence[Claim]) -> None:
        """Train trials group by group; where memory runs out, in smaller groups."""
        configs = {claim.number: self._config(claim.values) for claim in claims}
        groups: dict[Any, list[Claim]] = {}
        for claim in claims:
            groups.setdefault(architecture(configs[claim.number]), []).append(claim)
        queue = deque(groups.values())
        while queue:
            group = queue.popleft()
            if self._fits(group, [configs[claim.number] for claim in group]):
                continue
            if len(group) == 1:
                raise MemoryError(
                    f"Expected room for one trial of {len(self.splits)} repeats on {self.device} "
                    "(it ran out of memory); use fewer repeats or fewer hidden channels"
                )
            self.batch = max(1, len(group) // 2)
            left = [claim for claim in group if not claim.done]
            queue.extendleft(reversed([list(part) for part in _chunks(left, self.batch)]))

    def _fits(self, group: list[Claim], configs: list[Config]) -> bool:
        self.closed = 0

        def train() -> None:
            training = Training(
                group,
                configs,
                self.problem,
                self.splits,
                self.ledger,
                halving=self.halving,
                on_epoch=lambda p: self._on_epoch(p, group),
            )
            training.run()

        return fits(train, self.device)

    def _config(self, values: Mapping[str, Any]) -> Config:
        asked = {} if self.split is None else {"split": self.split}
        return self.space.config(values, scale=self.scale, **asked)

    def _on_epoch(self, population: Population, group: Sequence[Claim]) -> None:
        self._beat()
        closed = sum(claim.done for claim in group)
        if closed != self.closed:
            self.closed = closed
            self._count()
        self._tell(len(group) - closed, population.epoch)

    def _beat(self) -> None:
        if time.perf_counter() - self.beaten > BEAT:
            self.beaten = time.perf_counter()
            self.ledger.beat()

    def _count(self) -> None:
        trials = self.ledger.get_trials(*FINISHED)
        self.done = len(trials)
        self.here = sum(t.user_attrs.get("worker") == self.ledger.worker.id for t in trials)
        self.best = best_trial(trials)

    def _tell(self, training: int, epoch: int) -> None:
        if self.on_progress is None:
            return
        elapsed = time.perf_counter() - self.started
        left = max(self.ledger.trials - self.done, 0)
        self.on_progress(
            TuningProgress(
                done=self.done,
                total=self.ledger.trials,
                best_value=None if self.best is None else self.best.values[0],
                best_params={} if self.best is None else self.best.user_attrs["values"],
                elapsed=elapsed,
                eta=elapsed / self.here * left if self.here else None,
                training=training,
                epoch=epoch,
            )
        )

    def result(self, folder: Path | None, storage: str | None, finalists: int) -> TuningResult:
        """The record of the whole search, of all workers."""
        trials = self.ledger.get_trials()
        ranked = rank_trials(trials)
        if not ranked:
            raise ValueError(
                f"Expected a trial that trains to its end (all {self.done} diverged); lower the "
                "learning rates of the space"
            )
        chosen = ranked[:finalists]
        finals = hold_final(
            self.dataset,
            chosen,
            [self._config(trial.user_attrs["values"]) for trial in chosen],
            repeats=len(self.splits),
            split=self.split,
            device=str(self.device),
            on_epoch=lambda p: self._tell(len(chosen), p.epoch),
        )
        number, value = ranked[0].number, ranked[0].values[0]
        if chosen and finals["trials"][0]["value"] is not None:
            number, value = (finals["trials"][0][key] for key in ("number", "value"))
        rows = trial_rows(trials)
        best = next(row for row in rows if row["number"] == number)
        halving = None if self.halving is None else _plain(self.halving)
        record: dict[str, Any] = {
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "dataset": {"name": self.dataset.name, "fingerprint": self.dataset.fingerprint()},
            "model": self.space.model,
            "metric": "accuracy" if self.dataset.task == "classification" else "r2",
            "study": self.ledger.study.study_name,
            "storage": storage,
            "finished": self.done,
            "repeats": len(self.splits),
            "protocol": self.splits[0].protocol,
            "seeds": [split.seed for split in self.splits],
            "seed": self.ledger.seed,
            "halving": halving,
            "notes": self.notes,
            "best": best,
            "value": value,
            "finalists": finals,
            "importance": parameter_importance(trials),
            "space": self.space.to_dict(),
            "seconds": time.perf_counter() - self.started,
            "environment": environment(self.device),
            "trials": [row for row in rows if row["state"] != TrialState.WAITING.name.lower()],
        }
        return TuningResult(self._config(best["params"]), value, record["trials"], record, folder)


def _plain(halving: Halving) -> dict[str, Any]:
    """As JSON gives it back."""
    return {**dataclasses.asdict(halving), "rungs": list(halving.rungs)}


def _chunks(items: Sequence[Claim], size: int) -> Iterable[tuple[Claim, ...]]:
    iterator = iter(items)
    while part := tuple(itertools.islice(iterator, size)):
        yield part
