r"""How close to what the machine can do: bytes and operations of an epoch against its ceilings.

The ceilings are measured: a large copy (memory), a small one (cache), a large matrix product. The
bytes are the fewest that the algorithm must move, counted from the sizes below; the times are
those of the filter and of the feature product alone, on the dataset's own graph and features.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap

from longnn.bench._contenders import Setup
from longnn.bench._scaling import filter_call
from longnn.bench._timing import captured, median_time
from longnn.matrices import SparseMatrix
from longnn.training import Problem

_FLOAT = 4  # bytes of a float32, and of an int32
#: Bytes copied to find the speed of memory and of the cache, and the side of the matrix product.
_MEMORY = {"cpu": 2**27, "cuda": 2**30}
_CACHE = {"cpu": 2**18, "cuda": 2**23}
_SIDE = {"cpu": 1024, "cuda": 8192}
#: Small copies in one graph, so that their launches do not count.
_BURST = 20


def measure_ceilings(device: torch.device, effort: dict[str, Any]) -> dict[str, float]:
    """Bandwidths in GB/s, bytes read plus bytes written, and matrix products in GFLOP/s."""
    kind = device.type
    found = {
        "memory_gb_s": _copy_rate(_MEMORY[kind], 1, device, effort),
        "cache_gb_s": _copy_rate(_CACHE[kind], _BURST, device, effort),
        "float32_gflop_s": _product_rate(_SIDE[kind], device, effort),
    }
    if kind == "cuda":
        allowed = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            found["tf32_gflop_s"] = _product_rate(_SIDE[kind], device, effort)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = allowed
    return found


def _copy_rate(size: int, times: int, device: torch.device, effort: dict[str, Any]) -> float:
    source = torch.randn(size // _FLOAT, device=device)
    target = torch.empty_like(source)

    def call() -> None:
        for _ in range(times):
            target.copy_(source)

    return 2 * size * times / median_time(captured(call, device), device, **effort) / 1e9


def _product_rate(side: int, device: torch.device, effort: dict[str, Any]) -> float:
    a, b = (torch.randn(side, side, device=device) for _ in range(2))
    out = torch.empty_like(a)
    seconds = median_time(lambda: torch.mm(a, b, out=out), device, **effort)
    return 2 * side**3 / seconds / 1e9


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
) -> dict[str, dict[str, float]]:
    r"""Bytes and floating-point operations of one epoch (training and evaluation), by part.

    A filter is applied three times: training, its backward pass, evaluation. Each of its K steps
    gathers a row of ``current`` for every entry of P; per row it reads :math:`T_{j-2}` and the sum
    so far and writes :math:`T_j` and the sum (one less of these in the first step and in the
    last), and the backward pass reads the signal too. Features are multiplied three times, the
    second map four (two of them backward). Adam reads p, g, m, v and writes p, m, v; the gradient
    is written, and the best weights are kept.
    """
    channels, wide = classes * members, hidden * members
    rows = nodes * channels * _FLOAT
    passes = (4 * degree - 2) * 2 + (5 * degree - 2)
    gathers = 3 * degree * entries
    nonzeros = nodes * features if feature_entries is None else feature_entries
    if feature_entries is None:
        read = 3 * (nodes * features + features * wide) * _FLOAT
        gathered = 0
    else:
        read = 3 * 2 * feature_entries * _FLOAT
        gathered = 3 * feature_entries * wide * _FLOAT
    return {
        "filter": {
            "gather_bytes": gathers * channels * _FLOAT,
            "bytes": passes * rows + gathers * 2 * _FLOAT,
            "flops": 2 * gathers * channels + 3 * 4 * degree * nodes * channels,
        },
        "features": {
            "gather_bytes": gathered,
            "bytes": read + 3 * nodes * wide * _FLOAT,
            "flops": 3 * 2 * nonzeros * wide,
        },
        "hidden": {
            "gather_bytes": 0,
            "bytes": 4 * nodes * wide * _FLOAT,
            "flops": 4 * 2 * nodes * wide * classes,
        },
        "optimizer": {
            "gather_bytes": 0,
            "bytes": 9 * parameters * members * _FLOAT,
            "flops": 12 * parameters * members,
        },
    }


def _work_of(problem: Problem, setup: Setup, members: int) -> dict[str, dict[str, float]]:
    features = problem.features
    inputs, outputs, hidden = features.shape[1], problem.outputs, setup.hidden
    parameters = (inputs + 1) * hidden + (hidden + 1) * outputs
    parameters += (setup.degree + 1) * outputs + setup.degree + 2
    return count_work(
        nodes=problem.num_nodes,
        entries=problem.operator.matrix.nnz,
        features=inputs,
        feature_entries=features.nnz if isinstance(features, SparseMatrix) else None,
        hidden=hidden,
        classes=outputs,
        degree=setup.degree,
        members=members,
        parameters=parameters,
    )


def features_call(problem: Problem, setup: Setup, members: int) -> Callable[[], None]:
    """The feature product of every member: with dropout, its backward pass, and without."""
    features, device = problem.features, problem.device
    weight = torch.randn(members, features.shape[1], setup.hidden, device=device).requires_grad_()
    gradient = torch.randn(members, problem.num_nodes, setup.hidden, device=device)
    stream = torch.arange(2 * members, device=device).view(members, 2)
    rate = torch.full((members,), setup.dropout, device=device)

    def one(stream: Tensor, rate: Tensor, weight: Tensor) -> Tensor:
        return features.dropped(stream, rate, 0) @ weight

    def call() -> None:
        torch.autograd.grad(vmap(one)(stream, rate, weight), weight, gradient)
        with torch.no_grad():
            vmap(lambda w: features @ w)(weight)

    return call


def measure_shares(
    problem: Problem,
    setup: Setup,
    members: int,
    epoch_ms: float,  # of all members together
    ceilings: dict[str, float],
    effort: dict[str, Any],
) -> dict[str, Any]:
    """Where an epoch's time goes, and which share of the ceilings its parts reach."""
    device = problem.device
    channels = problem.outputs * members
    calls = {
        "filter": filter_call(problem.operator, channels, setup.degree, evaluate=True),
        "features": features_call(problem, setup, members),
    }
    timed = {
        name: 1e3 * median_time(captured(call, device), device, **effort)
        for name, call in calls.items()
    }
    return weigh(_work_of(problem, setup, members), timed, epoch_ms, ceilings, members)


