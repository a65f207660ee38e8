"""A graph on disk as the backing of a dataset; and the one decision for memory or disk.

Labels and masks of all nodes are in memory, a few bytes each; features and edges are not. Models
see rows of the terms that are precomputed from them. Files that memory does not hold are prepared
in a cache, keyed by the files, the options and the encoding. A folder there is made again where the
files have changed or it was deleted: that costs time, and nothing else.
"""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import scipy.sparse as sp
import torch
from torch import Tensor

from longnn._base.memory import LEAST, in_words, usable_memory
from longnn.data import DataError, NodeDataset, Source
from longnn.data._backing import NONZERO, WORDS, Backing, entries_of
from longnn.data._encoding import Encoding
from longnn.data._rawfiles import cache_root
from longnn.data._relations import Relation, match_types
from longnn.data._scaling import Scaling
from longnn.data._tensors import GraphTensors
from longnn.graphs._adjacency import SelfLoops
from longnn.matrices import take_columns
from longnn.nn._terms import OnRows
from longnn.store._adjacency import StoredOperator
from longnn.store._arrays import NAME, VERSION, StoreError, require_disk
from longnn.store._graph import DEGREES, IDS, SHARED, GraphStore, Neighbours, fit_scaling
from longnn.store._prepare import files_of, how_made, prepare
from longnn.store._propagate import ensure_basis
from longnn.store._ranks import Ranks
from longnn.store._rows import StoredTerms

#: Bytes per value of the features, per entry of the graph, and per node: features and their scaled
#: copy, arrays while an operator is made, and a few signals of 64 hidden units.
VALUE_BYTES, ENTRY_BYTES, NODE_BYTES = 12, 64, 3_000
#: Of errors of the disk.
REMEDY = "choose another folder with --cache or LONGNN_CACHE"
#: The first letters of the fingerprint of a dataset on disk.
ON_DISK = "disk:"
#: Stored entries up to which the spectrum is estimated: fifty products, a minute there.
DENSITY_ENTRIES = 50_000_000
#: Arcs, or numbers of features, that a card is made of in memory.
FEW = 10_000_000
#: Nodes whose features say whether they are words.
SAMPLE = 1 << 12


class Answers(GraphTensors):
    """Labels and masks of nodes whose features and edges are on disk.

    Whoever asks for these is told so, here and nowhere else.
    """

    def __getattr__(self, name: str) -> Any:
        if name in ("x", "edge_index"):
            what = "features" if name == "x" else "edges"
            raise DataError(
                f"Expected a graph in memory for its {what} (got one on disk); give more with "
                "--memory"
            )
        return super().__getattr__(name)


class Ids(Sequence[Any]):
    """The ids of some nodes of a graph on disk, read when one is asked for."""

    def __init__(self, graph: GraphStore, nodes: np.ndarray | None = None) -> None:
        self._graph, self._nodes = graph, nodes

    @functools.cached_property
    def array(self) -> pyarrow.ChunkedArray:
        """All of them, as Arrow has them."""
        every = pyarrow.chunked_array(list(self._graph.ids()))
        return every if self._nodes is None else every.take(self._nodes)

    def __len__(self) -> int:
        return self._graph.num_nodes if self._nodes is None else len(self._nodes)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return self.array[place].to_pylist()
        return self.array[place].as_py()

    def __iter__(self) -> Iterator[Any]:
        for chunk in self.array.chunks:
            yield from chunk.to_pylist()


