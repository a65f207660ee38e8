"""A training run as a folder: everything it takes to trust, repeat, resume and read it.

``run.json`` (what was asked) is written first and ``record.json`` (what came out) last, both
atomically; in between lies ``checkpoint.safetensors``, removed at the very end. So a folder is
complete if it has a record and no checkpoint, and resumable otherwise.
"""

import contextlib
import datetime
import difflib
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from longnn import data, report
from longnn.runs import _records as records
from longnn import training
from longnn.runs._artifacts import read_json, require_keys, write_filter_path, write_history, write_predictions, write_weights, writing
from longnn.config import Config
from longnn.data import DataError, NodeDataset, Split
from longnn._base.files import write_json
from longnn._base.provenance import environment
from longnn._base.interrupts import held_signals
from longnn.graphs import extreme_eigenvalues
from longnn.training import Population, Problem, Result, is_out_of_memory, load_checkpoint, save_checkpoint, saved_members
from longnn._base.version import __version__
from longnn.training import Scaling

RUN, RECORD, CONFIG = "run.json", "record.json", "config.toml"
CHECKPOINT, WEIGHTS = "checkpoint.safetensors", "weights.safetensors"
#: One for each population, where memory allows no more than part of the repeats at once.
CHECKPOINTS = "checkpoint*.safetensors"
#: Seconds between checkpoints.
CHECKPOINT_EVERY = 10.0

Progress = Callable[[Population], None]


def load_source(source: dict[str, Any], data_dir: str | Path | None = None) -> NodeDataset:
    """The dataset of a run: a name or files, and the options they were loaded with."""
    graph, options = source["graph"], dict(source["options"])
    loader: Callable[..., Any] = data.load_files
    if source.get("nodes") is None:
        bundled = {entry.name: entry.make for entry in data.list_bundled()}
        loader = bundled.get(graph, data.load_named if graph in data.known_names() else loader)
    parameters = inspect.signature(loader).parameters.values()
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    for key in options:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            choices = f" (it has {', '.join(known)})" if known else " (it has none)"
            raise DataError(f"Unknown data option `{key}` of {graph}{choices}{hint}")
    try:
        return data.load(graph, source.get("nodes"), data_dir=data_dir, **options)
    except TypeError as error:
        given = ", ".join(f"{key}={value!r}" for key, value in options.items())
        raise DataError(f"Expected data options of another type (got {given}: {error})") from error


def start_run(
    folder: Path,
    dataset: NodeDataset,
    source: dict[str, Any],
    config: Config,
    *,
    command: str,
) -> None:
    """Create the folder and write down what is asked for.

    What can be found wrong with the request is found first, so that it leaves no folder behind.
    """
    make_splits(dataset, config)
    training.choose_device(config.device)
    outputs = max(dataset.num_classes, 1) if dataset.task == "classification" else 1
    training.make_model(config, dataset.num_features, outputs, config.seed)
    if (folder / RUN).exists() or (folder / RECORD).exists():
        raise ValueError(
            f"Expected a new folder (got {folder}, which already holds a run); "
            "choose another --output, or continue it with --resume"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"Expected a new or empty folder (got {folder}, which is neither)")
    asked = {
        "longnn": __version__,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "source": source,
        "fingerprint": dataset.fingerprint(),
        "features": dataset.num_features,
        "feature_names": list(dataset.feature_names),
        "classes": list(dataset.classes),
        "task": dataset.task,
    }
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        config.write_toml(folder / CONFIG)
        write_json(folder / RUN, asked)


def find_run(folder: Path) -> dict[str, Any]:
    """What was asked of the run in a folder; an error where there is none."""
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise DataError(f"Expected a run folder (got {folder}, which {what})")
    keys = ("created", "command", "source", "fingerprint", "features", "feature_names")
    asked = read_json(folder / RUN)
    return require_keys(asked, (*keys, "classes", "task"), folder / RUN)


