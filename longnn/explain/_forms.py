r"""What a model contributes to a number per node; any model by integrated gradients.

A :class:`Form` is a model on one graph, ready to be taken apart into parts that add up. The one of
any model takes integrated gradients over the features within reach.

Contributions are those of the features of a node, from a graph without features:
:math:`F(X) = F(0) + \sum_v \sum_f \mathrm{IG}_{vf}`, and F(0) is the constant. Here
(Sundararajan, Taly and Yan, 2017)

.. math:: \mathrm{IG}(X) = X \circ \int_0^1 \nabla F(\tau X)\,d\tau, \qquad
          \textstyle\sum \mathrm{IG}(X) = F(X) - F(0)

by Gauss-Legendre quadrature. F has kinks where a unit of ReLU changes sides, so the sum meets the
difference only nearly: callers show the gap.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from longnn.filters import PolynomialFilter
from longnn.graphs import GraphOperator
from longnn.matrices import DenseMatrix, LiftedMatrix, SparseMatrix
from longnn.nn import ARMA, GCN, ChebNet, Directed, Model
from longnn.nn._model import SpectralGNN
from longnn.nn._trees import BoostedTrees

#: How arcs lead from a node to another, in a double cover. Odd powers go along the arcs of a node
#: or against them (and on, back and forth); even ones join nodes with common targets or sources.
WAYS = ("the node itself", "along its arcs", "against its arcs", "common targets", "common sources")
#: Features, dense or sparse, or on two copies of every node.
Entries = SparseMatrix | DenseMatrix | LiftedMatrix
#: Points of the quadrature.
STEPS = 64


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


#: The same for a weighted sum over all nodes: the influence (nodes,) of every source node on all
#: that is explained, and that of the features on each of some groups of it (groups, features).
Overall = tuple[np.ndarray, np.ndarray]


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

    @property
    def held(self) -> int:
        """Numbers held at a time of every pair of an explained node and another."""

    def explain(self, nodes: np.ndarray, q: Tensor, *, features: bool) -> Part:
        """The parts of ``(q * scores[nodes]).sum(1)``, q of shape (explained, outputs)."""

    def overall(self, q: Tensor, groups: Sequence[Tensor]) -> Overall:
        """The parts of ``(q * scores).sum()``, q of shape (nodes, outputs), in one pass.

        Args:
            groups: by feature, the same sum over some nodes: float64 (nodes,) of zeros and ones;
                the first of them everyone. Empty where features are not asked for.
        """


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
    split = [each.features for each in parts if each.features is not None]
    series = [each.chebyshev for each in parts if each.chebyshev is not None]
    ways = [each.ways for each in parts if each.ways is not None]
    # Chebyshev series of different degrees, (explained, degree + 1), are added.
    total = np.zeros((len(parts[0].base), max((s.shape[1] for s in series), default=0)))
    for terms in series:
        total[:, : terms.shape[1]] += terms
    return Part(
        contributions=np.sum([each.contributions for each in parts], axis=0),
        constant=np.sum([each.constant for each in parts], axis=0),
        base=np.sum([each.base for each in parts], axis=0),
        features=np.sum(split, axis=0) if len(split) == len(parts) else None,
        chebyshev=total if len(series) == len(parts) else None,
        ways=np.sum(ways, axis=0) if len(ways) == len(parts) else None,
    )


def integrate(
    function: Callable[[Tensor], Tensor], x: Tensor, steps: int = STEPS
) -> tuple[Tensor, Tensor]:
    """Attributions of ``function(x) - function(0)``, (asked,), to the entries of x (rows, columns).

    The way from zero is gone once for all that is asked; the way back, once for each.

    Returns:
        their sums over columns (asked, rows), and over rows (asked, columns).

    >>> x = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    >>> integrate(lambda x: x.pow(3).sum()[None], x)[1].round(decimals=6)
    tensor([[1., 8.]], dtype=torch.float64)
    """
    points, weights = np.polynomial.legendre.leggauss(steps)
    x = x.detach()
    by_row, by_column = [], []
    for t, w in zip((points + 1) / 2, weights / 2, strict=True):
        at = (t * x).requires_grad_()
        with torch.enable_grad():
            values = function(at).unbind()
        back = (torch.autograd.grad(value, at, retain_graph=True)[0] for value in values)
        sums = ((share.sum(1), share.sum(0)) for share in (w * x * gradient for gradient in back))
        rows, columns = zip(*sums, strict=True)
        by_row.append(torch.stack(rows))
        by_column.append(torch.stack(columns))
    return torch.stack(by_row).sum(0), torch.stack(by_column).sum(0)


def to_csr(x: Entries) -> scipy.sparse.csr_matrix:
    """Features for SciPy, float64.

    >>> to_csr(DenseMatrix(torch.eye(2))).nnz
    2
    """
    if isinstance(x, LiftedMatrix):
        return scipy.sparse.csr_matrix(scipy.sparse.block_diag([to_csr(x.matrix)] * 2))
    if isinstance(x, SparseMatrix):
        return x.to_scipy()
    return scipy.sparse.csr_matrix(as_array(x.values))


def reach_of(model: Model) -> int | None:
    """How many hops the score of a node depends on; None where it may be the whole graph.

    >>> reach_of(GCN(3, 4, 2)), reach_of(ChebNet(3, 4, 2, degree=3))
    (2, 6)
    """
    if not model.uses_graph:
        return 0
    if isinstance(model, Directed):  # a product goes to neighbours, whichever way the arcs go
        return reach_of(model.model)
    layers: list[Any] = [getattr(model, name, None) for name in ("first", "second")]
    if isinstance(model, GCN):
        return len(layers)
    if isinstance(model, ChebNet):
        return sum(layer.degree for layer in layers)
    if isinstance(model, ARMA):
        return sum(len(layer.inner[0]) for layer in layers)
    if isinstance(model, SpectralGNN):
        filters = [f for f in (model.filter, model.output_filter) if f is not None]
        degrees = [f.degree for f in filters if isinstance(f, PolynomialFilter)]
        return sum(degrees) if len(degrees) == len(filters) else None
    return None


class IntegratedForm:
    """A model on one graph, by integrated gradients.

    Args:
        model: in float64 and evaluation mode.
        x: features (nodes, features), float64.
        operator: the graph, float64.
        steps: points of the quadrature.
    """

    exact = False
    held = 1
    method = "integrated gradients"

    def __init__(
        self,
        model: Model,
        x: SparseMatrix | DenseMatrix,
        operator: GraphOperator,
        steps: int = STEPS,
    ) -> None:
        self._model = model.requires_grad_(False)
        self._features = to_csr(x)
        self._operator, self._steps = operator, steps
        self.hops = reach_of(model)
        with torch.no_grad():
            self.scores = model.scores(x, operator)

    def explain(self, nodes: np.ndarray, q: Tensor, *, features: bool) -> Part:
        """The parts of ``(q * scores[nodes]).sum(1)``."""
        split = np.zeros((len(nodes), self._features.shape[1]))
        parts = np.zeros((len(nodes), len(self.scores)))
        constant = np.zeros(len(nodes))
        near = [self._reach(int(node)) for node in nodes]
        who = [np.array([k]) for k in range(len(nodes))]
        every = functools.reduce(np.union1d, near)
        # Together there is one way forward, and one back for each, all over every neighbourhood.
        if (1 + len(nodes)) * len(every) < 2 * sum(map(len, near)):
            near, who = [every], [np.arange(len(nodes))]
        for some, ks in zip(near, who, strict=True):
            at, weights = torch.from_numpy(np.searchsorted(some, nodes[ks])), q[ks]
            ask = lambda z, at=at, weights=weights: (weights * z[at]).sum(1)  # noqa: E731
            parts[np.ix_(ks, some)], split[ks], constant[ks] = self._integrate(some, ask)
        return Part(parts, constant, np.zeros(len(nodes)), features=split if features else None)

    def overall(self, q: Tensor, groups: Sequence[Tensor]) -> Overall:
        """One integral, with a way back for each group."""
        every, sums = np.arange(len(self.scores)), torch.stack([*groups] or [torch.ones(len(q))])
        by_node, by_feature, _ = self._integrate(every, lambda z: sums.to(q) @ (q * z).sum(1))
        return by_node[0], by_feature[: len(groups)]

    def _integrate(
        self, near: np.ndarray, ask: Callable[[Tensor], Tensor]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is asked of the scores of some nodes, (asked,): attributions to nodes
        (asked, near) and to features (asked, features), and its values without features."""
        x, operator = torch.from_numpy(self._features[near].toarray()), self._between(near)

        def values(point: Tensor) -> Tensor:
            return ask(self._model.scores(point, operator))

        by_node, by_feature = integrate(values, x, self._steps)
        with torch.no_grad():
            return as_array(by_node), as_array(by_feature), as_array(values(torch.zeros_like(x)))

    @functools.cached_property
    def _matrix(self) -> scipy.sparse.csr_matrix:
        return self._operator.matrix.to_scipy()

    def _rows(self, nodes: np.ndarray) -> np.ndarray:
        """The rows of some nodes in the operator, those of every copy one after the other."""
        return (len(self.scores) * np.arange(self._operator.copies)[:, None] + nodes).ravel()

    def _reach(self, node: int) -> np.ndarray:
        """Nodes that the score of a node depends on, sorted.

        What a node has after k products depends on entries of P at most k hops away.
        """
        if self.hops is None:
            return np.arange(len(self.scores))
        near = np.array([node])
        for _ in range(self.hops):
            hearing = self._matrix[self._rows(near)].indices % len(self.scores)
            wider = np.union1d(near, hearing)
            if len(wider) == len(near):
                break
            near = wider
        return near

    def _between(self, near: np.ndarray) -> GraphOperator:
        """The operator between some nodes, normalised as in the graph."""
        if len(near) == len(self.scores):
            return self._operator
        rows = self._rows(near)
        block = self._matrix[rows][:, rows]
        matrix = SparseMatrix.from_scipy(block, symmetric=True, dtype=torch.float64)
        return GraphOperator(matrix, direction=self._operator.direction)


