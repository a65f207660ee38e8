r"""Where the nodes of a graph are drawn: neighbours near, all others apart.

Positions y minimise, by sampled gradients, the cross entropy that UMAP uses with a = b = 1: an
edge attracts by :math:`-d/(1+|d|^2)`, and every other pair repels by
:math:`d/((\epsilon+|d|^2)(1+|d|^2))`. A few random nodes stand for all the others, so that a step
costs as much as a sparse product. The page gets the positions: it draws at once, and a graph looks
the same each time it is opened.
"""

import numpy as np
import scipy.sparse
import scipy.spatial

STEPS, PARTNERS = 300, 8
#: Nearest distance that repulsion tells apart, the longest move of a step, the pull to the middle.
NEAR, LONGEST, GRAVITY = 0.05, 2.0, 0.002
#: How many nodes count as nearest, after how many steps they are found anew, how they repel.
NEIGHBOURS, RENEW, ROOM = 9, 4, 0.1
#: Share of the nodes that keep their distance from the middle.
INSIDE = 0.97
#: Products of the smoothing that the layout starts from.
SMOOTHING = 40


def place_nodes(graph: scipy.sparse.csr_matrix, *, seed: int = 0) -> np.ndarray:
    """Positions of the nodes in the square [-1, 1] x [-1, 1], shape (nodes, 2).

    Args:
        graph: symmetric, (nodes, nodes); only which entries there are counts.
        seed: of the start and of the sampled pairs.

    >>> path = scipy.sparse.diags_array([np.ones(9), np.ones(9)], offsets=[-1, 1]).tocsr()
    >>> y = place_nodes(path)
    >>> y.shape, bool(np.abs(y).max() <= 1)
    ((10, 2), True)
    >>> far, near = np.linalg.norm(y[0] - y[9]), np.linalg.norm(y[0] - y[1])
    >>> bool(far > 3 * near)
    True
    """
    nodes = graph.shape[0]
    if nodes <= 2:
        return np.linspace([-0.5, 0.0], [0.5, 0.0], 2)[:nodes]
    rng = np.random.default_rng(seed)
    y = _smooth_start(graph, rng) * np.sqrt(nodes)  # (nodes, 2)
    row = np.repeat(np.arange(nodes), np.diff(graph.indptr))
    col = graph.indices
    for step in range(STEPS):
        if step % RENEW == 0:
            near = scipy.spatial.KDTree(y).query(y, k=min(NEIGHBOURS, nodes))[1]
        move = _attraction(y, row, col) + _repulsion(y, rng) + _elbows(y, near) - GRAVITY * y
        length = np.linalg.norm(move, axis=1, keepdims=True)
        move *= np.minimum(1, LONGEST / np.maximum(length, 1e-12))
        y = y + (1 - step / STEPS) * move
    return _into_square(y)


def _smooth_start(graph: scipy.sparse.csr_matrix, rng: np.random.Generator) -> np.ndarray:
    """Two random signals smoothed over the graph, orthogonal to the constant: (nodes, 2)."""
    nodes = graph.shape[0]
    arrays = (np.ones(graph.nnz), graph.indices, graph.indptr)
    pattern = scipy.sparse.csr_matrix(arrays, shape=graph.shape)
    degree = np.maximum(np.diff(graph.indptr), 1)
    y = rng.standard_normal((nodes, 2))
    for _ in range(SMOOTHING):
        y = (y + (pattern @ y) / degree[:, None]) / 2
        y -= np.average(y, axis=0, weights=degree)
        y = np.linalg.qr(y)[0]
    return np.asarray(y + 0.01 * rng.standard_normal(y.shape) / np.sqrt(nodes))


def _attraction(y: np.ndarray, row: np.ndarray, col: np.ndarray) -> np.ndarray:
    d = y[row] - y[col]  # (arcs, 2)
    pull = -d / (1 + (d * d).sum(1, keepdims=True))
    return np.stack([np.bincount(row, pull[:, k], len(y)) for k in (0, 1)], 1)


def _repulsion(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    other = rng.integers(len(y), size=(len(y), PARTNERS))
    d = y[:, None] - y[other]  # (nodes, partners, 2)
    square = (d * d).sum(2, keepdims=True)
    return np.asarray((d / ((NEAR + square) * (1 + square))).sum(1)) * len(y) / PARTNERS / 8


def _elbows(y: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Room for the nearest nodes, which random partners seldom are."""
    d = y[:, None] - y[near]  # (nodes, neighbours, 2)
    square = (d * d).sum(2, keepdims=True)
    return np.asarray((ROOM * d / ((NEAR + square) * (1 + square) ** 2)).sum(1))


def _into_square(y: np.ndarray) -> np.ndarray:
    """Scaled to the square; a few nodes far out are drawn nearer, so that the rest has room."""
    middle = np.median(y, axis=0)
    away = np.linalg.norm(y - middle, axis=1, keepdims=True)
    most = max(float(np.quantile(away, INSIDE)), 1e-9)
    nearer = np.where(away > most, most * (1 + np.log(np.maximum(away / most, 1)) / 4), away)
    y = middle + (y - middle) * nearer / np.maximum(away, 1e-12)
    low, high = y.min(0), y.max(0)
    half = max(float((high - low).max()) / 2, 1e-9)
    return np.asarray((y - (low + high) / 2) / half)
