"""Who computes what: ranks that ``torchrun`` started share the columns, and the rows if asked to.

Ranks with other columns need nothing of each other until all are done. Ranks that share the rows
of a graph that fits none of them alone exchange the current columns after each step.
"""

import dataclasses
import datetime
import os
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

#: Ranks wait so long for each other: a block may take hours. ``torchrun`` notices dead ranks.
PATIENCE = datetime.timedelta(hours=24)


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

    def blocks(self, count: int) -> list[int]:
        """Its blocks, of ``count``."""
        return list(range(self.column_rank, count, self.column_ranks))

    def wait(self) -> None:
        """Until all ranks are here."""
        if self.column_ranks * self.row_ranks > 1:
            dist.barrier()

    def wait_rows(self) -> None:
        """Until all that share its rows are here."""
        if self.group is not None:
            dist.barrier(self.group)

    def agree(self, value: Any) -> Any:
        """The value of the first rank, for all."""
        if self.column_ranks * self.row_ranks == 1:
            return value
        held = [value]
        dist.broadcast_object_list(held, src=0)
        return held[0]

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
        device: that computes: NCCL moves columns between GPUs, gloo between CPUs.

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
        backend = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
        dist.init_process_group(backend, timeout=PATIENCE)
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
