"""Ten development tables: the defaults for own data were chosen by these, and by no others here.

Invented from fixed seeds or bundled with scikit-learn; nothing is downloaded. Each is one case:
a graph that carries the answer, one that helps, one of no use; columns that are dense, or
categories, or have gaps. The tables that test the choice are in the study ``tables``.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse
import sklearn.datasets

from lab.studies._core._graphs import as_dataset, nearest
from longnn.data import NodeDataset


def house(nodes: int = 800) -> NodeDataset:
    """Prices that vary smoothly over a map; neighbours by place, but the place is no column."""
    rng = np.random.default_rng(31)
    place = rng.random((nodes, 2)) * 10
    hood = _smooth_field(rng, place, 2.0)
    area = np.exp(rng.normal(4.6, 0.35, nodes) + 0.15 * hood)
    rooms = np.round(area / 25 + rng.normal(0, 0.8, nodes)).clip(1)
    age = rng.gamma(2, 18, nodes)
    quality = np.round(rng.normal(5, 1.5, nodes) + 0.5 * hood).clip(1, 10)
    centre = np.hypot(*(place - 5).T)
    garden = (rng.random(nodes) < 0.4) * rng.gamma(2, 100, nodes)
    baths = rng.integers(1, 4, nodes)
    log_price = (
        np.log(area) * 0.8
        + 0.06 * quality
        - 0.004 * age
        + 0.00003 * (age > 80) * (age - 80) ** 2
        - 0.08 * centre
        + 0.0003 * garden
        + 0.03 * baths
        + 0.25 * hood
        + 0.1 * np.tanh(quality - 7) * (area > 120)
        + rng.normal(0, 0.08, nodes)
    )
    x = np.stack([area, rooms, age, quality, garden, baths], 1)
    price = 1e5 * np.exp(log_price - log_price.mean())
    return as_dataset("house", x, nearest(place, 8), price)


def friedman(nodes: int = 600) -> NodeDataset:
    """Friedman's first function, with noise; the graph means nothing."""
    x, y = sklearn.datasets.make_friedman1(nodes, 10, noise=1.0, random_state=13)
    return as_dataset("friedman", x, _random_graph(np.random.default_rng(13), nodes, 6), y)


def neighbours(nodes: int = 600) -> NodeDataset:
    """Three columns count for the node itself, two others for its neighbours."""
    rng = np.random.default_rng(22)
    x = rng.normal(size=(nodes, 7))
    arcs = _random_graph(rng, nodes, 8)
    one_way = scipy.sparse.csr_array((np.ones(arcs.shape[1]), arcs), shape=(nodes, nodes))
    linked = ((one_way + one_way.T) > 0).astype(float)
    around = (linked @ x) / np.maximum(linked.sum(1), 1)[:, None]
    own = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]
    y = own + 2 * around[:, 3] + 2 * np.abs(around[:, 4]) + rng.normal(0, 0.3, nodes)
    return as_dataset("neighbours", x, arcs, y)


def diabetes() -> NodeDataset:
    """The 442 patients of scikit-learn, nearly linear and noisy; neighbours by all columns."""
    table = sklearn.datasets.load_diabetes()
    return as_dataset("diabetes", table.data, nearest(table.data, 6), table.target)


def fraud(nodes: int = 1200) -> NodeDataset:
    """One account in twenty is a fraud, in rings of eight; gaps in every column."""
    rng = np.random.default_rng(12)
    y = (rng.random(nodes) < 0.05).astype(np.int64)
    x = np.stack(
        [
            rng.lognormal(3 + 0.5 * y, 1),  # amount
            rng.gamma(2, 20, nodes) * np.where(y == 1, 0.7, 1),  # age of the account
            rng.beta(2 + y, 5),  # share at night
            rng.poisson(5 + 2 * y).astype(float),  # logins
            rng.normal(0.6 * y, 1),  # a score
        ],
        1,
    )
    x = np.concatenate([x, rng.normal(size=(nodes, 2))], 1)
    x[rng.random(x.shape) < 0.08] = np.nan
    arcs = [rng.integers(0, nodes, (2, 4 * nodes))]
    frauds = rng.permutation(np.flatnonzero(y))
    for first in range(0, len(frauds), 8):
        ring = frauds[first : first + 8]
        pairs = [(u, v) for u in ring for v in ring if u != v and rng.random() < 0.4]
        arcs.append(np.array(pairs, dtype=np.int64).reshape(-1, 2).T)
    edges = np.concatenate(arcs, 1)
    edges = edges[:, edges[0] != edges[1]]
    weight = rng.gamma(2, 1, edges.shape[1]) * np.where(y[edges[0]] & y[edges[1]], 2, 1)
    return as_dataset("fraud", x, edges, y, weight)


