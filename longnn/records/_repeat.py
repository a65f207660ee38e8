"""What a run records of each training: its split, scores and filters, and what to trust them by."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from longnn._base.node import Node
from longnn.records._members import MemberRecord
from longnn.records._summary import SETS, Scores
from longnn.records._trust import Calibration, FrequencyShift, PrecisionRecall, Residuals


@dataclass(frozen=True)
class SplitRecord:
    """How many nodes a repeat trained on, selected on and was tested on."""

    protocol: str
    seed: int
    train: int
    val: int
    test: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class FilterRecord:
    """One filter after training.

    ``learned`` and ``start`` are the parameters of its basis (a, b), empty for a fixed basis.

    >>> ends, response = np.array([0.0, 2.0]), np.array([[1.0, 0.0]])
    >>> low_pass = FilterRecord("jacobi", 1, {}, {}, ends, response, np.ones(1), "low-pass")
    >>> FilterRecord.read(Node(low_pass.to_dict(), file="record.json")).response
    array([[1., 0.]])
    """

    basis: str
    degree: int
    learned: dict[str, float]
    start: dict[str, float]
    eigenvalues: np.ndarray  # (points,) of the normalised Laplacian
    response: np.ndarray  # (channels, points)
    norm: np.ndarray  # (channels,)
    words: str
    edge_type: str = ""  # the type of edges it is for, if they have types

    @property
    def channels(self) -> int:
        """How many filters there are side by side."""
        return len(self.response)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "basis": self.basis,
            "degree": self.degree,
            "channels": self.channels,
            "learned": self.learned,
            "start": self.start,
            "eigenvalues": self.eigenvalues.tolist(),
            "response": self.response.tolist(),
            "norm": self.norm.tolist(),
            "words": self.words,
            **({"edge_type": self.edge_type} if self.edge_type else {}),
        }

    @classmethod
    def read(cls, node: Node) -> "FilterRecord":
        """From the place in a record."""
        eigenvalues = node["eigenvalues"].array(None)
        response = node["response"].array(None, len(eigenvalues))
        norm = (
            node["norm"].array(len(response))
            if node["norm"].given
            else np.full(len(response), np.nan)
        )
        return cls(
            basis=node["basis"].text("unnamed"),
            degree=node["degree"].integer(),
            learned=node["learned"].numbers() if node["learned"].given else {},
            start=node["start"].numbers() if node["start"].given else {},
            eigenvalues=eigenvalues,
            response=response,
            norm=norm,
            words=node["words"].text(""),
            edge_type=node["edge_type"].text(""),
        )


@dataclass(frozen=True, eq=False)
class RepeatRecord:
    """One training of the repeats."""

    seed: int
    split: SplitRecord
    epochs: int
    best_epoch: int
    stopped: str
    scores: Scores
    filters: tuple[FilterRecord, ...]
    confusion: np.ndarray | None = None  # (classes, classes): rows true, columns predicted
    counts: np.ndarray | None = None  # (labels, 3): nodes with the label, predicted, both
    threshold: float | None = None  # probability from which on the rarer class is predicted
    shift: FrequencyShift | None = None  # where classes are more or less frequent in validation
    calibration: Calibration | None = None
    curve: PrecisionRecall | None = None
    residuals: Residuals | None = None
    members: tuple[MemberRecord, ...] = ()  # of an ensemble

    def to_dict(self) -> dict[str, Any]:
        """Plain data; nothing of what the task does not have."""
        plain: dict[str, Any] = {
            "seed": self.seed,
            "split": {**dataclasses.asdict(self.split), "notes": list(self.split.notes)},
            "epochs": self.epochs,
            "best_epoch": self.best_epoch,
            "stopped": self.stopped,
            "scores": {subset: dict(found) for subset, found in self.scores.items()},
            "filters": [f.to_dict() for f in self.filters],
        }
        if self.confusion is not None:
            plain["confusion"] = self.confusion.astype(int).tolist()
        if self.counts is not None:
            plain["counts"] = self.counts.astype(int).tolist()
        if self.threshold is not None:
            plain["threshold"] = self.threshold
        for name in ("shift", "calibration", "curve", "residuals"):
            if getattr(self, name) is not None:
                plain[name] = getattr(self, name).to_dict()
        if self.members:
            plain["members"] = [member.to_dict() for member in self.members]
        return plain

    @classmethod
    def read(cls, node: Node) -> "RepeatRecord":
        """From the place in a record."""
        split = node["split"]
        train, val, test = (split[subset].integer() for subset in SETS)
        confusion = None
        if node["confusion"].given:
            confusion = node["confusion"].array(None, None)
            if confusion.shape[0] != confusion.shape[1]:
                node["confusion"].fail("a square table of counts")
        return cls(
            seed=node["seed"].integer(),
            split=SplitRecord(
                protocol=split["protocol"].text(),
                seed=split["seed"].integer(),
                train=train,
                val=val,
                test=test,
                notes=split["notes"].texts(),
            ),
            epochs=node["epochs"].integer(),
            best_epoch=node["best_epoch"].integer(),
            stopped=node["stopped"].text(""),
            scores={
                subset: node["scores"][subset].numbers() for subset in node["scores"].mapping()
            },
            filters=tuple(map(FilterRecord.read, node["filters"])) if node["filters"].given else (),
            confusion=confusion,
            counts=node["counts"].array(None, 3) if node["counts"].given else None,
            threshold=node["threshold"].number() if node["threshold"].given else None,
            shift=_optional(FrequencyShift, node["shift"]),
            calibration=_optional(Calibration, node["calibration"]),
            curve=_optional(PrecisionRecall, node["curve"]),
            residuals=_optional(Residuals, node["residuals"]),
            members=tuple(map(MemberRecord.read, node["members"])) if node["members"].given else (),
        )


def _optional(kind: Any, node: Node) -> Any:
    """What a record of an earlier version may lack."""
    return kind.read(node) if node.given else None
