r"""Products with the operator of a stored graph, for whoever multiplies with an operator in memory.

.. math:: P = D^{-1/2} (A + S)\, D^{-1/2}

For few columns, such as random signs: memory is a few vectors, whatever the number of edges.
"""

from typing import Any

import torch
from torch import Tensor

from longnn.graphs._adjacency import SelfLoops
from longnn.store._adjacency import Adjacency
from longnn.store._graph import GraphStore

#: Rows that are read at once, at most.
ROWS = 1 << 20


class StoredOperator:
    """The operator of a graph on disk, in float64 on the CPU.

    Args:
        graph: whose neighbours are read anew for each product.
        self_loops: ``"keep"``, ``"add"`` or ``"remove"``.
        rows: to read at once, at most.
    """

    device = torch.device("cpu")

    def __init__(
        self, graph: GraphStore, self_loops: SelfLoops = "keep", *, rows: int = ROWS
    ) -> None:
        self.adjacency = Adjacency(graph, self_loops, resident=False)
        self.stretches = self.adjacency.stretches(rows)
        self.root = self.adjacency.degree.double().sqrt()[:, None]  # (nodes, 1)

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.adjacency.nodes

    @property
    def shape(self) -> tuple[int, int]:
        """(nodes, nodes)."""
        return self.num_nodes, self.num_nodes

    @property
    def matrix(self) -> "StoredOperator":
        """Itself: what an estimator of the spectrum multiplies with."""
        return self

    def to(self, target: Any) -> "StoredOperator":
        """Itself: it has one type and one device."""
        return self

    def __matmul__(self, signal: Tensor) -> Tensor:  # (nodes, columns)
        scaled = signal.double() / self.root
        out = torch.empty_like(scaled)
        for span in self.stretches:
            some = self.adjacency.read(*span)
            out[some.first : some.last] = self.adjacency.product(some, scaled)
            self.adjacency.done(some)
        return out / self.root
