"""The nodes in order, each with its number, and the edges between the numbers.

With a node table the number of a node is its row. Without one the nodes are those of the edges:
whole numbers by value, other ids in order of appearance, as the loader in memory has it.
"""

from pathlib import Path

from longnn.data import DataError, unknown_note, unknown_text
from longnn.store._edges import MOST_NODES, Relation, Share
from longnn.store._engine import Engine, quoted
from longnn.store._manifest import StoreError


def number_nodes(engine: Engine, edges: Relation, nodes: Relation | None) -> tuple[str, int]:
    """Make the table ``ids (id, number)``; returns how the engine compares ids, and how many.

    Args:
        engine: where the table is made.
        edges: source and target of each edge.
        nodes: the ids of the nodes in order, or None: those of the edges.

    Returns:
        ``"place"`` (ids are the numbers 0, 1, ... in order), ``"whole"`` or ``"text"``; and the
        number of nodes.
    """
    whole = edges.is_whole(engine) and (nodes is None or nodes.is_whole(engine))
    if nodes is not None:
        expression = nodes.whole(0) if whole else nodes.text(0)
        engine.run(
            f"CREATE TABLE ids AS SELECT {expression} AS id, row_number() OVER () - 1 AS number "
            f"FROM {nodes.sql}"
        )
    else:
        _ids_of_edges(engine, edges, whole)
    found = engine.value("SELECT count(*) FROM ids")
    if found > MOST_NODES:
        raise StoreError(f"Expected at most {MOST_NODES:,} nodes (got {found:,})")
    if whole and engine.value("SELECT bool_and(id IS NOT NULL AND id = number) FROM ids"):
        return "place", found
    if nodes is not None:
        _check_ids(engine, nodes)
    return "whole" if whole else "text", found


def _ids_of_edges(engine: Engine, edges: Relation, whole: bool) -> None:
    if whole:
        ends = [f"SELECT {edges.whole(i)} AS id FROM {edges.sql}" for i in (0, 1)]
        query = f"SELECT id FROM ({' UNION ALL '.join(ends)}) WHERE id IS NOT NULL GROUP BY id"
        order = "id"
    else:
        rows = f"(SELECT *, row_number() OVER () AS place FROM {edges.sql})"
        ends = [
            f"SELECT {edges.text(i)} AS id, 2 * place + {i} AS place FROM {rows}" for i in (0, 1)
        ]
        query = (
            f"SELECT id, min(place) AS place FROM ({' UNION ALL '.join(ends)}) "
            "WHERE id IS NOT NULL GROUP BY id"
        )
        order = "place"
    engine.run(
        "CREATE TABLE ids AS SELECT id, row_number() OVER () - 1 AS number "
        f"FROM (SELECT id FROM ({query}) ORDER BY {order})"
    )


def _check_ids(engine: Engine, nodes: Relation) -> None:
    """Each node has an id of its own."""
    path, column = nodes.parts.path, nodes.columns[0]
    empty = engine.value("SELECT min(number) FROM ids WHERE id IS NULL")
    if empty is not None:
        raise DataError(
            f"Expected an id (got an empty cell in row {empty + 1:,}).", path=path, column=column
        )
    twice = engine.value("SELECT id FROM ids GROUP BY id HAVING count(*) > 1 LIMIT 1")
    if twice is not None:
        raise DataError(
            f"Expected unique ids (got {str(twice)!r} more than once); if this is not the id "
            "column, name it with id_column.",
            path=path,
            column=column,
            value=twice,
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

    Args:
        engine: with the table ``ids``.
        edges: source and target of each edge.
        how: as :func:`number_nodes` returns it.
        nodes: what a message calls the node table.
        on_share: called with the share that is done.
        unknown_ids: whether an edge with an end that is no known node is an error, or dropped.

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
    for column, end in zip(edges.columns, ends, strict=True):
        if engine.value(f"SELECT 1 FROM {edges.sql} WHERE ({end}) IS NULL LIMIT 1"):
            raise DataError(
                "Expected the id of a node (got an empty cell).",
                path=edges.parts.path,
                column=column,
            )


def _unknown(
    engine: Engine, edges: Relation, ends: list[str], nodes: str, counts: tuple[int, int]
) -> DataError:
    """The error for an edge whose end is no node."""
    for column, end in zip(edges.columns, ends, strict=True):
        value = engine.value(
            f"SELECT {end} FROM {edges.sql} WHERE ({end}) NOT IN (SELECT id FROM ids) LIMIT 1"
        )
        if value is not None:
            return DataError(
                unknown_text(str(value), *counts, nodes),
                path=edges.parts.path,
                column=column,
                value=value,
            )
    raise AssertionError("an edge has an unknown end")


def write_ids(engine: Engine, path: Path) -> None:
    """One column ``id``, one row per node, in order."""
    engine.run(
        f"COPY (SELECT id FROM ids ORDER BY number) TO {quoted(path)} "
        "(FORMAT parquet, COMPRESSION zstd)"
    )
