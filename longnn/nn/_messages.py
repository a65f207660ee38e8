r"""What a node hears from its neighbours, channel by channel: message passing without weights.

A message takes an operator and a signal (nodes, channels) and gives a signal of the same shape, as
:class:`~longnn.PolynomialFilter` does. The linear maps, norms and residuals around it belong to the
block (:mod:`longnn.nn`), the same for all messages, so that the messages can be compared.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longnn.graphs import GraphOperator, Operator
from longnn.graphs._edges import EdgeOperator
from longnn.matrices import SparseMatrix
from longnn.nn._draw import xavier_uniform_
from longnn.nn._transform import Linear

#: The slope of the leaky ReLU of attention for negative numbers, as its authors have it.
SLOPE = 0.2


class Hop(nn.Module):
    r""":math:`P\,H`, GCN's message: with self loops in P that of Kipf and Welling.

    >>> pair = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]), self_loops="add")
    >>> Hop()(pair, torch.tensor([[1.0], [3.0]])).tolist()
    [[2.0], [2.0]]
    """

    def forward(self, operator: Operator, signal: Tensor) -> Tensor:
        return operator @ signal


class Mean(nn.Module):
    r"""The mean over the neighbours, GraphSAGE's message; 0 for a node without any.

    .. math:: M(H)_i = \frac{1}{|N(i)|} \sum_{j \in N(i)} H_j

    It asks which nodes are neighbours; weights of edges play no role.
    """

    def forward(self, operator: Operator, signal: Tensor) -> Tensor:
        if isinstance(operator, EdgeOperator):
            present = (operator.values != 0).to(signal.dtype)
            sums = EdgeOperator(operator.row, operator.col, present) @ signal
            count = torch.zeros_like(signal[:, 0]).index_add(0, operator.row, present)
        else:
            matrix = _matrix(operator)
            ones = torch.ones_like(matrix.values)
            crow, col = matrix.crow, matrix.col
            sums = SparseMatrix(crow, col, ones, crow, col, None, ones) @ signal
            count = (crow[1:] - crow[:-1]).to(signal.dtype)
        return sums / count.clamp_min(1)[:, None]


class Attention(nn.Module):
    r"""A mean over the neighbours with learned weights, GAT's message.

    .. math:: M(H)_i = \sum_{j \in N(i)} \alpha_{ij}\, \Theta^T H_j, \qquad
              \alpha_{ij} = \mathrm{softmax}_{j \in N(i)}\,
              \mathrm{LeakyReLU}(s^T \Theta^T H_j + t^T \Theta^T H_i)

    for each of several heads, which share the channels out among them.
    """

    def __init__(self, channels: int, heads: int = 1) -> None:
        super().__init__()
        if heads < 1 or channels % heads:
            raise ValueError(
                f"Expected `heads` >= 1 that divide the {channels} hidden channels (got {heads})"
            )
        self.heads = heads
        self.linear = Linear(channels, channels, bias=False)
        self.source = nn.Parameter(torch.empty(heads, channels // heads))
        self.target = nn.Parameter(torch.empty(heads, channels // heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for weight in (self.linear.weight, self.source, self.target):
            xavier_uniform_(weight)

    def forward(self, operator: Operator, signal: Tensor) -> Tensor:
        row, col, present = _entries(operator)
        x = self.linear(signal).unflatten(-1, (self.heads, -1))  # (nodes, heads, channels of one)
        by_source, by_target = (x * self.source).sum(-1), (x * self.target).sum(-1)
        e = F.leaky_relu(by_source[col] + by_target[row], SLOPE)  # (entries, heads)
        e = torch.where(present[:, None], e, -torch.inf)
        # Less the largest of each node, which changes no weight and keeps exp in range.
        where = row[:, None].expand_as(e)
        least = torch.full_like(by_source, -torch.inf).detach()
        top = least.scatter_reduce(0, where, e.detach(), "amax")
        top = torch.where(torch.isfinite(top), top, 0.0)  # a node without neighbours
        weight = torch.exp(e - top[row])
        total = torch.zeros_like(by_source).index_add(0, row, weight)
        terms = weight[..., None] * x[col]  # (entries, heads, channels of one)
        sums = torch.zeros_like(x).index_add(0, row, terms)
        return (sums / total.clamp_min(torch.finfo(x.dtype).tiny)[..., None]).flatten(-2)


def _entries(operator: Operator) -> tuple[Tensor, Tensor, Tensor]:
    """Rows and columns of the stored entries, int64, and which of them are edges."""
    if isinstance(operator, EdgeOperator):
        return operator.row, operator.col, operator.values != 0
    matrix = _matrix(operator)
    counts = (matrix.crow[1:] - matrix.crow[:-1]).long()
    nodes = torch.arange(len(counts), device=counts.device)
    row = torch.repeat_interleave(nodes, counts, output_size=matrix.nnz)
    return row, matrix.col.long(), matrix.values != 0


def _matrix(operator: object) -> SparseMatrix:
    """The matrix of a graph whose edges are its entries."""
    if not isinstance(operator, GraphOperator):
        raise TypeError(
            "Expected an undirected graph for means and attention over neighbours (got "
            f"{type(operator).__name__}); use filters or gcn blocks"
        )
    return operator.matrix
