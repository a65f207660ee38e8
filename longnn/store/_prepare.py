"""Files → a prepared graph: the steps in order, and what happens when one fails.

A folder is finished when it has a manifest, which is written last. Whatever was left by an
interrupted preparation is removed when the next one begins.
"""

import itertools
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
import torch

from longnn._base.files import try_lock, writing
from longnn._base.memory import parse_size
from longnn.data import DataError, NodeDataset, Source
from longnn.data._arcs import isolated_note, linked_nodes
from longnn.data._assemble import degree_note, no_features, open_graph, refuse_feature_file
from longnn.data._edgetable import Batch, EdgeTable, Ids, whole_numbers
from longnn.data._encoding import Encoding
from longnn.data._featurefile import joined_names, read_feature_file
from longnn.data._features import DEGREES, is_sparse
from longnn.data._files import GraphFiles
from longnn.data._hints import Hints
from longnn.data._nodetable import Nodes
from longnn.data._options import FileOptions, TableOptions
from longnn.data._relations import Relation, types_note
from longnn.data._scaling import Scaling
from longnn.data._targets import Answers
from longnn.matrices import csr_to_scipy
from longnn.store._arrays import NAME, ArrayWriter, StoreError
from longnn.store._edges import Counts, EdgeList, write_neighbours
from longnn.store._features import FeatureFile, answers_of, write_answers, write_features
from longnn.store._graph import FEATURES, IDS, MASKS, GraphStore, arc_files, finish_graph

#: What a preparation writes beside the manifest.
FILES = re.compile(
    r"(type\d+_)?(back_)?(offsets|neighbours|weights)\.npy|(features|labels|roles)\.npy|ids\.parquet"
)
ROOM = ".preparing"
LOCK = ".lock"
#: Share of the memory given that sorting may take.
SHARE = 0.4
#: Relative times of the steps, measured on a graph of 20 neighbours and 64 features per node.
LENGTHS = {
    "reading edges": 1.0,
    "numbering nodes": 1.0,
    "numbering edges": 3.0,
    "sorting edges": 6.0,
    "reading nodes": 4.0,
    "checking": 1.0,
}
#: Called with the name of the step and the share of the whole that is done.
OnProgress = Callable[[str, float], None]


class Steps:
    """Steps of known relative lengths, one after the other.

    Args:
        lengths: by the name of the step, in order; any unit.
        on_progress: called with the name of a step and the share of the whole that is done.

    >>> steps = Steps({"read": 3, "sort": 1}, lambda name, share: print(name, share))
    >>> steps.begin("sort")
    sort 0.75
    >>> steps.at(0.5)
    sort 0.875
    """

    def __init__(self, lengths: Mapping[str, float], on_progress: OnProgress | None) -> None:
        self._lengths, self._call = dict(lengths), on_progress
        self._name, self._before = "", 0.0

    def begin(self, name: str) -> None:
        """Go on to a step; those before it are done."""
        names = list(self._lengths)
        self._name = name
        self._before = sum(self._lengths[earlier] for earlier in names[: names.index(name)])
        self.at(0.0)

    def at(self, share: float) -> None:
        """So much of this step is done."""
        if self._call is not None:
            done = self._before + min(max(share, 0.0), 1.0) * self._lengths[self._name]
            self._call(self._name, done / sum(self._lengths.values()))


class Form(Protocol):
    """What a model takes: a trained model has it, and a prepared graph, too."""

    @property
    def encoding(self) -> Encoding | None:
        """How columns become features, or None for other features."""

    @property
    def feature_names(self) -> Sequence[str]:
        """One per feature, or none."""

    @property
    def classes(self) -> Sequence[str]:
        """Names of the classes in the order of the labels."""


