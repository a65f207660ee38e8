r"""Bytes and operations of an epoch against the ceilings of the machine.

The ceilings are measured: a large copy (memory), a small copy (cache), a large matrix product. The
bytes are the fewest that the algorithm must move, counted from the sizes of the problem. The filter
and the feature product are timed alone, on the graph and the features of the dataset.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import vmap

from lab.bench._contenders import Workload
from lab.bench._record import Ceilings, EpochPart, Share
from lab.bench._scaling import filter_call
from lab.bench._timing import Budget, captured, median_time
from longnn.matrices import SparseMatrix
from longnn.training import Problem

_FLOAT = 4  # bytes of a float32, and of an int32
#: Bytes copied to measure memory and cache, and the side of the matrices multiplied.
_MEMORY = {"cpu": 2**27, "cuda": 2**30}
_CACHE = {"cpu": 2**18, "cuda": 2**23}
_SIDE = {"cpu": 1024, "cuda": 8192}
#: Small copies per CUDA graph, so that launches do not count.
_BURST = 20


def measure_ceilings(device: torch.device, budget: Budget) -> Ceilings:
    """Bandwidths in GB/s (bytes read plus bytes written), and matrix products in GFLOP/s."""
    kind = device.type
    return Ceilings(
        memory_gb_s=_copy_rate(_MEMORY[kind], 1, device, budget),
        cache_gb_s=_copy_rate(_CACHE[kind], _BURST, device, budget),
        float32_gflop_s=_product_rate(_SIDE[kind], device, budget),
        tf32_gflop_s=_tf32_rate(device, budget) if kind == "cuda" else None,
    )


def _tf32_rate(device: torch.device, budget: Budget) -> float:
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return _product_rate(_SIDE[device.type], device, budget)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed


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


@dataclass(frozen=True)
class Work:
    """Bytes and floating-point operations; bytes of gathered rows are counted apart."""

    gather_bytes: float
    bytes: float
    flops: float


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
) -> dict[str, Work]:
    r"""Bytes and floating-point operations of one epoch (training and evaluation), by part.

    A filter is applied three times: training, its backward pass, evaluation. Each of its K steps
    gathers a row of :math:`T_{j-1}` for every entry of P. Per row it reads :math:`T_{j-2}` and the
    partial sum and writes :math:`T_j` and the sum (one less of these in the first step and in the
    last); the backward pass also reads the signal. Features are multiplied three times, the second
    map four times (twice backward). Adam reads p, g, m, v and writes p, m, v; the gradient is
    written, and the best weights are stored.
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
        "filter": Work(
            gather_bytes=gathers * channels * _FLOAT,
            bytes=passes * rows + gathers * 2 * _FLOAT,
            flops=2 * gathers * channels + 3 * 4 * degree * nodes * channels,
        ),
        "features": Work(
            gather_bytes=gathered,
            bytes=read + 3 * nodes * wide * _FLOAT,
            flops=3 * 2 * nonzeros * wide,
        ),
        "hidden": Work(
            gather_bytes=0,
            bytes=4 * nodes * wide * _FLOAT,
            flops=4 * 2 * nodes * wide * classes,
        ),
        "optimizer": Work(
            gather_bytes=0,
            bytes=9 * parameters * members * _FLOAT,
            flops=12 * parameters * members,
        ),
    }


def _work_of(problem: Problem, workload: Workload, members: int) -> dict[str, Work]:
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


def features_call(problem: Problem, workload: Workload, members: int) -> Callable[[], None]:
    """The feature product of all members: with dropout, its backward pass, and without dropout."""
    features, device = problem.features, problem.device
    weight = torch.randn(
        members, features.shape[1], workload.hidden, device=device
    ).requires_grad_()
    gradient = torch.randn(members, problem.num_nodes, workload.hidden, device=device)
    stream = torch.arange(2 * members, device=device).view(members, 2)
    rate = torch.full((members,), workload.dropout, device=device)

    def one(stream: Tensor, rate: Tensor, weight: Tensor) -> Tensor:
        return features.dropped(stream, rate, 0) @ weight

    def call() -> None:
        torch.autograd.grad(vmap(one)(stream, rate, weight), weight, gradient)
        with torch.no_grad():
            vmap(lambda w: features @ w)(weight)

    return call


