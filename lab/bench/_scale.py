"""How fast a large graph is: propagation beside its rivals, the stages of a run.

The whole of :func:`longnn.store.propagate` is timed, files written and synced, and its products
alone. Rivals keep their terms in memory: PyG's SIGN transform (all powers) and the loop of its
SGConv (the last alone). A gather reads the same rows that a step sums, and writes them out.

This module is also the program of a process whose memory is measured.
"""

import contextlib
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import SGConv
from torch_geometric.transforms import SIGN

from lab.bench._ceilings import memory_rate
from lab.bench._graphs import Size, write_random
from lab.bench._growth import measure_stages, stage_sweeps
from lab.bench._measure import (
    Budget,
    Call,
    compare,
    growth,
    limited_threads,
    round_robin,
    run_module,
    summarize,
)
from lab.bench._record import Record, begin
from longnn.store import propagate
from longnn.store._graph import GraphStore
from longnn.store._terms import each_term

CPU = torch.device("cpu")
#: Bytes written and read to measure the disk.
DISK = 1 << 28
#: Rows that a gather copies at once, and columns of a block, as propagation cuts them on a CPU.
ROWS, BLOCK = 1 << 13, 16
#: What can be measured beside propagation.
SCALE_SECTIONS = ("rivals", "growth")


@dataclass(frozen=True)
class Work:
    """What is measured: the main size, with the budget of a timing; and for the stages a smaller
    size, with the numbers that it is given along each axis."""

    main: Size
    budget: Budget
    base: Size
    axes: Mapping[str, Sequence[int]]

    def along(self, axis: str) -> list[Size]:
        """The smaller size with one number changed; more nodes bring edges in proportion."""
        sizes = [replace(self.base, **{axis: value}) for value in self.axes[axis]]
        if axis == "nodes":
            per_node = self.base.edges // self.base.nodes
            sizes = [replace(size, edges=per_node * size.nodes) for size in sizes]
        return sizes


