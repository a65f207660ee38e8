"""CSV, TSV and Parquet files as named columns of text or numbers.

Every error names the file, the line and the column. Text files are read as text: whether a column
holds ids, labels or numbers is decided by the reader of the column, so that an id such as ``007``
does not change. Knows nothing of graphs.
"""

import contextlib
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv as pacsv

from longnn.data._errors import DataError, MissingFileError

DELIMITERS = {".csv": ",", ".tsv": "\t"}
TABLE_SUFFIXES = (*DELIMITERS, ".parquet")


@dataclass(frozen=True, eq=False)
class Table:
    """A file as columns.

    Args:
        path: the file.
        columns: name → pyarrow array, in the order of the file.
        has_header: false if the first line was read as data.
    """

    path: Path
    columns: dict[str, pa.Array]
    has_header: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def texts(self, column: str) -> Any:
        """The column as trimmed strings (a pyarrow array), null where a cell is empty."""

        array = self.columns[column]
        if pa.types.is_floating(array.type):
            values = array.drop_null().to_numpy(zero_copy_only=False)
            if np.isfinite(values).all() and (values == np.round(values)).all():
                array = pc.cast(array, pa.int64(), safe=False)  # 3.0, made so by a null, is 3
        if pa.types.is_nested(array.type):
            raise self.error(f"Expected one value per cell (got {array.type}).", column=column)
        text = pc.utf8_trim_whitespace(pc.cast(array, pa.string()))
        return pc.if_else(pc.equal(text, ""), None, text)

    def numbers(self, column: str, *, remedy: str = "") -> np.ndarray:
        """The column as finite float64; a list column of Parquet gives (rows, width)."""

        array = self.columns[column]
        if pa.types.is_nested(array.type):
            values = self._vectors(column)
        elif pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
            filled = pc.cast(array, pa.float64(), safe=False).fill_null(float("nan"))
            values = filled.to_numpy(zero_copy_only=False)
        else:
            values = self._parse(column, remedy)
        bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if bad.any():
            row = int(bad.argmax())
            value = array[row].as_py()
            got = "an empty cell" if value is None else repr(value)
            raise self.error(
                f"Expected a finite number (got {got}). {remedy}", row, column, value=value
            )
        return values

    def find(self, wanted: str | None, guesses: Sequence[str], what: str) -> str | None:
        """The column the user named, else the first that matches a guess, else None."""
        if wanted is not None:
            if wanted not in self.columns:
                raise self.error(
                    f"Expected a {what} column {wanted!r} (got the columns "
                    f"{', '.join(map(repr, self.names))})."
                )
            return wanted
        plain = {name.strip().lower(): name for name in reversed(self.names)}
        return next((plain[guess] for guess in guesses if guess in plain), None)

    def line(self, row: int) -> int:
        """1-based line in a text file, 1-based row in any other, of 0-based data row ``row``."""
        delimiter = DELIMITERS.get(self.path.suffix.lower())
        if delimiter is None:
            return row + 1
        with self.path.open(newline="", encoding="utf-8-sig", errors="replace") as stream:
            reader = csv.reader(stream, delimiter=delimiter)
            left = row + int(self.has_header)
            for cells in reader:
                if cells and (left := left - 1) < 0:
                    break
            return reader.line_num

    def error(
        self, message: str, row: int | None = None, column: str | None = None, value: object = None
    ) -> DataError:
        """A :class:`DataError` in this file, at 0-based data row ``row``."""
        line = None if row is None else self.line(row)
        return DataError(message, path=self.path, row=line, column=column, value=value)

    def _vectors(self, column: str) -> np.ndarray:
        rows = self.columns[column].to_pylist()
        width = len(rows[0] or ())
        for row, values in enumerate(rows):
            if values is None or len(values) != width:
                raise self.error(f"Expected a list of {width} numbers.", row, column, value=values)
        try:
            return np.array(rows, dtype=np.float64).reshape(len(rows), width)
        except (TypeError, ValueError) as error:
            raise self.error(f"Expected lists of numbers (got {error}).", column=column) from error

    def _parse(self, column: str, remedy: str) -> np.ndarray:
        with contextlib.suppress(pa.ArrowInvalid):  # numbers and nothing else, as most columns are
            return pc.cast(self.columns[column], pa.float64()).to_numpy(zero_copy_only=False)
        text = self.texts(column)
        lower = pc.utf8_lower(text)
        for word, digit in (("true", "1"), ("false", "0")):
            text = pc.if_else(pc.equal(lower, word), digit, text)
        try:
            return pc.cast(text, pa.float64()).fill_null(float("nan")).to_numpy(False)
        except pa.ArrowInvalid:
            for row, value in enumerate(text.to_pylist()):
                if value is not None and not _is_number(value):
                    raise self.error(
                        f"Expected a number (got {value!r}). {remedy}", row, column, value=value
                    ) from None
            raise


