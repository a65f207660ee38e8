"""A table of edges → the sorted neighbours of each node, in files.

The engine sorts one range of nodes after the other, so that no more than a range is in memory.
Every edge is stored both ways, none twice.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from longnn.store._arrays import ArrayWriter
from longnn.store._edges import Share
from longnn.store._engine import Engine
from longnn.store._graph import NEIGHBOURS, OFFSETS

#: Bytes of memory for each arc that is sorted: a key in the engine, its order, and its copies here.
PER_ARC = 160
#: Ranges of nodes whose arcs are counted, to choose how many are sorted at once.
RANGES = 4096


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

    Args:
        engine: with the table.
        folder: for the files.
        nodes: their number.
        self_loops: keep them.
        on_share: called with the share that is done.
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
