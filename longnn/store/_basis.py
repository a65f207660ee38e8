r"""The Chebyshev terms :math:`T_0(P) X, \dots, T_K(P) X` on disk, by blocks of columns."""

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from longnn.store._manifest import Manifest

#: Which node each row is, where only some are kept.
ROWS = "rows.npy"


def block_name(index: int) -> str:
    """The file of one block of columns.

    >>> block_name(3)
    'block-0003.npy'
    """
    return f"block-{index:04d}.npy"


@dataclasses.dataclass(frozen=True)
class BasisStore:
    """The terms of some or all nodes; one file per block of columns, (rows, K+1, columns).

    Args:
        folder: where the files are.
        manifest: ``manifest.about`` has ``degree`` (K), ``columns`` (the number of each block's
            columns, in order), ``nodes`` of the graph, ``self_loops``, ``dtype`` (``"float32"``,
            ``"float16"`` or ``"bfloat16"``, the last stored as uint16), ``graph`` (the checksum of
            the graph's manifest), ``rows`` (``"all"`` or ``"labelled"``) and ``rounding`` (the
            relative error of what is stored).
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

    @property
    def num_rows(self) -> int:
        """Rows that are kept."""
        return len(self.blocks[0])
