"""Edges sorted, each once: both ways, or kept as arcs, with a note on each change.

Knows edges as two rows of node numbers with weights, and nothing of the nodes.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from longnn.data._english import counted, have, was
from longnn.data._errors import DataError

#: Whether arcs are kept: yes, no, or if some of them have no reverse.
Directed = bool | Literal["auto"]


class Symmetrized(NamedTuple):
    """Undirected edges, and what was done to make them so."""

    arcs: Tensor  # (2, arcs), both directions, sorted, each once
    weight: Tensor | None  # (arcs,)
    notes: tuple[str, ...]
    one_way: int  # edges that were listed in one direction only


class Arcs(NamedTuple):
    """Arcs, and what was done to them."""

    arcs: Tensor  # (2, arcs), sorted, each once
    weight: Tensor | None  # (arcs,)
    notes: tuple[str, ...]
    one_way: int  # arcs without a reverse
    symmetric: bool  # whether every arc has its reverse, with the same weight

    @property
    def note(self) -> str:
        """How many arcs have no reverse."""
        if self.symmetric:
            return "All arcs have a reverse: directed=true tells no more than directed=false."
        if self.one_way:
            return f"Arcs are kept: {self.one_way} of {self.arcs.shape[1]} have no reverse."
        return "Arcs are kept: all have a reverse, some with another weight."


def check_directed(directed: Directed) -> Directed:
    """Raise unless it says whether arcs are kept."""
    if directed not in (True, False, "auto"):
        raise DataError(f"Expected `directed` to be true, false or 'auto' (got {directed!r}).")
    return directed


def wanted_edges(
    index: Tensor, weight: Tensor | None, nodes: int, directed: Directed, self_loops: bool
) -> tuple[Symmetrized, bool]:
    """The edges as they are wanted, and whether they are arcs."""
    if directed:
        arcs = keep_arcs(index, weight, num_nodes=nodes, self_loops=self_loops)
        if directed is True or not arcs.symmetric:
            notes = (arcs.note, *arcs.notes)
            return Symmetrized(arcs.arcs, arcs.weight, notes, arcs.one_way), True
    edges = symmetrize(index, weight, num_nodes=nodes, self_loops=self_loops)
    if directed == "auto":
        found = "Every arc has its reverse: the graph is undirected."
        edges = edges._replace(notes=(found, *edges.notes))
    return edges, False


def symmetrize(
    index: Tensor,  # (2, arcs)
    weight: Tensor | None = None,  # (arcs,)
    *,
    num_nodes: int,
    self_loops: bool = False,
) -> Symmetrized:
    """Both directions of every edge, sorted, each once, and notes on what was changed.

    The weights of an arc listed several times are added. If both directions have a weight, the
    edge takes their mean, so that listing an edge both ways changes nothing.

    >>> symmetrize(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)[0]
    tensor([[0, 1, 1, 2],
            [1, 0, 2, 1]])
    """
    key, weight, dropped, repeats = _distinct(index, weight, num_nodes, self_loops)
    row, col = _rows_and_columns(key, num_nodes)
    both = torch.cat([key, col * num_nodes + row])
    doubled = None if weight is None else torch.cat([weight, weight])
    full, doubled = _merge(both, doubled, mean=True)
    row, col = _rows_and_columns(full, num_nodes)
    one_way = len(full) - len(key)
    edges = int((row <= col).sum()) if one_way else 0
    notes = edge_notes(one_way, edges, dropped, repeats, weighted=weight is not None)
    made = None if doubled is None else doubled.float()
    return Symmetrized(torch.stack([row, col]), made, notes, one_way)


def keep_arcs(
    index: Tensor,  # (2, arcs)
    weight: Tensor | None = None,  # (arcs,)
    *,
    num_nodes: int,
    self_loops: bool = False,
) -> Arcs:
    """Arcs as they are listed, sorted, each once, and notes on what was changed.

    The weights of an arc listed several times are added.

    >>> keep_arcs(torch.tensor([[1, 0, 1], [0, 1, 2]]), num_nodes=3).one_way
    1
    """
    key, weight, dropped, repeats = _distinct(index, weight, num_nodes, self_loops)
    row, col = _rows_and_columns(key, num_nodes)
    back, order = torch.sort(col * num_nodes + row)
    one_way = int((~torch.isin(back, key, assume_unique=True)).sum())
    symmetric = one_way == 0 and (weight is None or bool(torch.equal(weight[order], weight)))
    notes = edge_notes(0, 0, dropped, repeats, weighted=weight is not None)
    made = None if weight is None else weight.float()
    return Arcs(torch.stack([row, col]), made, notes, one_way, symmetric)


def _distinct(
    index: Tensor, weight: Tensor | None, num_nodes: int, self_loops: bool
) -> tuple[Tensor, Tensor | None, int, int]:
    """Each arc once, as the sorted numbers row * nodes + column, with its weight.

    Also how many self loops were dropped, and how many arcs were repeated.
    """
    dropped = 0
    loops = index[0] == index[1]
    if not self_loops and bool(loops.any()):
        dropped = int(loops.sum())
        index = index[:, ~loops]
        weight = None if weight is None else weight[~loops]
    arcs = index.shape[1]
    key, weight = _merge(index[0] * num_nodes + index[1], weight, mean=False)
    return key, weight, dropped, arcs - len(key)


def edge_notes(
    one_way: int, edges: int, loops: int, repeats: int, *, weighted: bool = False
) -> tuple[str, ...]:
    """What was done to edges, in sentences.

    >>> edge_notes(2, 2, 1, 0)
    ('All 2 edges were listed one way; each was made two-way.', '1 self loop was dropped.')
    """
    notes = [_one_way_note(one_way, edges)] if one_way else []
    if loops:
        notes.append(f"{counted(loops, 'self loop')} {was(loops)} dropped.")
    if repeats:
        how = "merged, their weights added" if weighted else "merged"
        notes.append(f"{counted(repeats, 'repeated edge')} {was(repeats)} {how}.")
    return tuple(notes)


def _one_way_note(one_way: int, edges: int) -> str:
    if edges == 1:
        return "The edge was listed one way; it was made two-way."
    share = f"All {edges}" if one_way == edges else f"{one_way} of {edges}"
    return f"{share} edges were listed one way; each was made two-way."


def isolated_note(isolated: int) -> list[str]:
    """What to say of nodes without an edge, if there are any."""
    if not isolated:
        return []
    them = "it" if isolated == 1 else "them"
    return [f"{counted(isolated, 'node')} {have(isolated)} no edge: no filter reaches {them}."]


def _rows_and_columns(key: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    row = key // num_nodes
    return row, key - row * num_nodes  # one division: it is what takes the time


def _merge(key: Tensor, weight: Tensor | None, *, mean: bool) -> tuple[Tensor, Tensor | None]:
    """Sorted distinct keys, with the sum or mean of the weights of each."""
    if weight is None:
        return torch.unique(key), None
    key, order = torch.sort(key, stable=True)  # weights are added in the order of listing
    unique, inverse, count = torch.unique_consecutive(key, return_inverse=True, return_counts=True)
    total = torch.zeros(len(unique), dtype=torch.float64)
    total.index_add_(0, inverse, weight[order].double())
    return unique, total / count if mean else total
