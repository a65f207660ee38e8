"""Tables of edges between ids of any kind → the sorted neighbours of each node, in files.

Ids are whole numbers of 64 bits where all are written so, else text; ``007`` is text. They are
compared as the loader in memory does: by what is written, without white space around it. With a
node table the number of a node is its row. Without one the nodes are those of the edges: whole
numbers by value, other ids in order of appearance.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from longnn.data import DataError
from longnn.data._edgetable import TYPE_NAMES, edge_columns, unknown_note, unknown_text
from longnn.data._nodetable import read_ids
from longnn.data._storedtable import Parts, StoredTable, line_in_parts
from longnn.data._text import TextStream
from longnn.store._arrays import ArrayWriter, StoreError
from longnn.store._engine import Engine, named, quoted
from longnn.store._graph import NEIGHBOURS, OFFSETS

Share = Callable[[float], None]
#: The most nodes that int32 can number.
MOST_NODES = 2**31 - 1
#: Bytes of memory for each arc that is sorted: a key in the engine, its order, and its copies here.
PER_ARC = 160
#: Ranges of nodes whose arcs are counted, to choose how many are sorted at once.
RANGES = 4096
NO_WEIGHTS = (
    "Expected edges without weights: a prepared graph keeps none; use the graph in memory, or "
    "treat all edges alike with --ignore-weights."
)
_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_SQL = {pa.int64(): "BIGINT", pa.string(): "VARCHAR"}


class NotWholeError(Exception):
    """An id is not a whole number of 64 bits."""


@functools.cache
def _white() -> str:
    """The white space that Arrow strips, which is that of Unicode; in a query."""
    every = pa.array([chr(code) for code in range(0x3001)])
    is_white = pc.equal(pc.utf8_trim_whitespace(every), "")
    return quoted("".join(every.filter(is_white).to_pylist()))


@dataclass(frozen=True)
class Relation:
    """Columns of ids that the engine can read, more than once.

    Args:
        sql: what stands behind FROM.
        columns: their names there.
        types: as the engine calls them.
        parts: where they are from, for messages.
        names: of the columns in the user's files.
    """

    sql: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    parts: Parts
    names: tuple[str, ...]

    def text(self, index: int) -> str:
        """The id as a text in a query, NULL where the cell is empty."""
        column, kind = named(self.columns[index]), self.types[index]
        if kind in ("FLOAT", "DOUBLE"):  # 3.0, made so by a gap, is 3
            whole = f"{column} = trunc({column}) AND abs({column}) < 9e18"
            return (
                f"CASE WHEN {whole} THEN CAST(CAST({column} AS BIGINT) AS VARCHAR) "
                f"ELSE CAST({column} AS VARCHAR) END"
            )
        return f"nullif(trim(CAST({column} AS VARCHAR), {_white()}), '')"

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

    def first(self, engine: Engine, end: str, condition: str) -> tuple[int, str] | None:
        """The first row whose id, ``end`` in a query, meets a condition; and the id."""
        engine.run("SET preserve_insertion_order = true")
        ids = f"(SELECT row_number() OVER () - 1 AS place, {end} AS id FROM {self.sql})"
        row = engine.value(f"SELECT min(place) FROM {ids} WHERE id {condition}")
        if row is None:
            return None
        return int(row), str(engine.value(f"SELECT id FROM {ids} WHERE place = {row}"))


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
    return Relation(sql, columns, tuple(types[column] for column in columns), parts, columns)


@dataclass
class Edges:
    """What is known of the edges before they are numbered."""

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

    It reads Parquet and Arrow files itself; text is read into a table of it. Columns of weights and
    types are errors unless they are ignored.
    """
    is_text = parts.suffix not in (".parquet", ".arrow", ".feather")
    if is_text:
        stream = TextStream(parts.files[0], parts.header)
        head = StoredTable(
            {name: pa.array([], pa.string()) for name in stream.names},
            parts.path,
            has_header=stream.has_header,
            notes=stream.notes,
            doubt=stream.doubt if len(stream.names) == 1 else "",
        )
    else:
        head = StoredTable.open(parts.files, parts.path, parts.path)
    kind = head.find(None, TYPE_NAMES, "type")
    source, target, weight = edge_columns(head, wanted, kind)
    if kind is not None and not ignore_weights:
        raise head.error(
            "Expected edges of one kind: a prepared graph keeps no types of edges; use the graph "
            "in memory, or treat all edges alike with --ignore-weights.",
            column=kind,
        )
    if weight is not None and not ignore_weights:
        raise head.error(NO_WEIGHTS, column=weight)
    notes = list(head.notes)
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
            if not engine.value("SELECT count(*) FROM listed"):
                raise DataError("Expected at least one row (got none).", path=parts.path)
            types = (_SQL[kind], _SQL[kind])
            return Relation("listed", ("s", "t"), types, parts, (source, target))
    raise AssertionError("text fits any id")


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
        stream = TextStream(file, parts.header)
        for name in (source, target):
            if name not in stream.names:
                raise DataError(f"Expected a column {name!r} in every part.", path=file)
        for batch in stream.batches():
            columns = []
            for name in (source, target):
                text = pc.utf8_trim_whitespace(batch.column(name))
                text = pc.if_else(pc.equal(text, ""), None, text)
                columns.append(text if kind == pa.string() else _whole_numbers(text))
            read += batch.nbytes
            share(min(read / total, 1.0))
            yield pa.record_batch(columns, names=["s", "t"])


