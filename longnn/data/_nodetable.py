"""A table of nodes → ids, features, labels and masks.

Guesses the role of a column from its name; errors report the guess. How labels are read is the
business of :mod:`longnn.data._labels`, how features are made of columns that of
:mod:`longnn.data._encoding`. Knows nothing of edges.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from longnn._base.late import Late
from longnn.data._beside import read_groups, read_split, read_time, read_weights
from longnn.data._dataset import Task, known_labels
from longnn.data._encoding import Encoding, Join
from longnn.data._errors import DataError
from longnn.data._hints import Hints
from longnn.data._labels import find_labels, read_labels
from longnn.data._options import TableOptions
from longnn.data._tables import Table
from longnn.matrices import compact

pc = Late("pyarrow.compute")

ID_NAMES = ("id", "node", "node_id", "nodeid")
SPLIT_NAMES = ("split",)


@dataclass(eq=False)
class Nodes:
    """What is known about the nodes before the edges are read.

    Args:
        ids: one int64 or text per node (a pyarrow array), or None: the nodes are 0, 1, ...
        count: number of nodes, or None if only the edges can tell.
        x: features (nodes, features), or None.
        feature_names: one per feature, or empty.
        open_features: how many of the last ones come from a long table (see :class:`NodeDataset`).
        encoding: how the columns became features, or None.
        table: they are from, or None.
        roles: what its columns are for, or None.
        y: labels as :class:`NodeDataset` wants them, or None.
        classes: names of the classes, or None.
        targets: names of the columns of ``y`` if it holds several numbers.
        task: what the labels are for, or None if there are none.
        beside: ``train_mask``, ..., ``node_group``, ``node_weight``, see :class:`NodeDataset`.
        default_split: as there, where masks and groups do not say it.
        notes: sentences for the user.
        source: where the nodes come from, for messages.
    """

    ids: Any = None
    count: int | None = None
    x: Tensor | None = None
    feature_names: tuple[str, ...] = ()
    open_features: int = 0
    encoding: Encoding | None = None
    table: Table | None = None
    roles: "NodeColumns | None" = None
    y: Tensor | None = None
    classes: tuple[str, ...] | None = None
    targets: tuple[str, ...] = ()
    task: Task | None = None
    beside: dict[str, Tensor] = field(default_factory=dict)
    default_split: str | None = None
    notes: list[str] = field(default_factory=list)
    source: str = "the node file"

    @property
    def known_ids(self) -> Any:
        """The ids; 0, 1, ... where there are none."""
        return pa.array(np.arange(self.count or 0)) if self.ids is None else self.ids

    def keep(self, kept: np.ndarray) -> np.ndarray:  # bool (nodes,) -> int64 (nodes,)
        """Leave out the other nodes; returns the new number of each, -1 for one that is gone."""
        rows = np.flatnonzero(kept)
        lost = len(kept) - len(rows)
        if lost:
            if len(rows) == 0:
                raise DataError("Expected an edge between two nodes with isolated=drop (got none).")
            self.ids, self.count = self.known_ids.take(pa.array(rows)), len(rows)
            where = torch.from_numpy(rows)
            self.x = None if self.x is None else compact(self.x.index_select(0, where))
            self.y = None if self.y is None else self.y[where]
            self.beside = {key: values[where] for key, values in self.beside.items()}
            self.table = None if self.table is None else self.table.with_only(rows, "")
            self.notes.append(f"Nodes without an edge were dropped: {lost:,} of {len(kept):,}.")
        return np.where(kept, np.cumsum(kept) - 1, -1)


@dataclass(frozen=True)
class NodeColumns:
    """What the columns of a node table are for."""

    key: str | None
    labels: tuple[str, ...]
    split: str | None
    time: str | None
    group: str | None
    weight: str | None
    features: tuple[str, ...]

    @classmethod
    def find(cls, table: Table, options: TableOptions, *, ids_needed: bool) -> "NodeColumns":
        """Look at the names; ``ids_needed`` if the edges refer to ids, not to positions."""
        dropped = options.drop_columns or ()
        for column in dropped:
            table.find(column, (), "feature")
        labels = find_labels(table, options)
        split = table.find(options.split_column, SPLIT_NAMES, "split", dropped)
        time = table.find(options.time_column, (), "time", dropped)
        group = table.find(options.group_column, (), "group", dropped)
        weight = table.find(options.node_weight_column, (), "node weight", dropped)
        others = [name for name in (*labels, split, time, group, weight) if name]
        key = table.find(options.id_column, ID_NAMES, "id", dropped)
        if key is None and ids_needed:
            taken = (*others, *dropped)
            key = next((name for name in table.names if name not in taken), None)
            if key is None:
                names = ", ".join(table.names)
                raise table.error(f"Expected an id column (got only {names}{table.hint}).")
        roles = [*([key] if key else []), *others]
        features = _feature_columns(table, options, roles)
        return cls(key, labels, split, time, group, weight, features)


def read_nodes(table: Table, options: TableOptions, *, ids_needed: bool) -> Nodes:
    """Ids, labels and masks; ``ids_needed`` if the edges refer to ids, not to positions."""
    if options.features not in ("auto", "columns"):
        options = replace(options, feature_columns=(), text_columns=(), category_columns=())
    table = options.meaning(table)
    roles = NodeColumns.find(table, options, ids_needed=ids_needed)
    if roles.key is not None and options.repeated_nodes == "merge":
        table = _merged(table, roles.key)
    nodes = Nodes(count=len(table), source=table.name, table=table, roles=roles)
    nodes.notes += table.notes
    if roles.key is not None:
        nodes.ids = read_ids(table, roles.key)
    if roles.labels:
        labels = read_labels(table, roles.labels, options, nodes.notes)
        nodes.y, nodes.classes, nodes.targets, nodes.task = labels
    labelled = np.zeros(len(table), dtype=bool)
    if nodes.y is not None and nodes.task is not None:
        labelled = known_labels(nodes.y, nodes.task).numpy()
    weight = None
    if roles.weight is not None:
        weight = read_weights(table, roles.weight, labelled, nodes.notes)
        labelled &= weight.numpy() != 0
    if roles.time is not None:
        nodes.default_split = "time"
        nodes.beside = read_time(table, roles.time, labelled, options.split_at, nodes.notes)
    elif roles.group is not None:
        nodes.beside = read_groups(table, roles.group, labelled, nodes.notes)
    elif roles.split is not None:
        nodes.beside = read_split(table, roles.split)
    nodes.beside |= {} if weight is None else {"node_weight": weight}
    asked = (roles.time, roles.group, roles.weight)
    unused = [name for name in asked if name not in (None, *roles.features)]
    if unused:
        names = ", ".join(map(repr, unused))
        nodes.notes.append(f"No feature, unless feature_columns names it: {names}.")
    return nodes


def _feature_columns(table: Table, options: TableOptions, roles: Sequence[str]) -> tuple[str, ...]:
    """The columns that are features: those named, else all that have no other role."""
    dropped = options.drop_columns or ()
    named = {"text": options.text_columns or (), "category": options.category_columns or ()}
    for what, columns in named.items():
        for column in columns:
            table.find(column, (), what, dropped)
            if column in roles:
                raise table.error(
                    f"Expected `{what}_columns` among the features (got {column!r}, which has "
                    "another role).",
                    column=column,
                )
    both = set(named["text"]) & set(named["category"])
    if both:
        raise table.error(
            "Expected a column in `text_columns` or in `category_columns` (got it in both).",
            column=min(both),
        )
    if options.feature_columns is None:
        return tuple(name for name in table.names if name not in (*roles, *dropped))
    for column in options.feature_columns:
        table.find(column, (), "feature", dropped)
    return tuple(dict.fromkeys([*options.feature_columns, *named["text"], *named["category"]]))


def read_features(nodes: Nodes, options: TableOptions, join: Join | None = None) -> None:
    """Encode the feature columns; ``join`` as of :meth:`Encoding.fit`."""
    if nodes.table is None or nodes.roles is None or not nodes.roles.features:
        return
    hints = Hints(nodes.y, nodes.beside, nodes.targets)
    nodes.encoding, nodes.x = Encoding.fit(
        nodes.table,
        nodes.roles.features,
        join=join,
        text_columns=options.text_columns or (),
        category_columns=options.category_columns or (),
        missing=options.missing,
        hints=hints,
    )
    nodes.notes += hints.notes
    nodes.feature_names = nodes.encoding.feature_names
    if nodes.encoding.note:
        nodes.notes.append(nodes.encoding.note)


def _merged(table: Table, key: str) -> Table:
    """The table without rows that repeat the first of their id."""
    ids = table.ids(key)
    first = _first_rows(ids)
    repeats = np.flatnonzero(first != np.arange(len(first)))
    if not len(repeats):
        return table
    for column in table.names:
        if column == key:
            continue
        cells = table.columns[column]
        own, other = cells.take(pa.array(repeats)), cells.take(pa.array(first[repeats]))
        differ = pc.fill_null(pc.not_equal(own, other), False)
        differ = pc.or_(differ, pc.xor(pc.is_null(own), pc.is_null(other)))
        if pc.any(differ).as_py():
            place = int(repeats[pc.index(differ, True).as_py()])
            value = str(ids[place].as_py())
            raise table.error(
                f"Expected rows of one id to be identical for repeated_nodes=merge (got {value!r} "
                f"again, first on line {table.place(int(first[place]))[1]}, with another "
                "value).",
                place,
                column,
                value=value,
            )
    note = f"Identical rows of {table.name} were merged: {len(repeats):,}."
    return table.with_only(np.delete(np.arange(len(first)), repeats), note)


def read_ids(table: Table, column: str) -> Any:
    """The id of each node, a pyarrow array of distinct whole numbers or texts."""
    ids = table.ids(column)
    if ids.null_count:
        row = pc.index(pc.is_null(ids), True).as_py()
        raise table.wrong("an id", row, column)
    first = _first_rows(ids)
    repeats = np.flatnonzero(first != np.arange(len(first)))
    if len(repeats):
        row = int(repeats[0])
        value = str(ids[row].as_py())
        unit = "line" if table.path is not None else "row"
        (path, line), (own, _) = table.place(int(first[row])), table.place(row)
        where = "" if path == own else f" of {path}"
        raise table.error(
            f"Expected unique ids (got {value!r} again, first on {unit} {line}{where}); if this "
            "is not the id column, name it with id_column; identical rows are merged with "
            "repeated_nodes=merge.",
            row,
            column,
            value=value,
        )
    return ids


def _first_rows(ids: Any) -> np.ndarray:  # int64 (rows,)
    """For each row the first with its id."""
    distinct = pc.unique(ids)
    if len(distinct) == len(ids):
        return np.arange(len(ids))
    place = pc.index_in(ids, value_set=distinct).to_numpy(zero_copy_only=False)
    return np.unique(place, return_index=True)[1][place]
