r"""A random graph with heavy-tailed degrees, classes, and a dial for homophily.

A degree-corrected block model (Karrer and Newman 2011, `"Stochastic blockmodels and community
structure in networks" <https://arxiv.org/abs/1008.3926>`_): an edge chooses a node with probability
proportional to its weight, then the class at its other end, then a node of that class by weight.
Everything is a function of the seed and of the number of a chunk, so that chunks can be made one at
a time. Writes nothing.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from longnn.data import DataError

#: Edges, or rows of features, that are made at once: the result depends on it.
CHUNK = 2**20
# Streams of random numbers, by what they are for.
_NODES, _EDGES, _FEATURES, _MEANS, _LABELLED = range(5)


@dataclass(frozen=True, kw_only=True)
class BlockModel:
    r"""A degree-corrected block model with features.

    The r-th node of a class of n nodes has the weight :math:`(r + r_0)^{-1/(\gamma - 1)}`, so that
    degrees have a tail :math:`P(d) \propto d^{-\gamma}`. Of a uniform u, with
    :math:`q = 1 - 1/(\gamma - 1)`, such a node is
    :math:`r = (r_0^q + u ((n + r_0)^q - r_0^q))^{1/q} - r_0`, without any table. :math:`r_0` is
    such that the largest expected degree is :math:`\sqrt{2 m}`: beyond it most edges between the
    largest nodes would be repeats. Features are the mean of the class plus noise,
    :math:`x_i = s u_{y_i} + z_i`, with :math:`\|u_c\| \approx 1` and :math:`z_i \sim N(0, I)`.

    Args:
        nodes: n, at least two per class.
        edges: m, drawn with replacement: repeats and self loops are merged later.
        features: per node.
        classes: of equal size.
        homophily: the share of edges between nodes of one class: 1 for all, 0 for none. Others lead
            to any other class.
        labelled: a share of the nodes up to 1, or a number of nodes.
        signal: s, the distance of a class mean from zero, in standard deviations of the noise.
        exponent: :math:`\gamma > 2` of the degrees.
        seed: of everything.

    Raises:
        DataError: for an option out of range.
    """

    nodes: int
    edges: int
    features: int = 64
    classes: int = 10
    homophily: float = 0.8
    labelled: float = 1.0
    signal: float = 1.0
    exponent: float = 2.5
    seed: int = 0

    def __post_init__(self) -> None:
        nodes, classes = self.nodes, self.classes
        checks = {
            f"`classes` >= 2 (got {classes})": classes >= 2,
            f"`nodes` within {2 * classes}..2^31 - 1, two per class (got {nodes})": (
                2 * classes <= nodes < 2**31
            ),
            f"`edges` >= 1 (got {self.edges})": self.edges >= 1,
            f"`features` >= 1 (got {self.features})": self.features >= 1,
            f"`homophily` within 0..1 (got {self.homophily})": 0 <= self.homophily <= 1,
            f"`labelled` a share up to 1 or a number up to {nodes} (got {self.labelled})": (
                0 < self.labelled <= nodes
            ),
            f"`signal` >= 0 (got {self.signal})": 0 <= self.signal < math.inf,
            f"`exponent` > 2 (got {self.exponent})": 2 < self.exponent < math.inf,
            f"`seed` >= 0 (got {self.seed})": self.seed >= 0,
        }
        for what, holds in checks.items():
            if not holds:
                raise DataError(f"Expected {what}.")

    def _random(self, stream: int, chunk: int = 0) -> np.random.Generator:
        return np.random.default_rng([self.seed, stream, chunk])

    @cached_property
    def starts(self) -> np.ndarray:
        """int64 (classes + 1,): the nodes of a class stand together before they are mixed."""
        return np.arange(self.classes + 1) * self.nodes // self.classes

    @cached_property
    def places(self) -> np.ndarray:
        """int32 (nodes,): the number of each node, so that numbers say nothing of classes."""
        return self._random(_NODES).permutation(np.arange(self.nodes, dtype=np.int32))

    @cached_property
    def labels(self) -> np.ndarray:
        """int32 (nodes,): the class of each node."""
        labels = np.empty(self.nodes, dtype=np.int32)
        classes = np.arange(self.classes, dtype=np.int32)
        labels[self.places] = np.repeat(classes, np.diff(self.starts))
        return labels

    @cached_property
    def labelled_nodes(self) -> np.ndarray:
        """bool (nodes,): which nodes have a label."""
        share = self.labelled if self.labelled <= 1 else self.labelled / self.nodes
        count = round(share * self.nodes)
        mask = np.zeros(self.nodes, dtype=bool)
        mask[self._random(_LABELLED).choice(self.nodes, count, replace=False, shuffle=False)] = True
        return mask

    @cached_property
    def offset(self) -> float:
        r""":math:`r_0` by bisection: the largest expected degree is :math:`\sqrt{2 m}`."""
        size, most = self.nodes / self.classes, math.sqrt(2 * self.edges)
        low, high = -12.0 * math.log(10), 3.0 * math.log(10)  # log of r_0 / size
        for _ in range(60):
            middle = (low + high) / 2
            largest = 2 * self.edges / self.classes * self._share_of_first(size, math.exp(middle))
            low, high = (middle, high) if largest > most else (low, middle)
        return size * math.exp(high)

    def _share_of_first(self, size: float, relative: float) -> float:
        q = 1 - 1 / (self.exponent - 1)
        first, last = relative**q, (1 + relative) ** q
        return ((relative + 1 / size) ** q - first) / (last - first)

    @property
    def edge_chunks(self) -> int:
        """How many chunks of edges there are."""
        return -(-self.edges // CHUNK)

    def edges_of(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:  # int32 (edges,) each
        """Both ends of the edges of a chunk."""
        rng = self._random(_EDGES, chunk)
        count = min(CHUNK, self.edges - chunk * CHUNK)
        here = rng.integers(self.classes, size=count)
        stays = rng.random(count) < self.homophily
        other = (here + 1 + rng.integers(self.classes - 1, size=count)) % self.classes
        there = np.where(stays, here, other)
        return self._choose(rng, here), self._choose(rng, there)

    def _choose(self, rng: np.random.Generator, group: np.ndarray) -> np.ndarray:
        """A node of each class, by weight."""
        q, offset = 1 - 1 / (self.exponent - 1), self.offset
        size = np.diff(self.starts)
        first, last = offset**q, (size + offset) ** q  # last: (classes,)
        u = rng.random(len(group))
        rank = (first + u * (last - first)[group]) ** (1 / q) - offset
        rank = np.clip(rank.astype(np.int64), 0, size[group] - 1)
        return self.places[self.starts[group] + rank]

    @property
    def feature_chunks(self) -> int:
        """How many chunks of rows of features there are."""
        return -(-self.nodes // self.rows)

    @property
    def rows(self) -> int:
        """Rows of features in a chunk."""
        return max(1, 16 * CHUNK // self.features)

    @property
    def feature_names(self) -> list[str]:
        """The names of the features: f0, f1, ..."""
        return [f"f{j}" for j in range(self.features)]

    def features_of(self, chunk: int) -> np.ndarray:  # float32 (rows, features)
        """The features of the nodes of a chunk."""
        means = self._random(_MEANS).standard_normal((self.classes, self.features))
        means = (self.signal / math.sqrt(self.features) * means).astype(np.float32)
        y = self.labels[chunk * self.rows : (chunk + 1) * self.rows]
        noise = self._random(_FEATURES, chunk).standard_normal(
            (len(y), self.features), dtype=np.float32
        )
        noise += means[y]
        return noise
