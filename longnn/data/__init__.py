"""Graphs to learn on: published ones by name, bundled ones, and the user's own files.

`load` is the one door; every door leads to a checked `NodeDataset`.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from longnn.data._card import GraphCard, describe, homophily
from longnn.data._catalog import CATALOG, NamedEntry
from longnn.data._convert import NO_EDGE, from_data, symmetrize
from longnn.data._dataset import NodeDataset, row_normalize
from longnn.data._errors import DataError, DatasetUnavailable, MissingFileError
from longnn.data._files import SUFFIXES, load_files
from longnn.data._images import ImageGrid, grid_edges, image_grid, read_image_grid
from longnn.data._named import find_named, list_named, load_named
from longnn.data._rawfiles import data_root
from longnn.data._splits import PROTOCOLS, Split, make_split
from longnn.data._synthetic import BUNDLED, BundledEntry, csbm, digits, list_bundled

__all__ = [
    "NO_EDGE",
    "PROTOCOLS",
    "BundledEntry",
    "DataError",
    "DatasetUnavailable",
    "GraphCard",
    "ImageGrid",
    "MissingFileError",
    "NamedEntry",
    "NodeDataset",
    "Split",
    "_",
    "csbm",
    "data_root",
    "describe",
    "digits",
    "find_named",
    "from_data",
    "grid_edges",
    "homophily",
    "image_grid",
    "known_names",
    "list_bundled",
    "list_named",
    "load",
    "load_files",
    "load_named",
    "make_split",
    "read_image_grid",
    "row_normalize",
    "symmetrize",
]


def known_names() -> set[str]:
    """The names that `load` knows, published and bundled."""
    return {entry.name for entry in list_named()} | {entry.name for entry in list_bundled()}


def load(
    source: str | Path,
    nodes: str | Path | None = None,
    *,
    data_dir: str | Path | None = None,
    **options: Any,
) -> NodeDataset:
    """A dataset by name, or from the user's files.

    Args:
        source: A published name (`list_named()`), a bundled one (`list_bundled()`), or the
            path of an edge file or of a folder with `edges.*` and `nodes.*`. A name wins
            over a folder of that name: write `./cora` for the folder.
        nodes: The node file, where `source` is an edge file.
        data_dir: Where published datasets lie (see `load_named`).
        options: For the loader: of `load_named`, of the bundled dataset, or of `load_files`.

    Raises:
        DataError: For an unknown name (with the nearest valid ones) or bad data.

    >>> load("csbm", phi=-0.5, num_nodes=40, num_features=8).num_nodes
    40
    """
    text = str(source)
    key = text.strip().lower().replace("_", "-")
    if nodes is None and not isinstance(source, Path):
        if key in CATALOG:
            return load_named(key, data_dir, **options)
        if key in BUNDLED:
            return BUNDLED[key].make(**options)
    path = Path(source).expanduser()
    looks_like_path = isinstance(source, Path) or "/" in text or path.suffix.lower() in SUFFIXES
    if nodes is not None or looks_like_path or path.exists():
        return load_files(path, nodes, **options)
    names = (*CATALOG, *BUNDLED)
    near = difflib.get_close_matches(key, names, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise DataError(
        f"Expected the name of a dataset or the path of a file (got {text!r}).{hint} Names: "
        f"{', '.join(names)}. Files: {', '.join(SUFFIXES)}.",
        value=source,
    )