def require_record(folder: Path) -> dict[str, Any]:
    """The record of a finished run; an error that says what is missing otherwise."""
    find_run(folder)
    if not (folder / RECORD).exists():
        raise DataError(
            f"Expected a finished run in {folder} (it has no {RECORD}: it was interrupted); "
            f"continue it with: longnn train --resume {folder}"
        )
    keys = ("config", "data", "repeats", "summary")
    return require_keys(read_json(folder / RECORD), keys, folder / RECORD)


def make_splits(dataset: NodeDataset, config: Config) -> list[Split]:
    """One split per repeat."""
    return [data.make_split(dataset, config.split, config.seed + i) for i in range(config.repeat)]


def choose_scaling(dataset: NodeDataset, source: dict[str, Any], config: Config) -> Scaling:
    """``auto``: a user's own columns come in any unit, published features are ready to use."""
    kind = config.scale
    if kind == "auto":
        named = data.known_names()
        identity = source["options"].get("features") == "identity"
        kind = "none" if source["graph"] in named or identity else "standard"
    return Scaling.fit(kind, dataset.data.x)


def run_training(
    folder: Path,
    dataset: NodeDataset,
    config: Config,
    *,
    on_epoch: Progress | None = None,
    checkpoint_every: float = CHECKPOINT_EVERY,
) -> dict[str, Any]:
    """Train (or go on training) the run in ``folder``; returns its record.

    An interrupt (Ctrl-C, SIGTERM) waits for the end of the epoch and leaves a checkpoint behind,
    so that the same call goes on where it stopped; a second one does not wait.
    """
    asked = find_run(folder)
    scaling = choose_scaling(dataset, asked["source"], config)
    problem = training.make_problem(dataset, config, scaling)
    splits = make_splits(dataset, config)
    configs = [config.replace(seed=config.seed + i) for i in range(config.repeat)]
    started = time.perf_counter()
    with held_signals() as caught:
        saved = started

        def train(population: Population, first: int) -> list[Result]:
            checkpoint = _checkpoint(folder, first)
            if checkpoint.exists():
                _restore(population, checkpoint)

            def watch(population: Population) -> None:
                nonlocal saved
                if caught or time.perf_counter() - saved >= checkpoint_every:
                    _save(population, checkpoint)
                    saved = time.perf_counter()
                if caught:
                    raise KeyboardInterrupt
                if on_epoch is not None:
                    on_epoch(population)

            try:
                results = population.run(watch)
            except (RuntimeError, MemoryError) as error:
                if is_out_of_memory(error):  # fewer will be tried, to whom it is of no use
                    checkpoint.unlink(missing_ok=True)
                raise
            _save(population, checkpoint)
            return results

        results = training.run_chunked(
            configs, problem, splits, record_filters=True, begun=_begun(folder), run=train
        )
    seconds = time.perf_counter() - started
    record = _finish(folder, asked, dataset, configs, problem, splits, results, scaling, seconds)
    for checkpoint in sorted(folder.glob(CHECKPOINTS)):  # the first one last: it stands for all
        checkpoint.unlink(missing_ok=True)
    for leftover in folder.glob(".*.tmp"):  # of a write that was killed
        leftover.unlink(missing_ok=True)
    return record


def _checkpoint(folder: Path, first: int) -> Path:
    """Of the repeats that are trained together, by the number of the first."""
    return folder / (CHECKPOINT if first == 0 else f"checkpoint-{first}.safetensors")


def _begun(folder: Path) -> dict[int, int]:
    """The first repeat of every checkpoint, and how many repeats it holds."""
    begun = {}
    for path in folder.glob(CHECKPOINTS):
        number = path.stem.removeprefix("checkpoint").removeprefix("-") or "0"
        with _damage(path):
            begun[int(number)] = saved_members(path)
    return begun


def _save(population: Population, path: Path) -> None:
    with writing(path):
        save_checkpoint(population, path)


