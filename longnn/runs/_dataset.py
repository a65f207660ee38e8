"""The graph of a run as a dataset, the one that was given or that its files name; and the category
of each node in a column of its table, whether it was used in training or not."""

import itertools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow

from longnn._base.late import Late
from longnn.config import Config
from longnn.data import DataError, NodeDataset, Source, from_data
from longnn.data._cells import is_number
from longnn.data._errors import few
from longnn.data._tensors import is_graph_data
from longnn.store._disk import ON_DISK, is_prepared, load_source
from longnn.store._graph import GraphStore
from longnn.store._prepare import files_of
from longnn.store._ranks import Ranks, join_ranks
from longnn.training import choose_device

pc = Late("pyarrow.compute")

OnNote = Callable[[str], None]
#: A graph: its name or path, where it comes from, or the thing itself.
GraphLike: TypeAlias = str | Path | Source | NodeDataset | Any  # a PyG Data, or tensors by name
#: Categories that a table shows; numbers of more values than the second are cut at their quartiles.
MOST, VALUES = 200, 20
GAP = "(missing)"


def as_dataset(
    data: GraphLike,
    data_dir: str | Path | None,
    memory: int | None,
    ranks: Ranks,
    on_note: OnNote | None,
    cache: str | Path | None = None,
) -> NodeDataset:
    """What was given, loaded; files that are too large for memory are prepared first."""
    if isinstance(data, NodeDataset):
        dataset = data
    elif is_graph_data(data):
        dataset = from_data(data)
    else:
        source = data if isinstance(data, Source) else Source.resolve(data)
        dataset = load_source(
            source, data_dir, memory=memory, cache=cache, ranks=ranks, on_note=on_note
        )
    require_rows(dataset, ranks)
    return dataset


def join(config: Config | Mapping[str, Any] | None) -> Ranks:
    """This process among those of ``torchrun``; alone without it."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Ranks()
    given = config.device if isinstance(config, Config) else (config or {}).get("device", "auto")
    return join_ranks(choose_device(given).type)


def require_rows(dataset: NodeDataset, ranks: Ranks) -> None:
    """Raise where ranks would all train the same: what they can share are rows.

    Raises:
        ValueError: for a graph in memory.
    """
    if ranks.count > 1 and not dataset.backing.by_rows:
        raise ValueError(
            "Expected a prepared folder, or files to prepare, under torchrun: its processes share "
            f"the rows of a graph on disk (got {dataset.name!r} in memory); start longnn without it"
        )


def read_source(fields: Mapping[str, Any], file: Path) -> Source:
    """Where a graph comes from, as a file of a run says it; an error names the file."""
    try:
        return Source.from_dict(fields)
    except ValueError as error:
        raise DataError(f"{file}: {error}") from error


def load_graph(source: Source, file: Path, fingerprint: str, **options: Any) -> NodeDataset:
    """The graph of a run; an error that names no other file names the one that asks for it.

    Its fingerprint says whether it was on disk; ``options`` are those of :func:`load_source`.
    """
    try:
        return load_source(source, rows=fingerprint.startswith(ON_DISK), **options)
    except DataError as error:
        if error.path is not None:
            raise
        raise DataError(str(error), path=file) from error


def in_files(source: Source | None) -> Source | None:
    """Where a graph comes from; of a prepared one, its files."""
    if source is not None and is_prepared(source.graph):
        return GraphStore.open(source.graph).source
    return source


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
    source = in_files(dataset.source)
    files = None if source is None else files_of(source)
    if files is None:
        names = [] if dataset.columns is None else dataset.columns.names
        there = few(names, most=8) or "none"
        raise DataError(f"Expected a column of the nodes (got {column!r}; there are: {there})")
    ids, cells = files.cells(column)
    nodes = pyarrow.array(map(str, dataset.ids), pyarrow.string())
    places = pc.index_in(nodes, value_set=ids)  # none of nodes that only edges name
    return pyarrow.array(pc.take(cells, places).to_pylist(), pyarrow.string())
