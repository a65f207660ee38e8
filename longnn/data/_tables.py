"""A table, from a file or a data frame: named columns, read as ids, labels or numbers.

Every error names the file, the line and the column. A column is text until a reader asks for
numbers, so that an id such as ``007`` does not change. Knows nothing of formats or graphs.
"""

import contextlib
import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from longnn._base.memory import in_words
from longnn.data._errors import DataError, require_file, require_memory
from longnn.data._text import (
    COMPRESSED,
    MISSING,
    SEPARATORS,
    Header,
    TextStream,
    check_names,
    is_number,
    table_suffix,
    unreadable,
)

_DIGITS = {"true": "1", "false": "0"}


@dataclass(frozen=True, eq=False)
class Table:
    """A file or a data frame as columns.

    Args:
        columns: name → pyarrow array, in the order of the file.
        path: the file, or None.
        frame: what a table without a file is called in messages.
        has_header: false if the first line was read as data.
        decimals: the columns whose numbers have decimal commas.
        notes: sentences on how the file was read, where that is not the plain case.
        doubt: what may be wrong with the way it was read, or empty.

    >>> table = Table({"id": pa.array(["007", "8"]), "age": pa.array([" 41", "NA"])})
    >>> table.texts("id").to_pylist(), table.values("age").tolist()
    (['007', '8'], [41.0, nan])
    """

    columns: dict[str, pa.Array]
    path: Path | None = None
    frame: str = "the table"
    has_header: bool = True
    decimals: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    doubt: str = ""

    @property
    def name(self) -> str:
        """What notes and errors call the table."""
        return self.frame if self.path is None else self.path.name

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def only(self, columns: Sequence[str]) -> "Table":
        """The same table with these columns alone."""
        return replace(self, columns={name: self.columns[name] for name in columns})

    def texts(self, column: str) -> Any:
        """The column as trimmed strings (a pyarrow array), null where a cell is empty."""
        array = self.columns[column]
        if pa.types.is_floating(array.type):
            values = array.drop_null().to_numpy(zero_copy_only=False)
            whole = np.isfinite(values) & (values == np.round(values)) & (np.abs(values) < 2**63)
            if whole.all():
                array = pc.cast(array, pa.int64(), safe=False)  # 3.0, made so by a null, is 3
        if pa.types.is_nested(array.type):
            raise self.error(f"Expected one value per cell (got {array.type}).", column=column)
        try:
            text = pc.utf8_trim_whitespace(pc.cast(array, pa.string()))
        except pa.ArrowException as error:
            raise self.error(
                f"Expected text or numbers (got {array.type}: {error}).", column=column
            ) from error
        return pc.if_else(pc.equal(text, ""), None, text)

    def pointed(self, column: str) -> Any:
        """As :meth:`texts`, numbers with decimal points."""
        text = self.texts(column)
        if column not in self.decimals:
            return text
        return pc.replace_substring(pc.replace_substring(text, ".", ""), ",", ".")

    def cells(self, column: str) -> Any:
        """As :meth:`pointed`, null for a word that means missing."""
        text = self.pointed(column)
        missing = pc.is_in(pc.utf8_lower(text), value_set=pa.array(MISSING, pa.string()))
        return pc.if_else(missing, None, text)

    def values(self, column: str, *, remedy: str = "") -> np.ndarray:
        """The column as float64, NaN for a gap; a list column of Parquet gives (rows, width)."""
        values = self.parsed(column)
        if values is None:
            cells = enumerate(self.cells(column).to_pylist())
            wrong = (i for i, v in cells if v and v.lower() not in _DIGITS and not is_number(v))
            row = next(wrong)
            value = self.columns[column][row].as_py()
            raise self.error(
                f"Expected a number (got {_shortened(value)}). {remedy}", row, column, value=value
            )
        self.refuse(np.isinf(values), column, remedy)
        return values

    def parsed(self, column: str) -> np.ndarray | None:
        """As :meth:`values`, infinite ones too; None if a cell is not a number."""
        array = self.columns[column]
        if pa.types.is_nested(array.type):
            return self._vectors(column)
        if pa.types.is_string(array.type):
            return self._parse(column)
        try:
            if pa.types.is_time32(array.type):
                array = pc.cast(array, pa.int32())
            elif pa.types.is_time(array.type) or pa.types.is_duration(array.type):
                array = pc.cast(array, pa.int64())
            numbers = pc.cast(array, pa.float64(), safe=False).fill_null(float("nan"))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise self.error(
                f"Expected numbers, text, dates or lists of numbers (got {array.type}); leave the "
                "column out with feature_columns.",
                column=column,
            ) from error
        return numbers.to_numpy(zero_copy_only=False)

    def numbers(self, column: str, *, remedy: str = "") -> np.ndarray:
        """As :meth:`values`; a gap is an error."""
        values = self.values(column, remedy=remedy)
        self.refuse(np.isnan(values), column, remedy)
        return values

    def find(self, wanted: str | None, guesses: Sequence[str], what: str) -> str | None:
        """The column the user named, else the first that matches a guess, else None."""
        if wanted is not None:
            if wanted not in self.columns:
                raise self.error(
                    f"Expected a {what} column {wanted!r} (got the columns "
                    f"{', '.join(map(repr, self.names))}{self.hint})."
                )
            return wanted
        plain = {name.strip().lower(): name for name in reversed(self.names)}
        return next((plain[guess] for guess in guesses if guess in plain), None)

    @property
    def hint(self) -> str:
        """The doubt, for the end of an error about columns that are not there."""
        return f"; {self.doubt}" if self.doubt else ""

    def line(self, row: int) -> int:
        """1-based line in a text file, 1-based row in any other, of 0-based data row ``row``."""
        if self.path is None or table_suffix(self.path) not in SEPARATORS:
            return row + 1
        return TextStream(self.path, "yes" if self.has_header else "no").line(row)

    def error(
        self, message: str, row: int | None = None, column: str | None = None, value: object = None
    ) -> DataError:
        """A :class:`DataError` in this table, at 0-based data row ``row``."""
        line = None if row is None else self.line(row)
        frame = self.frame if self.path is None else None
        return DataError(message, path=self.path, table=frame, row=line, column=column, value=value)

    def refuse(self, bad: np.ndarray, column: str, remedy: str) -> None:
        """An error at the first row that is bad, if any is."""
        if bad.any():
            row = int(bad.reshape(len(bad), -1).any(axis=1).argmax())
            value = self.columns[column][row].as_py()
            got = "an empty cell" if value is None else _shortened(value)
            raise self.error(
                f"Expected a finite number (got {got}). {remedy}", row, column, value=value
            )

    def _vectors(self, column: str) -> np.ndarray:
        """Lists of one length as rows of numbers; a missing list is a row of gaps."""
        array = self.columns[column]
        if pa.types.is_struct(array.type) or pa.types.is_map(array.type):
            raise self.error(f"Expected lists of numbers (got {array.type}).", column=column)
        lengths = pc.list_value_length(array)
        width = next((n for n in lengths.drop_null()[:1].to_pylist()), 0)
        if width == 0 and array.null_count < len(array):
            raise self.error("Expected lists of numbers (got empty lists).", column=column)
        other = pc.index(pc.not_equal(lengths, width), True).as_py()
        if other >= 0:
            value = array[other].as_py()
            raise self.error(f"Expected a list of {width} numbers.", other, column, value=value)
        try:
            flat = pc.cast(pc.list_flatten(array), pa.float64()).fill_null(float("nan"))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise self.error(f"Expected lists of numbers (got {error}).", column=column) from error
        values = np.full((len(array), width), np.nan)
        known = pc.is_valid(array).to_numpy(zero_copy_only=False)
        values[known] = flat.to_numpy(zero_copy_only=False).reshape(-1, width)
        return values

    def _parse(self, column: str) -> np.ndarray | None:
        with contextlib.suppress(pa.ArrowInvalid):  # numbers and nothing else, as most columns are
            numbers = pc.cast(self.columns[column], pa.float64()).fill_null(float("nan"))
            return numbers.to_numpy(zero_copy_only=False)
        text = pc.replace_substring_regex(self.cells(column), r"^\+([0-9.])", r"\1")
        lower = pc.utf8_lower(text)
        for word, digit in _DIGITS.items():
            text = pc.if_else(pc.equal(lower, word), digit, text)
        with contextlib.suppress(pa.ArrowInvalid):
            return pc.cast(text, pa.float64()).fill_null(float("nan")).to_numpy(False)
        return None


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:56]}...{text[-1]}"


TABLE_SUFFIXES = (*SEPARATORS, ".parquet")
#: What Arrow raises for a damaged file besides its own errors.
RAISED = (ArithmeticError, LookupError, MemoryError, NotImplementedError, TypeError, ValueError)


def read_table(path: str | Path, header: Header = "auto") -> Table:
    """Read a text table (any usual separator, encoding and compression) or a Parquet file.

    A text file whose first line is like the others has no header: its columns are then named
    ``column_1``, ``column_2``, ...; ``header`` decides where that is wrong.

    Raises:
        MissingFileError: if there is no such file.
        DataError: if it is empty, truncated or not of the format that its name says.
    """
    path = Path(path)
    require_file(path)
    suffix = table_suffix(path)
    if suffix not in TABLE_SUFFIXES:
        raise DataError(
            f"Expected one of {', '.join(TABLE_SUFFIXES)}, a text file perhaps with "
            f"{', '.join(COMPRESSED)} (got {suffix!r}).",
            path=path,
        )
    try:
        table = _read_parquet(path) if suffix == ".parquet" else _read_text_table(path, header)
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


def _read_text_table(path: Path, header: Header) -> Table:
    stream = TextStream(path, header)
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
