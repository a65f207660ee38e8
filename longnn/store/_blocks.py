"""Columns are cut into blocks that fit the memory given; how one block gets to its file.

Terms come one degree after the other, and the file wants all degrees of a row together. They wait
in memory (on a GPU: in its memory) or, where that is too small, in a scratch file. The file gets
its name when it is whole, and its record after that; a record that does not fit its file, or what
is wanted now, counts as none.
"""

import dataclasses
import itertools
import os
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from longnn._base.memory import in_words
from longnn.store._arrays import Manifest, StoreError, ahead, checksum
from longnn.store._basis import block_name

#: Bytes that are turned and written at once.
PIECE = 1 << 24
#: Rows of a large graph whose rounding error is measured: one of so many.
SAMPLE = 16
#: The largest number of float16.
HALF = 65504
#: Memory that the program takes beside its arrays: the interpreter, torch, what threads work on.
RESERVE = 500_000_000
#: A row of 16 float32 is a cache line: narrower blocks read lines that they do not use.
LINE = 16
#: The widest block on a GPU; on a CPU a line is: wider blocks are no faster there.
WIDEST = 64
#: The narrowest block that is kept in memory until it is written, rather than in a scratch file.
NARROWEST = 8


@dataclasses.dataclass(frozen=True)
class Plan:
    """The blocks, and where arrays are kept meanwhile.

    Args:
        columns: of each block.
        resident: the graph stays in memory.
        staged: a block's terms are kept in memory until they are written; else in a file.
        staged_bytes: the terms of one column, as on disk.
        bytes: that the arrays of the widest block take, with the graph.
    """

    columns: list[int]
    resident: bool
    staged: bool
    staged_bytes: int
    bytes: int


