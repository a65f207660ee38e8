"""The files of a run folder, one by one: predictions, weights, history, the filter's path, JSON.

Knows formats and nothing of when or why they are written. Every file is written atomically: on a
full disk the old one stays. What is read may be damaged, and then one sentence says so.
"""

import contextlib
import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import safetensors
import safetensors.torch
from torch import Tensor

from longnn.data import DataError, NodeDataset
from longnn._base.files import atomic_path
from longnn.training import FIELDS, Result
from longnn.training import Scaling

_FORMAT = "longnn.weights/1"


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what a library says about a failed write into an OSError that names the file."""
    try:
        yield
    except safetensors.SafetensorError as error:
        reason = str(error).rpartition("I/O error: ")[2]
        raise OSError(f"Expected to write {path} ({reason})") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"Expected to write {path} ({reason})") from error


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or one clear error."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"Expected {path.name} in {path.parent} (there is none)") from error
    except ValueError as error:
        raise DataError(f"Expected {path} to be JSON (it is damaged: {error})") from error
    if not isinstance(value, dict):
        raise DataError(f"Expected {path} to hold a JSON object (got {type(value).__name__})")
    return value


def require_keys(table: dict[str, Any], keys: Sequence[str], path: Path) -> dict[str, Any]:
    """The table if it has all the keys; a damaged file otherwise."""
    missing = [key for key in keys if key not in table]
    if missing:
        raise DataError(f"Expected {path} to hold {missing[0]!r} (it is damaged: there is none)")
    return table


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
    y = dataset.data.y if bool(dataset.labelled.any()) else None
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
    with writing(paths[0]), atomic_path(paths[0]) as temporary:
        pyarrow.csv.write_csv(table, temporary)
    with writing(paths[1]), atomic_path(paths[1]) as temporary:
        pyarrow.parquet.write_table(table, temporary)
    return paths


def write_weights(path: Path, results: Sequence[Result], scaling: Scaling) -> None:
    """The best weights of every repeat, and what was done to the features."""
    tensors = {
        f"{i}/{name}": t.contiguous()
        for i, result in enumerate(results)
        for name, t in result.state.items()
    }
    if scaling.mean is not None and scaling.deviation is not None:
        tensors["features/mean"] = scaling.mean
        tensors["features/deviation"] = scaling.deviation
    metadata = {"format": _FORMAT, "scaling": scaling.kind}
    with writing(path), atomic_path(path) as temporary:
        safetensors.torch.save_file(tensors, str(temporary), metadata=metadata)


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


def write_history(path: Path, results: Sequence[Result]) -> None:
    """What was measured at each epoch of each repeat, as CSV; an empty cell is "no value"."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["repeat", "epoch", *FIELDS])
    for i, result in enumerate(results):
        columns = [result.history[field].tolist() for field in FIELDS]
        for epoch, row in enumerate(zip(*columns, strict=True), start=1):
            writer.writerow([i, epoch, *("" if v != v else repr(v) for v in row)])
    with writing(path), atomic_path(path) as temporary:
        temporary.write_text(buffer.getvalue(), encoding="utf-8")


def write_filter_path(path: Path, beta: Tensor) -> None:
    """The filter's Chebyshev coefficients at every epoch, (epochs, degree + 1, channels)."""
    with writing(path), atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, epochs=np.arange(1, len(beta) + 1), beta=beta.numpy())
