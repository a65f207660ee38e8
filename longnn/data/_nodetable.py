"""A table of nodes → ids, features, labels and masks.

Guesses the role of a column from its name; errors report the guess. An empty label cell means
"predict me". Knows nothing of edges.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from longnn.data._dataset import MASKS, UNLABELLED, Task
from longnn.data._tables import Table

ID_NAMES = ("id", "node", "node_id", "nodeid")
LABEL_NAMES = ("label", "labels", "y", "class", "target")
SPLIT_NAMES = ("split",)
MISSING = ("NA", "N/A", "null", "NULL")  # besides an empty cell
MAX_CLASSES = 100  # more distinct whole numbers than this are taken for a quantity
_MASKS = {
    "train": "train_mask",
    "training": "train_mask",
    "val": "val_mask",
    "valid": "val_mask",
    "validation": "val_mask",
    "test": "test_mask",
}


@dataclass(eq=False)
class Nodes:
    """What is known about the nodes before the edges are read.

    Args:
        ids: one text per node (a pyarrow array), or None: the nodes are 0, 1, ...
        count: number of nodes, or None if only the edges can tell.
        x: features (nodes, features), or None.
        feature_names: one per feature, or empty.
        y: labels as :class:`NodeDataset` wants them, or None.
        classes: names of the classes, or None.
        task: what the labels are for, or None if there are none.
        masks: ``train_mask``, ...
        notes: sentences for the user.
        source: where the nodes come from, for messages.
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
    """Read the nodes; ``ids_needed`` if the edges refer to ids, not to positions."""
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
    ids = table.texts(column)
    if ids.null_count:
        row = pc.index(pc.is_null(ids), True).as_py()
        raise table.error("Expected an id (got an empty cell).", row, column)
    distinct = pc.unique(ids)
    if len(distinct) == len(ids):
        return ids
    first = pc.index_in(ids, value_set=distinct).to_numpy(zero_copy_only=False)
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
    blocks: list[np.ndarray] = []
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
        blocks.append(block)
        width = block.shape[1]
        many = values.ndim == 2
        names += [f"{column}[{i}]" for i in range(width)] if many else [column]
    if not blocks:
        return None, ()
    return torch.from_numpy(np.concatenate(blocks, axis=1)), tuple(names)


def read_labels(
    table: Table, column: str, task: Task | None, notes: list[str]
) -> tuple[Tensor, tuple[str, ...] | None, Task]:
    """Labels, class names and task of a column; an empty cell is unlabelled.

    Text, or few distinct whole numbers, are classes; other numbers are a quantity; ``task``
    overrides this. Class names are sorted, numbers by value.
    """
    texts, codes = _distinct(table, column, missing=MISSING)
    values = np.full(len(texts), np.nan)  # one per distinct text
    not_number: int | None = None
    for k, text in enumerate(texts):
        if text.lower() in ("nan", "+nan", "-nan"):
            raise table.error(
                f"Expected a label, or an empty cell for a node to predict (got {text!r}).",
                int((codes == k).argmax()),
                column,
                value=text,
            )
        try:
            values[k] = float(text)
        except ValueError:
            not_number = k if not_number is None else not_number
    numeric = not_number is None
    if task is None:
        task = _guess_task(column, values, numeric, notes)
    if task == "classification":
        classes, names = _classes(texts, values, numeric)
        return torch.from_numpy(np.append(classes, UNLABELLED)[codes]), names, task
    bad = not_number if not_number is not None else _first(np.isinf(values))
    if bad is not None:
        what = "a finite label" if numeric else "a number for regression"
        remedy = "" if numeric else "; use task='classification'"
        raise table.error(
            f"Expected {what} (got {texts[bad]!r}){remedy}.",
            int((codes == bad).argmax()),
            column,
            value=texts[bad],
        )
    return torch.from_numpy(np.append(values, np.nan)[codes].astype(np.float32)), None, task


def _distinct(table: Table, column: str, *, missing: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The distinct texts of a column in order of appearance, and the number of each row's.

    The number is -1 for an empty cell, and for one that holds a word for ``missing``.
    """
    cells = table.texts(column)
    absent = pc.is_in(cells, value_set=pa.array(missing, pa.string()))
    encoded = pc.if_else(absent, None, cells).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return encoded.dictionary.to_pylist(), codes


def _first(mask: np.ndarray) -> int | None:
    return int(mask.argmax()) if mask.any() else None


def _guess_task(column: str, values: np.ndarray, numeric: bool, notes: list[str]) -> Task:
    known = values[~np.isnan(values)]
    if not numeric:
        return "classification"
    if not np.isfinite(known).all():
        return "regression"
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
    texts: list[str], values: np.ndarray, numeric: bool
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The class of each distinct text, and the names of the classes."""
    if not numeric:
        names, classes = np.unique(np.array(texts, dtype=object), return_inverse=True)
        return classes, tuple(names.tolist())
    known, classes = np.unique(values, return_inverse=True)
    whole = all(v == round(v) for v in known[np.isfinite(known)].tolist())
    numbers = [str(int(v)) if whole and np.isfinite(v) else str(v) for v in known.tolist()]
    return classes, tuple(numbers)


def _read_split(table: Table, column: str) -> dict[str, Tensor]:
    texts, codes = _distinct(table, column, missing=())
    masks = [_MASKS.get(text.lower()) for text in texts]
    for k, mask in enumerate(masks):
        if mask is None:
            raise table.error(
                f"Expected train, val, test or an empty cell (got {texts[k]!r}).",
                int((codes == k).argmax()),
                column,
                value=texts[k],
            )
    return {
        key: torch.from_numpy(np.isin(codes, [k for k, mask in enumerate(masks) if mask == key]))
        for key in MASKS
    }
