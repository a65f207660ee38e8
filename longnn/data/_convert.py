"""From whatever form a graph arrives in to the one form of :class:`NodeDataset`.

Edges are made two-way or kept as arcs, sorted, each once; labels and masks are brought to one
type; a note reports each change. Knows nothing of where the graph came from.
"""

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from longnn.data._arcs import Directed, check_directed, isolated_note, merge_edges
from longnn.data._dataset import NodeDataset, Task
from longnn.data._errors import DataError
from longnn.data._features import form, plain_tensor
from longnn.data._relations import Relation, check_types, split_types
from longnn.data._targets import read_answers
from longnn.data._tensors import GraphTensors, as_tensors
from longnn.graphs._adjacency import edge_weight_of
from longnn.matrices import compact


def from_data(
    data: Any,
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
    """Make a checked :class:`NodeDataset` from any PyG ``Data``, or from tensors by the same names.

    Args:
        data: ``x`` (nodes, features) of any real type; a torch sparse one stays sparse where at
            most a fifth of its values are nonzero. ``edge_index`` (2, arcs) in one or both
            directions; optionally ``edge_weight`` or ``edge_attr``, (arcs,) or
            (arcs, 1), ``edge_type`` (arcs,) of whole numbers, ``y`` (nodes,) or (nodes, targets),
            masks, ``node_group`` (nodes,) of whole numbers and ``node_weight`` (nodes,). It is not
            changed.
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
        default_split: by default ``"own"`` if there are masks, else ``"group"`` if there are
            groups, else ``"stratified"``.
        ready: whether the features are ready to use (see :class:`NodeDataset`).

    Raises:
        DataError: naming what is missing or wrong.

    >>> edges = torch.tensor([[0, 1], [1, 1]])
    >>> from_data({"x": torch.eye(3), "edge_index": edges, "y": torch.arange(3)}).notes
    ('The edge was listed one way; it was made two-way.', '1 self loop was dropped.', \
'1 node has no edge: it is predicted from its own columns.')
    """
    data = as_tensors(data)
    x = _features(data.get("x"))
    nodes = len(x)
    listed = edge_tensors(data, nodes)
    edges = merge_edges(*listed, directed=check_directed(directed), self_loops=self_loops)
    index, weight, changes = edges.ends, edges.weight, list(edges.notes)
    relations: tuple[Relation, ...] = ()
    if data.get("edge_type") is not None:
        kind = check_types(data.get("edge_type"), listed[0].shape[1])
        relations, told = split_types(
            *listed, kind, edge_types, directed=edges.directed, self_loops=self_loops
        )
        changes += told
    answers = read_answers(data, task, classes, nodes)
    changes += [*answers.notes, *isolated_note(nodes - len(torch.unique(index)))]
    tensors = GraphTensors(x=x, edge_index=index, y=answers.y, **answers.beside)
    if weight is not None:
        tensors.edge_weight = weight
    return NodeDataset(
        name,
        tensors,
        task=answers.task,
        classes=answers.classes,
        ids=ids,
        feature_names=tuple(feature_names),
        targets=tuple(targets),
        open_features=open_features,
        notes=(*notes, *changes, *answers.mask_notes),
        default_split=default_split or answers.default_split,
        ready=ready,
        one_way=edges.one_way,
        directed=edges.directed,
        relations=relations,
    )


def undirected(dataset: NodeDataset) -> NodeDataset:
    """The same graph with every edge in both directions, as if it had been loaded so."""
    edges = merge_edges(dataset.data.edge_index, dataset.data.get("edge_weight"), self_loops=True)
    data = copy.copy(dataset.data)
    data.edge_index = edges.ends
    if edges.weight is not None:
        data.edge_weight = edges.weight
    relations = tuple(
        Relation(r.name, *merge_edges(r.edge_index, r.edge_weight, self_loops=True)[:2])
        for r in dataset.relations
    )
    return dataclasses.replace(
        dataset, data=data, directed=False, one_way=edges.one_way, relations=relations
    )


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


def edge_tensors(
    data: GraphTensors, nodes: int, error: Callable[[str], DataError] = DataError
) -> tuple[Tensor, Tensor | None]:
    """The listed edges of a graph, (2, edges), and their weights, (edges,), checked.

    Args:
        data: ``edge_index``; ``edge_weight``, else an ``edge_attr`` with one value per edge.
        nodes: their number.
        error: makes an error of a sentence, where the place of the data is known.
    """
    index = node_numbers(data.get("edge_index"), error)
    outside = ((index < 0) | (index >= nodes)).any(dim=0).nonzero()
    if len(outside):
        arc = int(outside[0])
        raise error(
            f"Expected edges between nodes 0..{nodes - 1} (got {index[:, arc].tolist()} "
            f"as edge {arc})."
        )
    try:
        weight = edge_weight_of(data)
    except ValueError as wrong:
        raise error(f"{wrong}.") from wrong
    if weight is None:
        return index, None
    if not isinstance(weight, Tensor) or weight.layout is not torch.strided:
        raise error(f"Expected `edge_weight` as a dense tensor (got {form(weight)}).")
    weight = plain_tensor(weight, "edge_weight").reshape(-1)
    if len(weight) != index.shape[1]:
        raise error(f"Expected {index.shape[1]} edge weights (got {len(weight)}).")
    if not bool((torch.isfinite(weight) & (weight >= 0)).all()):
        raise error("Expected `edge_weight` finite and >= 0; drop or shift such edges.")
    return index, weight


def node_numbers(
    index: object, error: Callable[[str], DataError] = DataError
) -> Tensor:  # (2, edges) -> (2, edges) int64
    """The ends of edges as whole numbers; one that is none is an error, not cut off.

    >>> node_numbers(torch.tensor([[0.0], [1.5]]))
    Traceback (most recent call last):
    longnn.data._errors.DataError: Expected whole numbers in `edge_index` (got 1.5 as edge 0).
    """
    if not isinstance(index, Tensor) or index.dim() != 2 or index.shape[0] != 2:
        shape = tuple(index.shape) if isinstance(index, Tensor) else type(index).__name__
        raise error(f"Expected `edge_index` of shape (2, arcs) (got {shape}).")
    index = plain_tensor(index, "edge_index").to_dense()
    if index.is_floating_point():
        wrong = (~((index == index.round()) & (index.abs() < 2**53))).nonzero()
        if len(wrong):
            end, arc = wrong[0].tolist()
            raise error(
                f"Expected whole numbers in `edge_index` (got {float(index[end, arc]):g} as edge "
                f"{arc})."
            )
    return index.long()