def _whole_numbers(text: pa.Array) -> pa.Array:
    try:
        numbers = pc.cast(text, pa.int64())
    except pa.ArrowInvalid:
        raise NotWholeError from None
    if pc.all(pc.equal(pc.cast(numbers, pa.string()), text)).as_py() is False:
        raise NotWholeError
    return numbers


def number_nodes(
    engine: Engine, edges: Relation, nodes: Relation | None, table: StoredTable | None, *, add: bool
) -> tuple[str, int, pa.Array]:
    """Make the table ``ids (id, number)``; returns how the engine compares ids, and how many.

    The nodes are those of ``nodes`` in order, where it is None those of the edges; ``add`` adds the
    nodes that only the edges name.

    Returns:
        ``"place"`` (ids are the numbers 0, 1, ... in order), ``"whole"`` or ``"text"``; the number
        of nodes; the ids that were added.
    """
    by_value = edges.is_whole(engine)
    whole = by_value and (nodes is None or nodes.is_whole(engine))
    added = pa.array([], pa.string())
    if nodes is not None:
        expression = nodes.whole(0) if whole else nodes.text(0)
        engine.run(
            f"CREATE TABLE ids AS SELECT {expression} AS id, row_number() OVER () - 1 AS number "
            f"FROM {nodes.sql}"
        )
        if add:
            start = engine.value("SELECT count(*) FROM ids")
            every = _ids_of_edges(edges, whole, by_value)
            engine.run(
                f"INSERT INTO ids SELECT id, {start} + row_number() OVER () - 1 AS number FROM "
                f"({every}) WHERE id NOT IN (SELECT id FROM ids WHERE id IS NOT NULL)"
            )
            added = engine.table(f"SELECT id FROM ids WHERE number >= {start} ORDER BY number")
            added = added["id"].combine_chunks()
    else:
        engine.run(
            "CREATE TABLE ids AS SELECT id, row_number() OVER () - 1 AS number "
            f"FROM ({_ids_of_edges(edges, whole, by_value)})"
        )
    count = engine.value("SELECT count(*) FROM ids")
    if count > MOST_NODES:
        raise StoreError(f"Expected at most {MOST_NODES:,} nodes (got {count:,})")
    if whole and engine.value("SELECT bool_and(id IS NOT NULL AND id = number) FROM ids"):
        return "place", count, added
    if nodes is not None:
        assert table is not None
        empty = engine.value("SELECT count(*) FROM ids WHERE id IS NULL")
        if empty or engine.value("SELECT count(DISTINCT id) FROM ids") < count:
            read_ids(table, nodes.names[0])
            raise AssertionError("an id is empty, or there twice")
    return "whole" if whole else "text", count, added


