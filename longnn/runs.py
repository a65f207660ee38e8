"""A training run as a folder: everything it takes to trust, repeat, resume and read it.

``run.json`` (what was asked) is written first and ``record.json`` (what came out) last, both
atomically; in between lies ``checkpoint.safetensors``. So a folder is complete if it has a record,
resumable if it has not.
"""

import contextlib
import copy
import csv
import dataclasses
import datetime
import io
import json
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import safetensors
import safetensors.torch
import sklearn
import torch
import torch_geometric
from torch import Tensor

from longnn import data, report, workflow
from longnn.config import Config
from longnn.data import DataError, NodeDataset, Split
from longnn.files import atomic_path, write_json
from longnn.spectrum import spectral_density
from longnn.training import FIELDS, Population, Result, load_checkpoint, save_checkpoint, summarize
from longnn.version import __version__
from longnn.workflow import Scaling

RUN, RECORD, CONFIG = "run.json", "record.json", "config.toml"
CHECKPOINT, WEIGHTS = "checkpoint.safetensors", "weights.safetensors"
#: Seconds between checkpoints.
CHECKPOINT_EVERY = 10.0

Progress = Callable[[Population], None]


def load_source(source: dict[str, Any], data_dir: str | Path | None = None) -> NodeDataset:
    """The dataset of a run: a name or files, and the options they were loaded with."""
    return data.load(source["graph"], source.get("nodes"), data_dir=data_dir, **source["options"])


def environment(device: torch.device) -> dict[str, Any]:
    """Versions and hardware: what a reader needs to judge whether a number should repeat."""
    return {
        "longnn": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "scikit_learn": sklearn.__version__,
        "platform": platform.platform(),
        "cpu": _cpu_name(),
        "threads": torch.get_num_threads(),
        "device": str(device),
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
    }


def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def start_run(
    folder: Path,
    dataset: NodeDataset,
    source: dict[str, Any],
    config: Config,
    *,
    command: str,
) -> None:
    """Create the folder and write down what is asked for."""
    if (folder / RUN).exists() or (folder / RECORD).exists():
        raise ValueError(
            f"Expected a new folder (got {folder}, which already holds a run); "
            "choose another --output, or continue it with --resume"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"Expected a new or empty folder (got {folder}, which is neither)")
    folder.mkdir(parents=True, exist_ok=True)
    config.write_toml(folder / CONFIG)
    write_json(
        folder / RUN,
        {
            "longnn": __version__,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "command": command,
            "source": source,
            "fingerprint": dataset.fingerprint(),
            "features": dataset.num_features,
            "feature_names": list(dataset.feature_names),
            "classes": list(dataset.classes),
            "task": dataset.task,
        },
    )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or one clear error."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"Expected {path.name} in {path.parent} (there is none)") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(f"Expected {path} to be JSON (it is damaged: {error})") from error
    if not isinstance(value, dict):
        raise DataError(f"Expected {path} to hold a JSON object (got {type(value).__name__})")
    return value


def find_run(folder: Path) -> dict[str, Any]:
    """What was asked of the run in a folder; an error where there is none."""
    if not folder.is_dir():
        raise DataError(f"Expected a run folder (got {folder}, which does not exist)")
    return read_json(folder / RUN)


