r"""The formulas of the paper written out plainly, with PyG message passing.

Fast code is checked against this module and timed against it. Every term of every basis is
propagated edge by edge, features are dense, and autograd stores every intermediate result. Do not
use it for real work.
"""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import degree as node_degree


class Hop(MessagePassing):
    r"""One multiplication by :math:`P = D^{-1/2} A D^{-1/2}`, as message passing."""

    def __init__(self) -> None:
        super().__init__(aggr="add")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        row, col = edge_index
        deg = node_degree(col, x.shape[0], dtype=x.dtype)
        inverse_root = torch.where(deg > 0, deg, torch.ones_like(deg)).rsqrt()
        weight = inverse_root[row] * inverse_root[col]
        return self.propagate(edge_index, x=x, weight=weight)

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        return weight[:, None] * x_j


def jacobi_norm(i: int, a: Tensor, b: Tensor) -> Tensor:
    r"""The norm of the i-th classical Jacobi polynomial, from Gamma functions."""
    if i == 0:
        log = torch.lgamma(a + 1) + torch.lgamma(b + 1) - torch.lgamma(a + b + 2)
    else:
        log = torch.lgamma(i + a + 1) + torch.lgamma(i + b + 1) - torch.log(2 * i + a + b + 1)
        log = log - torch.lgamma(i + a + b + 1) - math.lgamma(i + 1)
    return torch.exp(0.5 * (log + (a + b + 1) * math.log(2)))


def jacobi_terms(
    x: Tensor, edge_index: Tensor, degree: int, a: Tensor, b: Tensor, *, orthonormal: bool = True
) -> Iterator[Tensor]:
    r"""Yield :math:`P_i^{(a,b)}(P)\,x` for i = 0..K by the paper's recurrence equation."""
    hop = Hop()
    scale = lambda i: 1 / jacobi_norm(i, a, b) if orthonormal else 1.0  # noqa: E731
    before, now = torch.zeros_like(x), x
    yield now * scale(0)
    for i in range(1, degree + 1):
        if i == 1:
            then = (a - b) / 2 * now + (a + b + 2) / 2 * hop(now, edge_index)
        else:
            n = 2 * i + a + b
            common = 2 * i * (i + a + b) * (n - 2)
            then = (n - 1) * n * (n - 2) / common * hop(now, edge_index)
            then = then + (n - 1) * (a**2 - b**2) / common * now
            then = then - 2 * (i + a - 1) * (i + b - 1) * n / common * before
        before, now = now, then
        yield now * scale(i)


class TextbookLONGNN(nn.Module):
    r"""LON-GNN as the paper writes it: MLP, recurrence by message passing, division by norms.

    .. math:: \hat Y = \sum_k w_k\prod_{i<k}\gamma\tanh(\eta_i)\;
              \frac{P_k^{(a,b)}(P)}{\|P_k^{(a,b)}\|}\, t_\theta(X)

    Args:
        in_channels: features per node.
        hidden_channels: of the MLP.
        out_channels: classes, each with its own filter.
        degree: K.
        a, b: where the learnable basis starts, > -1.
        gamma: scale of the coefficients.
        dropout: on the features and on the hidden channels.

    Shapes:
        - input: x (nodes, in_channels); edge_index (2, edges), both directions of every edge
        - output: (nodes, out_channels)

    >>> edges = torch.tensor([[0, 1], [1, 0]])
    >>> TextbookLONGNN(4, 8, 3)(torch.ones(2, 4), edges).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        degree: int = 10,
        *,
        a: float = 0.0,
        b: float = 0.0,
        gamma: float = 1.0,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.degree, self.gamma, self.dropout = degree, gamma, dropout
        self.first = nn.Linear(in_channels, hidden_channels)
        self.second = nn.Linear(hidden_channels, out_channels)
        self.a = nn.Parameter(torch.tensor(float(a)))
        self.b = nn.Parameter(torch.tensor(float(b)))
        self.weight = nn.Parameter(torch.ones(degree + 1, out_channels))
        self.eta = nn.Parameter(torch.full((degree,), min(1 / gamma, 1.0)))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = F.dropout(x, self.dropout, self.training)
        h = F.dropout(torch.relu(self.first(h)), self.dropout, self.training)
        h = self.second(h)
        out = torch.zeros_like(h)
        factor = torch.ones((), dtype=h.dtype)
        for k, term in enumerate(jacobi_terms(h, edge_index, self.degree, self.a, self.b)):
            if k > 0:
                factor = factor * self.gamma * torch.tanh(self.eta[k - 1])
            out = out + self.weight[k] * factor * term
        return out
