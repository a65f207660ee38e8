r"""Models whose scores are a sum over source nodes, taken apart exactly.

In LON-GNN's own form a filter acts on transformed features,

.. math:: score[i, c] = \sum_v g_c(P)[i, v]\; t(x_v)[c],

and row i of :math:`g_c(P)` is one application of the loop to the unit vector of i, since P is
symmetric. More generally let S(X) be the signal before the filter and all that follows it linear,
:math:`score = g(P)\,S(X)\,W + b`. Then with :math:`r = W q`

.. math:: q \cdot score[i] = q \cdot b + \sum_v \sum_c r_c\, g_c(P)[i, v]\, S(x_v)_c.
"""

import functools
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from longnn.explain import _captum
from longnn.explain._part import Overall, Part, as_array
from longnn.explain._signal import Signal
from longnn.filters import PolynomialFilter
from longnn.graphs import GraphOperator, apply_filter, chebyshev_stack
from longnn.matrices import DenseMatrix, SparseMatrix
from longnn.nn import MLP, Model, SpectralGNN

#: Channels that are taken through the loop at a time where every degree is kept.
CHANNELS = 8


def has_exact_form(model: Model) -> bool:
    """Whether all that a model does after its filter is linear, or it has no filter.

    >>> from longnn.nn import GCN, LONGNN
    >>> has_exact_form(LONGNN(3, 4, 2)), has_exact_form(GCN(3, 4, 2))
    (True, False)
    >>> has_exact_form(LONGNN(3, 4, 2, placement="features"))
    False
    """
    if isinstance(model, MLP):
        return True
    if not isinstance(model, SpectralGNN) or not isinstance(model.filter, PolynomialFilter):
        return False
    bent = model.activate_after or model.normalize
    return model.output_filter is None and (model.readout is None or not bent)


