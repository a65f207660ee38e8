"""A table too large for memory, in one or several files; columns are read when asked for.

It is a :class:`~longnn.data._tables.Table` to all who read columns, so that labels, splits and
features are made by the same code as in memory. Text is first stored as Parquet, batch by batch.
A folder of parts is what Spark, DuckDB or Dask write: many files of one kind.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from longnn.data._errors import DataError, require_file
from longnn.data._files import find_nodes_beside
from longnn.data._tables import RAISED, TABLE_SUFFIXES, Table, plain_column
from longnn.data._text import (
    SEPARATORS,
    Header,
    TextStream,
    check_names,
    table_stem,
    table_suffix,
    unreadable,
)

IPC_SUFFIXES = (".arrow", ".feather")
STORED_SUFFIXES = (".parquet", *IPC_SUFFIXES)


class StoredColumns(Mapping[str, pa.Array]):
    """The columns of Parquet or Arrow files, which are parts of one table, in this order.

    Raises:
        DataError: for a damaged file, or one whose columns are not those of the first.
    """

    def __init__(self, parts: Sequence[Path], path: Path) -> None:
        self.parts, self.path, self.rows = tuple(parts), path, 0
        self.schema: pa.Schema | None = None
        for part in self.parts:
            schema, rows = _look_at(part)
            if self.schema is None:
                self.schema = schema
                check_names(path, None, schema.names)
            missing = [name for name in self.schema.names if name not in schema.names]
            if missing:
                raise DataError(
                    f"Expected the columns of {self.parts[0].name} in every part (got no "
                    f"{missing[0]!r}).",
                    path=part,
                )
            self.rows += rows
        if self.rows == 0:
            raise DataError("Expected at least one row (got none).", path=path)
        self._last: tuple[str, pa.Array] | None = None
        self.added = pa.array([], pa.string())  # ids of nodes that only the edges name
        self.key = ""

    def __getitem__(self, name: str) -> pa.Array:
        if self._last is not None and self._last[0] == name:
            return self._last[1]
        self._last = None  # one column at a time
        if name not in self:
            raise KeyError(name)
        pieces: list[pa.Array] = []
        kind = self.schema.field(name).type  # type: ignore[union-attr]
        for part in self.parts:
            try:
                column = _read_column(part, name)
                column.validate(full=True)  # of texts, that they are UTF-8
                pieces += column.cast(kind).chunks
            except (pa.ArrowException, OSError, *RAISED) as error:
                raise unreadable(part, error) from error
        column = plain_column(pa.chunked_array(pieces, kind), self.path, name)
        if len(self.added):
            gaps = pa.nulls(len(self.added), column.type)
            texts = name == self.key
            column = column.cast(pa.string()) if texts else column
            column = pa.concat_arrays([column, self.added if texts else gaps])
        self._last = (name, column)
        return column

    def __contains__(self, name: object) -> bool:
        return name in self.schema.names  # type: ignore[union-attr]

    def __iter__(self) -> Iterator[str]:
        return iter(self.schema.names)  # type: ignore[union-attr]

    def __len__(self) -> int:
        return len(self.schema.names)  # type: ignore[union-attr]


@dataclass(frozen=True, eq=False)
class StoredTable(Table):
    """A table in files, its columns read one at a time."""

    sources: tuple[Path, ...] = ()
    header: Header = "auto"

    @classmethod
    def open(
        cls, parts: Sequence[Path], path: Path, room: Path, header: Header = "auto"
    ) -> "StoredTable":
        """A table of one or several files of one kind.

        Args:
            parts: the files, in order.
            path: what the user named, for messages.
            room: a folder for text that is stored as Parquet.
            header: whether the first line of text has names.

        Raises:
            DataError: naming the file that cannot be read.
        """
        if table_suffix(parts[0]) in STORED_SUFFIXES:
            columns = StoredColumns(parts, path)
            return cls(cast("dict[str, pa.Array]", columns), path, sources=tuple(parts))
        made, streams = [], []
        for number, part in enumerate(parts):
            stream = TextStream(part, header)
            made.append(room / f"{path.name}-{number:05d}.parquet")
            streams.append(stream)
            with pq.ParquetWriter(
                made[-1], pa.schema([(name, pa.string()) for name in stream.names])
            ) as writer:
                for batch in stream.batches():
                    writer.write_batch(batch)
        first = streams[0]
        return cls(
            cast("dict[str, pa.Array]", StoredColumns(made, path)),
            path,
            has_header=first.has_header,
            decimals=frozenset.intersection(*(stream.decimals for stream in streams)),
            notes=tuple(dict.fromkeys(note for stream in streams for note in stream.notes)),
            doubt=first.doubt if len(first.names) == 1 else "",
            sources=tuple(parts),
            header=header,
        )

    @property
    def parts(self) -> tuple[Path, ...]:
        """The Parquet or Arrow files that hold it."""
        return cast(StoredColumns, self.columns).parts

    def __len__(self) -> int:
        columns = cast(StoredColumns, self.columns)
        return columns.rows + len(columns.added)

    def with_nodes(self, key: str, ids: pa.Array, note: str) -> "StoredTable":
        """The table and a row of gaps for each of some nodes; it is changed."""
        columns = cast(StoredColumns, self.columns)
        columns.key, columns.added, columns._last = key, ids.cast(pa.string()), None
        return replace(self, notes=(*self.notes, note))

    def error(
        self, message: str, row: int | None = None, column: str | None = None, value: object = None
    ) -> DataError:
        """As of a table in memory; of several parts it names the one at fault."""
        if row is None:
            return super().error(message, None, column, value)
        path, line = line_in_parts(self.sources, row, self.header)
        return DataError(message, path=path, row=line, column=column, value=value)

    def line(self, row: int) -> int:
        return line_in_parts(self.sources, row, self.header)[1]


def line_in_parts(parts: Sequence[Path], row: int, header: Header = "auto") -> tuple[Path, int]:
    """The file that holds a row of all, counted from 0; and the line of a text file or the row of
    any other, counted from 1.
    """
    for part in parts:
        is_text = table_suffix(part) in SEPARATORS
        if part == parts[-1]:
            break
        batches = TextStream(part, header).batches() if is_text else ()
        count = sum(batch.num_rows for batch in batches) if is_text else _look_at(part)[1]
        if row < count:
            break
        row -= count
    return part, TextStream(part, header).line(row) if is_text else row + 1


def _look_at(part: Path) -> tuple[pa.Schema, int]:
    """The columns of a file and its number of rows."""
    try:
        if table_suffix(part) in IPC_SUFFIXES:
            with pa.memory_map(str(part)) as source, pa.ipc.open_file(source) as file:
                rows = sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))
                return file.schema, rows
        with pq.ParquetFile(part) as file:
            return file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError, *RAISED) as error:
        raise unreadable(part, error) from error


def _read_column(part: Path, name: str) -> pa.ChunkedArray:
    if table_suffix(part) in IPC_SUFFIXES:
        with pa.memory_map(str(part)) as source:
            schema = pa.ipc.open_file(source).schema
            options = pa.ipc.IpcReadOptions(included_fields=[schema.names.index(name)])
            return pa.ipc.open_file(source, options=options).read_all()[name]
    with pq.ParquetFile(part) as file:
        return file.read(columns=[name])[name]


PART_SUFFIXES = tuple(dict.fromkeys((*TABLE_SUFFIXES, *STORED_SUFFIXES)))


@dataclass(frozen=True)
class Parts:
    """A table in one or several files."""

    path: Path
    files: tuple[Path, ...]
    header: Header = "auto"

    @classmethod
    def of(cls, path: Path, header: Header = "auto") -> "Parts":
        """The parts in a folder, or a file alone.

        Raises:
            DataError: for a folder without parts, or with parts of several kinds.
        """
        if not path.is_dir():
            require_file(path)
            return cls(path, (path,), header)
        found = [
            file
            for file in sorted(path.rglob("*"))
            if file.is_file()
            and table_suffix(file) in PART_SUFFIXES
            and not any(part[0] in "._" for part in file.relative_to(path).parts)
        ]
        kinds = sorted({table_suffix(file) for file in found})
        if len(kinds) != 1:
            got = ", ".join(kinds) or "none"
            choices = ", ".join(PART_SUFFIXES)
            raise DataError(
                f"Expected a folder with parts of one kind, {choices} (got {got}).", path=path
            )
        return cls(path, tuple(found), header)

    @property
    def suffix(self) -> str:
        """The kind of file."""
        return table_suffix(self.files[0])

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(file.stat().st_size for file in self.files)

    def stamp(self) -> list[list[Any]]:
        """Name, size and time of each file: whether they are still the same."""
        states = [(file, file.stat()) for file in self.files]
        return [[str(file), state.st_size, state.st_mtime_ns] for file, state in states]


def find_parts(
    graph: Path, nodes: Path | None, header: Header = "auto"
) -> tuple[Parts, Parts | None]:
    """The edges, and the nodes if there are any.

    Args:
        graph: an edge file, a folder of its parts, or a folder with ``edges.*`` and perhaps
            ``nodes.*``, each a file or a folder (then ``edges/`` and ``nodes/``).
        nodes: the node file or a folder of its parts, where it is not beside the edges.
        header: whether the first line of text has names.

    Raises:
        DataError: where there is nothing, or more than one of a kind.
    """
    if not graph.is_dir():
        beside = find_nodes_beside(graph) if nodes is None else nodes
        return Parts.of(graph, header), None if beside is None else Parts.of(beside, header)
    edges = _called("edges", graph)
    if edges is None:
        return Parts.of(graph, header), None if nodes is None else Parts.of(nodes, header)
    if nodes is None:
        nodes = _called("nodes", graph)
    if any(table_stem(path) == "features" for path in graph.glob("features.*")):
        raise DataError(
            "Expected features in the node file (got a file features.*, which a prepared graph "
            "cannot have); join it to the nodes.",
            path=graph,
        )
    return Parts.of(edges, header), None if nodes is None else Parts.of(nodes, header)


def _called(stem: str, folder: Path) -> Path | None:
    """The file ``stem.*`` of any kind, or the folder ``stem``."""
    found = [
        path
        for path in sorted([*folder.glob(stem), *folder.glob(f"{stem}.*")])
        if (path.is_dir() or path.suffix) and table_stem(path) == stem
    ]
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise DataError(f"Expected one {stem} file or folder (got {names}).", path=folder)
    return found[0] if found else None