def read_table(path: str | Path) -> Table:
    """Read a CSV, TSV or Parquet file.

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
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise DataError(f"Expected one of {', '.join(TABLE_SUFFIXES)} (got {suffix!r}).", path=path)
    try:
        if path.stat().st_size == 0:
            raise DataError("Expected rows (got an empty file).", path=path)
        table = _read_parquet(path) if suffix == ".parquet" else _read_text(path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise unreadable(path, error) from error
    if len(table) == 0:
        raise DataError("Expected at least one row (got none).", path=path)
    return table


def unreadable(path: Path, error: Exception) -> DataError:
    """The error for a file that its reader rejects."""
    kind = path.suffix.lower().lstrip(".")
    reason = f"{type(error).__name__}: {error}"
    return DataError(f"Expected a readable, complete {kind} file (got {reason}).", path=path)


def _read_parquet(path: Path) -> Table:
    try:
        table = pq.ParquetFile(path).read()
    except pa.ArrowException as error:
        raise unreadable(path, error) from error
    _check_names(path, table.column_names)
    columns = {}
    for name in table.column_names:
        array = table[name].combine_chunks()
        is_dictionary = pa.types.is_dictionary(array.type)
        columns[name] = array.dictionary_decode() if is_dictionary else array
    return Table(path, columns)


def _read_header(path: Path, delimiter: str) -> tuple[list[str], bool, int]:
    """Column names, whether a header gave them, and how many lines come before the data."""
    with path.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.reader(stream, delimiter=delimiter)
        first = next((cells for cells in reader if cells), None)
        lines = reader.line_num
    if first is None:
        raise DataError("Expected rows (got only blank lines).", path=path)
    has_header = not all(_is_number(cell) for cell in first)
    cells = first if has_header else [""] * len(first)
    names = [cell.strip() or f"column_{i}" for i, cell in enumerate(cells, start=1)]
    _check_names(path, names)
    return names, has_header, lines if has_header else lines - 1


def _read_text(path: Path) -> Table:
    delimiter = DELIMITERS[path.suffix.lower()]
    names, has_header, skip_rows = _read_header(path, delimiter)
    bad_rows: list[Any] = []

    def refuse(row: Any) -> str:
        bad_rows.append(row)
        return "error"

    try:
        table = pacsv.read_csv(
            path,
            read_options=pacsv.ReadOptions(
                column_names=names, skip_rows=skip_rows, use_threads=False
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=delimiter,
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
        raise Table(path, {}, has_header).error(
            f"Expected {row.expected_columns} columns (got {row.actual_columns}: "
            f"{row.text[:40]!r}); the file may be truncated.",
            row.number - skip_rows - 1,
        ) from error
    result = Table(path, {name: table[name].combine_chunks() for name in names}, has_header)
    if len(result) and _ends_in_quotes(path, str(result.columns[names[-1]][-1])):
        last = len(result) - 1
        raise result.error("Expected a closing quote; the file may be truncated.", last, names[-1])
    return result


def _ends_in_quotes(path: Path, last_cell: str) -> bool:
    """Whether the last cell swallowed the rest of the file for want of a closing quote."""
    return "\n" in last_cell and not path.read_bytes().rstrip().endswith(b'"')


def _check_names(path: Path, names: Sequence[str]) -> None:
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise DataError("Expected each column name once.", path=path, column=twice)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
