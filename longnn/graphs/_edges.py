r"""A graph as plain arrays: the operator of programs that are recorded for any graph.

:class:`EdgeOperator` is the same matrix :math:`P = D^{-1/2} A D^{-1/2}` as
:class:`~longnn.graphs.GraphOperator`, made and multiplied by torch's own operations alone, whatever
the number of nodes and edges. So a model on it can be recorded by ``torch.export`` as a function of
the graph, and the program runs where longnn is not installed. It checks nothing and takes memory
for edges x channels: for all else use :class:`~longnn.graphs.GraphOperator`.
"""

import dataclasses
from typing import ClassVar, Self

import torch
from torch import Tensor

from longnn.graphs._adjacency import SelfLoops, check_self_loops


@dataclasses.dataclass(frozen=True, eq=False)
class EdgeOperator:
    """A normalised adjacency matrix as a list of entries; ``operator @ signal`` multiplies by it.

    >>> pair = EdgeOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]), torch.ones(2), 2)
    >>> pair @ torch.tensor([[1.0], [5.0]])
    tensor([[5.], [1.]])
    """

    row: Tensor  # (entries,) int64
    col: Tensor  # (entries,) int64
    values: Tensor  # (entries,)

    by_rows: ClassVar[bool] = False  # as GraphOperator has it

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Where the values are."""
        return self.values.device

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,  # (2, arcs) int64
        edge_weight: Tensor,  # (arcs,)
        num_nodes: int,
        *,
        self_loops: SelfLoops = "keep",
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """From an undirected graph, both directions of an edge listed; options as in
        :meth:`GraphOperator.from_edge_index`. The weights of an arc listed twice are added."""
        row, col, weight = _with_loops(edge_index, edge_weight.double(), num_nodes, self_loops)
        degree = weight.new_zeros(num_nodes).index_add(0, row, weight)
        root = torch.where(degree > 0, degree, 1.0).sqrt()
        return cls(row, col, (weight / (root[row] * root[col])).to(dtype))

    @classmethod
    def from_arcs(
        cls,
        edge_index: Tensor,  # (2, arcs) int64
        edge_weight: Tensor,  # (arcs,)
        num_nodes: int,
        *,
        self_loops: SelfLoops = "keep",
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """From a directed graph, each arc listed once: the entries of
        :func:`~longnn.graphs.directed_operator`."""
        row, col, weight = _with_loops(edge_index, edge_weight.double(), num_nodes, self_loops)
        out = weight.new_zeros(num_nodes).index_add(0, row, weight)
        into = weight.new_zeros(num_nodes).index_add(0, col, weight)
        left, right = (torch.where(d > 0, d, 1.0).sqrt() for d in (out, into))
        values = (weight / (left[row] * right[col])).to(dtype)
        target = col + num_nodes  # the second copy
        return cls(torch.cat([row, target]), torch.cat([target, row]), torch.cat([values, values]))

    def __matmul__(self, signal: Tensor) -> Tensor:  # (nodes, channels) -> (nodes, channels)
        terms = self.values[:, None] * signal[self.col]
        return torch.zeros_like(signal).index_add(0, self.row, terms)

    def apply_filter(self, signal: Tensor, coefficients: Tensor) -> Tensor:
        r"""As :func:`~longnn.graphs.apply_filter`: :math:`\sum_j T_j(P)\,H\circ\beta_j`."""
        previous, current = signal, signal
        out = signal * coefficients[0]
        for j in range(1, len(coefficients)):
            # T_1 = P, and T_j = 2 P T_{j-1} - T_{j-2} from there on.
            ahead = self @ current
            ahead = ahead if j == 1 else 2 * ahead - previous
            previous, current = current, ahead
            out = out + current * coefficients[j]
        return out


def _with_loops(
    edge_index: Tensor, weight: Tensor, num_nodes: int, self_loops: SelfLoops
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, columns and weights with self loops kept, added or of weight 0."""
    row, col = edge_index[0], edge_index[1]
    if check_self_loops(self_loops) == "remove":
        weight = torch.where(row == col, 0.0, weight)
    elif self_loops == "add":
        on_diagonal = torch.where(row == col, weight, 0.0)
        loops = weight.new_zeros(num_nodes).index_add(0, row, on_diagonal)  # (nodes,) of each node
        every = torch.arange(num_nodes, device=row.device)
        row, col = torch.cat([row, every]), torch.cat([col, every])
        weight = torch.cat([weight, torch.where(loops > 0, 0.0, 1.0).to(weight.dtype)])
    return row, col, weight
