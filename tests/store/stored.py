"""Small graphs on disk, written array by array, for tests of what is read from there."""

import numpy as np
import pyarrow
import pyarrow.parquet
import torch

from longnn.data._synthetic import csbm
from longnn.store._arrays import Manifest
from longnn.store._graph import GraphStore


def write_graph(folder, dataset, *, roles=None, ids=None):
    """A dataset in memory as a :class:`GraphStore`."""
    folder.mkdir(parents=True, exist_ok=True)
    data, n = dataset.data, dataset.num_nodes
    row, col = data.edge_index.numpy()
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]).astype(np.int64)
    x = data.x.to_dense() if data.x.layout is not torch.strided else data.x
    kind = np.int32 if dataset.task == "classification" else np.float32
    arrays = {
        "offsets.npy": offsets,
        "neighbours.npy": col.astype(np.int32),
        "features.npy": np.asfortranarray(x.numpy().astype(np.float32)),
        "labels.npy": data.y.numpy().astype(kind),
    }
    if roles is not None:
        arrays["roles.npy"] = np.asarray(roles, dtype=np.int8)
    for name, array in arrays.items():
        np.save(folder / name, array)
    ids = [f"n{i}" for i in range(n)] if ids is None else ids
    pyarrow.parquet.write_table(pyarrow.table({"id": ids}), folder / "ids.parquet")
    about = {"name": folder.name, "task": dataset.task, "classes": list(dataset.classes)}
    about |= {"targets": list(dataset.targets), "feature_names": [], "source": {}}
    about["edges"] = dataset.num_edges
    about["ids"] = {"bytes": (folder / "ids.parquet").stat().st_size}
    Manifest.of("graph", about, folder, list(arrays)).write(folder)
    return GraphStore.open(folder)


def small(nodes=300, features=6, *, phi=0.6, seed=0, unlabelled=0):
    """A contextual block model; the labels of the last nodes are not known."""
    dataset = csbm(num_nodes=nodes, num_features=features, phi=phi, seed=seed)
    if unlabelled:
        dataset.data.y[-unlabelled:] = -1
    return dataset