def prepare(
    graph: str | Path,
    nodes: str | Path | None = None,
    *,
    output: str | Path,
    options: Mapping[str, Any] | None = None,
    memory: str | float = "4G",
    like: str | Path | Form | None = None,
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
        like: a trained model, or a prepared graph that one was trained on: columns are encoded, and
            the classes numbered, as there.
        on_progress: called with the name of a step and the share of the whole that is done.

    Raises:
        DataError: naming the file, the column and what is wrong.
        StoreError: for a folder that holds something else.
        OSError: for a full or read-only disk. MemoryError: for too little memory.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "edges.csv").write_text("source,target\\nann,bob\\nbob,eve\\n")
    >>> graph = prepare(folder / "edges.csv", output=folder / "prepared")
    >>> graph.offsets.tolist(), graph.neighbours.tolist()
    ([0, 1, 3, 4], [1, 0, 2, 1])
    """
    given = Source.resolve(graph, nodes, options=options)
    model: Form | None = GraphStore.open(like) if isinstance(like, str | Path) else like
    if isinstance(model, GraphStore) and model.source is not None:
        given = given.like(model.source)
    size = parse_size(memory)
    files = files_of(given)
    source = {
        **how_made(given, like=model),
        "files": [] if files is None else files.stamp(),
    }
    folder = Path(output)
    found = reusable(folder, source)
    if found is not None:
        return found
    with working(folder) as room:
        if files is None or not files.are_tables:
            _write_dataset(given.load(), folder, source, model)
        else:
            steps = Steps(LENGTHS, on_progress)
            try:
                _Ingest(files, folder, room, source, model, size, steps).run()
            except DataError as error:  # of the whole graph, which is in no one place
                raise error.named(files.main.path) from error.__cause__
    return GraphStore.open(folder)


def how_made(given: Source, *, like: Form | None = None) -> dict[str, Any]:
    """What a folder is made of and how, but for the state of the files: plain data."""
    form = None
    if like is not None:
        form = {
            "encoding": None if like.encoding is None else like.encoding.to_dict(),
            "feature_names": list(like.feature_names),
            "classes": list(like.classes),
        }
    plain = {**given.to_dict(), "like": form}
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


def reusable(folder: Path, source: Mapping[str, Any]) -> GraphStore | None:
    """The graph that a folder holds, if it was made in the same way of the same files."""
    if not (folder / NAME).exists():
        return None
    try:
        found = GraphStore.open(folder)
        for name in found.manifest.files:
            found.manifest.array(folder, name)
    except StoreError:  # damaged, or of another version: it is made again
        return None
    return found if found.about.get("source") == source else None


def foreign_name(folder: Path) -> str:
    """The name of something in a folder that no preparation has made; empty where there is none."""
    names = sorted(path.name for path in folder.iterdir() if not _is_made(path.name))
    return next((n for n in names if n not in (ROOM, LOCK) and not n.startswith("basis-")), "")


def _is_made(name: str) -> bool:
    """Whether a preparation writes a file of that name."""
    return name == NAME or FILES.fullmatch(name) is not None


@contextmanager
def working(folder: Path) -> Iterator[Path]:
    """A folder to work in, within the output; nothing of it remains."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        strange = foreign_name(folder)
        if strange:
            raise StoreError(
                f"Expected an empty folder, or one that was prepared, in {folder} "
                f"(got {strange!r}); choose another with --output"
            )
        lock = (folder / LOCK).open("wb")
    with lock:
        if not try_lock(lock):
            raise StoreError(f"Expected to be alone in {folder} (another prepare is at work there)")
        room = folder / ROOM
        _remove(folder, room)
        with writing(room):
            room.mkdir()
        try:
            yield room
        except BaseException:
            _remove(folder, room)
            raise
        finally:
            shutil.rmtree(room, ignore_errors=True)
            (folder / LOCK).unlink(missing_ok=True)


def _remove(folder: Path, room: Path) -> None:
    """All that a preparation makes, the manifest first."""
    with writing(folder):
        made = [path.name for path in folder.iterdir() if _is_made(path.name)]
        for name in sorted(made, key=lambda name: name != NAME):
            (folder / name).unlink(missing_ok=True)
        if room.exists():
            shutil.rmtree(room)


