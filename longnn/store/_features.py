"""Columns of a node table → scaled features in a file, one column in memory at a time.

The same encodings and the same scaling as in memory, by the same code. The file is written column
by column, which is the order in which it is stored.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from longnn.data import DataError, Encoding, Novelty, Scaling, TableOptions, encode_columns
from longnn.data import StoredTable as Table
from longnn.store._arrays import ArrayWriter

Share = Callable[[float], None]
#: Rows that are scaled at once where each row is scaled by its sum.
ROWS = 2**16


@dataclass
class FeatureFile:
    """Features as they are written: (nodes, features) float32, scaled.

    Args:
        path: the file.
        nodes: its rows.
        kind: of scaling, one of :data:`~longnn.data.SCALINGS`.
        fitted: the scaling to apply where another graph was fitted, else None: fit this one.
    """

    path: Path
    nodes: int
    kind: str
    fitted: Scaling | None = None
    columns: int = 0
    _mean: list[float] = field(default_factory=list)
    _deviation: list[float] = field(default_factory=list)

    def write(self, blocks: Iterator[Any]) -> Scaling:
        """Write blocks of columns side by side; returns how they were scaled."""
        if self.fitted is None:
            Scaling.fit(self.kind, torch.zeros(1, 1))  # a kind that is unknown, before all work
        with ArrayWriter(self.path, np.float32) as writer:
            for block in blocks:
                for j in range(block.shape[1]):
                    column = block[:, j] if isinstance(block, np.ndarray) else _column(block, j)
                    writer.append(self._scaled(column))
                    self.columns += 1
            writer.shape = (self.nodes, self.columns)
        kind = self.fitted.kind if self.fitted else self._resolved
        if kind == "row":
            _scale_rows(self.path)
        if not self._mean:
            return Scaling(kind)
        return Scaling(
            kind, *(torch.tensor(m, dtype=torch.float64) for m in (self._mean, self._deviation))
        )

    @property
    def _resolved(self) -> str:
        return Scaling.fit(self.kind, torch.zeros(1, 1)).kind

    def _scaled(self, column: np.ndarray) -> np.ndarray:  # float32 (nodes,)
        if not np.isfinite(column).all():
            raise DataError(
                f"Expected finite features (got {column[~np.isfinite(column)][0]} in feature "
                f"{self.columns})."
            )
        x = torch.from_numpy(np.ascontiguousarray(column, np.float32))[:, None]
        if self.fitted is not None and self.fitted.mean is not None:
            assert self.fitted.deviation is not None
            here = slice(self.columns, self.columns + 1)
            one = Scaling(self.fitted.kind, self.fitted.mean[here], self.fitted.deviation[here])
        elif self.fitted is not None or self.kind in ("none", "row"):
            return column
        else:
            one = Scaling.fit(self.kind, x)
        if one.mean is None or one.deviation is None:
            return column
        self._mean.append(float(one.mean))
        self._deviation.append(float(one.deviation))
        return one.apply(x)[:, 0].numpy()


def _column(block: Any, j: int) -> np.ndarray:
    """A column of a sparse block."""
    if getattr(block, "format", "") != "csc":
        block = block.tocsc()
    made = np.zeros(block.shape[0], dtype=np.float32)
    start, end = block.indptr[j : j + 2]
    made[block.indices[start:end]] = block.data[start:end]
    return made


def _scale_rows(path: Path) -> None:
    """Divide each row by the sum of its absolute values, as ``row_normalize`` does."""
    x = np.load(path, mmap_mode="r+")  # all of it was written: there is room
    for start in range(0, len(x), ROWS):
        rows = torch.from_numpy(np.ascontiguousarray(x[start : start + ROWS]))
        x[start : start + ROWS] = Scaling("row").apply(rows).numpy()
    x.flush()


def encode_table(
    table: Table,
    names: Sequence[str],
    options: TableOptions,
    *,
    keep_all: bool,
    on_share: Share,
    parts: list[Any],
) -> Iterator[Any]:
    """The features of each column that has any; what each column is goes into ``parts``.

    Args:
        table: the nodes.
        names: its feature columns.
        options: of the loader.
        keep_all: leave no column out that is constant or repeats another.
        on_share: called with the share of the columns that is done.
        parts: a list to fill, one entry per column.
    """
    novelty = Novelty()
    found = encode_columns(
        table, names, category_columns=options.category_columns or (), missing=options.missing
    )
    for column, block in found:
        column, block = (column, block) if keep_all else novelty.judge(column, block)
        parts.append(column)
        if block is not None:
            yield block
        on_share(len(parts) / len(names))


def write_features(
    file: FeatureFile, table: Table, names: Sequence[str], options: TableOptions, on_share: Share
) -> tuple[Encoding, Scaling | None]:
    """Features of a table's columns; the scaling is None if there are none."""
    for keep_all in (False, True):  # all, if otherwise nothing would remain
        parts: list[Any] = []
        blocks = encode_table(
            table, names, options, keep_all=keep_all, on_share=on_share, parts=parts
        )
        scaling = file.write(blocks)
        if file.columns:
            return Encoding(tuple(parts)), scaling
    return Encoding(tuple(parts)), None
