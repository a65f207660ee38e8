"""Edges between numbers of nodes → the sorted neighbours of each node, in files.

Edges are listed in a plain file in the order in which they come, then sorted by ranges of nodes
that fit into memory; each range reads the list anew. No database is needed: a range is a selection
and a sort of whole numbers.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from longnn._base.files import writing
from longnn.data._arcs import Chunk, Directed, Tally, pairs_of
from longnn.store._arrays import ArrayWriter, StoreError
from longnn.store._graph import OFFSETS, arc_files

Share = Callable[[float], None]
#: The most nodes that int32 can number.
MOST_NODES = 2**31 - 1
#: Bytes of memory for each arc that is sorted: its key, its order, and copies; with weights.
PER_ARC = {False: 60, True: 120}
#: Ranges of nodes whose arcs are counted, to choose how many are sorted at once.
RANGES = 4096
#: Edges that are read at once.
ROWS = 2**22
#: Fields of a listed edge.
_FIELDS = [("source", "<i4"), ("target", "<i4"), ("weight", "<f8"), ("kind", "i1")]


class EdgeList:
    """Edges in a plain file, in the order in which they came; how many each range of nodes has.

    Args:
        room: a folder for the file.
        nodes: their number.

    Raises:
        StoreError: for more nodes than can be numbered.
    """

    def __init__(self, room: Path, nodes: int) -> None:
        if nodes > MOST_NODES:
            raise StoreError(f"Expected at most {MOST_NODES:,} nodes (got {nodes:,})")
        self.path, self.nodes = room / "edges", nodes
        self.width = -(-nodes // RANGES)  # nodes of a range
        self.arcs = np.zeros(-(-nodes // self.width), dtype=np.int64)  # by range, both ends
        self.listed: dict[int, int] = {}  # edges of each type
        self.fields = np.dtype(_FIELDS[:2])

    def __enter__(self) -> "EdgeList":
        with writing(self.path):
            self._file = self.path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(
        self,
        source: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray | None = None,
        kind: np.ndarray | None = None,
    ) -> None:
        """Add edges; all have weights and types, or none has."""
        values = {"source": source, "target": target, "weight": weight, "kind": kind}
        self.fields = np.dtype([f for f in _FIELDS if values[f[0]] is not None])
        edges = np.empty(len(source), self.fields)
        for name in self.fields.names or ():
            edges[name] = values[name]
        with writing(self.path):
            self._file.write(edges.data)
        for ends in (source, target):
            self.arcs += np.bincount(ends // self.width, minlength=len(self.arcs))
        if kind is not None:
            for number, count in enumerate(np.bincount(kind).tolist()):
                self.listed[number] = self.listed.get(number, 0) + count

    @property
    def weighted(self) -> bool:
        """Whether edges have weights."""
        return "weight" in (self.fields.names or ())

    def chunks(self, kind: int | None = None) -> Iterator[Chunk]:
        """All edges in order, or those of one type."""
        self._file.flush()
        with self.path.open("rb") as file:
            while len(edges := np.fromfile(file, self.fields, ROWS)):
                kept = edges if kind is None else edges[edges["kind"] == kind]
                weight = kept["weight"].copy() if self.weighted else None
                yield kept["source"].copy(), kept["target"].copy(), weight  # without gaps

    def ranges(self, most: int) -> list[tuple[int, int]]:
        """Ranges of nodes, each with about so many arcs or as few nodes as are counted together."""
        ranges, start, held = [], 0, 0
        for k, count in enumerate(self.arcs.tolist()):
            if held and held + count > most:
                ranges.append((start * self.width, k * self.width))
                start, held = k, 0
            held += count
        return [*ranges, (start * self.width, self.nodes)]


@dataclass(frozen=True, eq=False)
class Counts:
    """What the edges came to.

    Args:
        tally: of all ranges.
        directed: whether arcs are kept.
        degrees: int64 (nodes,), how many neighbours each node has, itself not counted: the edges of
            an undirected graph; arcs from it, and arcs to it.
        isolated: how many nodes have no edge.
    """

    tally: Tally
    directed: bool
    degrees: tuple[np.ndarray, ...]
    isolated: int


def write_neighbours(
    edges: EdgeList,
    folder: Path,
    *,
    memory: float,
    directed: Directed = False,
    self_loops: bool = False,
    kind: int | None = None,
    number: int | None = None,
    on_share: Share | None = None,
) -> Counts:
    """Write the neighbours of each node by all edges, or by those of one type.

    Args:
        edges: as they are listed.
        folder: to write to; see :class:`~longnn.store._graph.GraphStore` for the files.
        memory: bytes that sorting may take.
        directed, self_loops: as of :func:`longnn.data.load_files`.
        kind, number: of a type: in the list, and in the names of files.
        on_share: called with the share that is done.
    """
    tally, weighted = Tally(), edges.weighted
    ranges = edges.ranges(max(1, int(memory / PER_ARC[weighted])))
    degrees = np.zeros((3, edges.nodes), dtype=np.int64)  # of both ways, there, and back
    with ExitStack() as stack:
        sides = []
        for back in (False, True) if directed else (False,):
            names = arc_files(weighted=weighted, number=number, back=back)
            files = zip(names, (np.int64, np.int32, np.float32), strict=False)
            sides.append([stack.enter_context(ArrayWriter(folder / n, kind)) for n, kind in files])
            sides[-1][0].append(np.zeros(1))
        for k, (low, high) in enumerate(ranges):
            pairs = pairs_of(edges.chunks(kind), tally, low=low, high=high, self_loops=self_loops)
            written = [pairs.arcs(), pairs.arcs(back=True)] if directed else [pairs.both_ways()]
            for (offsets, indices, *weights), (row, col, weight) in zip(
                sides, written, strict=True
            ):
                counts = np.bincount(row - low, minlength=high - low)
                offsets.append(indices.size + np.cumsum(counts))
                indices.append(col)
                for file in weights:
                    assert weight is not None
                    file.append(weight)
            other = pairs.row != pairs.col
            for degree, chosen in zip(degrees, (True, pairs.there, pairs.back), strict=True):
                counts = np.bincount(pairs.row[other & chosen] - low, minlength=high - low)
                degree[low:high] = counts
            if on_share is not None:
                on_share((k + 1) / len(ranges))
    keep = directed is True or (directed == "auto" and not tally.symmetric)
    if directed and not keep:
        for name in arc_files(weighted=weighted, number=number, back=True):
            (folder / name).unlink()
    none = degrees[0] == 0
    if tally.looped:
        none &= np.diff(np.load(folder / OFFSETS)) == 0
    return Counts(tally, keep, tuple(degrees), int(none.sum()))