def xor(nodes: int = 600) -> NodeDataset:
    """Two classes by the signs of two columns, 5 % flipped; the graph means nothing."""
    rng = np.random.default_rng(15)
    x = rng.normal(size=(nodes, 5))
    y = ((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(np.int64)
    y = np.where(rng.random(nodes) < 0.05, 1 - y, y)
    return as_dataset("xor", x, _random_graph(rng, nodes, 8), y)


def moons(nodes: int = 500) -> NodeDataset:
    """Two half moons and two columns of noise; the graph means nothing."""
    x, y = sklearn.datasets.make_moons(nodes, noise=0.25, random_state=14)
    rng = np.random.default_rng(14)
    x = np.concatenate([x, rng.normal(size=(nodes, 2))], 1)
    return as_dataset("moons", x, _random_graph(rng, nodes, 6), y)


def onehot(nodes: int = 800) -> NodeDataset:
    """Three classes by four of six categories and two numbers; half of the edges within a class."""
    rng = np.random.default_rng(20)
    sizes = (4, 6, 12, 25, 3, 8)
    codes = [rng.integers(0, size, nodes) for size in sizes]
    effects = [rng.normal(0, 0.8, (size, 3)) for size in sizes]
    numbers = rng.normal(size=(nodes, 2))
    logits = numbers[:, :1] * np.array([1, -1, 0])
    logits = sum((effects[i][codes[i]] for i in range(4)), np.zeros((nodes, 3))) + logits
    y = (logits + rng.gumbel(size=(nodes, 3))).argmax(1)
    columns = [np.eye(size)[code] for size, code in zip(sizes, codes, strict=True)]
    x = np.concatenate([*columns, numbers], 1)
    return as_dataset("onehot", x, _linked_classes(rng, y, 6, 0.5), y)


def heterophilic(nodes: int = 600) -> NodeDataset:
    """Three classes around weak centres; one edge in twelve is within a class."""
    rng = np.random.default_rng(18)
    y = rng.integers(0, 3, nodes)
    centres = rng.normal(size=(3, 8)) * 0.4
    x = centres[y] + rng.normal(size=(nodes, 8))
    return as_dataset("heterophilic", x, _linked_classes(rng, y, 10, 0.08), y)


def cancer() -> NodeDataset:
    """The 569 tumours of scikit-learn; neighbours by ten of the thirty columns."""
    table = sklearn.datasets.load_breast_cancer()
    return as_dataset("cancer", table.data, nearest(table.data[:, :10], 6), table.target)


def _random_graph(rng: np.random.Generator, nodes: int, degree: int) -> np.ndarray:
    arcs = rng.integers(0, nodes, (2, nodes * degree // 2))
    return arcs[:, arcs[0] != arcs[1]]


def _linked_classes(
    rng: np.random.Generator, y: np.ndarray, degree: int, inside: float
) -> np.ndarray:
    """Arcs of which a share ``inside`` stays in its class.

    One draw after the other: these are the very graphs by which the defaults were chosen.
    """
    arcs = len(y) * degree // 2
    start, same = rng.integers(0, len(y), arcs), rng.random(arcs) < inside
    members = [np.flatnonzero(y == c) for c in range(y.max() + 1)]
    end = np.empty_like(start)
    for i, own in enumerate(y[start]):
        others = [c for c in range(len(members)) if c != own]
        end[i] = rng.choice(members[own if same[i] else rng.choice(others)])
    return np.stack([start, end])[:, start != end]


def _smooth_field(
    rng: np.random.Generator, place: np.ndarray, scale: float, terms: int = 60
) -> np.ndarray:
    """A random smooth function of the place: a sum of waves of about that length."""
    waves = rng.normal(size=(terms, place.shape[1])) / scale
    phases, heights = rng.uniform(0, 2 * np.pi, terms), rng.normal(size=terms)
    return np.asarray(np.cos(place @ waves.T + phases) @ heights * np.sqrt(2 / terms))


DEVELOPMENT: dict[str, Callable[[], NodeDataset]] = {
    "house": house,
    "friedman": friedman,
    "neighbours": neighbours,
    "diabetes": diabetes,
    "fraud": fraud,
    "xor": xor,
    "moons": moons,
    "onehot": onehot,
    "heterophilic": heterophilic,
    "cancer": cancer,
}
