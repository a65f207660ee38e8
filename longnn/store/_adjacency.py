r"""The neighbours of a stored graph, read by stretches of rows, and its degrees.

Of a graph that keeps arcs A is the symmetric matrix of the double cover, with two rows per node
(:func:`~longnn.graphs.directed_operator`): as a source it has the nodes its arcs go to, as a target
those they come from, and a loop joins the two.

With self loops added or removed, the matrix is :math:`A + S`, S on the diagonal: 1, or the weight
of the loop with a minus. A row of :math:`(A + S) U` is the sum of the neighbours' rows, times the
weights of the edges if they have some, which is what ``torch.nn.functional.embedding_bag``
computes, with the offsets of a stretch in 32 bits however many entries the whole graph has.
"""

import mmap
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from longnn.graphs._adjacency import SelfLoops, check_self_loops
from longnn.store._arrays import StoreError
from longnn.store._graph import GraphStore

#: Entries that are read at once; far below 2^31, which offsets of 32 bits can count.
ENTRIES = {"cpu": 1 << 20, "cuda": 1 << 26}
#: Rows that are read at once, at most.
ROWS = 1 << 20


class Stretch(NamedTuple):
    """Some rows of A on the device that multiplies."""

    first: int
    last: int
    indices: Tensor  # int32 (entries,)
    offsets: Tensor  # int32 (last - first + 1,): where each row begins among these entries
    weights: Tensor | None  # float32 (entries,); None where all are 1


class Side(NamedTuple):
    """A matrix in compressed rows that is a block of A: all of it, or of arcs one of two."""

    row: int  # its first row of A
    column: int  # its first column
    offsets: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None


