"""Columns of a node table → features and answers in files, one column in memory at a time.

The same encodings and the same labels as in memory, by the same code. Features are written column
by column, which is the order in which they are stored.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn.data import DataError
from longnn.data._dataset import Task
from longnn.data._encoding import Encoding, Novelty, encode_columns
from longnn.data._hints import Hints
from longnn.data._nodetable import Nodes
from longnn.data._options import TableOptions
from longnn.data._scaling import Scaling
from longnn.data._tables import Table
from longnn.data._targets import Answers, read_answers
from longnn.data._tensors import GraphTensors
from longnn.store._arrays import ArrayWriter
from longnn.store._graph import LABELS, MASKS, NOBODY, ROLES

Share = Callable[[float], None]


class FeatureFile:
    """Features as they are written, float32 (nodes, features), and their scaling as it is fitted.

    Args:
        path: the file.
        nodes: its rows.
        kind: of scaling: ``"columns"``, or ``"none"`` for features that are ready to use.
    """

    def __init__(self, path: Path, nodes: int, kind: str = "columns") -> None:
        self.path, self.nodes, self.kind, self.columns = path, nodes, kind, 0
        self._moments: list[Tensor] = []  # (2,): mean and deviation of each column

    def write(self, blocks: Iterator[Any]) -> Scaling:
        """Write blocks of columns side by side; returns how they are to be scaled."""
        with ArrayWriter(self.path, np.float32) as writer:
            for block in blocks:
                for j in range(block.shape[1]):
                    column = block[:, j] if isinstance(block, np.ndarray) else _column(block, j)
                    self._fit(column)
                    writer.append(column)
                    self.columns += 1
            writer.shape = (self.nodes, self.columns)
        if not self._moments:
            return Scaling(self.kind)
        mean, deviation = torch.stack(self._moments, 1)
        return Scaling(self.kind, mean, deviation)

    def _fit(self, column: np.ndarray) -> None:  # float32 (nodes,)
        if not np.isfinite(column).all():
            raise DataError(
                f"Expected finite features (got {column[~np.isfinite(column)][0]} in feature "
                f"{self.columns})."
            )
        x = torch.from_numpy(np.ascontiguousarray(column, np.float32))[:, None]
        fitted = Scaling.fit(self.kind, x)
        if fitted.mean is not None and fitted.deviation is not None:
            self._moments.append(torch.cat([fitted.mean, fitted.deviation]))


def _column(block: Any, j: int) -> np.ndarray:
    """A column of a sparse block."""
    if getattr(block, "format", "") != "csc":
        block = block.tocsc()
    column = np.zeros(block.shape[0], dtype=np.float32)
    start, end = block.indptr[j : j + 2]
    column[block.indices[start:end]] = block.data[start:end]
    return column


def write_features(
    file: FeatureFile,
    table: Table,
    names: Sequence[str],
    options: TableOptions,
    more: Sequence[Any],
    hints: Hints,
    on_share: Share,
) -> tuple[Encoding, Scaling | None]:
    """Features of a table's columns, and ``more`` behind them; no scaling if it has none."""
    for keep_all in (False, True):  # all, if otherwise nothing would remain
        columns: list[Any] = []

        def blocks(columns: list[Any] = columns, keep_all: bool = keep_all) -> Iterator[Any]:
            novelty = Novelty()
            for column, block in encode_columns(
                table,
                names,
                text_columns=options.text_columns or (),
                category_columns=options.category_columns or (),
                missing=options.missing,
                hints=None if keep_all else hints,
            ):
                column, block = (column, block) if keep_all else novelty.judge(column, block)
                columns.append(column)
                if block is not None:
                    yield block
                on_share(len(columns) / len(names))
            yield from more

        scaling = file.write(blocks())
        if file.columns > sum(block.shape[1] for block in more) or (keep_all and file.columns):
            return Encoding(tuple(columns)), scaling
    return Encoding(tuple(columns)), None


def answers_of(
    nodes: Nodes, task: Task | None, classes: Sequence[str] = ()
) -> tuple[Answers, Sequence[str]]:
    """Labels and masks of nodes, and the names of targets.

    Args:
        nodes: as they were read.
        task: that the user named.
        classes: those of a model that the graph is for; a label that is none of them counts as
            none.
    """
    notes: list[str] = []
    y, names = nodes.y, nodes.classes
    task = task or nodes.task
    if classes and task in (None, "classification"):
        if y is not None:
            y = _as_trained(y, names or (), classes, notes)
        names = tuple(classes)
    assert nodes.count is not None
    answers = read_answers(GraphTensors(y=y, **nodes.masks), task, names, nodes.count)
    return answers._replace(notes=(*notes, *answers.notes)), nodes.targets


def _as_trained(y: Tensor, own: Sequence[str], classes: Sequence[str], notes: list[str]) -> Tensor:
    """Labels as numbers of other classes."""
    number = [classes.index(name) if name in classes else -1 for name in own]
    lost = [name for name in own if name not in classes]
    if lost:
        notes.append(f"Labels that the model does not know count as none: {', '.join(lost[:5])}.")
    return torch.tensor([*number, -1])[y]


def write_answers(answers: Answers, folder: Path) -> list[str]:
    """Write labels, and roles where there are masks; returns the files."""
    kind = np.int32 if answers.task == "classification" else np.float32
    _write_columns(folder / LABELS, answers.y, kind)
    if not answers.masks:
        return [LABELS]
    roles = torch.full_like(next(iter(answers.masks.values())), NOBODY, dtype=torch.int8)
    twice = torch.stack([*answers.masks.values()]).sum(0) > 1
    if bool(twice.any()):
        raise DataError(
            f"Expected each node in one set (got node {int(twice.nonzero()[0, 0])} in two); "
            "correct the masks."
        )
    for name, mask in answers.masks.items():
        roles[mask] = MASKS[name]
    _write_columns(folder / ROLES, roles, np.int8)
    return [LABELS, ROLES]


def _write_columns(path: Path, values: Tensor, kind: type) -> None:
    """A vector or a matrix (nodes, columns)."""
    with ArrayWriter(path, kind) as writer:
        for column in values.T if values.dim() == 2 else (values,):
            writer.append(column.numpy())
        writer.shape = tuple(values.shape)