def _ids_of_edges(edges: Relation, whole: bool, by_value: bool) -> str:
    """The distinct ids of edges in order, in a query."""
    rows = f"(SELECT *, row_number() OVER () AS place FROM {edges.sql})"
    ends = [
        f"SELECT {edges.whole(i) if whole else edges.text(i)} AS id"
        + (f" FROM {edges.sql}" if by_value else f", 2 * place + {i} AS place FROM {rows}")
        for i in (0, 1)
    ]
    order = "CAST(id AS BIGINT)" if by_value else "min(place)"
    return (
        f"SELECT id FROM ({' UNION ALL '.join(ends)}) WHERE id IS NOT NULL GROUP BY id "
        f"ORDER BY {order}"
    )


def number_edges(
    engine: Engine,
    edges: Relation,
    how: str,
    nodes: str,
    on_share: Share,
    *,
    unknown_ids: str = "error",
) -> list[str]:
    """Make the table ``edges (s, t)`` of node numbers.

    Returns:
        Notes on what was dropped.
    """
    count = engine.value("SELECT count(*) FROM ids")
    ends = [edges.text(i) if how == "text" else edges.whole(i) for i in (0, 1)]
    engine.run("SET preserve_insertion_order = false")  # faster, and the order is not needed
    if how == "place":
        s, t = (
            f"CASE WHEN {e} BETWEEN 0 AND {count - 1} THEN CAST({e} AS INTEGER) END" for e in ends
        )
        query = f"SELECT {s} AS s, {t} AS t FROM {edges.sql}"
    else:
        query = (
            "SELECT CAST(a.number AS INTEGER) AS s, CAST(b.number AS INTEGER) AS t FROM "
            f"(SELECT {ends[0]} AS x, {ends[1]} AS y FROM {edges.sql}) AS listed "
            "LEFT JOIN ids AS a ON a.id = listed.x LEFT JOIN ids AS b ON b.id = listed.y"
        )
    engine.run(f"CREATE TABLE edges AS {query}", on_share)
    lost = engine.value("SELECT count(*) FROM edges WHERE s IS NULL OR t IS NULL")
    if not lost:
        return []
    _check_ends(engine, edges, ends)
    rows = engine.value("SELECT count(*) FROM edges")
    if unknown_ids == "error" or lost == rows:
        raise _unknown(engine, edges, ends, nodes, (lost, rows))
    engine.run("DELETE FROM edges WHERE s IS NULL OR t IS NULL")
    return [unknown_note(lost, rows, nodes)]


def _check_ends(engine: Engine, edges: Relation, ends: list[str]) -> None:
    """Each edge has two ends."""
    for name, end in zip(edges.names, ends, strict=True):
        empty = edges.first(engine, end, "IS NULL")
        if empty is not None:
            path, line = line_in_parts(edges.parts.files, empty[0], edges.parts.header)
            raise DataError(
                "Expected the id of a node (got an empty cell).", path=path, row=line, column=name
            )


def _unknown(
    engine: Engine, edges: Relation, ends: list[str], nodes: str, counts: tuple[int, int]
) -> DataError:
    """The error for the first edge whose end is no node; sources are looked at first."""
    for name, end in zip(edges.names, ends, strict=True):
        lost = edges.first(engine, end, "NOT IN (SELECT id FROM ids)")
        if lost is not None:
            row, value = lost
            path, line = line_in_parts(edges.parts.files, row, edges.parts.header)
            text = unknown_text(value, *counts, nodes)
            return DataError(text, path=path, row=line, column=name, value=value)
    raise AssertionError("an edge has an unknown end")


def write_ids(engine: Engine, path: Path) -> None:
    """One column ``id``, one row per node, in order."""
    engine.run(
        f"COPY (SELECT id FROM ids ORDER BY number) TO {quoted(path)} "
        "(FORMAT parquet, COMPRESSION zstd)"
    )


