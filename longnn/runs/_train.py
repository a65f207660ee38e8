"""Training as a run: everything it takes to trust, repeat, resume and read it, in one folder.

What is asked becomes a job; the job is trained, described and written. Nothing that is written is
read back.
"""

import dataclasses
import datetime
import itertools
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from longnn import report
from longnn._base.contexts import held_signals
from longnn._base.files import writing
from longnn._base.version import __version__
from longnn.config import Config
from longnn.data import DataError, NodeDataset, make_split
from longnn.description import describe_run
from longnn.records import RUN, Request
from longnn.rivals import describe_baselines, rival_configs
from longnn.runs._dataset import (
    GraphLike,
    OnNote,
    as_dataset,
    join,
    load_graph,
    read_source,
    require_rows,
)
from longnn.runs._folder import (
    CONFIG,
    PREDICTIONS,
    REPORT,
    WEIGHTS,
    Keeper,
    OnEpoch,
    begin_folder,
    begun_before,
    begun_members,
    find_run,
    hold_folder,
    is_complete,
    read_config,
    tidy_folder,
)
from longnn.runs._predictions import write_predictions
from longnn.runs._run import Run, load_run
from longnn.store._ranks import Ranks
from longnn.training import Fitted, Job, StopTraining, Trained, complete, left_out_note

#: Seconds between checkpoints.
CHECKPOINT_EVERY = 10.0
#: Seconds that a run takes after training on two cores: always, and by nodes and stored edges.
FINISHING = (2.5, 6e-6)
#: Of a time limit, the share that is for training even where loading took too long.
LEAST = 0.25

OnStart = Callable[[NodeDataset], None]


def train(
    data: GraphLike,
    config: Config | Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    *,
    data_dir: str | Path | None = None,
    command: str = "longnn.train(...)",
    on_note: OnNote | None = None,
    on_start: OnStart | None = None,
    on_epoch: OnEpoch | None = None,
    checkpoint_every: float = CHECKPOINT_EVERY,
    memory: int | None = None,
    cache: str | Path | None = None,
    began: float | None = None,
) -> Run:
    """Train as the command ``longnn train`` does.

    An interrupt (Ctrl-C, SIGTERM) waits for the end of the epoch and leaves a checkpoint in the
    folder, from which :func:`resume` goes on; a second one does not wait. After Ctrl-C the best so
    far is described and written, and :class:`Interrupted` has it as a run.

    Started by ``torchrun``, all processes train one run on rows, and the first writes it; all of
    them must see the graph's folder and the run's. Started again, they go on with that run.

    Args:
        data: a dataset's name, the path of an edge file or of a folder with ``edges.*`` and
            ``nodes.*``, a :class:`~longnn.data.Source`, a :class:`~longnn.data.NodeDataset` or a
            PyG ``Data``.
        config: what to train and how, or a flat table of what is to differ from the defaults, which
            then are those for this data (:func:`~longnn.training.complete`).
        folder: where to leave weights, predictions, record and report; None writes nothing.
        data_dir: where the files of named datasets are.
        command: what the record names as its origin.
        on_note: called with a line before files that are too large for memory are prepared.
        on_start: called with the dataset as soon as it is loaded.
        on_epoch: called with the population after each epoch, of those that this process trains:
            members on a small graph are trained by as many as torch has threads.
        checkpoint_every: seconds between checkpoints.
        memory: bytes to use, for each process. A graph that needs more is trained on rows; if it is
            in files, they are prepared first. By default half of what is free.
        cache: the folder to prepare files in; by default ``$LONGNN_CACHE``, else the user's cache.
        began: from when on a time limit counts, by ``time.perf_counter``; by default from now.

    Raises:
        ValueError: for bad data or a bad configuration, before a folder is made.

    >>> from longnn.data import Source
    >>> graph = Source.resolve("csbm", options={"num_nodes": 60, "num_features": 8})
    >>> run = train(graph, {"preset": "fast", "epochs": 5})
    >>> run.predictions().num_rows
    60
    """
    clock, ranks = _Clock(began), join(config)
    dataset = as_dataset(data, data_dir, memory, ranks, on_note, cache)
    if not isinstance(config, Config):
        config = complete(config or {}, dataset)
    note = left_out_note(config, dataset)
    if note:
        dataset = dataclasses.replace(dataset, notes=(*dataset.notes, note))
    if on_start is not None:
        on_start(dataset)
    clock.lap("loading")
    job = _make_job(dataset, config, memory, ranks)
    source = dataset.source
    request = Request(
        version=__version__,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=command,
        source=None if source is None else source.to_dict(),
        fingerprint=dataset.fingerprint(),
        config=config.to_dict(),
    )
    place: Path | None = ranks.agree(None if folder is None else Path(folder))
    if place is not None:
        before = begun_before(place, request, ranks)
        if before is not None and is_complete(place):
            return load_run(place)
        if before is None and ranks.first:
            begin_folder(place, request, config)
        request = before or request
    clock.lap("preparing")
    with hold_folder(place if ranks.first else None):
        return _run(job, request, place, clock, on_epoch, checkpoint_every)


