"""Files → a prepared graph: the steps in order, and what happens when one fails.

A folder is finished when it has a manifest, which is written last. Whatever was left by an
interrupted preparation is removed when the next one begins. Edges, columns and labels are read and
checked by the code that reads them into memory, a batch or a column at a time.
"""

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from longnn._base.files import writing
from longnn._base.memory import parse_size
from longnn.data import DataError, NodeDataset, Source
from longnn.data._arcs import isolated_note, linked_nodes
from longnn.data._assemble import degree_features, open_graph, refuse_feature_file
from longnn.data._edgetable import Batch, EdgeTable, Ids
from longnn.data._encoding import Encoding
from longnn.data._featurefile import joined_names, read_feature_file
from longnn.data._features import is_sparse
from longnn.data._files import GraphFiles
from longnn.data._nodetable import Nodes, read_features
from longnn.data._options import FileOptions, TableOptions
from longnn.data._relations import Relation, types_note
from longnn.data._targets import read_answers
from longnn.data._tensors import GraphTensors
from longnn.matrices import csr_to_scipy
from longnn.store._arrays import LOCK, NAME, ArrayWriter, StoreError, alone
from longnn.store._edges import Counts, EdgeList, write_neighbours
from longnn.store._graph import (
    FEATURES,
    FILES,
    SHARED,
    About,
    GraphStore,
    Moments,
    fit_scaling,
    write_nodes,
)

ROOM = ".preparing"
#: Share of the memory given that sorting may take.
SHARE = 0.4
#: Relative times of the steps, measured on a graph of 20 neighbours and 64 features per node.
STEPS = {
    "reading edges": 1.0,
    "numbering nodes": 1.0,
    "numbering edges": 3.0,
    "sorting edges": 6.0,
    "reading nodes": 4.0,
    "checking": 1.0,
}
#: Called with the name of the step and the share of the whole that is done.
OnProgress = Callable[[str, float], None]


def prepare(
    graph: str | Path,
    nodes: str | Path | None = None,
    *,
    output: str | Path,
    options: Mapping[str, Any] | None = None,
    memory: str | float = "4G",
    like: str | Path | Encoding | None = None,
    on_progress: OnProgress | None = None,
) -> GraphStore:
    """Write a graph of any size into a folder that training reads row by row.

    Args:
        graph: an edge file (Parquet, CSV, TSV, text, perhaps compressed, Arrow, Feather), a folder
            of its parts, or a folder with ``edges`` and ``nodes``, each a file or a folder of
            parts. Ids are text or numbers, with gaps or without. Named datasets, ``.npz``, ``.mtx``
            and ``.pt`` are read whole into memory first.
        nodes: the node file, or a folder of its parts.
        output: the folder to make. If it holds this graph, made of the same files with the same
            options, it is used as it is.
        options: of the loader, as of :func:`longnn.data.load_files`, but ``features=identity``.
        memory: for the whole program, such as ``"4G"``; what does not fit is spilled to disk.
        like: how a trained model reads columns (its ``encoding``), or a prepared graph that one was
            trained on: columns become the same features.
        on_progress: called with the name of a step and the share of the whole that is done.

    Raises:
        DataError: naming the file, the column and what is wrong.
        StoreError: for a folder that holds something else.
        OSError: for a full or read-only disk. MemoryError: for too little memory.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "edges.csv").write_text("source,target\\nann,bob\\nbob,eve\\n")
    >>> graph = prepare(folder / "edges.csv", output=folder / "prepared")
    >>> graph.arcs().offsets.tolist(), graph.arcs().indices.tolist()
    ([0, 1, 3, 4], [1, 0, 2, 1])
    """
    source = Source.resolve(graph, nodes, options=options)
    if isinstance(like, str | Path):
        model = GraphStore.open(like)
        source = source if model.source is None else source.like(model.source)
        like = model.encoding
    size, folder, files = parse_size(memory), Path(output), files_of(source)
    made = {**how_made(source, like), "files": [] if files is None else files.stamp()}
    finished = _finished(folder, made)
    if finished is not None:
        return finished
    with working(folder) as room:
        ingest = Ingest(folder, room, SHARE * size, like, on_progress)
        if files is None or not files.are_tables:
            about = ingest.dataset(source.load())
        else:
            try:
                about = ingest.tables(files)
            except DataError as error:  # of the whole graph, which is in no one place
                raise error.named(files.main.path) from error.__cause__
        return ingest.finish(about, made)


def how_made(source: Source, like: Encoding | None) -> dict[str, Any]:
    """What a folder is made of and how, but for the state of the files: plain data."""
    plain = {**source.to_dict(), "like": None if like is None else like.to_dict()}
    return json.loads(json.dumps(plain))  # tuples become lists, as in a manifest that was read


