r"""The signal that a filter acts on, S(X), and how the features of a node make up its row.

Features enter by integrated gradients from a node without features, x = 0 (after scaling: an
average node where features are standardised):

.. math:: S(x)_c - S(0)_c = \sum_f x_f \int_0^1 \partial_f S_c(\tau x)\,d\tau.

For a linear map the integral is a weight. Through one layer of ReLU it is known, too: with
:math:`u = x W`, unit h is active on a share
:math:`\varphi_h = (\mathrm{ReLU}(u_h + b_h) - \mathrm{ReLU}(b_h)) / u_h` of the way. Both are
exact. Deeper or normalised transforms are integrated numerically, by Captum.
"""

import functools

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from longnn.explain._captum import integrate
from longnn.explain._part import as_array
from longnn.matrices import DenseMatrix, LiftedMatrix, SparseMatrix
from longnn.nn import MLP, SpectralGNN

#: Features, dense or sparse, or on two copies of every node.
Entries = SparseMatrix | DenseMatrix | LiftedMatrix
#: Numbers held at a time while entries are weighed.
CHUNK = 2**22
#: Channels whose split is kept.
KEPT = 16


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
        self._splits: dict[int, scipy.sparse.csr_matrix] = {}
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

    def by_feature(self, channel: int) -> scipy.sparse.csr_matrix:
        """The split of S(x_v)_c - S(0)_c of every node v, (nodes, features); an exact one."""
        if channel not in self._splits:
            if len(self._splits) >= KEPT:
                self._splits.clear()
            self._splits[channel] = self._split(channel)
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
        """The split of ``(M * (S(X) - S(0))).sum()``, (features,), by Captum; M like S."""
        rows = M.abs().sum(1).nonzero()[:, 0]
        if len(rows) == 0:
            return np.zeros(self.features.shape[1])
        x, M = torch.from_numpy(self.features[rows.numpy()].toarray()), M[rows]
        with torch.enable_grad():
            return as_array(integrate(lambda point: (M * self._apply(point)).sum(), x).sum(0))


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
