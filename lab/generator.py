"""A random graph of any size, as Parquet files or as a prepared graph, in bounded memory."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from lab.blockmodel import BlockModel
from longnn._base.files import writing
from longnn._base.memory import parse_size
from longnn.data._arcs import isolated_note
from longnn.data._scaling import Scaling
from longnn.data._targets import Answers
from longnn.store._arrays import NAME, MatrixWriter, StoreError
from longnn.store._edges import EdgeList, write_neighbours
from longnn.store._features import write_answers
from longnn.store._graph import FEATURES, IDS, GraphStore, finish_graph
from longnn.store._prepare import OnProgress, Steps, reusable, working, write_ids

FORMATS = ("store", "parquet")
#: Relative times of the steps, measured with 10 edges and 64 features per node.
LENGTHS = {"drawing edges": 5.0, "sorting edges": 10.0, "drawing features": 4.0, "checking": 1.0}


def generate(
    output: str | Path,
    *,
    homophily: float | Sequence[float] = 0.8,
    format: Literal["store", "parquet"] = "store",
    memory: str | float = "4G",
    on_progress: OnProgress | None = None,
    **options: Any,
) -> GraphStore | None:
    """Write a random graph of the :class:`~lab.blockmodel.BlockModel`, which explains its options.

    Repeated edges are merged, so that slightly fewer than ``edges`` remain.

    Args:
        output: the folder to make. A prepared graph in it that was made in the same way is used as
            it is.
        homophily: of the model; one number holds for all classes.
        format: ``"store"``, a prepared graph, or ``"parquet"``, folders ``edges`` and ``nodes`` of
            parts, as a user would bring them.
        memory: for the whole program, such as ``"4G"``.
        on_progress: called with the name of a step and the share of the whole that is done.
        options: the other options of the model.

    Returns:
        The prepared graph; None for Parquet files.

    Raises:
        DataError: for an option out of range.
        StoreError: for a folder that holds something else.
    """
    dial = tuple(homophily) if isinstance(homophily, Sequence) else (float(homophily),)
    model = BlockModel(homophily=dial, **options)
    if format not in FORMATS:
        raise StoreError(f"Expected `format` among {', '.join(FORMATS)} (got {format!r})")
    folder, size, steps = Path(output), parse_size(memory), Steps(LENGTHS, on_progress)
    if format == "parquet":
        _write_parquet(model, folder, steps)
        return None
    source = {"kind": "generated", **asdict(model), "homophily": list(dial)}
    graph = reusable(folder, source)
    if graph is None:
        with working(folder) as room:
            _write_store(model, folder, room, source, size, steps)
        graph = GraphStore.open(folder)
    return graph


def _edge_tables(model: BlockModel, steps: Steps) -> Iterator[pa.Table]:
    steps.begin("drawing edges")
    for chunk in range(model.edge_chunks):
        yield pa.table(dict(zip(("source", "target"), model.edges_of(chunk), strict=True)))
        steps.at((chunk + 1) / model.edge_chunks)


def _feature_rows(model: BlockModel, steps: Steps) -> Iterator[tuple[int, np.ndarray]]:
    """The first row of each chunk, and its features."""
    steps.begin("drawing features")
    for chunk in range(model.feature_chunks):
        yield chunk * model.rows, model.features_of(chunk)
        steps.at((chunk + 1) / model.feature_chunks)


def _write_store(
    model: BlockModel, folder: Path, room: Path, source: dict[str, Any], memory: int, steps: Steps
) -> None:
    """The graph by the same sorting as files go through."""
    with EdgeList(room, model.nodes) as listed:
        for table in _edge_tables(model, steps):
            listed.append(*(column.to_numpy() for column in table.columns))
        steps.begin("sorting edges")
        counts = write_neighbours(listed, folder, memory=memory / 2, on_share=steps.at)
    with MatrixWriter(folder / FEATURES, model.nodes, model.features) as writer:
        for start, x in _feature_rows(model, steps):
            writer.write(start, x)
    write_ids(range(model.nodes), folder / IDS)
    y = torch.from_numpy(np.where(model.known, model.labels, -1).astype(np.int64))
    classes = tuple(str(c) for c in range(model.classes))
    answers = Answers(y, "classification", classes, masks={})
    tally = replace(counts.tally, one_way=0)  # that they are drawn one way says nothing
    notes = tally.notes(False, directed=False, weighted=False, self_loops=False)
    steps.begin("checking")
    finish_graph(
        folder,
        "generated",
        answers=answers,
        targets=(),
        default_split="stratified",
        files=write_answers(answers, folder),
        feature_names=model.feature_names,
        encoding=None,
        scaling=Scaling("none"),
        ready=True,
        edges=tally.edges,
        degree=counts.degrees[0],
        one_way=counts.tally.one_way,
        self_loops=False,
        notes=[*notes, *isolated_note(counts.isolated)],
        source=source,
    )


def _write_parquet(model: BlockModel, folder: Path, steps: Steps) -> None:
    """Folders of parts, one per chunk: ``edges`` and ``nodes``."""
    for stem in ("edges", "nodes"):
        with writing(folder / stem):
            (folder / stem).mkdir(parents=True, exist_ok=True)
            if any((folder / stem).iterdir()) or (folder / NAME).exists():
                raise StoreError(
                    f"Expected an empty folder in {folder / stem} (it holds files); choose another "
                    "with --output"
                )
    for number, table in enumerate(_edge_tables(model, steps)):
        _write_part(table, folder / "edges", number)
    for number, (start, x) in enumerate(_feature_rows(model, steps)):
        rows = slice(start, start + len(x))
        columns: dict[str, Any] = {"id": np.arange(start, start + len(x))}
        columns["label"] = pa.array(model.labels[rows], mask=~model.known[rows])
        columns |= dict(zip(model.feature_names, x.T, strict=True))
        _write_part(pa.table(columns), folder / "nodes", number)


def _write_part(table: pa.Table, folder: Path, number: int) -> None:
    path = folder / f"part-{number:05d}.parquet"
    with writing(path):
        pq.write_table(table, path, use_dictionary=False)
