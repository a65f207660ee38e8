"""New nodes in the graph of a run: the graph grown by their rows, and their predictions alone.

The rows of the new nodes and edges are read behind those of the run, by the same reader and with
the same options; from there on it is one graph, and known answers are recognised by their ids.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow

from longnn._base.late import Late
from longnn.data import DataError, NodeDataset, Source
from longnn.runs._dataset import in_files
from longnn.store._disk import is_prepared
from longnn.store._graph import GraphStore
from longnn.store._prepare import files_of

pc = Late("pyarrow.compute")


def grown(source: Source | None, new: str | Path) -> Source:
    """A graph with the rows of a folder behind its own; of a prepared one, that of its files."""
    source = in_files(source)
    if source is None or source.is_named:
        what = "one that was in memory" if source is None else source.name
        raise DataError(
            f"Expected a graph in files, to add nodes to (got {what}); predict the graph with its "
            "new nodes instead: longnn predict RUN GRAPH, or run.predict(graph)."
        )
    for place in (source.graph, source.nodes):
        if place is not None and not Path(place).exists():
            raise DataError(
                "Expected the graph of the run here, to add nodes to (found none); say where it is "
                "now: longnn predict RUN GRAPH --add NEW.",
                path=place,
            )
    folders = [*source.options.get("more_rows", ()), str(new)]
    options = {**source.options, "more_rows": folders}
    return Source.resolve(Path(source.graph), source.nodes, options=options)


#: What to know where the graph that new nodes are added to is not the one of the training.
CHANGED = (
    "The files of the run's graph have changed since training: new nodes are predicted in the "
    "graph as it is now."
)


def has_changed(source: Source | None, load: Callable[[], object]) -> bool:
    """Whether the files of a graph are others than a run was trained on; ``load`` raises then."""
    if source is not None and is_prepared(source.graph):
        graph = GraphStore.open(source.graph)
        files = None if graph.source is None else files_of(graph.source)
        return files is not None and files.stamp() != graph.about.source.get("files")
    try:
        load()
    except DataError:
        return True
    return False


def added(dataset: NodeDataset) -> np.ndarray | None:  # bool (nodes,)
    """Which nodes of a graph that has grown were added last; None where none were."""
    source = dataset.source
    if source is None or not source.options.get("more_rows") or is_prepared(source.graph):
        return None
    files = files_of(source)
    assert files is not None
    ids = pyarrow.array(map(str, dataset.ids), pyarrow.string())
    return np.asarray(pc.is_in(ids, value_set=files.added_ids()))


def only_new(
    tables: Iterable[pyarrow.Table], dataset: NodeDataset, *, old: bool
) -> Iterator[pyarrow.Table]:
    """The predictions of new nodes; with ``old`` those of all, and a column that says which."""
    start, new = 0, added(dataset)
    assert new is not None
    for table in tables:
        rows = pyarrow.array(new[start : start + len(table)])
        start += len(table)
        yield table.add_column(1, "new", rows) if old else table.filter(rows)
