"""A table too large for memory: its columns are read one at a time, when asked for.

It is a :class:`~longnn.data._tables.Table` to all who read columns, so that labels, splits and
features are made by the same code as in memory. Text is first stored as Parquet, batch by batch.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq

from longnn.data._errors import DataError
from longnn.data._readtable import RAISED, check_names, plain_column, unreadable
from longnn.data._tables import Table
from longnn.data._textfile import SEPARATORS, table_suffix
from longnn.data._textstream import TextStream

IPC_SUFFIXES = (".arrow", ".feather")
STORED_SUFFIXES = (".parquet", *IPC_SUFFIXES)


class StoredColumns(Mapping[str, pa.Array]):
    """The columns of Parquet or Arrow files, which are parts of one table, in this order.

    Args:
        parts: the files, of one kind.
        path: what the user named, for messages.

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
        self._last = (name, plain_column(pa.chunked_array(pieces, kind), self.path, name))
        return self._last[1]

    def __contains__(self, name: object) -> bool:
        return name in self.schema.names  # type: ignore[union-attr]

    def __iter__(self) -> Iterator[str]:
        return iter(self.schema.names)  # type: ignore[union-attr]

    def __len__(self) -> int:
        return len(self.schema.names)  # type: ignore[union-attr]


@dataclass(frozen=True, eq=False)
class StoredTable(Table):
    """A table in files, its columns read one at a time.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "nodes.csv")
    ...     _ = path.write_text("id,age\\n007,41\\n")
    ...     table = StoredTable.open([path], path, Path(folder))
    ...     table.names, len(table), table.texts("id").to_pylist(), table.numbers("age")
    (('id', 'age'), 1, ['007'], array([41.]))
    """

    @classmethod
    def open(cls, parts: Sequence[Path], path: Path, room: Path) -> "StoredTable":
        """A table of one or several files of one kind.

        Args:
            parts: the files, in order.
            path: what the user named, for messages.
            room: a folder for text that is stored as Parquet.

        Raises:
            DataError: naming the file that cannot be read.
        """
        if table_suffix(parts[0]) in STORED_SUFFIXES:
            columns = StoredColumns(parts, path)
            return cls(cast("dict[str, pa.Array]", columns), path)
        made, streams = [], []
        for number, part in enumerate(parts):
            stream = TextStream(part)
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
            doubt=first.text.doubt if len(first.names) == 1 else "",
        )

    @property
    def parts(self) -> tuple[Path, ...]:
        """The Parquet or Arrow files that hold it."""
        return cast(StoredColumns, self.columns).parts

    def __len__(self) -> int:
        return cast(StoredColumns, self.columns).rows

    def line(self, row: int) -> int:
        """As of a table in memory, where no cell of a text file holds a line break."""
        is_text = self.path is not None and table_suffix(self.path) in SEPARATORS
        return row + 1 + int(is_text and self.has_header)


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