def resume(
    folder: str | Path,
    *,
    data_dir: str | Path | None = None,
    on_start: OnStart | None = None,
    on_epoch: OnEpoch | None = None,
    checkpoint_every: float = CHECKPOINT_EVERY,
    began: float | None = None,
) -> Run:
    """Continue an interrupted run from its folder alone; the result is identical.

    Arguments as in :func:`train`.

    Raises:
        DataError: where there is no unfinished run, or its data has changed since.
    """
    clock = _Clock(began)
    folder = Path(folder)
    request = find_run(folder)
    if is_complete(folder):
        raise DataError(f"Expected an unfinished run (got {folder}, which is complete)")
    if request.source is None:
        raise DataError(f"Expected a run on files or a dataset (that of {folder} was in memory)")
    config = read_config(folder, request)
    ranks = join(config)
    source = read_source(request.source, folder / RUN)
    dataset = load_graph(source, folder / RUN, request.fingerprint, data_dir=data_dir)
    if dataset.fingerprint() != request.fingerprint:
        raise DataError(
            f"Expected the data that {folder} was begun on (the files have changed since)"
        )
    require_rows(dataset, ranks)
    if on_start is not None:
        on_start(dataset)
    clock.lap("loading")
    try:
        job = _make_job(dataset, config, ranks=ranks)
    except ValueError as error:
        raise DataError(f"{folder / CONFIG}: {error}") from error
    clock.lap("preparing")
    with hold_folder(folder if ranks.first else None):
        return _run(job, request, folder, clock, on_epoch, checkpoint_every)


class _Clock:
    """Where the time goes: seconds by step, in the order of the steps."""

    def __init__(self, began: float | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()
        self.began = self._last if began is None else began

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step] = round(self.seconds.get(step, 0.0) + now - self._last, 3)
        self._last = now


def _make_job(
    dataset: NodeDataset,
    config: Config,
    memory: int | None = None,
    ranks: Ranks | None = None,
) -> Job:
    """The repeats, and those of each rival; what is wrong with the request is found here."""
    configs = [config.replace(seed=config.seed + i) for i in range(config.repeat)]
    splits = [make_split(dataset, config.split, c.seed) for c in configs]
    rivals = rival_configs(config, dataset) if config.baselines else {}
    configs += [rival.replace(seed=c.seed) for rival in rivals.values() for c in configs]
    splits *= 1 + len(rivals)
    return Job(
        dataset,
        configs,
        splits,
        record_filters=True,
        required=config.repeat,
        memory=memory,
        ranks=ranks,
    )


def _run(
    job: Job,
    request: Request,
    folder: Path | None,
    clock: _Clock,
    on_epoch: OnEpoch | None,
    checkpoint_every: float,
) -> Run:
    """Train, describe and write; of several ranks the first describes and writes."""
    every = _train_job(job, folder, clock.began, on_epoch, checkpoint_every)
    interrupted = job.stopped == "interrupted"
    if folder is not None and not job.ranks.first:
        if interrupted:
            raise KeyboardInterrupt
        job.ranks.wait()  # until it is written
        return load_run(folder)
    clock.lap("training")
    run = _describe(job, request, every, clock)
    if folder is not None:
        _write(run, folder, clock)
        if not interrupted:
            tidy_folder(folder)
            job.ranks.wait()
        clock.lap("report")
    if interrupted:
        raise Interrupted(run)
    return run


class Interrupted(KeyboardInterrupt):
    """A training was interrupted; ``run`` is what it had reached, and can be used."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run


def _train_job(
    job: Job,
    folder: Path | None,
    began: float,
    on_epoch: OnEpoch | None,
    checkpoint_every: float,
) -> Sequence[Fitted]:
    """Train to the end, or until the time limit, or until Ctrl-C; other signals end it here."""
    config, ranks, deadline = job.configs[0], job.ranks, None
    if config.time_limit:
        deadline = began + config.time_limit - _finishing(job)
        deadline = max(deadline, time.perf_counter() + LEAST * config.time_limit)
    with held_signals() as caught:
        keeper = Keeper(folder, caught, on_epoch, checkpoint_every, deadline, ranks)
        try:
            begun = ranks.agree(begun_members(folder) if ranks.first else None)
            every = job.run(begun=begun, watcher=keeper)
        except StopTraining as stop:
            if stop.reason == "interrupted":
                raise KeyboardInterrupt from None
            raise ValueError(
                f"Expected a time limit that is long enough for one epoch (got "
                f"{config.time_limit:g} s)"
            ) from None
    if job.stopped == "interrupted" and caught != [signal.SIGINT]:
        raise KeyboardInterrupt  # whoever ends the process does not wait
    return every


def _finishing(job: Job) -> float:
    """Seconds that the rest takes after training: predictions, baselines, spectrum, report."""
    problem = job.problem_of(0)
    return FINISHING[0] + FINISHING[1] * problem.size


def _describe(job: Job, request: Request, every: Sequence[Fitted], clock: _Clock) -> Run:
    """The repeats as a run, with its record and its baselines."""
    config, scaling, problem = job.configs[0], job.scaling_of(0), job.problem_of(0)
    count, baselines = config.repeat, []
    fitted, others = every[:count], iter(every[count:])
    if config.baselines:
        names = rival_configs(config, job.dataset)
        rivals = {name: list(itertools.islice(others, count)) for name in names}
        baselines = describe_baselines(job.dataset, problem, fitted, rivals)
    clock.lap("baselines")
    run = Run(
        describe_run(request, job.whole, problem, scaling.kind, fitted, baselines),
        Trained.collect(job.whole, scaling, fitted),
        job.whole,
        splits=job.whole_splits[: config.repeat],
        opinions=[one.opinion for one in fitted],
        seconds=clock.seconds,
    )
    clock.lap("describing")
    return run


def _write(run: Run, folder: Path, clock: _Clock) -> None:
    """Weights and predictions, then the record, then the page that is made from it."""
    run.trained.save(folder / WEIGHTS)
    write_predictions(run.tables(), folder / PREDICTIONS)
    clock.lap("writing")
    # From disk it would read the neighbours of all test nodes into memory: that must be asked for.
    columns = {} if run.dataset.backing.by_rows else run.column_importance()
    clock.lap("columns")
    record = dataclasses.replace(run.record, importance=columns, seconds=dict(clock.seconds))
    run.record = record.write(folder)
    with writing(folder / REPORT):
        report.write_report(run.record)
