"""From whatever form a graph arrives in to the one form of :class:`NodeDataset`.

Edges are made two-way or kept as arcs, sorted, each once; labels and masks are brought to one
type; a note reports each change. Knows nothing of where the graph came from.
"""

import copy
import dataclasses
import functools
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from longnn.data._dataset import NodeDataset, Task
from longnn.data._errors import DataError, counted, have, was
from longnn.data._features import form, plain_tensor
from longnn.data._relations import Relation, check_types, split_types
from longnn.data._targets import read_answers
from longnn.graphs._adjacency import edge_weight_of
from longnn.matrices import compact

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
    """What was done to edges, in sentences."""
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


def from_data(
    data: Data,
    *,
    name: str = "graph",
    task: Task | None = None,
    classes: Sequence[str] | None = None,
    ids: Sequence[str] | Sequence[int] = (),
    feature_names: Sequence[str] = (),
    targets: Sequence[str] = (),
    open_features: int = 0,
    edge_types: Sequence[str] = (),
    directed: Directed = False,
    self_loops: bool = False,
    notes: Sequence[str] = (),
    default_split: str | None = None,
    ready: bool = False,
) -> NodeDataset:
    """Make a checked :class:`NodeDataset` from any PyG ``Data``.

    Args:
        data: ``x`` (nodes, features) of any real type; a torch sparse one stays sparse where at
            most a fifth of its values are nonzero. ``edge_index`` (2, arcs) in one or both
            directions; optionally ``edge_weight`` or ``edge_attr``, (arcs,) or
            (arcs, 1), ``edge_type`` (arcs,) of whole numbers, ``y`` (nodes,) or (nodes, targets),
            and masks. It is not changed.
        name: a short name.
        task: by default classification for ``y`` of whole numbers. Several columns are labels of
            yes or no where they hold nothing but 0, 1 and NaN, else several numbers to predict.
        classes: names of the classes, or of several labels; by default the numbers that occur.
        ids: one per node; by default 0, 1, ...
        feature_names: one per feature, or none.
        targets: names of the columns of ``y`` in regression, or none.
        open_features: how many of the last ones are an open vocabulary (see
            :class:`NodeDataset`).
        edge_types: names of the types of edges, by their numbers; by default the numbers.
        directed: keep arcs, from the first row of ``edge_index`` to the second, instead of making
            edges two-way; ``"auto"`` keeps them if one has no reverse, or another weight than it.
        self_loops: keep self loops instead of dropping them.
        notes: sentences to carry along.
        default_split: by default ``"own"`` if there are masks, else ``"stratified"``.
        ready: whether the features are ready to use (see :class:`NodeDataset`).

    Raises:
        DataError: naming what is missing or wrong.

    >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 1]]), y=torch.arange(3))
    >>> from_data(data).notes
    ('The edge was listed one way; it was made two-way.', '1 self loop was dropped.', \
'1 node has no edge: no filter reaches it.')
    """
    x = _features(data.get("x"))
    nodes = len(x)
    listed = _edge_tensors(data, nodes)
    edges, directed = wanted_edges(*listed, nodes, check_directed(directed), self_loops)
    index, weight, changes = edges.arcs, edges.weight, list(edges.notes)
    relations: tuple[Relation, ...] = ()
    if data.get("edge_type") is not None:
        kind = check_types(data.get("edge_type"), listed[0].shape[1])
        clean = functools.partial(_clean, nodes=nodes, directed=directed, self_loops=self_loops)
        relations, told = split_types(*listed, kind, edge_types, clean)
        changes += told
    answers = read_answers(data, task, classes, nodes)
    changes += [*answers.notes, *_isolated_note(index, nodes)]
    clean = Data(x=x, edge_index=index, y=answers.y, **answers.masks)
    if weight is not None:
        clean.edge_weight = weight
    return NodeDataset(
        name,
        clean,
        task=answers.task,
        classes=answers.classes,
        ids=ids,
        feature_names=tuple(feature_names),
        targets=tuple(targets),
        open_features=open_features,
        notes=(*notes, *changes, *answers.mask_notes),
        default_split=default_split or ("own" if answers.masks else "stratified"),
        ready=ready,
        one_way=edges.one_way,
        directed=directed,
        relations=relations,
    )


