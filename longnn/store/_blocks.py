"""One block of columns on its way from memory to its file, and the record that says it is there.

Terms come one degree after the other, and the file wants all degrees of a row together. They wait
in memory (on a GPU: in its memory) or, where that is too small, in a scratch file. One block is
written, and one synced, while the next is computed. The file gets its name when it is whole, and
its record after that; a record that does not fit its file, or what is wanted now, counts as none.
"""

import dataclasses
import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn._base.files import write_json, writing
from longnn.store._arrays import ArrayFile, StoreError, checksum, describe
from longnn.store._basis import block_name

#: Bytes that are turned and written at once.
PIECE = 1 << 24
#: Rows of a large graph whose rounding error is measured: one of so many.
SAMPLE = 16
#: The largest number of float16.
HALF = 65504


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
        found = self._terms[:, first:last].transpose(0, 1)
        if found.device.type == "cpu":
            return found.contiguous()
        pinned = torch.empty(found.shape, dtype=found.dtype, pin_memory=True)
        return pinned.copy_(found.contiguous())

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
        terms, _, columns = self.shape
        found = torch.empty(terms, last - first, columns, dtype=self._dtype)
        for degree, one in enumerate(found):
            into = raw(one).reshape(-1).view(np.uint8).data
            got = os.preadv(self._file, [into], self._at(degree, first))
            assert got == len(into), "a scratch file is as long as what was written"
        return found.transpose(0, 1).contiguous()

    def close(self) -> None:
        """Give the disk back."""
        os.close(self._file)


class Keeper:
    """Takes terms in float32, picks the rows to keep, rounds them, and measures the error.

    Args:
        stage: where they wait.
        dtype: on disk.
        kept: int64 (rows,): the nodes to keep, ascending; None: all from ``first`` on.
        first: the first node of this rank.
        nodes: of the graph.
    """

    def __init__(
        self,
        stage: Memory | Scratch,
        dtype: torch.dtype,
        kept: np.ndarray | None,
        first: int,
        nodes: int,
    ) -> None:
        self.stage, self.dtype, self.kept, self.first = stage, dtype, kept, first
        self.step = SAMPLE if nodes > 1 << 16 else 1
        self.error = self.norm = 0.0  # sums of squares, over the sampled rows
        self._lock = threading.Lock()

    def put(self, degree: int, first: int, term: Tensor) -> None:
        """Keep what is to be kept of the rows from node ``first`` on."""
        at = first - self.first
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
        self._measure(term, stored)
        self.stage.put(degree, at, stored)

    def _measure(self, term: Tensor, stored: Tensor) -> None:
        if self.dtype == torch.float32:
            return
        some = term[:: self.step].double()
        error = float((some - stored[:: self.step].double()).square().sum())
        with self._lock:
            self.error += error
            self.norm += float(some.square().sum())


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
    waiting: list[Future[None]] = []
    with ThreadPoolExecutor(1) as writer:
        for first in range(0, rows, step):
            piece = raw(stage.rows(first, min(first + step, rows)))
            if waiting:
                waiting.pop().result()
            waiting.append(writer.submit(write_at, file, piece, offset))
            offset += piece.nbytes
        for future in waiting:
            future.result()


@dataclasses.dataclass(frozen=True)
class Finished:
    """A finished block.

    Args:
        key: of what was computed, :attr:`Recipe.key`.
        columns: first and last.
        file: its shape, type, size and checksum.
        error: sum of the squared rounding errors of the sampled rows.
        norm: sum of the squares of those rows.
    """

    key: str
    columns: tuple[int, int]
    file: ArrayFile
    error: float
    norm: float


def record_path(folder: Path, index: int) -> Path:
    """The record of a block."""
    return (folder / block_name(index)).with_suffix(".json")


def read_finished(
    folder: Path, index: int, key: str, columns: tuple[int, int], *, check: bool = True
) -> Finished | None:
    """The record of a block, if it is of this recipe and fits its file."""
    try:
        fields = json.loads(record_path(folder, index).read_text(encoding="utf-8"))
        fields["file"]["shape"] = tuple(fields["file"]["shape"])
        fields["file"] = ArrayFile(**fields["file"])
        found = Finished(**{**fields, "columns": tuple(fields["columns"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    path = folder / block_name(index)
    if (found.key, found.columns) != (key, columns):
        return None
    if not path.is_file() or path.stat().st_size != found.file.bytes:
        return None
    return found if not check or checksum(path) == found.file.checksum else None


class BlockFile:
    """A block's file while it is written; ranks that share its rows write one after the header."""

    def __init__(self, folder: Path, index: int, shape: tuple[int, int, int], dtype: str) -> None:
        self.folder, self.index, self.shape, self.dtype = folder, index, shape, dtype
        self.path = folder / block_name(index)
        self.temporary = folder / f".{self.path.name}.part"

    def create(self) -> None:
        """An empty file with the header, as long as it will be."""
        with writing(self.path), self.temporary.open("wb") as file:
            described = {"descr": self.dtype, "fortran_order": False, "shape": self.shape}
            np.lib.format.write_array_header_1_0(file, described)
            file.truncate(file.tell() + self._bytes(self.shape[0]))

    def _bytes(self, rows: int) -> int:
        return int(rows * self.shape[1] * self.shape[2] * np.dtype(self.dtype).itemsize)

    def open(self) -> int:
        """A descriptor to write rows to."""
        return os.open(self.temporary, os.O_RDWR)

    def offset(self, row: int) -> int:
        """Where a row begins."""
        total = self.temporary.stat().st_size
        return total - self._bytes(self.shape[0]) + self._bytes(row)

    def finish(self, key: str, columns: tuple[int, int], error: float, norm: float) -> Finished:
        """Give the file its name, and write its record."""
        file = describe(self.temporary)
        self.temporary.replace(self.path)
        found = Finished(key, columns, file, error, norm)
        record: dict[str, Any] = dataclasses.asdict(found)
        write_json(record_path(self.folder, self.index), record)
        return found


#: Writes a block and returns its file.
Write = Callable[[], Path]


class Outgoing:
    """At most one block is being written; :meth:`put` waits for the one before.

    Args:
        on_done: called in the caller's thread for each block that is written.
        ahead: write in a thread; else :meth:`put` returns when the block is written.
    """

    def __init__(self, on_done: Callable[[], None], *, ahead: bool) -> None:
        self._on_done, self._ahead = on_done, ahead
        self._writer, self._syncer = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._writing: Future[Path] | None = None
        self._syncing: list[Future[None]] = []

    def put(self, write: Write) -> None:
        """Write one more block."""
        self.wait()
        if self._ahead:
            self._writing = self._writer.submit(write)
        else:
            self._sync(write())

    def wait(self) -> None:
        """Until what was put is written; an error of the disk is raised here."""
        if self._writing is not None:
            written, self._writing = self._writing, None
            self._sync(written.result())

    def _sync(self, path: Path) -> None:
        # The disk works on while the next block is computed.
        self._syncing.append(self._syncer.submit(_sync, path))
        self._on_done()

    def __enter__(self) -> "Outgoing":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self.wait()
                for future in self._syncing:
                    future.result()
        finally:
            self._writer.shutdown()
            self._syncer.shutdown()


def _sync(path: Path) -> None:
    """Wait until a file is on the disk."""
    with writing(path), path.open("rb") as file:
        os.fsync(file.fileno())
