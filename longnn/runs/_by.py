"""The category of each node in a column of its table, whether it was used in training or not."""

import itertools
from typing import Any

import numpy as np
import pyarrow

from longnn._base.late import Late
from longnn.data import DataError, NodeDataset
from longnn.data._cells import is_number
from longnn.data._errors import few
from longnn.store._disk import is_prepared
from longnn.store._graph import GraphStore
from longnn.store._prepare import files_of

pc = Late("pyarrow.compute")

#: Categories that a table shows; numbers of more values than the second are cut at their quartiles.
MOST, VALUES = 200, 20
GAP = "(missing)"


def categories_of(dataset: NodeDataset, column: str) -> tuple[list[str], np.ndarray]:
    """The categories of a column, and which of them each node has, int64 (nodes,).

    Raises:
        DataError: where there is no such column, or each node has a category of its own.
    """
    cells = _cells(dataset, column)
    distinct = cells.dictionary_encode()
    names, codes = distinct.dictionary.to_pylist(), distinct.indices.fill_null(-1).to_numpy()
    if len(names) > VALUES and all(map(is_number, names)):
        values = np.array([*map(float, names), np.nan])[codes]
        ends = np.nanquantile(values, [0, 0.25, 0.5, 0.75, 1])
        codes = np.where(np.isnan(values), -1, np.searchsorted(ends[1:4], values))
        names = [f"{low:.4g} to {high:.4g}" for low, high in itertools.pairwise(ends)]
    if len(names) > MOST:
        raise DataError(
            f"Expected a column of at most {MOST} categories (got {len(names):,} in {column!r})"
        )
    if (codes < 0).any():
        names, codes = [*names, GAP], np.where(codes < 0, len(names), codes)
    return names, codes


def _cells(dataset: NodeDataset, column: str) -> Any:
    """What each node has in a column, as text."""
    if dataset.columns is not None and column in dataset.columns.names:
        return pyarrow.array(dataset.columns.cells(column).to_pylist(), pyarrow.string())
    source = dataset.source
    if source is not None and is_prepared(source.graph):
        source = GraphStore.open(source.graph).source
    files = None if source is None else files_of(source)
    if files is None:
        names = [] if dataset.columns is None else dataset.columns.names
        there = few(names, most=8) or "none"
        raise DataError(f"Expected a column of the nodes (got {column!r}; there are: {there})")
    ids, cells = files.cells(column)
    nodes = pyarrow.array(map(str, dataset.ids), pyarrow.string())
    places = pc.index_in(nodes, value_set=ids)  # none of nodes that only edges name
    return pyarrow.array(pc.take(cells, places).to_pylist(), pyarrow.string())
