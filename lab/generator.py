"""A random graph of any size, as Parquet files or as a prepared graph, in bounded memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from lab.blockmodel import BlockModel
from longnn._base.files import writing
from longnn._base.memory import parse_size
from longnn.data import Answers, Scaling, edge_notes, isolated_note
from longnn.store._arrays import MatrixWriter
from longnn.store._csr import write_csr
from longnn.store._engine import Engine
from longnn.store._features import write_answers
from longnn.store._graph import FEATURES, IDS, GraphStore, finish_graph
from longnn.store._manifest import NAME, StoreError
from longnn.store._prepare import OnProgress, Steps, reusable, working, write_id_list

FORMATS = ("store", "parquet")
#: Relative times of the steps, measured with 10 edges and 64 features per node.
LENGTHS = {"drawing edges": 5.0, "sorting edges": 10.0, "drawing features": 4.0, "checking": 1.0}


def generate(
    output: str | Path,
    *,
    nodes: int,
    edges: int,
    features: int = 64,
    classes: int = 10,
    homophily: float | Sequence[float] = 0.8,
    pattern: Literal["uniform", "pairs"] = "uniform",
    labelled: float = 1.0,
    signal: float = 1.0,
    exponent: float = 2.5,
    seed: int = 0,
    format: Literal["store", "parquet"] = "store",
    memory: str | float = "4G",
    on_progress: OnProgress | None = None,
) -> GraphStore | None:
    """Write a random graph of the :class:`~lab.blockmodel.BlockModel`, which explains the options.

    Args:
        output: the folder to make. A prepared graph in it that was made in the same way is used as
            it is.
        nodes, edges, features, classes, homophily, pattern, labelled, signal, exponent, seed: of
            the model. Repeated edges are merged, so that slightly fewer than ``edges`` remain.
        format: ``"store"``, a prepared graph, or ``"parquet"``, folders ``edges`` and ``nodes`` of
            parts, as a user would bring them.
        memory: for the whole program, such as ``"4G"``.
        on_progress: called with the name of a step and the share of the whole that is done.

    Returns:
        The prepared graph; None for Parquet files.

    Raises:
        DataError: for an option out of range.
        StoreError: for a folder that holds something else.

    >>> import tempfile
    >>> made = generate(tempfile.mkdtemp(), nodes=100, edges=300, features=4, classes=2)
    >>> made.num_nodes, made.num_features, made.about["classes"]
    (100, 4, ['0', '1'])
    """
    dial = tuple(homophily) if isinstance(homophily, Sequence) else (float(homophily),)
    model = BlockModel(
        nodes=nodes,
        edges=edges,
        features=features,
        classes=classes,
        homophily=dial,
        pattern=pattern,
        labelled=labelled,
        signal=signal,
        exponent=exponent,
        seed=seed,
    )
    if format not in FORMATS:
        raise StoreError(f"Expected `format` among {', '.join(FORMATS)} (got {format!r})")
    folder, size, steps = Path(output), parse_size(memory), Steps(LENGTHS, on_progress)
    if format == "parquet":
        _write_parquet(model, folder, steps)
        return None
    source = {"kind": "generated", **vars_of(model)}
    found = reusable(folder, source)
    if found is not None:
        return found
    with working(folder) as room:
        _write_store(model, folder, room, source, size, steps)
    return GraphStore.open(folder)


def vars_of(model: BlockModel) -> dict[str, Any]:
    """The options of a model as plain data."""
    fields = {name: getattr(model, name) for name in model.__dataclass_fields__}
    return {**fields, "homophily": list(model.homophily)}


def _edge_table(model: BlockModel, chunk: int) -> pa.Table:
    source, target = model.edges_of(chunk)
    return pa.table({"source": source, "target": target})


def _write_store(
    model: BlockModel, folder: Path, room: Path, source: dict[str, Any], memory: int, steps: Steps
) -> None:
    """The graph by the same sorting as files go through."""
    with Engine(room, memory) as engine:
        engine.run("SET preserve_insertion_order = false")
        engine.run("CREATE TABLE edges (s INTEGER, t INTEGER)")
        steps.begin("drawing edges")
        for chunk in range(model.edge_chunks):
            with engine.given("chunk", _edge_table(model, chunk)):
                engine.run("INSERT INTO edges SELECT * FROM chunk")
            steps.at((chunk + 1) / model.edge_chunks)
        steps.begin("sorting edges")
        counts = write_csr(engine, folder, model.nodes, self_loops=False, on_share=steps.at)
    steps.begin("drawing features")
    with MatrixWriter(folder / FEATURES, model.nodes, model.features) as writer:
        for chunk in range(model.feature_chunks):
            writer.write(chunk * model.rows, model.features_of(chunk))
            steps.at((chunk + 1) / model.feature_chunks)
    write_id_list(range(model.nodes), folder / IDS)
    y = torch.from_numpy(np.where(model.known, model.labels, -1).astype(np.int64))
    classes = tuple(str(c) for c in range(model.classes))
    answers = Answers(y, "classification", classes, masks={})
    notes = edge_notes(0, counts.edges, counts.loops, counts.repeats)
    steps.begin("checking")
    finish_graph(
        folder,
        "generated",
        answers=answers,
        targets=(),
        default_split="stratified",
        files=write_answers(answers, folder),
        feature_names=feature_names(model),
        encoding=None,
        scaling=Scaling("none"),
        ready=True,
        edges=counts.edges,
        degree=counts.degree,
        one_way=counts.one_way,
        self_loops=False,
        notes=[*notes, *isolated_note(int((counts.degree == 0).sum()))],
        source=source,
    )


def feature_names(model: BlockModel) -> list[str]:
    """The names of the features: f0, f1, ..."""
    return [f"f{j}" for j in range(model.features)]


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
    steps.begin("drawing edges")
    for chunk in range(model.edge_chunks):
        _write_part(_edge_table(model, chunk), folder / "edges", chunk)
        steps.at((chunk + 1) / model.edge_chunks)
    steps.begin("drawing features")
    for chunk in range(model.feature_chunks):
        x, start = model.features_of(chunk), chunk * model.rows
        rows = slice(start, start + len(x))
        columns: dict[str, Any] = {"id": np.arange(start, start + len(x))}
        columns["label"] = pa.array(model.labels[rows], mask=~model.known[rows])
        columns |= dict(zip(feature_names(model), x.T, strict=True))
        _write_part(pa.table(columns), folder / "nodes", chunk)
        steps.at((chunk + 1) / model.feature_chunks)


def _write_part(table: pa.Table, folder: Path, number: int) -> None:
    path = folder / f"part-{number:05d}.parquet"
    with writing(path):
        pq.write_table(table, path, use_dictionary=False)
