r"""The terms of a constant, :math:`T_0(P) 1, \\dots, T_K(P) 1`, beside those of the features.

They make the other terms exact for any bias and any shift of a feature: with mean m and deviation
d, :math:`T_j(P) (x - m 1) / d = (T_j(P) x - m\\, T_j(P) 1) / d`.
"""

import dataclasses

import numpy as np
import torch
from torch import Tensor

from longnn._base.files import atomic_path
from longnn.store._basis import ONES, BasisStore
from longnn.store._graph import GraphStore
from longnn.store._manifest import describe
from longnn.store._terms import each_term


def add_ones(basis: BasisStore, graph: GraphStore) -> BasisStore:
    """The terms with those of a constant among them, computed and written if they are not there.

    Args:
        basis: the terms of some or all nodes.
        graph: whose they are.
    """
    if basis.ones is not None:
        return basis
    kept = None if basis.rows is None else np.array(basis.rows)
    with atomic_path(basis.folder / ONES) as temporary:
        shape = (basis.num_rows, basis.degree + 1)
        out = np.lib.format.open_memmap(temporary, mode="w+", dtype="<f4", shape=shape)

        def put(j: int, first: int, term: Tensor) -> None:  # (rows, 1)
            values, last = term[:, 0].numpy(), first + len(term)
            if kept is None:
                out[first:last, j] = values
            else:
                low, high = np.searchsorted(kept, (first, last))
                out[low:high, j] = values[kept[low:high] - first]

        each_term(
            graph,
            lambda first, last: torch.ones(last - first, 1),
            put,
            columns=1,
            degree=basis.degree,
            self_loops=basis.about["self_loops"],
            resident=False,
        )
        out.flush()
    files = {**basis.manifest.files, ONES: describe(basis.folder / ONES)}
    dataclasses.replace(basis.manifest, files=files).write(basis.folder)
    return BasisStore.open(basis.folder)
