"""Text and Parquet files, and Arrow tables, as a :class:`~longnn.data._tables.Table`.

Text files are read as text by Arrow's reader; a record with too few or too many cells is an error
that names its line.
"""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from longnn._base.memory import in_words
from longnn.data._errors import DataError, MissingFileError
from longnn.data._limits import require_memory
from longnn.data._tables import Table
from longnn.data._text import (
    COMPRESSED,
    SEPARATORS,
    TextStream,
    check_names,
    table_suffix,
    unreadable,
)

TABLE_SUFFIXES = (*SEPARATORS, ".parquet")
#: What Arrow raises for a damaged file besides its own errors.
RAISED = (ArithmeticError, LookupError, MemoryError, NotImplementedError, TypeError, ValueError)


def read_table(path: str | Path) -> Table:
    """Read a text table (any usual separator, encoding and compression) or a Parquet file.

    A text file whose first line holds only numbers has no header: its columns are then named
    ``column_1``, ``column_2``, ...

    Raises:
        MissingFileError: if there is no such file.
        DataError: if it is empty, truncated or not of the format that its name says.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "nodes.csv")
    ...     _ = path.write_text("id,age\\n007,41\\n")
    ...     table = read_table(path)
    >>> table.names, table.texts("id").to_pylist(), table.numbers("age")
    (('id', 'age'), ['007'], array([41.]))
    """
    path = Path(path)
    if not path.exists():
        raise MissingFileError("Expected a file here (found none).", path=path)
    suffix = table_suffix(path)
    if suffix not in TABLE_SUFFIXES:
        raise DataError(
            f"Expected one of {', '.join(TABLE_SUFFIXES)}, a text file perhaps with "
            f"{', '.join(COMPRESSED)} (got {suffix!r}).",
            path=path,
        )
    try:
        table = _read_parquet(path) if suffix == ".parquet" else _read_text_table(path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise unreadable(path, error) from error
    if len(table) == 0:
        raise DataError("Expected at least one row (got none).", path=path)
    return table


def from_arrow(table: pa.Table, *, path: Path | None = None, frame: str = "the table") -> Table:
    """An Arrow table, its columns each in one piece and of plain types."""
    check_names(path, frame, table.column_names)
    return Table(
        {name: plain_column(table[name], path, name) for name in table.column_names}, path, frame
    )


def _check_texts(column: pa.ChunkedArray, path: Path | None, name: str) -> None:
    """That the texts, which are stored once each, can be written out in every row."""
    if not _is_any_text(column.type.value_type):
        return
    size = 0
    for chunk in column.chunks:
        lengths = pc.fill_null(pc.binary_length(chunk.dictionary), 0)
        size += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    if size >= 2**31:
        raise DataError(
            f"Expected at most 2 GB of text (got {in_words(size)}).", path=path, column=name
        )
    require_memory(2.0 * size, "its text", path=path)


def plain_column(column: pa.ChunkedArray, path: Path | None, name: str) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        _check_texts(column, path, name)
        column = column.cast(column.type.value_type)
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # more text than one array can hold
        raise DataError("Expected at most 2 GB of text.", path=path, column=name)
    if pa.types.is_floating(array.type) and pc.any(pc.is_nan(array)).as_py():
        array = pc.if_else(pc.is_nan(array), None, array)  # a gap, whoever wrote it
    if pa.types.is_null(array.type) or _is_text(array.type):
        array = pc.cast(array, pa.string())
    return array


def _is_any_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or _is_text(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _read_parquet(path: Path) -> Table:
    if path.stat().st_size == 0:
        raise DataError("Expected rows (got an empty file).", path=path)
    try:
        with pq.ParquetFile(path) as file:
            found, schema = file.metadata, file.schema_arrow
        size = sum(found.row_group(i).total_byte_size for i in range(found.num_row_groups))
        # Equal numbers are stored once, but take 8 bytes each in memory.
        needed = size + 8.0 * found.num_rows * found.num_columns
        require_memory(needed, f"its {found.num_rows} rows", path=path)
        # Equal texts too: they are read as they are stored, and measured in `plain_column`.
        texts = [field.name for field in schema if _is_any_text(field.type)]
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            table = file.read()
        table.validate(full=True)  # of texts, that they are UTF-8: nobody else looks
        return from_arrow(table, path=path)
    except DataError:
        raise
    except (pa.ArrowException, *RAISED) as error:
        raise unreadable(path, error) from error


def _read_text_table(path: Path) -> Table:
    stream = TextStream(path)
    batches, size = [], 0
    for batch in stream.batches():
        batches.append(batch)
        size += batch.nbytes
        require_memory(2.0 * size, "its text", path=path)  # in batches, and in columns
    table = pa.Table.from_batches(
        batches, pa.schema([(name, pa.string()) for name in stream.names])
    )
    return Table(
        {name: plain_column(table[name], path, name) for name in stream.names},
        path,
        has_header=stream.has_header,
        decimals=stream.decimals,
        notes=stream.notes,
        doubt=stream.doubt if len(stream.names) == 1 else "",
    )