def require_record(folder: Path) -> dict[str, Any]:
    """The record of a finished run; an error that says what is missing otherwise."""
    find_run(folder)
    if not (folder / RECORD).exists():
        raise DataError(
            f"Expected a finished run in {folder} (it has no {RECORD}: it was interrupted); "
            f"continue it with: longnn train --resume {folder}"
        )
    return read_json(folder / RECORD)


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
) -> dict[str, Any]:
    """Train (or go on training) the run in ``folder``; returns its record.

    An interrupt leaves a checkpoint behind, so that the same call goes on where it stopped.
    """
    asked = find_run(folder)
    scaling = choose_scaling(dataset, asked["source"], config)
    problem = workflow.make_problem(dataset, config, scaling)
    splits = make_splits(dataset, config)
    configs = [config.replace(seed=config.seed + i) for i in range(config.repeat)]
    population = workflow.make_population(configs, problem, splits, record_filters=True)
    checkpoint = folder / CHECKPOINT
    if checkpoint.exists():
        load_checkpoint(population, checkpoint)
    started = time.perf_counter()
    saved = started

    def watch(population: Population) -> None:
        nonlocal saved
        if time.perf_counter() - saved > CHECKPOINT_EVERY:
            save_checkpoint(population, checkpoint)
            saved = time.perf_counter()
        if on_epoch is not None:
            on_epoch(population)

    try:
        results = population.run(watch)
    except BaseException:
        # Whatever stopped it, what was trained is kept (unless the disk is what failed).
        with contextlib.suppress(OSError):
            save_checkpoint(population, checkpoint)
        raise
    seconds = time.perf_counter() - started
    save_checkpoint(population, checkpoint)
    record = _finish(folder, asked, dataset, configs, problem, splits, results, scaling, seconds)
    checkpoint.unlink(missing_ok=True)
    return record


def _finish(
    folder: Path,
    asked: dict[str, Any],
    dataset: NodeDataset,
    configs: Sequence[Config],
    problem: Any,
    splits: Sequence[Split],
    results: Sequence[Result],
    scaling: Scaling,
    seconds: float,
) -> dict[str, Any]:
    """Write weights, predictions, history and record, then figures and report."""
    repeats = []
    for i, (config, split, result) in enumerate(zip(configs, splits, results, strict=True)):
        sizes = (problem.features.shape[1], problem.outputs)
        model = workflow.trained_model(config, *sizes, result.state)
        predicted = workflow.predict(model, problem, offset=result.offset, scale=result.scale)
        start = workflow.make_model(config, *sizes, config.seed)
        repeats.append(_describe_repeat(dataset, config, split, result, predicted, model, start))
        if i == 0:
            sets = {"train": split.train, "val": split.val, "test": split.test}
            write_predictions(folder, dataset, predicted, dataset.classes, sets)
    _write_weights(folder / WEIGHTS, results, scaling)
    _write_history(folder / "history.csv", results)
    if results[0].filter_path is not None:
        _write_path(folder / "filter_path.npz", results[0].filter_path)
    density = spectral_density(problem.operator)
    card = data.describe(dataset).to_dict()
    record = {
        "longnn": __version__,
        "created": asked["created"],
        "command": asked["command"],
        "config": configs[0].replace(repeat=len(configs)).to_dict(),
        "environment": environment(problem.device),
        "data": {
            "name": dataset.name,
            "source": asked["source"],
            "fingerprint": asked["fingerprint"],
            "task": dataset.task,
            "classes": list(dataset.classes),
            "notes": list(dataset.notes),
            "scaling": scaling.kind,
            "card": card,
            "density": {
                "eigenvalues": density.eigenvalues.tolist(),
                "density": density.density.tolist(),
            },
        },
        "metric": "accuracy" if dataset.task == "classification" else "r2",
        "seconds": seconds,
        "repeats": repeats,
        "summary": summarize_repeats(repeats),
    }
    write_json(folder / RECORD, record)
    report.write_report(folder)
    return record


def _describe_repeat(
    dataset: NodeDataset,
    config: Config,
    split: Split,
    result: Result,
    predicted: Tensor,
    model: Any,
    start: Any,
) -> dict[str, Any]:
    masks = {"train": split.train, "val": split.val, "test": split.test}
    filters = workflow.describe_filters(model, start)
    for f in filters:
        f["words"] = report.describe_filter(f["eigenvalues"], f["response"])
    train, val, test = split.sizes
    described: dict[str, Any] = {
        "seed": config.seed,
        "split": {
            "protocol": split.protocol,
            "seed": split.seed,
            "train": train,
            "val": val,
            "test": test,
            "notes": list(split.notes),
        },
        "epochs": result.epochs,
        "best_epoch": result.best_epoch,
        "stopped": result.stopped,
        "offset": result.offset,
        "scale": result.scale,
        "scores": {name: workflow.score(predicted, dataset, mask) for name, mask in masks.items()},
        "filters": filters,
    }
    if dataset.task == "classification":
        described["confusion"] = _confusion(predicted, dataset, split.test)
    return described