class _Ingest:
    """Tables on their way into a folder."""

    def __init__(
        self,
        files: GraphFiles,
        folder: Path,
        room: Path,
        source: Mapping[str, Any],
        model: Form | None,
        memory: int,
        steps: "Steps",
    ) -> None:
        self.files, self.folder, self.room = files, folder, room
        self.source, self.model, self.memory = source, model, memory
        self.steps = steps

    def run(self) -> None:
        """Write all arrays, then the manifest."""
        self.steps.begin("reading edges")
        edges, table, options = self.files.open(self.room)
        self.steps.begin("numbering nodes")
        listed, nodes = open_graph(edges, table, options)
        self.steps.begin("numbering edges")
        types = listed.types()
        batches = self._numbered(listed, nodes, options, types)
        with EdgeList(self.room, nodes.count or 0) as numbered:
            for batch in batches:
                numbered.append(*batch)
            nodes.notes += [] if options.isolated == "drop" else listed.notes
            counts, occurring, told = self._write_edges(types, numbered, options)
        write_ids(nodes.known_ids, self.folder / IDS)
        self.steps.begin("reading nodes")
        classes = () if self.model is None else self.model.classes
        answers, targets = answers_of(nodes, options.task, classes)
        encoding, scaling, names = self._write_features(nodes, options, counts)
        tally, loops = counts.tally, options.self_loops
        notes = [
            *self.files.notes,
            *nodes.notes,
            *tally.notes(
                options.directed,
                directed=counts.directed,
                weighted=numbered.weighted,
                self_loops=loops,
            ),
            *told,
            *isolated_note(counts.isolated),
            *answers.notes,
            *answers.mask_notes,
        ]
        self.steps.begin("checking")
        finish_graph(
            self.folder,
            self.files.name,
            answers=answers,
            targets=targets,
            default_split="own" if answers.masks else "stratified",
            files=write_answers(answers, self.folder),
            feature_names=names,
            encoding=encoding,
            scaling=scaling,
            ready=False,
            edges=tally.arcs if counts.directed else tally.edges,
            degree=counts.degrees[0],
            one_way=tally.one_way,
            self_loops=loops,
            notes=notes,
            source=self.source,
            open_features=nodes.open_features,
            weighted=numbered.weighted,
            directed=counts.directed,
            types=occurring,
        )

    def _numbered(
        self, listed: EdgeTable, nodes: Nodes, options: TableOptions, types: Sequence[str]
    ) -> Iterator[Batch]:
        """The edges; where nodes without one are left out, they are read once more before."""
        ids = Ids(nodes.known_ids)

        def read() -> Iterator[Batch]:
            return listed.numbered(
                ids,
                source=nodes.source,
                unknown_ids=options.unknown_ids,
                types=types,
                on_share=self.steps.at,
            )

        if options.isolated == "keep":
            return read()
        refuse_feature_file(self.files.features)
        ends = (batch[:3] for batch in read())
        linked = linked_nodes(ends, len(ids), self_loops=options.self_loops)
        nodes.notes += listed.notes
        number = nodes.keep(linked)
        return (batch.renumbered(number) for batch in read())

    def _write_edges(
        self, names: Sequence[str], numbered: EdgeList, options: TableOptions
    ) -> tuple[Counts, Sequence[str], list[str]]:
        """The neighbours of each node by all edges and by each type; names of types, and a note."""
        self.steps.begin("sorting edges")
        how: dict[str, Any] = {"memory": SHARE * self.memory, "self_loops": options.self_loops}
        counts = write_neighbours(
            numbered, self.folder, directed=options.directed, on_share=self.steps.at, **how
        )
        occurring = [k for k, count in sorted(numbered.listed.items()) if count]
        notes = [types_note([(names[k], numbered.listed[k]) for k in occurring])] if names else []
        if len(occurring) < 2:
            return counts, (), notes
        for number, kind in enumerate(occurring):
            write_neighbours(
                numbered, self.folder, directed=counts.directed, kind=kind, number=number, **how
            )
        return counts, [names[k] for k in occurring], notes

    def _write_features(
        self, nodes: Nodes, options: TableOptions, counts: Counts
    ) -> tuple[Encoding | None, Scaling, Sequence[str]]:
        """How columns became features, how these were scaled, and their names."""
        model, table, degrees = self.model, nodes.table, counts.degrees
        file = FeatureFile(self.folder / FEATURES, len(degrees[0]))
        encoding, fitted = None, None
        more, more_names = self._feature_file(nodes)
        if model is not None and not set(model.feature_names) <= set(DEGREES):
            own = Encoding.plain(model.feature_names[: len(model.feature_names) - len(more_names)])
            encoding = model.encoding or own
            if table is None and encoding.columns:
                raise DataError("Expected a node file with the features of training (got none).")
            blocks = () if table is None else (block for _, block in encoding.blocks(table))
            more = _aligned(more, more_names, model.feature_names[len(encoding.feature_names) :])
            scaling = file.write(itertools.chain(blocks, more))
            nodes.notes += [] if table is None else table.reading_notes
            return model.encoding, scaling, tuple(model.feature_names)
        if model is None and table is not None and nodes.roles and nodes.roles.features:
            chosen = nodes.roles.features
            hints = Hints(nodes.y, nodes.masks)
            encoding, fitted = write_features(
                file, table, chosen, options, more, hints, self.steps.at
            )
            nodes.notes += [*hints.notes, *filter(None, [encoding.note])]
            nodes.feature_names = encoding.feature_names
        nodes.notes += [] if table is None else table.reading_notes
        if encoding is not None and fitted is not None:
            return encoding, fitted, self._joined(nodes, more, more_names)
        if model is None and more:
            return None, file.write(iter(more)), more_names
        if options.features == "columns":
            raise no_features(nodes.source, encoding)
        ends = degrees[1:] if counts.directed else degrees[:1]
        if options.features == "auto":
            nodes.notes.append(degree_note(len(ends)))
        x = torch.log1p(torch.from_numpy(np.stack(ends, axis=1)).float())
        names = DEGREES[1:] if counts.directed else DEGREES[:1]
        return None, file.write(iter([x.numpy()])), names

    def _feature_file(self, nodes: Nodes) -> tuple[list[Any], tuple[str, ...]]:
        """The features of a file of their own: a block of columns, and their names."""
        if self.files.features is None:
            return [], ()
        x, names = read_feature_file(nodes, self.files.features)
        block = csr_to_scipy(x).tocsc() if is_sparse(x) else x.numpy()
        return [block], names

    def _joined(self, nodes: Nodes, more: list[Any], names: tuple[str, ...]) -> Sequence[str]:
        if not more or self.files.features is None:
            return nodes.feature_names
        widths = len(nodes.feature_names), more[0].shape[1]
        return joined_names(nodes, names, widths, self.files.features)


