"""Successive halving: which trials to stop early, from their scores alone.

`"Non-stochastic Best Arm Identification and Hyperparameter Optimization"
<https://arxiv.org/abs/1502.07943>`_ (Jamieson and Talwalkar, 2016).
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Self


@dataclasses.dataclass(frozen=True)
class Halving:
    """When to stop the worse half of the trials in training.

    Args:
        rungs: epochs at which trials are compared, rising.
        keep: the number of trials of a population that are never stopped.

    >>> Halving().select([0.9, 0.5, 0.7, 0.8], [1.0, 1.0, 1.0, 1.0])
    [1, 2]
    """

    rungs: tuple[int, ...] = (40, 100, 250)
    keep: int = 2

    def __post_init__(self) -> None:
        if list(self.rungs) != sorted(set(self.rungs)) or any(r < 1 for r in self.rungs):
            raise ValueError(f"Expected rising `rungs` >= 1 (got {self.rungs!r})")
        if self.keep < 1:
            raise ValueError(f"Expected `keep` >= 1 (got {self.keep!r})")

    def select(self, scores: Sequence[float], losses: Sequence[float]) -> list[int]:
        """The positions to stop: the half with the lower scores, ties by the higher loss."""
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], losses[i], i))
        return sorted(order[max(self.keep, math.ceil(len(scores) / 2)) :])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the record.

        >>> Halving((3,)).to_dict()
        {'rungs': [3], 'keep': 2}
        """
        return {"rungs": list(self.rungs), "keep": self.keep}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """From :meth:`to_dict`."""
        return cls(tuple(table["rungs"]), table["keep"])
