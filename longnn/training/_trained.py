"""Trained models and all they need to predict on any graph, in memory or as one file.

The file holds tensors and JSON (safetensors): reading one runs no code.
"""

import copy
import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from longnn import data  # the reader of tables is loaded when a model has columns of one
from longnn._base.files import atomic_path, writing
from longnn.config import Config
from longnn.data import DataError, NodeDataset, Scaling
from longnn.matrices import take_columns
from longnn.nn import Model
from longnn.training._fit import Fitted, load_weights, make_model, make_problem, predict
from longnn.training._problem import Problem, Task
from longnn.training._readout import Readout

if TYPE_CHECKING:
    from longnn.data import Encoding

_FORMAT = "longnn.trained/1"


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
    """The repeats of one training, ready to predict.

    Args:
        config: what they were trained with; repeat i has the seed ``config.seed + i``.
        task: classification, regression or multilabel.
        classes: names of the classes or labels, in the order of the outputs; empty for regression.
        targets: names of several numbers to predict, or empty.
        features: number of features.
        feature_names: their names, or empty.
        open_features: how many of the last ones are an open vocabulary: on another graph unknown
            ones are left out and absent ones are zero.
        scaling: what was done to the features.
        states: the weights of each repeat, by name.
        readouts: how the outputs of each repeat become predictions.
        encoding: how the columns of a table became features, or None.
    """

    config: Config
    task: Task
    classes: tuple[str, ...]
    features: int
    feature_names: tuple[str, ...]
    scaling: Scaling
    states: tuple[Mapping[str, Tensor], ...]
    readouts: tuple[Readout, ...]
    targets: tuple[str, ...] = ()
    encoding: "Encoding | None" = None
    open_features: int = 0

    @classmethod
    def collect(cls, dataset: NodeDataset, scaling: Scaling, fitted: Sequence[Fitted]) -> Self:
        """What :func:`~longnn.training.fit` gave for the repeats of one configuration."""
        trained = cls(
            config=fitted[0].config.replace(repeat=len(fitted)),
            task=dataset.task,
            classes=tuple(dataset.classes),
            features=dataset.num_features,
            feature_names=tuple(dataset.feature_names),
            scaling=scaling,
            states=tuple(f.result.state for f in fitted),
            readouts=tuple(f.readout for f in fitted),
            targets=tuple(dataset.targets),
            encoding=dataset.encoding,
            open_features=dataset.open_features,
        )
        vars(trained)["models"] = tuple(f.model for f in fitted)  # as the cached property has it
        return trained

    @property
    def repeats(self) -> int:
        """How many models there are."""
        return len(self.states)

    @functools.cached_property
    def models(self) -> tuple[Model, ...]:
        """The models, with their weights, in evaluation mode."""
        outputs = len(self.classes) if self.classes else len(self.readouts[0].offset)
        return tuple(
            load_weights(make_model(self.config, self.features, outputs), state)
            for state in self.states
        )

    def problem(self, dataset: NodeDataset) -> Problem:
        """A graph, the same or another, as the models want it.

        Raises:
            DataError: where its features are not those the models were trained with.
        """
        dataset = self._match_features(dataset)
        config = self.config
        if config.device != "cpu":  # trained on a GPU, it may be used without one
            config = config.replace(device="auto")
        made = make_problem(dataset, config, self.scaling)
        return dataclasses.replace(made, task=self.task)

    def encode(self, dataset: NodeDataset) -> NodeDataset:
        """The dataset with the features of its table's columns made as in training.

        One that does not come from a table stays as it is. Columns of models without an encoding
        are plain numbers.

        Raises:
            DataError: naming a column that is missing, or a cell that does not fit its column.
        """
        if dataset.columns is None:
            return dataset
        if self.encoding is not None:
            return dataset.encoded(self.encoding)
        known = set(self.feature_names) <= set(dataset.columns.names)
        return dataset.encoded(data.Encoding.plain(self.feature_names)) if known else dataset

    def predict_each(self, problem: Problem) -> Iterator[Tensor]:
        """The predictions of one repeat after the other: probabilities or values, on the CPU."""
        for model, readout in zip(self.models, self.readouts, strict=True):
            yield predict(model, problem, readout)

    def predict(self, problem: Problem, *, repeat: int | None = None) -> Tensor:
        """The mean of the predictions of all repeats, or those of one."""
        if repeat is None:
            return mean_prediction(self.predict_each(problem))
        if not 0 <= repeat < self.repeats:
            raise DataError(f"Expected a repeat below {self.repeats} (got {repeat})")
        return predict(self.models[repeat], problem, self.readouts[repeat])

    def choose(self, predicted: Tensor, *, repeat: int | None = None) -> Tensor:
        """The class of each node (nodes,), or its labels (nodes, labels), of such predictions."""
        readout = Readout.mean(self.readouts) if repeat is None else self.readouts[repeat]
        return readout.choose(predicted)

    def _match_features(self, dataset: NodeDataset) -> NodeDataset:
        """The dataset with its features made and ordered as in training."""
        dataset = self.encode(dataset)
        names, given = self.feature_names, dataset.feature_names
        if names and given and names != given:
            known, new = self.open_features, dataset.open_features
            if not (known and new):  # what one of them has fixed is fixed
                known = new = 0
            fixed, held = len(names) - known, len(given) - new
            place = _match_fixed(names[:fixed], given[:held])
            if known:
                place += _match_open(names[fixed:], given[held:], first=held)
            data = copy.copy(dataset.data)
            data.x = take_columns(dataset.data.x, place)
            dataset = dataclasses.replace(
                dataset, data=data, feature_names=names, open_features=self.open_features
            )
        if dataset.num_features != self.features:
            raise DataError(
                f"Expected {self.features} features as the run was trained with "
                f"(got {dataset.num_features})"
            )
        return dataset

    def save(self, path: Path, *, extra: Mapping[str, Any] | None = None) -> None:
        """Write everything to one safetensors file; ``extra`` is plain data of the caller's."""
        tensors = {
            f"{i}/{name}": t.contiguous()
            for i, state in enumerate(self.states)
            for name, t in state.items()
        }
        if self.scaling.mean is not None and self.scaling.deviation is not None:
            tensors["features/mean"] = self.scaling.mean
            tensors["features/deviation"] = self.scaling.deviation
        about = {
            "config": self.config.to_dict(),
            "task": self.task,
            "classes": list(self.classes),
            "features": self.features,
            "feature_names": list(self.feature_names),
            "open_features": self.open_features,
            "scaling": self.scaling.kind,
            "readouts": [readout.to_dict() for readout in self.readouts],
            "target_names": list(self.targets),
            "encoding": None if self.encoding is None else self.encoding.to_dict(),
            "extra": dict(extra or {}),
        }
        metadata = {"format": _FORMAT, "about": json.dumps(about)}
        with writing(path), atomic_path(path) as temporary:
            safetensors.torch.save_file(tensors, str(temporary), metadata=metadata)

    @classmethod
    def load(cls, path: Path) -> tuple[Self, dict[str, Any]]:
        """Read a file that :meth:`save` wrote; returns what ``extra`` was, too.

        Raises:
            DataError: where there is none, or it is damaged, or holds something else.
        """
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
        try:
            trained, extra = cls._from_parts(json.loads(metadata["about"]), tensors)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"Expected {path} to hold weights (it is damaged: {error})") from error
        try:
            _ = trained.models
        except ValueError as error:
            raise DataError(f"Expected {path} to fit the run's model ({error})") from error
        return trained, extra

    @classmethod
    def _from_parts(
        cls, about: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> tuple[Self, dict[str, Any]]:
        readouts = _readouts(about)
        encoding = about.get("encoding")  # absent before there were encodings
        states: list[dict[str, Tensor]] = [{} for _ in readouts]
        for name, value in tensors.items():
            number, _, key = name.partition("/")
            if number.isdecimal():
                states[int(number)][key] = value
        trained = cls(
            config=Config.from_dict(about["config"]),
            task=about["task"],
            classes=tuple(about["classes"]),
            features=about["features"],
            feature_names=tuple(about["feature_names"]),
            scaling=Scaling(
                about["scaling"], tensors.get("features/mean"), tensors.get("features/deviation")
            ),
            states=tuple(states),
            readouts=readouts,
            targets=tuple(about.get("target_names", ())),
            encoding=None if encoding is None else data.Encoding.from_dict(encoding),
            open_features=about.get("open_features", 0),  # absent before there were any
        )
        return trained, dict(about["extra"])


def _readouts(about: Mapping[str, Any]) -> tuple[Readout, ...]:
    """Of every repeat; files of version 0.2 have only offset and scale."""
    if "readouts" in about:
        return tuple(Readout.from_dict(about["task"], plain) for plain in about["readouts"])
    return tuple(
        Readout(about["task"], offset=(offset,), scale=(scale,))
        for offset, scale in about["targets"]
    )


def _match_fixed(names: Sequence[str], given: Sequence[str]) -> list[int]:
    """Where each feature of training is among those of a graph, which must be the same."""
    place = {name: i for i, name in enumerate(given)}
    missing = [name for name in names if name not in place]
    if missing:
        raise DataError(
            f"Expected the features the run was trained with (missing {missing[0]!r}; "
            f"the graph has {', '.join(given[:8])}{', ...' if len(given) > 8 else ''})"
        )
    extra = sorted(place.keys() - set(names), key=place.__getitem__)
    if extra:
        raise DataError(
            f"Expected {len(names)} features as the run was trained with (got "
            f"{len(given)}; not known: {extra[0]!r}); leave them out with "
            "--data feature_columns=..."
        )
    return [place[name] for name in names]


def _match_open(names: Sequence[str], given: Sequence[str], first: int) -> list[int]:
    """The same for an open vocabulary: -1 where the graph does not have the feature."""
    place = {name: i for i, name in enumerate(given, start=first)}
    found = [place.get(name, -1) for name in names]
    if max(found) < 0:
        raise DataError(
            f"Expected features the run was trained with, such as {names[0]!r} (got only unknown "
            f"ones, such as {given[0]!r})"
        )
    return found


def mean_prediction(each: Iterator[Tensor] | Sequence[Tensor]) -> Tensor:
    """The mean of predictions, in float64 on the way.

    >>> mean_prediction([torch.tensor([0.0, 1.0]), torch.tensor([1.0, 1.0])])
    tensor([0.5000, 1.0000])
    """
    total, count, dtype = None, 0, torch.float32
    for predicted in each:
        dtype = predicted.dtype
        total = predicted.double() if total is None else total + predicted.double()
        count += 1
    assert total is not None
    return (total / count).to(dtype)
