"""What one model contributes to one number per node: the parts that add up to it."""

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from torch import Tensor

#: How arcs lead from a node to another, in a double cover. Odd powers go along the arcs of a node
#: or against them (and on, back and forth); even ones join nodes with common targets or sources.
WAYS = ("the node itself", "along its arcs", "against its arcs", "common targets", "common sources")


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """Parts of ``q[i] @ score[i]`` for some nodes i, all in float64.

    ``constant + contributions.sum(1)`` is the number itself, and so is
    ``constant + base + features.sum(1)``, where a method is exact.

    Args:
        contributions: (explained, nodes), of every source node.
        constant: (explained,), what no source node gives: biases after the filter, or the score
            of a graph without features.
        base: (explained,), what nodes without features would give; the rest is by feature.
        weight: (explained, nodes), the filter's g(P)[i, v], where one filter decides.
        says: (explained, nodes), what each source says of itself, so that the contribution is
            weight times says.
        features: (explained, features), or None where they were not asked for.
        chebyshev: (explained, degree + 1), by term of the Chebyshev series of the filter.
        terms: (explained, terms), by term of the filter's own basis.
        ways: (explained, ways), by :data:`WAYS`, where arcs are kept in a double cover.
    """

    contributions: np.ndarray
    constant: np.ndarray
    base: np.ndarray
    weight: np.ndarray | None = None
    says: np.ndarray | None = None
    features: np.ndarray | None = None
    chebyshev: np.ndarray | None = None
    terms: np.ndarray | None = None
    ways: np.ndarray | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Overall:
    """The same for a weighted sum over all nodes: one pass instead of one per node.

    Args:
        influence: (nodes,), of every source node on all that is explained.
        features: (features,), likewise.
    """

    influence: np.ndarray
    features: np.ndarray | None


class Form(Protocol):
    """A model on one graph, ready to be taken apart."""

    #: (nodes, outputs), the model's own scores in float64.
    scores: Tensor

    @property
    def exact(self) -> bool:
        """Whether the parts of nodes add up but for rounding."""

    @property
    def method(self) -> str:
        """How the parts are found, in a few words."""

    @property
    def hops(self) -> int | None:
        """How far a node sees, or None for the whole graph."""

    def explain(self, nodes: np.ndarray, q: Tensor, *, features: bool) -> Part:
        """The parts of ``(q * scores[nodes]).sum(1)``, q of shape (explained, outputs)."""

    def overall(self, q: Tensor, *, features: bool) -> Overall:
        """The parts of ``(q * scores).sum()``, q of shape (nodes, outputs)."""


def as_array(values: Tensor) -> np.ndarray:
    """A tensor for NumPy, float64.

    >>> import torch
    >>> as_array(torch.ones(2))
    array([1., 1.])
    """
    return values.detach().cpu().double().numpy()


def join(parts: Sequence[Part]) -> Part:
    """The sum of the parts of several models; what only one model can have is dropped."""
    if len(parts) == 1:
        return parts[0]
    split = [part.features for part in parts if part.features is not None]
    series = [part.chebyshev for part in parts if part.chebyshev is not None]
    ways = [part.ways for part in parts if part.ways is not None]
    return Part(
        contributions=np.sum([part.contributions for part in parts], axis=0),
        constant=np.sum([part.constant for part in parts], axis=0),
        base=np.sum([part.base for part in parts], axis=0),
        features=np.sum(split, axis=0) if len(split) == len(parts) else None,
        chebyshev=_add_series(series) if len(series) == len(parts) else None,
        ways=np.sum(ways, axis=0) if len(ways) == len(parts) else None,
    )


def _add_series(series: Sequence[np.ndarray]) -> np.ndarray:
    """Chebyshev series of different degrees, (explained, degree + 1), added."""
    total = np.zeros((len(series[0]), max(s.shape[1] for s in series)))
    for s in series:
        total[:, : s.shape[1]] += s
    return total
