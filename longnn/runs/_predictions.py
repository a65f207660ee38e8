"""Predictions of every node as a table, and that table as CSV and Parquet."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from torch import Tensor

from longnn._base.files import atomic_path, writing
from longnn.data import NodeDataset
from longnn.training import Trained


def predictions_table(
    dataset: NodeDataset,
    predicted: Tensor,
    chosen: Tensor,
    trained: Trained,
    sets: Mapping[str, Tensor] | None = None,
) -> pyarrow.Table:
    """One row per node: id, prediction, probabilities, and, where known, label and set.

    Several labels or numbers have one column of each kind per label or target:
    ``predicted_NAME``, ``p_NAME``, ``label_NAME``.

    Args:
        dataset: whose nodes these are.
        predicted: probabilities (nodes, classes), or values (nodes,) or (nodes, targets).
        chosen: the predicted classes (nodes,) or labels (nodes, labels); values for regression.
        trained: the models, which know the names of classes and targets.
        sets: masks of train, val and test, where all predictions come from one split.
    """
    where = None
    if sets is not None:
        where = np.full(dataset.num_nodes, "none", dtype=object)
        for name, mask in sets.items():
            where[mask.numpy()] = name
    y = dataset.data.y if bool(dataset.labelled.any()) else None
    ids = pyarrow.array(dataset.ids)
    return table_of(ids, predicted, chosen, trained, y=y, where=where, classes=dataset.classes)


def table_of(
    ids: pyarrow.Array,
    predicted: Tensor,
    chosen: Tensor,
    trained: Trained,
    *,
    y: Tensor | None = None,
    where: np.ndarray | None = None,
    classes: Sequence[str] | None = None,
) -> pyarrow.Table:
    """The same of some nodes, from what is known of them.

    Args:
        ids: of the nodes.
        predicted, chosen, trained: see :func:`predictions_table`.
        y: their labels, -1 or NaN where unknown; None without any.
        where: what each serves for.
        classes: names of the labels; by default those of the models.
    """
    columns: dict[str, object] = {"id": ids}
    if trained.task == "classification":
        named = trained.classes if classes is None else classes
        columns |= _classes(predicted, chosen, trained.classes, y, named)
    elif chosen.dim() == 1:
        columns["predicted"] = predicted.double().numpy()
        if y is not None:
            columns["label"] = _known(y)
    else:
        names = trained.classes or trained.targets or [str(k) for k in range(chosen.shape[1])]
        for k, name in enumerate(names):
            columns[f"predicted_{name}"] = chosen[:, k].numpy()
            if trained.task == "multilabel":
                columns[f"p_{name}"] = predicted[:, k].double().numpy()
            if y is not None and y.dim() == 2:
                columns[f"label_{name}"] = _known(y[:, k])
    if where is not None:
        columns["set"] = where
    return pyarrow.table(columns)


def _classes(
    predicted: Tensor,
    chosen: Tensor,
    classes: Sequence[str],
    y: Tensor | None,
    named: Sequence[str],
) -> dict[str, object]:
    columns: dict[str, object] = {}
    columns["predicted"] = pyarrow.array(list(classes)).take(pyarrow.array(chosen.numpy()))
    for k, name in enumerate(classes):
        columns[f"p_{name}"] = predicted[:, k].double().numpy()
    if y is not None:
        codes = pyarrow.array(y.numpy(), mask=(y < 0).numpy())
        columns["label"] = pyarrow.array(list(named)).take(codes)
    return columns


def _known(y: Tensor) -> pyarrow.Array:
    return pyarrow.array(y.double().numpy(), mask=y.isnan().numpy())


def write_predictions(table: pyarrow.Table, path: Path) -> list[Path]:
    """Write a table of predictions to a CSV file, and to a Parquet file beside it.

    A spreadsheet runs a cell such as ``=HYPERLINK(...)``, so the CSV file has an apostrophe before
    texts that begin like a formula (see :func:`without_formulas`). The Parquet file has every id
    as it is.
    """
    beside = path.with_suffix(".parquet")
    with writing(path), atomic_path(path) as temporary:
        pyarrow.csv.write_csv(without_formulas(table), temporary)
    with writing(beside), atomic_path(beside) as temporary:
        pyarrow.parquet.write_table(table, temporary)
    return [path, beside]


def without_formulas(table: pyarrow.Table) -> pyarrow.Table:
    """The table with ``'`` before each text that a spreadsheet would take for a formula.

    Such a text begins with = + - @, a tab or a carriage return, and is not a number.

    >>> table = pyarrow.table({"id": ["=1+1", "-5", "-x", "ann"]})
    >>> without_formulas(table)["id"].to_pylist()
    ["'=1+1", '-5', "'-x", 'ann']
    """
    for place, name in enumerate(table.column_names):
        column = table[name]
        if not pyarrow.types.is_string(column.type):
            continue
        begins = pc.match_substring_regex(column, r"^[=+\-@\t\r]")
        number = pc.match_substring_regex(
            column, r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
        )
        formula = pc.and_not(begins, number)
        marked = pc.binary_join_element_wise("'", column, "")
        table = table.set_column(place, name, pc.if_else(formula, marked, column))
    return table
