"""A table of nodes → ids, features, labels and masks.

Guesses which column is which from its name, and says what it took for what by the errors it
raises. An empty label cell means "predict me". Knows nothing of edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn.data._dataset import UNLABELLED, Task
from longnn.data._tables import Table

ID_NAMES = ("id", "node", "node_id", "nodeid")
LABEL_NAMES = ("label", "labels", "y", "class", "target")
SPLIT_NAMES = ("split",)
MISSING = ("NA", "N/A", "null", "NULL")  # besides an empty cell
MAX_CLASSES = 100  # more distinct whole numbers than this are taken for a quantity
_PARTS = {
    "train": "train_mask",
    "training": "train_mask",
    "val": "val_mask",
    "valid": "val_mask",
    "validation": "val_mask",
    "test": "test_mask",
}


@dataclass(eq=False)
class Nodes:
    """What is known of the nodes before the edges are read.

    Args:
        ids: One text a node (a pyarrow array), or None: the nodes are 0, 1, ...
        count: How many, or None where only the edges can say.
        x: Features (nodes, features), or None.
        feature_names: One a feature, or empty.
        y: Labels as `NodeDataset` wants them, or None.
        classes: Names of the classes, or None.
        task: What the labels are for, or None where there are none.
        masks: `train_mask`, ...
        notes: Sentences for the user.
        source: Where the nodes come from, for messages.
    """

    ids: Any = None
    count: int | None = None
    x: Tensor | None = None
    feature_names: tuple[str, ...] = ()
    y: Tensor | None = None
    classes: tuple[str, ...] | None = None
    task: Task | None = None
    masks: dict[str, Tensor] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    source: str = "the node file"


def read_nodes(
    table: Table,
    *,
    id_column: str | None,
    label_column: str | None,
    split_column: str | None,
    feature_columns: Sequence[str] | None,
    task: Task | None,
    want_features: bool,
    ids_needed: bool,
) -> Nodes:
    """Read the nodes; `ids_needed` where edges name them, else their order will do."""
    label = table.find(label_column, LABEL_NAMES, "label")
    split = table.find(split_column, SPLIT_NAMES, "split")
    key = table.find(id_column, ID_NAMES, "id")
    if key is None and ids_needed:
        key = next((name for name in table.names if name not in (label, split)), None)
        if key is None:
            raise table.error(f"Expected an id column (got only {', '.join(table.names)}).")
    nodes = Nodes(count=len(table), source=table.path.name)
    if not table.has_header:
        nodes.notes.append(f"{table.path.name} has no header: its first line was read as a node.")
    if key is not None:
        nodes.ids = _read_ids(table, key)
    if label is not None:
        nodes.y, nodes.classes, nodes.task = read_labels(table, label, task, nodes.notes)
    if split is not None:
        nodes.masks = _read_split(table, split)
    if want_features:
        columns = feature_columns
        if columns is None:
            columns = [name for name in table.names if name not in (key, label, split)]
        nodes.x, nodes.feature_names = _read_features(table, columns)
    return nodes


def _read_ids(table: Table, column: str) -> Any:
    import pyarrow.compute as pc

    ids = table.texts(column)
    if ids.null_count:
        row = pc.index(pc.is_null(ids), True).as_py()
        raise table.error("Expected an id (got an empty cell).", row, column)
    first = pc.index_in(ids, value_set=pc.unique(ids)).to_numpy(zero_copy_only=False)
    seen = np.maximum.accumulate(np.concatenate([[-1], first[:-1]]))
    repeats = np.flatnonzero(first <= seen)
    if len(repeats):
        row = int(repeats[0])
        value = ids[row].as_py()
        earlier = table.line(int(np.flatnonzero(first == first[row])[0]))
        raise table.error(
            f"Expected unique ids (got {value!r} again, first on line {earlier}); if this is "
            "not the id column, name it with id_column.",
            row,
            column,
            value=value,
        )
    return ids


def _read_features(table: Table, columns: Sequence[str]) -> tuple[Tensor | None, tuple[str, ...]]:
    parts: list[np.ndarray] = []
    names: list[str] = []
    for column in columns:
        table.find(column, (), "feature")
        values = table.numbers(column, remedy="Leave the column out with feature_columns.")
        with np.errstate(over="ignore"):
            block = values.astype(np.float32).reshape(len(table), -1)
        large = ~np.isfinite(block).all(axis=1)
        if large.any():
            row = int(large.argmax())
            raise table.error(
                f"Expected a number that fits float32 (got {values[row]}); rescale the column.",
                row,
                column,
                value=values[row],
            )
        parts.append(block)
        width = block.shape[1]
        many = values.ndim == 2
        names += [f"{column}[{i}]" for i in range(width)] if many else [column]
    if not parts:
        return None, ()
    return torch.from_numpy(np.concatenate(parts, axis=1)), tuple(names)


def read_labels(
    table: Table, column: str, task: Task | None, notes: list[str]
) -> tuple[Tensor, tuple[str, ...] | None, Task]:
    """Labels, class names and task of a column; an empty cell is unlabelled.

    Text, or few distinct whole numbers, are classes; other numbers a quantity; `task`
    overrides. Class names are sorted, numbers by value.
    """
    texts: list[str | None] = table.texts(column).to_pylist()
    texts = [None if text in MISSING else text for text in texts]
    values = np.full(len(texts), np.nan)
    not_number: int | None = None
    for row, text in enumerate(texts):
        if text is None:
            continue
        if text.lower() in ("nan", "+nan", "-nan"):
            raise table.error(
                f"Expected a label, or an empty cell for a node to predict (got {text!r}).",
                row,
                column,
                value=text,
            )
        try:
            values[row] = float(text)
        except ValueError:
            not_number = row if not_number is None else not_number
    numeric = not_number is None
    if task is None:
        task = _guess_task(column, values, numeric, notes)
    if task == "classification":
        return *_classes(texts, values, numeric), task
    if not_number is not None:
        raise table.error(
            f"Expected a number for regression (got {texts[not_number]!r}); use "
            "task='classification'.",
            not_number,
            column,
            value=texts[not_number],
        )
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise table.error(
            f"Expected a finite label (got {texts[row]!r}).", row, column, value=texts[row]
        )
    return torch.from_numpy(values.astype(np.float32)), None, task


def _guess_task(column: str, values: np.ndarray, numeric: bool, notes: list[str]) -> Task:
    known = values[~np.isnan(values)]
    if not numeric or not np.isfinite(known).all():
        return "classification" if not numeric else "regression"
    if (known != np.round(known)).any():
        return "regression"
    distinct = len(np.unique(known))
    if distinct <= MAX_CLASSES:
        return "classification"
    notes.append(
        f"Column {column!r} holds {distinct} distinct whole numbers and was taken for a "
        "quantity (regression); use task='classification' if they are classes."
    )
    return "regression"


def _classes(
    texts: list[str | None], values: np.ndarray, numeric: bool
) -> tuple[Tensor, tuple[str, ...]]:
    if numeric:
        whole = all(v == round(v) for v in values[np.isfinite(values)])
        known = sorted({v for v in values.tolist() if v == v})
        names = [str(int(v)) if whole and np.isfinite(v) else str(v) for v in known]
        code: dict[Any, int] = {v: i for i, v in enumerate(known)}
        keys: list[Any] = [None if v != v else v for v in values.tolist()]
    else:
        names = sorted({text for text in texts if text is not None})
        code = {text: i for i, text in enumerate(names)}
        keys = list(texts)
    return torch.tensor([code.get(key, UNLABELLED) for key in keys]), tuple(names)


def _read_split(table: Table, column: str) -> dict[str, Tensor]:
    masks = {key: torch.zeros(len(table), dtype=torch.bool) for key in set(_PARTS.values())}
    for row, text in enumerate(table.texts(column).to_pylist()):
        if text is None:
            continue
        part = _PARTS.get(text.lower())
        if part is None:
            raise table.error(
                f"Expected train, val, test or an empty cell (got {text!r}).",
                row,
                column,
                value=text,
            )
        masks[part][row] = True
    return masks
