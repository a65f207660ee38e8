"""What a run records so that its scores can be trusted: baselines, calibration, curves, errors.

Arrays and numbers only, each written as plain data and read back by the same class.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from longnn._base.node import Node
from longnn.records._summary import Summary


@dataclass(frozen=True, eq=False)
class Bins:
    """Predictions grouped by how sure they are; a bin without any is left out."""

    confidence: np.ndarray  # (bins,) mean probability of what was predicted
    accuracy: np.ndarray  # (bins,) share that was right
    count: np.ndarray  # (bins,)

    @property
    def error(self) -> float:
        """The expected calibration error: the mean gap between confidence and accuracy.

        >>> Bins(np.array([0.9]), np.array([0.7]), np.array([10.0])).error
        0.2...
        """
        gaps = np.abs(self.confidence - self.accuracy)
        return float((gaps * self.count).sum() / max(self.count.sum(), 1))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name).tolist() for name in ("confidence", "accuracy", "count")}

    @classmethod
    def read(cls, node: Node) -> "Bins":
        """From the place in a record."""
        confidence = node["confidence"].array(None)
        size = len(confidence)
        return cls(confidence, node["accuracy"].array(size), node["count"].array(size))


@dataclass(frozen=True, eq=False)
class Calibration:
    """How sure a model is and how often it is right on test nodes, before and after calibration."""

    temperature: float
    before: Bins
    after: Bins

    def to_dict(self) -> dict[str, Any]:
        """Plain data, the two errors too."""
        return {
            "temperature": self.temperature,
            "error_before": self.before.error,
            "error_after": self.after.error,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }

    @classmethod
    def read(cls, node: Node) -> "Calibration":
        """From the place in a record."""
        before, after = (Bins.read(node[name]) for name in ("before", "after"))
        return cls(node["temperature"].number(), before, after)


@dataclass(frozen=True, eq=False)
class FrequencyShift:
    """Class frequencies that probabilities follow, though those of the training nodes differ."""

    train: np.ndarray  # (classes,) training nodes
    val: np.ndarray  # (classes,) validation nodes
    shift: np.ndarray  # (classes,) added to the class scores, after the temperature

    @property
    def shares(self) -> np.ndarray:
        """Shares of the classes among the training and the validation nodes, (2, classes).

        >>> FrequencyShift(np.array([5, 5]), np.array([9, 1]), np.array([0.6, -1.6])).shares
        array([[0.5, 0.5],
               [0.9, 0.1]])
        """
        counts = np.stack([self.train, self.val]).astype(float)
        return counts / np.maximum(counts.sum(1, keepdims=True), 1)

    @property
    def farthest(self) -> int:
        """The class whose shares differ most."""
        train, val = self.shares
        return int(np.abs(val - train).argmax())

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        counts = {name: getattr(self, name).astype(int).tolist() for name in ("train", "val")}
        return {**counts, "shift": self.shift.tolist()}

    @classmethod
    def read(cls, node: Node) -> "FrequencyShift":
        """From the place in a record."""
        shift = node["shift"].array(None)
        if not len(shift):
            node["shift"].fail("a number for each class")
        return cls(node["train"].array(len(shift)), node["val"].array(len(shift)), shift)


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """What finding more of a class costs, on test nodes.

    ``threshold`` is the probability from which on the class is predicted, and ``chosen`` the
    recall and precision there.
    """

    name: str
    prevalence: float
    recall: np.ndarray  # (points,)
    precision: np.ndarray  # (points,)
    threshold: float
    chosen: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "prevalence": self.prevalence,
            "recall": self.recall.tolist(),
            "precision": self.precision.tolist(),
            "threshold": self.threshold,
            "chosen": list(self.chosen),
        }

    @classmethod
    def read(cls, node: Node) -> "PrecisionRecall":
        """From the place in a record."""
        recall = node["recall"].array(None)
        chosen = node["chosen"].array(2)
        return cls(
            node["name"].text(),
            node["prevalence"].number(),
            recall,
            node["precision"].array(len(recall)),
            node["threshold"].number(),
            (float(chosen[0]), float(chosen[1])),
        )


@dataclass(frozen=True, eq=False)
class Residuals:
    """Predicted and true values of test nodes and their numbers of neighbours; a sample of many."""

    name: str  # of the target
    predicted: np.ndarray  # (nodes,)
    true: np.ndarray  # (nodes,)
    degree: np.ndarray  # (nodes,)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        arrays = ("predicted", "true", "degree")
        return {"name": self.name, **{name: getattr(self, name).tolist() for name in arrays}}

    @classmethod
    def read(cls, node: Node) -> "Residuals":
        """From the place in a record."""
        predicted = node["predicted"].array(None)
        size = len(predicted)
        return cls(
            node["name"].text(), predicted, node["true"].array(size), node["degree"].array(size)
        )


@dataclass(frozen=True, eq=False)
class BaselineRecord:
    """A model without the graph, on the same splits.

    ``scores`` are those of every repeat, ``summary`` those of the test nodes over the repeats, and
    ``ahead`` is how far the run is ahead of it there, repeat by repeat: negative where the baseline
    has the larger score.
    """

    name: str
    title: str
    scores: tuple[Mapping[str, Mapping[str, float]], ...]  # repeat -> set -> metric -> score
    summary: Mapping[str, Summary]  # metric -> score
    ahead: Mapping[str, Summary]  # metric -> difference

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = [{part: dict(found) for part, found in scores.items()} for scores in self.scores]
        return {
            "name": self.name,
            "title": self.title,
            "scores": plain,
            **{
                part: {metric: dataclasses.asdict(s) for metric, s in getattr(self, part).items()}
                for part in ("summary", "ahead")
            },
        }

    @classmethod
    def read(cls, node: Node) -> "BaselineRecord":
        """From the place in a record."""
        scores = tuple({part: at[part].numbers() for part in at.mapping()} for at in node["scores"])
        summary, ahead = (
            {metric: Summary.read(node[part][metric]) for metric in node[part].mapping()}
            for part in ("summary", "ahead")
        )
        return cls(node["name"].text(), node["title"].text(), scores, summary, ahead)
