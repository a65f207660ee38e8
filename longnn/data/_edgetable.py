"""A table of edges → node numbers and weights.

Matches the ids in the edges with those of the nodes. Knows nothing of features, labels or of making
a graph undirected.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from longnn.data._errors import DataError
from longnn.data._nodetable import Nodes
from longnn.data._options import UnknownIds
from longnn.data._relations import MAX_TYPES
from longnn.data._tables import Table

SOURCE_NAMES = ("source", "src", "from")
TARGET_NAMES = ("target", "dst", "to")
_DIGITS = 4000  # of the longest id that is compared as a number: Python's own limit is a few more
WEIGHT_NAMES = ("weight", "edge_weight")
TYPE_NAMES = ("edge_type",)


@dataclass(frozen=True, eq=False)
class Edges:
    """What a table says of edges, row by row."""

    index: Tensor  # (2, rows)
    weight: Tensor | None = None  # (rows,)
    kind: Tensor | None = None  # (rows,) int64, a place in `types`
    types: tuple[str, ...] = ()


def read_edges(
    table: Table,
    nodes: Nodes,
    wanted: tuple[str | None, ...],
    type_column: str | None = None,
    *,
    unknown_ids: UnknownIds = "error",
) -> Edges:
    """The edges of a table, row by row.

    Args:
        table: one edge per row.
        nodes: the known nodes; if none are known, those that the edges name are added.
        wanted: the source, target and weight columns the user named, if any.
        type_column: the column of types, if the user named one.
        unknown_ids: ``"drop"`` edges with an end that is no known node; else they are an error.
    """
    kind = table.find(type_column, TYPE_NAMES, "type")
    source, target, weight = edge_columns(table, wanted, kind)
    ends = _ends(table, source, target)
    if nodes.count is None:
        nodes.ids = _ids_of_edges(ends)
        nodes.count = len(nodes.ids)
    known = nodes.ids
    if known is None:
        known = pa.array([str(i) for i in range(nodes.count)], pa.string())
    places = [pc.index_in(texts, value_set=known).fill_null(-1) for texts in ends]
    index = np.stack([place.to_numpy(zero_copy_only=False) for place in places])  # (2, rows)
    lost = index < 0
    if lost.any() and (unknown_ids != "drop" or lost.any(axis=0).all()):
        raise _unknown(table, nodes, (source, target), ends, lost)
    nodes.notes += table.notes
    unused = [name for name in table.names if name not in (source, target, weight, kind)]
    if unused:
        nodes.notes.append(unused_note(table.name, unused, weighted=weight is not None))
    weights = None if weight is None else _read_weights(table, weight)
    keep = np.asarray(~lost.any(axis=0))
    if not keep.all():
        nodes.notes.append(unknown_note(int((~keep).sum()), len(keep), nodes.source))
    kept = torch.from_numpy(keep)
    weights = None if weights is None else weights[kept]
    kinds, types = _read_types(table, kind)
    kinds = None if kinds is None else kinds[kept]
    return Edges(torch.from_numpy(index[:, keep].astype(np.int64)), weights, kinds, types)


def with_unknown(
    nodes: Table,
    key: str,
    edges: Table,
    wanted: tuple[str | None, ...],
    type_column: str | None = None,
) -> Table:
    """The node table and a row of gaps for each node that only the edges name."""
    kind = edges.find(type_column, TYPE_NAMES, "type")
    source, target, _ = edge_columns(edges, wanted, kind)
    named, known = _ids_of_edges(_ends(edges, source, target)), nodes.texts(key)
    new = named.filter(pc.invert(pc.is_in(named, value_set=known)))
    if not len(new):
        return nodes
    columns = {
        name: pa.concat_arrays([column, pa.nulls(len(new), column.type)])
        for name, column in nodes.columns.items()
    }
    columns[key] = pa.concat_arrays([known.cast(pa.string()), new])
    notes = (*nodes.notes, added_note(len(new), edges.name))
    return replace(nodes, columns=columns, notes=notes)


def added_note(number: int, edges: str) -> str:
    """What ``unknown_ids="add"`` has done."""
    return f"Nodes that only {edges} names were added, with gaps in all columns: {number:,}."


def _ends(table: Table, source: str, target: str) -> list[Any]:
    """The ids at both ends of each edge."""
    ends = [table.texts(column) for column in (source, target)]
    for column, texts in zip((source, target), ends, strict=True):
        if texts.null_count:
            row = pc.index(pc.is_null(texts), True).as_py()
            raise table.error("Expected the id of a node (got an empty cell).", row, column)
    return ends


def unused_note(table: str, columns: Sequence[str], *, weighted: bool) -> str:
    """Which columns of the edges mean nothing to longnn."""
    hint = "" if weighted else "; if one is the weight of an edge, name it with weight_column"
    return f"Columns of {table} not used: {', '.join(columns)}{hint}."


def unknown_note(dropped: int, rows: int, source: str) -> str:
    """What ``unknown_ids="drop"`` has done."""
    return f"Edges with an end that is not in {source} were dropped: {dropped:,} of {rows:,}."


def unknown_text(value: str, count: int, rows: int, source: str) -> str:
    """What is wrong with an edge whose end is no node, and what can be done."""
    expected = f"Expected the id of a node in {source} (got {value!r});"
    if count == rows:
        return f"{expected} no edge has two known ends. Name the column of the ids with id_column."
    have = "has" if count == 1 else "have"
    return (
        f"{expected} {count:,} of {rows:,} edges {have} such an end. Leave these edges out with "
        "unknown_ids=drop, or add the nodes with unknown_ids=add."
    )


def _unknown(
    table: Table,
    nodes: Nodes,
    columns: tuple[str, str],
    ends: list[Any],
    lost: np.ndarray,  # (2, rows)
) -> DataError:
    """The error for the first edge with an unknown end; sources are looked at first."""
    end = 0 if lost[0].any() else 1
    row = int(lost[end].argmax())
    value = ends[end][row].as_py()
    count = int(lost.any(axis=0).sum())
    text = unknown_text(value, count, lost.shape[1], nodes.source)
    return table.error(text, row, columns[end], value=value)


def _read_types(table: Table, column: str | None) -> tuple[Tensor | None, tuple[str, ...]]:
    """The type of every edge as a number, and the names in alphabetical order."""
    if column is None:
        return None, ()
    texts = table.texts(column)
    if texts.null_count:
        row = pc.index(pc.is_null(texts), True).as_py()
        raise table.error("Expected the type of an edge (got an empty cell).", row, column)
    names = pc.unique(texts).to_pylist()
    if len(names) > MAX_TYPES:
        raise table.error(
            f"Expected at most {MAX_TYPES} types of edges (got {len(names)}); name another column "
            "with type_column.",
            column=column,
        )
    names.sort()
    place = pc.index_in(texts, value_set=pa.array(names, texts.type))
    return torch.from_numpy(place.to_numpy(zero_copy_only=False).astype(np.int64)), tuple(names)


def edge_columns(
    table: Table, wanted: tuple[str | None, ...], kind: str | None = None
) -> tuple[str, str, str | None]:
    """The source, target and weight columns: those the user named, else by their names.

    ``kind`` is the column of types, which is none of them.

    >>> edge_columns(Table({"to": pa.array([]), "from": pa.array([])}), (None, None, None))
    ('from', 'to', None)
    """
    weight = table.find(wanted[2], WEIGHT_NAMES, "weight")
    source = table.find(wanted[0], SOURCE_NAMES, "source")
    target = table.find(wanted[1], TARGET_NAMES, "target")
    free = [name for name in table.names if name not in (weight, kind, wanted[0], wanted[1])]
    if source is None or target is None:
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


def _ids_of_edges(ends: list[Any]) -> Any:
    """The ids in the edges: whole numbers by value, else in order of appearance."""

    both = pa.concat_arrays([end.cast(pa.string()) for end in ends]).dictionary_encode()
    codes = both.indices.to_numpy().reshape(2, -1).T.reshape(-1)  # edge by edge
    first = np.empty(len(both.dictionary), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # the last to be written is the first to occur
    distinct = both.dictionary.take(pa.array(np.argsort(first)))
    numbers = whole_numbers(distinct)
    if numbers is None:
        return distinct
    return distinct.take(pa.array(sorted(range(len(numbers)), key=numbers.__getitem__), pa.int64()))


def _read_weights(table: Table, column: str) -> Tensor:
    values = table.numbers(column)
    if (values < 0).any():
        row = int((values < 0).argmax())
        value = float(values[row])
        raise table.error(f"Expected a weight >= 0 (got {value:g}).", row, column, value=value)
    return torch.from_numpy(values.copy())


def whole_numbers(texts: Any) -> Sequence[int] | None:
    """The numbers of ids that are all whole numbers written the usual way (``007`` is not).

    >>> import pyarrow
    >>> whole_numbers(pyarrow.array(["-1", "20"])), whole_numbers(pyarrow.array(["1", "007"]))
    ([-1, 20], None)
    """
    try:
        numbers = pc.cast(texts, pa.int64())
    except pa.ArrowInvalid:  # text, or a number of more than 64 bits
        found = texts.to_pylist()
        return [int(text) for text in found] if all(map(_is_whole, found)) else None
    if not pc.all(pc.equal(pc.cast(numbers, pa.string()), texts)).as_py():
        return None
    values = numbers.to_numpy()
    in_order = bool((values == np.arange(len(values))).all())
    return range(len(values)) if in_order else values.tolist()


def _is_whole(text: str) -> bool:
    plain = text.removeprefix("-")
    return (
        plain.isascii() and plain.isdecimal() and len(plain) <= _DIGITS and str(int(text)) == text
    )
