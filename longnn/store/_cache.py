"""In memory or on disk: the one decision, and the cache of prepared folders it rests on.

A prepared folder in the cache is keyed by the files, the options and the encoding. It is made again
where the files have changed or it was deleted: that costs time, and nothing else.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from longnn._base.memory import LEAST, in_words
from longnn.data import DataError, NodeDataset, Source
from longnn.data._rawfiles import cache_root
from longnn.store._arrays import StoreError
from longnn.store._disk import bytes_needed, fits_memory, is_prepared, limit_of, load_stored
from longnn.store._graph import GraphStore
from longnn.store._prepare import Form, OnProgress, files_of, how_made, prepare
from longnn.store._ranks import Ranks


def load_source(
    source: Source,
    data_dir: str | Path | None = None,
    *,
    rows: bool | None = None,
    memory: int | None = None,
    cache: str | Path | None = None,
    like: Form | None = None,
    ranks: Ranks | None = None,
    on_note: Callable[[str], None] | None = None,
) -> NodeDataset:
    """What a source names, in memory where it fits and else on disk.

    Args:
        source: the graph; it is ``dataset.source``, whatever was prepared of it.
        data_dir: where the files of named datasets are.
        rows, memory, cache, like, ranks, on_note: see :func:`stored_graph`.
    """
    try:
        graph = stored_graph(
            source, rows=rows, memory=memory, cache=cache, like=like, ranks=ranks, on_note=on_note
        )
    except StoreError as error:
        raise DataError(str(error)) from error
    if _is_folder(source):
        return load_stored(source.graph, rows=graph is not None, memory=memory)
    if graph is None:
        return source.load(data_dir)
    return load_stored(graph.folder, rows=True, memory=memory).with_source(source)


def stored_graph(
    source: Source,
    *,
    rows: bool | None = None,
    memory: int | None = None,
    like: Form | None = None,
    cache: str | Path | None = None,
    ranks: Ranks | None = None,
    on_note: Callable[[str], None] | None = None,
    on_progress: OnProgress | None = None,
) -> GraphStore | None:
    """The graph on disk, where memory does not hold it; None where it does.

    Named datasets are always held, and so are files that a prepared folder cannot hold (arcs,
    texts). Other files are prepared in the cache.

    Args:
        source: the graph.
        rows: True for a graph on disk, False for one in memory; None chooses by size.
        memory: bytes that may be used; by default half of what is free.
        like: a trained model: columns are encoded, and classes numbered, as it has them.
        cache: where files are prepared; by default see :func:`~longnn.data.cache_root`.
        ranks: those that train together, on rows: for several, files are prepared in any case.
        on_note: called with one line before files are prepared.
        on_progress: as of :func:`prepare`.

    Raises:
        DataError: as :func:`prepare`, for files that are too large for memory.
        StoreError: for a damaged folder, or too little room on the disk.
    """
    ranks = Ranks() if ranks is None else ranks
    rows = True if ranks.count > 1 else rows
    if source.is_named or rows is False:
        return None
    if _is_folder(source):
        graph = GraphStore.open(source.graph)
        _check_options(source, graph)
        return None if rows is None and fits_memory(graph, memory) else graph
    needed = memory_of_files(source)
    if not rows and (needed is None or needed <= limit_of(memory)):
        return None
    folder = ""
    if ranks.first:
        place = cached_place(source, cache, like)
        if on_note is not None:
            size = "" if needed is None else f", which take about {in_words(needed)} of memory,"
            on_note(f"the files of {source.name}{size} are prepared once, in {place}")
        folder = str(_prepare(source, place, memory, like, on_progress).folder)
    return GraphStore.open(ranks.agree(folder))


def _is_folder(source: Source) -> bool:
    return source.kind == "files" and is_prepared(source.graph)


def _check_options(source: Source, graph: GraphStore) -> None:
    """A prepared folder was read already: other options come too late."""
    made = {} if graph.source is None else graph.source.options
    for key, value in source.options.items():
        if made.get(key) != value:
            raise StoreError(
                f"Expected a prepared folder as it was read (got {key}={value!r}, and "
                f"{source.graph} has {made.get(key)!r}); prepare the files again with --data"
            )


def _prepare(
    source: Source,
    place: Path,
    memory: int | None,
    like: Form | None,
    on_progress: OnProgress | None,
) -> GraphStore:
    try:
        _require_room(source, place)
        return prepare(
            Path(source.graph),
            source.nodes,
            output=place,
            options=source.options,
            memory=max(LEAST, limit_of(memory)),
            like=like,
            on_progress=on_progress,
        )
    except OSError as error:
        remedy = "choose another folder with --cache or LONGNN_CACHE"
        raise OSError(error.errno, f"{error.strerror or error}; {remedy}") from error


def _require_room(source: Source, place: Path) -> None:
    """Room for the arrays, and as much again for the work."""
    size = size_of_files(source)
    if size is None or (place.exists() and any(place.iterdir())):
        return
    nodes, features, edges = size
    needed = 2 * (4 * nodes * features + 8 * edges + 16 * nodes)
    home = next(folder for folder in place.parents if folder.exists())
    free = shutil.disk_usage(home).free
    if needed > free:
        raise StoreError(
            f"Expected about {in_words(needed)} free for {place} (got {in_words(free)}); choose "
            "another folder with --cache or LONGNN_CACHE"
        )


def memory_of_files(source: Source) -> int | None:
    """Bytes that training on files in memory takes, roughly; None where a prepared folder cannot
    hold them, or they cannot be read: whoever reads them says why.
    """
    size = size_of_files(source)
    if size is None:
        return None
    return bytes_needed(nodes=size[0], features=size[1], entries=2 * size[2])


def size_of_files(source: Source) -> tuple[int, int, int] | None:
    """Nodes, features and edges, roughly: of text, by the length of its first lines."""
    try:
        files = files_of(source)
        if files is None or not files.are_tables:
            return None
        (edges, _), (rows, columns) = (
            (0, 0) if parts is None else parts.size() for parts in (files.edges, files.nodes)
        )
    except (DataError, OSError):
        return None
    return rows, max(columns - 1, 0), edges


def cached_place(source: Source, cache: str | Path | None = None, like: Form | None = None) -> Path:
    """The folder in the cache for files that are read in one way."""
    text = json.dumps(how_made(source, like=like), sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:12]
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in source.name)
    return cache_root(cache) / "graphs" / f"{name}-{key}"