def _aligned(blocks: list[Any], names: Sequence[str], wanted: Sequence[str]) -> list[Any]:
    """Blocks of columns in the order of training, zeros for a word that does not occur."""
    if not wanted and not blocks:
        return []
    if not blocks or (not names and blocks[0].shape[1] != len(wanted)):
        raise DataError(
            f"Expected a feature file with the {len(wanted)} features of training (got "
            f"{blocks[0].shape[1] if blocks else 'none'})."
        )
    if not names:
        return blocks
    (block,) = blocks
    place = {name: k for k, name in enumerate(names)}
    zeros = sp.csc_array((block.shape[0], 1), dtype=np.float32)
    chosen = [block[:, [place[n]]] if n in place else zeros for n in wanted]
    return [sp.hstack(chosen, format="csc")]


def _write_dataset(
    dataset: NodeDataset, folder: Path, source: Mapping[str, Any], model: Form | None
) -> None:
    """A dataset in memory as a prepared graph: for named datasets, and for files of arrays."""
    if model is not None and model.encoding is not None and dataset.columns is not None:
        dataset = dataset.encoded(model.encoding)
    if model is not None and tuple(dataset.feature_names) != tuple(model.feature_names):
        raise DataError(
            f"Expected the {len(model.feature_names)} features of training "
            f"(got {dataset.num_features}, or others)."
        )
    weight, relations = dataset.data.get("edge_weight"), dataset.relations
    for number, edges in enumerate((Relation("", dataset.data.edge_index, weight), *relations)):
        _write_arcs(dataset, edges, number - 1 if number else None, folder)
    write_ids(dataset.ids, folder / IDS)
    x = dataset.data.x
    block = csr_to_scipy(x).tocsc() if is_sparse(x) else x.numpy()
    file = FeatureFile(folder / FEATURES, len(x), Scaling.fit("auto", dataset).kind)
    masks = {name: dataset.data[name] for name in MASKS if dataset.data.get(name) is not None}
    answers = Answers(dataset.data.y, dataset.task, dataset.classes, masks)
    finish_graph(
        folder,
        dataset.name,
        answers=answers,
        targets=dataset.targets,
        default_split=dataset.default_split,
        files=write_answers(answers, folder),
        feature_names=dataset.feature_names,
        encoding=dataset.encoding,
        scaling=file.write(iter([block])),
        ready=dataset.ready,
        edges=dataset.num_edges,
        degree=dataset.degrees.numpy(),
        one_way=dataset.one_way,
        self_loops=bool((dataset.data.edge_index[0] == dataset.data.edge_index[1]).any()),
        notes=dataset.notes,
        source=source,
        open_features=dataset.open_features,
        weighted=weight is not None,
        directed=dataset.directed,
        types=[edges.name for edges in relations],
    )


def _write_arcs(dataset: NodeDataset, edges: Relation, number: int | None, folder: Path) -> None:
    row, col = edges.edge_index.numpy()
    for back in (False, True) if dataset.directed else (False,):
        order = np.lexsort((row, col)) if back else slice(None)
        own, other = (col, row) if back else (row, col)
        counts = np.bincount(own, minlength=dataset.num_nodes)
        weight = edges.edge_weight
        arrays: list[tuple[type, Any]] = [(np.int64, np.append(0, np.cumsum(counts)))]
        arrays.append((np.int32, other[order]))
        if weight is not None:
            arrays.append((np.float32, weight.numpy()[order]))
        names = arc_files(weighted=weight is not None, directed=False, number=number, back=back)
        for name, (kind, values) in zip(names, arrays, strict=True):
            with ArrayWriter(folder / name, kind) as writer:
                writer.append(values)


def write_ids(ids: Sequence[Any] | pa.Array, path: Path) -> None:
    """One column ``id``, one row per node: int64 where all are whole numbers, else text."""
    column = ids if isinstance(ids, pa.Array) else pa.array(ids)
    if isinstance(ids, pa.Array):
        numbers = whole_numbers(ids)
        column = ids if numbers is None else numbers
    with writing(path):
        pq.write_table(pa.table({"id": column}), path, compression="zstd")
