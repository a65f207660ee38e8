"""Invented tables with graphs, each drawn from fixed seeds or bundled with scikit-learn.

Two *stories* and ten tables *held back*, as strangers bring them, by which nothing was chosen:
graphs by place, by likeness, by relation, of no use. Nothing is downloaded.
"""

from collections.abc import Callable

import numpy as np
import sklearn.datasets
import torch
from sklearn.impute import SimpleImputer
from sklearn.neighbors import kneighbors_graph
from torch_geometric.data import Data

from longnn.data import NodeDataset, from_data


def as_dataset(
    name: str,
    x: np.ndarray,  # (nodes, columns); NaN where a value is missing
    edges: np.ndarray,  # (2, arcs)
    y: np.ndarray,  # (nodes,) integers: classes; else numbers
    weight: np.ndarray | None = None,  # (arcs,)
) -> NodeDataset:
    """The table as any own data: gaps are filled by the median, with a column that marks them.

    Edges are made two-way.

    >>> x = np.array([[1.0, 0.0], [np.nan, 1.0], [3.0, 0.0]])
    >>> as_dataset("three", x, np.array([[0, 1], [1, 2]]), np.array([0, 1, 0])).data.x[1]
    tensor([2., 1., 1.])
    """
    if np.isnan(x).any():
        x = SimpleImputer(strategy="median", add_indicator=True).fit_transform(x)
    labels = y.astype(np.int64 if y.dtype.kind in "iu" else np.float32)
    data = Data(
        x=torch.from_numpy(np.asarray(x, dtype=np.float32)),
        edge_index=torch.from_numpy(np.asarray(edges, dtype=np.int64)),
        y=torch.from_numpy(labels),
    )
    if weight is not None:
        data.edge_weight = torch.from_numpy(weight.astype(np.float32))
    return from_data(data, name=name)


def nearest(z: np.ndarray, k: int) -> np.ndarray:
    """Arcs from each row of ``z`` to its k nearest ones, columns brought to one deviation."""
    deviation = z.std(0)
    graph = kneighbors_graph(z / np.where(deviation > 0, deviation, 1), k).tocoo()
    return np.stack([graph.row, graph.col])


def grid(height: int, width: int) -> np.ndarray:
    """Edges between pixels that touch at a side; pixels row by row."""
    cells = np.arange(height * width).reshape(height, width)
    pairs = [(cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])]
    return np.concatenate([np.stack([one.ravel(), other.ravel()]) for one, other in pairs], 1)


def small_world(rng: np.random.Generator, nodes: int, k: int, rewired: float) -> np.ndarray:
    """A ring where each node knows the next k, some ends moved anywhere (Watts and Strogatz)."""
    start = np.repeat(np.arange(nodes), k)
    end = (start + np.tile(np.arange(1, k + 1), nodes)) % nodes
    moved = rng.random(len(end)) < rewired
    end[moved] = rng.integers(0, nodes, moved.sum())
    return _without_loops(start, end)


def preferential(rng: np.random.Generator, nodes: int, k: int) -> np.ndarray:
    """Each new node links to k earlier ends of edges: hubs arise (Barabasi and Albert)."""
    ends = list(range(k + 1))
    arcs = []
    for node in range(k + 1, nodes):
        chosen = {ends[i] for i in rng.integers(0, len(ends), k)}
        arcs += [(node, other) for other in chosen]
        ends += [node] * len(chosen) + list(chosen)
    return np.array(arcs).T


def between_classes(
    rng: np.random.Generator,
    y: np.ndarray,
    arcs: int,
    table: np.ndarray,  # (classes, classes): from which class to which, rows sum to 1
    activity: np.ndarray | None = None,  # (nodes,) how often a node is chosen
) -> np.ndarray:
    """Arcs whose start is drawn by activity and whose end by the class of the start."""
    weight = np.ones(len(y)) if activity is None else activity
    start = rng.choice(len(y), arcs, p=weight / weight.sum())
    wanted = (table[y[start]].cumsum(1) < rng.random((arcs, 1))).sum(1).clip(0, len(table) - 1)
    end = np.empty_like(start)
    for c in range(len(table)):
        members, mine = np.flatnonzero(y == c), wanted == c
        end[mine] = rng.choice(members, mine.sum(), p=weight[members] / weight[members].sum())
    return _without_loops(start, end)