@dataclass(frozen=True, eq=False)
class Counts:
    """What the edges came to.

    Args:
        edges: undirected ones, a self loop too.
        loops: self loops, kept or dropped.
        repeats: lines that repeat an arc.
        one_way: edges that were listed in one direction only.
        degree: int64 (nodes,), how many neighbours each node has, itself not counted.
    """

    edges: int
    loops: int
    repeats: int
    one_way: int
    degree: np.ndarray


def write_csr(
    engine: Engine, folder: Path, nodes: int, *, self_loops: bool, on_share: Share
) -> Counts:
    r"""Write ``offsets.npy`` and ``neighbours.npy`` of the table ``edges (s, t)``.

    An arc is one number, :math:`2^{32} s + 2 t + r` with r = 1 for the reverse of a listed edge, so
    that sorting numbers sorts arcs, and an arc that was listed stands before its twin.
    """
    loops = engine.value("SELECT count(*) FROM edges WHERE s = t")
    arcs = engine.value("SELECT 2 * count(*) FROM edges")
    degree = np.zeros(nodes + 1, dtype=np.int64)  # of node i at i + 1: sums become offsets
    own: list[np.ndarray] = []  # nodes with a loop of their own
    listed, distinct, done = 0, 0, 0
    with ArrayWriter(folder / NEIGHBOURS, np.int32) as writer:
        for low, high in _ranges(engine, nodes, max(1, int(engine.memory / PER_ARC))):
            key = _sorted_arcs(engine, low, high, self_loops)
            done += len(key)
            on_share(done / max(arcs, 1))
            if len(key) == 0:
                continue
            is_listed = key & 1 == 0
            listed += int(is_listed.sum())
            distinct += len(_each_once(key[is_listed]))
            arc = _each_once(key >> 1)
            row, col = arc >> 31, arc & (2**31 - 1)
            writer.append(col.astype(np.int32))
            degree[low + 1 : high + 1] += np.bincount(row - low, minlength=high - low)
            own.append(row[row == col])
    offsets = np.cumsum(degree)
    with ArrayWriter(folder / OFFSETS, np.int64) as writer:
        writer.append(offsets)
    entries = int(offsets[-1])
    others = degree[1:]
    looped = np.concatenate([np.zeros(0, dtype=np.int64), *own])
    others[looped] -= 1
    return Counts(
        edges=(entries + len(looped)) // 2,
        loops=int(loops),
        repeats=listed - distinct,
        one_way=entries - distinct,
        degree=others,
    )


def _each_once(values: np.ndarray) -> np.ndarray:
    """Sorted values without repeats."""
    return values[np.concatenate([[True], values[1:] != values[:-1]])] if len(values) else values


def _ranges(engine: Engine, nodes: int, most: int) -> list[tuple[int, int]]:
    """Ranges of nodes, each with about so many arcs or one node alone."""
    width = -(-nodes // RANGES)
    query = (
        f"SELECT k, count(*) AS arcs FROM (SELECT s // {width} AS k FROM edges UNION ALL "
        f"SELECT t // {width} FROM edges) GROUP BY k"
    )
    table = engine.table(query)
    arcs = np.zeros(-(-nodes // width), dtype=np.int64)
    arcs[table["k"].to_numpy()] = table["arcs"].to_numpy()
    ranges, start, held = [], 0, 0
    for k, count in enumerate(arcs.tolist()):
        if held and held + count > most:
            ranges.append((start * width, k * width))
            start, held = k, 0
        held += count
    return [*ranges, (start * width, nodes)]


def _sorted_arcs(engine: Engine, low: int, high: int, self_loops: bool) -> np.ndarray:
    """The arcs from the nodes of a range, int64, sorted."""
    which = "" if self_loops else "AND s != t"
    query = (
        "SELECT (CAST(s AS BIGINT) << 32) | (CAST(t AS BIGINT) << 1) AS key FROM edges "
        f"WHERE s >= {low} AND s < {high} {which} UNION ALL "
        "SELECT (CAST(t AS BIGINT) << 32) | (CAST(s AS BIGINT) << 1) | 1 FROM edges "
        f"WHERE t >= {low} AND t < {high} AND s != t ORDER BY key"
    )
    return engine.table(query)["key"].to_numpy()
