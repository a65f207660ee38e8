r"""Bytes and operations of an epoch against the ceilings of the machine.

The ceilings are measured: a large copy (memory), a small copy (cache), a large matrix product. The
bytes are the fewest that the algorithm must move, counted from the sizes of the problem. The filter
and the feature product are timed alone, on the graph and the features of the dataset.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap

from lab.bench._contenders import Workload
from lab.bench._growth import filter_call
from lab.bench._measure import Budget, captured, median_time
from longnn.matrices import SparseMatrix
from longnn.training import Problem

_FLOAT = 4  # bytes of a float32, and of an int32
#: Bytes copied to measure memory and cache, and the side of the matrices multiplied.
_MEMORY = {"cpu": 2**27, "cuda": 2**30}
_CACHE = {"cpu": 2**18, "cuda": 2**23}
_SIDE = {"cpu": 1024, "cuda": 8192}
#: Small copies per CUDA graph, so that launches do not count.
_BURST = 20

#: What the machine can do, by name; and the work of the parts of an epoch, by part.
Ceilings = dict[str, float]
Work = dict[str, dict[str, float]]


def measure_ceilings(device: torch.device, budget: Budget) -> Ceilings:
    """Bandwidths in GB/s (bytes read plus bytes written), and matrix products in GFLOP/s."""
    kind = device.type
    found = {
        "memory_gb_s": memory_rate(device, budget),
        "cache_gb_s": _copy_rate(_CACHE[kind], _BURST, device, budget),
        "float32_gflop_s": _product_rate(_SIDE[kind], device, budget),
    }
    if kind == "cuda":
        allowed = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            found["tf32_gflop_s"] = _product_rate(_SIDE[kind], device, budget)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = allowed
    return found


def memory_rate(device: torch.device, budget: Budget) -> float:
    """GB/s of a large copy, read plus written."""
    return _copy_rate(_MEMORY[device.type], 1, device, budget)


def _copy_rate(size: int, times: int, device: torch.device, budget: Budget) -> float:
    source = torch.randn(size // _FLOAT, device=device)
    target = torch.empty_like(source)

    def call() -> None:
        for _ in range(times):
            target.copy_(source)

    return 2 * size * times / median_time(captured(call, device), device, budget) / 1e9


def _product_rate(side: int, device: torch.device, budget: Budget) -> float:
    a, b = (torch.randn(side, side, device=device) for _ in range(2))
    out = torch.empty_like(a)
    seconds = median_time(lambda: torch.mm(a, b, out=out), device, budget)
    return 2 * side**3 / seconds / 1e9


def work_of(problem: Problem, workload: Workload, members: int) -> Work:
    """The work of an epoch on a graph."""
    features = problem.features
    inputs, outputs, hidden = features.shape[1], problem.outputs, workload.hidden
    parameters = (inputs + 1) * hidden + (hidden + 1) * outputs
    parameters += (workload.degree + 1) * outputs + workload.degree + 2
    return count_work(
        nodes=problem.num_nodes,
        entries=problem.operator.matrix.nnz,
        features=inputs,
        feature_entries=features.nnz if isinstance(features, SparseMatrix) else None,
        hidden=hidden,
        classes=outputs,
        degree=workload.degree,
        members=members,
        parameters=parameters,
    )


def count_work(
    *,
    nodes: int,
    entries: int,  # of the graph's operator
    features: int,
    feature_entries: int | None,  # stored entries of sparse features; None: dense
    hidden: int,
    classes: int,
    degree: int,
    members: int,
    parameters: int,  # of one member
) -> Work:
    r"""Bytes and floating-point operations of one epoch (training and evaluation), by part.

    Bytes of gathered rows are counted apart. A filter is applied three times: training, its
    backward pass, evaluation. Each of its K steps gathers a row of :math:`T_{j-1}` for every entry
    of P. Per row it reads :math:`T_{j-2}` and the partial sum and writes :math:`T_j` and the sum
    (one less of these in the first step and in the last); the backward pass also reads the signal.
    Features are multiplied three times, the second map four times (twice backward). Adam reads p,
    g, m, v and writes p, m, v; the gradient is written, and the best weights are stored.
    """
    channels, wide = classes * members, hidden * members
    gathers = 3 * degree * entries  # rows of the signal
    passes = (4 * degree - 2) * 2 + (5 * degree - 2)
    if feature_entries is None:
        nonzeros, read, gathered = nodes * features, 3 * (nodes * features + features * wide), 0
    else:
        nonzeros, read, gathered = feature_entries, 6 * feature_entries, 3 * feature_entries * wide

    def part(gathered: int, moved: int, flops: int) -> dict[str, float]:
        """Of so many numbers."""
        return {"gather_bytes": _FLOAT * gathered, "bytes": _FLOAT * moved, "flops": flops}

    return {
        "filter": part(
            gathers * channels,
            passes * nodes * channels + 2 * gathers,
            2 * gathers * channels + 3 * 4 * degree * nodes * channels,
        ),
        "features": part(gathered, read + 3 * nodes * wide, 3 * 2 * nonzeros * wide),
        "hidden": part(0, 4 * nodes * wide, 4 * 2 * nodes * wide * classes),
        "optimizer": part(0, 9 * parameters * members, 12 * parameters * members),
    }


def features_call(problem: Problem, workload: Workload, members: int) -> Callable[[], None]:
    """The feature product of all members: with dropout, its backward pass, and without dropout."""
    features, device = problem.features, problem.device
    weight = torch.randn(
        members, features.shape[1], workload.hidden, device=device
    ).requires_grad_()
    gradient = torch.randn(members, problem.num_nodes, workload.hidden, device=device)
    stream = torch.arange(2 * members, device=device).view(members, 2)
    rate = torch.full((members,), workload.dropout, device=device)

    def product(stream: Tensor, rate: Tensor, weight: Tensor) -> Tensor:
        return features.dropped(stream, rate, 0) @ weight

    def call() -> None:
        torch.autograd.grad(vmap(product)(stream, rate, weight), weight, gradient)
        with torch.no_grad():
            vmap(lambda w: features @ w)(weight)

    return call


def measure_shares(
    problem: Problem,
    workload: Workload,
    members: int,
    epoch_ms: float,
    ceilings: Ceilings,
    budget: Budget,
) -> dict[str, Any]:
    """Time the filter and the feature product alone, and weigh them; see :func:`weigh`."""
    device, channels = problem.device, problem.outputs * members
    calls = {
        "filter": filter_call(problem.operator, channels, workload.degree, evaluate=True),
        "features": features_call(problem, workload, members),
    }
    timed = {
        name: 1e3 * median_time(captured(call, device), device, budget)
        for name, call in calls.items()
    }
    return weigh(work_of(problem, workload, members), timed, epoch_ms, ceilings, members)


def weigh(
    work: Work, timed: Mapping[str, float], epoch_ms: float, ceilings: Ceilings, members: int
) -> dict[str, Any]:
    """Rates, shares and floors of an epoch of all members, and of its parts.

    Args:
        work: counted, by part of the epoch.
        timed: milliseconds of the parts that were timed.
        epoch_ms: of all members together.
        ceilings: of the machine.
        members: of the population.
    """
    memory, cache = ceilings["memory_gb_s"], ceilings["cache_gb_s"]
    arithmetic = max(ceilings["float32_gflop_s"], ceilings.get("tf32_gflop_s", 0.0))
    parts: dict[str, dict[str, Any]] = {}
    for name, counted in work.items():
        # At best, gathered rows come from the cache and everything else from memory once.
        floors = {
            "memory": counted["bytes"] / memory / 1e6,
            "cache": counted["gather_bytes"] / cache / 1e6,
            "arithmetic": counted["flops"] / arithmetic / 1e6,
        }
        ms = timed.get(name)
        parts[name] = {**counted, "floor_ms": floors, "ms": ms}
        if ms is not None:
            gb_s = (counted["bytes"] + counted["gather_bytes"]) / ms / 1e6
            gflop_s = counted["flops"] / ms / 1e6
            parts[name] |= {
                "gb_s": gb_s,
                "gflop_s": gflop_s,
                "memory_share": gb_s / memory,
                "cache_share": gb_s / cache,
                "arithmetic_share": gflop_s / arithmetic,
                "epoch_share": ms / epoch_ms,
            }
    floor_ms = sum(max(part["floor_ms"].values()) for part in parts.values())
    return {"members": members, "epoch_ms": epoch_ms, "floor_ms": floor_ms, "parts": parts}


def say_bound(share: Mapping[str, Any]) -> str:
    """One sentence: which part takes most of the epoch, and what limits it."""
    products = {"filter": "filter product", "features": "feature product"}  # the timed parts
    parts, epoch_ms = share["parts"], share["epoch_ms"]
    shares = {name: parts[name]["ms"] / epoch_ms for name in products}
    rest = 1 - sum(shares.values())
    text = f"at the ceilings, bytes and operations would take {share['floor_ms'] / epoch_ms:.0%} "
    text += "of the epoch"
    first = max(shares, key=lambda name: shares[name])
    if rest > shares[first]:
        return (
            f"{text}; {rest:.0%} goes to neither filter nor feature product: small operations, "
            "their launches, activations and Adam"
        )
    limits = {name: parts[first][f"{name}_share"] for name in ("memory", "cache", "arithmetic")}
    near = max(limits, key=lambda name: limits[name])
    bound = (
        f"bound by {near} ({limits[near]:.0%} of its ceiling)"
        if limits[near] >= 0.5
        else f"far from every ceiling ({near} {limits[near]:.0%}): bound by latency and overhead"
    )
    return f"{text}; the {products[first]} takes {shares[first]:.0%} and is {bound}"
