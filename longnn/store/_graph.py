"""A graph on disk: who is whose neighbour, what is known of each node, and what is asked.

Features are stored as their columns were encoded, not scaled: a run has the scaling.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from longnn._base.files import writing
from longnn._base.schema import Shape, to_plain
from longnn.data import Source
from longnn.data._dataset import BESIDE, MASKS, Task
from longnn.data._edgetable import whole_numbers
from longnn.data._encoding import Encoding
from longnn.data._scaling import Scaling
from longnn.data._tensors import GraphTensors
from longnn.store._arrays import NAME, ArrayFile, Manifest

#: The files of a graph. All of one length are by node, in the order of the ids.
OFFSETS, NEIGHBOURS, WEIGHTS = "offsets.npy", "neighbours.npy", "weights.npy"
FEATURES, DEGREES = "features.npy", "degrees.npy"
IDS = "ids.parquet"  # one column `id`, one row per node
#: What is asked of the nodes, by the names of a dataset's tensors; all but labels may be absent.
ANSWERS = {key: f"{key}.npy" for key in ("y", *MASKS, *BESIDE)}
#: All files that a preparation writes.
FILES = re.compile(
    rf"(type\d+_)?(back_)?({OFFSETS}|{NEIGHBOURS}|{WEIGHTS})|{FEATURES}|{DEGREES}|{IDS}|{NAME}|"
    + "|".join(ANSWERS.values())
)
#: Fields of a dataset that a manifest repeats.
SHARED = (
    *("name", "task", "classes", "targets", "feature_names", "open_features"),
    *("default_split", "ready", "one_way", "directed"),
)


Features: TypeAlias = Annotated[np.ndarray, Shape("features")]


class Neighbours(NamedTuple):
    """The neighbours of each node, sorted, none twice: a matrix in compressed rows."""

    offsets: np.ndarray  # int64 (nodes + 1,): those of node i stand from ``offsets[i]`` on
    indices: np.ndarray  # int32 (entries,)
    weights: np.ndarray | None = None  # float32 (entries,); None: all are 1


def arc_files(*, weighted: bool, number: int | None = None, back: bool = False) -> list[str]:
    """The files of the neighbours by all types of edges, or by type ``number``.

    >>> arc_files(weighted=True, number=1, back=True)
    ['type1_back_offsets.npy', 'type1_back_neighbours.npy', 'type1_back_weights.npy']
    """
    start = ("" if number is None else f"type{number}_") + ("back_" if back else "")
    return [start + name for name in (OFFSETS, NEIGHBOURS, WEIGHTS)[: 3 if weighted else 2]]


@dataclasses.dataclass(frozen=True, eq=False)
class Moments:
    """A scaling of columns as plain data, see :class:`~longnn.data._scaling.Scaling`."""

    kind: str
    mean: Features | None = None
    deviation: Features | None = None


@dataclasses.dataclass(frozen=True)
class About:
    """What the manifest of a graph says of the whole: what a dataset says of itself, and

    Args:
        edges: their number: undirected ones, or arcs.
        types: names of the types of edges.
        encoding: how columns became features, as plain data.
        scaling: in which terms are stored.
        notes: sentences for the user.
        source: the files it was made of and how they were read, as plain data.
    """

    name: str
    edges: int
    task: Task = "classification"
    classes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    open_features: int = 0
    default_split: str = "stratified"
    ready: bool = False
    one_way: int = 0
    directed: bool = False
    types: tuple[str, ...] = ()
    encoding: Any = None
    scaling: Moments = Moments("none")
    notes: tuple[str, ...] = ()
    source: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class GraphStore:
    """A graph in a folder, its arrays mapped and never read whole.

    The neighbours of each node are kept as :class:`Neighbours`, in ``offsets.npy``,
    ``neighbours.npy`` and, where edges have weights, ``weights.npy``. An undirected graph has both
    directions of each edge, with one weight. In a directed graph they are the arcs from each node,
    and ``back_offsets.npy``, ``back_neighbours.npy`` and ``back_weights.npy`` hold the arcs to each
    node: the transposed matrix. Where edges have types, files that begin with ``type0_``,
    ``type1_``, ... (``type0_back_``, ...) hold those of each type in the same form, and the files
    without it hold all. ``degrees.npy`` has the number of neighbours of each node, whichever way
    the edge goes, but itself. Features are stored dense, column by column, whatever they were in
    memory.

    Raises:
        StoreError: by :meth:`open`, where the folder is not what its manifest says.
    """

    folder: Path
    manifest: Manifest
    about: About

    @classmethod
    def open(cls, folder: str | Path) -> "GraphStore":
        """The graph that ``longnn prepare`` wrote into a folder."""
        return cls(Path(folder), *Manifest.read(Path(folder) / NAME, "graph", About))

    @classmethod
    def finish(cls, folder: Path, about: About) -> "GraphStore":
        """Write the manifest of a graph whose files are all there."""
        names = sorted(path.name for path in folder.iterdir() if FILES.fullmatch(path.name))
        files = {name: ArrayFile.of(folder / name) for name in names}
        Manifest("graph", to_plain(about), files).write(folder / NAME)
        return cls.open(folder)

    def arcs(self, number: int | None = None, *, back: bool = False) -> Neighbours:
        """The neighbours of each node: by all edges, or by those of the type ``number``.

        ``back``: of a directed graph the arcs to each node, not from it; of another one the same.
        """
        names = arc_files(weighted=self.weighted, number=number, back=back and self.directed)
        return Neighbours(*(self.array(name) for name in names))

    @property
    def weighted(self) -> bool:
        """Whether edges have weights."""
        return WEIGHTS in self.manifest.files

    @property
    def directed(self) -> bool:
        """Whether it keeps arcs."""
        return self.about.directed

    def array(self, name: str) -> np.memmap:
        """One of its files."""
        return self.manifest.array(self.folder, name)

    @cached_property
    def features(self) -> np.memmap:
        """float32 (nodes, columns), stored column by column (Fortran order)."""
        return self.array(FEATURES)

    @property
    def answers(self) -> dict[str, torch.Tensor]:
        """Labels, masks and groups, as a dataset has them."""
        names = {key: name for key, name in ANSWERS.items() if name in self.manifest.files}
        arrays = {key: self.array(name) for key, name in names.items()}
        return {key: torch.from_numpy(np.array(array)) for key, array in arrays.items()}

    @property
    def scaling(self) -> Scaling:
        """In which terms are stored, as far as rounding matters: that of ``scale="auto"``."""
        moments = self.about.scaling
        arrays = (moments.mean, moments.deviation)
        return Scaling(moments.kind, *(None if a is None else torch.from_numpy(a) for a in arrays))

    @property
    def encoding(self) -> Encoding | None:
        """How columns of a table became features; or None."""
        fields = self.about.encoding
        return None if fields is None else Encoding.from_dict(fields)

    @property
    def source(self) -> Source | None:
        """The files it was made of, with the options they were read with; None if unknown."""
        fields = self.about.source
        return Source.from_dict(fields) if "graph" in fields else None

    def ids(self, rows: int = 2**20) -> Iterator[pa.Array]:
        """The ids of the nodes in order, so many at a time: int64 or text."""
        with pq.ParquetFile(self.manifest.file(self.folder, IDS)) as file:
            yield from (batch.column("id") for batch in file.iter_batches(rows))

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.manifest.files[OFFSETS].shape[0] - 1

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
        return self.manifest.files[NEIGHBOURS].shape[0]

    @property
    def num_features(self) -> int:
        """The number of features per node."""
        return self.manifest.files[FEATURES].shape[1]


def write_nodes(
    folder: Path, ids: Sequence[Any] | pa.Array, answers: GraphTensors, degrees: np.ndarray
) -> None:
    """Ids (int64 where all are whole numbers, else text), labels and masks, and degrees."""
    column = ids if isinstance(ids, pa.Array) else pa.array(ids)
    numbers = whole_numbers(column) if isinstance(ids, pa.Array) else None
    with writing(folder / IDS):
        table = pa.table({"id": column if numbers is None else numbers})
        pq.write_table(table, folder / IDS, compression="zstd")
    arrays = {name: answers.get(key) for key, name in ANSWERS.items()}
    for name, array in {**arrays, DEGREES: degrees}.items():
        if array is not None:
            with writing(folder / name):
                np.save(folder / name, array)


def fit_scaling(kind: str, features: np.ndarray) -> Scaling:
    """The scaling of features, one column in memory at a time."""
    if kind == "none":
        return Scaling(kind)
    columns = (features[:, [j]] for j in range(features.shape[1]))
    fitted = [Scaling.fit(kind, torch.from_numpy(np.array(x, np.float32))) for x in columns]
    mean, deviation = ([getattr(each, key) for each in fitted] for key in ("mean", "deviation"))
    return Scaling(kind, torch.cat(mean), torch.cat(deviation))
