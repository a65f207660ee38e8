"""What was trained as one file: tensors and JSON (safetensors). Reading one runs no code."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from longnn._base.schema import Node
from longnn.config import Config
from longnn.config._config import SCALINGS
from longnn.data import DataError
from longnn.data._scaling import Scaling
from longnn.metrics import TASKS, Task
from longnn.training._readout import Readout
from longnn.training._tensors import read_tensors, write_tensors

if TYPE_CHECKING:
    from longnn.data._encoding import Encoding
    from longnn.training._trained import Trained

_FORMAT = "longnn.trained/1"


def write_trained(trained: "Trained", path: Path, extra: Mapping[str, Any]) -> None:
    """Write everything to one file; ``extra`` is plain data of the caller's."""
    tensors = {
        f"{i}/{name}": t.contiguous()
        for i, state in enumerate(trained.states)
        for name, t in state.items()
    }
    if trained.scaling.mean is not None and trained.scaling.deviation is not None:
        tensors["features/mean"] = trained.scaling.mean
        tensors["features/deviation"] = trained.scaling.deviation
    about = {
        "config": trained.config.to_dict(),
        "task": trained.task,
        "classes": list(trained.classes),
        "features": trained.features,
        "feature_names": list(trained.feature_names),
        "open_features": trained.open_features,
        "scaling": trained.scaling.kind,
        "readouts": [readout.to_dict() for readout in trained.readouts],
        "target_names": list(trained.targets),
        "encoding": None if trained.encoding is None else trained.encoding.to_dict(),
        "members": {name: config.to_dict() for name, config in trained.members.items()},
        **({"edge_types": list(trained.edge_types)} if trained.edge_types else {}),
        "extra": dict(extra),
    }
    metadata = {"format": _FORMAT, "about": json.dumps(about)}
    write_tensors(path, tensors, metadata)


def read_trained(path: Path) -> tuple[dict[str, Any], Node]:
    """The fields of what :func:`write_trained` wrote, and what ``extra`` was.

    Raises:
        DataError: where there is none, or it is damaged, or holds something else.
    """
    try:
        metadata, tensors = read_tensors(path, _FORMAT, "to hold weights of a run")
    except FileNotFoundError as error:
        raise DataError(f"Expected {path.name} in {path.parent} (there is none)") from error
    try:
        about = Node.parse(metadata.get("about", ""), file=path, place="about")
        fields = _fields(about, tensors)
        extra = about["extra"]
        extra.mapping()
    except ValueError as error:
        raise DataError(
            f"Expected {path} to hold weights of a run (it is damaged: {error})"
        ) from error
    return fields, extra


def _fields(about: Node, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The fields of what was trained, each checked."""
    task: Task = about["task"].choice(TASKS)
    readouts = _readouts(about, task)
    encoding = about["encoding"]  # absent before there were encodings
    classes, outputs = about["classes"].texts(), len(readouts[0].offset)
    if task != "regression" and not classes:
        about["classes"].fail("names of classes")
    if any((len(r.offset), len(r.scale)) != (outputs, outputs) for r in readouts):
        about["readouts"].fail("offsets and scales of the same targets")
    if any(len(r.shift) not in (0, len(classes)) for r in readouts):
        about["readouts"].fail(f"shifts of {len(classes)} classes")
    targets = about["target_names"].texts()
    if targets and len(targets) != outputs:
        about["target_names"].fail(f"names of {outputs} targets")
    names, features = about["feature_names"].texts(), about["features"].integer()
    if features < 1 or (names and len(names) != features):
        about["features"].fail("the number of features")
    opened = about["open_features"].integer() if about["open_features"].given else 0
    if not 0 <= opened <= len(names):
        about["open_features"].fail("a number of features")
    return {
        "config": Config.from_dict(about["config"].mapping()),
        "task": task,
        "classes": classes,
        "features": features,
        "feature_names": names,
        "scaling": _scaling(about["scaling"], features, tensors),
        "states": _states(tensors, len(readouts)),
        "readouts": readouts,
        "targets": targets,
        "encoding": _encoding(encoding) if encoding.given else None,
        "open_features": opened,  # absent before there were any
        "members": _members(about["members"]),
        "edge_types": about["edge_types"].texts() if about["edge_types"].given else (),
    }


def _encoding(node: Node) -> "Encoding":
    # The reader of tables is loaded when a model has columns of one.
    from longnn.data._encoding import Encoding

    return Encoding.from_dict(node.mapping())


def _members(node: Node) -> dict[str, Config]:
    """The configurations of members; files of version 0.4 have none."""
    if not node.given:
        return {}
    found = {name: Config.from_dict(node[name].mapping()) for name in node.mapping()}
    for name in found:
        if not name or "." in name or hasattr(torch.nn.ModuleDict, name):
            node.fail(f"names of members (got {name[:40]!r})")
    return found


def _readouts(about: Node, task: Task) -> tuple[Readout, ...]:
    """Of every repeat; files of version 0.2 have only offset and scale."""
    if about["readouts"].given:
        found = [Readout.read(task, node) for node in about["readouts"]]
    else:
        pairs = [node.array(2) for node in about["targets"]]
        found = [Readout(task, offset=(float(a),), scale=(float(b),)) for a, b in pairs]
    if not found:
        about["readouts"].fail("a list of at least one repeat")
    return tuple(found)


def _scaling(kind: Node, features: int, tensors: Mapping[str, Tensor]) -> Scaling:
    moments = [tensors.get(f"features/{name}") for name in ("mean", "deviation")]
    wanted = kind.choice([k for k in SCALINGS if k != "auto"]) in ("columns", "standard")
    for moment in moments:
        if (moment is not None) != wanted or (wanted and not _is_vector(moment, features)):
            kind.fail(f"a scaling with its numbers for {features} features")
    return Scaling(kind.text(), *moments)


def _is_vector(value: Tensor | None, size: int) -> bool:
    return value is not None and value.is_floating_point() and value.shape == (size,)


def _states(tensors: Mapping[str, Tensor], repeats: int) -> tuple[dict[str, Tensor], ...]:
    """The weights of each repeat, by name."""
    states: list[dict[str, Tensor]] = [{} for _ in range(repeats)]
    for name, value in tensors.items():
        number, _, key = name.partition("/")
        if number == "features":
            continue
        if not (number.isascii() and number.isdecimal() and len(number) < 9):
            raise ValueError(f"Expected weights of a repeat (got {name!r})")
        if int(number) >= repeats or value.dtype not in (torch.float32, torch.float64):
            raise ValueError(f"Expected float weights of {repeats} repeats (got {name!r})")
        if not bool(torch.isfinite(value).all()):
            raise ValueError(f"Expected finite weights (those of {name!r} are not)")
        states[int(number)][key] = value
    return tuple(states)
