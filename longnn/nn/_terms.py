r"""Rows of :math:`T_0(P) X, \dots, T_K(P) X` in the place of features: a model without its graph.

A filter on a linear map of the features commutes with it,

.. math:: g(P)\,(X W + 1 b^T) = \sum_j \big(T_j(P) X\big) W \circ \beta_j
          + \big(T_j(P) 1\big)\, b^T \circ \beta_j,

so the rows of the terms are all that a model needs to compute its scores of those rows. Whoever
has them passes :class:`Terms` as features and :class:`OnRows` as the operator.
"""

import dataclasses
from collections.abc import Mapping

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
    """

    self_loops: SelfLoops
    num_nodes: int
    device: torch.device
    dtype: torch.dtype


@dataclasses.dataclass(frozen=True)
class Terms:
    """Some rows of the terms, under each treatment of self loops that is asked for.

    Args:
        values: (K+1, rows, features) each: :math:`T_j(P) X`.
        ones: (K+1, rows) each: :math:`T_j(P) 1`, which biases are multiplied with.
        degrees: (rows,), the neighbours of each node, for whoever counts them.

    >>> x, ones = torch.eye(2)[None], torch.ones(1, 2)
    >>> Terms({"keep": x}, {"keep": ones}).features.shape
    torch.Size([2, 2])
    """

    values: Mapping[SelfLoops, Tensor]
    ones: Mapping[SelfLoops, Tensor]
    degrees: Tensor | None = None

    @property
    def features(self) -> Tensor:
        """The features themselves, (rows, features), the first term of any operator."""
        return next(iter(self.values.values()))[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        rows, features = self.features.shape
        return rows, features
