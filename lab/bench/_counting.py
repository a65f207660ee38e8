"""How many operators an epoch calls: numbers that are the same on every machine, unlike times.

Tests on these counts protect the gains in speed. They fail on every machine when a change brings a
cost back, and never because a machine was busy.
"""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

#: Operators of which torch calls one, exactly once, in every product with a CSR matrix.
_CSR_PRODUCTS = ("aten::crow_indices", "aten::embedding_bag")


def count_calls(call: Callable[[], Any]) -> Counter[str]:
    """How often one call on the CPU calls each torch operator, nested calls included."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler writes to standard error
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        call()
    counts: Counter[str] = Counter()
    for event in profiled.events() or ():
        counts[event.name] += 1
        if event.name in _CSR_PRODUCTS:
            counts["product in " + _owner(event)] += 1
    return counts


def _owner(event: Any) -> str:
    """The outermost operator of longnn around an event, or torch."""
    owner = "torch"
    while event is not None:
        owner = event.name if event.name.startswith("longnn::") else owner
        event = event.cpu_parent
    return owner


def operators(counts: Counter[str]) -> int:
    """Calls of all operators of torch."""
    return sum(n for name, n in counts.items() if name.startswith("aten::"))


def sparse_products(counts: Counter[str]) -> int:
    """Products with a sparse matrix, be it the graph or the features."""
    return sum(n for name, n in counts.items() if name.startswith("product in "))


def count_kernels(call: Callable[[], Any], repeats: int = 5) -> dict[str, float]:
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
