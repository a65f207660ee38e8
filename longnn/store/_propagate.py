r"""From a graph on disk to :math:`T_0(P) X, \dots, T_K(P) X` on disk, by blocks of columns.

A block needs the graph and two arrays (nodes x columns), and no other block. While one is written
the next is computed, where memory allows. What is finished stays: a process that is killed loses
the block it computed and the one it wrote, and goes on from there.
"""

import contextlib
import dataclasses
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from longnn._base.files import TEMPORARY, try_lock, write_json, writing
from longnn._base.memory import LEAST, available_memory, in_words
from longnn.graphs._adjacency import SelfLoops
from longnn.store._adjacency import Adjacency, forget
from longnn.store._arrays import NAME, ArrayFile, Manifest, StoreError, checksum, describe
from longnn.store._basis import ROWS, BasisStore, add_ones, block_name
from longnn.store._blocks import (
    BlockFile,
    Finished,
    Keeper,
    Memory,
    Outgoing,
    Scratch,
    read_finished,
    write_rows,
)
from longnn.store._graph import GraphStore
from longnn.store._plan import STORED, Plan, Recipe, Size, make_plan, starts
from longnn.store._ranks import Ranks, join_ranks
from longnn.store._terms import Recurrence, Team, rows_per_rank, team

#: How the columns are cut, written before the first block.
PLAN = "plan.json"
LOCK = ".lock"
#: Share of the free memory that is taken where none is given.
SHARE = 0.5
#: Of a GPU's.
GPU_SHARE = 0.9

Kept = Literal["all", "labelled"]


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far this process is.

    Args:
        blocks: of this process.
        done: of them, those that an earlier process finished included.
        share: of all its work, from 0 to 1.
        seconds_left: at the pace until now; None before the first step.
    """

    blocks: int
    done: int
    share: float
    seconds_left: float | None


Tell = Callable[[Progress], None]


def propagate(
    graph: GraphStore | str | Path,
    *,
    degree: int = 10,
    self_loops: SelfLoops = "keep",
    edge_type: int | None = None,
    dtype: str = "float32",
    rows: Kept = "all",
    memory: int | None = None,
    threads: int | None = None,
    device: str = "cpu",
    output: str | Path | None = None,
    row_ranks: int = 1,
    ranks: Ranks | None = None,
    on_progress: Tell | None = None,
) -> BasisStore:
    r"""Compute :math:`T_j(P) X` for j = 0 .. K, or open what was computed before.

    Started by ``torchrun``, the ranks share the blocks; the folder must be one that all can write.

    Args:
        graph: a prepared folder.
        degree: K.
        self_loops: ``"keep"``, ``"add"`` or ``"remove"``, as for
            :class:`~longnn.graphs.GraphOperator`.
        edge_type: the number of a type of edges; by default all edges.
        dtype: on disk: ``"float32"``, ``"float16"`` or ``"bfloat16"``. Sums are taken in float32.
        rows: ``"all"``, or only those that are ``"labelled"``.
        memory: bytes that this process may take; by default half of what is free. On a GPU, of the
            GPU's memory.
        threads: by default as many as torch has.
        device: ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        output: the folder of the basis; by default ``basis-KEY`` in the graph's.
        row_ranks: ranks that share the rows of the graph, where it is too large for one.
        ranks: who computes; by default all that ``torchrun`` started.
        on_progress: called after each step.

    Raises:
        StoreError: for a damaged graph, a folder that holds another basis, features that are not
            finite, or too little room on the disk.
        MemoryError: where the memory is too small for one column.
        OSError: for a folder that cannot be written; what is finished stays.
    """
    graph = graph if isinstance(graph, GraphStore) else GraphStore.open(graph)
    whole = checksum(graph.folder / NAME)
    recipe = Recipe(degree, self_loops, dtype, rows, whole, edge_type)
    folder = graph.folder / f"basis-{recipe.key}" if output is None else Path(output)
    found = _find(folder, recipe)
    if found is not None:
        return found
    if ranks is None:
        ranks = join_ranks(row_ranks, device=torch.device(device).type)
    kept = _kept_nodes(graph, rows)
    size = _size(graph, recipe, kept, ranks, device)
    budget = _budget(memory, device)
    if ranks.first:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder) if ranks.first else contextlib.nullcontext():
        plan = ranks.agree(_settle(folder, recipe, size, budget) if ranks.first else None)
        job = _Job(graph, recipe, folder, plan, kept, ranks, torch.device(device))
        with team(torch.get_num_threads() if threads is None else threads) as hands:
            job.run(hands, on_progress or (lambda progress: None))
        ranks.wait()
        if ranks.first:
            job.complete()
        ranks.wait()
    return BasisStore.open(folder)


def _find(folder: Path, recipe: Recipe) -> BasisStore | None:
    """The finished basis of a folder, all files in their size.

    A file that is missing or cut off is no error: its block is computed again.
    """
    if not (folder / NAME).exists():
        return None
    found = BasisStore.open(folder)
    own = {name: found.about.get(name) for name in dataclasses.asdict(recipe)}
    if own != dataclasses.asdict(recipe):
        wrong = [name for name, value in dataclasses.asdict(recipe).items() if own[name] != value]
        raise StoreError(
            f"Expected the terms of this graph in {folder} (got others: {', '.join(wrong)} "
            "differ); choose another folder, or delete that one"
        )
    try:
        _ = found.blocks, found.rows
    except StoreError:
        return None
    return found


def _kept_nodes(graph: GraphStore, rows: Kept) -> np.ndarray | None:
    """int64 (rows,): the rows to keep, ascending; None: all."""
    if rows == "all":
        return None
    if rows != "labelled":
        raise ValueError(f"Expected `rows` to be 'all' or 'labelled' (got {rows!r})")
    labelled = graph.labelled
    if len(labelled) == 0:
        raise StoreError(f"Expected labelled nodes in {graph.folder} (got none); keep all rows")
    return graph.rows_of(labelled)


def _size(
    graph: GraphStore, recipe: Recipe, kept: np.ndarray | None, ranks: Ranks, device: str
) -> Size:
    if graph.num_features == 0 or graph.num_nodes == 0:
        raise StoreError(
            f"Expected nodes with features in {graph.folder} (got {graph.num_nodes} nodes and "
            f"{graph.num_features} features)"
        )
    return Size(
        nodes=graph.num_rows,
        entries=graph.copies * graph.num_entries * (2 if graph.weighted else 1),  # a weight is wide
        columns=graph.num_features,
        kept=graph.num_rows if kept is None else len(kept),
        term_bytes=(recipe.degree + 1) * recipe.itemsize,
        row_ranks=ranks.row_ranks,
        column_ranks=ranks.column_ranks,
        scratch=torch.device(device).type == "cpu",
    )


def _budget(memory: int | None, device: str) -> int:
    if torch.device(device).type == "cuda":
        free = torch.cuda.mem_get_info(torch.device(device))[0]
        return int(GPU_SHARE * free) if memory is None else memory
    free = available_memory() or 1 << 62
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if memory is None:
        return int(SHARE * free) // local if free < 1 << 62 else 4 << 30
    if memory > free:
        raise MemoryError(
            f"Expected `memory` within what is free, {in_words(free)} (got {in_words(memory)})"
        )
    return memory


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else computes into this folder meanwhile."""
    with writing(folder / LOCK), (folder / LOCK).open("wb") as file:
        if not try_lock(file):
            raise StoreError(f"Expected {folder} for this process alone (another writes to it)")
        for left in [*folder.glob(TEMPORARY), *folder.glob(".*.part")]:
            left.unlink(missing_ok=True)  # of a process that was killed
        yield


