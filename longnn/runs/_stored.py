"""Runs on graphs that stay on disk: predictions of all nodes as a stream, and what is described.

Nothing here holds more than a batch of rows and a few bytes per node.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import torch

from longnn._base.files import atomic_path, writing
from longnn.data import DataError, Split
from longnn.graphs import SpectralDensity, spectral_density
from longnn.runs._predictions import table_of
from longnn.store import GraphStore, StoredDataset, StoredOperator
from longnn.training import Trained

#: Rows of one table of a stream: of a group in a Parquet file.
ROWS = 1 << 16
#: Stored entries up to which the spectral density is estimated: fifty products, a minute there.
DENSITY_ENTRIES = 50_000_000
SETS = ("none", "train", "val", "test")


def density_of(graph: GraphStore) -> SpectralDensity | None:
    """The spectral density of a stored graph, or None where that would take too long."""
    if graph.num_entries > DENSITY_ENTRIES:
        return None
    return spectral_density(StoredOperator(graph))  # type: ignore[arg-type]  # it multiplies


def card_of(dataset: StoredDataset) -> dict[str, Any]:
    """What a report shows of a stored graph: what its degrees and labels say, and no more."""
    graph = dataset.graph
    degree = np.diff(graph.offsets)
    counts: dict[str, int] = {}
    if dataset.task == "classification":
        found = torch.bincount(dataset.data.y, minlength=dataset.num_classes).tolist()
        counts = dict(zip(dataset.classes, found, strict=True))
    present = [count for count in counts.values() if count]
    return {
        "name": dataset.name,
        "task": dataset.task,
        "nodes": graph.num_nodes,
        "edges": dataset.num_edges,
        "features": graph.num_features,
        "weighted": False,
        "degree_min": int(degree.min()),
        "degree_median": float(np.median(degree)),
        "degree_mean": float(degree.mean()),
        "degree_max": int(degree.max()),
        "isolated_nodes": int((degree == 0).sum()),
        "class_counts": counts,
        "imbalance": max(present) / min(present) if present else None,
        "labelled_share": dataset.num_nodes / graph.num_nodes,
        "notes": list(dataset.notes),
        "warnings": [],
        "fingerprint": dataset.fingerprint(),
    }


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


def whole_table(tables: Iterator[pyarrow.Table]) -> pyarrow.Table:
    """The tables of a stream as one, in memory."""
    return pyarrow.concat_tables(list(tables))


def rows_described(found: Mapping[str, Any]) -> str:
    """What a report leaves out on rows, in a sentence."""
    missing = [name for name, value in found.items() if value is None]
    if not missing:
        return ""
    return f"Left out, since they need the whole graph in memory: {', '.join(missing)}."
