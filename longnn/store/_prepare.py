"""Files → a prepared graph: the steps in order, and what happens when one fails.

A folder is finished when it has a manifest, which is written last. Whatever was left by an
interrupted preparation is removed when the next one begins.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from longnn._base.files import try_lock, writing
from longnn._base.memory import parse_size
from longnn.data import Scaling, Source
from longnn.store._dataset import write_dataset
from longnn.store._graph import FEATURES, IDS, LABELS, NEIGHBOURS, OFFSETS, ROLES, GraphStore
from longnn.store._ingest import LENGTHS, Ingest
from longnn.store._manifest import NAME, StoreError, checksum
from longnn.store._parts import SUFFIXES, Parts, find_parts
from longnn.store._steps import OnProgress, Steps

FILES = (OFFSETS, NEIGHBOURS, FEATURES, LABELS, ROLES, IDS)
ROOM = ".preparing"
LOCK = ".lock"
#: Options of the loader for graphs in memory alone.
FOREIGN_OPTIONS = ("directed", "feature_file", "text_columns")


def prepare(
    graph: str | Path,
    nodes: str | Path | None = None,
    *,
    output: str | Path,
    options: Mapping[str, Any] | None = None,
    scale: str = "auto",
    seed: int = 0,
    memory: str | float = "4G",
    like: str | Path | None = None,
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
        scale: how features are scaled, as of the setting ``scale``; they are stored scaled.
        seed: of the roles, where no split column gives them: 60/20/20 % of each class.
        memory: for the whole program, such as ``"4G"``; what does not fit is spilled to disk.
        like: a prepared graph that a model was trained on: the features are encoded and scaled, and
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
    model = None if like is None else GraphStore.open(like)
    if model is not None and "graph" in model.about["source"]:  # a generated graph has no files
        given = given.like(Source.from_dict(model.about["source"]))
    size = parse_size(memory)
    Scaling.fit(scale, torch.zeros(1, 1))  # an unknown kind is an error before all work
    parts = _parts(given)
    source = {
        **how_made(given, scale=scale, seed=seed, ignore_weights=ignore_weights, model=model),
        "files": [] if parts is None else [p.stamp() for p in parts if p is not None],
    }
    folder = Path(output)
    found = reusable(folder, source)
    if found is not None:
        return found
    with working(folder) as room:
        if parts is None:
            write_dataset(given.load(), folder, source, model)
        else:
            steps = Steps(LENGTHS, on_progress)
            Ingest(given, parts, folder, room, source, model, size, steps).run()
    return GraphStore.open(folder)


def how_made(
    given: Source,
    *,
    scale: str = "auto",
    seed: int = 0,
    ignore_weights: bool = False,
    model: GraphStore | None = None,
) -> dict[str, Any]:
    """What a folder is made of and how, but for the state of the files: plain data."""
    return {
        **given.to_dict(),
        "scale": scale,
        "seed": seed,
        "ignore_weights": ignore_weights,
        "like": None if model is None else checksum(model.folder / NAME),
    }


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
        Path(source.graph), None if source.nodes is None else Path(source.nodes)
    )
    if any(part is not None and part.suffix not in SUFFIXES for part in (edges, nodes)):
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
    own = (*FILES, NAME, ROOM, LOCK)
    names = sorted(path.name for path in folder.iterdir())
    return next((name for name in names if name not in own and not name.startswith("basis-")), "")


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
        for name in (NAME, *FILES):
            (folder / name).unlink(missing_ok=True)
        if room.exists():
            shutil.rmtree(room)
