"""Trained models and all they need to predict on any graph, in memory or as one file.

The file holds tensors and JSON (safetensors): reading one runs no code.
"""

import copy
import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from longnn._base.files import atomic_path, writing
from longnn.config import Config
from longnn.data import DataError, NodeDataset, Scaling
from longnn.nn import Model
from longnn.training._fit import Fitted, load_weights, make_model, make_problem, predict
from longnn.training._problem import Problem, Task

_FORMAT = "longnn.trained/1"


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
    """The repeats of one training, ready to predict.

    Args:
        config: what they were trained with; repeat i has the seed ``config.seed + i``.
        task: classification or regression.
        classes: names of the classes, in the order of the outputs; empty for regression.
        features: number of features.
        feature_names: their names, or empty.
        scaling: what was done to the features.
        states: the weights of each repeat, by name.
        targets: offset and scale of each repeat's outputs (regression).
    """

    config: Config
    task: Task
    classes: tuple[str, ...]
    features: int
    feature_names: tuple[str, ...]
    scaling: Scaling
    states: tuple[Mapping[str, Tensor], ...]
    targets: tuple[tuple[float, float], ...]

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
            targets=tuple((f.result.offset, f.result.scale) for f in fitted),
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
        outputs = len(self.classes) if self.task == "classification" else 1
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

    def predict_each(self, problem: Problem) -> Iterator[Tensor]:
        """The predictions of one repeat after the other: probabilities or values, on the CPU."""
        for model, (offset, scale) in zip(self.models, self.targets, strict=True):
            yield predict(model, problem, offset=offset, scale=scale)

    def predict(self, problem: Problem, *, repeat: int | None = None) -> Tensor:
        """The mean of the predictions of all repeats, or those of one."""
        if repeat is None:
            return mean_prediction(self.predict_each(problem))
        if not 0 <= repeat < self.repeats:
            raise DataError(f"Expected a repeat below {self.repeats} (got {repeat})")
        offset, scale = self.targets[repeat]
        return predict(self.models[repeat], problem, offset=offset, scale=scale)

    def _match_features(self, dataset: NodeDataset) -> NodeDataset:
        """The dataset with its feature columns in the order of training."""
        names, given = list(self.feature_names), list(dataset.feature_names)
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
                    f"Expected {len(names)} features as the run was trained with (got "
                    f"{len(given)}; not known: {extra[0]!r}); leave them out with "
                    "--data feature_columns=..."
                )
            reordered = copy.copy(dataset.data)
            reordered.x = dataset.data.x[:, [given.index(name) for name in names]]
            dataset = dataclasses.replace(dataset, data=reordered, feature_names=tuple(names))
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
            "scaling": self.scaling.kind,
            "targets": [list(pair) for pair in self.targets],
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
        states: list[dict[str, Tensor]] = [{} for _ in about["targets"]]
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
            targets=tuple((offset, scale) for offset, scale in about["targets"]),
        )
        return trained, dict(about["extra"])


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