def make_plan(
    *,
    nodes: int,
    entries: int,
    columns: int,
    staged_bytes: int,
    memory: int,
    ranks: int = 1,
    scratch: bool = True,
) -> Plan:
    """Cut the columns into blocks.

    Args:
        nodes, entries: of the graph.
        columns: its features and the constant.
        staged_bytes: the terms of one column, as on disk.
        memory: bytes that may be used.
        ranks: that share the columns.
        scratch: a scratch file may be used (not on a GPU).

    Raises:
        MemoryError: where not even one column fits.
    """
    graph_bytes, column_bytes = 4 * entries + 8 * nodes, 8 * nodes  # two arrays of a column
    free = memory - min(RESERVE, memory // 2) - 8 * nodes
    resident = graph_bytes <= free // 2
    if resident:
        free -= graph_bytes
    most = min(LINE, WIDEST) if scratch else WIDEST
    wanted = min(-(-columns // ranks), most)
    in_memory = free // (column_bytes + staged_bytes)
    staged = in_memory >= min(NARROWEST, wanted) or not scratch
    width = min(in_memory if staged else free // column_bytes, wanted)
    if width < 1:
        need = 2 * (column_bytes + graph_bytes + 8 * nodes) + 2 * RESERVE
        raise MemoryError(
            f"Expected memory for one column of {nodes:,} nodes, {in_words(need)} at most "
            f"(got {in_words(memory)}); give more with --memory"
        )
    for whole in (LINE, NARROWEST):
        if width > whole and width < columns:
            width -= width % whole
            break
    blocks = [width] * (columns // width)
    if columns % width:
        blocks.append(columns % width)
    used = width * (column_bytes + int(staged) * staged_bytes)
    used += graph_bytes if resident else 0
    return Plan(blocks, resident, staged, staged_bytes, used)


def spans_of(columns: Sequence[int]) -> list[tuple[int, int]]:
    """First and last column of each block."""
    return list(itertools.pairwise([0, *itertools.accumulate(columns)]))


class Memory:
    """Terms in memory, (K+1, rows, columns)."""

    def __init__(self, shape: tuple[int, int, int], dtype: torch.dtype, device: torch.device):
        self.shape = shape
        self._terms = torch.empty(shape, dtype=dtype, device=device)

    def put(self, degree: int, first: int, term: Tensor) -> None:
        """Keep rows of one term."""
        self._terms[degree, first : first + len(term)] = term

    def rows(self, first: int, last: int) -> Tensor:
        """All terms of some rows, (rows, K+1, columns)."""
        terms = self._terms[:, first:last].transpose(0, 1).contiguous()
        if terms.device.type == "cpu":
            return terms
        pinned = torch.empty(terms.shape, dtype=terms.dtype, pin_memory=True)
        return pinned.copy_(terms)

    def close(self) -> None:
        """Nothing to do."""


class Scratch:
    """Terms in a file that vanishes with this process."""

    def __init__(self, shape: tuple[int, int, int], dtype: torch.dtype, folder: Path):
        self.shape, self._dtype = shape, dtype
        path = folder / f".scratch-{os.getpid()}.tmp"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        path.unlink()  # nobody else sees it, and a kill leaves nothing behind

    def _at(self, degree: int, row: int) -> int:
        _, rows, columns = self.shape
        return (degree * rows + row) * columns * self._dtype.itemsize

    def put(self, degree: int, first: int, term: Tensor) -> None:
        """Keep rows of one term."""
        write_at(self._file, raw(term), self._at(degree, first))

    def rows(self, first: int, last: int) -> Tensor:
        """All terms of some rows, (rows, K+1, columns)."""
        degrees, _, columns = self.shape
        terms = torch.empty(degrees, last - first, columns, dtype=self._dtype)
        for degree, term in enumerate(terms):
            into = raw(term).reshape(-1).view(np.uint8).data
            got = os.preadv(self._file, [into], self._at(degree, first))
            assert got == len(into), "a scratch file is as long as what was written"
        return terms.transpose(0, 1).contiguous()

    def close(self) -> None:
        """Give the disk back."""
        os.close(self._file)


class Keeper:
    """Takes terms in float32, picks the rows to keep, rounds them, and measures the error.

    Args:
        stage: where they wait.
        dtype: on disk.
        kept: int64 (rows,): the rows of the operator to keep, ascending; None: all.
        nodes: of the graph.
    """

    def __init__(
        self,
        stage: Memory | Scratch,
        dtype: torch.dtype,
        kept: np.ndarray | None,
        nodes: int,
    ) -> None:
        self.stage, self.dtype, self.kept = stage, dtype, kept
        self.step = SAMPLE if nodes > 1 << 16 else 1
        self.error = self.norm = 0.0  # sums of squares, over the sampled rows
        self._lock = threading.Lock()

    def put(self, degree: int, first: int, term: Tensor) -> None:
        """Keep what is to be kept of the rows from ``first`` on."""
        at = first
        if self.kept is not None:
            at, end = (int(i) for i in np.searchsorted(self.kept, (first, first + len(term))))
            if at == end:
                return
            term = term[torch.from_numpy(self.kept[at:end] - first).to(term.device)]
        if self.dtype == torch.float16:  # one pass in float32: several times faster than isfinite
            low, high = (float(end) for end in term.aminmax())
            if max(-low, high) > HALF:
                raise StoreError(
                    f"Expected features within the range of float16, {HALF} (got "
                    f"{max(-low, high):.3g}); choose bfloat16 or float32, or scale them"
                )
        stored = term.to(self.dtype)
        if self.dtype != torch.float32:
            some = term[:: self.step].double()
            error = float((some - stored[:: self.step].double()).square().sum())
            with self._lock:
                self.error += error
                self.norm += float(some.square().sum())
        self.stage.put(degree, at, stored)


def raw(tensor: Tensor) -> np.ndarray:
    """A tensor on the CPU as NumPy stores it: bfloat16 as uint16."""
    bits = tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor
    return bits.contiguous().numpy()


def write_at(file: int, array: np.ndarray, offset: int) -> None:
    """Write an array into an open file; a full disk is an OSError."""
    left = array.reshape(-1).view(np.uint8).data
    while len(left):
        written = os.pwrite(file, left, offset)
        left, offset = left[written:], offset + written


def write_rows(stage: Memory | Scratch, file: int, offset: int) -> None:
    """Write all terms, row by row; one piece is turned while the one before is written."""
    terms, rows, columns = stage.shape
    step = max(1, PIECE // (4 * terms * columns))
    turned = (partial(stage.rows, i, min(i + step, rows)) for i in range(0, rows, step))
    for piece in ahead(turned):
        array = raw(piece)
        write_at(file, array, offset)
        offset += array.nbytes


def record_path(folder: Path, index: int) -> Path:
    """The record of a block: a manifest of its file, of the recipe and of the error of rounding."""
    return (folder / block_name(index)).with_suffix(".json")


@dataclasses.dataclass(frozen=True)
class Block:
    """What a record says.

    Args:
        key: of what was computed, :attr:`Recipe.key`.
        columns: first and last; of a plan, how many each block has.
        error: sum of the squared rounding errors of the sampled rows.
        norm: sum of the squares of those rows.
    """

    key: str
    columns: tuple[int, ...]
    error: float = 0.0
    norm: float = 0.0


def read_record(
    folder: Path, index: int, key: str, span: tuple[int, int], *, check: bool = True
) -> tuple[Manifest, Block] | None:
    """The record of a block, if it is of this recipe, of these columns, and fits its file."""
    name = block_name(index)
    try:
        record, block = Manifest.read(record_path(folder, index), "block", Block)
        path = record.file(folder, name)
    except StoreError:
        return None
    fits = (block.key, block.columns) == (key, span)
    fits = fits and (not check or checksum(path) == record.files[name].checksum)
    return (record, block) if fits else None