def is_trees(model: Model) -> bool:
    """Whether a model is one of boosted trees, on arcs or not."""
    return isinstance(model.model if isinstance(model, Directed) else model, BoostedTrees)


class TreesForm:
    """Boosted trees on one graph, by the contributions of columns that LightGBM computes (SHAP).

    They add up to the score. A column of a node's own is the node's; the contribution of an
    average is split over the nodes that it is of, by their weight in it; so is, for want of a sum,
    that of the spread and of the extremes.

    Args:
        model: in evaluation mode.
        x: features (nodes, features), float64.
        operator: the graph, float64.
    """

    exact = True
    held = 1
    method = "by the contributions of trees' columns, those of averages split by weight"

    def __init__(
        self, model: Model, x: SparseMatrix | DenseMatrix, operator: GraphOperator
    ) -> None:
        trees = model.model if isinstance(model, Directed) else model
        assert isinstance(trees, BoostedTrees)
        self._trees = trees
        with torch.no_grad():
            self._table = trees.table(x, operator)
            self.scores = trees.read(self._table)
        P, n = operator.matrix.to_scipy(), len(self.scores)
        self._steps = [P[:n, n:], P[n:, :n]] if operator.copies == 2 else [P]

    @property
    def hops(self) -> int:
        """The longest walk."""
        return 0 if self._trees.columns == "alone" else self._trees.degree

    def _columns(self, nodes: np.ndarray, q: Tensor) -> np.ndarray:
        """The contributions (explained, width + 1) to ``(q * scores).sum(1)``; the last one is
        what there is without columns."""
        by_tree = self._trees.ask(self._table[nodes], pred_contrib=True)
        each = by_tree.reshape(len(nodes), -1, self._trees.width + 1)
        wanted = as_array(q)
        if each.shape[1] == 1 and wanted.shape[1] == 2:  # one score of two classes
            wanted = (wanted[:, 1:] - wanted[:, :1]) / 2
        return np.einsum("nk,nkc->nc", wanted, each)

    def _parts(self, by_column: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By feature of averages (explained, ways, lengths, features), of a node's own features,
        and of counts and masses together (explained,)."""
        f, trees = self._trees.in_channels, self._trees
        of_own, rest = by_column[:, :f], by_column[:, f:-1]
        if trees.columns == "alone":
            return np.zeros((len(of_own), 0, 0, f)), of_own, np.zeros(len(of_own))
        ways = rest.reshape(len(of_own), trees.copies, -1)
        averages, more = np.split(ways[:, :, 1:], [trees.degree * (f + 1)], axis=2)
        walks = averages.reshape(len(of_own), trees.copies, trees.degree, f + 1).copy()
        # Spread and extremes of neighbours are no sums over them: shared out like their average.
        walks[:, :, 0, 1:] += more.reshape(len(of_own), trees.copies, trees.more, f).sum(2)
        counts = ways[:, :, 0].sum(1) + walks[..., 0].sum((1, 2))
        return walks[..., 1:], of_own, counts

    def explain(self, nodes: np.ndarray, q: Tensor, *, features: bool) -> Part:
        """The parts of ``(q * scores[nodes]).sum(1)``."""
        by_column = self._columns(nodes, q)
        means, own, counts = self._parts(by_column)
        parts = np.zeros((len(nodes), len(self.scores)))
        parts[np.arange(len(nodes)), nodes] = own.sum(1) + counts
        for way in range(means.shape[1]):
            walk = scipy.sparse.identity(len(self.scores), format="csr")[nodes]
            for k in range(means.shape[2]):
                walk = walk @ self._steps[way]
                parts += _shares(walk).multiply(means[:, way, k].sum(1)[:, None]).toarray()
                alone = np.asarray(walk.sum(1)).ravel() <= 0  # no walk: a mean of nothing
                parts[alone, nodes[alone]] += means[alone, way, k].sum(1)
        split = own + means.sum((1, 2)) if features else None
        return Part(parts, by_column[:, -1], counts, features=split)

    def overall(self, q: Tensor, groups: Sequence[Tensor]) -> Overall:
        """The parts of ``(q * scores).sum()``; columns are asked for once."""
        by_column = self._columns(np.arange(len(self.scores)), q)
        means, own, counts = self._parts(by_column)
        influence = own.sum(1) + counts
        for way in range(means.shape[1]):
            mass, step = np.ones(len(influence)), self._steps[way]
            for k in range(means.shape[2]):
                mass = step @ mass
                given = means[:, way, k].sum(1)
                influence += np.where(mass > 0, 0.0, given)
                back = np.divide(given, mass, out=np.zeros_like(given), where=mass > 0)
                for _ in range(k + 1):
                    back = step.T @ back
                influence += back
        by_feature = own + means.sum((1, 2))  # (nodes, features)
        return influence, np.array([as_array(group) @ by_feature for group in groups])


def _shares(walk: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """Rows divided by their sums."""
    mass = np.asarray(walk.sum(1)).ravel()
    return scipy.sparse.diags(np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0)) @ walk
