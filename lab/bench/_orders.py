r"""Would another order of the nodes make products faster?

A product reads the rows of a node's neighbours. Where neighbours have numbers near each other,
their rows are in the cache. An order costs time to find and to renumber the graph by.
"""

import time
from collections.abc import Callable

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.csgraph import breadth_first_order, reverse_cuthill_mckee
from torch import Tensor
from torch.nn.functional import embedding_bag

from lab.bench._scalegraph import Size
from lab.bench._scalerecord import Order
from lab.bench._timing import Budget, Call, median_time
from lab.blockmodel import BlockModel

CPU = torch.device("cpu")


def graphs_of(size: Size, *, seed: int = 0) -> dict[str, Callable[[], scipy.sparse.csr_matrix]]:
    """Two kinds of graphs whose nodes are numbered at random: with hubs, and with near and far."""
    return {
        "communities and hubs": lambda: _blocks(size, seed),
        "a ring of near neighbours": lambda: _ring(size, seed),
    }


def _blocks(size: Size, seed: int) -> scipy.sparse.csr_matrix:
    model = BlockModel(nodes=size.nodes, edges=size.edges, seed=seed)
    ends = np.concatenate([model.edges_of(i) for i in range(model.edge_chunks)], axis=1)
    return _undirected(ends[0], ends[1], size.nodes)


def _ring(size: Size, seed: int) -> scipy.sparse.csr_matrix:
    """Each edge joins two places of a ring that are at most 50 apart."""
    rng = np.random.default_rng(seed)
    name = rng.permutation(size.nodes)
    a = rng.integers(size.nodes, size=size.edges)
    b = (a + rng.integers(1, 51, size=size.edges)) % size.nodes
    return _undirected(name[a], name[b], size.nodes)


def _undirected(a: np.ndarray, b: np.ndarray, nodes: int) -> scipy.sparse.csr_matrix:
    row, col = (np.concatenate(ends).astype(np.int32) for ends in ((a, b), (b, a)))
    values = np.ones(len(row), dtype=np.int8)
    return scipy.sparse.csr_matrix((values, (row, col)), (nodes, nodes))


def breadth_first(matrix: scipy.sparse.csr_matrix) -> np.ndarray:
    """Nodes as a breadth-first search meets them, from the largest; then those it does not meet."""
    start = int(np.argmax(np.diff(matrix.indptr)))
    found = breadth_first_order(matrix, start, directed=False, return_predecessors=False)
    rest = np.ones(matrix.shape[0], dtype=bool)
    rest[found] = False
    return np.concatenate([found, np.flatnonzero(rest)])


#: Orders by name: the new place i has the node ``order[i]``.
ORDERS: dict[str, Callable[[scipy.sparse.csr_matrix], np.ndarray]] = {
    "as it is": lambda matrix: np.arange(matrix.shape[0]),
    "random": lambda matrix: np.random.default_rng(1).permutation(matrix.shape[0]),
    "by degree": lambda matrix: np.argsort(-np.diff(matrix.indptr), kind="stable"),
    "breadth first": breadth_first,
    "reverse Cuthill-McKee": lambda matrix: np.asarray(
        reverse_cuthill_mckee(matrix, symmetric_mode=True)
    ),
}


def measure_orders(
    matrix: scipy.sparse.csr_matrix, columns: int, budget: Budget
) -> dict[str, Order]:
    """Seconds to find each order and renumber the graph, and of one product in it."""
    x, found = torch.randn(matrix.shape[0], columns), {}
    for name, find in ORDERS.items():
        started = time.perf_counter()
        order = find(matrix)
        moved = matrix if name == "as it is" else matrix[order][:, order].sorted_indices()
        cost = time.perf_counter() - started
        found[name] = Order(find_s=cost, product_s=median_time(product(moved, x), CPU, budget))
    return found


def product(matrix: scipy.sparse.csr_matrix, x: Tensor) -> Call:
    """The sums of the neighbours' rows, as propagation takes them."""
    indices, offsets = (
        torch.from_numpy(part.astype(np.int32)) for part in (matrix.indices, matrix.indptr)
    )
    return lambda: embedding_bag(indices, x, offsets, mode="sum", include_last_offset=True)