def weigh(
    work: dict[str, dict[str, float]],
    timed: dict[str, float],  # milliseconds of the parts that were timed
    epoch_ms: float,
    ceilings: dict[str, float],
    members: int,
) -> dict[str, Any]:
    """Arithmetic: rates, shares and floors from counted work and measured times."""
    memory, cache = ceilings["memory_gb_s"], ceilings["cache_gb_s"]
    arithmetic = max(v for name, v in ceilings.items() if name.endswith("gflop_s"))
    parts: dict[str, dict[str, Any]] = {}
    for name, w in work.items():
        moved = w["bytes"] + w["gather_bytes"]
        # Gathered rows come from the cache at best, the rest from memory once.
        floors = {
            "memory": w["bytes"] / memory / 1e6,
            "cache": w["gather_bytes"] / cache / 1e6,
            "arithmetic": w["flops"] / arithmetic / 1e6,
        }
        parts[name] = {**w, "floor_ms": floors, "ms": timed.get(name)}
        if name in timed:
            seconds = timed[name] / 1e3
            parts[name].update(
                gb_s=moved / seconds / 1e9,
                gflop_s=w["flops"] / seconds / 1e9,
                memory_share=moved / seconds / 1e9 / memory,
                cache_share=moved / seconds / 1e9 / cache,
                arithmetic_share=w["flops"] / seconds / 1e9 / arithmetic,
                epoch_share=timed[name] / epoch_ms,
            )
    floor = sum(max(p["floor_ms"].values()) for p in parts.values())
    found = {"members": members, "epoch_ms": epoch_ms, "floor_ms": floor, "parts": parts}
    return {**found, "words": say_bound(found)}


def say_bound(found: dict[str, Any]) -> str:
    """In a sentence: which part takes most of the epoch, and what holds it back."""
    epoch = found["epoch_ms"]
    timed = {name: p for name, p in found["parts"].items() if p["ms"] is not None}
    rest = epoch - sum(p["ms"] for p in timed.values())
    shares = {**{name: p["ms"] / epoch for name, p in timed.items()}, "rest": rest / epoch}
    first = max(shares, key=lambda name: shares[name])
    text = f"{found['floor_ms'] / epoch:.0%} of the epoch is the floor of its bytes and operations"
    if first == "rest":
        return (
            f"{text}; {shares['rest']:.0%} goes to neither filter nor feature product: small "
            "operations, their launches, activations and Adam"
        )
    part = timed[first]
    limits = {
        "memory": part["memory_share"],
        "cache": part["cache_share"],
        "arithmetic": part["arithmetic_share"],
    }
    near = max(limits, key=lambda name: limits[name])
    bound = (
        f"bound by {near} ({limits[near]:.0%} of its ceiling)"
        if limits[near] >= 0.5
        else f"far from every ceiling ({near} {limits[near]:.0%}): bound by latency and overhead"
    )
    return f"{text}; the {first} product takes {shares[first]:.0%} and is {bound}"
