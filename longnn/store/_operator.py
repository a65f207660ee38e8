r"""Products with the operator of a stored graph, a stretch of its rows at a time.

.. math:: P = D^{-1/2} (A + S)\, D^{-1/2}

with S on the diagonal for self loops that are added (+1) or removed (-1). For few columns, such as
a vector of ones or of random signs: memory is a few vectors, whatever the number of edges.
"""

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from longnn.graphs import SelfLoops, check_self_loops
from longnn.store._graph import GraphStore

#: Stored entries that are read at once.
ENTRIES = 1 << 22


class StoredOperator:
    """The operator of a graph on disk.

    Args:
        graph: whose neighbours are read anew for each product.
        self_loops: ``"keep"``, ``"add"`` or ``"remove"``.
        entries: stored entries to read at once.
    """

    device = torch.device("cpu")

    def __init__(
        self, graph: GraphStore, self_loops: SelfLoops = "keep", *, entries: int = ENTRIES
    ) -> None:
        self.graph, self.self_loops = graph, check_self_loops(self_loops)
        self.stretches = _stretches(graph.offsets, entries)
        self.diagonal = self._changes()  # (nodes,) float64: S
        degree = np.diff(graph.offsets) + self.diagonal
        self.root = np.sqrt(np.where(degree > 0, degree, 1.0))

    def _changes(self) -> np.ndarray:
        changes = np.zeros(self.graph.num_nodes)
        if self.self_loops == "keep":
            return changes
        for start, stop in self.stretches:
            matrix = self._adjacency(start, stop)
            changes[start:stop] = matrix.diagonal(start)
        return 1 - changes if self.self_loops == "add" else -changes

    def _adjacency(self, start: int, stop: int) -> Any:
        """Rows of A as a SciPy matrix (rows, nodes)."""
        offsets = self.graph.offsets[start : stop + 1]
        columns = np.array(self.graph.neighbours[offsets[0] : offsets[-1]])
        shape = (stop - start, self.graph.num_nodes)
        values = np.ones(len(columns))
        return scipy.sparse.csr_matrix((values, columns, offsets - offsets[0]), shape)

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.graph.num_nodes

    @property
    def shape(self) -> tuple[int, int]:
        """(nodes, nodes)."""
        return self.num_nodes, self.num_nodes

    @property
    def matrix(self) -> "StoredOperator":
        """Itself: what an estimator of the spectrum multiplies with."""
        return self

    def to(self, target: Any) -> "StoredOperator":
        """Itself: products are in float64, on the CPU."""
        return self

    def product(self, signal: np.ndarray) -> np.ndarray:  # (nodes,) or (nodes, columns)
        """P times a signal, in float64."""
        root = self.root if signal.ndim == 1 else self.root[:, None]
        diagonal = self.diagonal if signal.ndim == 1 else self.diagonal[:, None]
        scaled = signal / root
        out = diagonal * scaled
        for start, stop in self.stretches:
            out[start:stop] += self._adjacency(start, stop) @ scaled
        return out / root

    def __matmul__(self, signal: Tensor) -> Tensor:
        return torch.from_numpy(self.product(signal.double().numpy()))


def _stretches(offsets: np.ndarray, entries: int) -> list[tuple[int, int]]:
    """Stretches of rows with about so many entries each; one row at least."""
    nodes, found, start = len(offsets) - 1, [], 0
    while start < nodes:
        stop = int(np.searchsorted(offsets, offsets[start] + entries, side="right")) - 1
        stop = min(max(stop, start + 1), nodes)
        found.append((start, stop))
        start = stop
    return found
