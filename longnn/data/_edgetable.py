"""A table of edges → node numbers and weights.

Matches the ids the edges name with the nodes there are. Knows nothing of features, labels
or of making a graph undirected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn.data._nodetable import Nodes
from longnn.data._tables import Table

SOURCE_NAMES = ("source", "src", "from")
TARGET_NAMES = ("target", "dst", "to")
WEIGHT_NAMES = ("weight", "edge_weight")


def read_edges(
    table: Table, nodes: Nodes, wanted: tuple[str | None, ...]
) -> tuple[Tensor, Tensor | None]:
    """Arcs (2, rows) and weights (rows,) of a table, row by row.

    Args:
        table: One edge a row.
        nodes: The nodes there are; where they are unknown, those the edges name are added.
        wanted: The source, target and weight columns the user named, if any.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    source, target, weight = _edge_columns(table, wanted)
    ends = [table.texts(column) for column in (source, target)]
    for column, texts in zip((source, target), ends, strict=True):
        if texts.null_count:
            row = pc.index(pc.is_null(texts), True).as_py()
            raise table.error("Expected the id of a node (got an empty cell).", row, column)
    if nodes.count is None:
        nodes.ids = _ids_of_edges(ends)
        nodes.count = len(nodes.ids)
    known = nodes.ids
    if known is None:
        known = pa.array([str(i) for i in range(nodes.count)], pa.string())
    index = []
    for column, texts in zip((source, target), ends, strict=True):
        place = pc.index_in(texts, value_set=known)
        if place.null_count:
            row = pc.index(pc.is_null(place), True).as_py()
            value = texts[row].as_py()
            raise table.error(
                f"Expected the id of a node in {nodes.source} (got {value!r}); add the node or "
                "remove the edge.",
                row,
                column,
                value=value,
            )
        index.append(torch.from_numpy(place.to_numpy(zero_copy_only=False).astype(np.int64)))
    if not table.has_header:
        nodes.notes.append(f"{table.path.name} has no header: its first line was read as an edge.")
    unused = [name for name in table.names if name not in (source, target, weight)]
    if unused:
        nodes.notes.append(f"Columns of {table.path.name} not used: {', '.join(unused)}.")
    return torch.stack(index), None if weight is None else _read_weights(table, weight)


def _edge_columns(table: Table, wanted: tuple[str | None, ...]) -> tuple[str, str, str | None]:
    weight = table.find(wanted[2], WEIGHT_NAMES, "weight")
    source = table.find(wanted[0], SOURCE_NAMES, "source")
    target = table.find(wanted[1], TARGET_NAMES, "target")
    free = [name for name in table.names if name not in (weight, wanted[0], wanted[1])]
    if source is None or target is None:
        if len(free) + sum(end is not None for end in wanted[:2]) < 2:
            raise table.error(
                "Expected a source and a target column (got the columns "
                f"{', '.join(map(repr, table.names))}); name them with source_column and "
                "target_column."
            )
        source = wanted[0] or free.pop(0)
        target = wanted[1] or free.pop(0)
    return source, target, weight


def _ids_of_edges(ends: list[Any]) -> Any:
    """The ids the edges name: whole numbers by value, else in order of appearance."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = np.stack([end.to_numpy(zero_copy_only=False) for end in ends], axis=1)
    distinct = pc.unique(pa.array(rows.reshape(-1), pa.string()))
    texts = distinct.to_pylist()
    if all(is_whole(text) for text in texts):
        return pa.array(sorted(texts, key=int), pa.string())
    return distinct


def _read_weights(table: Table, column: str) -> Tensor:
    values = table.numbers(column)
    if (values < 0).any():
        row = int((values < 0).argmax())
        value = float(values[row])
        raise table.error(f"Expected a weight >= 0 (got {value:g}).", row, column, value=value)
    return torch.from_numpy(values.copy())


def is_whole(text: str) -> bool:
    """Whether a text is a whole number written the usual way (`007` is not)."""
    return text.removeprefix("-").isdecimal() and str(int(text)) == text
