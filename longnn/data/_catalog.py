"""The published datasets, as a table: which PyG class reads which files, and what to expect.

Data only. Rows of one family (one PyG class) are written by one small function.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch_geometric import datasets
from torch_geometric.data import Data

from longnn.data._errors import DatasetUnavailable

DEFECTIVE_CORNELL = (
    "This is the defective Cornell: it carries the features and labels of Texas (geom-gcn up "
    "to 2021). Its scores cannot be compared with those of the corrected Cornell."
)
DUPLICATES = "Many nodes are duplicates that leak across splits (Platonov et al. 2023)."


@dataclass(frozen=True)
class NamedEntry:
    """One published dataset: what it is, where its files lie, who reads them.

    Args:
        name: As the user types it.
        description: One line.
        nodes, edges, features, classes: Its size; edges undirected, without self loops.
        folder: Of the raw files, relative to the data folder.
        files: The raw files, relative to `folder`.
        read: Given a data folder, reads (or downloads) the dataset.
        split: The protocol used unless another is asked for.
        row_normalize: Whether the published tables use row-normalised features.
        downloadable: Whether PyG can download this very dataset.
        note: A sentence the user ought to read.
    """

    name: str
    description: str
    nodes: int
    edges: int
    features: int
    classes: int
    folder: str
    files: tuple[str, ...]
    read: Callable[[Path], Data] = field(repr=False)
    split: str = "published"
    row_normalize: bool = True
    downloadable: bool = True
    note: str = ""


def _read_pyg(kind: str, options: dict[str, Any], root: str, data_dir: Path) -> Data:
    return getattr(datasets, kind)(str(data_dir / root), **options)[0]


def _read_ogb(name: str, data_dir: Path) -> Data:
    """Through ogb's library-agnostic reader, which unpickles nothing on the way."""
    try:
        reader: Any = importlib.import_module("ogb.nodeproppred").NodePropPredDataset
    except ImportError as error:
        raise DatasetUnavailable(
            f"Dataset {name!r} needs the optional package ogb: pip install ogb."
        ) from error
    dataset = reader(name=name, root=str(data_dir))
    graph, labels = dataset[0]
    data = Data(
        x=torch.from_numpy(graph["node_feat"]),
        edge_index=torch.from_numpy(graph["edge_index"]),
        y=torch.from_numpy(labels).reshape(-1),
    )
    parts = dataset.get_idx_split()
    for key, part in (("train_mask", "train"), ("val_mask", "valid"), ("test_mask", "test")):
        mask = torch.zeros(len(data.x), dtype=torch.bool)
        mask[torch.as_tensor(parts[part])] = True
        data[key] = mask
    return data


Sizes = tuple[int, int, int, int]  # nodes, edges, features, classes


def _geom_gcn_files(stem: str) -> tuple[str, ...]:
    splits = (f"{stem}_split_0.6_0.2_{i}.npz" for i in range(10))
    return ("out1_node_feature_label.txt", "out1_graph_edges.txt", *splits)


def _pyg(
    kind: str,  # PyG class
    name: str,
    sizes: Sizes,
    description: str,
    *,
    folder: str,
    files: tuple[str, ...],
    root: str = "",  # what the class is given as root, relative to the data folder
    options: dict[str, Any] | None = None,
    **fields: Any,
) -> NamedEntry:
    read = partial(_read_pyg, kind, options or {}, root)
    return NamedEntry(name, description, *sizes, folder, files, read, **fields)


def _planetoid(pyg_name: str, sizes: Sizes, description: str) -> NamedEntry:
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    return _pyg(
        "Planetoid",
        pyg_name.lower(),
        sizes,
        description,
        folder=f"{pyg_name}/raw",
        files=tuple(f"ind.{pyg_name.lower()}.{part}" for part in parts),
        options={"name": pyg_name},
    )


def _npz(
    kind: str,
    name: str,
    pyg_name: str,
    sizes: Sizes,
    description: str,
    *,
    folder: str,
    file: str,
    **fields: Any,
) -> NamedEntry:
    return _pyg(
        kind,
        name,
        sizes,
        description,
        folder=f"{folder}/raw",
        files=(file,),
        options={"name": pyg_name},
        **fields,
    )


def _wikipedia(name: str, sizes: Sizes) -> NamedEntry:
    return _pyg(
        "WikipediaNetwork",
        name,
        sizes,
        f"Wikipedia pages on {name}s and their links; classes are bins of traffic",
        folder=f"{name}/geom_gcn/raw",
        files=_geom_gcn_files(name),
        options={"name": name, "geom_gcn_preprocess": True},
        note=DUPLICATES,
    )


