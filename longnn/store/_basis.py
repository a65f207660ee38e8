r"""The Chebyshev terms :math:`T_0(P) X, \dots, T_K(P) X` on disk, by blocks of columns.

Beside those of the features stand the terms of a constant, :math:`T_j(P) 1`. They make the others
exact for any bias and any shift of a feature: with mean m and deviation d,
:math:`T_j(P) (x - m 1) / d = (T_j(P) x - m\, T_j(P) 1) / d`.
"""

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn._base.files import atomic_path
from longnn.store._arrays import Manifest, StoreError, describe
from longnn.store._graph import GraphStore
from longnn.store._terms import each_term

#: Which node each row is, where only some are kept.
ROWS = "rows.npy"
#: The terms of a constant, float32 (rows, K+1): what biases and the means of features act on.
ONES = "ones.npy"


def block_name(index: int) -> str:
    """The file of one block of columns."""
    return f"block-{index:04d}.npy"


@dataclasses.dataclass(frozen=True)
class BasisStore:
    """The terms of some or all nodes; one file per block of columns, (rows, K+1, columns).

    Args:
        folder: where the files are.
        manifest: ``manifest.about`` has ``degree`` (K), ``columns`` (the number of each block's
            columns, in order), ``nodes`` of the graph, ``self_loops``, ``dtype`` (``"float32"``,
            ``"float16"`` or ``"bfloat16"``, the last stored as uint16), ``graph`` (the checksum of
            the graph's manifest), ``edge_type`` (its number, or None for all edges), ``rows``
            (``"all"`` or ``"labelled"``) and ``rounding`` (the relative error of what is stored).
    """

    folder: Path
    manifest: Manifest

    @classmethod
    def open(cls, folder: str | Path) -> "BasisStore":
        """The terms that were written into a folder."""
        return cls(Path(folder), Manifest.read(Path(folder), "basis"))

    @property
    def about(self) -> Mapping[str, Any]:
        """Plain data on the whole."""
        return self.manifest.about

    @property
    def degree(self) -> int:
        """K."""
        return int(self.about["degree"])

    @property
    def columns(self) -> list[int]:
        """The number of columns of each block."""
        return [int(count) for count in self.about["columns"]]

    @cached_property
    def rows(self) -> np.memmap | None:
        """int64 (rows,): the node of each row, ascending; None where all nodes are kept."""
        return self.manifest.array(self.folder, ROWS) if ROWS in self.manifest.files else None

    @cached_property
    def blocks(self) -> list[np.memmap]:
        """Each (rows, K+1, columns of the block)."""
        return [self.manifest.array(self.folder, block_name(i)) for i in range(len(self.columns))]

    @cached_property
    def ones(self) -> np.memmap | None:
        """float32 (rows, K+1): :math:`T_j(P) 1`; None where it was not computed, see
        :func:`~longnn.store.add_ones`."""
        return self.manifest.array(self.folder, ONES) if ONES in self.manifest.files else None

    @property
    def num_rows(self) -> int:
        """Rows that are kept."""
        return len(self.blocks[0])

    @property
    def num_columns(self) -> int:
        """Columns of all blocks: the features."""
        return sum(self.columns)

    def read(
        self,
        rows: np.ndarray | slice,  # (count,) of rows, not of nodes
        degree: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Some rows of the terms up to a degree, copied: (degree+1, count, columns) and, of the
        constant, (degree+1, count), both float32. Rows in their order are read quickest.
        """
        assert self.ones is not None
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.num_rows))
        out = np.empty((degree + 1, len(rows), self.num_columns), dtype=np.float32)
        first = 0
        for block, columns in zip(self.blocks, self.columns, strict=True):
            found = _read_rows(block, rows)[:, : degree + 1]  # (count, degree+1, columns)
            if self.about["dtype"] == "bfloat16":  # the upper half of a float32
                found = (found.astype(np.uint32) << 16).view(np.float32)
            out[:, :, first : first + columns] = found.swapaxes(0, 1)
            first += columns
        return out, np.ascontiguousarray(_read_rows(self.ones, rows)[:, : degree + 1].T)


def _read_rows(array: np.memmap, rows: np.ndarray) -> np.ndarray:
    """Some rows of a file, one read for each run of neighbours.

    Through the map, a system that maps large pages would count much of the file as this program's.
    """
    out = np.empty((len(rows), *array.shape[1:]), dtype=array.dtype)
    if len(rows) == 0:
        return out
    width = out[0].nbytes
    raw = out.reshape(len(rows), -1).view(np.uint8)  # (count, bytes of a row)
    ends = np.append(np.flatnonzero(np.diff(rows) != 1) + 1, len(rows)).tolist()
    start = 0
    with Path(str(array.filename)).open("rb", buffering=0) as file:
        for end in ends:
            file.seek(array.offset + int(rows[start]) * width)
            if file.readinto(raw[start:end].data) != (end - start) * width:
                raise StoreError(f"Expected {len(array):,} rows in {array.filename} (it is cut)")
            start = end
    return out


def add_ones(basis: BasisStore, graph: GraphStore) -> BasisStore:
    """The terms with those of a constant among them, computed and written if they are not there."""
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
            edge_type=basis.about["edge_type"],
            resident=False,
        )
        out.flush()
    files = {**basis.manifest.files, ONES: describe(basis.folder / ONES)}
    dataclasses.replace(basis.manifest, files=files).write(basis.folder)
    return BasisStore.open(basis.folder)
