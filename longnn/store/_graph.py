"""A graph on disk: who is whose neighbour, what is known of each node, and what is asked."""

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from longnn.data import Encoding, Scaling
from longnn.store._manifest import Manifest, StoreError

#: The files of a graph. All of one length are by node, in the order of the ids.
OFFSETS, NEIGHBOURS = "offsets.npy", "neighbours.npy"
FEATURES, LABELS, ROLES = "features.npy", "labels.npy", "roles.npy"
IDS = "ids.parquet"  # one column `id`, a row per node
#: What a node serves for, in ``roles.npy``.
NOBODY, TRAIN, VAL, TEST = -1, 0, 1, 2


@dataclasses.dataclass(frozen=True)
class GraphStore:
    """A graph in a folder, its arrays mapped and never read whole.

    An undirected graph is kept as the neighbours of each node, sorted, none twice, both directions
    stored, without values: the operator :math:`D^{-1/2} A D^{-1/2}` needs the degrees alone.

    Args:
        folder: where the files are.
        manifest: what they hold. ``manifest.about`` has ``name``, ``task``, ``classes`` (names in
            the order of the labels), ``targets``, ``feature_names`` and ``source`` (how it was
            made, plain data); also ``edges``, ``self_loops``, ``degree_max``, ``isolated``,
            ``labelled``, ``split`` (protocol, seed and sizes, or None), ``encoding`` and
            ``scaling`` (what was done to the features), ``ids`` and ``notes``.

    Raises:
        StoreError: by :meth:`open`, where the folder is not what its manifest says.
    """

    folder: Path
    manifest: Manifest

    @classmethod
    def open(cls, folder: str | Path) -> "GraphStore":
        """The graph that ``longnn prepare`` wrote into a folder."""
        return cls(Path(folder), Manifest.read(Path(folder), "graph"))

    @property
    def about(self) -> Mapping[str, Any]:
        """Plain data on the whole."""
        return self.manifest.about

    @cached_property
    def offsets(self) -> np.memmap:
        """int64 (nodes + 1,): the neighbours of node i stand from ``offsets[i]`` on."""
        return self.manifest.array(self.folder, OFFSETS)

    @cached_property
    def neighbours(self) -> np.memmap:
        """int32 (entries,)."""
        return self.manifest.array(self.folder, NEIGHBOURS)

    @cached_property
    def features(self) -> np.memmap:
        """float32 (nodes, columns), stored column by column (Fortran order)."""
        return self.manifest.array(self.folder, FEATURES)

    @cached_property
    def labels(self) -> np.memmap:
        """int32 (nodes,), -1 for an unlabelled node; for regression float32 with NaN."""
        return self.manifest.array(self.folder, LABELS)

    @cached_property
    def roles(self) -> np.memmap | None:
        """int8 (nodes,) of ``TRAIN``, ``VAL``, ``TEST``, ``NOBODY``; None without a split."""
        return self.manifest.array(self.folder, ROLES) if ROLES in self.manifest.files else None

    @property
    def scaling(self) -> Scaling:
        """How the stored features were scaled: the same is done to those of another graph."""
        fields = self.about["scaling"]
        moments = (fields.get("mean"), fields.get("deviation"))
        mean, deviation = (
            None if m is None else torch.tensor(m, dtype=torch.float64) for m in moments
        )
        return Scaling(fields["kind"], mean, deviation)

    @property
    def encoding(self) -> Encoding | None:
        """How columns of a table became features, before they were scaled; or None."""
        fields = self.about.get("encoding")
        return None if fields is None else Encoding.from_dict(fields)

    def ids(self, rows: int = 2**20) -> Iterator[pa.Array]:
        """The ids of the nodes in order, so many at a time: int64 or text.

        Raises:
            StoreError: for a missing or truncated file.
        """
        path, entry = self.folder / IDS, self.about["ids"]
        size = path.stat().st_size if path.is_file() else None
        if size != entry["bytes"]:
            got = "no file" if size is None else f"{size:,}"
            raise StoreError(
                f"Expected {entry['bytes']:,} bytes in {path} (got {got}); make the folder again"
            )
        with pq.ParquetFile(path) as file:
            yield from (batch.column("id") for batch in file.iter_batches(rows))

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return len(self.offsets) - 1

    @property
    def num_entries(self) -> int:
        """Stored entries: two per edge, one per self loop."""
        return len(self.neighbours)

    @property
    def num_features(self) -> int:
        """The number of features per node."""
        return int(self.features.shape[1])
