"""The terms that a training needs: those that are there already, or made."""

import shutil

import numpy as np

from longnn._base.memory import LEAST
from longnn.graphs._adjacency import SelfLoops
from longnn.store._basis import BasisStore
from longnn.store._graph import GraphStore
from longnn.store._manifest import NAME, StoreError, checksum
from longnn.store._ones import add_ones
from longnn.store._propagate import propagate
from longnn.store._ranks import Ranks

#: Of the free disk, the share that the terms of all nodes may take.
DISK_SHARE = 0.8
SIZES = {"float32": 4, "float16": 2, "bfloat16": 2}


def serving_basis(
    graph: GraphStore, *, degree: int, self_loops: SelfLoops, nodes: np.ndarray | None = None
) -> BasisStore | None:
    """Terms in the folder of a graph that serve: of this graph, of these nodes, of this degree or a
    higher one; None where there are none.

    Args:
        graph: the stored graph.
        degree: K, at least.
        self_loops: what became of self loops.
        nodes: int64 (count,), ascending, those that must be there; None for all.
    """
    wanted = checksum(graph.folder / NAME)
    for manifest in sorted(graph.folder.glob(f"basis-*/{NAME}")):
        try:
            found = BasisStore.open(manifest.parent)
        except StoreError:  # of another version, or damaged: as if it were not there
            continue
        about = found.about
        if (about["graph"], about["self_loops"]) != (wanted, self_loops) or found.degree < degree:
            continue
        if found.rows is None or (nodes is not None and bool(np.isin(nodes, found.rows).all())):
            return found
    return None


def ensure_basis(
    graph: GraphStore,
    nodes: np.ndarray,
    *,
    degree: int,
    self_loops: SelfLoops,
    dtype: str = "float32",
    memory: int | None = None,
    device: str = "cpu",
    ranks: Ranks | None = None,
) -> BasisStore:
    """The terms of some nodes, those of a constant too; they are computed if they are not there.

    Where the disk has room they are computed for all nodes, which then can be predicted. Ranks
    share the work; by default the caller is alone.
    """
    ranks = Ranks() if ranks is None else ranks

    def find() -> BasisStore | None:
        return serving_basis(graph, degree=degree, self_loops=self_loops, nodes=nodes)

    found = find()
    if not ranks.agree(found is not None):
        size = graph.num_nodes * (degree + 1) * graph.num_features * SIZES[dtype]
        room = ranks.agree(size <= DISK_SHARE * shutil.disk_usage(graph.folder).free)
        found = propagate(
            graph,
            degree=degree,
            self_loops=self_loops,
            rows="all" if room else "labelled",
            dtype=dtype,
            memory=None if memory is None else max(memory, LEAST),
            device=device,
            ranks=ranks,
        )
    if found is None:
        raise StoreError(
            f"Expected terms in {graph.folder} (another rank has found some); all ranks must see "
            "the same folder"
        )
    if ranks.first:
        found = add_ones(found, graph)
    ranks.wait()
    return found if ranks.first else BasisStore.open(found.folder)


def places_of(basis: BasisStore, nodes: np.ndarray) -> np.ndarray:
    """The rows of some nodes in the terms, int64 (count,)."""
    return nodes if basis.rows is None else np.searchsorted(basis.rows, nodes)
