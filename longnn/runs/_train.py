"""Training as a run: everything it takes to trust, repeat, resume and read it, in one folder.

``run.json`` (what was asked) is written first and ``record.json`` (what came out) last, both
atomically; in between lies ``checkpoint.safetensors``, removed at the very end. So a folder is
complete if it has a record and no checkpoint, and resumable otherwise. Nothing that is written is
read back. ``run.json`` is only ever created: of two runs that begin in one folder, one gets it.
"""

import contextlib
import dataclasses
import datetime
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from torch_geometric.data import Data

from longnn import report
from longnn._base.files import TEMPORARY, try_lock, writing
from longnn._base.interrupts import held_signals
from longnn._base.version import __version__
from longnn.config import Config
from longnn.data import DataError, NodeDataset, Source, from_data, make_split
from longnn.records import RECORD, RUN, Request
from longnn.runs._baselines import describe_baselines, mlp_config
from longnn.runs._describe import describe_run
from longnn.runs._predictions import write_predictions
from longnn.runs._run import PREDICTIONS, WEIGHTS, Run, find_run, load_graph, load_run, read_source
from longnn.runs._stored import write_stream
from longnn.runs._together import CHECKPOINT, begun_before, is_complete, join, require_rows
from longnn.store import Ranks, StoredDataset, load_source, prepare_large
from longnn.training import (
    Job,
    Population,
    StopTraining,
    Trained,
    Watcher,
    complete,
    is_out_of_memory,
    load_checkpoint,
    members_of,
    row_degree_of,
    save_checkpoint,
    saved_members,
)

CONFIG, REPORT = "config.toml", "report.html"
#: One for each population, where memory allows no more than part of the repeats at once.
CHECKPOINTS = "checkpoint*.safetensors"
#: Seconds between checkpoints.
CHECKPOINT_EVERY = 10.0
#: Seconds that a run takes after training on two cores: always, and by nodes and stored edges.
FINISHING = (2.5, 6e-6)
#: Of a time limit, the share that is for training even where loading took too long.
LEAST = 0.25

OnNote = Callable[[str], None]
OnStart = Callable[[NodeDataset], None]
OnEpoch = Callable[[Population], None]
#: A graph: its name or path, where it comes from, or the thing itself.
GraphLike: TypeAlias = str | Path | Source | NodeDataset | Data


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
        on_epoch: called with the population after each epoch.
        checkpoint_every: seconds between checkpoints.
        memory: bytes to use, for each process. A graph that needs more is trained on rows; if it is
            in files, they are prepared first (:func:`~longnn.store.prepare_large`). By default half
            of what is free.
        began: from when on a time limit counts, by ``time.perf_counter``; by default from now.

    Raises:
        ValueError: for bad data or a bad configuration, before a folder is made.

    >>> graph = Source.resolve("csbm", options={"num_nodes": 60, "num_features": 8})
    >>> run = train(graph, {"epochs": 5})
    >>> run.predictions().num_rows
    60
    """
    clock, ranks = _Clock(began), join(config)
    dataset = _as_dataset(data, data_dir, memory, ranks, on_note)
    asked = config
    if isinstance(dataset, StoredDataset):
        chosen = asked if isinstance(asked, Config) else complete(asked or {}, dataset)
        dataset = _with_members_noted(dataset, chosen)
    if on_start is not None:
        on_start(dataset)
    config = asked if isinstance(asked, Config) else complete(asked or {}, dataset)
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
            _begin(place, request, config)
        request = before or request
    clock.lap("preparing")
    with _alone(place if ranks.first else None):
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
    """Go on with an interrupted run, from its folder alone, to the bits it would have had.

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
    config = _read_config(folder, request)
    ranks = join(config)
    source = read_source(request.source, folder / RUN)
    dataset = load_graph(source, folder / RUN, data_dir, request.fingerprint)
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
    with _alone(folder if ranks.first else None):
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


def _with_members_noted(dataset: StoredDataset, config: Config) -> StoredDataset:
    """The dataset with a note of how many models of a preset can be trained on rows."""
    if config.preset == "fast":
        return dataset
    every = members_of(config, dataset)
    kept = sum(row_degree_of(member) is not None for member in every.values())
    note = (
        f"{kept} of the {len(every)} models of preset {config.preset!r} can be trained on rows, "
        "and are."
    )
    return dataclasses.replace(dataset, notes=(*dataset.notes, note))


