"""Predictions of every node as a table, and that table as CSV and Parquet."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
from torch import Tensor

from longnn._base.files import atomic_path, writing
from longnn.data import NodeDataset


def predictions_table(
    dataset: NodeDataset,
    predicted: Tensor,
    classes: Sequence[str],
    sets: Mapping[str, Tensor] | None = None,
) -> pyarrow.Table:
    """One row per node: id, prediction, probabilities, and, where known, label and set.

    Args:
        dataset: whose nodes these are.
        predicted: probabilities (nodes, classes), or values (nodes,).
        classes: names of the classes the model knows; empty for regression.
        sets: masks of train, val and test, where all predictions come from one split.
    """
    columns: dict[str, object] = {"id": pyarrow.array(dataset.ids)}
    y = dataset.data.y if bool(dataset.labelled.any()) else None
    if len(classes):
        names = pyarrow.array(list(classes))
        columns["predicted"] = names.take(pyarrow.array(predicted.argmax(1).numpy()))
        for k, name in enumerate(classes):
            columns[f"p_{name}"] = predicted[:, k].double().numpy()
        if y is not None:
            codes = pyarrow.array(y.numpy(), mask=(y < 0).numpy())
            columns["label"] = pyarrow.array(list(dataset.classes)).take(codes)
    else:
        columns["predicted"] = predicted.double().numpy()
        if y is not None:
            columns["label"] = pyarrow.array(y.double().numpy(), mask=y.isnan().numpy())
    if sets is not None:
        where = np.full(dataset.num_nodes, "none", dtype=object)
        for name, mask in sets.items():
            where[mask.numpy()] = name
        columns["set"] = where
    return pyarrow.table(columns)


def write_predictions(table: pyarrow.Table, path: Path) -> list[Path]:
    """Write a table of predictions to a CSV file, and to a Parquet file beside it."""
    beside = path.with_suffix(".parquet")
    with writing(path), atomic_path(path) as temporary:
        pyarrow.csv.write_csv(table, temporary)
    with writing(beside), atomic_path(beside) as temporary:
        pyarrow.parquet.write_table(table, temporary)
    return [path, beside]
