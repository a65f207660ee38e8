r"""How fast a large graph is: its stages, how they grow, its rivals, two ranks, orders, and models.

Each part is a section of its own; :func:`run_scale` measures some or all of them.
"""

import contextlib
import datetime
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lab.bench._ceilings import measure_ceilings
from lab.bench._orders import graphs_of, measure_orders
from lab.bench._record import Code, Machine, Sweep
from lab.bench._rivals import BLOCK, gather, peak, products, propagation, rival
from lab.bench._rowmodels import Field, measure_contests
from lab.bench._scalegraph import Size, write_random
from lab.bench._scalerecord import ScaleRecord, Stage
from lab.bench._stages import StageBench, growth
from lab.bench._timing import Budget, Call, compare, round_robin, summarize
from lab.bench._tworanks import measure_ranks
from longnn._base.provenance import describe_code, environment
from longnn.store import GraphStore

#: Bytes written and read to measure the disk.
DISK = 1 << 28
#: What can be measured beside propagation; on a GPU only the first two.
SCALE_SECTIONS = ("rivals", "growth", "ranks", "orders", "models")
ON_GPU = SCALE_SECTIONS[:2]


@dataclass(frozen=True)
class Work:
    """What is measured: the main size, sizes along each axis, and the sizes of other sections."""

    main: Size
    sweeps: dict[str, tuple[Size, ...]]
    orders: Size
    field: Field
    budget: Budget
    rounds: int = 3  # of ranks


