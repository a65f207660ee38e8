"""Listed edges → arcs, sorted, each once: of a whole graph, or of a range of its nodes at a time.

The one place that knows what becomes of self loops, of repeated edges and their weights, and of
edges that are listed one way. Knows nothing of files or ids.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from longnn.data._errors import DataError, counted, have, was

#: Whether arcs are kept: yes, no, or if some of them have no reverse.
Directed = bool | Literal["auto"]
#: Ends of listed edges, int (edges,) each, and their weights (edges,) or None.
Chunk = tuple[np.ndarray, np.ndarray, np.ndarray | None]


class Pairs(NamedTuple):
    """The pairs of nodes with an edge, sorted, each once, and what was listed of each."""

    row: np.ndarray  # int64 (pairs,)
    col: np.ndarray  # int64 (pairs,)
    there: np.ndarray  # bool (pairs,): an arc from row to col was listed
    back: np.ndarray  # bool (pairs,): an arc from col to row was listed
    weight: np.ndarray | None = None  # float64 (pairs,): sum of the weights from row to col
    back_weight: np.ndarray | None = None  # float64 (pairs,): sum of those from col to row

    def both_ways(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Every edge in both directions. Its weight is the mean of the directions that have one,
        so that listing an edge both ways changes nothing.
        """
        if self.weight is None or self.back_weight is None:
            return self.row, self.col, None
        listed = self.there.astype(np.int8) + self.back
        return self.row, self.col, (self.weight + self.back_weight) / listed

    def arcs(self, *, back: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The arcs from the rows, or ``back``: those to them."""
        listed, weight = (self.back, self.back_weight) if back else (self.there, self.weight)
        return self.row[listed], self.col[listed], None if weight is None else weight[listed]


@dataclass
class Tally:
    """Counts of what was listed, and of what became of it."""

    listed: int = 0  # edges, without those that are dropped
    weightless: int = 0  # edges of weight 0, which are none
    loops: int = 0  # self loops, kept or dropped
    arcs: int = 0  # arcs, each once
    one_way: int = 0  # arcs without a reverse
    pairs: int = 0  # arcs and their reverses, each once
    looped: int = 0  # nodes with a self loop that is kept
    symmetric: bool = True  # whether every arc has its reverse, with the same weight

    @property
    def edges(self) -> int:
        """Undirected edges, a self loop too."""
        return (self.pairs + self.looped) // 2

    def notes(
        self, wanted: Directed, *, directed: bool, weighted: bool, self_loops: bool
    ) -> list[str]:
        """What was done, in sentences."""
        notes = []
        if self.weightless:
            notes.append(f"Edges of weight 0, which are none, were dropped: {self.weightless}.")
        if directed:
            if self.symmetric:
                told = "All arcs have a reverse: directed=true tells no more than directed=false."
            elif self.one_way:
                told = f"Arcs are kept: {self.one_way} of {self.arcs} have no reverse."
            else:
                told = "Arcs are kept: all have a reverse, some with another weight."
            notes.append(told)
        elif wanted == "auto":
            notes.append("Every arc has its reverse: the graph is undirected.")
        elif self.one_way and self.edges == 1:
            notes.append("The edge was listed one way; it was made two-way.")
        elif self.one_way:
            all_of = self.one_way == self.edges
            share = f"All {self.edges}" if all_of else f"{self.one_way} of {self.edges}"
            notes.append(f"{share} edges were listed one way; each was made two-way.")
        if self.loops and not self_loops:
            notes.append(f"{counted(self.loops, 'self loop')} {was(self.loops)} dropped.")
        repeats = self.listed - self.arcs
        if repeats:
            how = "merged, their weights added" if weighted else "merged"
            notes.append(f"{counted(repeats, 'repeated edge')} {was(repeats)} {how}.")
        return notes


def isolated_note(isolated: int) -> list[str]:
    """What to say of nodes without an edge, if there are any."""
    if not isolated:
        return []
    they = "it is predicted from its" if isolated == 1 else "they are predicted from their"
    return [f"{counted(isolated, 'node')} {have(isolated)} no edge: {they} own columns."]


def check_directed(directed: Directed) -> Directed:
    """Raise unless it says whether arcs are kept."""
    if directed not in (True, False, "auto"):
        raise DataError(f"Expected `directed` to be true, false or 'auto' (got {directed!r}).")
    return directed


def pairs_of(
    chunks: Iterable[Chunk], tally: Tally, *, low: int = 0, high: int = 2**31, self_loops: bool
) -> Pairs:
    """The pairs of listed edges whose first node is in a range; ``tally`` counts on.

    An arc is one number, :math:`2^{32} s + 2 t + r` with r = 1 for the reverse of a listed edge, so
    that sorting numbers sorts arcs, and an arc that was listed stands before its twin.
    """
    keys, weights = [], []
    for source, target, weight in chunks:
        for own, other, reverse in ((source, target, 0), (target, source, 1)):
            kept = (low <= own) & (own < high)
            if weight is not None:
                tally.weightless += int((kept & (weight == 0)).sum()) * (1 - reverse)
                kept &= weight != 0
            loop = kept & (own == other)
            if not reverse:
                tally.loops += int(loop.sum())
            if not self_loops:
                kept &= ~loop
            keys.append((own[kept].astype(np.int64) << 32) | (other[kept].astype(np.int64) << 1))
            keys[-1] |= reverse
            if weight is not None:
                weights.append(weight[kept])
    key = np.concatenate([np.zeros(0, np.int64), *keys])
    keys.clear()
    if weights:
        order = np.argsort(key, kind="stable")  # weights are added in the order of listing
        key, weight = key[order], np.concatenate(weights)[order].astype(np.float64)
    else:
        key.sort()
        weight = None
    arc = key >> 1
    first = np.flatnonzero(np.append(True, arc[1:] != arc[:-1])) if len(arc) else arc
    last = np.append(first[1:], len(arc)) - 1 if len(arc) else arc
    there, back = key[first] & 1 == 0, key[last] & 1 == 1
    sums: list[np.ndarray] = []
    if weight is not None:
        which = np.repeat(np.arange(len(first)), last - first + 1)
        for reverse in (0, 1):
            chosen = key & 1 == reverse
            sums.append(np.bincount(which[chosen], weight[chosen], minlength=len(first)))
    tally.listed += int((key & 1 == 0).sum())
    pairs = Pairs(arc[first] >> 31, arc[first] & (2**31 - 1), there, back, *sums)
    tally.arcs += int(there.sum())
    tally.one_way += int((there & ~back).sum())
    tally.pairs += len(first)
    tally.looped += int((pairs.row == pairs.col).sum())
    alike = np.array_equal(there, back) and (not sums or np.array_equal(sums[0], sums[1]))
    tally.symmetric = tally.symmetric and alike
    return pairs


def linked_nodes(chunks: Iterable[Chunk], nodes: int, *, self_loops: bool) -> np.ndarray:
    """Which nodes have an edge, bool (nodes,); a self loop counts where it is kept.

    >>> linked_nodes([(np.array([0, 2]), np.array([1, 2]), None)], 4, self_loops=False).tolist()
    [True, True, False, False]
    """
    linked = np.zeros(nodes, dtype=bool)
    for source, target, weight in chunks:
        kept = np.ones(len(source), bool) if self_loops else source != target
        kept = kept if weight is None else kept & (weight != 0)
        linked[source[kept]] = linked[target[kept]] = True
    return linked


class Arcs(NamedTuple):
    """Arcs of a whole graph, and what was done to the edges that were listed."""

    ends: Tensor  # int64 (2, arcs), sorted, each once; both directions unless directed
    weight: Tensor | None  # float32 (arcs,)
    notes: tuple[str, ...]
    one_way: int  # edges, or arcs, without a reverse
    directed: bool


def merge_edges(
    index: Tensor,  # (2, edges)
    weight: Tensor | None = None,  # (edges,)
    *,
    directed: Directed = False,
    self_loops: bool = False,
) -> Arcs:
    """The arcs of a graph in memory. The weights of an arc listed several times are added.

    >>> merge_edges(torch.tensor([[0, 1], [1, 2]])).ends
    tensor([[0, 1, 1, 2],
            [1, 0, 2, 1]])
    """
    tally = Tally()
    values = None if weight is None else weight.double().numpy()
    pairs = pairs_of([(*index.numpy(), values)], tally, self_loops=self_loops)
    kept = directed is True or (directed == "auto" and not tally.symmetric)
    row, col, made = pairs.arcs() if kept else pairs.both_ways()
    notes = tally.notes(directed, directed=kept, weighted=weight is not None, self_loops=self_loops)
    return Arcs(
        torch.from_numpy(np.stack([row, col])),
        None if made is None else torch.from_numpy(made.astype(np.float32)),
        tuple(notes),
        tally.one_way,
        kept,
    )
