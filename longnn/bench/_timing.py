"""How time is taken: contenders in turn, so that the machine's noise hits all alike.

Each round times a few calls of every contender, odd rounds in reverse order. A time is the median
over the rounds with its quartiles; a ratio is the median of the rounds' ratios, so that a round in
which something else ran on the machine counts once and not twice.
"""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

Call = Callable[[], Any]

#: Calls before the first timed one (a population on a GPU becomes a CUDA graph at its third),
#: and the most calls timed at once.
WARM_UP, MOST_CALLS = 5, 100
#: Seconds a call, from which on it is slow: it needs no more warming up, and few rounds will do.
SLOW, SLOW_ROUNDS = 2.0, 3


def time_calls(call: Call, count: int, device: torch.device) -> float:
    """Seconds a call, over so many calls: by CUDA events on a GPU, else by the host's clock."""
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
    """Warm up, and see how many calls take about so many seconds, in how many rounds."""
    took = time_calls(call, 1, device)
    if took > SLOW:
        return 1, min(rounds, SLOW_ROUNDS)
    time_calls(call, WARM_UP - 1, device)
    return max(1, min(MOST_CALLS, round(seconds / time_calls(call, 2, device)))), rounds


def round_robin(
    calls: Mapping[str, Call],
    device: torch.device,
    *,
    rounds: int,
    seconds: float,
    on_round: Callable[[int], None] | None = None,
) -> dict[str, list[float]]:
    """Seconds a call of each contender in each round; slow ones have only the first few rounds.

    Args:
        calls: the contenders by name.
        device: where they run.
        rounds: how often each has its turn.
        seconds: what a turn takes, about.
        on_round: is told the number of the round that begins.
    """
    plans = {name: plan(call, seconds, rounds, device) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    for i in range(rounds):
        if on_round is not None:
            on_round(i)
        for name in reversed(list(calls)) if i % 2 else calls:
            count, last = plans[name]
            if i < last:
                times[name].append(time_calls(calls[name], count, device))
    return times


def summarize(values: Sequence[float], *, scale: float = 1.0) -> dict[str, float]:
    """Median and quartiles, each times ``scale``.

    >>> summarize([3.0, 1.0, 2.0])
    {'median': 2.0, 'low': 1.5, 'high': 2.5}
    """
    several = values if len(values) > 1 else [*values, *values]
    cuts = statistics.quantiles(several, n=4, method="inclusive")
    low, middle, high = (scale * float(v) for v in cuts)
    return {"median": middle, "low": low, "high": high}


def compare(
    slow: Sequence[float], fast: Sequence[float], *, scale: float = 1.0
) -> dict[str, float]:
    """How many times longer ``slow`` takes: median and quartiles over the rounds both have.

    >>> compare([4.0, 8.0, 4.0], [1.0, 2.0, 2.0])["median"]
    4.0
    """
    return summarize([s / f for s, f in zip(slow, fast, strict=False)], scale=scale)


def captured(call: Call, device: torch.device) -> Call:
    """The call as a CUDA graph, so that what is timed is the device and not the launching.

    Off the GPU, or where it cannot be recorded, the call itself.
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


def median_time(call: Call, device: torch.device, *, rounds: int, seconds: float) -> float:
    """Seconds a call: the median over the rounds."""
    return statistics.median(
        round_robin({"it": call}, device, rounds=rounds, seconds=seconds)["it"]
    )
