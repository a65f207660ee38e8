r"""From a graph on disk to :math:`T_0(P) X, \dots, T_K(P) X` on disk, by blocks of columns.

A block needs the graph and two arrays (nodes x columns), and no other block. What is finished
stays: a process that is killed loses the block it was at, and goes on from there.
"""

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from longnn._base.files import TEMPORARY, writing
from longnn._base.memory import LEAST, available_memory, in_words
from longnn._base.schema import to_plain
from longnn.data._dataset import known_labels
from longnn.graphs._adjacency import SelfLoops
from longnn.store._adjacency import Adjacency, forget
from longnn.store._arrays import (
    HEADER,
    NAME,
    ArrayFile,
    Manifest,
    StoreError,
    alone,
    checksum,
    header,
    require_disk,
)
from longnn.store._basis import ROWS, STORED, BasisStore, Recipe, Terms, block_name
from longnn.store._blocks import (
    Block,
    Keeper,
    Memory,
    Plan,
    Scratch,
    make_plan,
    read_record,
    record_path,
    spans_of,
    write_rows,
)
from longnn.store._graph import GraphStore
from longnn.store._ranks import Ranks, join_ranks
from longnn.store._terms import Recurrence, Team

#: How the columns are cut, written before the first block.
PLAN = "plan.json"
#: Share of the free memory of a GPU that is taken where none is given.
GPU_SHARE = 0.9
#: Of the free disk, the share that the terms of all nodes may take.
DISK_SHARE = 0.8

