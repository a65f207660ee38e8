"""What a run records of each training: its split, scores and filters, and what to trust them by.

Numbers and arrays only; the annotations are the schema (:mod:`longnn._base.schema`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from longnn._base.schema import Node, Points, Schema, Shape, stored

#: The sets of a split, in their order.
SETS = ("train", "val", "test")

#: Set -> metric -> score.
Scores = Mapping[str, Mapping[str, float]]
#: Arrays over the classes, and counts of them.
Classes = Annotated[np.ndarray, Shape("classes")]
ClassCounts = Annotated[np.ndarray, Shape("classes", whole=True)]


@dataclass(frozen=True)
class SplitRecord(Schema):
    """How many nodes a repeat trained on, selected on and was tested on."""

    protocol: str
    seed: int
    train: int
    val: int
    test: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class FilterRecord(Schema):
    """One filter after training.

    ``learned`` and ``start`` are the parameters of its basis (a, b), empty for a fixed basis.

    >>> ends, response = np.array([0.0, 2.0]), np.array([[1.0, 0.0]])
    >>> low_pass = FilterRecord("jacobi", 1, {}, {}, ends, response, np.ones(1), "low-pass")
    >>> Node(low_pass.to_dict(), file="record.json").read(FilterRecord).response
    array([[1., 0.]])
    """

    basis: str
    degree: int
    learned: dict[str, float]
    start: dict[str, float]
    eigenvalues: Points  # of the normalised Laplacian
    response: Annotated[np.ndarray, Shape("channels", "points")]
    norm: Annotated[np.ndarray, Shape("channels")]
    words: str
    edge_type: str = stored(empty=False, default="")  # that it is for, if edges have types

    @property
    def channels(self) -> int:
        """How many filters there are side by side."""
        return len(self.response)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, the number of channels too."""
        first = {"basis": self.basis, "degree": self.degree, "channels": self.channels}
        return {**first, **super().to_dict()}


@dataclass(frozen=True, eq=False)
class MemberRecord(Schema):
    """One model of an ensemble, in one repeat.

    ``val`` and ``test`` are its own headline scores, None where there are no such nodes. ``words``
    and ``response``, the mean over the channels at the ``eigenvalues``, are of its first filter.
    """

    name: str
    model: str
    weight: float  # in the ensemble; 0 for one without a vote
    epochs: int
    best_epoch: int
    stopped: str
    val: float | None = stored(null=True)
    test: float | None = stored(null=True)
    words: str = stored(empty=False, default="")
    eigenvalues: Points | None = None
    response: Points | None = None

    def check(self, node: Node) -> None:
        """The weight is one."""
        if not 0 <= self.weight <= 1 + 1e-6:
            node["weight"].fail("a weight from 0 to 1")


@dataclass(frozen=True, eq=False)
class Bins(Schema):
    """Predictions grouped by how sure they are; a bin without any is left out."""

    confidence: Points  # mean probability of what was predicted
    accuracy: Points  # share that was right
    count: Points

    @property
    def error(self) -> float:
        """The expected calibration error: the mean gap between confidence and accuracy.

        >>> Bins(np.array([0.9]), np.array([0.7]), np.array([10.0])).error
        0.2...
        """
        gaps = np.abs(self.confidence - self.accuracy)
        return float((gaps * self.count).sum() / max(self.count.sum(), 1))


@dataclass(frozen=True, eq=False)
class Calibration(Schema):
    """How sure a model is and how often it is right on test nodes, before and after calibration."""

    temperature: float
    before: Bins
    after: Bins

    def to_dict(self) -> dict[str, Any]:
        """Plain data, the two errors too."""
        errors = {"error_before": self.before.error, "error_after": self.after.error}
        return {"temperature": self.temperature, **errors, **super().to_dict()}


@dataclass(frozen=True, eq=False)
class FrequencyShift(Schema):
    """Class frequencies that probabilities follow, though those of the training nodes differ."""

    train: ClassCounts
    val: ClassCounts
    shift: Classes  # added to the class scores, after the temperature

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


@dataclass(frozen=True, eq=False)
class PrecisionRecall(Schema):
    """What finding more of a class costs, on test nodes.

    ``threshold`` is the probability from which on the class is predicted, and ``chosen`` the
    recall and precision there.
    """

    name: str
    prevalence: float
    recall: Points
    precision: Points
    threshold: float
    chosen: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Residuals(Schema):
    """Predicted and true values of test nodes and their numbers of neighbours; a sample of many."""

    name: str  # of the target
    predicted: Points
    true: Points
    degree: Points


@dataclass(frozen=True, eq=False, kw_only=True)
class RepeatRecord(Schema):
    """One training of the repeats; what the task does not have is None."""

    seed: int
    split: SplitRecord
    epochs: int
    best_epoch: int
    stopped: str = ""
    scores: Scores
    filters: tuple[FilterRecord, ...] = ()
    #: Rows true, columns predicted.
    confusion: Annotated[np.ndarray, Shape("classes", "classes", whole=True)] | None = None
    #: Nodes with the label, predicted, both.
    counts: Annotated[np.ndarray, Shape("labels", 3, whole=True)] | None = None
    threshold: float | None = None  # probability from which on the rarer class is predicted
    shift: FrequencyShift | None = None  # where classes are more or less frequent in validation
    calibration: Calibration | None = None
    curve: PrecisionRecall | None = None
    residuals: Residuals | None = None
    members: tuple[MemberRecord, ...] = stored(empty=False, default=())  # of an ensemble
