"""Distances in hops: rings around a node."""

import numpy as np
import scipy.sparse

from longnn.graphs import GraphOperator

#: Of a node that cannot be reached.
FAR = -1


def neighbours(operator: GraphOperator) -> scipy.sparse.csr_matrix:
    """Who is one hop from whom, (nodes, nodes); on arcs a hop goes along an arc or against it.

    >>> import torch
    >>> from longnn.graphs import directed_operator
    >>> neighbours(directed_operator(torch.tensor([[0], [1]]))).toarray().tolist()
    [[False, True], [True, False]]
    """
    matrix, nodes = operator.matrix.to_scipy(), operator.num_nodes
    if operator.copies == 1:
        return matrix
    entries = matrix.tocoo()
    pairs = (entries.row % nodes, entries.col % nodes)
    one = np.ones(len(pairs[0]), dtype=bool)
    return scipy.sparse.csr_matrix((one, pairs), shape=(nodes, nodes))


def distances(
    adjacency: scipy.sparse.csr_matrix, nodes: np.ndarray, limit: int | None = None
) -> np.ndarray:
    """Hops from each of some nodes to every node, int64 (len(nodes), nodes); -1 where none lead.

    Args:
        adjacency: its nonzero entries are the edges.
        nodes: where to start, (starts,).
        limit: the most hops; nodes farther away count as not reached.

    >>> path = scipy.sparse.csr_matrix(np.eye(4, k=1) + np.eye(4, k=-1))
    >>> distances(path, np.array([0, 2]), limit=2).tolist()
    [[0, 1, 2, -1], [2, 1, 0, 1]]
    """
    edges = scipy.sparse.csr_matrix(
        (np.ones(adjacency.nnz, np.float32), adjacency.indices, adjacency.indptr), adjacency.shape
    )
    found = np.full((edges.shape[0], len(nodes)), FAR, dtype=np.int64)
    found[nodes, np.arange(len(nodes))] = 0
    front, hops = (found == 0).astype(np.float32), 0
    while front.any() and (limit is None or hops < limit):
        hops += 1
        front = ((edges @ front > 0) & (found == FAR)).astype(np.float32)
        found[front > 0] = hops
    return found.T
