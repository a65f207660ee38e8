"""Text and Parquet files, and Arrow tables, as a :class:`~longnn.data._tables.Table`.

Text files are read as text by Arrow's reader; a record with too few or too many cells is an error
that names its line.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv as pacsv

from longnn._base.memory import in_words
from longnn.data._errors import DataError, MissingFileError
from longnn.data._limits import require_memory
from longnn.data._tables import MISSING, Table, is_number
from longnn.data._textfile import (
    COMPRESSED,
    SEPARATORS,
    TextFile,
    line_of_record,
    read_text,
    table_suffix,
)

TABLE_SUFFIXES = (*SEPARATORS, ".parquet")
#: What Arrow raises for a damaged file besides its own errors.
RAISED = (ArithmeticError, LookupError, MemoryError, NotImplementedError, TypeError, ValueError)
#: Cells of a column with decimal commas: 3 | 3,5 | 1.234,5
_DECIMALS = r"^\s*[-+]?(\d+|\d{1,3}(\.\d{3})+)?(,\d+)?([eE][-+]?\d+)?\s*$"


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


def unreadable(path: Path, error: Exception) -> DataError:
    """The error for a file that its reader rejects."""
    kind = table_suffix(path).lstrip(".")
    reason = f"{type(error).__name__}: {error}"
    return DataError(f"Expected a readable, complete {kind} file (got {reason}).", path=path)


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


def header_of(path: Path, text: TextFile) -> tuple[list[str], bool, int]:
    """Column names, whether a header gave them, and how many lines come before the data."""
    reader = text.records()
    first = next((cells for cells in reader if cells), None)
    if first is None:
        raise DataError("Expected rows (got only blank lines).", path=path)
    has_header = not all(is_number(cell.replace(",", ".")) for cell in first)
    cells = first if has_header else [""] * len(first)
    names = [cell.strip() or f"column_{i}" for i, cell in enumerate(cells, start=1)]
    check_names(path, None, names)
    return names, has_header, reader.line_num - int(not has_header)


def _read_text_table(path: Path) -> Table:
    text = read_text(path)
    names, has_header, skip_rows = header_of(path, text)
    bad_rows: list[Any] = []

    def refuse(row: Any) -> str:
        bad_rows.append(row)
        return "error"

    try:
        table = pacsv.read_csv(
            pa.BufferReader(text.content),
            read_options=pacsv.ReadOptions(
                column_names=names, skip_rows=skip_rows, use_threads=False
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=text.separator,
                newlines_in_values=True,
                invalid_row_handler=refuse,
            ),
            convert_options=pacsv.ConvertOptions(
                column_types={name: pa.string() for name in names}, strings_can_be_null=False
            ),
        )
    except pa.ArrowException as error:
        if not bad_rows:
            raise unreadable(path, error) from error
        row = bad_rows[0]
        raise DataError(
            f"Expected {row.expected_columns} columns (got {row.actual_columns}: "
            f"{row.text[:40]!r}); the file may be truncated{_separated(path, text)}.",
            path=path,
            row=line_of_record(text, row.number - skip_rows - 1 + int(has_header)),
        ) from error
    columns = {name: table[name].combine_chunks() for name in names}
    if len(table) and _ends_in_quotes(text.content, str(columns[names[-1]][-1])):
        raise DataError(
            "Expected a closing quote; the file may be truncated.",
            path=path,
            row=line_of_record(text, len(table) - 1 + int(has_header)),
            column=names[-1],
        )
    return _finish(path, text, columns, has_header)


def _finish(path: Path, text: TextFile, columns: dict[str, pa.Array], has_header: bool) -> Table:
    """The table, with what was recognised in its text."""
    decimals = [
        name for name, array in columns.items() if text.separator != "," and _has_decimals(array)
    ]
    recognised = list(text.recognised)
    if decimals:
        recognised.append(f"decimal commas in {', '.join(decimals)}")
    notes = (f"{path.name}: recognised {'; '.join(recognised)}.",) if recognised else ()
    return Table(
        columns,
        path,
        has_header=has_header,
        decimals=frozenset(decimals),
        notes=notes,
        doubt=text.doubt if len(columns) == 1 else "",
    )


def _has_decimals(array: pa.Array) -> bool:
    """Whether all cells are numbers, some with a decimal comma; gaps do not matter."""
    return pc.any(pc.match_substring(array, ",")).as_py() and is_decimal(array)


def is_decimal(array: pa.Array) -> bool:
    """Whether all cells are numbers that may have a decimal comma; gaps do not matter.

    >>> is_decimal(pa.array(["1.234,5", "NA", "7"])), is_decimal(pa.array(["1,5", "old"]))
    (True, False)
    """
    text = pc.utf8_lower(pc.utf8_trim_whitespace(array))
    missing = pc.is_in(text, value_set=pa.array(MISSING, pa.string()))
    return bool(pc.all(pc.or_(missing, pc.match_substring_regex(text, _DECIMALS))).as_py())


def _separated(path: Path, text: TextFile) -> str:
    usual = SEPARATORS[table_suffix(path)]
    return "" if text.separator == usual else f", or the separator is not {text.separator!r}"


def _ends_in_quotes(content: bytes, last_cell: str) -> bool:
    """Whether the last cell swallowed the rest of the file for want of a closing quote."""
    return "\n" in last_cell and not content.rstrip().endswith(b'"')


def check_names(path: Path | None, frame: str | None, names: Sequence[str]) -> None:
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        frame = frame if path is None else None
        raise DataError("Expected each column name once.", path=path, table=frame, column=twice)
