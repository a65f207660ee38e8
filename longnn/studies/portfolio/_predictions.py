"""What all candidates predict on one graph: kept as float16 beside the records, for the choice."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from sklearn.metrics import average_precision_score
from torch import Tensor

from longnn._base.files import atomic_path
from longnn.data import NodeDataset
from longnn.training import Fitted, Task, headline


@dataclasses.dataclass(frozen=True)
class Part:
    """Some nodes of one split.

    Args:
        predicted: (candidates, nodes, classes) probabilities, or (candidates, nodes) values.
        labels: (nodes,).
    """

    predicted: Tensor
    labels: Tensor

    def take(self, chosen: Sequence[int]) -> Tensor:
        """The predictions of some candidates."""
        return self.predicted[list(chosen)]


@dataclasses.dataclass(frozen=True)
class Predictions:
    """Of all candidates on one graph, by split.

    Args:
        task, metric, positive: what is predicted, and how it is scored.
        val, holdout: validation nodes and selection holdout of each split.
    """

    task: Task
    metric: str
    positive: int
    val: tuple[Part, ...]
    holdout: tuple[Part, ...]

    @classmethod
    def collect(cls, dataset: NodeDataset, fitted: Sequence[Sequence[Fitted]]) -> Self:
        """From trained members, (candidates, splits); values around their mean, in deviations."""
        y = dataset.data.y
        mean, unit = 0.0, 1.0
        if dataset.task == "regression":
            known = y[dataset.labelled].double()
            mean, unit = float(known.mean()), float(known.std())
            y = (y.double() - mean) / unit
        metric, positive = headline(dataset.data.y, dataset.task)
        val: list[Part] = []
        holdout: list[Part] = []
        for s, first in enumerate(fitted[0]):
            for parts, mask in ((val, first.split.val), (holdout, first.split.test)):
                rows = torch.stack([runs[s].predicted[mask].double() for runs in fitted])
                parts.append(Part((rows - mean) / unit, y[mask]))
        return cls(dataset.task, metric, positive, tuple(val), tuple(holdout))

    def write(self, path: Path) -> None:
        """As compressed arrays; probabilities keep three digits."""
        arrays = {"about": np.array([self.task, self.metric, str(self.positive)])}
        for name, parts in (("val", self.val), ("holdout", self.holdout)):
            for s, part in enumerate(parts):
                arrays[f"{name} {s}"] = part.predicted.numpy().astype(np.float16)
                arrays[f"{name} {s} labels"] = part.labels.numpy()
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @classmethod
    def read(cls, path: Path) -> Self:
        """What :meth:`write` wrote."""
        with np.load(path) as file:
            arrays = {key: file[key] for key in file.files}
        task, metric, positive = arrays["about"].tolist()

        def parts(name: str) -> tuple[Part, ...]:
            count = sum(key.startswith(f"{name} ") for key in arrays) // 2
            return tuple(
                Part(
                    torch.from_numpy(arrays[f"{name} {s}"].astype(np.float64)),
                    torch.from_numpy(arrays[f"{name} {s} labels"]),
                )
                for s in range(count)
            )

        return cls(task, metric, int(positive), parts("val"), parts("holdout"))

    @functools.cached_property
    def val_scores(self) -> list[np.ndarray]:
        """The headline metric of each candidate on the validation nodes, by split."""
        return [
            np.array([self.score(row, part.labels) for row in part.predicted]).round(12)
            for part in self.val
        ]

    @functools.cached_property
    def val_losses(self) -> list[np.ndarray]:
        """The loss of each candidate on the validation nodes; infinite where one diverged."""
        found = []
        for part in self.val:
            if self.task == "regression":
                losses = (part.predicted - part.labels).square().mean(1)
            else:
                place = part.labels.expand(len(part.predicted), -1)[..., None]
                own = part.predicted.gather(2, place)[..., 0]
                losses = -own.clamp_min(1e-12).log().mean(1)
            found.append(losses.nan_to_num(torch.inf).numpy())
        return found

    def score(self, predicted: Tensor, labels: Tensor) -> float:
        """The headline metric of predictions of some nodes; higher is better.

        >>> one = Predictions("regression", "r2", 1, (), ())
        >>> one.score(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))
        1.0
        """
        if not bool(torch.isfinite(predicted).all()):
            return -math.inf  # it diverged
        if self.metric == "r2":
            squares = (labels - predicted).square().sum()
            return float(1 - squares / (labels - labels.mean()).square().sum())
        if self.metric == "average_precision":
            hit = (labels == self.positive).numpy()
            return float(average_precision_score(hit, predicted[:, self.positive].numpy()))
        right = (predicted.argmax(1) == labels).double()
        if self.metric == "balanced_accuracy":
            return float(np.mean([float(right[labels == c].mean()) for c in labels.unique()]))
        return float(right.mean())