MILLION = 1_000_000
WORK = Work(
    Size(MILLION // 2, 5 * MILLION, 64, 10),
    Budget(5, 0.0),
    Size(100_000, MILLION, 16, 4),
    {
        "degree": (4, 8, 16, 32),
        "nodes": (100_000, 200_000, 400_000, 800_000),
        "edges": (MILLION, 2 * MILLION, 4 * MILLION, 8 * MILLION),
        "columns": (16, 32, 64, 128),
    },
)
QUICK = Work(
    Size(400, 2000, 4, 2),
    Budget(2, 0.0),
    Size(400, 2000, 4, 2),
    {"degree": (2, 4), "nodes": (200, 400), "edges": (1000, 2000), "columns": (2, 4)},
)


def run_scale(
    *,
    device: str = "cpu",
    threads: int | None = None,
    quick: bool = False,
    size: Size | None = None,
    sections: Sequence[str] | None = None,
    commit: str | None = None,
    on_progress: Callable[[str], None] = lambda text: None,
) -> Record:
    r"""Measure propagation and some sections, and return the record.

    Args:
        device: ``"cpu"`` or ``"cuda"``.
        threads: by default those of torch.
        quick: a check that everything works, on tiny graphs.
        size: of one graph: propagation alone, once after a warm-up.
        sections: among :data:`SCALE_SECTIONS`; by default all.
        commit: to record when the code is not a git checkout.
        on_progress: called with a few words on what is being measured.

    Raises:
        ValueError: for an unknown section.
    """
    where = torch.device(device)
    wanted = SCALE_SECTIONS if sections is None else sections
    unknown = [name for name in wanted if name not in SCALE_SECTIONS]
    if unknown:
        known = ", ".join(SCALE_SECTIONS)
        raise ValueError(f"Expected sections among {known} (got {unknown[0]!r})")
    work = QUICK if quick else WORK
    if size is not None:
        work, wanted = replace(work, main=size, budget=Budget(1, 0.0)), ()
    with limited_threads(threads), tempfile.TemporaryDirectory() as scratch:
        return _measure(work, where, Path(scratch), on_progress, wanted, commit)


def _measure(
    work: Work,
    device: torch.device,
    folder: Path,
    tell: Callable[[str], None],
    sections: Sequence[str],
    commit: str | None,
) -> Record:
    record, size = begin("scale", device, commit), work.main  # with the load before
    tell(f"random graph: {size}")
    graph = write_random(folder / "main", size, device)
    written, read = disk_rates(folder)
    record.update(size=str(size), entries=graph.num_entries)
    record.update(steps=size.degree, columns=size.columns)
    rivals = ("sign", "sgc") if "rivals" in sections else ()
    tell("propagation and rivals, in turn" if rivals else "propagation")
    record |= _times_in_turn(graph, work, device, rivals)
    record.update(disk_gb_s=written, read_gb_s=read, orders={}, order_size="", sweeps=[])
    record.update(stages={}, stage_size="", contests=[], contest_size="")
    if "growth" in sections:
        stages: dict[Size, dict[str, dict[str, float]]] = {}
        for axis in work.axes:
            tell(f"stages, growth with {axis}")
            sizes = work.along(axis)
            for point in sizes:
                if point not in stages:
                    stages[point] = measure_stages(folder / "stages", point, device)
            record["sweeps"] += stage_sweeps(axis, sizes, stages)
        largest = work.along("nodes")[-1]
        record |= {"stages": stages[largest], "stage_size": str(largest)}
        record["memory_gb_s"] = memory_rate(device, Budget(3, 0.0))
    return record


def disk_rates(folder: Path) -> tuple[float, float]:
    """GB/s of a file that is written and synced, and of the same file read from the disk."""
    data, path = np.random.default_rng(0).bytes(DISK // 16), folder / "disk"
    started = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(16):
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    written = DISK / (time.perf_counter() - started) / 1e9
    with path.open("rb", buffering=0) as file:
        with contextlib.suppress(AttributeError, OSError):  # not everywhere
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        started, into = time.perf_counter(), bytearray(DISK // 16)
        while file.readinto(into):
            pass
    read = DISK / (time.perf_counter() - started) / 1e9
    path.unlink()
    return written, read


# Propagation and its rivals


def _times_in_turn(
    graph: GraphStore, work: Work, device: torch.device, rivals: Sequence[str]
) -> dict[str, Any]:
    """Propagation, its products, a gather, and rivals, in turn; and their memory."""
    size, threads = work.main, torch.get_num_threads()
    calls: dict[str, Call] = {"propagate": propagation(graph, size, device, threads)}
    if device.type == "cpu":
        calls["products"] = products(graph, size, threads)
    calls["gather"] = gather(graph, size, device, threads)
    calls |= {key: rival(key, graph, size, device) for key in rivals}
    seconds = round_robin(calls, device, work.budget)
    ours = seconds["propagate"]
    del calls
    on_cpu = ("propagate", *rivals) if device.type == "cpu" else ()
    return {
        "seconds": {key: summarize(times) for key, times in seconds.items()},
        "ratios": {key: compare(t, ours) for key, t in seconds.items() if key != "propagate"},
        "memory_mib": {key: peak(key, graph.folder, size) for key in on_cpu},
    }


def propagation(graph: GraphStore, size: Size, device: torch.device, threads: int) -> Call:
    """A call of ``propagate`` that finds nothing computed before."""
    options: dict[str, Any] = {"dtype": "float16", "threads": threads, "device": str(device)}

    def call() -> None:
        with tempfile.TemporaryDirectory(dir=graph.folder) as folder:
            propagate(graph, degree=size.degree, output=Path(folder) / "basis", **options)

    return call


def products(graph: GraphStore, size: Size, threads: int) -> Call:
    """The same terms on the CPU from features in memory; nothing is kept."""
    x = torch.from_numpy(np.array(graph.features, order="C"))

    def call() -> None:
        for start in range(0, size.columns, BLOCK):
            block = x[:, start : start + BLOCK]
            each_term(
                graph,
                lambda first, last, block=block: block[first:last],  # type: ignore[misc]
                lambda degree, first, term: None,
                columns=block.shape[1],
                degree=size.degree,
                threads=threads,
            )

    return call


def pyg_data(graph: GraphStore, device: torch.device) -> Data:
    """The graph as PyG has it, in memory."""
    lengths = torch.from_numpy(np.diff(graph.offsets))
    row = torch.repeat_interleave(torch.arange(graph.num_nodes), lengths)
    col = torch.from_numpy(np.array(graph.neighbours)).long()
    x = torch.from_numpy(np.array(graph.features, order="C"))
    return Data(x=x, edge_index=torch.stack([row, col])).to(device)


def rival(key: str, graph: GraphStore, size: Size, device: torch.device) -> Call:
    """PyG's precomputation, ``"sign"`` or ``"sgc"``, of a graph that is in memory."""
    data = pyg_data(graph, device)
    layer = SGConv(size.columns, 1, K=size.degree, add_self_loops=False).to(device)

    def sign() -> Data:
        with warnings.catch_warnings():  # torch warns of PyG's sparse tensors
            warnings.simplefilter("ignore")
            return SIGN(size.degree)(data.clone())

    def sgc() -> None:
        with torch.no_grad():
            layer(data.x, data.edge_index)

    return {"sign": sign, "sgc": sgc}[key]


def gather(graph: GraphStore, size: Size, device: torch.device, threads: int) -> Call:
    """Copy the row of every stored entry, once per degree; threads share the entries."""
    index = torch.from_numpy(np.array(graph.neighbours)).to(device)
    x = torch.randn(size.nodes, size.columns, device=device)
    if device.type == "cpu":
        parts, rows = index.tensor_split(threads), ROWS
    else:
        parts, rows = (index,), len(index)

    def copy(part: Tensor) -> None:
        torch.set_num_threads(1)
        out = torch.empty(min(rows, len(part)), size.columns, device=device)
        for _ in range(size.degree):
            for some in part.split(rows):
                torch.index_select(x, 0, some, out=out[: len(some)])

    def call() -> None:
        with limited_threads(None), ThreadPoolExecutor(len(parts)) as pool:
            list(pool.map(copy, parts))

    return call


def peak(key: str, folder: Path, size: Size) -> float | None:
    """Peak growth of resident memory in MiB, in a process of its own; data in files before."""
    order = json.dumps([key, str(folder), *astuple(size)])
    try:
        return float(run_module("lab.bench._scale", order, str(torch.get_num_threads())))
    except RuntimeError:
        return None


def _child(order: str, threads: str) -> None:
    torch.set_num_threads(int(threads))
    key, folder, *numbers = json.loads(order)
    graph, size = GraphStore.open(folder), Size(*numbers)
    if key == "propagate":
        call = propagation(graph, size, CPU, int(threads))
    else:  # with the graph that PyG needs in memory
        call = lambda: rival(key, graph, size, CPU)()  # noqa: E731
    print(growth(call))


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2])
