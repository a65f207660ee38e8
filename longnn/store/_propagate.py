r"""From a stored graph to the Chebyshev terms of its features, block by block of columns."""

from pathlib import Path
from typing import Literal

import numpy as np

from longnn.graphs import SelfLoops
from longnn.store._basis import ROWS, BasisStore, block_name
from longnn.store._graph import GraphStore
from longnn.store._manifest import NAME, Manifest, checksum
from longnn.store._operator import StoredOperator

#: Columns of a block.
COLUMNS = 16


def propagate(
    graph: GraphStore,
    *,
    degree: int,
    self_loops: SelfLoops = "keep",
    dtype: str = "float32",
    rows: Literal["all", "labelled"] = "all",
    memory: int | None = None,
    device: str = "cpu",
    output: Path | None = None,
) -> BasisStore:
    r"""Write :math:`T_0(P) X, \dots, T_K(P) X` beside the graph, or into ``output``.

    Args:
        graph: whose features are propagated.
        degree: K.
        self_loops: ``"keep"``, ``"add"`` or ``"remove"``.
        rows: ``"all"``, or only those that are ``"labelled"``.
        dtype: ``"float32"`` or ``"float16"``.
        memory, device: not used here.
        output: the folder; by default in that of the graph.
    """
    folder = (
        graph.folder / f"basis-{self_loops}-{degree}-{dtype}-{rows}" if output is None else output
    )
    folder.mkdir(parents=True, exist_ok=True)
    operator = StoredOperator(graph, self_loops)
    kept = np.arange(graph.num_nodes)
    if rows == "labelled":
        labels = graph.labels
        kept = np.flatnonzero(labels >= 0 if labels.dtype.kind == "i" else ~np.isnan(labels))
    names: list[str] = []
    columns: list[int] = []
    for first in range(0, graph.num_features, COLUMNS):
        x = np.array(graph.features[:, first : first + COLUMNS], dtype=np.float64)
        shape = (len(kept), degree + 1, x.shape[1])
        names.append(block_name(len(columns)))
        out = np.lib.format.open_memmap(folder / names[-1], mode="w+", dtype=dtype, shape=shape)
        previous = current = x
        for j in range(degree + 1):
            if j == 1:
                current = operator.product(x)
            elif j > 1:
                previous, current = current, 2 * operator.product(current) - previous
            out[:, j] = current[kept]
        out.flush()
        columns.append(x.shape[1])
    if rows == "labelled":
        np.save(folder / ROWS, kept)
        names.append(ROWS)
    about = {"degree": degree, "columns": columns, "nodes": graph.num_nodes, "dtype": dtype}
    about |= {"self_loops": self_loops, "graph": checksum(graph.folder / NAME)}
    Manifest.of("basis", about, folder, names).write(folder)
    return BasisStore.open(folder)
