r"""The Chebyshev terms :math:`T_0(P) X, \dots, T_K(P) X` on disk, by blocks of columns.

Behind the features stands a constant, :math:`T_j(P) 1`. It makes the others exact for any bias and
any shift of a feature: with mean m and deviation d,
:math:`T_j(P) (x - m 1) / d = (T_j(P) x - m\, T_j(P) 1) / d`.
"""

import dataclasses
import json
import zlib
from functools import cached_property
from pathlib import Path

import numpy as np

from longnn.store._arrays import NAME, Manifest, StoreError

#: Which node each row is, where only some are kept.
ROWS = "rows.npy"
#: Types on disk: how torch calls them, and how NumPy stores them.
STORED = {"float32": "<f4", "float16": "<f2", "bfloat16": "<u2"}


def block_name(index: int) -> str:
    """The file of one block of columns."""
    return f"block-{index:04d}.npy"


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What is computed, whatever the memory.

    Args:
        degree: K.
        self_loops: ``"keep"``, ``"add"`` or ``"remove"``.
        dtype: on disk; bfloat16 as uint16.
        rows: which rows are kept, ``"all"`` or ``"labelled"``.
        graph: the checksum of the graph's manifest.
        edge_type: the number of a type of edges; None for all edges.
    """

    degree: int
    self_loops: str
    dtype: str
    rows: str
    graph: int
    edge_type: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.degree, int) or self.degree < 0:
            raise ValueError(f"Expected a `degree` of 0 or more (got {self.degree!r})")
        if self.dtype not in STORED:
            raise ValueError(f"Expected `dtype` among {', '.join(STORED)} (got {self.dtype!r})")

    @property
    def key(self) -> str:
        """Eight letters that stand for it.

        >>> Recipe(10, "keep", "float16", "all", 1).key
        'fbbfd0d7'
        """
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return f"{zlib.crc32(text.encode()):08x}"

    @property
    def term_bytes(self) -> int:
        """Bytes on disk of one number of each term."""
        return (self.degree + 1) * np.dtype(STORED[self.dtype]).itemsize


@dataclasses.dataclass(frozen=True)
class Terms:
    """What the manifest of a basis says of the whole.

    Args:
        recipe: what was computed.
        columns: how many each block has, in order: the features and the constant.
        rounding: the relative error of what is stored.
    """

    recipe: Recipe
    columns: tuple[int, ...]
    rounding: float = 0.0


@dataclasses.dataclass(frozen=True)
class BasisStore:
    """The terms of some or all nodes; one file per block of columns, (rows, K+1, columns)."""

    folder: Path
    manifest: Manifest
    about: Terms

    @classmethod
    def open(cls, folder: str | Path) -> "BasisStore":
        """The terms that were written into a folder."""
        return cls(Path(folder), *Manifest.read(Path(folder) / NAME, "basis", Terms))

    @property
    def degree(self) -> int:
        """K."""
        return self.about.recipe.degree

    @cached_property
    def rows(self) -> np.memmap | None:
        """int64 (rows,): the node of each row, ascending; None where all nodes are kept."""
        return self.manifest.array(self.folder, ROWS) if ROWS in self.manifest.files else None

    @cached_property
    def blocks(self) -> list[np.memmap]:
        """Each (rows, K+1, columns of the block)."""
        names = [block_name(index) for index in range(len(self.about.columns))]
        return [self.manifest.array(self.folder, name) for name in names]

    @property
    def num_rows(self) -> int:
        """Rows that are kept."""
        return len(self.blocks[0])

    @property
    def num_columns(self) -> int:
        """The number of features."""
        return sum(self.about.columns) - 1

    def places(self, nodes: np.ndarray) -> np.ndarray:
        """The rows of some nodes of the operator, int64 (count,)."""
        return nodes if self.rows is None else np.searchsorted(self.rows, nodes)

    def read(
        self,
        rows: np.ndarray,  # (count,) of rows, not of nodes
        degree: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Some rows of the terms up to a degree, copied: (degree+1, count, columns) and, of the
        constant, (degree+1, count), both float32. Rows in their order are read quickest.
        """
        values = np.empty((degree + 1, len(rows), self.num_columns), dtype=np.float32)
        first = 0
        for block in self.blocks:
            terms = _read_rows(block, rows)[:, : degree + 1]  # (count, degree+1, columns)
            if self.about.recipe.dtype == "bfloat16":  # the upper half of a float32
                terms = (terms.astype(np.uint32) << 16).view(np.float32)
            last = min(first + terms.shape[2], self.num_columns)
            values[:, :, first:last] = terms[:, :, : last - first].swapaxes(0, 1)
            first = last
        return values, terms[:, :, -1].T.astype(np.float32, order="C")


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