def _without_loops(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    return np.stack([start, end])[:, start != end]


def fraud_rings(nodes: int = 1200) -> NodeDataset:
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


def _smooth_field(
    rng: np.random.Generator, place: np.ndarray, scale: float, terms: int = 60
) -> np.ndarray:
    """A random smooth function of the place: a sum of waves of about that length."""
    waves = rng.normal(size=(terms, place.shape[1])) / scale
    phases, heights = rng.uniform(0, 2 * np.pi, terms), rng.normal(size=terms)
    return np.asarray(np.cos(place @ waves.T + phases) @ heights * np.sqrt(2 / terms))


def houses(nodes: int = 2000) -> NodeDataset:
    """Prices by area, rooms, year, district, river and the houses around; neighbours by place."""
    rng = np.random.default_rng(2001)
    place = rng.random((nodes, 2)) * [12, 8]
    centres = rng.random((14, 2)) * [12, 8]
    district = ((place[:, None] - centres) ** 2).sum(-1).argmin(1)
    wealth = rng.normal(0, 1, 14)[district]
    area = np.exp(rng.normal(4.7, 0.3, nodes) + 0.12 * wealth)
    lot = area * np.exp(rng.normal(1.2, 0.5, nodes))
    bedrooms = np.clip(np.round(area / 35 + rng.normal(0, 0.7, nodes)), 1, 8)
    baths = np.clip(np.round(bedrooms / 2 + rng.normal(0, 0.5, nodes)), 1, 4)
    year = np.round(1900 + 120 * rng.beta(3, 2, nodes))
    river = np.abs(place[:, 1] - 4 - np.sin(place[:, 0] / 2))
    log_price = (
        0.75 * np.log(area)
        + 0.08 * np.log(lot)
        + 0.05 * baths
        + 0.00004 * (year - 1950) ** 2
        + 0.14 * wealth
        + 0.25 * np.exp(-river)
        + rng.normal(0, 0.1, nodes)
    )
    x = np.stack([area, lot, bedrooms, baths, year, *place.T], 1)
    return as_dataset("houses", x, nearest(place, 6), 50_000 * np.exp(log_price - 3))


def fraud(nodes: int = 3000) -> NodeDataset:
    """One account in twenty is a fraud that pays into a few mules; gaps in every column."""
    rng = np.random.default_rng(2002)
    y = np.zeros(nodes, dtype=np.int64)
    y[rng.choice(nodes, nodes // 20, replace=False)] = 1
    x = np.stack(
        [
            rng.gamma(2, 400, nodes) * np.where(y == 1, 0.75, 1),  # age of the account in days
            rng.poisson(np.where(y == 1, 9, 7)).astype(float),  # payments per week
            rng.lognormal(3.5 + 0.25 * y, 0.8),  # their mean amount
            rng.beta(1.5 + 0.6 * y, 6),  # share at night
            rng.normal(45 - 3 * y, 14),  # age of the owner
            (rng.random(nodes) < 0.3 + 0.1 * y).astype(float),  # is the address new?
        ],
        1,
    )
    x[rng.random(x.shape) < 0.1] = np.nan
    usual = rng.integers(0, nodes, (2, 5 * nodes))
    frauds = np.flatnonzero(y)
    mules = frauds[:: len(frauds) // 25]
    paying = np.repeat(frauds, 2)
    ring = np.stack([paying, rng.choice(mules, len(paying))])
    arcs = np.concatenate([usual, ring], 1)
    amount = np.concatenate([rng.gamma(1, 1, usual.shape[1]), rng.gamma(3, 1, ring.shape[1])])
    kept = arcs[0] != arcs[1]
    return as_dataset("fraud", x, arcs[:, kept], y, amount[kept])


def wine() -> NodeDataset:
    """The 178 wines of scikit-learn; neighbours by five of the thirteen columns."""
    table = sklearn.datasets.load_wine()
    return as_dataset("wine", table.data, nearest(table.data[:, :5], 5), table.target)


def digits() -> NodeDataset:
    """Right halves of 1,797 digits; neighbours by the left halves."""
    table = sklearn.datasets.load_digits()
    left, right = table.images[:, :, :4].reshape(-1, 32), table.images[:, :, 4:].reshape(-1, 32)
    return as_dataset("digits", right, nearest(left, 5), table.target)


def heat(side: int = 40) -> NodeDataset:
    """Temperatures on a grid that heat has spread over; what a node knows is local and noisy."""
    rng = np.random.default_rng(2003)
    arcs = grid(side, side)
    height = rng.normal(size=(side, side))
    for _ in range(4):
        height = (height + np.roll(height, 1, 0) + np.roll(height, 1, 1)) / 3
    source = (rng.random((side, side)) < 0.15) * rng.gamma(2, 2, (side, side))
    warm = source.copy()
    for _ in range(6):
        around = sum(np.roll(warm, s, axis) for s in (1, -1) for axis in (0, 1))
        warm = 0.5 * warm + 0.125 * around
    y = warm - 2 * height + 0.1 * rng.normal(size=warm.shape)
    noise = rng.normal(size=(side, side, 2))
    x = np.concatenate([np.stack([source, height], 2), noise], 2).reshape(-1, 4)
    weight = rng.uniform(0.8, 1.2, size=(arcs.shape[1],))
    return as_dataset("heat", x, arcs, y.ravel(), weight)


def shells(nodes: int = 900) -> NodeDataset:
    """Classes are shells around a point; the graph has nothing to do with them."""
    x, y = sklearn.datasets.make_gaussian_quantiles(
        n_samples=nodes, n_features=4, n_classes=3, random_state=2004
    )
    rng = np.random.default_rng(2004)
    x = np.concatenate([x + 0.1 * rng.normal(size=x.shape), rng.normal(size=(nodes, 2))], 1)
    return as_dataset("shells", x, small_world(rng, nodes, 3, 0.3), y)


def circuits(nodes: int = 1200) -> NodeDataset:
    """Friedman's second function, with noise; a graph with hubs and no meaning."""
    x, y = sklearn.datasets.make_friedman2(nodes, noise=60.0, random_state=2005)
    rng = np.random.default_rng(2005)
    x = np.concatenate([x, rng.normal(size=(nodes, 2))], 1)
    return as_dataset("circuits", x, preferential(rng, nodes, 3), y)


def trade(nodes: int = 5000) -> NodeDataset:
    """Four trades in a chain, each sells to the next: directed, weighted, unlike neighbours."""
    rng = np.random.default_rng(2006)
    y = rng.choice(4, nodes, p=[0.35, 0.3, 0.2, 0.15])
    table = 0.55 * np.roll(np.eye(4), 1, axis=1) + 0.45 / 4
    arcs = between_classes(rng, y, 5 * nodes, table, rng.gamma(1, 1, nodes) + 0.1)
    x = rng.normal(0, 0.45, (4, 10))[y] + rng.normal(size=(nodes, 10))
    weight = rng.gamma(2, 1, size=(arcs.shape[1],))
    return as_dataset("trade", np.exp(x / 2), arcs, y, weight)


def clubs(nodes: int = 1000) -> NodeDataset:
    """Five communities of unequal size; the columns are noise."""
    rng = np.random.default_rng(2007)
    y = rng.choice(5, nodes, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    table = 0.75 * np.eye(5) + 0.25 / 5
    arcs = between_classes(rng, y, 7 * nodes, table, rng.gamma(2, 1, nodes) + 0.2)
    return as_dataset("clubs", rng.uniform(size=(nodes, 4)), arcs, y)


def patients(nodes: int = 2000) -> NodeDataset:
    """Three diagnoses, 85, 10 and 5 %; neighbours have like complaints, one column in ten gaps."""
    rng = np.random.default_rng(2008)
    y = rng.choice(3, nodes, p=[0.85, 0.10, 0.05])
    shift = np.array([[0, 0, 0, 0], [1.0, 0.6, 0, -0.5], [0.5, -0.8, 1.0, 0.6]])
    x = shift[y] + rng.normal(size=(nodes, 4))
    complaints = shift[y] + rng.normal(0, 0.8, (nodes, 4))
    clinic = np.eye(6)[rng.integers(0, 6, nodes)]
    x[rng.random(x.shape) < 0.1] = np.nan
    return as_dataset("patients", np.concatenate([x, clinic], 1), nearest(complaints, 6), y)


def wages(nodes: int = 1500) -> NodeDataset:
    """Wages by job, region, school and firm, all categories; colleagues are linked."""
    rng = np.random.default_rng(2009)
    sizes = {"job": 30, "region": 12, "school": 5, "sector": 9}
    codes = {name: rng.integers(0, size, nodes) for name, size in sizes.items()}
    effects = {name: rng.normal(0, 0.25, size) for name, size in sizes.items()}
    firm = rng.integers(0, nodes // 8, nodes)
    years = rng.gamma(2, 6, nodes)
    wage = sum(effects[name][codes[name]] for name in sizes) + 0.2 * np.log1p(years)
    wage = wage + rng.normal(0, 0.2, nodes // 8)[firm] + rng.normal(0, 0.2, nodes)
    pairs = [rng.choice(np.flatnonzero(firm == firm[i]), 3) for i in range(nodes)]
    arcs = np.stack([np.repeat(np.arange(nodes), 3), np.concatenate(pairs)])
    columns = [np.eye(sizes[name])[codes[name]] for name in sizes]
    x = np.concatenate([*columns, years[:, None]], 1)
    return as_dataset("wages", x, arcs[:, arcs[0] != arcs[1]], 2000 * np.exp(wage))


def papers(nodes: int = 2500, words: int = 1500) -> NodeDataset:
    """Six fields with few words of their own; papers cite their field two times in three."""
    rng = np.random.default_rng(2010)
    y = rng.integers(0, 6, nodes)
    common = rng.dirichlet(np.full(words, 0.1))
    own = rng.dirichlet(np.full(words, 0.05), 6)
    counts = rng.poisson(14, nodes) + 2
    x = np.stack(
        [rng.multinomial(n, 0.88 * common + 0.12 * own[c]) for n, c in zip(counts, y, strict=True)]
    )
    x = x[:, x.any(0)]
    inverse = np.log(nodes / (x > 0).sum(0))
    table = 0.6 * np.eye(6) + 0.4 / 6
    return as_dataset("papers", x * inverse, between_classes(rng, y, 3 * nodes, table), y)


def _by_name(*makers: Callable[[], NodeDataset]) -> dict[str, Callable[[], NodeDataset]]:
    return {make.__name__: make for make in makers}


STORIES = _by_name(houses, fraud)
HELD_BACK = _by_name(*(wine, digits, heat, shells, circuits, trade, clubs, patients, wages, papers))