def files_of(source: Source) -> GraphFiles | None:
    """The files of the graph; None for a name."""
    if source.is_named:
        return None
    if (Path(source.graph) / NAME).is_file():
        raise StoreError(
            f"Expected files of edges and nodes (got {source.graph}, which is prepared already); "
            "train on it as it is"
        )
    nodes = None if source.nodes is None else Path(source.nodes)
    options = FileOptions.from_dict(source.options)
    if options.features == "identity":
        raise DataError(
            "Expected features of a prepared graph to be 'auto', 'columns' or 'degree' (got "
            "'identity', which is as wide as the graph has nodes); use features=degree, or give "
            "more memory with --memory."
        )
    return GraphFiles.find(Path(source.graph), nodes, options)


def _finished(folder: Path, made: Mapping[str, Any]) -> GraphStore | None:
    """The graph that a folder holds, if it was made in the same way of the same files."""
    if not (folder / NAME).exists():
        return None
    try:
        graph = GraphStore.open(folder)
    except StoreError:  # damaged, or of another version: it is made again
        return None
    return graph if graph.about.source == made and graph.manifest.is_whole(folder) else None


@contextmanager
def working(folder: Path) -> Iterator[Path]:
    """A folder to work in, within the output; nothing of it remains."""
    with alone(folder):
        for path in sorted(folder.iterdir()):
            if path.name in (ROOM, LOCK) or path.name.startswith("basis-"):
                continue
            if not FILES.fullmatch(path.name):
                raise StoreError(
                    f"Expected an empty folder, or one that was prepared, in {folder} "
                    f"(got {path.name!r}); choose another with --output"
                )
        room = folder / ROOM
        _remove(folder)
        with writing(room):
            room.mkdir()
        try:
            yield room
        except BaseException:
            _remove(folder)
            raise
        finally:
            shutil.rmtree(room, ignore_errors=True)


def _remove(folder: Path) -> None:
    """All that a preparation makes, the manifest first."""
    with writing(folder):
        (folder / NAME).unlink(missing_ok=True)
        for path in folder.iterdir():
            if FILES.fullmatch(path.name):
                path.unlink()
        if (folder / ROOM).exists():
            shutil.rmtree(folder / ROOM)


