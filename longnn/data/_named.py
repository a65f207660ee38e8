"""Published benchmarks by name.

Features of the bag-of-words datasets are row-normalised, as in the published tables. Where
the files come from is `rawfiles`' business; which datasets there are is `catalog`'s.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import torch
from torch_geometric.data import Data

from longnn.data._catalog import CATALOG, DEFECTIVE_CORNELL, NamedEntry
from longnn.data._convert import from_data
from longnn.data._dataset import NodeDataset
from longnn.data._dataset import row_normalize as _row_normalize
from longnn.data._errors import DataError
from longnn.data._rawfiles import RawFiles, load_raw


def load_named(
    name: str, data_dir: str | Path | None = None, *, row_normalize: bool | None = None
) -> NodeDataset:
    """A published dataset by its name.

    Args:
        name: One of `list_named()`; case, spaces and underscores do not matter.
        data_dir: The data folder; default `$LONGNN_DATA`, else one in the user's cache. It is
            never written to where the raw files are there already.
        row_normalize: Override whether features are row-normalised (default: as published).

    Raises:
        DataError: For an unknown name (with the nearest ones) or damaged files.
        DatasetUnavailable: If files are missing and cannot be downloaded.
    """
    entry = find_named(name)
    raw = RawFiles(entry.name, entry.folder, entry.files, entry.read, entry.downloadable)
    data = load_raw(raw, data_dir)
    normalize = entry.row_normalize if row_normalize is None else row_normalize
    if normalize:
        data.x = _row_normalize(data.x.float())
    return from_data(
        data,
        name=entry.name,
        task="classification",
        notes=_notes(entry, data),
        default_split=entry.split,
    )


def list_named() -> tuple[NamedEntry, ...]:
    """The table of named datasets, in the order of listing."""
    return tuple(CATALOG.values())


def find_named(name: str) -> NamedEntry:
    """The entry of that name.

    >>> find_named("Cora").nodes
    2708
    """
    key = name.strip().lower().replace("_", "-").replace(" ", "-")
    if key in CATALOG:
        return CATALOG[key]
    near = difflib.get_close_matches(key, CATALOG, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise DataError(
        f"Expected the name of a dataset (got {name!r}).{hint} Choices: {', '.join(CATALOG)}.",
        value=name,
    )


def _notes(entry: NamedEntry, data: Data) -> list[str]:
    notes = [entry.note] if entry.note else []
    if entry.name == "cornell" and int(torch.bincount(data.y.reshape(-1)).min()) == 1:
        notes.append(DEFECTIVE_CORNELL)  # Texas has a class of one node, Cornell has not
    found = (len(data.x), data.x.shape[1])
    if found != (entry.nodes, entry.features):
        notes.append(
            f"The files hold {found[0]} nodes and {found[1]} features; the published "
            f"{entry.name} has {entry.nodes} and {entry.features}."
        )
    return notes
