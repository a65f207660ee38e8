"""Types of edges: the edges of each type apart, beside the graph of all edges.

A pair of nodes may have edges of several types; in the graph of all it is one edge. Knows nothing
of where the types came from.
"""

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor

from longnn.data._arcs import merge_edges
from longnn.data._errors import DataError
from longnn.data._features import form, plain_tensor

#: Types of edges that are taken for types: each has an operator and filters of its own.
MAX_TYPES = 64


@dataclasses.dataclass(frozen=True, eq=False)
class Relation:
    """The edges of one type, in the form of a dataset's edges."""

    name: str
    edge_index: Tensor  # int64 (2, arcs), sorted, each once; both directions if undirected
    edge_weight: Tensor | None = None  # float32 (arcs,)


def check_types(kind: object, edges: int) -> Tensor:
    """The types of edges as whole numbers >= 0, (edges,), or an error."""
    if not isinstance(kind, Tensor) or kind.shape not in ((edges,), (edges, 1)):
        raise DataError(
            f"Expected `edge_type` of shape ({edges},), one per edge (got {form(kind)})."
        )
    kind = plain_tensor(kind, "edge_type").reshape(-1)
    if kind.is_floating_point() and not bool((kind == kind.round()).all()):
        raise DataError("Expected whole numbers in `edge_type` (got others).")
    kind = kind.long()
    if len(kind) and int(kind.min()) < 0:
        raise DataError(f"Expected `edge_type` >= 0 (got {int(kind.min())}).")
    return kind


def split_types(
    index: Tensor,  # (2, edges)
    weight: Tensor | None,  # (edges,)
    kind: Tensor,  # (edges,) int64
    names: Sequence[str],
    *,
    directed: bool,
    self_loops: bool,
) -> tuple[tuple[Relation, ...], list[str]]:
    """The edges of each type that occurs, and notes; one type alone is none."""
    found = torch.unique(kind).tolist()
    if found and names and found[-1] >= len(names):
        raise DataError(f"Expected names of {found[-1] + 1} types of edges (got {len(names)}).")
    if len(found) > MAX_TYPES:
        raise DataError(
            f"Expected at most {MAX_TYPES} types of edges (got {len(found)}); is that column one "
            "of ids? Name another with type_column."
        )
    counts = [(names[n] if names else str(n), int((kind == n).sum())) for n in found]
    notes = [types_note(counts)] if found else []
    if len(found) < 2:
        return (), notes
    relations = []
    for number, (name, _) in zip(found, counts, strict=True):
        chosen = kind == number
        listed = index[:, chosen], None if weight is None else weight[chosen]
        edges = merge_edges(*listed, directed=directed, self_loops=self_loops)
        relations.append(Relation(name, edges.ends, edges.weight))
    return tuple(relations), notes


def types_note(counts: Sequence[tuple[str, int]]) -> str:
    """The types that occur, and how many edges are listed of each."""
    if len(counts) < 2:
        return "All edges are of one type, which tells nothing."
    listed = ", ".join(f"{name} ({count:,})" for name, count in counts)
    return f"Edges have {len(counts)} types: {listed}."


def match_types(given: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where each type of training is among those of a graph, -1 for one that does not occur.

    Raises:
        DataError: for a type that training did not know, or a graph without types.
    """
    if not given:
        raise DataError(
            f"Expected edges of the types {', '.join(wanted)}, as the run was trained with (got "
            "none); name the column of the edges with type_column."
        )
    unknown = [name for name in given if name not in wanted]
    if unknown:
        raise DataError(
            f"Expected edges of the types {', '.join(wanted)}, as the run was trained with (got "
            f"{unknown[0]!r}); drop such edges."
        )
    place = {name: number for number, name in enumerate(given)}
    return [place.get(name, -1) for name in wanted]
