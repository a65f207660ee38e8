"""A score over the repeats."""

from dataclasses import dataclass

from longnn._base.node import Node


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
