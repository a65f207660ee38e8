"""Who computes what, where ``torchrun`` started several processes: ranks.

Ranks that compute terms share the blocks of columns, and need nothing of each other until all are
done. Ranks in training share the rows of every batch, and add up what they found.
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
        number, count: its place among all ranks, and how many they are.

    >>> Ranks(1, 2).blocks(5)
    [1, 3]
    >>> [Ranks(number, 2).share(5) for number in (0, 1)]
    [slice(0, 2, None), slice(2, 5, None)]
    """

    number: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether it writes what only one may write."""
        return self.number == 0

    def share(self, count: int) -> slice:
        """Its part of ``count`` things that all ranks share, as even as can be; perhaps empty."""
        return slice(count * self.number // self.count, count * (self.number + 1) // self.count)

    def blocks(self, count: int) -> list[int]:
        """Its blocks, of ``count``."""
        return list(range(self.number, count, self.count))

    def wait(self) -> None:
        """Until all ranks are here."""
        if self.count > 1:
            with _answered():
                dist.barrier()

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


def join_ranks(device: str = "cpu") -> Ranks:
    """This process's place among those that ``torchrun`` started; alone without it.

    Args:
        device: that computes: NCCL moves tensors between GPUs, gloo between CPUs, and between
            ranks that share a GPU. Rank i of a machine takes GPU i.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if dist.is_available() and dist.is_initialized():
        world = dist.get_world_size()
    if world == 1:
        return Ranks()
    if not dist.is_initialized():
        dist.init_process_group(_backend(device), timeout=PATIENCE)
    return Ranks(dist.get_rank(), world)


def _backend(device: str) -> str:
    """What moves tensors; on GPUs, each rank's own becomes the current one."""
    if device == "cpu":
        return "gloo"
    count, here = torch.cuda.device_count(), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % count)
    return "cpu:gloo,cuda:nccl" if here <= count else "gloo"
