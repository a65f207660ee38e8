r"""Any other model, taken apart by integrated gradients over the features within reach.

Contributions are those of the features of a node, from a graph without features:
:math:`F(X) = F(0) + \sum_v \sum_f \mathrm{IG}_{vf}`, and F(0) is the constant.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn.explain._captum import integrate
from longnn.explain._part import Overall, Part, as_array
from longnn.explain._signal import to_csr
from longnn.filters import PolynomialFilter
from longnn.graphs import GraphOperator
from longnn.matrices import DenseMatrix, SparseMatrix
from longnn.nn import ARMA, GCN, ChebNet, Directed, Model, SpectralGNN


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
        known = [f.degree for f in filters if isinstance(f, PolynomialFilter)]
        return sum(known) if len(known) == len(filters) else None
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
            found, constant[k] = self._integrate(near, operator, weights)
            parts[k, near], split[k] = found.sum(1), found.sum(0)
        return Part(parts, constant, np.zeros(len(nodes)), features=split if features else None)

    def overall(self, q: Tensor, *, features: bool) -> Overall:
        """The parts of ``(q * scores).sum()``: one integral for all nodes."""
        found, _ = self._integrate(np.arange(len(self.scores)), self._operator, q)
        return Overall(found.sum(1), found.sum(0) if features else None)

    def _integrate(
        self, near: np.ndarray, operator: GraphOperator, q: Tensor
    ) -> tuple[np.ndarray, float]:
        """Attributions (near, features), and the value without features."""
        x = torch.from_numpy(self._features[near].toarray())

        def value(point: Tensor) -> Tensor:
            return (q * self._model.scores(point, operator)).sum()

        with torch.enable_grad():
            found = as_array(integrate(value, x))
        with torch.no_grad():
            return found, float(value(torch.zeros_like(x)))

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