def _clean(
    index: Tensor, weight: Tensor | None, *, nodes: int, directed: bool, self_loops: bool
) -> tuple[Tensor, Tensor | None]:
    """The edges of one type as those of the whole graph are made."""
    edges, _ = wanted_edges(index, weight, nodes, directed, self_loops)
    return edges.arcs, edges.weight


def undirected(dataset: NodeDataset) -> NodeDataset:
    """The same graph with every edge in both directions, as if it had been loaded so."""
    weight, nodes = dataset.data.get("edge_weight"), dataset.num_nodes
    edges = symmetrize(dataset.data.edge_index, weight, num_nodes=nodes, self_loops=True)
    data = copy.copy(dataset.data)
    data.edge_index = edges.arcs
    if edges.weight is not None:
        data.edge_weight = edges.weight
    clean = functools.partial(_clean, nodes=nodes, directed=False, self_loops=True)
    relations = tuple(
        Relation(r.name, *clean(r.edge_index, r.edge_weight)) for r in dataset.relations
    )
    return dataclasses.replace(
        dataset, data=data, directed=False, one_way=edges.one_way, relations=relations
    )


def _isolated_note(index: Tensor, nodes: int) -> list[str]:
    linked = torch.zeros(nodes, dtype=torch.bool).index_fill_(0, index.reshape(-1), True)
    return isolated_note(nodes - int(linked.sum()))


def _features(x: object) -> Tensor:
    if not isinstance(x, Tensor):
        raise DataError(
            f"Expected node features `x` (got {type(x).__name__}); without features use "
            "features='degree' or 'identity'."
        )
    if x.dim() not in (1, 2):
        raise DataError(f"Expected features `x` of shape (nodes, features) (got {form(x)}).")
    x = compact(plain_tensor(x, "x"))
    return x[:, None] if x.dim() == 1 else x


def _edge_tensors(data: Data, nodes: int) -> tuple[Tensor, Tensor | None]:
    index = data.get("edge_index")
    if not isinstance(index, Tensor) or index.dim() != 2 or index.shape[0] != 2:
        shape = tuple(index.shape) if isinstance(index, Tensor) else type(index).__name__
        raise DataError(f"Expected `edge_index` of shape (2, arcs) (got {shape}).")
    index = node_numbers(index)
    outside = ((index < 0) | (index >= nodes)).any(dim=0).nonzero()
    if len(outside):
        arc = int(outside[0])
        raise DataError(
            f"Expected edges between nodes 0..{nodes - 1} (got {index[:, arc].tolist()} "
            f"as edge {arc})."
        )
    weight = edge_weights(data)
    if weight is None:
        return index, None
    if not isinstance(weight, Tensor) or weight.layout is not torch.strided:
        raise DataError(f"Expected `edge_weight` as a dense tensor (got {form(weight)}).")
    weight = plain_tensor(weight, "edge_weight").reshape(-1)
    if len(weight) != index.shape[1]:
        raise DataError(f"Expected {index.shape[1]} edge weights (got {len(weight)}).")
    return index, weight


def node_numbers(index: Tensor) -> Tensor:  # (2, arcs) -> (2, arcs) int64
    """The ends of edges as whole numbers; one that is none is an error, not cut off.

    >>> node_numbers(torch.tensor([[0.0], [1.5]]))
    Traceback (most recent call last):
    longnn.data._errors.DataError: Expected whole numbers in `edge_index` (got 1.5 as edge 0).
    """
    index = plain_tensor(index, "edge_index").to_dense()
    if index.is_floating_point():
        wrong = (~((index == index.round()) & (index.abs() < 2**53))).nonzero()
        if len(wrong):
            end, arc = wrong[0].tolist()
            raise DataError(
                f"Expected whole numbers in `edge_index` (got {float(index[end, arc]):g} as edge "
                f"{arc})."
            )
    return index.long()


def edge_weights(data: Data) -> Tensor | None:
    """``edge_weight``, else an ``edge_attr`` with one value per edge, else None."""
    try:
        return edge_weight_of(data)
    except ValueError as error:
        raise DataError(f"{error}.") from error
