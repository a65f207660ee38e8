"""Files that memory does not hold: what they would take there, and the folder they are prepared in.

The folder stands beside the files, or in the current one where theirs cannot be written. It is used
again as long as the files and the options are the same.
"""

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from longnn._base.memory import LEAST, available_memory, in_words
from longnn.data import STORED_SUFFIXES, DataError, Source, StoredTable, TextStream, graph_name
from longnn.store._graph import GraphStore
from longnn.store._manifest import StoreError
from longnn.store._parts import SUFFIXES, Parts, find_parts
from longnn.store._prepare import FOREIGN_OPTIONS, OnProgress, foreign_name, how_made, prepare
from longnn.store._ranks import Ranks
from longnn.store._rows import SHARE, bytes_needed, is_prepared

#: How much larger a compressed text is, about, when it is read.
PACKED = 4
#: Memory of a system that does not say how much is free.
UNKNOWN = 1 << 42


def prepare_large(
    source: Source,
    *,
    memory: int | None = None,
    ranks: Ranks | None = None,
    on_note: Callable[[str], None] | None = None,
    on_progress: OnProgress | None = None,
) -> Source:
    """A source that can be trained on: itself, or the prepared folder of files that do not fit.

    Args:
        source: a graph. A name and a prepared folder stay what they are, and so do files that a
            prepared folder cannot hold (arcs, texts).
        memory: bytes that may be used; by default half of what is free.
        ranks: those that train together, on rows: for several, files are prepared in any case.
        on_note: called with one line before the work begins.
        on_progress: as of :func:`prepare`.

    Raises:
        DataError: as :func:`prepare`, for files that are too large for memory.
    """
    ranks = Ranks() if ranks is None else ranks
    if source.is_named or is_prepared(source.graph):
        return source
    needed = memory_of_files(source)
    if ranks.count == 1 and (needed is None or needed <= limit_of(memory)):
        return source
    folder = ""
    if ranks.first:
        place = prepared_place(source)
        if on_note is not None:
            size = "" if needed is None else f", which take about {in_words(needed)} of memory,"
            on_note(f"the files of {source.name}{size} are prepared once, in {place}")
        _prepare(source, place, memory, on_progress)
        folder = str(place)
    return Source.resolve(Path(ranks.agree(folder)))


def _prepare(
    source: Source, place: Path, memory: int | None, on_progress: OnProgress | None
) -> None:
    try:
        prepare(
            Path(source.graph),
            source.nodes,
            output=place,
            options=source.options,
            memory=max(LEAST, limit_of(memory)),
            on_progress=on_progress,
        )
    except DataError as error:
        raise DataError(
            f"{error} To train on these files in memory, give more with --memory."
        ) from error


def limit_of(memory: int | None) -> int:
    """Bytes that a graph in memory may take: those given, or a share of what is free."""
    free = available_memory()
    if memory is not None:
        return memory
    return UNKNOWN if free is None else int(SHARE * free)


def memory_of_files(source: Source) -> int | None:
    """Bytes that training on files in memory takes, roughly; None where a prepared folder cannot
    hold them, or they cannot be read: whoever reads them says why.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "edges.csv").write_text("source,target\\n" + "1,2\\n" * 1000)
    >>> 120_000 < memory_of_files(Source.resolve(folder)) < 140_000
    True
    """
    if any(source.options.get(name) for name in FOREIGN_OPTIONS):
        return None
    nodes = None if source.nodes is None else Path(source.nodes)
    try:
        parts = find_parts(Path(source.graph), nodes)
        if any(part is not None and part.suffix not in SUFFIXES for part in parts):
            return None
        (edges, _), (rows, columns) = (
            (0, 0) if part is None else _table_size(part) for part in parts
        )
    except (DataError, OSError):
        return None
    return bytes_needed(nodes=rows, features=max(columns - 1, 0), entries=2 * edges)


def _table_size(parts: Parts) -> tuple[int, int]:
    """Rows and columns; the rows of a text by the length of its first lines."""
    if parts.suffix in STORED_SUFFIXES:
        table = StoredTable.open(parts.files, parts.path, parts.path)
        return len(table), len(table.names)
    first = parts.files[0]
    stream = TextStream(first)
    head = stream.text.content
    line = len(head) / max(head.count(b"\n"), 1)
    packed = PACKED if first.suffix != parts.suffix else 1
    return int(packed * parts.bytes / line), len(stream.names)


def prepared_place(source: Source) -> Path:
    """The folder to prepare files in: a free one, or that of the same files, perhaps changed."""
    path, name = Path(source.graph), graph_name(Path(source.graph))
    home = path if path.is_dir() or path.parent.name != name else path.parent  # of edges.csv
    parent = home.parent if os.access(home.parent, os.W_OK) else Path.cwd()
    return next(place for place in _places(parent / name) if _serves(place, source))


def _places(stem: Path) -> Iterator[Path]:
    for number in count(1):
        yield stem.with_name(f"{stem.name}-prepared" + (f"-{number}" if number > 1 else ""))


def _serves(place: Path, source: Source) -> bool:
    if not place.exists():
        return True
    if not place.is_dir() or foreign_name(place):
        return False
    if not is_prepared(place):
        return True  # left by one that was interrupted
    try:
        found = GraphStore.open(place).about.get("source", {})
    except StoreError:  # of another version
        return False
    return {key: value for key, value in found.items() if key != "files"} == how_made(source)