Kept = Literal["all", "labelled"]
#: Called with the number of blocks that are done, in words, and the share of the work.
OnProgress = Callable[[str, float], None]


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
    ranks: Ranks | None = None,
    on_progress: OnProgress | None = None,
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
        ranks: who computes; by default all that ``torchrun`` started.
        on_progress: called after each step.

    Returns:
        the terms, in the folder ``basis-KEY`` in the graph's.

    Raises:
        StoreError: for a damaged graph, features that are not finite, or too little room on the
            disk.
        MemoryError: where the memory is too small for one column.
        OSError: for a folder that cannot be written; what is finished stays.
    """
    graph = graph if isinstance(graph, GraphStore) else GraphStore.open(graph)
    whole = checksum(graph.folder / NAME)
    recipe = Recipe(degree, self_loops, dtype, rows, whole, edge_type)
    folder = graph.folder / f"basis-{recipe.key}"
    if (folder / NAME).exists():
        finished = BasisStore.open(folder)
        if finished.manifest.is_whole(folder):  # else a block is computed again
            return finished
    if ranks is None:
        ranks = join_ranks(torch.device(device).type)
    kept = _kept_nodes(graph, rows)
    plan = make_plan(
        nodes=graph.num_rows,
        entries=graph.copies * graph.num_entries * (2 if graph.weighted else 1),  # a weight is wide
        columns=graph.num_features + 1,
        staged_bytes=recipe.term_bytes * (graph.num_rows if kept is None else len(kept)),
        memory=_budget(memory, device),
        ranks=ranks.count,
        scratch=torch.device(device).type == "cpu",
    )
    with alone(folder) if ranks.first else contextlib.nullcontext():
        plan = ranks.agree(_settle(folder, recipe, plan) if ranks.first else None)
        job = _Job(graph, recipe, folder, plan, kept, ranks, torch.device(device), on_progress)
        with Team(torch.get_num_threads() if threads is None else threads) as team:
            job.run(team)
        ranks.wait()
        if ranks.first:
            job.complete()
        ranks.wait()
    return BasisStore.open(folder)


def _kept_nodes(graph: GraphStore, rows: Kept) -> np.ndarray | None:
    """int64 (rows,): the rows to keep, ascending; None: all."""
    if rows == "all":
        return None
    if rows != "labelled":
        raise ValueError(f"Expected `rows` to be 'all' or 'labelled' (got {rows!r})")
    labelled = np.flatnonzero(known_labels(graph.answers["y"], graph.about.task))
    if len(labelled) == 0:
        raise StoreError(f"Expected labelled nodes in {graph.folder} (got none); keep all rows")
    return graph.rows_of(labelled)


def _budget(memory: int | None, device: str) -> int:
    if torch.device(device).type == "cuda":
        left = torch.cuda.mem_get_info(torch.device(device))[0]
        return int(GPU_SHARE * left) if memory is None else memory
    free = available_memory()
    if memory is None:
        ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        return 4 << 30 if free is None else free // 2 // ranks
    if free is not None and memory > free:
        raise MemoryError(
            f"Expected `memory` within what is free, {in_words(free)} (got {in_words(memory)})"
        )
    return memory


def _settle(folder: Path, recipe: Recipe, plan: Plan) -> Plan:
    """The plan of an earlier process, where its blocks are no wider than those of this one."""
    for left in [*folder.glob(TEMPORARY), *folder.glob(".*.part")]:
        left.unlink(missing_ok=True)  # of a process that was killed
    with contextlib.suppress(StoreError):
        old = Manifest.read(folder / PLAN, "plan", Block)[1]
        if old.key == recipe.key and max(old.columns) <= max(plan.columns):
            plan = dataclasses.replace(plan, columns=[*old.columns])
    missing = [  # blocks; and a scratch file for the widest
        last - first
        for index, (first, last) in enumerate(spans_of(plan.columns))
        if read_record(folder, index, recipe.key, (first, last), check=False) is None
    ]
    needed = plan.staged_bytes * (sum(missing) + (0 if plan.staged else max(missing, default=0)))
    require_disk(folder, needed, "choose another folder, float16, or only the labelled rows")
    (folder / NAME).unlink(missing_ok=True)  # of a basis whose files are damaged
    cut = Block(recipe.key, tuple(plan.columns))
    Manifest("plan", to_plain(cut), {}).write(folder / PLAN)
    return plan


@dataclasses.dataclass
class _Job:
    """One process's blocks."""

    graph: GraphStore
    recipe: Recipe
    folder: Path
    plan: Plan
    kept: np.ndarray | None  # int64 (rows,): the rows to keep, ascending; None: all
    ranks: Ranks
    device: torch.device
    on_progress: OnProgress | None

    def __post_init__(self) -> None:
        self.dtype: torch.dtype = getattr(torch, self.recipe.dtype)
        self.spans, self.scaling = spans_of(self.plan.columns), self.graph.scaling
        self.rows = self.graph.num_rows if self.kept is None else len(self.kept)
        # Arrays that the next block of the same width takes over: new ones would be cleared first.
        self._recurrence: Recurrence | None = None
        self._spare: Memory | None = None
        self._done = self._steps = 0  # blocks, and degrees of blocks

    def run(self, team: Team) -> None:
        """Compute the blocks of this rank that are missing."""
        mine = self.ranks.blocks(len(self.spans))
        key, spans = self.recipe.key, self.spans
        todo = [i for i in mine if read_record(self.folder, i, key, spans[i]) is None]
        if not todo:
            return
        self._done = len(mine) - len(todo)
        self._steps = self._done * (self.recipe.degree + 2)
        adjacency = Adjacency(
            self.graph,
            self.recipe.self_loops,  # type: ignore[arg-type]
            number=self.recipe.edge_type,
            device=self.device,
            resident=self.plan.resident,
        )
        for index in todo:
            self._write(index, self._block(index, adjacency, team))
            self._tell(block=True)
        for index in todo:  # by now the disk has most of them
            path = self.folder / block_name(index)
            with writing(path), path.open("rb") as file:
                os.fsync(file.fileno())

    def _tell(self, *, block: bool = False) -> None:
        """One more degree is computed, or one more block is on the disk."""
        self._done, self._steps = self._done + block, self._steps + 1
        if self.on_progress is not None:
            blocks = len(self.ranks.blocks(len(self.spans)))
            share = self._steps / (blocks * (self.recipe.degree + 2))
            self.on_progress(f"{self._done} of {blocks} blocks", share)

    def _block(self, index: int, adjacency: Adjacency, team: Team) -> Keeper:
        """Compute a block; its terms wait to be written."""
        first, last = self.spans[index]
        shape = (self.recipe.degree + 1, self.rows, last - first)
        try:
            stage = self._stage(shape)
            if self._recurrence is None or self._recurrence.columns != last - first:
                self._recurrence = None  # its memory goes first
                self._recurrence = Recurrence(adjacency, last - first, team)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "memory" not in str(error):
                raise
            raise MemoryError(
                f"Expected {in_words(self.plan.bytes)} for a block of {last - first} columns (the "
                "system gave less); give less with --memory"
            ) from error
        keeper = Keeper(stage, self.dtype, self.kept, self.graph.num_rows)
        load = lambda start, stop: self._load(start, stop, first, last)  # noqa: E731
        try:
            self._recurrence.run(load, keeper.put, self.recipe.degree, self._tell)
        except BaseException:
            stage.close()
            raise
        return keeper

    def _stage(self, shape: tuple[int, int, int]) -> Memory | Scratch:
        """Where the terms of a block wait: what an earlier block left, or something new."""
        if not self.plan.staged:
            with writing(self.folder):
                return Scratch(shape, self.dtype, self.folder)
        if self._spare is None or self._spare.shape != shape:
            self._spare = None  # its memory goes first
            self._spare = Memory(shape, self.dtype, self.device)
        return self._spare

    def _load(self, start: int, stop: int, first: int, last: int) -> Tensor:
        """Rows of a block of features and the constant, float32 (rows, columns); features scaled:
        few bits must do."""
        features = self.graph.features
        nodes, width = features.shape
        start, stop = (end - start // nodes * nodes for end in (start, stop))
        x = np.array(features[start:stop, first : min(last, width)], np.float32, order="C")
        if not np.isfinite(x).all():
            row, column = np.argwhere(~np.isfinite(x))[0]
            raise StoreError(
                f"Expected finite features in {self.graph.folder} (got {x[row, column]} at "
                f"node {start + row}, column {first + column}); fill or remove them"
            )
        flat = features.reshape(-1, order="F")
        for column in range(first, min(last, width)):
            forget(flat, column * nodes + start, column * nodes + stop)
        scaled = self.scaling.of(slice(first, last)).apply(torch.from_numpy(x))
        if last > width:
            scaled = torch.cat([scaled, torch.ones(len(x), 1)], 1)
        return scaled.to(self.device)

    def _write(self, index: int, keeper: Keeper) -> None:
        """The block's file, then its record."""
        (first, last), name = self.spans[index], block_name(index)
        path, temporary = self.folder / name, self.folder / f".{name}.part"
        shape = (self.rows, self.recipe.degree + 1, last - first)
        with writing(path), temporary.open("wb", buffering=0) as file:
            try:
                file.write(header(np.dtype(STORED[self.recipe.dtype]), shape))
                write_rows(keeper.stage, file.fileno(), HEADER)
            finally:
                keeper.stage.close()
        files = {name: ArrayFile.of(temporary)}
        temporary.replace(path)
        block = Block(self.recipe.key, (first, last), keeper.error, keeper.norm)
        Manifest("block", to_plain(block), files).write(record_path(self.folder, index))

    def complete(self) -> None:
        """Write the manifest: all blocks are there."""
        files: dict[str, ArrayFile] = {}
        error = norm = 0.0
        for index, span in enumerate(self.spans):
            record = read_record(self.folder, index, self.recipe.key, span, check=False)
            if record is None:
                raise StoreError(
                    f"Expected all blocks in {self.folder} (got no {block_name(index)}); all ranks "
                    "must see the same folder"
                )
            manifest, block = record
            files |= manifest.files
            error, norm = error + block.error, norm + block.norm
        if self.kept is not None:
            with writing(self.folder / ROWS):
                np.save(self.folder / ROWS, self.kept)
            files[ROWS] = ArrayFile.of(self.folder / ROWS)
        # The relative error of what is on disk, in the Frobenius norm, with three digits.
        rounding = float(f"{(error / norm) ** 0.5:.3g}") if norm > 0 else 0.0
        terms = Terms(self.recipe, tuple(self.plan.columns), rounding)
        Manifest("basis", to_plain(terms), files).write(self.folder / NAME)


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
            basis = BasisStore.open(manifest.parent)
        except StoreError:  # of another version, or damaged: as if it were not there
            continue
        recipe = basis.about.recipe
        if (recipe.graph, recipe.self_loops, recipe.edge_type) != wanted or recipe.degree < degree:
            continue
        if basis.rows is None or (nodes is not None and bool(np.isin(nodes, basis.rows).all())):
            return basis
    return None


def ensure_basis(
    graph: GraphStore,
    nodes: np.ndarray,
    *,
    degree: int,
    self_loops: SelfLoops,
    edge_type: int | None = None,
    memory: int | None = None,
    ranks: Ranks | None = None,
) -> BasisStore:
    """The terms of some nodes; they are computed if they are not there.

    Where the disk has room they are computed for all nodes, which then can be predicted. Ranks
    share the work; by default the caller is alone.
    """
    ranks = Ranks() if ranks is None else ranks
    which: Any = {"degree": degree, "self_loops": self_loops, "edge_type": edge_type}
    basis = serving_basis(graph, nodes=nodes, **which)
    if not ranks.agree(basis is not None):
        size = 4 * graph.num_rows * (degree + 1) * (graph.num_features + 1)
        room = ranks.agree(size <= DISK_SHARE * shutil.disk_usage(graph.folder).free)
        basis = propagate(
            graph,
            **which,
            rows="all" if room else "labelled",
            memory=None if memory is None else max(memory, LEAST),
            ranks=ranks,
        )
    if basis is None:
        raise StoreError(
            f"Expected terms in {graph.folder} (another rank has found some); all ranks must see "
            "the same folder"
        )
    return basis
