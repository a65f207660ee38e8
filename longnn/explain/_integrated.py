r"""Any model, taken apart by integrated gradients over the features within reach.

Contributions are those of the features of a node, from a graph without features:
:math:`F(X) = F(0) + \sum_v \sum_f \mathrm{IG}_{vf}`, and F(0) is the constant. Captum computes
(Sundararajan, Taly and Yan, 2017)

.. math:: \mathrm{IG}(X) = X \circ \int_0^1 \nabla F(\tau X)\,d\tau, \qquad
          \textstyle\sum \mathrm{IG}(X) = F(X) - F(0)

by Gauss-Legendre quadrature. F has kinks where a unit of ReLU changes sides, so the sum meets the
difference only nearly: callers show the gap.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from longnn.explain._parts import Overall, Part, as_array
from longnn.filters import PolynomialFilter
from longnn.graphs import GraphOperator
from longnn.matrices import DenseMatrix, LiftedMatrix, SparseMatrix
from longnn.nn import ARMA, GCN, ChebNet, Directed, Model
from longnn.nn._model import SpectralGNN

#: Features, dense or sparse, or on two copies of every node.
Entries = SparseMatrix | DenseMatrix | LiftedMatrix
#: Points of the quadrature.
STEPS = 64
_MISSING = (
    "Expected captum for integrated gradients (it is not installed); install it with: "
    "pip install 'longnn[explain]'"
)


@functools.cache
def _captum() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries that Captum loads
            import captum.attr  # an extra: needed here alone
    except ImportError as error:
        raise ValueError(_MISSING) from error
    return captum.attr


def captum_is_installed() -> bool:
    """Whether it is there: it is an extra.

    >>> captum_is_installed() in (True, False)
    True
    """
    try:
        _captum()
    except ValueError:
        return False
    return True


def integrate(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Attributions of ``function(x) - function(0)``, a scalar, to the entries of x, in its shape.

    Raises:
        ValueError: where Captum is not installed.
    """

    def batched(points: Tensor) -> Tensor:  # (batch, *x.shape) -> (batch,)
        return torch.stack([function(point) for point in points])

    method = _captum().IntegratedGradients(batched)
    split: Tensor = method.attribute(
        x.detach()[None], n_steps=STEPS, method="gausslegendre", internal_batch_size=1
    )
    return split[0].detach()


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
    """

    exact = False
    method = "integrated gradients"

    def __init__(
        self, model: Model, x: SparseMatrix | DenseMatrix, operator: GraphOperator
    ) -> None:
        self._model = model.requires_grad_(False)
        self._features = to_csr(x)
        self._operator = operator
        self.hops = reach_of(model)
        with torch.no_grad():
            self.scores = model.scores(x, operator)

    def explain(self, nodes: np.ndarray, q: Tensor, *, features: bool) -> Part:
        """The parts of ``(q * scores[nodes]).sum(1)``, each node with its own integral."""
        split = np.zeros((len(nodes), self._features.shape[1]))
        parts = np.zeros((len(nodes), len(self.scores)))
        constant = np.zeros(len(nodes))
        for k, node in enumerate(nodes):
            near, operator = self._neighbourhood(int(node))
            weights = torch.zeros(len(near), self.scores.shape[1], dtype=torch.float64)
            weights[int(np.flatnonzero(near == node)[0])] = q[k]
            each, constant[k] = self._integrate(near, operator, weights)
            parts[k, near], split[k] = each.sum(1), each.sum(0)
        return Part(parts, constant, np.zeros(len(nodes)), features=split if features else None)

    def overall(self, q: Tensor, *, features: bool) -> Overall:
        """The parts of ``(q * scores).sum()``: one integral for all nodes."""
        each, _ = self._integrate(np.arange(len(self.scores)), self._operator, q)
        return Overall(each.sum(1), each.sum(0) if features else None)

    def _integrate(
        self, near: np.ndarray, operator: GraphOperator, q: Tensor
    ) -> tuple[np.ndarray, float]:
        """Attributions (near, features), and the value without features."""
        x = torch.from_numpy(self._features[near].toarray())

        def value(point: Tensor) -> Tensor:
            return (q * self._model.scores(point, operator)).sum()

        with torch.enable_grad():
            each = as_array(integrate(value, x))
        with torch.no_grad():
            return each, float(value(torch.zeros_like(x)))

    def _neighbourhood(self, node: int) -> tuple[np.ndarray, GraphOperator]:
        """Nodes within reach, sorted, and the operator between them, normalised as in the graph.

        What a node has after k products depends on entries of P at most k hops away.
        """
        P, nodes = self._operator.matrix.to_scipy(), len(self.scores)
        if self.hops is None:
            return np.arange(nodes), self._operator
        copies = nodes * np.arange(self._operator.copies)[:, None]  # (copies, 1): of node 0
        near = np.array([node])
        for _ in range(self.hops):
            wider = np.union1d(near, P[(copies + near).ravel()].indices % nodes)
            if len(wider) == len(near):
                break
            near = wider
        rows = (copies + near).ravel()
        part = SparseMatrix.from_scipy(P[rows][:, rows], symmetric=True, dtype=torch.float64)
        return near, GraphOperator(part, direction=self._operator.direction)
