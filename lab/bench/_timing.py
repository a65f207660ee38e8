"""How time is measured: contenders take turns, so that noise of the machine affects all alike.

Each round times a few calls of every contender, odd rounds in reverse order. A time is the median
over the rounds with its quartiles. A ratio is the median of the ratios of the rounds: a round in
which something else ran on the machine counts once and not twice.
"""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lab.bench._record import Spread

Call = Callable[[], Any]

#: Calls before the first timed one (a population on a GPU becomes a CUDA graph at its third),
#: and the most calls timed at once.
WARM_UP, MOST_CALLS = 5, 100
#: A call that takes more seconds than this is slow: it needs no further warm-up and few rounds.
SLOW, SLOW_ROUNDS = 2.0, 3


@dataclass(frozen=True)
class Budget:
    """How much timing one call gets.

    Args:
        rounds: turns of the call.
        seconds: approximate length of one turn.
    """

    rounds: int
    seconds: float


def time_calls(call: Call, count: int, device: torch.device) -> float:
    r"""Mean seconds per call: by CUDA events on a GPU, otherwise by the clock of the host.

    Args:
        call: what to time.
        count: the number of calls.
        device: where it runs.
    """
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
    r"""Warm up, and choose how many calls to time at once.

    Args:
        call: what to time.
        seconds: the approximate length of a turn.
        rounds: the number of turns.
        device: where it runs.

    Returns:
        The calls per turn, and the number of turns; slow calls get fewer turns.
    """
    took = time_calls(call, 1, device)
    if took > SLOW:
        return 1, min(rounds, SLOW_ROUNDS)
    time_calls(call, WARM_UP - 1, device)
    return max(1, min(MOST_CALLS, round(seconds / time_calls(call, 2, device)))), rounds


def round_robin(
    calls: Mapping[str, Call],
    device: torch.device,
    budget: Budget,
    *,
    on_round: Callable[[int], None] | None = None,
) -> dict[str, list[float]]:
    r"""Seconds per call of each contender in each round.

    Args:
        calls: the contenders by name.
        device: where they run.
        budget: rounds and seconds of each contender.
        on_round: called with the number of each round when it begins.

    Returns:
        One list per contender; slow contenders have only the first few rounds.
    """
    plans = {
        name: plan(call, budget.seconds, budget.rounds, device) for name, call in calls.items()
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    for i in range(budget.rounds):
        if on_round is not None:
            on_round(i)
        for name in reversed(list(calls)) if i % 2 else calls:
            count, last = plans[name]
            if i < last:
                times[name].append(time_calls(calls[name], count, device))
    return times


def summarize(values: Sequence[float], *, scale: float = 1.0) -> Spread:
    r"""Median and quartiles, each multiplied by ``scale``.

    >>> summarize([3.0, 1.0, 2.0])
    Spread(median=2.0, low=1.5, high=2.5)
    """
    several = values if len(values) > 1 else [*values, *values]
    cuts = statistics.quantiles(several, n=4, method="inclusive")
    low, middle, high = (scale * float(v) for v in cuts)
    return Spread(median=middle, low=low, high=high)


def compare(slow: Sequence[float], fast: Sequence[float]) -> Spread:
    r"""How many times longer ``slow`` takes: median and quartiles over the rounds both have.

    >>> compare([4.0, 8.0, 4.0], [1.0, 2.0, 2.0]).median
    4.0
    """
    return summarize([s / f for s, f in zip(slow, fast, strict=False)])


def captured(call: Call, device: torch.device) -> Call:
    r"""The call as a CUDA graph, which times the device and not the launches.

    On a CPU, or where the call cannot be captured, the call itself.
    """
    if device.type != "cuda":
        return call
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize(device)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            call()
    except RuntimeError:
        torch.cuda.synchronize(device)
        return call
    return graph.replay


def median_time(call: Call, device: torch.device, budget: Budget) -> float:
    r"""Seconds per call: the median over the rounds of the budget."""
    return statistics.median(round_robin({"it": call}, device, budget)["it"])
