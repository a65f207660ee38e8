"""A table of edges → numbers of nodes, weights and types, batch by batch.

Matches the ids in the edges with those of the nodes: whole numbers of 64 bits by value where all
are written the usual way, else by what is written, without white space around it; ``007`` is text.
In memory a table is one batch. Knows nothing of features, labels or of what becomes of repeats.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from longnn._base.late import Late
from longnn.data._errors import DataError, counted, have
from longnn.data._options import TableOptions
from longnn.data._relations import MAX_TYPES
from longnn.data._tables import Table, plain_ids
from longnn.data._text import INDEX

pc = Late("pyarrow.compute")

SOURCE_NAMES = ("source", "src", "from")
TARGET_NAMES = ("target", "dst", "to")
WEIGHT_NAMES = ("weight", "edge_weight")
TYPE_NAMES = ("edge_type",)
#: Rows that are matched with the nodes at once, where they do not all fit into memory.
ROWS = 2**23


class Batch(NamedTuple):
    """Some edges, or all; an end is the number of a node, and a kind the place of a type."""

    source: np.ndarray  # int64 (edges,)
    target: np.ndarray  # int64 (edges,)
    weight: np.ndarray | None = None  # float64 (edges,)
    kind: np.ndarray | None = None  # int64 (edges,)

    def renumbered(self, number: np.ndarray) -> "Batch":
        """The same edges by other numbers; one with an end whose number is -1 is left out."""
        source, target = number[self.source], number[self.target]
        left = (source >= 0) & (target >= 0)
        rest = (None if array is None else array[left] for array in self[2:])
        return Batch(source[left], target[left], *rest)


class Ids:
    """The ids of nodes, int64 or text, and which number each has.

    >>> Ids(pa.array(["7", "a"])).find(pa.array([8, 7])).tolist()
    [-1, 0]
    """

    def __init__(self, values: Any) -> None:
        self.values = values
        whole = pa.types.is_integer(values.type)
        self._in_order = whole and values.equals(pa.array(np.arange(len(values))))

    def __len__(self) -> int:
        return len(self.values)

    def find(self, cells: Any) -> np.ndarray:  # int64 (cells,)
        """The number of each id, -1 for one that is none of a node."""
        if self._in_order and pa.types.is_integer(cells.type):
            numbers = cells.fill_null(-1).to_numpy(zero_copy_only=False)
            return np.where((numbers >= 0) & (numbers < len(self)), numbers, -1)
        values = self.values
        if cells.type != values.type:
            cells, values = cells.cast(pa.string()), values.cast(pa.string())
        place = pc.index_in(cells, value_set=values).fill_null(-1)
        return place.to_numpy(zero_copy_only=False).astype(np.int64)


class EdgeTable:
    """A table of edges and what its columns are for.

    Args:
        table: one edge per row.
        options: with the columns that the user named.
    """

    def __init__(self, table: Table, options: TableOptions) -> None:
        self.table = table = options.meaning(table)
        self.options, self._empty = options, 0
        kind = _refusable(table, options.type_column, TYPE_NAMES, "type")
        named = options.source_column, options.target_column, options.weight_column
        source, target, weight = edge_columns(table, named, kind)
        self.ends, self.weight, self.kind = (source, target), weight, kind
        self.notes = list(table.notes)
        unused = [n for n in table.names if n not in (source, target, self.weight, self.kind)]
        if unused:
            hint = "; if one is the weight of an edge, name it with weight_column"
            hint = hint if weight is None else ""
            self.notes.append(f"Columns of {table.name} not used: {', '.join(unused)}{hint}.")

    def ids(self) -> Any:
        """The distinct ids at the ends: whole numbers by value, else in order of appearance."""
        seen, flaws, self._empty = pa.array([], pa.int64()), _Flaws(), 0
        for piece in self.table.batches(self.ends, ROWS):
            ends = self._ends(piece, flaws)
            places = np.arange(2 * len(piece)).reshape(2, -1).T.reshape(-1)  # edge by edge
            both = _joined(ends).take(pa.array(places))
            seen = pc.unique(_joined([seen, both]))
        self._check_empty(flaws)
        seen = seen.drop_null()
        numbers = whole_numbers(seen)
        return seen if numbers is None else numbers.take(pc.array_sort_indices(numbers))

    def types(self) -> tuple[str, ...]:
        """The names of the types in alphabetical order."""
        if self.kind is None:
            return ()
        seen, flaws = pa.array([], pa.string()), _Flaws()
        for piece in self.table.batches((self.kind,), ROWS):
            texts = piece.texts(self.kind)
            flaws.gap(piece, self.kind, texts, "the type of an edge", 0)
            seen = pc.unique(pa.concat_arrays([seen, texts.cast(pa.string())]))
        flaws.check()
        if len(seen) > MAX_TYPES:
            raise self.table.error(
                f"Expected at most {MAX_TYPES} types of edges (got {len(seen)}); name another "
                "column with type_column.",
                column=self.kind,
            )
        return tuple(sorted(seen.to_pylist()))

    def numbered(
        self,
        ids: Ids,
        *,
        source: str,
        types: Sequence[str] = (),
        on_share: Callable[[float], None] | None = None,
    ) -> Iterator[Batch]:
        """The edges, so many at a time; notes are complete after the last.

        Args:
            ids: of the nodes.
            source: what errors call the nodes.
            types: those of :meth:`types`.
            on_share: called with the share of the table that was read.
        """
        columns = [name for name in (*self.ends, self.weight, self.kind) if name is not None]
        drops_unknown = self.options.unknown_ids == "drop"
        dropped, rows, flaws, self._empty = 0, 0, _Flaws(), 0
        first: list[tuple[int, Any] | None] = [None, None]  # row and id of an unknown end
        for piece in self.table.batches(columns, ROWS):
            ends = self._ends(piece, flaws)
            if any(order < _WEIGHT for order in flaws):
                continue  # only a flaw of the other end could come before it
            index = np.stack([ids.find(cells) for cells in ends])  # (2, rows)
            empty = pc.or_(*(pc.is_null(cells) for cells in ends)).to_numpy(zero_copy_only=False)
            lost = (index < 0) & ~empty
            for k, cells in enumerate(ends):
                if first[k] is None and lost[k].any():
                    row = int(lost[k].argmax())
                    first[k] = piece.start + row, str(cells[row].as_py())
            keep = np.asarray(~(lost.any(axis=0) | empty))
            dropped, rows = dropped + int(lost.any(axis=0).sum()), rows + len(keep)
            weight = self._weights(piece, flaws)
            kind = None
            if self.kind is not None:
                place = pc.index_in(piece.texts(self.kind), value_set=pa.array(types, pa.string()))
                kind = place.to_numpy(zero_copy_only=False).astype(np.int64)[keep]
            if on_share is not None:
                on_share(rows / max(len(self.table), 1))
            if not flaws and (not dropped or drops_unknown):
                weight = None if weight is None else weight[keep]
                yield Batch(index[0, keep], index[1, keep], weight, kind)
        self._check_empty(flaws)
        if dropped and (not drops_unknown or dropped == rows):
            k = 0 if first[0] is not None else 1
            row, value = first[k]  # type: ignore[misc]
            text = _unknown_text(value, dropped, rows, source, ids.values)
            raise self.table.error(text, row, self.ends[k], value=value)
        flaws.check()
        self.notes += self.table.reading_notes
        if self._empty:
            self.notes.append(f"Edges with an empty end were dropped: {self._empty:,} of {rows:,}.")
        if dropped:
            self.notes.append(
                f"Edges with an end that is not in {source} were dropped: {dropped:,} of {rows:,}."
            )

    def _ends(self, piece: Table, flaws: "_Flaws") -> list[Any]:
        ends = [piece.ids(column) for column in self.ends]
        self._empty += pc.sum(pc.or_(*(pc.is_null(cells) for cells in ends))).as_py() or 0
        for k, (column, cells) in enumerate(zip(self.ends, ends, strict=True)):
            if self.options.empty_ends != "drop":
                flaws.gap(piece, column, cells, "the id of a node", k)
        return ends

    def _check_empty(self, flaws: "_Flaws") -> None:
        """Raise if an edge has an empty end, and say how many have."""
        error = flaws.get(0, flaws.get(1))
        if error is not None:
            number = f"{counted(self._empty, 'edge')} {have(self._empty)} such an end"
            text = f"{error.args[0]} {number}: leave it out with empty_ends=drop."
            error.args = (text.replace("leave it", "leave them") if self._empty > 1 else text,)
            raise error

    def _weights(self, piece: Table, flaws: "_Flaws") -> np.ndarray | None:
        if self.weight is None:
            return np.ones(len(piece)) if self.options.repeats == "count" else None
        try:
            values = piece.numbers(self.weight)
        except DataError as error:
            flaws.setdefault(_WEIGHT, error)
            return np.ones(len(piece))
        if (values < 0).any():
            row = int((values < 0).argmax())
            value = float(values[row])
            message = f"Expected a weight >= 0 (got {value:g})."
            flaws.setdefault(_WEIGHT, piece.error(message, row, self.weight, value=value))
        return values


#: The order of a bad weight among flaws: after the two ends.
_WEIGHT = 2


class _Flaws(dict[int, DataError]):
    """The first flaw of each kind: which is raised does not depend on how much is read at once."""

    def gap(self, piece: Table, column: str, cells: Any, what: str, order: int) -> None:
        """An empty cell is a flaw."""
        if cells.null_count and order not in self:
            row = pc.index(pc.is_null(cells), True).as_py()
            self[order] = piece.wrong(what, row, column)

    def check(self) -> None:
        """Raise the first in order, if there is one."""
        if self:
            raise self[min(self)]


def _joined(arrays: Sequence[Any]) -> Any:
    """Ids one after the other: whole numbers if all are, else text."""
    if any(not pa.types.is_integer(array.type) for array in arrays):
        arrays = [array.cast(pa.string()) for array in arrays]
    return pa.concat_arrays(arrays)


def with_unknown(nodes: Table, key: str, edges: EdgeTable) -> Table:
    """The node table and a row of gaps for each node that only the edges name."""
    named = edges.ids()
    new = named.filter(pa.array(Ids(nodes.ids(key)).find(named) < 0))
    only = f"Nodes that only {edges.table.name} names were added, with gaps in all columns"
    told = f"{only}: {len(new):,}. What is predicted of them and near them rests on medians."
    return nodes.with_rows(key, new, told) if len(new) else nodes


def _unknown_text(value: str, count: int, rows: int, source: str, ids: Any) -> str:
    """What is wrong with an edge whose end is no node, and what can be done."""
    expected = f"Expected the id of a node in {source} (got {value!r});"
    texts = ids.cast(pa.string())
    same = texts.filter(pc.equal(plain_ids(texts), plain_ids(pa.array([value]))[0]))
    if len(same):
        return f"{expected} it has {same[0].as_py()!r}. If these are one number, use ids=numbers."
    if count == rows:
        remedy = "no edge has two known ends. Name the column of the ids with id_column."
    else:
        remedy = f"{count:,} of {rows:,} edges {have(count)} such an end. Leave these edges out "
        remedy += "with unknown_ids=drop, or add the nodes with unknown_ids=add."
    return f"{expected} {remedy} New nodes of a run's graph: longnn predict RUN --add NEW."


def edge_columns(
    table: Table, wanted: tuple[str | None, ...], kind: str | None = None
) -> tuple[str, str, str | None]:
    """The source, target and weight columns: those the user named, else by their names.

    ``kind`` is the column of types, which is none of them.

    >>> edge_columns(Table({"to": pa.array([]), "from": pa.array([])}), (None, None, None))
    ('from', 'to', None)
    """
    weight = _refusable(table, wanted[2], WEIGHT_NAMES, "weight")
    source = table.find(wanted[0], SOURCE_NAMES, "source")
    target = table.find(wanted[1], TARGET_NAMES, "target")
    free = [name for name in table.names if name not in (weight, kind, wanted[0], wanted[1])]
    if source is None or target is None:
        if len(free) > 2 and INDEX in free:
            free.remove(INDEX)
        if len(free) + sum(end is not None for end in wanted[:2]) < 2:
            raise table.error(
                "Expected a source and a target column (got the columns "
                f"{', '.join(map(repr, table.names))}{table.hint}); name them with "
                "source_column and target_column."
            )
        source = wanted[0] or free.pop(0)
        target = wanted[1] or free.pop(0)
    if len({source, target, weight}) < 3:
        twice = source if source in (target, weight) else target
        raise table.error(
            "Expected source, target and weight in columns of their own (got one column twice); "
            "name them with source_column, target_column and weight_column.",
            column=twice,
        )
    if kind is not None and kind in (source, target, weight):
        raise table.error(
            "Expected types of edges in a column of their own (got one column twice); name another "
            "with type_column.",
            column=kind,
        )
    return source, target, weight


def _refusable(table: Table, wanted: str | None, guesses: Sequence[str], what: str) -> str | None:
    """A column that edges may have, unless the user wants none."""
    if wanted == "none" and wanted not in table.names:
        return None
    return table.find(wanted, guesses, what)


def whole_numbers(ids: Any) -> Any | None:
    """Ids as int64 that are all whole numbers written the usual way (``007`` is not), else None.

    >>> whole_numbers(pa.array(["-1", "20"])).to_pylist(), whole_numbers(pa.array(["1", "007"]))
    ([-1, 20], None)
    """
    if pa.types.is_integer(ids.type):
        return ids
    try:
        numbers = pc.cast(ids, pa.int64())
    except pa.ArrowInvalid:  # text, or a number of more than 64 bits
        return None
    same = pc.all(pc.equal(pc.cast(numbers, pa.string()), ids)).as_py()
    return numbers if same is not False else None
