"""A table, from a file or a data frame: named columns, read as ids, labels or numbers.

Every error names the file, the line and the column. A column is text until a reader asks for
numbers, so that an id such as ``007`` does not change. Knows nothing of formats or graphs.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from longnn._base.late import Late
from longnn._base.memory import in_words
from longnn.data._cells import MISSING, are_numbers, fold, is_number, plain_numbers
from longnn.data._errors import DataError, few, readable, require_memory
from longnn.data._formats import ParquetTable, Parts, StoredTable, is_long, is_text
from longnn.data._text import check_names, kind_of

pc = Late("pyarrow.compute")

_DIGITS = {"true": "1", "false": "0"}


@dataclass(eq=False)
class Reading:
    """How the cells of a column were read: the words that are gaps and how often each is there, a
    number that is not written plainly, one that can be read in two ways, and the spellings joined.
    """

    gaps: dict[str, int]
    number: str = ""
    doubt: str = ""
    spellings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Table:
    """A file or a data frame as columns.

    Args:
        columns: name → pyarrow array, in the order of the file.
        path: the file, or None.
        frame: what a table without a file is called in messages.
        has_header: false if the first line was read as data.
        decimal: what is before decimals where the cells of a column do not show it.
        missing: words for a gap, in lower case.
        number_ids: whether 00024, 24 and 24.0 are one id.
        read: what was found in the cells of each column that was read.
        notes: sentences on how the file was read, where that is not the plain case.
        doubt: what may be wrong with the way it was read, or empty.
        parts: the files it was read from, or None.
        start: the row of the whole table that is its first, in a batch.
        kept: the rows of the file that are left, ascending, or None: all.

    >>> table = Table({"id": pa.array(["007", "8"]), "age": pa.array([" 41", "NA"])})
    >>> table.texts("id").to_pylist(), table.values("age").tolist()
    (['007', '8'], [41.0, nan])
    """

    columns: Any  # Columns, StoredColumns, or a dict that becomes Columns
    path: Path | None = None
    frame: str = "the table"
    has_header: bool = True
    decimal: str = ""
    missing: tuple[str, ...] = MISSING
    number_ids: bool = False
    read: dict[str, Reading] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    doubt: str = ""
    parts: Parts | None = None
    start: int = 0
    kept: np.ndarray | None = None

    @property
    def name(self) -> str:
        """What notes and errors call the table."""
        return self.frame if self.path is None else self.path.name

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def __post_init__(self) -> None:
        if type(self.columns) is dict:
            object.__setattr__(self, "columns", Columns(self.columns))

    def __len__(self) -> int:
        return self.columns.rows

    def only(self, columns: Sequence[str]) -> "Table":
        """The same table with these columns alone."""
        return replace(self, columns={name: self.columns[name] for name in columns})

    def texts(self, column: str) -> Any:
        """The column as trimmed strings (a pyarrow array), null where a cell is empty."""
        array = self.columns[column]
        if pa.types.is_nested(array.type):
            raise self.error(f"Expected one value per cell (got {array.type}).", column=column)
        try:
            return as_texts(array)
        except pa.ArrowException as error:
            raise self.error(
                f"Expected text or numbers (got {array.type}: {error}).", column=column
            ) from error

    def ids(self, column: str) -> Any:
        """The column as int64 if its type is one of whole numbers, else as :meth:`texts`."""
        array = self.columns[column]
        if pa.types.is_integer(array.type):
            with contextlib.suppress(pa.ArrowInvalid):  # of 64 bits without a sign
                return pc.cast(array, pa.int64())
        return plain_ids(self.texts(column)) if self.number_ids else self.texts(column)

    def batches(self, names: Sequence[str], rows: int) -> Iterator["Table"]:
        """Some of the columns, so many rows at a time where they are in files, else at once."""
        start = 0
        for columns in self.columns.batches(names, rows):
            table = replace(self, columns=columns, start=start)
            yield table
            start += len(table)

    def with_rows(self, key: str, ids: pa.Array, note: str) -> "Table":
        """The table with further rows, of gaps but for their ids."""
        return replace(self, columns=self.columns.with_rows(key, ids), notes=(*self.notes, note))

    def with_only(self, rows: np.ndarray, note: str) -> "Table":
        """The table with some of its rows, in order."""
        kept = rows if self.kept is None else self.kept[rows]
        columns = self.columns.with_only(rows)
        return replace(self, columns=columns, kept=kept, notes=(*self.notes, note))

    def cells(self, column: str) -> Any:
        """As :meth:`texts`, null for a word that means a gap, and numbers written plainly."""
        text = self.texts(column)
        gap = pc.is_in(pc.utf8_lower(text), value_set=pa.array(self.missing, pa.string()))
        if pc.any(pc.equal(text, "+")).as_py():  # + and - are a pair
            gap = pc.and_(gap, pc.fill_null(pc.not_equal(text, "-"), True))
        counts = pc.value_counts(text.filter(gap)).to_pylist()
        reading = self.read.setdefault(column, Reading({}))
        reading.gaps = {each["values"]: each["counts"] for each in counts}
        cells = pc.if_else(gap, None, text)
        if pa.types.is_string(self.columns[column].type):
            cells, reading.number = plain_numbers(cells, self.decimal)
        return cells

    def words(self, column: str) -> Any:
        """As :meth:`cells`, each word in one spelling."""
        cells = self.cells(column)
        if pa.types.is_string(self.columns[column].type):
            reading = self.read[column]
            cells, reading.spellings = fold(cells)
            if not reading.number and are_numbers(cells) and self.parsed(column) is None:
                reading.doubt = cells.drop_null()[0].as_py()
        return cells

    @property
    def reading_notes(self) -> list[str]:
        """What was read otherwise than it is written, in the columns read so far."""
        gaps: dict[str, list[str]] = {}
        for name, reading in self.read.items():
            for word, count in reading.gaps.items():
                gaps.setdefault(word, []).append(f"{count:,} in {name}")
        shown = {
            "Read as gaps": [f"{word!r} ({few(where)})" for word, where in gaps.items()],
            "Read as numbers": [f"{n} ({r.number!r})" for n, r in self.read.items() if r.number],
            "Read as one word": [
                f"{old!r} and {new!r} in {name}"
                for name, reading in self.read.items()
                for old, new in reading.spellings.items()
            ],
            "Numbers that are written in several ways, or can be read in two, were left out": [
                f"{n} ({r.doubt!r})" for n, r in self.read.items() if r.doubt
            ],
        }
        remedies = {
            "Read as gaps": "; if these are values, name the words for gaps in missing_words"
        }
        return [
            f"{what} in {self.name}: {few(items)}{remedies.get(what, '')}."
            for what, items in shown.items()
            if items
        ]

    def values(self, column: str, *, remedy: str = "") -> np.ndarray:
        """The column as float64, NaN for a gap; a list column of Parquet gives (rows, width)."""
        values = self.parsed(column)
        if values is None:
            cells = enumerate(self.cells(column).to_pylist())
            wrong = (i for i, v in cells if v and v.lower() not in _DIGITS and not is_number(v))
            row = next(wrong)
            raise self.wrong("a number", row, column, f". {remedy}")
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
                "column out with drop_columns.",
                column=column,
            ) from error
        values = numbers.to_numpy(zero_copy_only=False)
        gaps = [float(word) for word in self.missing if is_number(word)]
        return np.where(np.isin(values, gaps), np.nan, values) if gaps else values

    def numbers(self, column: str) -> np.ndarray:
        """As :meth:`values`; a gap is an error."""
        values = self.values(column)
        self.refuse(np.isnan(values), column, "")
        return values

    def find(
        self, wanted: str | None, guesses: Sequence[str], what: str, dropped: Sequence[str] = ()
    ) -> str | None:
        """The column the user named, else the first that matches a guess and is not dropped."""
        if wanted is not None:
            if wanted in dropped:
                raise self.error(
                    f"Expected a {what} column that drop_columns keeps (got {wanted!r}).",
                    column=wanted,
                )
            if wanted not in self.columns:
                raise self.error(
                    f"Expected a {what} column {wanted!r} (got the columns "
                    f"{', '.join(map(repr, self.names))}{self.hint})."
                )
            return wanted
        kept = [name for name in reversed(self.names) if name not in dropped]
        plain = {name.strip().lower(): name for name in kept}
        return next((plain[guess] for guess in guesses if guess in plain), None)

    @property
    def hint(self) -> str:
        """The doubt, for the end of an error about columns that are not there."""
        return f"; {self.doubt}" if self.doubt else ""

    def place(self, row: int) -> tuple[Path | None, int]:
        """The file of 0-based ``row``, and the 1-based line of a text file or row of another."""
        row = self.start + (row if self.kept is None else int(self.kept[row]))
        if self.parts is None:
            return self.path, row + 1
        return self.parts.place(row, has_header=self.has_header)

    def error(
        self, message: str, row: int | None = None, column: str | None = None, value: object = None
    ) -> DataError:
        """A :class:`DataError` in this table, at 0-based data row ``row``."""
        path, line = (self.path, None) if row is None else self.place(row)
        frame = self.frame if path is None else None
        return DataError(message, path=path, table=frame, row=line, column=column, value=value)

    def wrong(self, expected: str, row: int, column: str, remedy: str = ".") -> DataError:
        """The error for a cell: what was expected of it, what it holds, and what to do."""
        value = self.columns[column][row].as_py()
        is_empty = value is None or (isinstance(value, str) and not value.strip())
        got = "an empty cell" if is_empty else repr(value)
        got = got if len(got) <= 60 else f"{got[:56]}...{got[-1]}"
        text = f"Expected {expected} (got {got}){remedy}"
        return self.error(text, row, column, value=value)

    def refuse(self, bad: np.ndarray, column: str, remedy: str) -> None:
        """An error at the first row that is bad, if any is."""
        if bad.any():
            row = int(bad.reshape(len(bad), -1).any(axis=1).argmax())
            raise self.wrong("a finite number", row, column, f". {remedy}")

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
            raise self.wrong(f"a list of {width} numbers", other, column)
        try:
            flat = pc.cast(pc.list_flatten(array), pa.float64()).fill_null(float("nan"))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise self.error(f"Expected lists of numbers (got {error}).", column=column) from error
        values = np.full((len(array), width), np.nan)
        known = pc.is_valid(array).to_numpy(zero_copy_only=False)
        values[known] = flat.to_numpy(zero_copy_only=False).reshape(-1, width)
        return values

    def _parse(self, column: str) -> np.ndarray | None:
        array = self.columns[column] if self.missing == MISSING else self.cells(column)
        with contextlib.suppress(pa.ArrowInvalid):  # numbers and nothing else, as most columns are
            numbers = pc.cast(array, pa.float64()).fill_null(float("nan"))
            return numbers.to_numpy(zero_copy_only=False)
        text = pc.replace_substring_regex(self.cells(column), r"^\+([0-9.])", r"\1")
        lower = pc.utf8_lower(text)
        for word, digit in _DIGITS.items():
            text = pc.if_else(pc.equal(lower, word), digit, text)
        with contextlib.suppress(pa.ArrowInvalid):
            return pc.cast(text, pa.float64()).fill_null(float("nan")).to_numpy(False)
        return None


def as_texts(array: pa.Array) -> Any:
    """Cells as trimmed strings, null where one is empty; 3.0, made so by a gap, is 3."""
    texts = pc.utf8_trim_whitespace(pc.cast(array, pa.string()))
    if pa.types.is_floating(array.type):
        whole = pc.and_(pc.equal(array, pc.trunc(array)), pc.less(pc.abs(array), 9e18))
        numbers = pc.cast(pc.if_else(whole, array, 0), pa.int64(), safe=False)
        texts = pc.if_else(whole, pc.cast(numbers, pa.string()), texts)
    return pc.if_else(pc.equal(texts, ""), None, texts)


def plain_ids(texts: Any) -> Any:
    """Ids that are whole numbers written in one way: 24 for 00024 and 24.0."""
    return pc.replace_substring_regex(texts, r"^\+?(-?)0*(\d+)(\.0*)?$", r"\1\2")


def _longer(column: pa.Array, is_key: bool, ids: pa.Array) -> pa.Array:
    if is_key:
        return pa.concat_arrays([as_texts(column), ids.cast(pa.string())])
    return pa.concat_arrays([column, pa.nulls(len(ids), column.type)])


class Columns(dict[str, pa.Array]):
    """The columns of a table in memory."""

    @property
    def rows(self) -> int:
        return len(next(iter(self.values()), ()))

    def batches(self, names: Sequence[str], rows: int) -> Iterator[dict[str, pa.Array]]:
        """Some columns, all rows at once."""
        yield {name: self[name] for name in names}

    def with_rows(self, key: str, ids: pa.Array) -> "Columns":
        """The same with rows of gaps behind them."""
        return Columns((n, _longer(c, n == key, ids)) for n, c in self.items())

    def with_only(self, rows: np.ndarray) -> "Columns":
        """The same with some of the rows."""
        return Columns((n, c.take(pa.array(rows))) for n, c in self.items())


class StoredColumns(Mapping[str, pa.Array]):
    """The columns of files, which are parts of one table; each is read when it is asked for.

    Args:
        parts: tables whose columns can be read one at a time, in order.
        path: what the user named, for messages.
        key, added: a column of ids, and those of rows of gaps at the end.
        kept: which rows of all these are left, or None: all.
    """

    def __init__(
        self,
        parts: Sequence[StoredTable],
        path: Path,
        key: str = "",
        added: Any = (),
        kept: np.ndarray | None = None,
    ) -> None:
        self.parts, self.path, self.key, self.added = tuple(parts), path, key, added
        self.kept = kept
        rows = sum(part.rows for part in parts) + len(added)
        self.rows = rows if kept is None else len(kept)
        self._last: tuple[str, pa.Array] | None = None

    def __getitem__(self, name: str) -> pa.Array:
        if self._last is not None and self._last[0] == name:
            return self._last[1]
        self._last = None  # one column at a time
        kind = self.parts[0].schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        pieces: list[pa.Array] = []
        for part in self.parts:
            if name not in part.names:
                pieces.append(pa.nulls(part.rows, kind))
                continue
            column = _decoded(part.column(name), part.path, name)
            with readable(part.path, kind_of(part.path)):
                pieces += column.cast(kind).chunks
        array = plain_column(pa.chunked_array(pieces, kind), self.path, name)
        if len(self.added):
            array = _longer(array, name == self.key, self.added)
        if self.kept is not None:
            array = array.take(pa.array(self.kept))
        self._last = (name, array)
        return array

    def batches(self, names: Sequence[str], rows: int) -> Iterator[dict[str, pa.Array]]:
        """Some columns, so many rows at a time."""
        for part in self.parts:
            for batch in part.batches(names, rows):
                pieces = (pa.chunked_array([batch.column(name)]) for name in names)
                yield {
                    name: plain_column(piece, part.path, name)
                    for name, piece in zip(names, pieces, strict=True)
                }

    def with_rows(self, key: str, ids: pa.Array) -> "StoredColumns":
        """The same with rows of gaps behind them."""
        return StoredColumns(self.parts, self.path, key, ids)

    def with_only(self, rows: np.ndarray) -> "StoredColumns":
        """The same with some of the rows."""
        kept = rows if self.kept is None else self.kept[rows]
        return StoredColumns(self.parts, self.path, self.key, self.added, kept)

    def __contains__(self, name: object) -> bool:
        return name in self.parts[0].names

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts[0].names)

    def __len__(self) -> int:
        return len(self.parts[0].names)


def open_table(parts: Parts, room: Path | None = None) -> Table:
    """A table of files, in memory, or its columns to be read when they are asked for.

    Args:
        parts: the files. Text may have any usual separator, encoding and compression.
        room: a folder where text is stored as Parquet, batch by batch; None: all is read at once.
    """
    opened = parts.open()
    first, path = opened[0], parts.path
    check_names(path, None, first.names)
    columns: Mapping[str, pa.Array]
    with readable(path, kind_of(path)):
        if isinstance(first, StoredTable):
            columns = StoredColumns(opened, path)
            if room is None:
                needed = sum(part.size for part in opened)
                require_memory(needed, f"its {columns.rows} rows", path=path)
        elif room is None:
            batches, size = [], 0
            for batch in (batch for stream in opened for batch in stream.batches()):
                batches.append(_texts_of(batch, first.names))
                size += batch.nbytes
                require_memory(2.0 * size, "its text", path=path)  # in batches, and in columns
            read = pa.Table.from_batches(batches, _texts_named(first.names))
            columns = {name: plain_column(read[name], path, name) for name in first.names}
        else:
            stored = []
            for number, stream in enumerate(opened):
                place = room / f"{path.name}-{number:05d}.parquet"
                with pq.ParquetWriter(place, _texts_named(first.names)) as writer:
                    for batch in stream.batches():
                        writer.write_batch(_texts_of(batch, first.names))
                stored.append(ParquetTable(place))
            columns = StoredColumns(stored, path)
        if room is None:
            columns = {name: columns[name] for name in first.names}
    table = Table(
        columns,
        path,
        has_header=first.has_header,
        decimal=first.decimal,
        notes=tuple(dict.fromkeys(note for part in opened for note in part.notes)),
        doubt=first.doubt if len(first.names) == 1 else "",
        parts=parts,
    )
    if len(table) == 0:
        raise DataError("Expected at least one row (got none).", path=path)
    return table


def _texts_of(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """These columns, gaps where there is none."""
    there, gaps = batch.schema.names, pa.nulls(batch.num_rows, pa.string())
    columns = [batch.column(name) if name in there else gaps for name in names]
    return pa.RecordBatch.from_arrays(columns, schema=_texts_named(names))


def _texts_named(names: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in names])


def from_arrow(table: pa.Table, frame: str) -> Table:
    """An Arrow table, its columns each in one piece and of plain types."""
    check_names(None, frame, table.column_names)
    columns = {name: plain_column(table[name], None, name) for name in table.column_names}
    return Table(columns, frame=frame)


def _decoded(column: pa.ChunkedArray, path: Path | None, name: str) -> pa.ChunkedArray:
    """Texts that are stored once each, written out in every row."""
    if not pa.types.is_dictionary(column.type):
        return column
    if is_long(column.type.value_type):
        size = 0
        for chunk in column.chunks:
            lengths = pc.fill_null(pc.binary_length(chunk.dictionary), 0)
            size += pc.sum(lengths.take(chunk.indices)).as_py() or 0
        if size >= 2**31:
            raise DataError(
                f"Expected at most 2 GB of text (got {in_words(size)}).", path=path, column=name
            )
        require_memory(2.0 * size, "its text", path=path)
    return column.cast(column.type.value_type)


def plain_column(column: pa.ChunkedArray, path: Path | None, name: str) -> pa.Array:
    """A column in one piece and of a plain type, null where it is not a number."""
    array = _decoded(column, path, name).combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # more text than one array can hold
        raise DataError("Expected at most 2 GB of text.", path=path, column=name)
    if pa.types.is_floating(array.type) and pc.any(pc.is_nan(array)).as_py():
        array = pc.if_else(pc.is_nan(array), None, array)  # a gap, whoever wrote it
    if pa.types.is_null(array.type) or is_text(array.type):
        array = pc.cast(array, pa.string())
    return array
