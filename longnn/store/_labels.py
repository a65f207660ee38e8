"""What is asked of the nodes: labels and roles, read by the code that reads them in memory.

Only the labels are held; nothing here knows features or edges.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from longnn.data import (
    DataError,
    NodeColumns,
    NodeDataset,
    TableOptions,
    from_data,
    make_split,
    read_labels,
    read_split,
)
from longnn.data import StoredTable as Table
from longnn.store._arrays import ArrayWriter
from longnn.store._graph import LABELS, NOBODY, ROLES, TEST, TRAIN, VAL


@dataclass
class Asked:
    """What is asked of the nodes.

    Args:
        labelled: a dataset of labels and masks alone: its features are one zero per node, which
            takes no room, and it has no edges.
        notes: sentences for the user.
    """

    labelled: NodeDataset
    notes: list[str] = field(default_factory=list)


def read_asked(
    table: Table | None,
    columns: NodeColumns | None,
    options: TableOptions,
    nodes: int,
    classes: Sequence[str] | None = None,
) -> Asked:
    """Labels and masks of a node table; nobody is labelled without one.

    Args:
        table: the nodes, or None.
        columns: what its columns are for.
        options: of the loader.
        nodes: their number.
        classes: those of the graph that a model was trained on, where this is another; a label
            that is none of them counts as none.
    """
    notes: list[str] = []
    y: Tensor | None = None
    names: Sequence[str] | None = None
    targets: Sequence[str] = ()
    task, masks = options.task, {}
    if table is not None and columns is not None and columns.labels:
        y, names, targets, task = read_labels(table, columns.labels, options.task, notes)
    if table is not None and columns is not None and columns.split is not None:
        masks = read_split(table, columns.split)
    if classes is not None and task in (None, "classification"):
        y, names = _as_trained(y, names, classes, notes), tuple(classes)
    dataset = labels_alone(nodes, y, task, names, targets, masks)
    return Asked(dataset, [*notes, *dataset.notes])


def labels_alone(
    nodes: int,
    y: Tensor | None,
    task: Any,
    classes: Sequence[str] | None,
    targets: Sequence[str],
    masks: Mapping[str, Tensor],
) -> NodeDataset:
    """A dataset of labels and masks, without features and edges."""
    data = Data(
        x=torch.zeros(1, 1).expand(nodes, 1),
        edge_index=torch.zeros(2, 0, dtype=torch.int64),
        y=y,
        **masks,
    )
    dataset = from_data(data, task=task, classes=classes, targets=targets, ids=range(nodes))
    isolated = [note for note in dataset.notes if "no edge" in note]
    object.__setattr__(dataset, "notes", tuple(n for n in dataset.notes if n not in isolated))
    return dataset


def _as_trained(
    y: Tensor | None, names: Sequence[str] | None, classes: Sequence[str], notes: list[str]
) -> Tensor | None:
    """Labels as numbers of other classes."""
    if y is None:
        return None
    own = names or ()
    place = [classes.index(name) if name in classes else -1 for name in own]
    lost = [name for name in own if name not in classes]
    if lost:
        notes.append(f"Labels that the model does not know count as none: {', '.join(lost[:5])}.")
    return torch.tensor([*place, -1])[y]


def write_asked(asked: Asked, folder: Path, seed: int) -> tuple[list[str], dict[str, Any] | None]:
    """Write labels and roles; returns the files, and how the roles were drawn.

    Roles are the user's, else drawn as ``longnn train`` draws them: 60/20/20 % of each class.
    Without labels, or where no split is possible, there are none, and a note says why.
    """
    dataset = asked.labelled
    kind = np.int32 if dataset.task == "classification" else np.float32
    y = dataset.data.y
    with ArrayWriter(folder / LABELS, kind) as writer:
        for column in y.T if y.dim() == 2 else (y,):
            writer.append(column.numpy())
        writer.shape = tuple(y.shape)
    if not bool(dataset.labelled.any()):
        asked.notes.append("No node has a label: the graph can be predicted on, not trained on.")
        return [LABELS], None
    try:
        split = make_split(dataset, seed=seed)
    except DataError as error:
        asked.notes.append(f"No roles were given to the nodes: {error}")
        return [LABELS], None
    roles = np.full(dataset.num_nodes, NOBODY, dtype=np.int8)
    for role, mask in ((TRAIN, split.train), (VAL, split.val), (TEST, split.test)):
        roles[mask.numpy()] = role
    with ArrayWriter(folder / ROLES, np.int8) as writer:
        writer.append(roles)
    asked.notes += split.notes
    sizes = dict(zip(("train", "val", "test"), split.sizes, strict=True))
    return [LABELS, ROLES], {"protocol": split.protocol, "seed": seed, **sizes}