@dataclasses.dataclass(frozen=True, eq=False)
class OnDisk(Backing):
    """A graph in a folder; what a model needs of it are rows of precomputed terms.

    Args:
        graph: the folder.
        nodes: int64 (count,), ascending, the nodes that are asked about; None for all.
        columns: int64 (features,), which features in which order, -1 for zeros; None for all.
        kinds: the names of the types of edges in another order; None as they are.
    """

    graph: GraphStore
    nodes: np.ndarray | None = None
    columns: np.ndarray | None = None
    kinds: tuple[str, ...] | None = None

    by_rows = True

    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes if self.nodes is None else len(self.nodes)

    @property
    def num_features(self) -> int:
        return self.graph.num_features if self.columns is None else len(self.columns)

    @property
    def num_edges(self) -> int:
        return self.graph.about.edges

    def degrees(self) -> Tensor:
        return torch.from_numpy(self.graph.array(DEGREES)[self.places()])

    @property
    def weighted(self) -> bool:
        return self.graph.weighted

    def places(self) -> np.ndarray:
        return np.arange(self.graph.num_nodes) if self.nodes is None else self.nodes

    def arcs(self) -> Tensor | None:
        if self.graph.num_entries > FEW:
            return None
        return _edges(self.graph.arcs())[0]

    def features(self) -> Tensor | None:
        if self.graph.num_nodes * self.graph.num_features > FEW:
            return None
        return torch.from_numpy(np.array(self.graph.features, dtype=np.float32, order="C"))

    def each_feature(self) -> Iterator[np.ndarray]:
        columns = np.arange(self.num_features) if self.columns is None else self.columns
        for column in () if self.has_words() else columns:
            values = self.graph.features[:, column][self.places()]
            yield values if column >= 0 else np.zeros_like(values)

    def fingerprint(self) -> str:
        """Of the checksums of its files but the ids, the same wherever the folder is."""
        digest = hashlib.sha256()
        for name, entry in sorted(self.graph.manifest.files.items()):
            if name != IDS:
                line = f"{name} {entry.shape} {entry.dtype} {entry.checksum}\n"
                digest.update(line.encode())
        return ON_DISK + digest.hexdigest()

    def scaling(self, kind: str, *, ready: bool) -> Scaling:
        if kind == "auto":
            kind = "none" if ready else "columns"
        done = self.graph.scaling
        Scaling(kind).after(done)  # an error for the scaling of rows: the terms are of columns
        return done if kind == done.kind else fit_scaling(kind, self.graph.features)

    def has_words(self) -> bool:
        if self.num_features <= WORDS:
            return False
        nodes = np.arange(0, self.graph.num_nodes, -(-self.graph.num_nodes // SAMPLE))
        return float((self.graph.features[nodes] != 0).mean()) <= NONZERO

    def take_features(self, dataset: NodeDataset, places: Sequence[int]) -> NodeDataset:
        disk = dataclasses.replace(self, columns=np.asarray(places, dtype=np.int64))
        return dataclasses.replace(dataset, disk=disk, feature_names=())

    def types(self) -> dict[str, int]:
        types = self.graph.about.types
        names = types if self.kinds is None else self.kinds
        counts = {n: len(self.graph.arcs(k).indices) for k, n in enumerate(types)}
        return {name: counts.get(name, 0) for name in names}

    def take_types(self, dataset: NodeDataset, names: Sequence[str]) -> NodeDataset:
        if names:
            match_types(self.graph.about.types, names)
        return dataclasses.replace(dataset, disk=dataclasses.replace(self, kinds=tuple(names)))

    def asked(self, dataset: NodeDataset) -> NodeDataset:
        if self.nodes is not None:
            return dataset
        nodes = np.flatnonzero(dataset.labelled.numpy())
        if len(nodes) == 0:
            raise DataError("Expected a graph with labelled nodes to train on (got none)")
        disk = dataclasses.replace(self, nodes=nodes)
        data = Answers(**{key: value[nodes] for key, value in dataset.data.items()})
        return dataclasses.replace(dataset, data=data, disk=disk, ids=Ids(self.graph, nodes))

    def inputs(
        self,
        scaling: Scaling,
        degrees: Mapping[SelfLoops, int],
        *,
        dtype: torch.dtype,
        device: torch.device,
        memory: int | None,
        ranks: Ranks | None,
    ) -> tuple[StoredTerms, dict[SelfLoops, OnRows]]:
        graph, nodes = self.graph, self.places()
        if len(degrees) > 1:  # one without a filter reads any of them
            degrees = {loops: k for loops, k in degrees.items() if k} or {"keep": 0}
        left = scaling.after(self._stored_scaling)

        def terms(number: int | None = None) -> StoredTerms:
            how: Any = {"edge_type": number, "memory": memory, "ranks": ranks}
            stores = {
                loops: ensure_basis(graph, nodes, degree=k, self_loops=loops, **how)
                for loops, k in degrees.items()
            }
            places = {
                loops: store.places(graph.rows_of(nodes)).reshape(graph.copies, -1)
                for loops, store in stores.items()
            }
            return StoredTerms(
                stores=stores,
                places=places,
                scaling=left,
                degree=max(degrees.values()),
                device=device,
                dtype=dtype,
                neighbours=np.diff(graph.arcs().offsets)[nodes],
                columns=self.columns,
            )

        names = tuple(self.types())
        numbers = match_types(graph.about.types, names) if names else []
        each = tuple(None if number < 0 else terms(number) for number in numbers)
        every = dataclasses.replace(terms(), types=each)
        made = {loops: OnRows(loops, len(nodes), device, dtype, names) for loops in degrees}
        first = next(iter(made.values()))
        treatments: tuple[SelfLoops, ...] = ("keep", "add", "remove")
        return every, {loops: made.get(loops, first) for loops in treatments}

    @property
    def _stored_scaling(self) -> Scaling:
        """In which the columns of the terms are stored."""
        done = self.graph.scaling
        if self.columns is None or done.mean is None or done.deviation is None:
            return done
        mean, deviation = done.mean[self.columns], done.deviation[self.columns]
        absent = torch.from_numpy(self.columns < 0)
        return Scaling(done.kind, mean.masked_fill(absent, 0), deviation.masked_fill(absent, 1))

    def operator(self) -> StoredOperator | None:
        return None if self.graph.num_entries > DENSITY_ENTRIES else StoredOperator(self.graph)

    def around(self, nodes: np.ndarray) -> np.ndarray:
        every = [self.graph.arcs(back=back) for back in {False, self.graph.directed}]
        found = [arcs.indices[entries_of(arcs.offsets, nodes)] for arcs in every]
        return np.concatenate(found).astype(np.int64)

    def neighbourhood(
        self, dataset: NodeDataset, places: np.ndarray, hops: int | None
    ) -> tuple[NodeDataset, np.ndarray]:
        """One step more than the degree, so that all degrees that count are those of the graph."""
        graph, inside = self.graph, np.zeros(self.graph.num_nodes, dtype=bool)
        inside[places if hops is not None else slice(None)] = True
        front = np.flatnonzero(inside)
        for _ in range(0 if hops is None else hops + 1):
            front = np.unique(self.around(front))
            front = front[~inside[front]]
            inside[front] = True
            if not len(front):
                break
        where = np.flatnonzero(inside)
        entries = int(np.diff(graph.arcs().offsets)[where].sum())
        needed = bytes_needed(nodes=len(where), features=self.num_features, entries=entries)
        if needed > usable_memory():
            raise DataError(
                f"Expected a neighbourhood that fits into memory (got {len(where):,} of "
                f"{graph.num_nodes:,} nodes, which take {in_words(needed)}); use a machine with "
                "more memory, or a model of a lower degree"
            )
        return _in_memory(dataset, self, where), where


def is_prepared(path: str | Path) -> bool:
    """Whether a path is a folder that ``longnn prepare`` wrote."""
    return (Path(path) / NAME).is_file()


def bytes_needed(*, nodes: int, features: int, entries: int) -> int:
    """Bytes that training on a whole graph in memory takes, roughly; an edge has two entries."""
    return VALUE_BYTES * nodes * features + ENTRY_BYTES * entries + NODE_BYTES * nodes


def load_stored(
    folder: str | Path, *, rows: bool | None = None, memory: int | None = None
) -> NodeDataset:
    """The graph of a prepared folder, in memory where it fits and else by its labelled rows.

    Args:
        folder: of ``longnn prepare``.
        rows: True for the rows, False for the whole graph; None chooses by size.
        memory: bytes that training may use, see :func:`usable_memory`.

    Raises:
        StoreError: where the folder is not what its manifest says.
    """
    graph = GraphStore.open(folder)
    about, read = graph.about, graph.source
    # Its options are those that another graph is read with, too.
    options = {} if read is None or read.is_named else read.options
    entries = graph.copies * graph.num_entries
    size = {"nodes": graph.num_nodes, "features": graph.num_features, "entries": entries}
    fits = bytes_needed(**size) <= usable_memory(memory)
    rows = not fits if rows is None else rows
    note = f"{graph.num_nodes:,} nodes and {about.edges:,} edges take about "
    note += f"{in_words(bytes_needed(**size))} of memory"
    if rows:
        note += "" if fits else ", more than it may take"
        note += ": read from disk, in batches."
    else:
        note += ": read into memory as a whole."
    dataset = NodeDataset(
        data=Answers(graph.answers),
        ids=Ids(graph),
        notes=(*about.notes, note),
        source=Source.resolve(Path(folder), options=options),
        encoding=graph.encoding,
        disk=OnDisk(graph),
        **{name: getattr(about, name) for name in SHARED},
    )
    return dataset if rows else _in_memory(dataset, OnDisk(graph), np.arange(graph.num_nodes))


def _in_memory(dataset: NodeDataset, disk: OnDisk, where: np.ndarray) -> NodeDataset:
    """The graph of some of its nodes, int64 (count,), ascending, and the edges between them."""
    graph, every = disk.graph, len(where) == disk.graph.num_nodes

    between = None if every else where
    index, weight = _edges(graph.arcs(), between)
    x = torch.from_numpy(np.array(graph.features[where], dtype=np.float32, order="C"))
    x = x if disk.columns is None else take_columns(x, disk.columns.tolist())
    labels = {key: value[where] for key, value in dataset.data.items()}
    data = GraphTensors(x=x, edge_index=index, **labels)
    if weight is not None:
        data.edge_weight = weight
    made = dataclasses.replace(
        dataset,
        data=data,
        ids=Ids(graph, None if every else where)[:],
        relations=tuple(
            Relation(name, *_edges(graph.arcs(k), between))
            for k, name in enumerate(graph.about.types)
        ),
        disk=None,
    )
    return made if disk.kinds is None else made.backing.take_types(made, disk.kinds)


def _edges(arcs: Neighbours, where: np.ndarray | None = None) -> tuple[Tensor, Tensor | None]:
    """Arcs (2, entries) and their weights, as a dataset has them; or those between some nodes,
    which are numbered by their places."""
    nodes, plain = len(arcs.offsets) - 1, arcs.weights is None
    values = np.ones(len(arcs.indices), dtype=np.int8) if plain else arcs.weights
    matrix = sp.csr_array((values, arcs.indices, arcs.offsets), shape=(nodes, nodes))
    matrix = matrix if where is None else matrix[where][:, where]
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    index = torch.from_numpy(np.stack([row, matrix.indices.astype(np.int64)]))
    return index, None if plain else torch.from_numpy(np.array(matrix.data))


def load_source(
    source: Source,
    data_dir: str | Path | None = None,
    *,
    rows: bool | None = None,
    memory: int | None = None,
    cache: str | Path | None = None,
    like: Encoding | None = None,
    ranks: Ranks | None = None,
    on_note: Callable[[str], None] | None = None,
) -> NodeDataset:
    """What a source names, in memory where it fits and else on disk.

    Named datasets are always in memory, and so are files that a prepared folder cannot hold. Other
    files are prepared in the cache where memory does not hold them.

    Args:
        source: the graph; it is ``dataset.source``, whatever was prepared of it.
        data_dir: where the files of named datasets are.
        rows: True for a graph on disk, False for one in memory; None chooses by size.
        memory: bytes that may be used; by default half of what is free.
        cache: where files are prepared; by default see :func:`~longnn.data.cache_root`.
        like: the encoding of a trained model: columns become the features that it has.
        ranks: those that train together, on rows: for several, files are prepared in any case.
        on_note: called with one line before files are prepared.

    Raises:
        DataError: naming what is wrong with the data, with a prepared folder, or that there is too
            little room on the disk.
    """
    ranks = Ranks() if ranks is None else ranks
    rows = True if ranks.count > 1 else rows
    if source.kind == "files" and is_prepared(source.graph):
        dataset = load_stored(source.graph, rows=rows, memory=memory)
        made = {} if dataset.source is None else dataset.source.options
        for key, value in source.options.items():
            if made.get(key) != value:  # it was read already: other options come too late
                raise StoreError(
                    f"Expected a prepared folder as it was read (got {key}={value!r}, and "
                    f"{source.graph} has {made.get(key)!r}); prepare the files again with --data"
                )
        return dataset
    size = None if source.is_named or rows is False else size_of_files(source)
    needed = 0 if size is None else bytes_needed(**size)
    if source.is_named or not (rows or needed > usable_memory(memory)):
        return source.load(data_dir)
    folder = ""
    if ranks.first:
        place = cached_place(source, cache, like)
        if on_note is not None:
            words = f", which take about {in_words(needed)} of memory," if size else ""
            on_note(f"the files of {source.name}{words} are prepared once, in {place}")
        if size is not None and not (place.exists() and any(place.iterdir())):
            arrays = 4 * size["nodes"] * size["features"] + 4 * size["entries"] + 16 * size["nodes"]
            require_disk(place, 2 * arrays, REMEDY)  # as much again for the work
        try:
            graph = prepare(
                Path(source.graph),
                source.nodes,
                output=place,
                options=source.options,
                memory=max(LEAST, usable_memory(memory)),
                like=like,
            )
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror or error}; {REMEDY}") from error
        folder = str(graph.folder)
    return load_stored(ranks.agree(folder), rows=True, memory=memory).with_source(source)


def size_of_files(source: Source) -> dict[str, int] | None:
    """Nodes, features and entries, roughly: of text, by the length of its first lines. None where a
    prepared folder cannot hold them, or they cannot be read: whoever reads them says why.
    """
    try:
        files = files_of(source)
        if files is None or not files.are_tables:
            return None
        edges = files.edges.size()[0]
        rows, columns = (0, 0) if files.nodes is None else files.nodes.size()
    except (DataError, OSError):
        return None
    return {"nodes": rows, "features": max(columns - 1, 0), "entries": 2 * edges}


def cached_place(
    source: Source, cache: str | Path | None = None, like: Encoding | None = None
) -> Path:
    """The folder in the cache for files that are read in one way, and written in one form."""
    text = json.dumps([VERSION, how_made(source, like)], sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:12]
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in source.name)
    return cache_root(cache) / "graphs" / f"{name}-{key}"