def _settle(folder: Path, recipe: Recipe, size: Size, memory: int) -> Plan:
    """The plan of an earlier process, where it is of this recipe and fits; else a new one."""
    plan = make_plan(size, memory)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        fields = json.loads((folder / PLAN).read_text(encoding="utf-8"))
        old = fields["columns"]
        same = fields["recipe"] == dataclasses.asdict(recipe) and sum(old) == size.columns
        if same and max(old) <= max(plan.columns):
            plan = dataclasses.replace(plan, columns=old)
    _require_disk(folder, recipe, size, plan)
    (folder / NAME).unlink(missing_ok=True)  # of a basis whose files are damaged
    fields = {"recipe": dataclasses.asdict(recipe), "columns": plan.columns}
    with writing(folder / PLAN):
        write_json(folder / PLAN, fields)
    return plan


def _require_disk(folder: Path, recipe: Recipe, size: Size, plan: Plan) -> None:
    """Room for the blocks that are missing, and for a scratch file."""
    one = size.kept * size.term_bytes  # of a column
    missing = [
        last - first
        for index, (first, last) in enumerate(starts(plan.columns))
        if read_finished(folder, index, recipe.key, (first, last), check=False) is None
    ]
    needed = one * sum(missing) + (0 if plan.staged else one * max(missing, default=0))
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise StoreError(
            f"Expected {in_words(needed)} free for {folder} (got {in_words(free)}); choose "
            "another folder, float16, or only the labelled rows"
        )


