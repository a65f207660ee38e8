"""Benchmark datasets by name.

Features of the bag-of-words datasets are row-normalised, as in the tables of the literature. How
raw files are found, cached and downloaded is the business of :mod:`longnn.data._rawfiles`; which
datasets there are is that of :mod:`longnn.data._catalog`.
"""

import importlib
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch_geometric import datasets
from torch_geometric.data import Data

from longnn.data._catalog import DEFECTIVE_CORNELL, NamedDataset, find_named
from longnn.data._convert import from_data
from longnn.data._dataset import NodeDataset
from longnn.data._errors import DatasetUnavailable
from longnn.data._features import row_normalize as _row_normalize
from longnn.data._rawfiles import RawFiles, load_raw


def load_named(
    name: str, data_dir: str | Path | None = None, *, row_normalize: bool | None = None
) -> NodeDataset:
    """A named dataset.

    Args:
        name: one of :func:`list_named`; case, spaces and underscores do not matter.
        data_dir: the data folder; default ``$LONGNN_DATA``, else one in the user's cache. It is
            never written to if the raw files are there already.
        row_normalize: override whether features are row-normalised (default: as in the tables of
            the literature).

    Raises:
        DataError: for an unknown name (with the nearest ones) or damaged files.
        DatasetUnavailable: if files are missing and cannot be downloaded.
    """
    entry = find_named(name)
    read = partial(_read_ogb if entry.reader == "ogb" else _read_pyg, entry)
    raw = RawFiles(entry.name, entry.folder, entry.files, read, entry.downloadable)
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
        ready=True,
    )


def _read_pyg(entry: NamedDataset, data_dir: Path) -> Data:
    reader = getattr(datasets, entry.reader)
    return reader(str(data_dir / entry.root), **entry.reader_options)[0]


def _read_ogb(entry: NamedDataset, data_dir: Path) -> Data:
    """Through ogb's library-agnostic reader, which unpickles nothing on the way."""
    try:
        reader: Any = importlib.import_module("ogb.nodeproppred").NodePropPredDataset
    except ImportError as error:
        raise DatasetUnavailable(
            f"Dataset {entry.name!r} needs the optional package ogb: pip install ogb."
        ) from error
    dataset = reader(name=entry.name, root=str(data_dir))
    graph, labels = dataset[0]
    data = Data(
        x=torch.from_numpy(graph["node_feat"]),
        edge_index=torch.from_numpy(graph["edge_index"]),
        y=torch.from_numpy(labels).reshape(-1),
    )
    nodes = dataset.get_idx_split()
    for key, subset in (("train_mask", "train"), ("val_mask", "valid"), ("test_mask", "test")):
        mask = torch.zeros(len(data.x), dtype=torch.bool)
        mask[torch.as_tensor(nodes[subset])] = True
        data[key] = mask
    return data


def _notes(entry: NamedDataset, data: Data) -> list[str]:
    notes = [entry.note] if entry.note else []
    if entry.name == "cornell" and int(torch.bincount(data.y.reshape(-1)).min()) == 1:
        notes.append(DEFECTIVE_CORNELL)  # Texas has a class of one node, Cornell has not
    found = (len(data.x), data.x.shape[1])
    if found != (entry.nodes, entry.features):
        notes.append(
            f"The files hold {found[0]} nodes and {found[1]} features, but "
            f"{entry.name} has {entry.nodes} and {entry.features}."
        )
    return notes