@dataclasses.dataclass
class Ingest:
    """A graph on its way into a folder.

    Args:
        folder, room: to write to, and to work in.
        memory: bytes that sorting may take.
        like: how columns become features, where a model says so.
        on_progress: called with the name of a step and the share of the whole that is done.
    """

    folder: Path
    room: Path
    memory: float
    like: Encoding | None
    on_progress: OnProgress | None

    def tell(self, step: str, share: float = 0.0) -> None:
        """So much of a step is done; those before it are."""
        if self.on_progress is not None:
            names, total = list(STEPS), sum(STEPS.values())
            before = sum(STEPS[name] for name in names[: names.index(step)])
            self.on_progress(step, (before + min(share, 1.0) * STEPS[step]) / total)

    def finish(self, about: About, made: Mapping[str, Any]) -> GraphStore:
        """Write the manifest: all arrays are there."""
        self.tell("checking")
        features = np.load(self.folder / FEATURES, mmap_mode="r")
        scaling = fit_scaling("none" if about.ready else "columns", features)
        moments = (None if m is None else m.numpy() for m in (scaling.mean, scaling.deviation))
        about = dataclasses.replace(about, scaling=Moments(scaling.kind, *moments), source=made)
        return GraphStore.finish(self.folder, about)

    def tables(self, files: GraphFiles) -> About:
        """Write what tables hold."""
        self.tell("reading edges")
        edges, table, options = files.open(self.room)
        self.tell("numbering nodes")
        listed, nodes = open_graph(edges, table, options)
        self.tell("numbering edges")
        types = listed.types()
        batches = self._numbered(listed, nodes, options, types, files.features)
        with EdgeList(self.room, nodes.count or 0) as numbered:
            for batch in batches:
                numbered.append(*batch)
            nodes.notes += [] if options.isolated == "drop" else listed.notes
            counts, occurring, told = self._write_edges(types, numbered, options)
        self.tell("reading nodes")
        given = GraphTensors(y=nodes.y, **nodes.beside)
        answers = read_answers(given, options.task or nodes.task, nodes.classes, nodes.count or 0)
        tensors = GraphTensors(y=answers.y, **answers.beside)
        write_nodes(self.folder, nodes.known_ids, tensors, counts.degrees[0])
        self._write_features(nodes, options, counts, files.features)
        tally, weighted = counts.tally, numbered.weighted
        done: Any = {"directed": counts.directed, "weighted": weighted}
        notes = (
            *files.notes,
            *nodes.notes,
            *tally.notes(options.directed, self_loops=options.self_loops, **done),
            *told,
            *isolated_note(counts.isolated),
            *answers.notes,
            *answers.mask_notes,
        )
        return About(
            name=files.name,
            edges=tally.arcs if counts.directed else tally.edges,
            task=answers.task,
            classes=answers.classes,
            targets=tuple(nodes.targets),
            feature_names=nodes.feature_names,
            open_features=nodes.open_features,
            default_split=nodes.default_split or answers.default_split,
            one_way=tally.one_way,
            directed=counts.directed,
            types=tuple(occurring),
            encoding=None if nodes.encoding is None else nodes.encoding.to_dict(),
            notes=notes,
        )

    def _numbered(
        self,
        listed: EdgeTable,
        nodes: Nodes,
        options: TableOptions,
        types: Sequence[str],
        features: Path | None,
    ) -> Iterator[Batch]:
        """The edges; where nodes without one are left out, they are read once more before."""
        ids = Ids(nodes.known_ids)
        read = partial(
            listed.numbered,
            ids,
            source=nodes.source,
            types=types,
            on_share=partial(self.tell, "numbering edges"),
        )
        if options.isolated == "keep":
            return read()
        refuse_feature_file(features)
        ends = (batch[:3] for batch in read())
        linked = linked_nodes(ends, len(ids), self_loops=options.self_loops)
        nodes.notes += listed.notes
        number = nodes.keep(linked)
        return (batch.renumbered(number) for batch in read())

    def _write_edges(
        self, names: Sequence[str], numbered: EdgeList, options: TableOptions
    ) -> tuple[Counts, Sequence[str], list[str]]:
        """The neighbours of each node by all edges and by each type; names of types, and a note."""
        write = partial(write_neighbours, numbered, self.folder, memory=self.memory)
        counts = write(
            directed=options.directed,
            self_loops=options.self_loops,
            on_share=partial(self.tell, "sorting edges"),
        )
        occurring = [k for k, count in sorted(numbered.listed.items()) if count]
        notes = [types_note([(names[k], numbered.listed[k]) for k in occurring])] if names else []
        if len(occurring) < 2:
            return counts, (), notes
        kept: Any = {"directed": counts.directed, "self_loops": options.self_loops}
        for number, kind in enumerate(occurring):
            write(kind=kind, number=number, **kept)
        return counts, [names[k] for k in occurring], notes

    def _write_features(
        self, nodes: Nodes, options: TableOptions, counts: Counts, path: Path | None
    ) -> None:
        """The features of columns, behind them those of a file; of degrees where there are none."""
        more = None if path is None else read_feature_file(nodes, path)
        with ArrayWriter(self.folder / FEATURES, np.float32) as writer:
            write, table = partial(_write_columns, writer, len(counts.degrees[0])), nodes.table
            if self.like is None:
                read_features(nodes, options, join=write)
            elif self.like.columns:
                if table is None:
                    raise DataError(
                        "Expected a node file with the features of training (got none)."
                    )
                write(block for _, block in self.like.blocks(table))
                nodes.encoding, nodes.feature_names = self.like, self.like.feature_names
            nodes.notes += [] if table is None else table.reading_notes
            if more is not None and path is not None:
                x, names = more
                widths = (len(nodes.feature_names), x.shape[1])
                nodes.feature_names = joined_names(nodes, names, widths, path)
                write([csr_to_scipy(x) if is_sparse(x) else x.numpy()])
            if not writer.size:
                ends = counts.degrees[1:] if counts.directed else counts.degrees[:1]
                degrees = [torch.from_numpy(degree) for degree in ends]
                write([degree_features(nodes, degrees, options.features).numpy()])
            writer.shape = (len(counts.degrees[0]), writer.size // len(counts.degrees[0]))

    def dataset(self, dataset: NodeDataset) -> About:
        """Write a dataset in memory: named ones, and files of arrays."""
        if self.like is not None and dataset.columns is not None:
            dataset = dataset.encoded(self.like)
        data, nodes = dataset.data, dataset.num_nodes
        every = Relation("", data.edge_index, data.get("edge_weight"))
        for number, edges in zip((None, *range(64)), (every, *dataset.relations), strict=False):
            with EdgeList(self.room, nodes) as listed:
                source, target = edges.edge_index.numpy()
                weight = edges.edge_weight
                listed.append(source, target, None if weight is None else weight.numpy())
                kept: Any = {"directed": dataset.directed, "self_loops": True, "number": number}
                write_neighbours(listed, self.folder, memory=self.memory, **kept)
        write_nodes(self.folder, dataset.ids, data, dataset.degrees.numpy())
        with ArrayWriter(self.folder / FEATURES, np.float32) as writer:
            x = csr_to_scipy(data.x) if is_sparse(data.x) else data.x.numpy()
            _write_columns(writer, nodes, [x])
            writer.shape = tuple(data.x.shape)
        return About(
            edges=dataset.num_edges,
            types=tuple(edges.name for edges in dataset.relations),
            encoding=None if dataset.encoding is None else dataset.encoding.to_dict(),
            notes=dataset.notes,
            **{name: getattr(dataset, name) for name in SHARED},
        )


def _write_columns(writer: ArrayWriter, nodes: int, blocks: Iterable[Any]) -> None:
    """Write the columns of blocks of features, which may be sparse, side by side."""
    for block in blocks:
        by_column: Any = block if isinstance(block, np.ndarray) else block.tocsc()
        for j in range(block.shape[1]):
            column = by_column[:, [j]]
            column = column if isinstance(column, np.ndarray) else column.toarray()
            if not np.isfinite(column).all():
                raise DataError(
                    f"Expected finite features (got {column[~np.isfinite(column)][0]} in feature "
                    f"{writer.size // nodes})."
                )
            writer.append(column)
