"""A population in training, on disk: saved as plain tensors, restored to the last bit.

Dropout needs no generator state (:mod:`longnn.matrices`), so weights, Adam's moments, the best
weights until now and the history are all there is.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from longnn._base.files import atomic_path
from longnn.training._population import Population, Result

_FORMAT = "longnn.checkpoint/1"
_STACKED = (
    "best_score",
    "best_loss",
    "best_epoch",
    "stop_epoch",
    "alive",
    "diverged",
    "stream",
    "table",
)


def save_checkpoint(population: Population, path: Path) -> None:
    """Write the population's state in one atomic step."""
    tensors: dict[str, Tensor] = {}
    for prefix, table in _tables(population).items():
        tensors.update({f"{prefix}/{name}": t.detach() for name, t in table.items()})
    tensors.update({name: getattr(population, name) for name in _STACKED})
    tensors["index"] = population.index
    if population.path is not None:
        tensors["path"] = population.path
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
    tensors = {name: t.cpu().contiguous().clone() for name, t in tensors.items()}
    with atomic_path(path) as temporary:
        safetensors.torch.save_file(tensors, str(temporary), metadata=metadata)


def load_checkpoint(population: Population, path: Path) -> None:
    """Restore the saved state in a newly built population."""
    with _opened(path) as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    other = ValueError(f"Expected {path} to be a checkpoint of this run (got another file)")
    if metadata.get("count") != str(population.count):
        raise other
    population._take(tensors["index"])
    if not torch.equal(tensors["stream"][:, 0], population.stream[:, 0].cpu()):
        raise other  # its members have other seeds
    for prefix, table in _tables(population).items():
        for name in table:
            with torch.no_grad():
                table[name].copy_(tensors[f"{prefix}/{name}"])
    for name in _STACKED:
        getattr(population, name).copy_(tensors[name])
    if population.path is not None:
        population.path.copy_(tensors["path"])
    population.epoch = int(metadata["epoch"])
    for i, numbers in json.loads(metadata["finished"]).items():
        prefix = f"result/{i}/"
        numbers |= {name: tuple(numbers[name]) for name in ("offset", "scale")}
        part = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        population.results[int(i)] = Result(
            state=_under(part, "state/"),
            history=_under(part, "history/"),
            filter_path=part.get("path"),
            **numbers,
        )


def saved_members(path: Path) -> int:
    """How many members the population of a checkpoint has."""
    with _opened(path) as file:
        return int(file.metadata()["count"])


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safetensors.safe_open(str(path), framework="pt") as file:
            if (file.metadata() or {}).get("format") != _FORMAT:
                raise ValueError(
                    f"Expected {path} to be a checkpoint of this run (got another file)"
                )
            yield file
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f"Expected {path} to be a checkpoint ({error})") from error


def _tables(population: Population) -> dict[str, dict[str, Tensor]]:
    return {
        "parameters": population.parameters,
        "best": population.best,
        "mean": population.adam.mean,
        "square": population.adam.square,
    }


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
