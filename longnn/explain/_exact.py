r"""Models whose scores are a sum over source nodes, taken apart exactly.

In LON-GNN's own form a filter acts on transformed features,

.. math:: score[i, c] = \sum_v g_c(P)[i, v]\; t(x_v)[c],

and row i of :math:`g_c(P)` is a sum of rows of the :math:`T_j(P)`: the terms of the loop on the
unit vector of i, since P is symmetric. One pass of it serves all channels. More generally let S(X)
be the signal before the filter and all that follows it linear, :math:`score = g(P)\,S(X)\,W + b`.
Then with :math:`r = W q`

.. math:: q \cdot score[i] = q \cdot b + \sum_v \sum_c r_c\, g_c(P)[i, v]\, S(x_v)_c.

On arcs the operator B is symmetric, too, and has two copies of every node: the rows of both copies
of i are added, the contribution of v is the sum over its two copies, and biases count twice.

Features enter S by integrated gradients from a node without features, x = 0 (after scaling: an
average node where features are standardised):

.. math:: S(x)_c - S(0)_c = \sum_f x_f \int_0^1 \partial_f S_c(\tau x)\,d\tau.

For a linear map the integral is a weight. Through one layer of ReLU it is known, too: with
:math:`u = x W`, unit h is active on a share
:math:`\varphi_h = (\mathrm{ReLU}(u_h + b_h) - \mathrm{ReLU}(b_h)) / u_h` of the way. Both are
exact. Deeper or normalised transforms are integrated numerically.
"""

import functools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from longnn.explain._forms import (
    WAYS,
    Entries,
    Overall,
    Part,
    as_array,
    integrate,
    to_csr,
)
from longnn.filters import PolynomialFilter
from longnn.graphs import GraphOperator, apply_filter
from longnn.graphs._propagate import chebyshev_stack
from longnn.matrices import DenseMatrix, LiftedMatrix, SparseMatrix
from longnn.nn import MLP, Directed, Model
from longnn.nn._model import SpectralGNN

#: Numbers held at a time while entries are weighed.
CHUNK = 2**22
#: Channels whose split is kept.
KEPT = 16
#: Share of entries from which a split is a dense matrix.
DENSE = 0.2


def has_exact_form(model: Model) -> bool:
    """Whether all that a model does after its filter is linear, or it has no filter.

    >>> from longnn.nn import GCN, LONGNN
    >>> has_exact_form(LONGNN(3, 4, 2)), has_exact_form(GCN(3, 4, 2))
    (True, False)
    >>> has_exact_form(LONGNN(3, 4, 2, placement="features"))
    False
    """
    if isinstance(model, Directed):
        return model.model.copies == 1 and has_exact_form(model.model)
    if isinstance(model, MLP):
        return True
    if not isinstance(model, SpectralGNN) or not isinstance(model.filter, PolynomialFilter):
        return False
    bent = model.activate_after or model.normalize
    return model.output_filter is None and (model.readout is None or not bent)