def _webkb(
    name: str, sizes: Sizes, description: str, *, root: str = "", **fields: Any
) -> NamedEntry:
    school = name.removesuffix("-legacy")
    return _pyg(
        "WebKB",
        name,
        sizes,
        description,
        folder=f"{root}/{school}/raw".lstrip("/"),
        files=_geom_gcn_files(school),
        root=root,
        options={"name": school},
        **fields,
    )


def _heterophilous(name: str, sizes: Sizes, description: str) -> NamedEntry:
    file = name.replace("-", "_")
    return _npz(
        "HeterophilousGraphDataset",
        name,
        name,
        sizes,
        description,
        folder=file,
        file=f"{file}.npz",
        split="fixed",
        row_normalize=False,
    )


_ARXIV = NamedEntry(
    "ogbn-arxiv",
    "citations among arXiv computer-science papers, word embeddings; needs the package ogb",
    *(169343, 1157799, 128, 40),
    folder="ogbn_arxiv",
    files=(
        "RELEASE_v1.txt",
        *(
            f"raw/{part}.csv.gz"
            for part in (
                "edge",
                "node-feat",
                "node-label",
                "node_year",
                "num-edge-list",
                "num-node-list",
            )
        ),
        *(f"split/time/{part}.csv.gz" for part in ("train", "valid", "test")),
    ),
    read=partial(_read_ogb, "ogbn-arxiv"),
    split="fixed",
    row_normalize=False,
)

_ENTRIES = (
    _planetoid("Cora", (2708, 5278, 1433, 7), "citations among machine-learning papers, words"),
    _planetoid("CiteSeer", (3327, 4552, 3703, 6), "citations among computer-science papers, words"),
    _planetoid("PubMed", (19717, 44324, 500, 3), "citations among diabetes papers, TF-IDF words"),
    _npz(
        "Amazon",
        "computers",
        "Computers",
        (13752, 245861, 767, 10),
        "computers bought together on Amazon, words of reviews",
        folder="Computers",
        file="amazon_electronics_computers.npz",
    ),
    _npz(
        "Amazon",
        "photo",
        "Photo",
        (7650, 119081, 745, 8),
        "cameras bought together on Amazon, words of reviews",
        folder="Photo",
        file="amazon_electronics_photo.npz",
    ),
    _wikipedia("chameleon", (2277, 31371, 2325, 5)),
    _wikipedia("squirrel", (5201, 198353, 2089, 5)),
    _pyg(
        "Actor",
        "actor",
        (7600, 26659, 932, 5),
        "actors named together on Wikipedia pages, keywords",
        folder="actor/raw",
        files=_geom_gcn_files("film"),
        root="actor",
    ),
    _webkb("texas", (183, 279, 1703, 5), "web pages of a university and their links, words"),
    _webkb(
        "cornell",
        (183, 277, 1703, 5),
        "web pages of a university and their links, words (corrected)",
    ),
    _webkb(
        "cornell-legacy",
        (183, 277, 1703, 5),
        "the defective Cornell of 2020-2021: Texas's features and labels on Cornell's edges",
        root="legacy",
        downloadable=False,
        note=DEFECTIVE_CORNELL,
    ),
    _webkb("wisconsin", (251, 450, 1703, 5), "web pages of a university and their links, words"),
    _heterophilous("minesweeper", (10000, 39402, 7, 2), "synthetic grid: which cell has a mine"),
    _heterophilous("tolokers", (11758, 519000, 10, 2), "crowd workers on shared tasks: banned?"),
    _heterophilous("roman-empire", (22662, 32927, 300, 18), "words of one article, their syntax"),
    _heterophilous("amazon-ratings", (24492, 93050, 300, 5), "products bought together, ratings"),
    _heterophilous("questions", (48921, 153540, 301, 2), "users answering each other: active?"),
    _npz(
        "Coauthor",
        "coauthor-cs",
        "CS",
        (18333, 81894, 6805, 15),
        "computer scientists who wrote together, keywords",
        folder="CS",
        file="ms_academic_cs.npz",
    ),
    _npz(
        "Coauthor",
        "coauthor-physics",
        "Physics",
        (34493, 247962, 8415, 5),
        "physicists who wrote together, keywords",
        folder="Physics",
        file="ms_academic_phy.npz",
    ),
    _ARXIV,
)
CATALOG = {entry.name: entry for entry in _ENTRIES}
