"""Another graph as trained models know theirs: the same features and types of edges, in order."""

import copy
import dataclasses
from collections.abc import Sequence

from longnn.data import DataError, NodeDataset
from longnn.data._relations import match_types
from longnn.matrices import take_columns
from longnn.store._graph import GraphStore


def match_features(
    dataset: NodeDataset, names: Sequence[str], count: int, open_features: int
) -> NodeDataset:
    """The dataset with its features ordered as in training.

    Args:
        dataset: whose features are made as in training.
        names: of the features of training, or empty.
        count: how many there were.
        open_features: how many of the last ones were an open vocabulary.

    Raises:
        DataError: for other features.
    """
    given = dataset.feature_names
    if names and given and tuple(names) != tuple(given):
        known, new = open_features, dataset.open_features
        if not (known and new):  # what one of them has fixed is fixed
            known = new = 0
        fixed, held = len(names) - known, len(given) - new
        place = _match_fixed(names[:fixed], given[:held])
        if known:
            place += _match_open(names[fixed:], given[held:], first=held)
        moved = copy.copy(dataset.data)
        moved.x = take_columns(dataset.data.x, place)
        dataset = dataclasses.replace(
            dataset, data=moved, feature_names=tuple(names), open_features=open_features
        )
    if dataset.num_features != count:
        raise DataError(
            f"Expected {count} features as the run was trained with (got {dataset.num_features})"
        )
    return dataset


def _match_fixed(names: Sequence[str], given: Sequence[str]) -> list[int]:
    """Where each feature of training is among those of a graph, which must be the same."""
    place = {name: i for i, name in enumerate(given)}
    missing = [name for name in names if name not in place]
    if missing:
        raise DataError(
            f"Expected the features the run was trained with (missing {missing[0]!r}; "
            f"the graph has {', '.join(given[:8])}{', ...' if len(given) > 8 else ''})"
        )
    extra = sorted(place.keys() - set(names), key=place.__getitem__)
    if extra:
        raise DataError(
            f"Expected {len(names)} features as the run was trained with (got "
            f"{len(given)}; not known: {extra[0]!r}); leave them out with "
            "--data feature_columns=..."
        )
    return [place[name] for name in names]


def _match_open(names: Sequence[str], given: Sequence[str], first: int) -> list[int]:
    """The same for an open vocabulary: -1 where the graph does not have the feature."""
    place = {name: i for i, name in enumerate(given, start=first)}
    found = [place.get(name, -1) for name in names]
    if max(found) < 0:
        raise DataError(
            f"Expected features the run was trained with, such as {names[0]!r} (got only unknown "
            f"ones, such as {given[0]!r})"
        )
    return found


def require_stored_features(graph: GraphStore, names: Sequence[str], count: int) -> None:
    """Raise unless a stored graph has the features of training, in their order.

    Raises:
        DataError: for other features.
    """
    given = tuple(str(name) for name in graph.about.get("feature_names") or ())
    if graph.num_features != count or (given and names and given != tuple(names)):
        raise DataError(
            f"Expected the {count} features that the run was trained with, in their "
            f"order (got {graph.num_features}: {', '.join(given[:8]) or 'without names'})"
        )


def match_edge_types(dataset: NodeDataset, names: Sequence[str]) -> NodeDataset:
    """The dataset with the types of edges in the order of training."""
    if not names and not dataset.relations:
        return dataset
    relations = match_types(dataset.relations, names) if names else ()
    return dataclasses.replace(dataset, relations=relations)
