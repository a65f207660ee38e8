"""How many members fit into memory: measured, and fewer where it runs out all the same.

A GPU says when it is full, and then less is tried. A CPU's operating system ends the process
instead, so there the cost of a member is measured first.
"""

import contextlib
import gc
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from longnn._base.memory import LEAST, available_memory, in_words
from longnn.config import Config
from longnn.training._population import Population

#: Of the memory that is free, the share to use: other programs want some too.
SHARE = 0.7
#: Epochs until the peak: the second has Adam's state.
_EPOCHS = 2


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on whatever device.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(ValueError())
    (True, False)
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)


def require_room(config: Config, nodes: int, in_channels: int, out_channels: int) -> None:
    """Raise unless one model of this size can be trained in the memory of this machine.

    A lower bound: its weights, their gradients, Adam's two moments and the best weights so far,
    and one signal of hidden units at every node.

    Raises:
        ValueError: naming both numbers.
    """
    if config.options.get("transform") == "linear":  # without hidden units
        return
    size = 8 if config.precision == "float64" else 4
    weights = config.hidden_channels * (in_channels + out_channels)
    needed, free = size * (5 * weights + nodes * config.hidden_channels), available_memory()
    if free is not None and needed > free:
        raise ValueError(
            f"Expected a model that fits into memory (got hidden_channels="
            f"{config.hidden_channels} for {in_channels} features and {nodes} nodes, which need "
            f"{in_words(needed)}; {in_words(free)} are free); use fewer hidden units or features"
        )


def fits(call: Callable[[], object], device: torch.device) -> bool:
    """Make a call that needs memory; False if it ran out, with what it had taken given back."""
    try:
        call()
        return True
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    # The error held the frames that held the tensors; it is gone by now.
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return False


def count_fitting(
    make: Callable[[int], Population],
    count: int,
    device: torch.device,
    memory: int | None = None,
) -> int:
    """How many members, ``count`` at most, can be trained together.

    On a CPU populations of one and of two members are tried for a few epochs, or steps on rows;
    their difference is the cost of a member. On other devices, and where the system does not report
    memory, the answer is ``count``: training tries, and takes less if that fails.

    Args:
        make: builds a population of so many members.
        count: at most.
        device: where they are trained.
        memory: bytes that the whole program may take; by default a share of what is free.
    """
    if count == 1 or device.type != "cpu" or not _forget_peak():
        return count
    available = _room(memory)
    if available is None:
        return count
    growth, kept = [], 0
    before = _status("VmRSS")  # once: what the first trial leaves to malloc, the second one uses

    def try_out(members: int) -> None:
        nonlocal kept
        gc.collect()  # what was tried before
        _forget_peak()
        population = make(members)
        for _ in range(min(_EPOCHS, population.limits.epochs)):
            population.rehearse()
        growth.append(_status("VmHWM") - before)
        kept = _kept(population) // members

    with _others_kept():
        for members in (1, 2):
            if not fits(lambda: try_out(members), device):  # noqa: B023
                return 1
    each = max(growth[1] - growth[0], 0) + kept
    room = available - growth[0]
    return max(1, min(count, 1 + int(room / max(each, 1))))


@contextlib.contextmanager
def _others_kept() -> Iterator[None]:
    """No garbage of others is freed while we measure, and none is looked for.

    A collection goes through every object of the process, which takes longer than an epoch on a
    small graph; the collector leaves out what is frozen.
    """
    if gc.get_freeze_count():  # somebody else's, who would not have it undone
        gc.collect()
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _room(memory: int | None) -> float | None:
    """Bytes that training may take beyond what the program has; None where nobody knows.

    Of what is free a share, which the ranks of a machine divide; of what was given, the rest.
    """
    free, ranks = available_memory(), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    found = [] if free is None else [SHARE * free / ranks]
    if memory is not None:
        found.append(max(memory, LEAST) - _status("VmRSS"))
    return min(found, default=None)


def _kept(population: Population) -> int:
    """Bytes that training takes later: the history is copied when members stop, and kept."""
    return 2 * population.history.size


def _forget_peak() -> bool:
    """Let the peak of resident memory begin anew; False where the system cannot do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _status(key: str) -> int:
    """Bytes of resident memory: ``VmRSS`` now, ``VmHWM`` at the peak."""
    found = re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024
