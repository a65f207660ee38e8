"""Graphs of different kinds: a collection to choose portfolios on, and kinds that it lacks.

The *collection* is benchmarks, invented graphs with a dial, tables, and useless parts. *Unseen* are
graphs of three kinds: images, arcs, and weights that matter. No choice has seen these kinds, so
they are the strictest test of the presets; they were written down before anything was trained on
them. They are drawn from fixed seeds or made of what scikit-learn bundles.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import sklearn.datasets

from lab.studies._invented import DEVELOPMENT, as_dataset, between_classes, grid, nearest
from longnn import data
from longnn.data import NodeDataset
from longnn.data._synthetic import csbm, digits

_LUMINANCE = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601


@dataclasses.dataclass(frozen=True)
class Graph:
    """A graph of the collection, made from the folder of named datasets.

    Graphs of one kind are left out together.
    """

    kind: str
    make: Callable[[str | None], NodeDataset]


def villages(nodes: int = 800) -> NodeDataset:
    """Four communities; the columns are noise."""
    rng = np.random.default_rng(41)
    y = rng.integers(0, 4, nodes)
    arcs = between_classes(rng, y, 6 * nodes, 0.7 * np.eye(4) + 0.3 / 4)
    return as_dataset("villages", rng.normal(size=(nodes, 5)), arcs, y)


def borders(nodes: int = 800) -> NodeDataset:
    """Three classes that avoid their own kind; the columns are noise."""
    rng = np.random.default_rng(42)
    y = rng.integers(0, 3, nodes)
    table = 0.8 * (1 - np.eye(3)) / 2 + 0.2 / 3
    arcs = between_classes(rng, y, 6 * nodes, table)
    return as_dataset("borders", rng.normal(size=(nodes, 5)), arcs, y)


NAMED = {
    "citations": ("cora", "citeseer", "pubmed"),
    "purchases": ("computers", "photo"),
    "wiki pages": ("chameleon", "squirrel"),
    "actors": ("actor",),
    "university pages": ("texas", "cornell", "wisconsin"),
    "few columns": ("minesweeper", "tolokers"),
}
_TABLES = {
    "regression": ("house", "neighbours", "diabetes"),
    "classes": ("fraud", "onehot", "heterophilic"),
    "likeness": ("cancer",),
    "useless edges": ("friedman", "xor", "moons"),
}
_DIAL = (-0.9, -0.5, 0.0, 0.5, 0.9)


def _file(kind: str, name: str) -> Graph:
    return Graph(kind, lambda data_dir: data.load(name, data_dir=data_dir))


def _invented(kind: str, make: Callable[..., NodeDataset], **options: float) -> Graph:
    return Graph(kind, lambda _: make(**options))


#: Every graph by name; large ones first, so that small ones do not wait for them at the end.
GRAPHS: dict[str, Graph] = {
    **{name: _file(kind, name) for kind, names in NAMED.items() for name in names},
    **{
        name: _invented(kind, DEVELOPMENT[name])
        for kind, names in _TABLES.items()
        for name in names
    },
    **{f"csbm{phi:+.1f}": _invented("blocks", csbm, phi=phi) for phi in _DIAL},
    "digits": _invented("likeness", digits),
    "villages": _invented("useless columns", villages),
    "borders": _invented("useless columns", borders),
}
KINDS = tuple(dict.fromkeys(graph.kind for graph in GRAPHS.values()))
#: The defective Cornell has the features and labels of Texas and the edges of Cornell: where one is
#: left out, so is the other.
_LEGACY = "cornell-legacy"
_RELATED = {"texas": (_LEGACY,), "cornell": (_LEGACY,), _LEGACY: ("texas", "cornell")}


def kind_of(name: str) -> str:
    """The kind of a graph; the defective Cornell, not in the collection, is of that of Texas.

    >>> kind_of("cora"), kind_of("cornell-legacy")
    ('citations', 'university pages')
    """
    return GRAPHS["texas" if name == _LEGACY else name].kind


def related(name: str) -> tuple[str, ...]:
    """A graph, and those that share so much with it that they count as the same.

    >>> related("cora"), related("texas")
    (('cora',), ('texas', 'cornell-legacy'))
    """
    return (name, *_RELATED.get(name, ()))


def picture(block: int = 16) -> NodeDataset:
    """A photograph as 26 x 39 pixels with noisy colours: predict the clean luminance.

    Pixels touch at sides and corners.
    """
    photo = sklearn.datasets.load_sample_image("china.jpg")[:416, :624] / 255.0
    rows, columns = len(photo) // block, photo.shape[1] // block
    colours = photo.reshape(rows, block, columns, block, 3).mean((1, 3)).reshape(-1, 3)
    noise = np.random.default_rng(3001).normal(0, 0.2, colours.shape)
    arcs = grid(rows, columns, corners=True)
    return as_dataset("picture", colours + noise, arcs, colours @ _LUMINANCE)


def textures(side: int = 32) -> NodeDataset:
    """Regions of four textures: bright, dark, stripes, and checks of the same two grey values.

    A pixel is known by two noisy exposures, which alone tell bright from dark. Pixels touch at
    sides.
    """
    rng = np.random.default_rng(3002)
    row, column = np.divmod(np.arange(side * side), side)
    centres = rng.random((12, 2)) * side
    gaps = (row[:, None] - centres[:, 0]) ** 2 + (column[:, None] - centres[:, 1]) ** 2
    y = gaps.argmin(1) % 4
    signs = np.stack([np.ones_like(row), -np.ones_like(row), 1 - 2 * (row % 2)], 1)
    signs = np.concatenate([signs, (1 - 2 * ((row + column) % 2))[:, None]], 1)
    grey = 0.5 + 0.15 * signs[np.arange(len(y)), y]
    x = grey[:, None] + rng.normal(0, 0.2, (len(y), 2))
    return as_dataset("textures", x, grid(side, side), y)


def levels(nodes: int = 800) -> NodeDataset:
    """Five levels of a food web: three arcs in four go one level up; the columns are weak.

    Without directions the first level looks like the last, and the second like the fourth.
    """
    rng = np.random.default_rng(3003)
    y = rng.integers(0, 5, nodes)
    table = 0.75 * np.eye(5, k=1) + 0.25 / 5
    table[4] = 1 / 5  # nothing is above the last level
    arcs = between_classes(rng, y, 4 * nodes, table)
    return as_dataset("levels", _weak_columns(rng, y), arcs, y, directed=True)


def followers(nodes: int = 800) -> NodeDataset:
    """Stars are followed and follow few, fans follow and have few followers, others do both.

    Together the two degrees of a node are much the same in all classes; the columns are weak.
    """
    rng = np.random.default_rng(3004)
    y = rng.choice(3, nodes, p=[0.2, 0.3, 0.5])
    out = np.array([0.3, 2.0, 1.0])[y] * rng.gamma(2, 1, nodes)
    into = np.array([2.0, 0.3, 1.0])[y] * rng.gamma(2, 1, nodes)
    ends = [rng.choice(nodes, 8 * nodes, p=share / share.sum()) for share in (out, into)]
    arcs = np.stack(ends)
    arcs = arcs[:, arcs[0] != arcs[1]]
    return as_dataset("followers", _weak_columns(rng, y), arcs, y, directed=True)


def halves(nodes: int = 900, k: int = 15) -> NodeDataset:
    """Upper halves of digits; neighbours by the lower halves, with Gaussian weights.

    The fifteen nearest are many: far ones are often of another class, and their weights are low.
    """
    table = sklearn.datasets.load_digits()
    images, y = table.images[:nodes], table.target[:nodes]
    upper, lower = images[:, :4].reshape(nodes, -1), images[:, 4:].reshape(nodes, -1)
    arcs = nearest(lower, k)
    gaps = np.linalg.norm(lower[arcs[0]] - lower[arcs[1]], axis=1)
    return as_dataset("halves", upper, arcs, y, np.exp(-2 * (gaps / gaps.mean()) ** 2))


def trust(nodes: int = 800) -> NodeDataset:
    """Four classes; three true edges in twelve, within a class, are ten times as heavy as noise."""
    rng = np.random.default_rng(3006)
    y = rng.integers(0, 4, nodes)
    true = between_classes(rng, y, 3 * nodes, np.eye(4))
    noise = between_classes(rng, y, 9 * nodes, np.full((4, 4), 1 / 4))
    weight = np.concatenate(
        [rng.gamma(8, 1 / 8, true.shape[1]), rng.gamma(2, 0.1 / 2, noise.shape[1])]
    )
    arcs = np.concatenate([true, noise], 1)
    return as_dataset("trust", _weak_columns(rng, y), arcs, y, weight)


def _weak_columns(rng: np.random.Generator, y: np.ndarray, columns: int = 6) -> np.ndarray:
    """Columns around centres of the classes that are closer than the noise is wide."""
    centres = rng.normal(0, 0.4, (y.max() + 1, columns))
    return np.asarray(centres[y] + rng.normal(size=(len(y), columns)))


#: Graphs of unseen kinds by name.
UNSEEN: dict[str, Graph] = {
    "picture": _invented("image grid", picture),
    "textures": _invented("image grid", textures),
    "levels": _invented("arcs", levels),
    "followers": _invented("arcs", followers),
    "halves": _invented("weights", halves),
    "trust": _invented("weights", trust),
}
