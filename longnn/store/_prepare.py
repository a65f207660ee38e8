"""Files → a prepared graph: the steps in order, and what happens when one fails.

A folder is finished when it has a manifest, which is written last. Whatever was left by an
interrupted preparation is removed when the next one begins.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from longnn._base.files import try_lock, writing
from longnn._base.memory import parse_size
from longnn.data import DataError, NodeDataset, Source
from longnn.data._convert import edge_notes, isolated_note
from longnn.data._edgetable import added_note
from longnn.data._encoding import Encoding
from longnn.data._files import graph_name
from longnn.data._nodetable import NodeColumns
from longnn.data._options import TableOptions
from longnn.data._relations import Relation
from longnn.data._scaling import Scaling
from longnn.data._storedtable import PART_SUFFIXES, Parts, StoredTable, find_parts
from longnn.data._targets import Answers
from longnn.store._arrays import NAME, ArrayWriter, StoreError
from longnn.store._edges import (
    Counts,
    number_edges,
    number_nodes,
    open_edges,
    relate,
    write_csr,
    write_ids,
)
from longnn.store._engine import Engine
from longnn.store._features import FeatureFile, answers_of, write_answers, write_features
from longnn.store._graph import (
    FEATURES,
    IDS,
    MASKS,
    GraphStore,
    arc_files,
    finish_graph,
)

#: What a preparation writes beside the manifest.
FILES = re.compile(
    r"(type\d+_)?(back_)?(offsets|neighbours|weights)\.npy|(features|labels|roles)\.npy|ids\.parquet"
)
ROOM = ".preparing"
LOCK = ".lock"
#: Options of the loader for graphs in memory alone.
FOREIGN_OPTIONS = ("directed", "feature_file", "text_columns")
#: Relative times of the steps, measured on a graph of 20 neighbours and 64 features per node.
LENGTHS = {
    "reading edges": 1.0,
    "numbering nodes": 1.0,
    "numbering edges": 3.0,
    "sorting edges": 6.0,
    "reading nodes": 4.0,
    "checking": 1.0,
}
#: The feature of a graph that has none.
DEGREE = "log_degree"
_NODE_OPTIONS = ("id_column", "label_column", "split_column", "feature_columns", "category_columns")

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
    ignore_weights: bool = False,
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
        options: of the loader, as of :func:`longnn.data.load_files`. ``text_columns`` and
            ``feature_file`` are for graphs in memory.
        memory: for the whole program, such as ``"4G"``; what does not fit is spilled to disk.
        like: a trained model, or a prepared graph that one was trained on: columns are encoded, and
            the classes numbered, as there.
        ignore_weights: treat weighted edges as edges without weights; by default an error.
        on_progress: called with the name of a step and the share of the whole that is done.

    Raises:
        DataError: naming the file, the column and what is wrong.
        StoreError: for a folder that holds something else, or a DuckDB that is missing.
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
    parts = _parts(given)
    source = {
        **how_made(given, ignore_weights=ignore_weights, like=model),
        "files": [] if parts is None else [p.stamp() for p in parts if p is not None],
    }
    folder = Path(output)
    found = reusable(folder, source)
    if found is not None:
        return found
    with working(folder) as room:
        if parts is None:
            _write_dataset(given.load(), folder, source, model)
        else:
            steps = Steps(LENGTHS, on_progress)
            _Ingest(given, parts, folder, room, source, model, size, steps).run()
    return GraphStore.open(folder)


def how_made(
    given: Source, *, ignore_weights: bool = False, like: Form | None = None
) -> dict[str, Any]:
    """What a folder is made of and how, but for the state of the files: plain data."""
    form = None
    if like is not None:
        form = {
            "encoding": None if like.encoding is None else like.encoding.to_dict(),
            "feature_names": list(like.feature_names),
            "classes": list(like.classes),
        }
    plain = {**given.to_dict(), "ignore_weights": ignore_weights, "like": form}
    return json.loads(json.dumps(plain))  # tuples become lists, as in a manifest that was read


def _parts(source: Source) -> tuple[Parts, Parts | None] | None:
    """The tables of the graph; None where it is read in memory: a name, or arrays."""
    if source.is_named:
        return None
    if (Path(source.graph) / NAME).is_file():
        raise StoreError(
            f"Expected files of edges and nodes (got {source.graph}, which is prepared already); "
            "train on it as it is"
        )
    edges, nodes = find_parts(
        Path(source.graph),
        None if source.nodes is None else Path(source.nodes),
        source.options.get("header", "auto"),
    )
    if any(part is not None and part.suffix not in PART_SUFFIXES for part in (edges, nodes)):
        return None
    return edges, nodes


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
        given: Source,
        parts: tuple[Parts, Parts | None],
        folder: Path,
        room: Path,
        source: Mapping[str, Any],
        model: Form | None,
        memory: int,
        steps: "Steps",
    ) -> None:
        self.given, self.parts, self.folder, self.room = given, parts, folder, room
        self.source, self.model, self.memory = source, model, memory
        self.steps = steps
        self.notes: list[str] = []

    def run(self) -> None:
        """Write all arrays, then the manifest."""
        options = self._options()
        table, columns, options = self._open_nodes(options)
        counts, table = self._write_edges(table, columns, options)
        self.steps.begin("reading nodes")
        classes = () if self.model is None else self.model.classes
        answers, targets = answers_of(table, columns, options, len(counts.degree), classes)
        encoding, scaling, names = self._write_features(table, columns, options, counts.degree)
        loops = 0 if options.self_loops else counts.loops
        notes = [
            *self.notes,
            *edge_notes(counts.one_way, counts.edges, loops, counts.repeats),
            *isolated_note(int((counts.degree == 0).sum())),
            *answers.notes,
            *answers.mask_notes,
        ]
        self.steps.begin("checking")
        finish_graph(
            self.folder,
            self._name(options),
            answers=answers,
            targets=targets,
            default_split="own" if answers.masks else "stratified",
            files=write_answers(answers, self.folder),
            feature_names=names,
            encoding=encoding,
            scaling=scaling,
            ready=False,
            edges=counts.edges,
            degree=counts.degree,
            one_way=counts.one_way,
            self_loops=options.self_loops,
            notes=notes + unlabelled_note(answers),
            source=self.source,
        )

    def _name(self, options: TableOptions) -> str:
        path = self.parts[0].path
        own = path.parent if path.is_dir() and path.name == "edges" else path
        return options.name or graph_name(own)

    def _options(self) -> TableOptions:
        given = dict(self.given.options)
        given.pop("optional_columns", None)
        for key in ("feature_file", "text_columns"):
            if given.pop(key, None):
                raise DataError(
                    f"Expected no `{key}` for a prepared graph, whose features are columns of "
                    "numbers and categories; use the graph in memory, or make numbers of it first."
                )
        options = TableOptions.from_dict(given)
        if options.directed:
            raise DataError(
                "Expected an undirected graph: a prepared folder keeps no arcs (got "
                f"directed={options.directed}); leave it out, or train in memory."
            )
        if options.type_column is not None:
            raise DataError(
                "Expected no `type_column`: a prepared folder keeps no types of edges (got "
                f"{options.type_column!r}); leave it out, or train in memory."
            )
        if options.features == "identity":
            raise DataError(
                "Expected features of a prepared graph to be 'auto', 'columns' or 'degree' "
                "(got 'identity'); use features=degree."
            )
        return options

    def _open_nodes(
        self, options: TableOptions
    ) -> tuple[StoredTable | None, NodeColumns | None, TableOptions]:
        """The node table, what its columns are for, and the options without absent columns."""
        optional: Sequence[str] = self.given.options.get("optional_columns", ())
        parts = self.parts[1]
        if parts is None:
            named = [k for k in _NODE_OPTIONS if getattr(options, k) and k not in optional]
            if named:
                raise DataError(
                    f"Expected no `{named[0]}` without a node file to look in.",
                    path=self.parts[0].path,
                )
            return None, None, options
        table = StoredTable.open(parts.files, parts.path, self.room, parts.header)
        options = options.without_absent(optional, table.columns)
        if options.features == "degree":
            options = replace(options, feature_columns=(), category_columns=None)
        columns = NodeColumns.find(table, options, ids_needed=True)
        self.notes += table.notes
        return table, columns, options

    def _write_edges(
        self, table: StoredTable | None, columns: NodeColumns | None, options: TableOptions
    ) -> tuple[Counts, StoredTable | None]:
        """The neighbours of each node, and the ids; the table has the nodes that were added."""
        edge_parts, node_parts = self.parts
        with ExitStack() as stack:
            engine = stack.enter_context(Engine(self.room, self.memory))
            self.steps.begin("reading edges")
            ignored = bool(self.source["ignore_weights"])
            edges = open_edges(
                engine,
                stack,
                edge_parts,
                options.ends,
                ignore_weights=ignored,
                on_share=self.steps.at,
            )
            self.steps.begin("numbering nodes")
            ids = None
            if table is not None and columns is not None and columns.key is not None:
                assert node_parts is not None
                ids = relate(engine, stack, node_parts, (columns.key,), table)
            add = options.unknown_ids == "add"
            how, count, added = number_nodes(engine, edges.relation, ids, table, add=add)
            if len(added):
                assert table is not None
                assert columns is not None
                assert columns.key is not None
                note = added_note(len(added), edge_parts.path.name)
                table = table.with_nodes(columns.key, added, note)
                self.notes.append(note)
            self.steps.begin("numbering edges")
            name = "the edges" if node_parts is None else node_parts.path.name
            dropped = number_edges(
                engine, edges.relation, how, name, self.steps.at, unknown_ids=options.unknown_ids
            )
            write_ids(engine, self.folder / IDS)
            self.steps.begin("sorting edges")
            loops = options.self_loops
            counts = write_csr(engine, self.folder, count, self_loops=loops, on_share=self.steps.at)
        self.notes += [*edges.notes, *dropped]
        return counts, table

    def _write_features(
        self,
        table: StoredTable | None,
        columns: NodeColumns | None,
        options: TableOptions,
        degree: np.ndarray,
    ) -> tuple[Encoding | None, Scaling, Sequence[str]]:
        """How columns became features, how these were scaled, and their names."""
        model = self.model
        file = FeatureFile(self.folder / FEATURES, len(degree))
        encoding: Encoding | None = None
        if model is not None and tuple(model.feature_names) != (DEGREE,):
            if table is None:
                raise DataError("Expected a node file with the features of training (got none).")
            encoding = model.encoding or Encoding.plain(model.feature_names)
            scaling = file.write(block for _, block in encoding.blocks(table))
            return model.encoding, scaling, encoding.feature_names
        if model is None and table is not None and columns is not None and columns.features:
            encoding, fitted = write_features(file, table, columns.features, options, self.steps.at)
            if encoding.note:
                self.notes.append(encoding.note)
            if fitted is not None:
                return encoding, fitted, encoding.feature_names
        if options.features == "columns":
            why = "" if encoding is None else f". {encoding.note.rstrip('.')}"
            raise DataError(
                f"Expected feature columns in the node file (got none{why}); use features='degree'."
            )
        if options.features == "auto":
            self.notes.append("There are no features: log(1 + degree) is used.")
        x = torch.log1p(torch.from_numpy(degree).float())[:, None]
        return None, file.write(iter([x.numpy()])), (DEGREE,)


def unlabelled_note(answers: Answers) -> list[str]:
    """What to say of a graph without labels."""
    if bool(answers.labelled.any()):
        return []
    return ["No node has a label: the graph can be predicted on, not trained on."]


def _write_dataset(
    dataset: NodeDataset, folder: Path, source: Mapping[str, Any], model: Form | None
) -> None:
    """A dataset in memory as a prepared graph: for named datasets, and for files of arrays."""
    relations = () if source["ignore_weights"] else dataset.relations
    if model is not None and model.encoding is not None and dataset.columns is not None:
        dataset = dataset.encoded(model.encoding)
    if model is not None and tuple(dataset.feature_names) != tuple(model.feature_names):
        raise DataError(
            f"Expected the {len(model.feature_names)} features of training "
            f"(got {dataset.num_features}, or others)."
        )
    weight = None if source["ignore_weights"] else dataset.data.get("edge_weight")
    for number, edges in enumerate((Relation("", dataset.data.edge_index, weight), *relations)):
        _write_arcs(dataset, edges, number - 1 if number else None, folder)
    write_id_list(dataset.ids, folder / IDS)
    x = dataset.data.x
    x = x.to_dense() if x.layout is not torch.strided else x
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
        scaling=file.write(iter([x.numpy()])),
        ready=dataset.ready,
        edges=dataset.num_edges,
        degree=dataset.degrees.numpy(),
        one_way=dataset.one_way,
        self_loops=bool((dataset.data.edge_index[0] == dataset.data.edge_index[1]).any()),
        notes=[*dataset.notes, *unlabelled_note(answers)],
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


def write_id_list(ids: Sequence[Any], path: Path) -> None:
    """One column ``id``, one row per node."""
    column = pa.array(np.arange(len(ids)) if isinstance(ids, range) else ids)
    with writing(path):
        pq.write_table(pa.table({"id": column}), path, compression="zstd")