def _restore(population: Population, path: Path) -> None:
    with _damage(path):
        load_checkpoint(population, path)


@contextlib.contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Say of a checkpoint that cannot be read what to do about it."""
    remedy = "delete it to begin the run again"
    try:
        yield
    except ValueError as error:
        raise DataError(f"{error}; {remedy}") from error
    except (KeyError, IndexError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        raise DataError(
            f"Expected {path} to be a checkpoint of this run (it does not fit); {remedy}"
        ) from error


def _finish(
    folder: Path,
    asked: dict[str, Any],
    dataset: NodeDataset,
    configs: Sequence[Config],
    problem: Problem,
    splits: Sequence[Split],
    results: Sequence[Result],
    scaling: Scaling,
    seconds: float,
) -> dict[str, Any]:
    """Write weights, predictions, history and record, then figures and report."""
    repeats = []
    _, largest = extreme_eigenvalues(problem.operator)
    for i, (config, split, result) in enumerate(zip(configs, splits, results, strict=True)):
        sizes = (problem.features.shape[1], problem.outputs)
        model = training.trained_model(config, *sizes, result.state)
        predicted = training.predict(model, problem, offset=result.offset, scale=result.scale)
        if result.best_epoch == 0 or not bool(torch.isfinite(predicted).all()):
            raise ValueError(
                f"Expected training to stay finite (with seed {config.seed} it diverged in epoch "
                f"{result.epochs}); lower the learning rates, e.g. --set lr_transform=0.001"
            )
        filters = training.describe_filters(model, training.make_model(config, *sizes, config.seed))
        for f in filters:
            f["words"] = records.put_in_words(f, largest)
        repeats.append(records.describe_repeat(dataset, config, split, result, predicted, filters))
        if i == 0:
            sets = records.masks_of(split)
            write_predictions(folder, dataset, predicted, dataset.classes, sets)
    write_weights(folder / WEIGHTS, results, scaling)
    write_history(folder / "history.csv", results)
    if results[0].filter_path is not None:
        write_filter_path(folder / "filter_path.npz", results[0].filter_path)
    record = {
        "longnn": __version__,
        "created": asked["created"],
        "command": asked["command"],
        "config": configs[0].replace(repeat=len(configs)).to_dict(),
        "environment": environment(problem.device),
        "data": records.describe_data(dataset, problem, asked, scaling.kind),
        "metric": "accuracy" if dataset.task == "classification" else "r2",
        "seconds": seconds,
        "repeats": repeats,
        "summary": records.summarize_repeats(repeats),
    }
    with writing(folder / RECORD):
        write_json(folder / RECORD, record)
    with writing(folder / "report.html"):
        report.write_report(folder)
    return record


def resume(folder: Path, data_dir: str | Path | None = None) -> tuple[NodeDataset, Config]:
    """What a run was about, from its folder alone, checked against the data it was begun on."""
    asked = find_run(folder)
    if (folder / RECORD).exists() and not (folder / CHECKPOINT).exists():
        raise DataError(f"Expected an unfinished run (got {folder}, which is complete)")
    config = Config.from_toml(folder / CONFIG)
    dataset = load_source(asked["source"], data_dir)
    if dataset.fingerprint() != asked["fingerprint"]:
        raise DataError(
            f"Expected the data that {folder} was begun on (the files have changed since)"
        )
    return dataset, config


def folder_name(text: str) -> str:
    """A text as the name of a folder.

    >>> folder_name("my graph/lon")
    'my-graph-lon'
    """
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in text)


def default_folder(root: Path, dataset: str, model: str) -> Path:
    """runs/DATASET-MODEL, or the first free runs/DATASET-MODEL-N."""
    stem = folder_name(f"{dataset}-{model}")
    folder, number = root / stem, 2
    while folder.exists():
        folder, number = root / f"{stem}-{number}", number + 1
    return folder