class ExactForm:
    """A model with :func:`has_exact_form` on one graph.

    Args:
        model: in float64 and evaluation mode.
        x: features (nodes, features), float64.
        operator: the graph, float64, symmetric.
    """

    exact = True

    def __init__(
        self, model: Model, x: SparseMatrix | DenseMatrix, operator: GraphOperator
    ) -> None:
        assert isinstance(model, MLP | SpectralGNN)
        assert operator.root_degree is None, "row i is column i for a symmetric operator only"
        self._operator = operator
        self._signal = Signal(model, x)
        self.filter: PolynomialFilter | None = getattr(model, "filter", None)
        readout = getattr(model, "readout", None)
        self._readout = None if readout is None else (readout.weight, readout.bias)
        with torch.no_grad():
            self.scores = model.scores(x, operator)
            one = torch.ones(1, 1, dtype=torch.float64)
            known = None if self.filter is None else self.filter.chebyshev_coefficients()
            self._beta = one if known is None else known  # (K+1, channels) or (K+1, 1)

    @property
    def method(self) -> str:
        """Exact for nodes; by feature too, unless the transform has to be integrated."""
        if self._signal.exact:
            return "exact"
        return "exact by node; by feature, integrated gradients of the transform"

    @property
    def hops(self) -> int:
        """The degree of the filter."""
        return len(self._beta) - 1

    @torch.no_grad()
    def explain(self, nodes: np.ndarray, q: Tensor, *, features: bool) -> Part:
        """The parts of ``(q * scores[nodes]).sum(1)``."""
        r, constant = self._before_readout(q)  # (explained, channels)
        S, places = self._signal.values, torch.from_numpy(nodes)
        single = self._beta.shape[1] == 1 or bool(((r != 0).sum(1) <= 1).all())
        parts = torch.zeros(len(nodes), len(S), dtype=torch.float64)
        weight = torch.zeros_like(parts)
        found = self._no_features(len(nodes)) if features else None
        for c, who, rows in self._rows(places, r):  # g_c(P)[who], (len(who), nodes)
            weighed = r[who, c, None] * rows
            parts[who] += weighed * S[:, c]
            weight[who] = rows
            if found is not None and self._signal.exact:
                found[who.numpy()] += (self._signal.by_feature(c).T @ as_array(weighed).T).T
        if found is not None and not self._signal.exact:
            found = self._integrate(places, r)
        chebyshev, terms = self._by_degree(places, r)
        return Part(
            contributions=as_array(parts),
            constant=as_array(constant),
            base=as_array((self._row_sums[places] * r) @ self._signal.at_zero),
            weight=as_array(weight) if single else None,
            says=as_array(r @ S.T) if single else None,
            features=found,
            chebyshev=as_array(chebyshev),
            terms=None if terms is None else as_array(terms),
        )

    @torch.no_grad()
    def overall(self, q: Tensor, *, features: bool) -> Overall:
        """The parts of ``(q * scores).sum()``: the filter on q, since it is its own adjoint."""
        r, _ = self._before_readout(q)  # (nodes, channels)
        M = apply_filter(self._operator, r.contiguous(), self._beta)
        found = self._no_features(1) if features else None
        if found is not None and self._signal.exact:
            for c in range(M.shape[1]):
                found[0] += self._signal.by_feature(c).T @ as_array(M[:, c])
        elif found is not None:
            found[0] = self._signal.integrate(M)
        influence = as_array((M * self._signal.values).sum(1))
        return Overall(influence, None if found is None else found[0])

    def _before_readout(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of the channels that the filter acts on, and what biases after it give."""
        if self._readout is None:
            return q, torch.zeros(len(q), dtype=torch.float64)
        weight, bias = self._readout  # (channels, outputs), (outputs,)
        return q @ weight.T, q @ bias

    def _rows(self, places: Tensor, r: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Channel after channel: whom it concerns, and their rows of its filter."""
        shared = self._rows_of(places, None) if self._beta.shape[1] == 1 else None
        for c in range(r.shape[1]):
            who = r[:, c].nonzero()[:, 0]
            if shared is not None and len(who):
                yield c, who, shared[who]
            elif len(who):
                yield c, who, self._rows_of(places[who], torch.full_like(who, c))

    def _rows_of(self, places: Tensor, channels: Tensor | None) -> Tensor:
        """Row i of g_c(P): the loop on the unit vector of i; (len(places), nodes)."""
        units = torch.zeros(len(self.scores), len(places), dtype=torch.float64)
        units[places, torch.arange(len(places))] = 1.0
        beta = self._beta if channels is None else self._beta[:, channels]
        return apply_filter(self._operator, units, beta).T

    @functools.cached_property
    def _row_sums(self) -> Tensor:
        """g_c(P) 1, (nodes, channels): what nodes that all say one have of each other."""
        return apply_filter(self._operator, torch.ones_like(self._signal.values), self._beta)

    def _no_features(self, count: int) -> np.ndarray | None:
        """Room for the split by feature; None where it needs Captum, and there is none."""
        if not self._signal.exact and not _captum.is_available():
            return None
        return np.zeros((count, self._signal.features.shape[1]))

    def _integrate(self, places: Tensor, r: Tensor) -> np.ndarray:
        found = []
        for k in range(len(places)):
            shared = self._beta.shape[1] == 1
            channels = None if shared else torch.arange(r.shape[1])
            rows = self._rows_of(places[k].expand(1 if shared else r.shape[1]), channels)
            found.append(self._signal.integrate(rows.T * r[k]))
        return np.stack(found)

    def _by_degree(self, places: Tensor, r: Tensor) -> tuple[Tensor, Tensor | None]:
        """By term of the Chebyshev series (explained, K+1), and of the own basis."""
        S, K = self._signal.values, self.hops
        blocks = [
            chebyshev_stack(self._operator, S[:, c : c + CHANNELS].contiguous(), K)[:, places]
            for c in range(0, S.shape[1], CHANNELS)
        ]
        D = torch.cat(blocks, 2)  # (K+1, explained, channels): rows of T_j(P) S
        beta = self._beta.expand(-1, S.shape[1])
        chebyshev = torch.einsum("jbc,jc,bc->bj", D, beta, r)
        if self.filter is None:
            return chebyshev, None
        alpha = self.filter.effective_coefficients().expand(-1, S.shape[1])  # (terms, channels)
        C = self.filter.chebyshev_matrix()
        C = C.expand(S.shape[1], *C.shape[-2:]) if C.dim() == 2 else C
        return chebyshev, torch.einsum("ckj,kc,jbc,bc->bk", C, alpha, D, r)
