"""Who computes what: ranks that ``torchrun`` started share the columns, and the rows if asked to.

Ranks with other columns need nothing of each other until all are done. Ranks that share the rows
of a graph that fits none of them alone exchange the current columns after each step. Ranks in
training share the rows of every batch, and add up what they found.
"""

import contextlib
import dataclasses
import datetime
import os
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh

#: Ranks wait so long for each other: a block may take hours. ``torchrun`` notices dead ranks.
PATIENCE = datetime.timedelta(hours=24)


class RankLostError(ConnectionError):
    """Another rank has ended; what it printed says why."""


@contextlib.contextmanager
def _answered() -> Iterator[None]:
    """Say in a line that another rank is gone."""
    try:
        yield
    except RuntimeError as error:
        raise RankLostError(
            "Expected all processes of torchrun to be there (another one has ended)"
        ) from error


@dataclasses.dataclass(frozen=True)
class Ranks:
    """This process among all.

    Args:
        column_rank, column_ranks: its place among those that share the columns.
        row_rank, row_ranks: its place among those that share the rows of the same columns.
        group: of those that share its rows; None if it is alone with them.

    >>> Ranks().blocks(3)
    [0, 1, 2]
    >>> Ranks(column_rank=1, column_ranks=2).blocks(5)
    [1, 3]
    >>> [Ranks(column_rank=rank, column_ranks=2).share(5) for rank in (0, 1)]
    [slice(0, 2, None), slice(2, 5, None)]
    """

    column_rank: int = 0
    column_ranks: int = 1
    row_rank: int = 0
    row_ranks: int = 1
    group: Any = None

    @property
    def first(self) -> bool:
        """Whether it writes what only one may write."""
        return self.column_rank == 0 and self.row_rank == 0

    @property
    def count(self) -> int:
        """All ranks."""
        return self.column_ranks * self.row_ranks

    @property
    def number(self) -> int:
        """Its place among all."""
        return self.column_rank * self.row_ranks + self.row_rank

    def share(self, count: int) -> slice:
        """Its part of ``count`` things that all ranks share, as even as can be; perhaps empty."""
        return slice(count * self.number // self.count, count * (self.number + 1) // self.count)

    def blocks(self, count: int) -> list[int]:
        """Its blocks, of ``count``."""
        return list(range(self.column_rank, count, self.column_ranks))

    def wait(self) -> None:
        """Until all ranks are here."""
        if self.count > 1:
            with _answered():
                dist.barrier()

    def wait_rows(self) -> None:
        """Until all that share its rows are here."""
        if self.group is not None:
            dist.barrier(self.group)

    def agree(self, value: Any) -> Any:
        """The value of the first rank, for all."""
        if self.count == 1:
            return value
        held = [value]
        with _answered():
            dist.broadcast_object_list(held, src=0)
        return held[0]

    def any(self, truth: bool) -> bool:
        """Whether it is true for any rank; all hear the same."""
        return bool(self.add([torch.tensor([float(truth)])])[0])

    def least(self, value: int) -> int:
        """The least value of any rank; all hear the same."""
        own = torch.zeros(self.count, dtype=torch.int64)
        own[self.number] = value
        return int(self.add([own])[0].min())

    def add(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Sums over all ranks, of tensors of one type on one device: one exchange for all."""
        if self.count == 1:
            return list(values)
        flat = torch.cat([value.reshape(-1) for value in values])
        with _answered():
            dist.all_reduce(flat)
        parts = flat.split([value.numel() for value in values])
        return [part.view_as(value) for part, value in zip(parts, values, strict=True)]

    def join(self, own: Tensor, count: int, dim: int = 0) -> Tensor:
        """All of ``count`` things along a dimension, of which each rank has its share: with zeros
        for those of the others, the sum has them all."""
        if self.count == 1:
            return own
        mine = self.share(count)
        every = own.new_zeros(*own.shape[:dim], count, *own.shape[dim + 1 :])
        every.narrow(dim, mine.start, mine.stop - mine.start).copy_(own)
        return self.add([every])[0]

    def total(self, values: list[float]) -> list[float]:
        """Sums over those that share its rows."""
        if self.group is None:
            return values
        held = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(held, group=self.group)
        return [float(v) for v in held]


def join_ranks(row_ranks: int = 1, *, device: str = "cpu") -> Ranks:
    """This process's place among those that ``torchrun`` started; alone without it.

    Args:
        row_ranks: ranks that share the rows of the graph.
        device: that computes: NCCL moves tensors between GPUs, gloo between CPUs, and between
            ranks that share a GPU. Rank i of a machine takes GPU i.

    Raises:
        ValueError: where the number of ranks is no multiple of ``row_ranks``.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if dist.is_available() and dist.is_initialized():
        world = dist.get_world_size()
    if row_ranks < 1 or world % row_ranks:
        raise ValueError(
            f"Expected a number of ranks that `row_ranks` divides (got {world} ranks and "
            f"{row_ranks} row ranks); start them with torchrun"
        )
    if world == 1:
        return Ranks()
    if not dist.is_initialized():
        dist.init_process_group(_backend(device), timeout=PATIENCE)
    rank = dist.get_rank()
    if row_ranks == 1:
        return Ranks(rank, world)
    kind = "cpu" if device == "cpu" else "cuda"
    mesh = init_device_mesh(
        kind, (world // row_ranks, row_ranks), mesh_dim_names=("columns", "rows")
    )
    return Ranks(
        rank // row_ranks, world // row_ranks, rank % row_ranks, row_ranks, mesh.get_group("rows")
    )


def _backend(device: str) -> str:
    """What moves tensors; on GPUs, each rank's own becomes the current one."""
    if device == "cpu":
        return "gloo"
    count, here = torch.cuda.device_count(), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % count)
    return "cpu:gloo,cuda:nccl" if here <= count else "gloo"
