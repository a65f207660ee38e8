"""The datasets that have a name, as tables: which reader reads which files, and what to expect.

Data only, and quick to load: neither torch nor NumPy is imported here. Rows of one family (one
publisher) are written by one small function; :mod:`longnn.data._named` reads them.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from longnn._base.suggestions import nearest
from longnn.data._errors import DataError

if TYPE_CHECKING:
    from longnn.data._dataset import NodeDataset

DEFECTIVE_CORNELL = (
    "This is the defective Cornell: it carries the features and labels of Texas (geom-gcn up "
    "to 2021). Its scores cannot be compared with those of the corrected Cornell."
)
DUPLICATES = "Many nodes are duplicates that leak across splits (Platonov et al. 2023)."


@dataclass(frozen=True)
class NamedDataset:
    """One named dataset: what it is, where its files are, and which class reads them.

    Args:
        name: as the user types it.
        description: one line.
        nodes, edges, features, classes: its size; edges are undirected, without self loops.
        folder: of the raw files, relative to the data folder.
        files: the raw files, relative to ``folder``.
        reader: the format of the files, of :data:`longnn.data._rawreaders.READERS`.
        urls: where each of the files is published, or one ZIP archive with all of them; empty if
            exactly this dataset cannot be downloaded.
        split: the default split protocol.
        row_normalize: whether its features are row-normalised, as in the tables of the literature.
        note: a sentence the user ought to read.
        arcs: whether the files tell which way an edge goes.
    """

    name: str
    description: str
    nodes: int
    edges: int
    features: int
    classes: int
    folder: str
    files: tuple[str, ...]
    reader: str
    urls: tuple[str, ...] = field(default=(), repr=False)
    split: str = "published"
    row_normalize: bool = True
    note: str = ""
    arcs: bool = False


@dataclass(frozen=True)
class BundledDataset:
    """One dataset that needs no download."""

    name: str
    description: str

    @property
    def make(self) -> "Callable[..., NodeDataset]":
        """The function that makes it; its keyword arguments are the options."""
        makers = importlib.import_module("longnn.data._synthetic")
        maker: Callable[..., NodeDataset] = getattr(makers, self.name)
        return maker


Sizes = tuple[int, int, int, int]  # nodes, edges, features, classes


_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
_SHCHUR = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
_PLATONOV = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
_GEOM_GCN = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn"
_GEOM_GCN_WIKIPEDIA = f"{_GEOM_GCN}/f1fc0d14b3b019c562737240d06ec83b07d16a8f"


def _geom_gcn(
    stem: str, base: str = f"{_GEOM_GCN}/master"
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files of a dataset, and where each is published."""
    tables = ("out1_node_feature_label.txt", "out1_graph_edges.txt")
    splits = tuple(f"{stem}_split_0.6_0.2_{i}.npz" for i in range(10))
    urls = [f"{base}/new_data/{stem}/{file}" for file in tables]
    return (*tables, *splits), (*urls, *(f"{base}/splits/{file}" for file in splits))


def _planetoid(folder: str, sizes: Sizes, description: str) -> NamedDataset:
    name, parts = folder.lower(), ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    files = tuple(f"ind.{name}.{part}" for part in parts)
    urls = tuple(f"{_PLANETOID}/{file}" for file in files)
    return NamedDataset(name, description, *sizes, f"{folder}/raw", files, "planetoid", urls)


def _shchur(name: str, sizes: Sizes, description: str, *, folder: str, file: str) -> NamedDataset:
    raw, urls = f"{folder}/raw", (f"{_SHCHUR}/{file}",)
    return NamedDataset(name, description, *sizes, raw, (file,), "csr-archive", urls)


def _wikipedia(name: str, sizes: Sizes) -> NamedDataset:
    description = f"Wikipedia pages on {name}s and their links; classes are bins of traffic"
    raw, files, urls = f"{name}/geom_gcn/raw", *_geom_gcn(name, _GEOM_GCN_WIKIPEDIA)
    return NamedDataset(
        name, description, *sizes, raw, files, "word-lists", urls, note=DUPLICATES, arcs=True
    )


def _webkb(
    name: str,
    sizes: Sizes,
    description: str = "web pages of a university and their links, words",
    *,
    folder: str = "",
    note: str = "",
) -> NamedDataset:
    school = name.removesuffix("-legacy")
    raw, files, urls = f"{folder or school}/raw", *_geom_gcn(school)
    urls = () if folder else urls
    return NamedDataset(
        name, description, *sizes, raw, files, "word-lists", urls, note=note, arcs=True
    )