def _confusion(predicted: Tensor, dataset: NodeDataset, mask: Tensor) -> list[list[int]]:
    """Counts of test nodes, rows = true class, columns = predicted class."""
    size = dataset.num_classes
    pairs = dataset.data.y[mask] * size + predicted.argmax(1)[mask]
    counts: list[list[int]] = torch.bincount(pairs, minlength=size * size).view(size, size).tolist()
    return counts


def summarize_repeats(repeats: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and interval of each score of each set over the repeats that have it."""
    summary: dict[str, Any] = {}
    for name in ("train", "val", "test"):
        metrics = {metric for r in repeats for metric in r["scores"][name]}
        summary[name] = {
            metric: summarize(
                [r["scores"][name][metric] for r in repeats if metric in r["scores"][name]]
            )
            for metric in sorted(metrics)
        }
    return summary


def write_predictions(
    folder: Path,
    dataset: NodeDataset,
    predicted: Tensor,
    classes: Sequence[str],
    sets: dict[str, Tensor] | None = None,
    stem: str = "predictions",
) -> list[Path]:
    """Predictions of every node as CSV and Parquet: id, prediction, probabilities, label, set."""
    columns: dict[str, Any] = {"id": list(dataset.ids)}
    y = dataset.data.y
    if len(classes):
        columns["predicted"] = [classes[k] for k in predicted.argmax(1).tolist()]
        for k, name in enumerate(classes):
            columns[f"p_{name}"] = predicted[:, k].double().numpy()
        if y is not None:
            known = dataset.classes
            columns["label"] = [known[k] if k >= 0 else None for k in y.tolist()]
    else:
        columns["predicted"] = predicted.double().numpy()
        if y is not None:
            columns["label"] = [None if v != v else v for v in y.tolist()]
    if sets is not None:
        where = np.full(dataset.num_nodes, "none", dtype=object)
        for name, mask in sets.items():
            where[mask.numpy()] = name
        columns["set"] = where.tolist()
    table = pyarrow.table(columns)
    paths = [folder / f"{stem}.csv", folder / f"{stem}.parquet"]
    with atomic_path(paths[0]) as temporary:
        pyarrow.csv.write_csv(table, temporary)
    with atomic_path(paths[1]) as temporary:
        pyarrow.parquet.write_table(table, temporary)
    return paths


def _write_weights(path: Path, results: Sequence[Result], scaling: Scaling) -> None:
    tensors = {
        f"{i}/{name}": t.contiguous()
        for i, result in enumerate(results)
        for name, t in result.state.items()
    }
    if scaling.mean is not None and scaling.deviation is not None:
        tensors["features/mean"] = scaling.mean
        tensors["features/deviation"] = scaling.deviation
    metadata = {"format": _FORMAT, "scaling": scaling.kind}
    with atomic_path(path) as temporary:
        safetensors.torch.save_file(tensors, str(temporary), metadata=metadata)


_FORMAT = "longnn.weights/1"


def read_weights(path: Path, repeat: int = 0) -> tuple[dict[str, Tensor], Scaling]:
    """One repeat's weights and the scaling of features, from a run's weights file."""
    try:
        with safetensors.safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise DataError(f"Expected {path.name} in {path.parent} (there is none)") from error
    except (safetensors.SafetensorError, OSError) as error:
        raise DataError(f"Expected {path} to hold weights (it is damaged: {error})") from error
    if metadata.get("format") != _FORMAT:
        raise DataError(f"Expected {path} to hold weights of a run (got another file)")
    prefix = f"{repeat}/"
    state = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    if not state:
        raise DataError(f"Expected weights of repeat {repeat} in {path} (got none)")
    mean, deviation = tensors.get("features/mean"), tensors.get("features/deviation")
    return state, Scaling(metadata.get("scaling", "none"), mean, deviation)


def _write_history(path: Path, results: Sequence[Result]) -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["repeat", "epoch", *FIELDS])
    for i, result in enumerate(results):
        columns = [result.history[field].tolist() for field in FIELDS]
        for epoch, row in enumerate(zip(*columns, strict=True), start=1):
            writer.writerow([i, epoch, *("" if v != v else repr(v) for v in row)])
    with atomic_path(path) as temporary:
        temporary.write_text(buffer.getvalue(), encoding="utf-8")


def _write_path(path: Path, beta: Tensor) -> None:
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, epochs=np.arange(1, len(beta) + 1), beta=beta.numpy())


def resume(folder: Path, data_dir: str | Path | None = None) -> tuple[NodeDataset, Config]:
    """What a run was about, from its folder alone, checked against the data it was begun on."""
    asked = find_run(folder)
    if (folder / RECORD).exists():
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


def predict_run(
    folder: Path, dataset: NodeDataset, *, repeat: int = 0
) -> tuple[Tensor, dict[str, Any]]:
    """Predictions of a finished run on a graph, the same or another; and the run's record."""
    record, asked = require_record(folder), find_run(folder)
    dataset = _match_features(dataset, asked)
    config = Config.from_dict(record["config"])
    state, scaling = read_weights(folder / WEIGHTS, repeat)
    if repeat >= len(record["repeats"]):
        raise DataError(f"Expected a repeat below {len(record['repeats'])} (got {repeat})")
    problem = workflow.make_problem(dataset, config, scaling)
    problem = dataclasses.replace(problem, task=asked["task"])
    outputs = len(asked["classes"]) if asked["task"] == "classification" else 1
    try:
        model = workflow.trained_model(config, asked["features"], outputs, state)
    except ValueError as error:
        raise DataError(f"Expected {folder / WEIGHTS} to fit the run's model ({error})") from error
    described = record["repeats"][repeat]
    predicted = workflow.predict(
        model, problem, offset=described["offset"], scale=described["scale"]
    )
    return predicted, record


def evaluate_run(folder: Path, dataset: NodeDataset) -> list[dict[str, Any]]:
    """Scores of every repeat of a finished run, computed again from its weights."""
    config = Config.from_dict(require_record(folder)["config"])
    repeats = []
    for i, split in enumerate(make_splits(dataset, config)):
        predicted, _ = predict_run(folder, dataset, repeat=i)
        masks = {"train": split.train, "val": split.val, "test": split.test}
        scores = {name: workflow.score(predicted, dataset, mask) for name, mask in masks.items()}
        repeats.append({"seed": split.seed, "scores": scores})
    return repeats


def _match_features(dataset: NodeDataset, asked: dict[str, Any]) -> NodeDataset:
    """The dataset with its feature columns in the order the run was trained with."""
    names, given = asked["feature_names"], list(dataset.feature_names)
    if names and given and names != given:
        missing = [name for name in names if name not in given]
        if missing:
            raise DataError(
                f"Expected the features the run was trained with (missing {missing[0]!r}; "
                f"the graph has {', '.join(given[:8])}{', ...' if len(given) > 8 else ''})"
            )
        extra = [name for name in given if name not in names]
        if extra:
            raise DataError(
                f"Expected {len(names)} features as the run was trained with (got {len(given)}; "
                f"not known: {extra[0]!r}); leave them out with --data feature_columns=..."
            )
        reordered = copy.copy(dataset.data)
        reordered.x = dataset.data.x[:, [given.index(name) for name in names]]
        dataset = dataclasses.replace(dataset, data=reordered, feature_names=tuple(names))
    if dataset.num_features != asked["features"]:
        raise DataError(
            f"Expected {asked['features']} features as the run was trained with "
            f"(got {dataset.num_features})"
        )
    return dataset