def measure_shares(
    key: str,
    problem: Problem,
    workload: Workload,
    members: int,
    epoch_ms: float,
    ceilings: Ceilings,
    budget: Budget,
) -> Share:
    r"""Time the filter and the feature product alone, and compare them with the ceilings.

    Args:
        key: the contender, for the record.
        problem: graph and features.
        workload: the work of one epoch.
        members: of the population.
        epoch_ms: of all members together.
        ceilings: of the machine.
        budget: of each timing.
    """
    device = problem.device
    channels = problem.outputs * members
    calls = {
        "filter": filter_call(problem.operator, channels, workload.degree, evaluate=True),
        "features": features_call(problem, workload, members),
    }
    timed = {
        name: 1e3 * median_time(captured(call, device), device, budget)
        for name, call in calls.items()
    }
    work = _work_of(problem, workload, members)
    return weigh(key, work, timed, epoch_ms, ceilings, members)


def weigh(
    key: str,
    work: dict[str, Work],
    timed: dict[str, float],
    epoch_ms: float,
    ceilings: Ceilings,
    members: int,
) -> Share:
    r"""Rates, shares and floors, computed from counted work and measured times.

    Args:
        key: the contender, for the record.
        work: counted, by part of the epoch.
        timed: milliseconds of the parts that were timed.
        epoch_ms: of all members together.
        ceilings: of the machine.
        members: of the population.
    """
    parts = {
        name: _weigh_part(counted, timed.get(name), epoch_ms, ceilings)
        for name, counted in work.items()
    }
    return Share(
        contender=key,
        members=members,
        epoch_ms=epoch_ms,
        floor_ms=sum(max(part.floor_ms.values()) for part in parts.values()),
        parts=parts,
    )


def _weigh_part(work: Work, ms: float | None, epoch_ms: float, ceilings: Ceilings) -> EpochPart:
    memory, cache = ceilings.memory_gb_s, ceilings.cache_gb_s
    arithmetic = max(ceilings.float32_gflop_s, ceilings.tf32_gflop_s or 0.0)
    # At best, gathered rows come from the cache and everything else from memory once.
    floors = {
        "memory": work.bytes / memory / 1e6,
        "cache": work.gather_bytes / cache / 1e6,
        "arithmetic": work.flops / arithmetic / 1e6,
    }
    rates: dict[str, float] = {}
    if ms is not None:
        gb_s = (work.bytes + work.gather_bytes) / ms / 1e6
        gflop_s = work.flops / ms / 1e6
        rates = {
            "gb_s": gb_s,
            "gflop_s": gflop_s,
            "memory_share": gb_s / memory,
            "cache_share": gb_s / cache,
            "arithmetic_share": gflop_s / arithmetic,
            "epoch_share": ms / epoch_ms,
        }
    return EpochPart(**vars(work), floor_ms=floors, ms=ms, **rates)


#: Names of the parts that are timed, for a sentence.
_PRODUCTS = {"filter": "filter product", "features": "feature product"}


def say_bound(share: Share) -> str:
    """One sentence: which part takes most of the epoch, and what limits it."""
    timed = {name: part.ms for name, part in share.parts.items() if part.ms is not None}
    shares = {name: ms / share.epoch_ms for name, ms in timed.items()}
    shares["rest"] = 1 - sum(shares.values())
    first = max(shares, key=lambda name: shares[name])
    floor = f"{share.floor_ms / share.epoch_ms:.0%}"
    text = f"at the ceilings, bytes and operations would take {floor} of the epoch"
    if first == "rest":
        return (
            f"{text}; {shares['rest']:.0%} goes to neither filter nor feature product: small "
            "operations, their launches, activations and Adam"
        )
    part = share.parts[first]
    limits = {
        "memory": part.memory_share or 0.0,
        "cache": part.cache_share or 0.0,
        "arithmetic": part.arithmetic_share or 0.0,
    }
    near = max(limits, key=lambda name: limits[name])
    bound = (
        f"bound by {near} ({limits[near]:.0%} of its ceiling)"
        if limits[near] >= 0.5
        else f"far from every ceiling ({near} {limits[near]:.0%}): bound by latency and overhead"
    )
    return f"{text}; the {_PRODUCTS[first]} takes {shares[first]:.0%} and is {bound}"
