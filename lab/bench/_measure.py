"""How time, calls and memory are measured; what is measured is not known here.

Contenders take turns, so that noise of the machine affects all alike. Each round times a few calls
of every contender, odd rounds in reverse order. A time is the median over the rounds with its
quartiles. A ratio is the median of the ratios of the rounds: a round in which something else ran on
the machine counts once and not twice.

Counts of operators are the same on every machine. Tests on them protect the gains in speed: they
fail when a change brings a cost back, and never because a machine was busy.
"""

import ctypes
import gc
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch.profiler import ProfilerActivity, profile

Call = Callable[[], Any]
Spread = dict[str, float]  # median, low and high quartile
K = TypeVar("K")

#: Calls before the first timed one (a population on a GPU becomes a CUDA graph at its third),
#: and the most calls timed at once.
WARM_UP, MOST_CALLS = 5, 100
#: A call that takes more seconds than this is slow: it needs no further warm-up and few rounds.
SLOW, SLOW_ROUNDS = 2.0, 3
#: Operators of which torch calls one, exactly once, in every product with a CSR matrix.
CSR_PRODUCTS = ("aten::crow_indices", "aten::embedding_bag")


class Budget(NamedTuple):
    """How much timing one call gets: its turns, and the approximate seconds of a turn."""

    rounds: int
    seconds: float


def time_calls(call: Call, count: int, device: torch.device) -> float:
    """Mean seconds per call: by CUDA events on a GPU, otherwise by the clock of the host."""
    if device.type == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize(device)
        start.record()
        for _ in range(count):
            call()
        end.record()
        torch.cuda.synchronize(device)
        return start.elapsed_time(end) / 1e3 / count
    started = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - started) / count


def plan(call: Call, seconds: float, rounds: int, device: torch.device) -> tuple[int, int]:
    """Warm up, and choose how many calls make a turn of some seconds, and the number of turns."""
    took = time_calls(call, 1, device)
    if took > SLOW:
        return 1, min(rounds, SLOW_ROUNDS)
    time_calls(call, WARM_UP - 1, device)
    return max(1, min(MOST_CALLS, round(seconds / time_calls(call, 2, device)))), rounds


def round_robin(
    calls: Mapping[K, Call],
    device: torch.device,
    budget: Budget,
    *,
    on_round: Callable[[int], None] = lambda i: None,
) -> dict[K, list[float]]:
    """Seconds per call of each contender in each round; slow ones have only the first rounds."""
    plans = {
        name: plan(call, budget.seconds, budget.rounds, device) for name, call in calls.items()
    }
    times: dict[K, list[float]] = {name: [] for name in calls}
    gc.collect()
    for i in range(budget.rounds):
        on_round(i)
        for name in reversed(list(calls)) if i % 2 else calls:
            count, last = plans[name]
            if i < last:
                times[name].append(time_calls(calls[name], count, device))
    return times


def summarize(values: Sequence[float], *, scale: float = 1.0) -> Spread:
    r"""Median and quartiles, each multiplied by ``scale``.

    >>> summarize([3.0, 1.0, 2.0])
    {'median': 2.0, 'low': 1.5, 'high': 2.5}
    """
    several = values if len(values) > 1 else [*values, *values]
    cuts = statistics.quantiles(several, n=4, method="inclusive")
    low, middle, high = (scale * float(v) for v in cuts)
    return {"median": middle, "low": low, "high": high}


def compare(slow: Sequence[float], fast: Sequence[float]) -> Spread:
    """How many times longer ``slow`` takes: median and quartiles over the rounds both have."""
    return summarize([s / f for s, f in zip(slow, fast, strict=False)])


@contextmanager
def limited_threads(count: int | None) -> Iterator[None]:
    """Threads of torch for a while; None leaves them as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def count_calls(call: Call) -> Counter[str]:
    """How often one call on the CPU calls each torch operator, nested calls included."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler writes to standard error
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        call()
    counts: Counter[str] = Counter()
    for event in profiled.events() or ():
        counts[event.name] += 1
        if event.name in CSR_PRODUCTS:
            owner, around = "torch", event  # the outermost operator of longnn, or torch
            while around is not None:
                owner = around.name if around.name.startswith("longnn::") else owner
                around = around.cpu_parent
            counts[f"product in {owner}"] += 1
    return counts


def operators(counts: Counter[str]) -> int:
    """Calls of all operators of torch."""
    return sum(n for name, n in counts.items() if name.startswith("aten::"))


def sparse_products(counts: Counter[str]) -> int:
    """Products with a sparse matrix, be it the graph or the features."""
    return sum(n for name, n in counts.items() if name.startswith("product in "))


def count_kernels(call: Call, repeats: int = 5) -> dict[str, float]:
    """Kernels and copies that one call runs on the GPU, and milliseconds of work on the GPU."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(repeats):
            call()
        torch.cuda.synchronize()
    rows = [row for row in profiled.key_averages() if row.device_time_total > 0]
    return {
        "kernels": sum(row.count for row in rows) / repeats,
        "busy_ms": sum(row.device_time_total for row in rows) / repeats / 1e3,
    }


def run_module(*arguments: str, **environment: str) -> str:
    """What a Python process that runs a module prints.

    Raises:
        RuntimeError: with the last line of its error, if it fails.
    """
    root = str(Path(__file__).resolve().parents[2])
    search = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", *arguments],
        env={**os.environ, "PYTHONPATH": search, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"Expected the process of {arguments[0]} to succeed (got {reason})")
    return done.stdout


def resident(field: str) -> float:
    """MiB of this program now (``VmRSS``) or at most (``VmHWM``), as Linux counts them.

    Not ``getrusage``: its maximum is also that of the program which started this one.
    """
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 2**10 for line in status if line.startswith(field))


def growth(call: Call) -> float:
    """By how many MiB the resident memory of this program grows, at most, during a call."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # free memory that was not returned would hide growth
    before = resident("VmRSS")
    call()
    return max(resident("VmHWM") - before, 0.0)
