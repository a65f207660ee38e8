"""The last step of every way to make a prepared graph: its manifest."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longnn.data import Encoding, NodeDataset, Scaling
from longnn.store._graph import FEATURES, IDS, NEIGHBOURS, OFFSETS
from longnn.store._manifest import Manifest, checksum


def finish(
    folder: Path,
    name: str,
    *,
    labelled: NodeDataset,
    files: Sequence[str],
    feature_names: Sequence[str],
    encoding: Encoding | None,
    scaling: Scaling,
    split: Mapping[str, Any] | None,
    edges: int,
    degree: np.ndarray,
    one_way: int,
    self_loops: bool,
    notes: Sequence[str],
    source: Mapping[str, Any],
) -> None:
    """Write the manifest of a graph whose arrays are all there.

    Args:
        folder: where they are.
        name: of the graph.
        labelled: its labels: task, classes and targets are taken from it.
        files: those of labels and roles.
        feature_names: one per feature, or none.
        encoding: how columns became features, or None.
        scaling: how the features were scaled.
        split: how the roles were drawn, or None.
        edges: undirected ones.
        degree: int64 (nodes,), without self loops.
        one_way: edges that were listed in one direction only.
        self_loops: whether they were kept.
        notes: sentences for the user.
        source: how it was made, plain data.
    """
    moments = {
        key: None if value is None else value.tolist()
        for key, value in (("mean", scaling.mean), ("deviation", scaling.deviation))
    }
    ids = folder / IDS
    about = {
        "name": name,
        "task": labelled.task,
        "classes": list(labelled.classes),
        "targets": list(labelled.targets),
        "feature_names": list(feature_names),
        "encoding": None if encoding is None else encoding.to_dict(),
        "scaling": {"kind": scaling.kind, **moments},
        "split": None if split is None else dict(split),
        "edges": edges,
        "self_loops": self_loops,
        "one_way": one_way,
        "degree_max": int(degree.max()),
        "isolated": int((degree == 0).sum()),
        "labelled": int(labelled.labelled.sum()),
        "ids": {"bytes": ids.stat().st_size, "checksum": checksum(ids)},
        "notes": list(notes),
        "source": dict(source),
    }
    Manifest.of("graph", about, folder, [OFFSETS, NEIGHBOURS, FEATURES, *files]).write(folder)