def _heterophilous(name: str, sizes: Sizes, description: str) -> NamedDataset:
    stem = name.replace("-", "_")
    raw, file, url = f"{stem}/raw", f"{stem}.npz", f"{_PLATONOV}/{stem}.npz"
    return NamedDataset(
        name, description, *sizes, raw, (file,), "heterophilous", (url,), "fixed", False
    )


_ENTRIES = (
    _planetoid("Cora", (2708, 5278, 1433, 7), "citations among machine-learning papers, words"),
    _planetoid("CiteSeer", (3327, 4552, 3703, 6), "citations among computer-science papers, words"),
    _planetoid("PubMed", (19717, 44324, 500, 3), "citations among diabetes papers, TF-IDF words"),
    _shchur(
        "computers",
        (13752, 245861, 767, 10),
        "computers bought together on Amazon, words of reviews",
        folder="Computers",
        file="amazon_electronics_computers.npz",
    ),
    _shchur(
        "photo",
        (7650, 119081, 745, 8),
        "cameras bought together on Amazon, words of reviews",
        folder="Photo",
        file="amazon_electronics_photo.npz",
    ),
    _wikipedia("chameleon", (2277, 31371, 2325, 5)),
    _wikipedia("squirrel", (5201, 198353, 2089, 5)),
    NamedDataset(
        "actor",
        "actors named together on Wikipedia pages, keywords",
        *(7600, 26659, 932, 5),
        "actor/raw",
        _geom_gcn("film")[0],
        "word-numbers",
        _geom_gcn("film")[1],
        arcs=True,
    ),
    _webkb("texas", (183, 279, 1703, 5)),
    _webkb(
        "cornell",
        (183, 277, 1703, 5),
        "web pages of a university and their links, words (corrected)",
    ),
    _webkb(
        "cornell-legacy",
        (183, 277, 1703, 5),
        "the defective Cornell of 2020-2021: Texas's features and labels on Cornell's edges",
        folder="legacy/cornell",
        note=DEFECTIVE_CORNELL,
    ),
    _webkb("wisconsin", (251, 450, 1703, 5)),
    _heterophilous("minesweeper", (10000, 39402, 7, 2), "synthetic grid: which cell has a mine"),
    _heterophilous(
        "tolokers", (11758, 519000, 10, 2), "crowd workers on shared tasks: who is banned"
    ),
    _heterophilous("roman-empire", (22662, 32927, 300, 18), "words of one article: their syntax"),
    _heterophilous("amazon-ratings", (24492, 93050, 300, 5), "products bought together, ratings"),
    _heterophilous("questions", (48921, 153540, 301, 2), "users who answer each other: who stays"),
    _shchur(
        "coauthor-cs",
        (18333, 81894, 6805, 15),
        "computer scientists who wrote together, keywords",
        folder="CS",
        file="ms_academic_cs.npz",
    ),
    _shchur(
        "coauthor-physics",
        (34493, 247962, 8415, 5),
        "physicists who wrote together, keywords",
        folder="Physics",
        file="ms_academic_phy.npz",
    ),
    NamedDataset(
        "ogbn-arxiv",
        "citations among arXiv computer-science papers, word embeddings",
        *(169343, 1157799, 128, 40),
        "ogbn_arxiv",
        (
            *(f"raw/{part}.csv.gz" for part in ("edge", "node-feat", "node-label")),
            *(f"split/time/{part}.csv.gz" for part in ("train", "valid", "test")),
        ),
        "arxiv",
        ("https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip",),
        "fixed",
        False,
        arcs=True,
    ),
)
CATALOG = {entry.name: entry for entry in _ENTRIES}
BUNDLED = {
    entry.name: entry
    for entry in (
        BundledDataset("csbm", "random two-class graph; phi sets homophily, from -1 to 1"),
        BundledDataset("digits", "handwritten digits linked to their nearest neighbours"),
    )
}


def list_named() -> tuple[NamedDataset, ...]:
    """The table of named datasets, in the order of listing."""
    return tuple(CATALOG.values())


def list_bundled() -> tuple[BundledDataset, ...]:
    """The table of bundled and generated datasets."""
    return tuple(BUNDLED.values())


def known_names() -> set[str]:
    """The names that :func:`longnn.data.load` knows, named and bundled."""
    return {*CATALOG, *BUNDLED}


def canonical_name(text: str) -> str:
    """A name as the tables have it: case, spaces and underscores do not matter."""
    return text.strip().lower().replace("_", "-").replace(" ", "-")


def find_named(name: str) -> NamedDataset:
    """The named dataset of that name."""
    key = canonical_name(name)
    if key in CATALOG:
        return CATALOG[key]
    near = nearest(key, CATALOG, count=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise DataError(
        f"Expected the name of a dataset (got {name!r}).{hint} Choices: {', '.join(CATALOG)}.",
        value=name,
    )
