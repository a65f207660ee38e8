"""Which nodes of a large graph a page shows: those around a selected one."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import breadth_first_order

from longnn.data import DataError


def find_node(ids: Sequence[str] | Sequence[int], wanted: str) -> int:
    """The place of a node's id.

    Raises:
        DataError: where no node has it.

    >>> find_node(["ann", "bob"], "bob"), find_node(range(5), "3")
    (1, 3)
    """
    for place, found in enumerate(ids):
        if str(found) == wanted:
            return place
    raise DataError(
        f"Expected --node to be the id of a node, such as {ids[0]} (got {wanted}, which no node "
        "has)"
    )


def nodes_around(graph: scipy.sparse.csr_matrix, centre: int | None, limit: int) -> np.ndarray:
    """At most ``limit`` nodes, in increasing order: all, or the nearest to the centre.

    Nearest by the number of edges between; where a part of the graph has no more nodes, the first
    ones of the other parts follow. Without a centre it is a node of middle degree.

    >>> path = scipy.sparse.diags_array([np.ones(5), np.ones(5)], offsets=[-1, 1]).tocsr()
    >>> nodes_around(path, 4, 3).tolist(), nodes_around(path, None, 9).tolist()
    ([3, 4, 5], [0, 1, 2, 3, 4, 5])
    """
    nodes = graph.shape[0]
    if nodes <= limit:
        return np.arange(nodes)
    if centre is None:
        degree = np.diff(graph.indptr)
        linked = np.flatnonzero(degree) if degree.any() else np.arange(nodes)
        centre = int(linked[np.argsort(degree[linked], kind="stable")[len(linked) // 2]])
    near = breadth_first_order(graph, centre, directed=False, return_predecessors=False)
    if len(near) < limit:
        near = np.concatenate([near, np.setdiff1d(np.arange(nodes), near)])
    return np.sort(near[:limit])
