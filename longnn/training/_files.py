"""Files of training, all safetensors: checkpoints and trained models. Reading one runs no code."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from longnn._base.files import atomic_path, writing
from longnn._base.schema import Node, to_plain
from longnn.config import Config
from longnn.config._config import SCALINGS
from longnn.data import DataError
from longnn.data._scaling import Scaling
from longnn.metrics import TASKS, Task
from longnn.nn._trees import check_trees
from longnn.training._history import FIELDS
from longnn.training._intervals import Errors, Intervals
from longnn.training._known import KnownFilter, Rests, Told
from longnn.training._population import Population, Result
from longnn.training._readout import Readout
from longnn.training._seen import Seen

if TYPE_CHECKING:
    from longnn.data._encoding import Encoding
    from longnn.training._trained import Trained

#: Bytes of the length that a file begins with; the header is filled up to a multiple of it.
_WORD = 8


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a file atomically; the same content gives the same bytes."""
    plain = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    content = memoryview(safetensors.torch.save(plain, metadata=dict(metadata)))
    end = _WORD + int.from_bytes(content[:_WORD], "little")
    header = json.loads(bytes(content[_WORD:end]))
    # The library writes metadata in an order that changes from call to call.
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _WORD)
    with writing(path), atomic_path(path) as temporary, temporary.open("wb") as file:
        file.write(len(text).to_bytes(_WORD, "little"))
        file.write(text)
        file.write(content[end:])