def _as_dataset(
    data: GraphLike,
    data_dir: str | Path | None,
    memory: int | None,
    ranks: Ranks,
    on_note: OnNote | None,
) -> NodeDataset:
    if isinstance(data, NodeDataset):
        dataset = data
    elif isinstance(data, Data):
        dataset = from_data(data)
    else:
        source = data if isinstance(data, Source) else Source.resolve(data)
        source = prepare_large(source, memory=memory, ranks=ranks, on_note=on_note)
        rows = True if ranks.count > 1 else None
        dataset = load_source(source, data_dir, rows=rows, memory=memory)
    require_rows(dataset, ranks)
    return dataset


def _make_job(
    dataset: NodeDataset,
    config: Config,
    memory: int | None = None,
    ranks: Ranks | None = None,
) -> Job:
    """One member per repeat, and one MLP; what is wrong with the request is found here."""
    configs = [config.replace(seed=config.seed + i) for i in range(config.repeat)]
    splits = [make_split(dataset, config.split, c.seed) for c in configs]
    mlp = mlp_config(config) if config.baselines else None
    if mlp is not None:
        configs += [mlp.replace(seed=c.seed) for c in configs]
        splits *= 2
    return Job(
        dataset,
        configs,
        splits,
        record_filters=True,
        required=config.repeat,
        memory=memory,
        ranks=ranks,
    )


def _begin(folder: Path, request: Request, config: Config) -> None:
    """Create the folder and write down what is asked for."""
    taken = ValueError(
        f"Expected a new folder (got {folder}, which already holds a run); "
        "choose another --output, or continue it with --resume"
    )
    if folder.exists() and not (folder.is_dir() and _is_empty(folder)):
        if (folder / RUN).exists() or (folder / RECORD).exists():
            raise taken
        raise ValueError(f"Expected a new or empty folder (got {folder}, which is neither)")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            request.write(folder)
        except FileExistsError as error:  # another run has begun here since
            raise taken from error
        config.write_toml(folder / CONFIG)


def _is_empty(folder: Path) -> bool:
    """Whether there is nothing, or only what a killed write left behind."""
    return set(folder.iterdir()) <= set(folder.glob(TEMPORARY))


def _read_config(folder: Path, request: Request) -> Config:
    """What to train; a disk may have been full before it was in a file of its own."""
    if (folder / CONFIG).exists() or request.config is None:
        try:
            return Config.from_toml(folder / CONFIG)
        except ValueError as error:
            raise DataError(str(error)) from error
    try:
        config = Config.from_dict(request.config)
    except ValueError as error:
        raise DataError(f"{folder / RUN}: {error}") from error
    with writing(folder / CONFIG):
        config.write_toml(folder / CONFIG)
    return config


@contextlib.contextmanager
def _alone(folder: Path | None) -> Iterator[None]:
    """Hold a run folder: two who train in it would remove each other's files."""
    if folder is None:
        yield
        return
    with (folder / RUN).open("rb") as file:
        if not try_lock(file):
            raise DataError(
                f"Expected a run that nobody is training (got {folder}, where a training is under "
                "way); wait for its end, or choose another folder"
            )
        yield


def _run(
    job: Job,
    request: Request,
    folder: Path | None,
    clock: _Clock,
    on_epoch: OnEpoch | None,
    checkpoint_every: float,
) -> Run:
    """Train, describe and write; of several ranks the first describes and writes."""
    config, ranks, deadline = job.configs[0], job.ranks, None
    if config.time_limit:
        deadline = clock.began + config.time_limit - _finishing(job)
        deadline = max(deadline, time.perf_counter() + LEAST * config.time_limit)
    with held_signals() as caught:
        keeper = _Keeper(folder, caught, on_epoch, checkpoint_every, deadline, ranks)
        try:
            begun = ranks.agree(_begun(folder) if ranks.first else None)
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
    if folder is not None and not ranks.first:
        if job.stopped == "interrupted":
            raise KeyboardInterrupt
        ranks.wait()  # until it is written
        return load_run(folder)
    clock.lap("training")
    scaling, problem = job.scaling_of(0), job.problem_of(0)
    fitted, mlp = every[: config.repeat], every[config.repeat :]
    splits = job.splits[: config.repeat]
    baselines = describe_baselines(job.dataset, problem, fitted, mlp) if config.baselines else []
    clock.lap("baselines")
    record = describe_run(request, job.dataset, problem, scaling.kind, fitted, baselines)
    run = Run(
        record,
        Trained.collect(job.dataset, scaling, fitted),
        job.dataset,
        splits=splits,
        predicted=[one.predicted for one in fitted],
        seconds=clock.seconds,
    )
    clock.lap("describing")
    if folder is not None:
        run.trained.save(folder / WEIGHTS)
        if isinstance(run.dataset, StoredDataset):
            write_stream(run.stream(), (folder / PREDICTIONS).with_suffix(".parquet"))
        else:
            write_predictions(run.predictions(), folder / PREDICTIONS)
        clock.lap("writing")
        run.record = dataclasses.replace(record, seconds=dict(clock.seconds)).write(folder)
        with writing(folder / REPORT):
            report.write_report(run.record)
        if job.stopped != "interrupted":
            _tidy(folder)
            ranks.wait()
        clock.lap("report")
    if job.stopped == "interrupted":
        raise Interrupted(run)
    return run