class Adjacency:
    """A + S, read by stretches of its rows.

    Args:
        graph: on disk.
        self_loops: ``"keep"``, ``"add"`` or ``"remove"``.
        number: of a type of edges; None for all edges.
        device: that multiplies.
        resident: keep what was read: on a GPU in its memory, on a CPU in this program's. Else
            each product reads the graph again, and forgets it.

    Raises:
        StoreError: for offsets or neighbours that no graph has.
    """

    def __init__(
        self,
        graph: GraphStore,
        self_loops: SelfLoops = "keep",
        *,
        number: int | None = None,
        device: torch.device | str = "cpu",
        resident: bool = True,
    ) -> None:
        self.graph, self.nodes, self.number = graph, graph.num_rows, number
        self.device, self.resident = torch.device(device), resident
        n = graph.num_nodes
        blocks = ((0, n, False), (n, 0, True)) if graph.directed else ((0, 0, False),)
        self.sides = [self._side(*block) for block in blocks]
        degree, diagonal = self._scan(check_self_loops(self_loops))
        degree = np.where(degree > 0, degree, 1)  # an isolated node's row of A is zero anyway
        self.degree = torch.from_numpy(degree.astype(np.float32)).to(self.device)  # (rows,)
        self.diagonal = None  # (rows,) S, where it is not zero everywhere
        if diagonal.any():
            self.diagonal = torch.from_numpy(diagonal.astype(np.float32)).to(self.device)
        self._kept: dict[tuple[int, int], Stretch] = {}

    def _side(self, row: int, column: int, back: bool) -> Side:
        # Copy on write: torch wants memory that it may write to, and nobody does.
        arrays = (
            None if a is None else _private(a) for a in self.graph.arcs(self.number, back=back)
        )
        side = Side(row, column, *arrays)  # type: ignore[arg-type]
        if side.offsets[0] != 0 or side.offsets[-1] != len(side.indices):
            raise StoreError(
                f"Expected offsets from 0 to {len(side.indices)} in {self.graph.folder} "
                f"(got {side.offsets[0]} to {side.offsets[-1]}); make the folder again"
            )
        return side

    def _side_of(self, start: int) -> Side:
        return self.sides[start // max(self.graph.num_nodes, 1)]

    def _scan(self, self_loops: SelfLoops) -> tuple[np.ndarray, np.ndarray]:
        """Degrees and S of the rows; every offset and neighbour is checked here, once."""
        count, weighted = self.nodes, self.graph.weighted
        kind = np.float64 if weighted else np.int64
        degree, loops, looped = np.zeros(count, kind), np.zeros(count, kind), np.zeros(count, bool)
        for start, stop in self.stretches(ROWS):
            side = self._side_of(start)
            first = start - side.row  # of its rows
            offsets = side.offsets[first : stop - side.row + 1]
            lengths = np.diff(offsets)
            if (lengths < 0).any():
                at = int(np.argmax(lengths < 0))
                raise StoreError(
                    f"Expected ascending offsets in {self.graph.folder} (got {offsets[at]} before "
                    f"{offsets[at + 1]} at node {first + at}); make the folder again"
                )
            indices = side.indices[offsets[0] : offsets[-1]]
            wrong = indices[(indices < 0) | (indices >= self.graph.num_nodes)]
            if len(wrong):
                raise StoreError(
                    f"Expected neighbours in 0..{self.graph.num_nodes - 1} in {self.graph.folder} "
                    f"(got {wrong[0]}); make the folder again"
                )
            here = slice(start, stop)
            degree[here] = lengths
            if self_loops != "keep" or weighted:
                rows, size = np.repeat(np.arange(stop - start), lengths), stop - start
                own = rows + first == indices
                weights = None
                if side.weights is not None:
                    weights = side.weights[offsets[0] : offsets[-1]].astype(np.float64)
                    degree[here] = np.bincount(rows, weights, size)
                    weights = weights[own]
                looped[here] = np.bincount(rows[own], minlength=size) > 0
                loops[here] = np.bincount(rows[own], weights, size)
            self._forget(side, int(offsets[0]), int(offsets[-1]))
        # One loop of weight 1 where there is none; or none.
        change = {"keep": 0 * loops, "add": (~looped).astype(kind), "remove": -loops}[self_loops]
        return degree + change, change

    def stretches(self, rows: int) -> list[tuple[int, int]]:
        """The rows in stretches of at most ``rows``, with few entries, each on one side."""
        most, found, start = ENTRIES[self.device.type], [], 0
        while start < self.nodes:
            side = self._side_of(start)
            stop = min(start + rows, self.nodes, side.row + self.graph.num_nodes)
            inside = side.offsets[start - side.row : stop - side.row + 1]
            if inside[-1] - inside[0] > most:
                stop = start + int(np.searchsorted(inside, inside[0] + most, side="right")) - 1
                stop = max(stop, start + 1)  # a row longer than that stands alone
            found.append((start, stop))
            start = stop
        return found

    def read(self, start: int, stop: int) -> Stretch:
        """Some rows, on the device."""
        found = self._kept.get((start, stop))
        if found is not None:
            return found
        side = self._side_of(start)
        offsets = torch.from_numpy(side.offsets[start - side.row : stop - side.row + 1])
        begin, end = int(offsets[0]), int(offsets[-1])
        indices = torch.from_numpy(side.indices[begin:end])
        indices = indices + side.column if side.column else indices
        small = (offsets - begin).to(torch.int32)
        weights = None if side.weights is None else torch.from_numpy(side.weights[begin:end])
        if self.device.type != "cpu":
            indices = indices.pin_memory().to(self.device, non_blocking=True)
            small = small.to(self.device)
            weights = None if weights is None else weights.to(self.device)
        found = Stretch(start, stop, indices, small, weights)
        if self.resident and self.device.type != "cpu":
            self._kept[start, stop] = found
        return found

    def product(self, some: Stretch, signal: Tensor) -> Tensor:
        """Rows of (A + S) U for a signal U (nodes, columns): (last - first, columns)."""
        out = embedding_bag(
            some.indices,
            signal,
            some.offsets,
            mode="sum",
            include_last_offset=True,
            per_sample_weights=None if some.weights is None else some.weights.to(signal.dtype),
        )
        if self.diagonal is not None:
            own = self.diagonal[some.first : some.last, None]
            side = self._side_of(some.first)
            shift = side.column - side.row  # a loop of an arc joins the copies of its node
            out.addcmul_(own.to(signal.dtype), signal[some.first + shift : some.last + shift])
        return out

    def done(self, some: Stretch) -> None:
        """The rows are not needed until the next product."""
        side = self._side_of(some.first)
        begin, end = side.offsets[[some.first - side.row, some.last - side.row]].tolist()
        self._forget(side, begin, end)

    def _forget(self, side: Side, begin: int, end: int) -> None:
        if not (self.resident and self.device.type == "cpu"):
            forget(side.indices, begin, end)
            if side.weights is not None:
                forget(side.weights, begin, end)


def _private(array: np.ndarray) -> np.ndarray:
    """The same file, mapped so that NumPy takes it for writable; nothing reaches the file."""
    if not len(array) or not isinstance(array, np.memmap):
        return np.array(array)  # a plain one: a mapped array without entries has no file
    where = {"offset": array.offset, "shape": array.shape}
    return np.memmap(array.filename, dtype=array.dtype, mode="c", **where)  # type: ignore[call-overload]


def forget(array: np.ndarray, begin: int, end: int) -> None:
    """Give back the memory of items ``begin`` to ``end`` of a mapped vector; the file has them."""
    if not isinstance(array, np.memmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    mapped: mmap.mmap = array._mmap  # type: ignore[attr-defined]
    start = array.offset % mmap.ALLOCATIONGRANULARITY  # NumPy maps from a whole page on
    low = start + begin * array.itemsize
    high = start + end * array.itemsize
    low, high = (-(-low // mmap.PAGESIZE) * mmap.PAGESIZE, high // mmap.PAGESIZE * mmap.PAGESIZE)
    if high > low:
        mapped.madvise(mmap.MADV_DONTNEED, low, high - low)


class StoredOperator(Adjacency):
    """The propagation matrix of a graph on disk, in float64 on the CPU.

    Args:
        graph: whose neighbours are read anew for each product.
        self_loops: ``"keep"``, ``"add"`` or ``"remove"``.
    """

    def __init__(self, graph: GraphStore, self_loops: SelfLoops = "keep") -> None:
        super().__init__(graph, self_loops, resident=False)
        self.num_nodes, self.shape = graph.num_nodes, (self.nodes, self.nodes)
        self.spans = self.stretches(ROWS)
        self.root = self.degree.double().sqrt()[:, None]  # (rows, 1)

    @property
    def matrix(self) -> "StoredOperator":
        """Itself: what an estimator of the spectrum multiplies with."""
        return self

    def to(self, target: Any) -> "StoredOperator":
        """Itself: it has one type and one device."""
        return self

    def __matmul__(self, signal: Tensor) -> Tensor:  # (rows, columns)
        scaled = signal.double() / self.root
        out = torch.empty_like(scaled)
        for span in self.spans:
            some = self.read(*span)
            out[some.first : some.last] = self.product(some, scaled)
            self.done(some)
        return out / self.root
