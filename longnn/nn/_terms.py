r"""Rows of :math:`T_0(P) X, \dots, T_K(P) X` in the place of features: a model without its graph.

A filter on a linear map of the features commutes with it,

.. math:: g(P)\,(X W + 1 b^T) = \sum_j \big(T_j(P) X\big) W \circ \beta_j
          + \big(T_j(P) 1\big)\, b^T \circ \beta_j,

so the rows of the terms are all that a model needs to compute its scores of those rows. Whoever
has them passes :class:`Terms` as features and :class:`OnRows` as the operator.
"""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from longnn.graphs._adjacency import SelfLoops


@dataclasses.dataclass(frozen=True)
class OnRows:
    """The operator of terms that were computed before: what it did with self loops.

    Args:
        self_loops: ``"keep"``, ``"add"`` or ``"remove"``.
        num_nodes: the rows that there are.
        device, dtype: of the terms.
        types: the names of the types of edges whose terms there are, too.
    """

    self_loops: SelfLoops
    num_nodes: int
    device: torch.device
    dtype: torch.dtype
    types: tuple[str, ...] = ()

    by_rows: ClassVar[bool] = True


@dataclasses.dataclass(frozen=True)
class Terms:
    """Some rows of the terms, under each treatment of self loops that is asked for.

    Args:
        values: (K+1, copies rows, features) each: :math:`T_j(P) X`.
        ones: (K+1, copies rows) each: :math:`T_j(P) 1`, which biases are multiplied with.
        degrees: (rows,), the neighbours of each node, for whoever counts them.
        copies: rows of the operator per node, two on arcs: those of sources, then of targets.
        types: those by the edges of each type alone.

    >>> x, ones = torch.eye(2)[None], torch.ones(1, 2)
    >>> Terms({"keep": x}, {"keep": ones}).features.shape
    torch.Size([2, 2])
    """

    values: Mapping[SelfLoops, Tensor]
    ones: Mapping[SelfLoops, Tensor]
    degrees: Tensor | None = None
    copies: int = 1
    types: tuple["Terms", ...] = ()

    @property
    def features(self) -> Tensor:
        """The features themselves, (rows, features), the first term of any operator."""
        every = next(iter(self.values.values()))[0]
        return every[: len(every) // self.copies]

    def take(self, rows: Tensor) -> "Terms":
        """Those of some rows."""
        n = self.shape[0]
        every = torch.cat([rows + copy * n for copy in range(self.copies)])
        values, ones = ({k: v[:, every] for k, v in t.items()} for t in (self.values, self.ones))
        degrees = None if self.degrees is None else self.degrees[rows]
        types = tuple(terms.take(rows) for terms in self.types)
        return Terms(values, ones, degrees, self.copies, types)

    def without_edges(self) -> "Terms":
        r"""Those of the same rows in a graph without edges: :math:`T_j(0) = \cos(j \pi / 2)`, and 1
        where loops are added.

        >>> x, ones = torch.ones(3, 1, 1), torch.ones(3, 1)
        >>> Terms({"keep": x}, {"keep": ones}).without_edges().values["keep"].flatten()
        tensor([ 1.,  0., -1.])
        """

        def alone(terms: Mapping[SelfLoops, Tensor]) -> dict[SelfLoops, Tensor]:
            made = {}
            for loops, each in terms.items():
                signs = torch.ones(4) if loops == "add" else torch.tensor([1.0, 0.0, -1.0, 0.0])
                sign = signs.to(each)[torch.arange(len(each)) % 4]
                made[loops] = sign.view(-1, *[1] * (each.dim() - 1)) * each[:1]
            return made

        return Terms(alone(self.values), alone(self.ones), self.degrees, self.copies)

    def lifted(self) -> "Terms":
        r"""The terms of :math:`\mathrm{diag}(X, X)` on two copies, (K+1, 2 rows, 2 features).

        Those of X on both copies are the sum of its two halves. Even powers of the double cover
        stay on a copy and odd ones cross, so that each term belongs to one half.
        """
        values = {k: _lift(v) for k, v in self.values.items()}
        types = tuple(terms.lifted() for terms in self.types)
        return Terms(values, self.ones, self.degrees, types=types)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        rows, features = self.features.shape
        return rows, features


def _lift(values: Tensor) -> Tensor:  # (K+1, 2 rows, features) -> (K+1, 2 rows, 2 features)
    terms, rows, width = values.shape
    lifted = values.new_zeros(terms, 2, rows // 2, 2, width)
    halves = values.view(terms, 2, rows // 2, width)
    for copy in (0, 1):
        lifted[0::2, copy, :, copy] = halves[0::2, copy]
        lifted[1::2, copy, :, 1 - copy] = halves[1::2, copy]
    return lifted.view(terms, rows, 2 * width)
