"""In memory or on disk: the one decision, and the cache of prepared folders it rests on.

A prepared folder in the cache is keyed by the files, the options and the encoding. It is made again
where the files have changed or it was deleted: that costs time, and nothing else.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from longnn._base.memory import LEAST, in_words, usable_memory
from longnn.data import DataError, NodeDataset, Source
from longnn.data._encoding import Encoding
from longnn.data._rawfiles import cache_root
from longnn.store._arrays import StoreError, require_disk
from longnn.store._disk import bytes_needed, is_prepared, load_stored
from longnn.store._prepare import files_of, how_made, prepare
from longnn.store._ranks import Ranks

#: Of errors of the disk.
REMEDY = "choose another folder with --cache or LONGNN_CACHE"


def load_source(
    source: Source,
    data_dir: str | Path | None = None,
    *,
    rows: bool | None = None,
    memory: int | None = None,
    cache: str | Path | None = None,
    like: Encoding | None = None,
    ranks: Ranks | None = None,
    on_note: Callable[[str], None] | None = None,
) -> NodeDataset:
    """What a source names, in memory where it fits and else on disk.

    Named datasets are always in memory, and so are files that a prepared folder cannot hold. Other
    files are prepared in the cache where memory does not hold them.

    Args:
        source: the graph; it is ``dataset.source``, whatever was prepared of it.
        data_dir: where the files of named datasets are.
        rows: True for a graph on disk, False for one in memory; None chooses by size.
        memory: bytes that may be used; by default half of what is free.
        cache: where files are prepared; by default see :func:`~longnn.data.cache_root`.
        like: the encoding of a trained model: columns become the features that it has.
        ranks: those that train together, on rows: for several, files are prepared in any case.
        on_note: called with one line before files are prepared.

    Raises:
        DataError: naming what is wrong with the data, with a prepared folder, or that there is too
            little room on the disk.
    """
    ranks = Ranks() if ranks is None else ranks
    rows = True if ranks.count > 1 else rows
    if source.kind == "files" and is_prepared(source.graph):
        dataset = load_stored(source.graph, rows=rows, memory=memory)
        made = {} if dataset.source is None else dataset.source.options
        for key, value in source.options.items():
            if made.get(key) != value:  # it was read already: other options come too late
                raise StoreError(
                    f"Expected a prepared folder as it was read (got {key}={value!r}, and "
                    f"{source.graph} has {made.get(key)!r}); prepare the files again with --data"
                )
        return dataset
    size = None if source.is_named or rows is False else size_of_files(source)
    needed = 0 if size is None else bytes_needed(**size)
    if source.is_named or not (rows or needed > usable_memory(memory)):
        return source.load(data_dir)
    folder = ""
    if ranks.first:
        place = cached_place(source, cache, like)
        if on_note is not None:
            words = f", which take about {in_words(needed)} of memory," if size else ""
            on_note(f"the files of {source.name}{words} are prepared once, in {place}")
        if size is not None and not (place.exists() and any(place.iterdir())):
            arrays = 4 * size["nodes"] * size["features"] + 4 * size["entries"] + 16 * size["nodes"]
            require_disk(place, 2 * arrays, REMEDY)  # as much again for the work
        try:
            graph = prepare(
                Path(source.graph),
                source.nodes,
                output=place,
                options=source.options,
                memory=max(LEAST, usable_memory(memory)),
                like=like,
            )
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror or error}; {REMEDY}") from error
        folder = str(graph.folder)
    return load_stored(ranks.agree(folder), rows=True, memory=memory).with_source(source)


def size_of_files(source: Source) -> dict[str, int] | None:
    """Nodes, features and entries, roughly: of text, by the length of its first lines. None where a
    prepared folder cannot hold them, or they cannot be read: whoever reads them says why.
    """
    try:
        files = files_of(source)
        if files is None or not files.are_tables:
            return None
        edges = files.edges.size()[0]
        rows, columns = (0, 0) if files.nodes is None else files.nodes.size()
    except (DataError, OSError):
        return None
    return {"nodes": rows, "features": max(columns - 1, 0), "entries": 2 * edges}


def cached_place(
    source: Source, cache: str | Path | None = None, like: Encoding | None = None
) -> Path:
    """The folder in the cache for files that are read in one way."""
    text = json.dumps(how_made(source, like), sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:12]
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in source.name)
    return cache_root(cache) / "graphs" / f"{name}-{key}"