def read_tensors(path: Path, form: str, what: str) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors of a file.

    Args:
        path: the file.
        form: the format that its metadata must name.
        what: it is expected to be, for the message: "to hold weights".

    Raises:
        DataError: where it is damaged or of another format; names the file.
        FileNotFoundError: where there is none.
    """
    try:
        with safetensors.safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise
    except (safetensors.SafetensorError, OSError) as error:
        raise DataError(f"Expected {path} {what} (it is damaged: {error})") from error
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        # A type of numbers or a shape that torch does not have.
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"Expected {path} {what} (torch cannot read it: {reason})") from error
    if metadata.get("format") != form:
        raise DataError(f"Expected {path} {what} (got another file)")
    return metadata, tensors


_CHECKPOINT_FORMAT = "longnn.checkpoint/1"


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
        "format": _CHECKPOINT_FORMAT,
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
    return read_tensors(path, _CHECKPOINT_FORMAT, "to be a checkpoint of this run")


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


_TRAINED_FORMAT = "longnn.trained/1"


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
    if trained.seen is not None:
        tensors |= {"features/ends": trained.seen.ends, "known/labelled": trained.seen.labelled}
    for i, told in enumerate(trained.told):
        if told is not None:
            text = bytearray(json.dumps({"ids": told.ids}).encode())
            tensors[f"known/{i}/ids"] = torch.frombuffer(text, dtype=torch.uint8)
            tensors[f"known/{i}/rests"] = told.rests.r
            tensors[f"known/{i}/fold"] = told.rests.fold
            tensors[f"known/{i}/said"] = told.said
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
        "intervals": [to_plain(one.errors) for one in trained.intervals],
        "known": [to_plain(one) for one in trained.known],
        "extra": dict(extra),
    }
    metadata = {"format": _TRAINED_FORMAT, "about": json.dumps(about)}
    write_tensors(path, tensors, metadata)


def read_trained(path: Path) -> tuple[dict[str, Any], Node]:
    """The fields of what :func:`write_trained` wrote, and what ``extra`` was.

    Raises:
        DataError: where there is none, or it is damaged, or holds something else.
    """
    try:
        metadata, tensors = read_tensors(path, _TRAINED_FORMAT, "to hold weights of a run")
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
        "intervals": _intervals(about["intervals"], task, readouts),
        "seen": _seen(about["features"], tensors),
        **_known(about["known"], tensors, len(readouts), len(classes) or outputs),
    }


def _known(
    node: Node, tensors: Mapping[str, Tensor], repeats: int, outputs: int
) -> dict[str, tuple[Any, ...]]:
    """Filters of known answers, and these; files before version 0.13 have none."""
    filters = node.read(tuple[KnownFilter, ...]) if node.given else ()
    if not filters:
        return {"known": (), "told": (None,) * repeats}
    if len(filters) != repeats:
        node.fail(f"filters of {repeats} repeats")
    return {
        "known": filters,
        "told": tuple(
            _told(node, tensors, i, outputs) if one.used else None for i, one in enumerate(filters)
        ),
    }


def _told(node: Node, tensors: Mapping[str, Tensor], repeat: int, outputs: int) -> Told:
    """The known answers of one repeat, each checked."""
    parts = [tensors.get(f"known/{repeat}/{name}") for name in ("ids", "rests", "fold", "said")]
    text, rests, fold, said = parts
    if text is None or rests is None or fold is None or said is None:
        node.fail("filters with their known answers")
        raise AssertionError
    plain = text.numpy().tobytes().decode(errors="replace")
    ids = Node.parse(plain, file="weights", place="known answers")["ids"].texts()
    shape = (len(ids), outputs)
    if rests.shape != shape or said.shape != shape or fold.shape != shape[:1]:
        node.fail(f"known answers of {len(ids)} nodes")
    if fold.dtype != torch.int64 or bool(rests.isinf().any()) or not bool(said.isfinite().all()):
        node.fail("known answers that are finite")
    if len(ids) == 0 or int(fold.min()) < 0 or int(fold.max()) >= len(ids):
        node.fail("folds of known answers")
    return Told(ids, Rests(rests, fold), said)


def _intervals(node: Node, task: Task, readouts: Sequence[Readout]) -> tuple[Intervals, ...]:
    """Of every repeat; files before version 0.13 have none."""
    each = node.read(tuple[tuple[Errors, ...], ...]) if node.given else ()
    outputs = 1 if task == "classification" else len(readouts[0].offset)
    if each and len(each) != len(readouts):
        node.fail(f"errors of {len(readouts)} repeats")
    if task != "multilabel" and any(len(errors) != outputs for errors in each):
        node.fail(f"errors of {outputs} outputs")
    return tuple(Intervals(task, errors) for errors in each)


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


def _seen(features: Node, tensors: Mapping[str, Tensor]) -> Seen | None:
    """What later graphs are compared with; files before version 0.14 have none."""
    ends, labelled = tensors.get("features/ends"), tensors.get("known/labelled")
    if ends is None or labelled is None:
        return None
    rows = len(ends) if ends.dtype == torch.float64 and ends.shape[1:] == (2,) else 0
    counted = labelled.dtype == torch.int64 and labelled.dim() == 1
    if rows not in (1, features.integer() + 1) or not counted:
        features.fail("the number of features whose ends are kept")
    return Seen(ends, labelled)


def _is_vector(value: Tensor | None, size: int) -> bool:
    return value is not None and value.is_floating_point() and value.shape == (size,)


def _states(tensors: Mapping[str, Tensor], repeats: int) -> tuple[dict[str, Tensor], ...]:
    """The weights of each repeat, by name."""
    states: list[dict[str, Tensor]] = [{} for _ in range(repeats)]
    for name, value in tensors.items():
        number, _, key = name.partition("/")
        if number in ("features", "known"):
            continue
        if not (number.isascii() and number.isdecimal() and len(number) < 9):
            raise ValueError(f"Expected weights of a repeat (got {name!r})")
        trees = value.dtype == torch.uint8 and key.endswith("text")
        known = trees or value.dtype in (torch.float32, torch.float64)
        if int(number) >= repeats or not known:
            raise ValueError(f"Expected float weights of {repeats} repeats (got {name!r})")
        if trees:
            check_trees(value.numpy().tobytes())
        if not bool(torch.isfinite(value).all()):
            raise ValueError(f"Expected finite weights (those of {name!r} are not)")
        states[int(number)][key] = value
    return tuple(states)
