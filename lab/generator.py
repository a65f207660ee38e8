"""A random graph of any size as Parquet files, as a user would bring them, in bounded memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lab.blockmodel import BlockModel
from longnn._base.files import writing
from longnn.data import DataError


def generate(
    output: str | Path,
    *,
    on_progress: Callable[[str, float], None] | None = None,
    **options: Any,
) -> None:
    """Write a random graph of the :class:`~lab.blockmodel.BlockModel`, which explains its options.

    Args:
        output: the folder to make, with folders ``edges`` and ``nodes`` of parts, one per chunk.
        on_progress: called with the name of a step and the share of the whole that is done.
        options: those of the model.

    Raises:
        DataError: for an option out of range, and for a folder that holds files.
    """
    model = BlockModel(**options)
    edges, nodes = Path(output, "edges"), Path(output, "nodes")
    for folder in (edges, nodes):
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise DataError(
                f"Expected an empty folder in {folder} (it holds files); choose another with "
                "--output"
            )
    chunks = model.edge_chunks + model.feature_chunks
    tell = on_progress or (lambda step, share: None)
    for chunk in range(model.edge_chunks):
        tell("drawing edges", chunk / chunks)
        ends = dict(zip(("source", "target"), model.edges_of(chunk), strict=True))
        _write_part(pa.table(ends), edges, chunk)
    for chunk in range(model.feature_chunks):
        tell("drawing features", (model.edge_chunks + chunk) / chunks)
        x, start = model.features_of(chunk), chunk * model.rows
        rows = slice(start, start + len(x))
        columns: dict[str, Any] = {"id": np.arange(start, start + len(x))}
        columns["label"] = pa.array(model.labels[rows], mask=~model.labelled_nodes[rows])
        columns |= dict(zip(model.feature_names, x.T, strict=True))
        _write_part(pa.table(columns), nodes, chunk)
    tell("drawing features", 1.0)


def _write_part(table: pa.Table, folder: Path, number: int) -> None:
    path = folder / f"part-{number:05d}.parquet"
    with writing(path):
        pq.write_table(table, path, use_dictionary=False)
