"""Edges between ids of any kind → edges between node numbers, in a table of the engine.

Ids are whole numbers of 64 bits where all are written so, else text; ``007`` is text. They are
compared as the loader in memory does: by what is written, without spaces around it.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from longnn.data import DataError, StoredTable, TextStream, edge_columns
from longnn.store._engine import Engine, named, quoted
from longnn.store._parts import Parts

Share = Callable[[float], None]
#: The most nodes that int32 can number.
MOST_NODES = 2**31 - 1
_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}


class NotWholeError(Exception):
    """An id is not a whole number of 64 bits."""


@dataclass(frozen=True)
class Relation:
    """Columns of ids that the engine can read, more than once.

    Args:
        sql: what stands behind FROM.
        columns: their names.
        types: as the engine calls them.
        path: where they are from, for messages.
    """

    sql: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    parts: Parts

    def text(self, index: int) -> str:
        """The id as a text in a query, NULL where the cell is empty."""
        column, kind = named(self.columns[index]), self.types[index]
        if kind in ("FLOAT", "DOUBLE"):  # 3.0, made so by a gap, is 3
            whole = f"{column} = trunc({column}) AND abs({column}) < 9e18"
            return (
                f"CASE WHEN {whole} THEN CAST(CAST({column} AS BIGINT) AS VARCHAR) "
                f"ELSE CAST({column} AS VARCHAR) END"
            )
        return f"nullif(trim(CAST({column} AS VARCHAR), E' \\t\\r\\n'), '')"

    def whole(self, index: int) -> str:
        """The id as a whole number in a query."""
        if self.types[index] in _WHOLE:
            return f"CAST({named(self.columns[index])} AS BIGINT)"
        return f"TRY_CAST({self.text(index)} AS BIGINT)"

    def is_whole(self, engine: Engine) -> bool:
        """Whether all ids are whole numbers, written the usual way."""
        tests = [
            f"({self.text(i)} IS NOT NULL AND "
            f"CAST({self.whole(i)} AS VARCHAR) IS DISTINCT FROM {self.text(i)})"
            for i in range(len(self.columns))
            if self.types[i] not in _WHOLE
        ]
        if not tests:
            return True
        query = f"SELECT 1 FROM {self.sql} WHERE {' OR '.join(tests)} LIMIT 1"
        return engine.value(query) is None


def relate(
    engine: Engine, stack: ExitStack, parts: Parts, columns: tuple[str, ...], table: StoredTable
) -> Relation:
    """Columns of a stored table as the engine reads them."""
    if table.parts[0].suffix.lower() == ".parquet":
        files = ", ".join(quoted(file) for file in table.parts)
        sql = f"read_parquet([{files}], hive_partitioning = false)"
    else:
        dataset = ds.dataset([str(file) for file in table.parts], format="ipc")
        sql = stack.enter_context(engine.given(f"given_{id(table)}", dataset))
    types = engine.types(sql)
    return Relation(sql, columns, tuple(types[column] for column in columns), parts)


@dataclass
class Edges:
    """What is known of the edges before they are numbered.

    Args:
        relation: source and target of each.
        notes: sentences for the user.
    """

    relation: Relation
    notes: list[str]


def open_edges(
    engine: Engine,
    stack: ExitStack,
    parts: Parts,
    wanted: tuple[str | None, ...],
    *,
    ignore_weights: bool,
    on_share: Share,
) -> Edges:
    """Find the columns of the edges, and make them readable for the engine.

    Args:
        engine: it reads Parquet and Arrow files itself; text is read into a table of it.
        stack: closes what is opened here.
        parts: the files.
        wanted: the source, target and weight columns the user named, if any.
        ignore_weights: leave a weight column out; otherwise it is an error.
        on_share: called with the share of a text that was read.
    """
    is_text = parts.suffix not in (".parquet", ".arrow", ".feather")
    if is_text:
        stream = TextStream(parts.files[0])
        head = StoredTable(
            {name: pa.array([], pa.string()) for name in stream.names},
            parts.path,
            has_header=stream.has_header,
            notes=stream.notes,
            doubt=stream.text.doubt if len(stream.names) == 1 else "",
        )
    else:
        head = StoredTable.open(parts.files, parts.path, parts.path)
    source, target, weight = edge_columns(head, wanted)
    if weight is not None and not ignore_weights:
        raise head.error(
            "Expected edges without weights: a prepared graph keeps none; use the graph in memory, "
            "or treat all edges alike with --ignore-weights.",
            column=weight,
        )
    notes = list(head.notes)
    if not head.has_header:
        notes.append(f"{head.name} has no header: its first line was read as an edge.")
    unused = [name for name in head.names if name not in (source, target)]
    if unused:
        notes.append(f"Columns of {head.name} not used: {', '.join(unused)}.")
    if not is_text:
        return Edges(relate(engine, stack, parts, (source, target), head), notes)
    return Edges(_read_text(engine, parts, source, target, on_share), notes)


def _read_text(engine: Engine, parts: Parts, source: str, target: str, share: Share) -> Relation:
    """Text edges as a table of the engine: of whole numbers if all are, else of text."""
    for kind in (pa.int64(), pa.string()):
        schema = pa.schema([("s", kind), ("t", kind)])
        batches = _text_batches(parts, source, target, kind, share)
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        engine.run(f"CREATE OR REPLACE TABLE listed (s {_SQL[kind]}, t {_SQL[kind]})")
        failed = False
        try:
            while chunk := _take(reader, 2**22):
                with engine.given("chunk", chunk):
                    engine.run("INSERT INTO listed SELECT * FROM chunk")
        except NotWholeError:
            failed = True
        if not failed:
            return Relation("listed", ("s", "t"), (_SQL[kind], _SQL[kind]), parts)
    raise AssertionError("text fits any id")


_SQL = {pa.int64(): "BIGINT", pa.string(): "VARCHAR"}


def _take(reader: Iterator[pa.RecordBatch], rows: int) -> pa.Table | None:
    """The next batches, together at least so many rows; None at the end."""
    found: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in found) < rows:
        batch = next(reader, None)
        if batch is None:
            break
        found.append(batch)
    return pa.Table.from_batches(found) if found else None


def _text_batches(
    parts: Parts, source: str, target: str, kind: pa.DataType, share: Share
) -> Iterator[pa.RecordBatch]:
    read, total = 0, parts.bytes
    for file in parts.files:
        stream, row = TextStream(file), 0
        for batch in stream.batches():
            columns = []
            for name in (source, target):
                if name not in stream.names:
                    raise DataError(f"Expected a column {name!r} in every part.", path=file)
                text = pc.utf8_trim_whitespace(batch.column(name))
                empty = pc.index(pc.equal(text, ""), True).as_py()
                if empty >= 0:
                    raise DataError(
                        "Expected the id of a node (got an empty cell).",
                        path=file,
                        row=row + empty + 1 + int(stream.has_header),
                        column=name,
                    )
                columns.append(text if kind == pa.string() else _whole_numbers(text))
            row += batch.num_rows
            read += batch.nbytes
            share(min(read / total, 1.0))
            yield pa.record_batch(columns, names=["s", "t"])


def _whole_numbers(text: pa.Array) -> pa.Array:
    try:
        numbers = pc.cast(text, pa.int64())
    except pa.ArrowInvalid:
        raise NotWholeError from None
    if not pc.all(pc.equal(pc.cast(numbers, pa.string()), text)).as_py():
        raise NotWholeError
    return numbers
