"""A graph on disk: who is whose neighbour, what is known of each node, and what is asked.

Features are stored as their columns were encoded, not scaled: a run has the scaling.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from longnn.data import Source
from longnn.data._encoding import Encoding
from longnn.data._scaling import Scaling
from longnn.data._targets import Answers
from longnn.store._arrays import Manifest, StoreError, checksum

#: The files of a graph. All of one length are by node, in the order of the ids.
OFFSETS, NEIGHBOURS, WEIGHTS = "offsets.npy", "neighbours.npy", "weights.npy"
FEATURES, LABELS, ROLES = "features.npy", "labels.npy", "roles.npy"
IDS = "ids.parquet"  # one column `id`, a row per node
#: What a node serves for by the user's split, in ``roles.npy``.
NOBODY, TRAIN, VAL, TEST = -1, 0, 1, 2
MASKS = {"train_mask": TRAIN, "val_mask": VAL, "test_mask": TEST}


class Neighbours(NamedTuple):
    """The neighbours of each node, sorted, none twice: a matrix in compressed rows."""

    offsets: np.ndarray  # int64 (nodes + 1,): those of node i stand from ``offsets[i]`` on
    indices: np.ndarray  # int32 (entries,)
    weights: np.ndarray | None = None  # float32 (entries,); None: all are 1


def arc_files(
    *, weighted: bool, directed: bool, number: int | None = None, back: bool = False
) -> list[str]:
    """The files of the neighbours of all types of edges, or of type ``number``.

    >>> arc_files(weighted=True, directed=True)
    ['offsets.npy', 'neighbours.npy', 'weights.npy', 'back_offsets.npy', 'back_neighbours.npy', \
'back_weights.npy']
    >>> arc_files(weighted=False, directed=False, number=1)
    ['type1_offsets.npy', 'type1_neighbours.npy']
    """
    start = "" if number is None else f"type{number}_"
    start += "back_" if back else ""
    names = [start + name for name in (OFFSETS, NEIGHBOURS, *([WEIGHTS] if weighted else []))]
    if directed and not back:
        names += arc_files(weighted=weighted, directed=True, number=number, back=True)
    return names


@dataclasses.dataclass(frozen=True)
class GraphStore:
    """A graph in a folder, its arrays mapped and never read whole.

    The neighbours of each node are kept as :class:`Neighbours`, in ``offsets.npy``,
    ``neighbours.npy`` and, where edges have weights, ``weights.npy``. An undirected graph has both
    directions of each edge, with one weight. In a directed graph they are the arcs from each node,
    and ``back_offsets.npy``, ``back_neighbours.npy`` and ``back_weights.npy`` hold the arcs to each
    node: the transposed matrix. Where edges have types, files that begin with ``type0_``,
    ``type1_``, ... (``type0_back_``, ...) hold those of each type in the same form, and the files
    without it hold all. Features are stored dense, column by column, whatever they were in memory.

    Args:
        folder: where the files are.
        manifest: what they hold. ``manifest.about`` has ``name``, ``task``, ``classes`` (names in
            the order of the labels), ``targets``, ``feature_names`` and ``source`` (how it was
            made, plain data); also ``edges``, ``one_way``, ``directed``, ``types`` (names of the
            types of edges), ``self_loops``, ``degree_max``, ``isolated``, ``labelled``, ``split``
            (its sizes, or None), ``default_split``, ``encoding`` (how columns became features),
            ``open_features`` (see :class:`~longnn.data.NodeDataset`), ``ready`` (whether features
            are ready to use), ``scaling`` (in which terms are stored), ``ids`` and ``notes``.

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

    def arcs(self, number: int | None = None, *, back: bool = False) -> Neighbours:
        """The neighbours of each node: by all edges, or by those of the type ``number``.

        ``back``: of a directed graph the arcs to each node, not from it; of another one the same.
        """
        names = arc_files(
            weighted=self.weighted, directed=False, number=number, back=back and self.directed
        )
        return Neighbours(*(self.manifest.array(self.folder, name) for name in names))

    @property
    def weighted(self) -> bool:
        """Whether edges have weights."""
        return WEIGHTS in self.manifest.files

    @property
    def directed(self) -> bool:
        """Whether it keeps arcs."""
        return bool(self.about.get("directed"))

    @property
    def types(self) -> tuple[str, ...]:
        """The names of the types of edges by their numbers, or nothing."""
        return tuple(str(name) for name in self.about.get("types") or ())

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

    @property
    def labelled(self) -> np.ndarray:
        """int64 (count,): the nodes with a label, ascending."""
        known = self.labels >= 0 if self.labels.dtype.kind == "i" else ~np.isnan(self.labels)
        return np.flatnonzero(known.reshape(len(known), -1).any(axis=1))

    @cached_property
    def roles(self) -> np.memmap | None:
        """int8 (nodes,) or (nodes, splits) of ``TRAIN``, ``VAL``, ``TEST``, ``NOBODY``; None
        where the user gave none."""
        return self.manifest.array(self.folder, ROLES) if ROLES in self.manifest.files else None

    @property
    def scaling(self) -> Scaling:
        """In which terms are stored, as far as rounding matters: that of ``scale="auto"``."""
        fields = self.about.get("scaling") or {"kind": "none"}
        moments = (fields.get("mean"), fields.get("deviation"))
        mean, deviation = (
            None if m is None else torch.tensor(m, dtype=torch.float64) for m in moments
        )
        return Scaling(fields["kind"], mean, deviation)

    @property
    def encoding(self) -> Encoding | None:
        """How columns of a table became features; or None."""
        fields = self.about.get("encoding")
        return None if fields is None else Encoding.from_dict(fields)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One per feature, or none."""
        return tuple(str(name) for name in self.about.get("feature_names") or ())

    @property
    def classes(self) -> tuple[str, ...]:
        """Names in the order of the labels."""
        return tuple(str(name) for name in self.about.get("classes") or ())

    @property
    def source(self) -> Source | None:
        """The files it was made of, with the options they were read with; None if unknown."""
        fields = self.about.get("source") or {}
        return Source.from_dict(fields) if "graph" in fields else None

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
    def copies(self) -> int:
        """Rows of its operator per node: two where arcs are kept."""
        return 2 if self.directed else 1

    @property
    def num_rows(self) -> int:
        """Rows of its operator."""
        return self.num_nodes * self.copies

    def rows_of(self, nodes: np.ndarray) -> np.ndarray:
        """The rows of some nodes: those of their first copies, then those of their second."""
        return np.concatenate([nodes + copy * self.num_nodes for copy in range(self.copies)])

    @property
    def num_entries(self) -> int:
        """Stored entries: two per edge, one per self loop; one per arc of a directed graph."""
        return len(self.neighbours)

    @property
    def num_features(self) -> int:
        """The number of features per node."""
        return int(self.features.shape[1])


def finish_graph(
    folder: Path,
    name: str,
    *,
    answers: Answers,
    targets: Sequence[str],
    default_split: str,
    files: Sequence[str],
    feature_names: Sequence[str],
    encoding: Encoding | None,
    scaling: Scaling,
    ready: bool,
    edges: int,
    degree: np.ndarray,  # int64 (nodes,), without self loops
    one_way: int,
    self_loops: bool,
    notes: Sequence[str],
    source: Mapping[str, Any],
    open_features: int = 0,
    weighted: bool = False,
    directed: bool = False,
    types: Sequence[str] = (),
) -> None:
    """Write the manifest of a graph whose arrays are all there: :class:`GraphStore` has the names.

    ``files`` are those of labels and roles; ``edges`` are undirected, and ``one_way`` those that
    were listed in one direction only, or of a directed graph arcs, and those without a reverse.
    """
    moments = {
        key: None if value is None else value.tolist()
        for key, value in (("mean", scaling.mean), ("deviation", scaling.deviation))
    }
    sizes = [int(mask.sum()) for mask in answers.masks.values() if mask.dim() == 1]
    ids = folder / IDS
    about = {
        "name": name,
        "task": answers.task,
        "classes": list(answers.classes),
        "targets": list(targets),
        "feature_names": list(feature_names),
        "open_features": open_features,
        "encoding": None if encoding is None else encoding.to_dict(),
        "scaling": {"kind": scaling.kind, **moments},
        "ready": ready,
        "split": dict(zip(("train", "val", "test"), sizes, strict=True)) if sizes else None,
        "default_split": default_split,
        "edges": edges,
        "self_loops": self_loops,
        "one_way": one_way,
        "directed": directed,
        "types": list(types),
        "degree_max": int(degree.max()),
        "isolated": int((degree == 0).sum()),
        "labelled": int(answers.labelled.sum()),
        "ids": {"bytes": ids.stat().st_size, "checksum": checksum(ids)},
        "notes": list(notes),
        "source": dict(source),
    }
    arcs = [
        name
        for number in (None, *range(len(types)))
        for name in arc_files(weighted=weighted, directed=directed, number=number)
    ]
    Manifest.of("graph", about, folder, [*arcs, FEATURES, *files]).write(folder)
