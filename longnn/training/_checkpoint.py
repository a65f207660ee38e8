"""A population in training, on disk: saved as plain tensors, restored to the last bit.

Dropout needs no generator state (:mod:`longnn.matrices`), so weights, Adam's moments, the best
weights until now and the history until now are all there is.
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from longnn._base.schema import Node
from longnn.data import DataError
from longnn.training._history import FIELDS
from longnn.training._population import Population, Result
from longnn.training._tensors import read_tensors, write_tensors

_FORMAT = "longnn.checkpoint/1"


def save_checkpoint(population: Population, path: Path) -> None:
    """Write the population's state in one atomic step."""
    tensors = {name: t.detach() for name, t in _state(population, population.epoch).items()}
    tensors["index"] = population.index
    finished: dict[str, dict[str, Any]] = {}
    for i, result in population.results.items():
        numbers = ("best_epoch", "epochs", "stopped", "offset", "scale", "falling")
        finished[str(i)] = {name: getattr(result, name) for name in numbers}
        tensors.update({f"result/{i}/state/{k}": v for k, v in result.state.items()})
        tensors.update({f"result/{i}/history/{k}": v for k, v in result.history.items()})
        if result.filter_path is not None:
            tensors[f"result/{i}/path"] = result.filter_path
    metadata = {
        "format": _FORMAT,
        "epoch": str(population.epoch),
        "count": str(population.count),
        "finished": json.dumps(finished),
    }
    write_tensors(path, tensors, metadata)


def load_checkpoint(population: Population, path: Path) -> None:
    """Restore the saved state in a newly built population.

    Raises:
        DataError: where the file is damaged, or is the checkpoint of another population.
    """
    metadata, tensors = _read(path)
    file = _File(path, tensors)
    if _whole(path, metadata, "count") != population.count:
        raise _other(path)
    finished = _results(file, metadata, population)
    epoch = _whole(path, metadata, "epoch")
    index = file.take("index", torch.int64)
    rows = sorted([*finished, *index.tolist()]) if index.dim() == 1 else []
    if rows != list(range(population.count)) or not 0 < epoch <= population.limits.epochs:
        raise _other(path)
    population._take(index)
    stream = file.like("stream", population.stream)
    if not torch.equal(stream[:, 0], population.stream[:, 0].cpu()):
        raise _other(path)  # its members have other seeds
    if not bool((stream[:, 1] == epoch * population.feed.steps).all()):
        raise _other(path)
    tables = population.history.tensors(epoch)
    if any(file.take(name).shape[:1] < (epoch,) for name in tables):
        raise _other(path)
    population.history.make_room(epoch)
    state = _state(population, epoch)
    takers = {"best": file.weights, **dict.fromkeys(tables, file.first)}
    found = {
        name: takers.get(name.partition("/")[0], file.like)(name, value)
        for name, value in state.items()
    }
    with torch.no_grad():
        for name, value in state.items():
            value.copy_(found[name])
    population.epoch = epoch
    population.results.update(finished)


def _results(file: "_File", metadata: dict[str, str], population: Population) -> dict[int, Result]:
    """The results of members that were done, by their number."""
    node = Node.parse(metadata.get("finished", ""), file=file.path, place="finished")
    names = [name.removeprefix("model.") for name in population.parameters]
    rows = dict(zip(names, population.parameters.values(), strict=True))
    results = {}
    for i in node.mapping():
        number, at = _whole(file.path, {"finished": i}, "finished"), node[i]
        epochs = at["epochs"].integer()
        if not 0 <= epochs <= population.limits.epochs:
            at["epochs"].fail("a number of epochs")
        kind, like = population.history.table.dtype, population.history.path
        fields = [file.take(f"result/{i}/history/{name}", kind) for name in FIELDS]
        if any(field.shape != (epochs,) for field in fields):
            raise _other(file.path)
        path = None
        if like is not None:
            path = file.take(f"result/{i}/path", like.dtype)
            if path.shape != (epochs, *like.shape[2:]):
                raise _other(file.path)
        results[number] = Result(
            state={k: file.weights(f"result/{i}/state/{k}", p[0]) for k, p in rows.items()},
            best_epoch=at["best_epoch"].integer(),
            epochs=epochs,
            stopped=at["stopped"].text(),
            history=dict(zip(FIELDS, fields, strict=True)),
            filter_path=path,
            offset=tuple(at["offset"].array(None).tolist()),
            scale=tuple(at["scale"].array(None).tolist()),
            falling=at["falling"].truth(),
        )
    return results


def saved_members(path: Path) -> int:
    """How many members the population of a checkpoint has; raises as :func:`load_checkpoint`."""
    count = _whole(path, _read(path)[0], "count")
    if count == 0:
        raise _other(path)
    return count


class _File:
    """The tensors of a checkpoint, taken out by name; one that is not as expected is an error."""

    def __init__(self, path: Path, tensors: dict[str, Tensor]) -> None:
        self.path, self.tensors = path, tensors

    def take(self, name: str, dtype: torch.dtype | None = None) -> Tensor:
        found = self.tensors.get(name)
        if found is None or (dtype is not None and found.dtype != dtype):
            raise _other(self.path)
        return found

    def like(self, name: str, value: Tensor) -> Tensor:
        """One of the same type and shape as another."""
        found = self.take(name, value.dtype)
        if found.shape != value.shape:
            raise _other(self.path)
        return found

    def first(self, name: str, value: Tensor) -> Tensor:
        """As many rows as another has; files of version 0.7 have a row for each epoch to come."""
        found = self.take(name, value.dtype)
        if found.shape[1:] != value.shape[1:]:
            raise _other(self.path)
        return found[: len(value)]

    def weights(self, name: str, value: Tensor) -> Tensor:
        """The same of weights that were kept, which are finite."""
        found = self.like(name, value)
        if not bool(torch.isfinite(found).all()):
            raise _other(self.path)
        return found


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    return read_tensors(path, _FORMAT, "to be a checkpoint of this run")


def _other(path: Path) -> DataError:
    return DataError(f"Expected {path} to be a checkpoint of this run (it does not fit)")


def _whole(path: Path, metadata: dict[str, str], key: str) -> int:
    text = metadata.get(key, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise DataError(f"Expected {path} to be a checkpoint of this run (got {key}={text[:40]!r})")
    return int(text)


def _state(population: Population, epoch: int) -> dict[str, Tensor]:
    """Every tensor that is saved of members in training, by its name in the file."""
    tables = {
        "parameters": population.parameters,
        "best": population.standing.best,
        "mean": population.adam.mean,
        "square": population.adam.square,
    }
    named = {f"{prefix}/{name}": t for prefix, table in tables.items() for name, t in table.items()}
    return {
        "stream": population.stream,
        **population.standing.tensors,
        **population.history.tensors(epoch),
        **named,
    }
