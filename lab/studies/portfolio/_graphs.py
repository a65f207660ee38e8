"""Graphs of different kinds: benchmarks, invented ones with a dial, tables, and useless parts."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np

from lab.studies._core._graphs import as_dataset, between_classes
from lab.studies.presets._data import DEVELOPMENT
from longnn import data
from longnn.data import NodeDataset
from longnn.data._synthetic import csbm, digits


@dataclasses.dataclass(frozen=True)
class Graph:
    """One graph of the collection.

    Args:
        kind: graphs of one kind are left out together.
        make: makes it, given the folder of named datasets.
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


def _named(name: str, data_dir: str | None) -> NodeDataset:
    return data.load(name, data_dir=data_dir)


def _block(phi: float, _: str | None) -> NodeDataset:
    return csbm(phi=phi)


def _table(name: str, _: str | None) -> NodeDataset:
    return DEVELOPMENT[name]()


_NAMED = {
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

#: Every graph by name; large ones first, so that small ones do not wait for them at the end.
GRAPHS: dict[str, Graph] = {
    **{
        name: Graph(kind, functools.partial(_named, name))
        for kind, names in _NAMED.items()
        for name in names
    },
    **{
        name: Graph(kind, functools.partial(_table, name))
        for kind, names in _TABLES.items()
        for name in names
    },
    **{f"csbm{phi:+.1f}": Graph("blocks", functools.partial(_block, phi)) for phi in _DIAL},
    "digits": Graph("likeness", lambda _: digits()),
    "villages": Graph("useless columns", lambda _: villages()),
    "borders": Graph("useless columns", lambda _: borders()),
}
KINDS = tuple(dict.fromkeys(graph.kind for graph in GRAPHS.values()))
#: The defective Cornell has the features and labels of Texas and the edges of Cornell: where one is
#: left out, so is the other.
_RELATED = {
    "texas": ("cornell-legacy",),
    "cornell": ("cornell-legacy",),
    "cornell-legacy": ("texas", "cornell"),
}


def kind_of(name: str) -> str:
    """The kind of a graph; the defective Cornell, not in the collection, is of that of Texas.

    >>> kind_of("cora"), kind_of("cornell-legacy")
    ('citations', 'university pages')
    """
    return GRAPHS["texas" if name == "cornell-legacy" else name].kind


def related(name: str) -> tuple[str, ...]:
    """A graph, and those that share so much with it that they count as the same.

    >>> related("cora"), related("texas")
    (('cora',), ('texas', 'cornell-legacy'))
    """
    return (name, *_RELATED.get(name, ()))
