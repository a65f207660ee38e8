"""Scores over the repeats."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longnn._base.node import Node

#: The sets of a split, in their order.
SETS = ("train", "val", "test")

#: Set -> metric -> score.
Scores = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Summary:
    """A score over the repeats: its mean, 95 % interval, standard deviation and count.

    >>> Summary.read(Node({"mean": 1, "low": 1, "high": 1, "std": 0, "count": 1}, file="x")).mean
    1.0
    """

    mean: float
    low: float
    high: float
    std: float
    count: int

    @classmethod
    def read(cls, node: Node) -> "Summary":
        """From the place in a record."""
        mean, low, high, std = (node[key].number() for key in ("mean", "low", "high", "std"))
        return cls(mean, low, high, std, node["count"].integer())


def summarize_repeats(scores: Sequence[Scores], summarize: Any) -> dict[str, dict[str, Summary]]:
    """Each score of each set over the repeats that have it.

    Args:
        scores: of each repeat.
        summarize: from values to the numbers of a :class:`Summary`, as a table.

    >>> scores = {"train": {}, "val": {}, "test": {"accuracy": 0.5}}
    >>> numbers = {"mean": 0.5, "low": 0.5, "high": 0.5, "std": 0.0, "count": 1}
    >>> summarize_repeats([scores], lambda values: numbers)["test"]["accuracy"].mean
    0.5
    """
    summary: dict[str, dict[str, Summary]] = {}
    for name in SETS:
        metrics = {metric for found in scores for metric in found[name]}
        summary[name] = {
            metric: Summary(
                **summarize([found[name][metric] for found in scores if metric in found[name]])
            )
            for metric in sorted(metrics)
        }
    return summary


def summary_dict(summary: Mapping[str, Mapping[str, Summary]]) -> dict[str, Any]:
    """Summaries as plain data."""
    return {
        subset: {metric: dataclasses.asdict(value) for metric, value in found.items()}
        for subset, found in summary.items()
    }


def read_summaries(node: Node) -> dict[str, dict[str, Summary]]:
    """From the place in a record."""
    return {
        subset: {metric: Summary.read(node[subset][metric]) for metric in node[subset].mapping()}
        for subset in node.mapping()
    }