class _Job:
    """One process's blocks."""

    def __init__(
        self,
        graph: GraphStore,
        recipe: Recipe,
        folder: Path,
        plan: Plan,
        kept: np.ndarray | None,
        ranks: Ranks,
        device: torch.device,
    ) -> None:
        self.graph, self.recipe, self.folder, self.plan = graph, recipe, folder, plan
        self.kept, self.ranks, self.device = kept, ranks, device
        self.dtype: torch.dtype = getattr(torch, recipe.dtype)
        self.spans = starts(plan.columns)
        share = rows_per_rank(graph.num_rows, ranks.row_ranks)
        self.first = min(share * ranks.row_rank, graph.num_rows)
        self.last = min(self.first + share, graph.num_rows)
        #: The rows of a block's file that this rank writes.
        self.own = (self.first, self.last)
        if kept is not None:
            low, high = np.searchsorted(kept, self.own)
            self.own = (int(low), int(high))
        self.scaling = graph.scaling
        # Arrays that the next block of the same width takes over: new ones would be cleared first.
        self._recurrence: Recurrence | None = None
        self._spare: list[Memory] = []

    def run(self, hands: Team, tell: Tell) -> None:
        """Compute the blocks of this rank that are missing."""
        todo = [i for i in self.ranks.blocks(len(self.spans)) if self._finished(i) is None]
        if not todo:
            return
        adjacency = Adjacency(
            self.graph,
            self.recipe.self_loops,  # type: ignore[arg-type]
            number=self.recipe.edge_type,
            first=self.first,
            last=self.last,
            device=self.device,
            resident=self.plan.resident,
        )
        clock = _Clock(len(self.ranks.blocks(len(self.spans))), len(todo), self.recipe.degree, tell)
        ahead = self.plan.ahead and self.plan.staged
        with Outgoing(clock.block, ahead=ahead) as outgoing:
            for index in todo:
                keeper = self._block(index, adjacency, hands, clock)
                outgoing.put(partial(self._write, index, keeper))

    def _finished(self, index: int) -> Finished | None:
        """What is known of a block; all ranks of its rows hear the same."""
        found = read_finished(self.folder, index, self.recipe.key, self.spans[index])
        missing = self.ranks.total([float(found is None)])[0]
        return None if missing else found

    def _block(self, index: int, adjacency: Adjacency, hands: Team, clock: "_Clock") -> Keeper:
        """Compute a block; its terms wait to be written."""
        first, last = self.spans[index]
        low, high = self.own
        shape = (self.recipe.degree + 1, high - low, last - first)
        try:
            stage = self._stage(shape)
            if self._recurrence is None or self._recurrence.columns != last - first:
                self._recurrence = None  # its memory goes first
                self._recurrence = Recurrence(adjacency, last - first, hands, self.ranks.group)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "memory" not in str(error):
                raise
            raise MemoryError(
                f"Expected {in_words(self.plan.bytes)} for a block of {last - first} columns (the "
                "system gave less); give less with --memory"
            ) from error
        kept = None if self.kept is None else self.kept[low:high]
        keeper = Keeper(stage, self.dtype, kept, self.first, self.graph.num_rows)
        load = lambda start, stop: self._load(start, stop, first, last)  # noqa: E731
        try:
            self._recurrence.run(load, keeper.put, self.recipe.degree, clock.step)
        except BaseException:
            stage.close()
            raise
        return keeper

    def _stage(self, shape: tuple[int, int, int]) -> Memory | Scratch:
        """Where the terms of a block wait: what an earlier block left, or something new."""
        if not self.plan.staged:
            with writing(self.folder):
                return Scratch(shape, self.dtype, self.folder)
        if self._spare and self._spare[-1].shape == shape:
            return self._spare.pop()
        self._spare.clear()  # its memory goes first
        return Memory(shape, self.dtype, self.device)

    def _load(self, start: int, stop: int, first: int, last: int) -> Tensor:
        """Rows of the features of a block, float32 (rows, columns), scaled: few bits must do."""
        features = self.graph.features
        start, stop = (end - start // len(features) * len(features) for end in (start, stop))
        found = np.array(features[start:stop, first:last], dtype=np.float32, order="C")
        if not np.isfinite(found).all():
            row, column = np.argwhere(~np.isfinite(found))[0]
            raise StoreError(
                f"Expected finite features in {self.graph.folder} (got {found[row, column]} at "
                f"node {start + row}, column {first + column}); fill or remove them"
            )
        if features.flags.f_contiguous:
            flat = features.reshape(-1, order="F")
            for column in range(first, last):
                forget(flat, column * len(features) + start, column * len(features) + stop)
        return self.scaling.of(slice(first, last)).apply(torch.from_numpy(found)).to(self.device)

    def _write(self, index: int, keeper: Keeper) -> Path:
        """The block's file, each rank its rows; then its record."""
        rows = self.graph.num_rows if self.kept is None else len(self.kept)
        first, last = self.spans[index]
        shape = (rows, self.recipe.degree + 1, last - first)
        file = BlockFile(self.folder, index, shape, STORED[self.recipe.dtype])
        leads = self.ranks.row_rank == 0
        if leads:
            file.create()
        self.ranks.wait_rows()
        with writing(file.path):
            descriptor = file.open()
            try:
                write_rows(keeper.stage, descriptor, file.offset(self.own[0]))
            finally:
                os.close(descriptor)
                keeper.stage.close()
        if isinstance(keeper.stage, Memory):
            self._spare.append(keeper.stage)
        error, norm = self.ranks.total([keeper.error, keeper.norm])  # all rows are written
        if leads:
            file.finish(self.recipe.key, (first, last), error, norm)
        self.ranks.wait_rows()
        return file.path

    def complete(self) -> None:
        """Write the manifest: all blocks are there."""
        blocks = [
            read_finished(self.folder, index, self.recipe.key, span, check=False)
            for index, span in enumerate(self.spans)
        ]
        missing = [block_name(i) for i, block in enumerate(blocks) if block is None]
        if missing:
            raise StoreError(
                f"Expected all blocks in {self.folder} (got no {missing[0]}); all ranks must see "
                "the same folder"
            )
        found = [block for block in blocks if block is not None]
        files: dict[str, ArrayFile] = {block_name(i): one.file for i, one in enumerate(found)}
        if self.kept is not None:
            with writing(self.folder / ROWS):
                np.save(self.folder / ROWS, self.kept)
            files[ROWS] = describe(self.folder / ROWS)
        error, norm = sum(block.error for block in found), sum(block.norm for block in found)
        about: dict[str, Any] = {
            **dataclasses.asdict(self.recipe),
            "nodes": self.graph.num_nodes,
            "columns": self.plan.columns,
            # the relative error of what is on disk, in the Frobenius norm, with three digits
            "rounding": float(f"{(error / norm) ** 0.5:.3g}") if norm > 0 else 0.0,
        }
        Manifest("basis", about, files).write(self.folder)


class _Clock:
    """How much is done, and how long the rest takes."""

    def __init__(self, blocks: int, todo: int, degree: int, tell: Tell) -> None:
        self.blocks, self.todo, self.degree, self.tell = blocks, todo, degree, tell
        self.done, self.units, self.started = 0, 0, time.perf_counter()

    def step(self, degree: int) -> None:
        """A degree is done."""
        self._tell()

    def block(self) -> None:
        """A block is written."""
        self.done += 1
        self._tell()

    def _tell(self) -> None:
        self.units += 1  # a degree, or a block that is written
        done = self.units / (self.degree + 2)  # blocks
        before = self.blocks - self.todo
        left = (time.perf_counter() - self.started) * (self.todo - done) / done
        share = (before + done) / self.blocks
        self.tell(Progress(self.blocks, before + self.done, share, left))


#: Of the free disk, the share that the terms of all nodes may take.
DISK_SHARE = 0.8
SIZES = {"float32": 4, "float16": 2, "bfloat16": 2}


def serving_basis(
    graph: GraphStore,
    *,
    degree: int,
    self_loops: SelfLoops,
    edge_type: int | None = None,
    nodes: np.ndarray | None = None,
) -> BasisStore | None:
    """Terms in the folder of a graph that serve: of this graph, of these nodes, of this degree or a
    higher one; None where there are none.

    Args:
        graph: the stored graph.
        degree: K, at least.
        self_loops: what became of self loops.
        edge_type: the number of a type of edges; by default all edges.
        nodes: int64 (count,), ascending, those that must be there; None for all.
    """
    wanted = (checksum(graph.folder / NAME), self_loops, edge_type)
    for manifest in sorted(graph.folder.glob(f"basis-*/{NAME}")):
        try:
            found = BasisStore.open(manifest.parent)
        except StoreError:  # of another version, or damaged: as if it were not there
            continue
        held = tuple(found.about.get(key) for key in ("graph", "self_loops", "edge_type"))
        if held != wanted or found.degree < degree:
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
    edge_type: int | None = None,
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
    which: Any = {"degree": degree, "self_loops": self_loops, "edge_type": edge_type}

    def find() -> BasisStore | None:
        return serving_basis(graph, nodes=nodes, **which)

    found = find()
    if not ranks.agree(found is not None):
        size = graph.num_rows * (degree + 1) * graph.num_features * SIZES[dtype]
        room = ranks.agree(size <= DISK_SHARE * shutil.disk_usage(graph.folder).free)
        found = propagate(
            graph,
            **which,
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
