"""A dataset in memory → a prepared graph: for named datasets, and for files of arrays."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from longnn._base.files import writing
from longnn.data import DataError, NodeDataset, Scaling
from longnn.store._arrays import ArrayWriter
from longnn.store._features import FeatureFile
from longnn.store._finish import finish
from longnn.store._graph import FEATURES, IDS, NEIGHBOURS, OFFSETS, GraphStore
from longnn.store._labels import Asked, write_asked


def write_dataset(
    dataset: NodeDataset, folder: Path, source: Mapping[str, Any], model: GraphStore | None
) -> None:
    """Write all files of a prepared graph.

    Args:
        dataset: without weights.
        folder: which exists.
        source: how it is made; ``scale``, ``seed`` and ``ignore_weights`` are used.
        model: a prepared graph whose features were encoded and scaled as these shall be, or None.

    Raises:
        DataError: for weighted edges, unless they are to be ignored.
    """
    if dataset.data.get("edge_weight") is not None and not source["ignore_weights"]:
        raise DataError(
            "Expected edges without weights: a prepared graph keeps none; use the graph in memory, "
            "or treat all edges alike with --ignore-weights."
        )
    if model is not None and model.encoding is not None:
        dataset = dataset.encoded(model.encoding)
    if model is not None and dataset.num_features != model.num_features:
        raise DataError(
            f"Expected the {model.num_features} features of {model.about['name']!r} "
            f"(got {dataset.num_features})."
        )
    row, col = dataset.data.edge_index.numpy()
    nodes = dataset.num_nodes
    arcs = np.bincount(row, minlength=nodes)
    with ArrayWriter(folder / NEIGHBOURS, np.int32) as writer:
        writer.append(col)
    with ArrayWriter(folder / OFFSETS, np.int64) as writer:
        writer.append(np.concatenate([[0], np.cumsum(arcs)]))
    write_id_list(dataset.ids, folder / IDS)
    scaling = _write_features(dataset, folder, str(source["scale"]), model)
    asked = Asked(dataset)
    files, split = write_asked(asked, folder, int(source["seed"]))
    finish(
        folder,
        dataset.name,
        labelled=dataset,
        files=files,
        feature_names=dataset.feature_names,
        encoding=dataset.encoding,
        scaling=scaling,
        split=split,
        edges=dataset.num_edges,
        degree=arcs - np.bincount(row[row == col], minlength=nodes),
        one_way=dataset.one_way,
        self_loops=bool((row == col).any()),
        notes=[*dataset.notes, *asked.notes],
        source=source,
    )


def _write_features(
    dataset: NodeDataset, folder: Path, scale: str, model: GraphStore | None
) -> Scaling:
    kind = Scaling.fit(scale, dataset).kind  # features of named datasets are ready to use
    x = dataset.data.x
    x = x.to_dense() if x.layout is not torch.strided else x
    fitted = None if model is None else model.scaling
    return FeatureFile(folder / FEATURES, len(x), kind, fitted).write(iter([x.numpy()]))


def write_id_list(ids: Sequence[Any], path: Path) -> None:
    """One column ``id``, one row per node."""
    column = pa.array(np.arange(len(ids)) if ids == range(len(ids)) else ids)
    with writing(path):
        pq.write_table(pa.table({"id": column}), path, compression="zstd")