class Interrupted(KeyboardInterrupt):
    """A training was interrupted; ``run`` is what it had reached, and can be used."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run


def _finishing(job: Job) -> float:
    """Seconds that the rest takes after training: predictions, baselines, spectrum, report."""
    problem = job.problem_of(0)
    return FINISHING[0] + FINISHING[1] * problem.size


class _Keeper(Watcher):
    """Keeps what populations have reached in checkpoints, and stops them on a signal."""

    def __init__(
        self,
        folder: Path | None,
        caught: list[int],
        on_epoch: OnEpoch | None,
        checkpoint_every: float,
        deadline: float | None,
        ranks: Ranks,
    ) -> None:
        super().__init__(on_epoch, deadline, ranks)
        self.folder, self.caught = folder, caught
        self.every, self.saved = checkpoint_every, time.perf_counter()

    def begin(self, population: Population, first: int) -> None:
        """Go on where it was, where the first rank knows of it."""
        if self.folder is None:
            return
        if self.ranks.agree(_checkpoint(self.folder, first).exists()):
            with _damage():
                load_checkpoint(population, _checkpoint(self.folder, first))

    def watch(self, population: Population, first: int) -> None:
        """Save it now and then."""
        caught = self.ranks.any(bool(self.caught))
        if caught or time.perf_counter() - self.saved >= self.every:
            self.rest(population, first)
            self.saved = time.perf_counter()
        if caught:
            raise StopTraining("interrupted")
        super().watch(population, first)

    def rest(self, population: Population, first: int) -> None:
        """Save it."""
        if self.folder is not None and self.ranks.first:
            save_checkpoint(population, _checkpoint(self.folder, first))

    def failed(self, error: BaseException, first: int) -> None:
        """Where memory ran out, fewer will be tried, to whom a checkpoint is of no use."""
        if self.folder is not None and self.ranks.first and is_out_of_memory(error):
            _checkpoint(self.folder, first).unlink(missing_ok=True)


def _checkpoint(folder: Path, first: int) -> Path:
    """Of the repeats that are trained together, by the number of the first."""
    return folder / (CHECKPOINT if first == 0 else f"checkpoint-{first}.safetensors")


def _begun(folder: Path | None) -> dict[int, int]:
    """The first repeat of every checkpoint, and how many repeats it holds."""
    begun: dict[int, int] = {}
    for path in () if folder is None else folder.glob(CHECKPOINTS):
        number = path.stem.removeprefix("checkpoint").removeprefix("-") or "0"
        if number.isascii() and number.isdecimal():
            with _damage():
                begun[int(number)] = saved_members(path)
    return begun


@contextlib.contextmanager
def _damage() -> Iterator[None]:
    """Say of a checkpoint that cannot be read what to do about it."""
    try:
        yield
    except ValueError as error:
        raise DataError(f"{error}; move it elsewhere to begin the run again") from error


def _tidy(folder: Path) -> None:
    """Remove checkpoints, and what a killed write left behind."""
    for checkpoint in sorted(folder.glob(CHECKPOINTS)):  # the first one last: it stands for all
        checkpoint.unlink(missing_ok=True)
    for leftover in folder.rglob(TEMPORARY):
        leftover.unlink(missing_ok=True)


def folder_name(text: str) -> str:
    """A text as the name of a folder.

    >>> folder_name("my graph/lon")
    'my-graph-lon'
    """
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in text)


def default_folder(root: Path, dataset: str, model: str, *, unfinished: bool = False) -> Path:
    """``runs/DATASET-MODEL``, or the first free ``runs/DATASET-MODEL-N``.

    With ``unfinished``, the one before it, if its run has not ended.
    """
    stem = folder_name(f"{dataset}-{model}")
    last, folder, number = None, root / stem, 2
    while folder.exists():
        last, folder, number = folder, root / f"{stem}-{number}", number + 1
    return last if unfinished and last is not None and not is_complete(last) else folder