class ExactForm:
    """A model with :func:`has_exact_form` on one graph.

    ``mix`` is W, or None for the identity, and ``constant`` is what biases after the filter give.

    Args:
        model: in float64 and evaluation mode.
        x: features (nodes, features), float64.
        operator: the graph, float64, symmetric.
    """

    exact = True

    def __init__(
        self, model: Model, x: SparseMatrix | DenseMatrix, operator: GraphOperator
    ) -> None:
        inner = model.model if isinstance(model, Directed) else model
        assert isinstance(inner, MLP | SpectralGNN)
        assert operator.root_degree is None, "row i is column i for a symmetric operator only"
        self._operator = operator
        # Rows of the signal per node: two on arcs, unless the model ignores the graph.
        self._copies = operator.copies if isinstance(model, Directed) else 1
        self._nodes = x.shape[0]
        self._signal = Signal(inner, LiftedMatrix(x) if self._copies == 2 else x)
        self.filter: PolynomialFilter | None = getattr(inner, "filter", None)
        readout = getattr(inner, "readout", None)
        with torch.no_grad():
            self.scores = model.scores(x, operator)
            self.mix = None if readout is None else readout.weight.detach()
            self.constant = torch.zeros(self.scores.shape[1], dtype=torch.float64)
            if readout is not None:
                self.constant = self._copies * readout.bias
            self._beta = torch.ones(1, 1, dtype=torch.float64)  # (K+1, channels) or (K+1, 1)
            if self.filter is not None:
                self._beta = self.filter.chebyshev_coefficients()

    @property
    def signal(self) -> Tensor:
        """S(X), (copies nodes, channels)."""
        return self._signal.values

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

    @property
    def held(self) -> int:
        """Numbers held of an explained node and another: rows of all terms, by copies of both."""
        return self._copies**2 * len(self._beta)

    @torch.no_grad()
    def explain(self, nodes: np.ndarray, q: Tensor, *, features: bool) -> Part:
        """The parts of ``(q * scores[nodes]).sum(1)``."""
        r = self._before_readout(q)  # (explained, channels)
        S, places = self._signal.values, torch.from_numpy(nodes)  # S: (copies nodes, channels)
        one_filter = self._beta.shape[1] == 1 or bool(((r != 0).sum(1) <= 1).all())
        single = one_filter and self._copies == 1
        terms = self._terms(places)
        parts = torch.zeros(self._copies, len(nodes), len(S), dtype=torch.float64)
        weight = torch.zeros_like(parts[0])
        split = np.zeros((len(nodes), self._signal.features.shape[1])) if features else None
        for c, who, rows in self._rows(terms, r):  # g_c(P)[who], (copies, len(who), len(S))
            weighed = r[who, c, None] * rows
            parts[:, who] += weighed * S[:, c]
            weight[who] = rows[0]
            if split is not None and self._signal.exact:
                split[who.numpy()] += as_array(weighed.sum(0)) @ self._signal.by_feature(c)
        if split is not None and not self._signal.exact:
            split = self._integrate(terms, r)
        chebyshev, by_term = self._by_degree(terms, r)
        return Part(
            contributions=as_array(self._fold(parts.sum(0), 1)),
            constant=as_array(q @ self.constant),
            base=as_array((self._row_sums[places] * r) @ self._signal.at_zero),
            weight=as_array(weight) if single else None,
            says=as_array(r @ S.T) if single else None,
            features=None if split is None else self._fold_features(split),
            chebyshev=as_array(chebyshev),
            terms=None if by_term is None else as_array(by_term),
            ways=self._by_way(parts, places),
        )

    @torch.no_grad()
    def overall(self, q: Tensor, groups: Sequence[Tensor]) -> Overall:
        """The filter on q, since it is its own adjoint."""
        M = self._back(q)
        influence = as_array(self._fold((M * self._signal.values).sum(1), 0))
        split = np.zeros((len(groups), self._signal.features.shape[1]))
        for row, group in zip(split, groups, strict=True):
            M = self._back(q * group[:, None])
            if not self._signal.exact:
                row += self._signal.integrate(M)
            for c in range(M.shape[1]) if self._signal.exact else []:
                row += as_array(M[:, c]) @ self._signal.by_feature(c)
        return influence, self._fold_features(split)

    def _back(self, q: Tensor) -> Tensor:
        """What entries of the signal add to ``(q * scores).sum()``, (copies nodes, channels)."""
        return self._filtered(self._before_readout(q).repeat(self._copies, 1), self._beta)

    def _fold(self, values: Tensor, dim: int) -> Tensor:
        """The sum over the copies of every node."""
        copies = values.chunk(self._copies, dim)
        return torch.stack(copies).sum(0)

    def _fold_features(self, split: np.ndarray) -> np.ndarray:
        """(explained, copies features) to (explained, features)."""
        return np.sum(np.split(split, self._copies, axis=1), axis=0)

    def _filtered(self, signal: Tensor, beta: Tensor) -> Tensor:
        """g(P) on a signal (copies nodes, channels); the identity where there is no filter."""
        if self.filter is None:
            return signal * beta[0]
        return apply_filter(self._operator, signal.contiguous(), beta)

    def _before_readout(self, q: Tensor) -> Tensor:
        """Weights of the channels that the filter acts on."""
        return q if self.mix is None else q @ self.mix.T

    def _terms(self, places: Tensor) -> Tensor:
        """Row i of every T_j(P), of each copy of i: (copies, K+1, explained, copies nodes)."""
        each = []
        for copy in range(self._copies):
            units = torch.zeros(len(self._signal.values), len(places), dtype=torch.float64)
            units[copy * self._nodes + places, torch.arange(len(places))] = 1.0
            stack = units[None]
            if self.filter is not None:
                stack = chebyshev_stack(self._operator, units, self.hops)
            each.append(stack.mT)
        return torch.stack(each)

    def _rows(self, terms: Tensor, r: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Channel after channel: whom it concerns, and their rows of its filter."""
        mix = lambda beta, of: torch.einsum("j,sjiv->siv", beta, of)  # noqa: E731
        shared = mix(self._beta[:, 0], terms) if self._beta.shape[1] == 1 else None
        for c in range(r.shape[1]):
            who = r[:, c].nonzero()[:, 0]
            some = slice(None) if len(who) == len(r) else who  # a slice copies nothing
            if shared is not None and len(who):
                yield c, who, shared[:, some]
            elif len(who):
                yield c, who, mix(self._beta[:, c], terms[:, :, some])

    @functools.cached_property
    def _row_sums(self) -> Tensor:
        """g_c(P) 1, (nodes, channels): what nodes that all say one have of each other."""
        return self._fold(self._filtered(torch.ones_like(self._signal.values), self._beta), 0)

    def _integrate(self, terms: Tensor, r: Tensor) -> np.ndarray:
        """By feature (explained, copies features), each with an integral of its own."""
        beta = self._beta.expand(-1, r.shape[1])
        rows = (torch.einsum("sjv,jc->vc", terms[:, :, k], beta) for k in range(len(r)))
        return np.stack([self._signal.integrate(g * r[k]) for k, g in enumerate(rows)])

    def _by_degree(self, terms: Tensor, r: Tensor) -> tuple[Tensor, Tensor | None]:
        """By term of the Chebyshev series (explained, K+1), and of the own basis."""
        D = (terms @ self._signal.values).sum(0)  # (K+1, explained, channels): rows of T_j(P) S
        channels = D.shape[2]
        chebyshev = torch.einsum("jbc,jc,bc->bj", D, self._beta.expand(-1, channels), r)
        if self.filter is None:
            return chebyshev, None
        alpha = self.filter.effective_coefficients().expand(-1, channels)  # (terms, channels)
        C = self.filter.chebyshev_matrix()
        C = C.expand(channels, *C.shape[-2:]) if C.dim() == 2 else C
        return chebyshev, torch.einsum("ckj,kc,jbc,bc->bk", C, alpha, D, r)

    def _by_way(self, parts: Tensor, places: Tensor) -> np.ndarray | None:
        """On a double cover, the sums by :data:`WAYS`, (explained, ways).

        Block (s, t) of :math:`g(B)` holds odd powers: from the node as a source to others as
        targets. The blocks on the diagonal hold even ones.
        """
        if self._operator.direction != "cover":
            return None
        who = torch.arange(len(places))
        blocks = parts.unflatten(2, (self._copies, self._nodes)).clone()  # (own, who, other, nodes)
        own = blocks[:, who, :, places].sum((1, 2))  # indices in front: (who, own, other)
        ways = torch.zeros(len(places), len(WAYS), dtype=torch.float64)
        ways[:, 0] = own
        if self._copies == 2:
            blocks[:, who, :, places] = 0
            sums = blocks.sum(3)  # (own copy, explained, copy of the other)
            ways[:, 1:] = torch.stack(
                [sums[0, :, 1], sums[1, :, 0], sums[0, :, 0], sums[1, :, 1]], 1
            )
        return as_array(ways)


class Signal:
    """S(X) of a model, float64, and its split by feature.

    Args:
        model: whose transform it is; in float64, in evaluation mode.
        x: features (nodes, features), float64; on arcs lifted to two copies of every node.
    """

    def __init__(self, model: SpectralGNN | MLP, x: Entries) -> None:
        self._transform = model.transform
        self._activate = isinstance(model, SpectralGNN) and model.activate_before
        self._x = x
        self._splits: dict[int, scipy.sparse.csr_matrix | np.ndarray] = {}
        nothing = torch.zeros(1, x.shape[1], dtype=x.dtype)
        with torch.no_grad():
            self.values = self._apply(x)  # (nodes, channels)
            self.at_zero = self._apply(nothing)[0]  # (channels,)

    def _apply(self, x: Tensor | Entries) -> Tensor:
        h = self._transform(x)
        return torch.relu(h) if self._activate else h

    @property
    def exact(self) -> bool:
        """Whether the split by feature is exact."""
        t = self._transform
        return t.kind == "linear" or (t.kind == "mlp" and not (t.normalize or self._activate))

    @functools.cached_property
    def features(self) -> scipy.sparse.csr_matrix:
        """The features, float64."""
        return to_csr(self._x)

    @functools.cached_property
    def _active(self) -> np.ndarray:
        """On which share of the way each hidden unit is active, (nodes, hidden)."""
        first = self._transform.first
        assert first.bias is not None
        return active_share(self.features @ as_array(first.weight), as_array(first.bias))

    def by_feature(self, channel: int) -> scipy.sparse.csr_matrix | np.ndarray:
        """The split of S(x_v)_c - S(0)_c of every node v, (nodes, features); an exact one."""
        if channel not in self._splits:
            if len(self._splits) >= KEPT:
                self._splits.clear()
            split = self._split(channel)
            full = split.nnz > DENSE * math.prod(split.shape)
            self._splits[channel] = split.toarray() if full else split
        return self._splits[channel]

    def _split(self, channel: int) -> scipy.sparse.csr_matrix:
        """x_f times the weight of its path to the channel, entry by entry."""
        first, last = self._transform.first, self._transform.last
        x, W = self.features, as_array(first.weight)  # W: (features, hidden)
        rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
        if last is None:
            weights = W[x.indices, channel]
            if self._activate:
                weights = weights * self._active[rows, channel]
        else:
            out = as_array(last.weight)[:, channel]  # (hidden,)
            step = max(1, CHUNK // W.shape[1])
            pieces = [
                (W[x.indices[k : k + step]] * self._active[rows[k : k + step]]) @ out
                for k in range(0, x.nnz, step)
            ]
            weights = np.concatenate(pieces) if pieces else np.zeros(0)
        return scipy.sparse.csr_matrix((x.data * weights, x.indices, x.indptr), shape=x.shape)

    def integrate(self, M: Tensor) -> np.ndarray:
        """The split of ``(M * (S(X) - S(0))).sum()``, (features,), by an integral; M like S."""
        rows = M.abs().sum(1).nonzero()[:, 0]
        if len(rows) == 0:
            return np.zeros(self.features.shape[1])
        x, M = torch.from_numpy(self.features[rows.numpy()].toarray()), M[rows]
        return as_array(integrate(lambda point: (M * self._apply(point)).sum()[None], x)[1][0])


def active_share(u: np.ndarray, b: np.ndarray) -> np.ndarray:
    r"""The share of :math:`\tau \in [0, 1]` on which :math:`\tau u + b > 0`.

    >>> active_share(np.array([2.0, -2.0, 1.0]), np.array([-1.0, 1.0, 5.0]))
    array([0.5, 0.5, 1. ])
    """
    start, end = b > 0, u + b > 0
    crossing = start != end
    quotient = (np.maximum(u + b, 0) - np.maximum(b, 0)) / np.where(crossing, u, 1.0)
    share: np.ndarray = np.where(crossing, quotient, end.astype(float))
    return share