def _along(base: Size, **axes: Sequence[int]) -> dict[str, tuple[Size, ...]]:
    """Sizes with one number changed; more nodes bring edges in proportion."""
    found = {axis: tuple(replace(base, **{axis: v}) for v in vs) for axis, vs in axes.items()}
    grown = (replace(s, edges=base.edges * s.nodes // base.nodes) for s in found["nodes"])
    return {**found, "nodes": tuple(grown)}


_BASE, _TINY = Size(100_000, 1_000_000, 16, 4), Size(400, 2000, 4, 2)
WORK = {
    "full": Work(
        Size(500_000, 5_000_000, 64, 10),
        _along(
            _BASE,
            degree=(4, 8, 16, 32),  # first: these share a graph
            nodes=(100_000, 200_000, 400_000, 800_000),
            edges=(1_000_000, 2_000_000, 4_000_000, 8_000_000),
            columns=(16, 32, 64, 128),
        ),
        Size(1_000_000, 5_000_000, BLOCK, 1),
        Field(nodes=200_000, edges=2_000_000, labelled=20_000),
        Budget(5, 0.0),
    ),
    "quick": Work(
        _TINY,
        _along(_TINY, degree=(2, 4), nodes=(200, 400), edges=(1000, 2000), columns=(2, 4)),
        Size(300, 900, 4, 1),
        Field(nodes=300, edges=1500, labelled=200, epochs=3, seeds=(0,)),
        Budget(2, 0.0),
        rounds=1,
    ),
}


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


def run_scale(
    *,
    device: str = "cpu",
    threads: int | None = None,
    quick: bool = False,
    size: Size | None = None,
    sections: Sequence[str] | None = None,
    folder: str | Path | None = None,
    commit: str | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> ScaleRecord:
    r"""Measure propagation and some sections, and return the record.

    Args:
        device: ``"cpu"`` or ``"cuda"``.
        threads: by default those of torch.
        quick: a check that everything works, on tiny graphs.
        size: of one graph: propagation alone, once after a warm-up.
        sections: among :data:`SCALE_SECTIONS`; by default all, on a GPU rivals and growth.
        folder: for temporary files; by default the system's.
        commit: to record when the code is not a git checkout.
        on_progress: called with a few words on what is being measured.

    Raises:
        ValueError: for an unknown section.
    """
    where, hands = torch.device(device), threads or torch.get_num_threads()
    possible = SCALE_SECTIONS if where.type == "cpu" else ON_GPU
    wanted = possible if sections is None else tuple(sections)
    unknown = [name for name in wanted if name not in possible]
    if unknown:
        raise ValueError(f"Expected sections among {', '.join(possible)} (got {unknown[0]!r})")
    work = WORK["quick" if quick else "full"]
    if size is not None:
        work, wanted = replace(work, main=size, budget=Budget(1, 0.0)), ()
    tell = on_progress or (lambda text: None)
    before = torch.get_num_threads()
    torch.set_num_threads(hands)
    try:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            return _Scale(work, where, hands, Path(scratch), tell, wanted).run(commit)
    finally:
        torch.set_num_threads(before)


class _Scale:
    """One benchmark, its files in one folder."""

    def __init__(
        self,
        work: Work,
        device: torch.device,
        threads: int,
        folder: Path,
        tell: Callable[[str], None],
        sections: Sequence[str],
    ) -> None:
        self.work, self.device, self.threads = work, device, threads
        self.folder, self.tell, self.sections = folder, tell, sections

    def run(self, commit: str | None) -> ScaleRecord:
        created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        here = {**environment(self.device), "threads": self.threads}  # with the load before
        size = self.work.main
        self.tell(f"random graph: {size}")
        graph = write_random(self.folder / "main", size, self.device)
        written, read = disk_rates(self.folder)
        found: dict[str, Any] = {"disk_gb_s": written, "read_gb_s": read, **self._times(graph)}
        make = {
            "growth": self._growth,
            "ranks": self._ranks,
            "orders": self._orders,
            "models": self._models,
        }
        for name, measure in make.items():
            if name in self.sections:
                found |= measure()
        return ScaleRecord(
            created=created,
            machine=Machine.from_dict(here),
            code=Code(**describe_code(commit)),
            size=str(size),
            entries=graph.num_entries,
            steps=size.degree,
            columns=size.columns,
            **found,
        )

    def _times(self, graph: GraphStore) -> dict[str, Any]:
        """Propagation, its products, a gather, and rivals, in turn; and their memory."""
        size, rivals = self.work.main, ("sign", "sgc") if "rivals" in self.sections else ()
        self.tell("propagation and rivals, in turn" if rivals else "propagation")
        calls: dict[str, Call] = {"propagate": propagation(graph, size, self.device, self.threads)}
        if self.device.type == "cpu":
            calls["products"] = products(graph, size, self.threads)
        calls["gather"] = gather(graph, size, self.device, self.threads)
        calls |= {key: rival(key, graph, size, self.device) for key in rivals}
        seconds = round_robin(calls, self.device, self.work.budget)
        own = seconds["propagate"]
        del calls
        memory: dict[str, float | None] = {}
        if self.device.type == "cpu":
            self.tell("memory")
            for key in ("propagate", *rivals):
                memory[key] = peak(key, graph.folder, size, self.threads)
        return {
            "seconds": {key: summarize(times) for key, times in seconds.items()},
            "ratios": {key: compare(t, own) for key, t in seconds.items() if key != "propagate"},
            "memory_mib": memory,
        }

    def _growth(self) -> dict[str, Any]:
        bench = StageBench(self.folder / "stages", self.device, self.threads)
        found: dict[Size, dict[str, Stage]] = {}
        sweeps: list[Sweep] = []
        for axis, sizes in self.work.sweeps.items():
            self.tell(f"stages, growth with {axis}")
            found |= {size: bench.measure(size) for size in sizes}
            sweeps += growth(axis, sizes, found)
        largest = self.work.sweeps["nodes"][-1]
        return {
            "sweeps": sweeps,
            "stages": found[largest],
            "stage_size": str(largest),
            "memory_gb_s": measure_ceilings(self.device, Budget(3, 0.0)).memory_gb_s,
        }

    def _ranks(self) -> dict[str, Any]:
        self.tell("one rank and two ranks, in turn")
        degree = self.work.main.degree
        return {"ranks": measure_ranks(self.folder / "main", degree, self.work.rounds)}

    def _orders(self) -> dict[str, Any]:
        size, found = self.work.orders, {}
        for name, make in graphs_of(size).items():
            self.tell(f"orders of the nodes: {name}")
            found[name] = measure_orders(make(), size.columns, self.work.budget)
        text = f"{size.nodes:,} nodes, {size.edges:,} edges, {size.columns} columns"
        return {"orders": found, "order_size": text}

    def _models(self) -> dict[str, Any]:
        contests = measure_contests(self.folder / "models", self.work.field, self.tell)
        return {"contests": contests, "contest_size": str(self.work.field)}
