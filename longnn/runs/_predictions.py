"""Predictions of every node as a table: in memory, or a stream of tables for a graph on disk.

A stream holds no more than a batch of rows and a few bytes per node.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import torch
from torch import Tensor

from longnn._base.files import atomic_path, writing
from longnn._base.tables import write_table
from longnn.data import DataError, NodeDataset, Split
from longnn.store._graph import GraphStore
from longnn.store._rows import StoredDataset
from longnn.training import Trained

#: Rows of one table of a stream: of a group in a Parquet file.
ROWS = 1 << 16
SETS = ("none", "train", "val", "test")


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
    texts that begin like a formula (see :mod:`longnn._base.tables`). The Parquet file has every id
    as it is.
    """
    paths = [path, path.with_suffix(".parquet")]
    for target in paths:
        write_table(table, target)
    return paths


def sets_of(dataset: StoredDataset, splits: Sequence[Split]) -> np.ndarray | None:
    """int8 (nodes,), what each node of the graph serves for, by its place in :data:`SETS`; None
    where the repeats have several splits."""
    first = splits[0]
    if any(
        not torch.equal(first.test, s.test) or not torch.equal(first.val, s.val) for s in splits
    ):
        return None
    found = np.zeros(dataset.graph.num_nodes, dtype=np.int8)
    for number, mask in enumerate((first.train, first.val, first.test), start=1):
        found[dataset.nodes[mask.numpy()]] = number
    return found


def stream_predictions(
    trained: Trained,
    graph: GraphStore,
    *,
    repeat: int | None = None,
    sets: np.ndarray | None = None,
    memory: int | None = None,
) -> Iterator[pyarrow.Table]:
    """The predictions of all nodes of a stored graph, tables of some rows each.

    The columns are those of :func:`~longnn.runs.predictions_table`.

    Args:
        trained: the models.
        graph: the same graph or another with its features; missing terms are computed.
        repeat: the number of one repeat; None for the mean of all.
        sets: see :func:`sets_of`.
        memory: bytes that computing terms may use.

    Raises:
        DataError: for other features, or a prediction that is not finite.
    """
    problem = trained.row_problem(graph, np.arange(graph.num_nodes), memory=memory)
    known = _any_label(graph)
    start = 0
    ids = graph.ids(ROWS)
    for predicted in trained.predict_batches(problem, repeat=repeat, size=ROWS):
        if not bool(torch.isfinite(predicted).all()):
            raise DataError("Expected finite predictions (got some that are not)")
        stop = start + len(predicted)
        y = _labels(graph, start, stop) if known else None
        where = None if sets is None else np.array(SETS, dtype=object)[sets[start:stop]]
        chosen = trained.choose(predicted, repeat=repeat)
        yield table_of(next(ids), predicted, chosen, trained, y=y, where=where)
        start = stop


def _any_label(graph: GraphStore) -> bool:
    if "labels.npy" not in graph.manifest.files:
        return False
    labels = graph.labels
    return bool((labels >= 0).any() if labels.dtype.kind == "i" else (~np.isnan(labels)).any())


def _labels(graph: GraphStore, start: int, stop: int) -> torch.Tensor:
    found = np.array(graph.labels[start:stop])
    return torch.from_numpy(found.astype(np.int64 if found.dtype.kind == "i" else np.float32))


def write_stream(tables: Iterator[pyarrow.Table], path: Path) -> int:
    """Write tables to one Parquet file as they come; returns the number of rows."""
    rows = 0
    with writing(path), atomic_path(path) as temporary:
        writer = None
        try:
            for table in tables:
                writer = writer or pyarrow.parquet.ParquetWriter(temporary, table.schema)
                writer.write_table(table)
                rows += table.num_rows
        finally:
            if writer is not None:
                writer.close()
    return rows
