"""Graphs that need no download: a random model with a homophily dial, and bundled digits.

Each is a function of its options and its seed alone.
"""

import math

import numpy as np
import torch

from longnn.data._convert import from_data
from longnn.data._dataset import NodeDataset
from longnn.data._errors import DataError
from longnn.data._tensors import GraphTensors

#: Features of all nodes, or ends of edges, of a graph that is made here: a gigabyte of each.
MOST = 10**8


def csbm(
    *,
    phi: float = 0.5,
    num_nodes: int = 800,
    num_features: int = 320,
    degree: float = 5.0,
    eps: float = 3.25,
    seed: int = 0,
) -> NodeDataset:
    r"""Contextual stochastic block model with the homophily dial of GPRGNN.

    Two classes :math:`v_i = \pm 1` of equal size (Deshpande et al. 2018; Chien et al. 2021,
    `"Adaptive Universal Generalized PageRank GNN" <https://arxiv.org/abs/2006.07988>`_,
    section 5.1). With :math:`\xi = n / f`:

    .. math::
        P(i \sim j) = \frac{d + \lambda \sqrt d\, v_i v_j}{n}, \qquad
        x_i = \sqrt{\mu / n}\; v_i u + Z_i / \sqrt f, \qquad
        u \sim N(0, I / f),\; Z_i \sim N(0, I)

        \lambda = \sqrt{1 + \epsilon}\, \sin(\pi \phi / 2), \qquad
        \mu = \sqrt{\xi (1 + \epsilon)}\, \cos(\pi \phi / 2)

    so that :math:`\lambda^2 + \mu^2 / \xi = 1 + \epsilon`: the information is always the
    same, and phi says where it is: all in the edges at 1 (homophily) and -1 (heterophily),
    all in the features at 0.

    Args:
        phi: the dial, in [-1, 1].
        num_nodes: n, at least 2 (the paper: 5000); times f, and times d, at most 10^8.
        num_features: f (the paper: 2000; the default keeps its ratio n / f).
        degree: d, the mean degree.
        eps: distance from the detection threshold, > -1.
        seed: seed of the generator.

    Raises:
        DataError: if an option is out of range, or makes an edge probability leave [0, 1].
    """
    if not -1 <= phi <= 1:
        raise DataError(f"Expected `phi` in [-1, 1] (got {phi}).", value=phi)
    n, f = num_nodes, num_features
    if n < 2 or f < 1:
        raise DataError(f"Expected num_nodes >= 2 and num_features >= 1 (got {n} and {f}).")
    if not 0 < degree < math.inf or not -1 < eps < math.inf:
        raise DataError(f"Expected finite degree > 0 and eps > -1 (got {degree} and {eps}).")
    if max(n, f) > MOST or max(n * f, n * degree) > MOST:
        raise DataError(
            f"Expected num_nodes times num_features, and times degree, <= {MOST} (got {n} nodes "
            f"with {f} features and degree {degree:g})."
        )
    if seed < 0:
        raise DataError(f"Expected `seed` >= 0 (got {seed}).", value=seed)
    lam = math.sqrt(1 + eps) * math.sin(math.pi * phi / 2)
    mu = math.sqrt(n / f * (1 + eps)) * math.cos(math.pi * phi / 2)
    # Probabilities of an edge inside a class, and across.
    inside, across = (degree + lam * math.sqrt(degree)) / n, (degree - lam * math.sqrt(degree)) / n
    if min(inside, across) < 0 or max(inside, across) > 1:
        raise DataError(
            f"Expected edge probabilities in [0, 1] (got {inside:.3g} inside a class, "
            f"{across:.3g} across); raise `degree` (at least 1 + eps) or `num_nodes`."
        )
    rng = np.random.default_rng(seed)
    sign = rng.permutation(np.where(np.arange(n) < n // 2, -1, 1))
    rows, cols = _block_edges(rng, sign, inside, across)
    u = rng.standard_normal(f) / math.sqrt(f)
    noise = rng.standard_normal((n, f)) / math.sqrt(f)
    x = math.sqrt(mu / n) * sign[:, None] * u + noise
    data = GraphTensors(
        x=torch.from_numpy(x).float(),
        edge_index=torch.from_numpy(np.stack([np.r_[rows, cols], np.r_[cols, rows]])),
        y=torch.from_numpy((sign > 0).astype(np.int64)),
    )
    return from_data(
        data, name="csbm", classes=("minus", "plus"), default_split="published", ready=True
    )


def _block_edges(
    rng: np.random.Generator, sign: np.ndarray, inside: float, across: float
) -> tuple[np.ndarray, np.ndarray]:
    """Each pair once with its own probability: a binomial count, then distinct pairs."""
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    minus, plus = np.flatnonzero(sign < 0), np.flatnonzero(sign > 0)
    for group in (minus, plus):
        pairs = len(group) * (len(group) - 1) // 2
        chosen = rng.choice(pairs, size=rng.binomial(pairs, inside), replace=False, shuffle=False)
        # Number k of the strict lower triangle, row by row, is (i, k - i(i-1)/2).
        i = ((1 + np.sqrt(1 + 8 * chosen.astype(np.float64))) / 2).astype(np.int64)
        i -= i * (i - 1) // 2 > chosen  # where rounding overshot
        parts.append((group[i], group[chosen - i * (i - 1) // 2]))
    pairs = len(minus) * len(plus)
    chosen = rng.choice(pairs, size=rng.binomial(pairs, across), replace=False, shuffle=False)
    parts.append((minus[chosen // len(plus)], plus[chosen % len(plus)]))
    rows, cols = zip(*parts, strict=True)
    return np.concatenate(rows), np.concatenate(cols)


def digits(*, neighbours: int = 10) -> NodeDataset:
    """Scikit-learn's 1797 handwritten digits, each linked to its nearest neighbours.

    Features are the 64 pixels / 16; two digits are linked if either is among the nearest
    of the other (Euclidean).

    Args:
        neighbours: number of nearest neighbours, 1 to 1796.

    >>> digits()
    NodeDataset('digits', nodes=1797, edges=..., features=64, classes=10, labelled=1797, splits=0)
    """
    from sklearn.datasets import load_digits  # slow to load, as is the next
    from sklearn.neighbors import kneighbors_graph

    bunch = load_digits()
    x = bunch.data / 16.0
    if not 1 <= neighbours < len(x):
        raise DataError(f"Expected `neighbours` in 1..{len(x) - 1} (got {neighbours}).")
    graph = kneighbors_graph(x, neighbours, include_self=False)
    graph = graph.maximum(graph.T).tocoo()  # either way is both ways
    data = GraphTensors(
        x=torch.from_numpy(x).float(),
        edge_index=torch.from_numpy(np.stack([graph.row, graph.col]).astype(np.int64)),
        y=torch.from_numpy(bunch.target.astype(np.int64)),
    )
    names = tuple(str(name) for name in bunch.target_names)
    return from_data(
        data,
        name="digits",
        classes=names,
        feature_names=tuple(bunch.feature_names),
        default_split="published",
        ready=True,
    )
