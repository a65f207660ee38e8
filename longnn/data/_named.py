"""Benchmark datasets by name.

Features of the bag-of-words datasets are row-normalised, as in the tables of the literature. How
raw files are found, cached and downloaded is the business of :mod:`longnn.data._rawfiles`; which
datasets there are is that of :mod:`longnn.data._catalog`.
"""

from pathlib import Path

import torch

from longnn.data._arcs import Directed, check_directed
from longnn.data._catalog import DEFECTIVE_CORNELL, NamedDataset, find_named, list_named
from longnn.data._convert import from_data
from longnn.data._dataset import NodeDataset
from longnn.data._errors import DataError
from longnn.data._features import row_normalize as _row_normalize
from longnn.data._rawfiles import data_root, load_raw
from longnn.data._rawreaders import READERS
from longnn.data._tensors import GraphTensors


def load_named(
    name: str,
    data_dir: str | Path | None = None,
    *,
    row_normalize: bool | None = None,
    directed: Directed = False,
) -> NodeDataset:
    """A named dataset.

    Args:
        name: one of :func:`list_named`; case, spaces and underscores do not matter.
        data_dir: the data folder; default ``$LONGNN_DATA``, else one in the user's cache. It is
            never written to if the raw files are there already.
        row_normalize: override whether features are row-normalised (default: as in the tables of
            the literature).
        directed: keep arcs, where the files have them (see :class:`NamedDataset`); ``"auto"`` keeps
            them if one has no reverse. By default edges are made two-way, as in the tables.

    Raises:
        DataError: for an unknown name (with the nearest ones) or damaged files.
        DatasetUnavailable: if files are missing and cannot be downloaded.
    """
    entry = find_named(name)
    if check_directed(directed) is True and not entry.arcs:
        having = ", ".join(other.name for other in list_named() if other.arcs)
        raise DataError(
            f"Expected directed=false for {entry.name!r}, whose files list undirected edges (got "
            f"true). Datasets with arcs: {having}."
        )
    data = load_raw(entry, READERS[entry.reader], data_dir)
    normalize = entry.row_normalize if row_normalize is None else row_normalize
    if normalize:
        data.x = _row_normalize(data.x.float())
    try:
        return from_data(
            data,
            name=entry.name,
            task="classification",
            notes=_notes(entry, data),
            default_split=entry.split,
            directed=directed if entry.arcs else False,
            ready=True,
        )
    except DataError as error:
        raise error.named(data_root(data_dir) / entry.folder) from error.__cause__


def _notes(entry: NamedDataset, data: GraphTensors) -> list[str]:
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
