r"""How fast a large graph is propagated: against PyG's precomputation, a gather, and the disk.

The whole of :func:`longnn.store.propagate` is timed, files written and synced. Rivals keep their
terms in memory: PyG's SIGN transform (all powers) and the loop of its SGConv (the last alone). A
gather reads the same rows that a step sums, and writes them out.
"""

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import SGConv
from torch_geometric.transforms import SIGN

from longnn._base.provenance import describe_code, environment
from longnn.bench._record import Code, Machine, Sweep
from longnn.bench._scalerecord import Order, ScaleRecord
from longnn.bench._scaling import fit_exponent
from longnn.bench._timing import Budget, Call, compare, median_time, round_robin, summarize
from longnn.store import GraphStore, Manifest, propagate

FILES = ["offsets.npy", "neighbours.npy", "features.npy", "labels.npy"]
#: Rows that a gather copies at once.
ROWS = 1 << 13
#: Bytes written to measure the disk.
DISK = 1 << 28


@dataclass(frozen=True)
class Size:
    """A random graph, and the terms to compute of it.

    >>> print(Size(10_000, 50_000, 16, 10))
    10,000 nodes, 50,000 edges, 16 columns, degree 10
    """

    nodes: int
    edges: int
    columns: int
    degree: int

    def __str__(self) -> str:
        return (
            f"{self.nodes:,} nodes, {self.edges:,} edges, {self.columns} columns, degree "
            f"{self.degree}"
        )


@dataclass(frozen=True)
class Work:
    """What is measured: the main size, and sizes along each axis."""

    main: Size
    sweeps: dict[str, tuple[Size, ...]]
    budget: Budget


def _along(base: Size, **axes: Sequence[int]) -> dict[str, tuple[Size, ...]]:
    """Sizes with one number changed; more nodes bring edges in proportion."""
    found = {axis: tuple(replace(base, **{axis: v}) for v in vs) for axis, vs in axes.items()}
    grown = (replace(s, edges=base.edges * s.nodes // base.nodes) for s in found["nodes"])
    return {**found, "nodes": tuple(grown)}


_BASE, _TINY = Size(500_000, 5_000_000, 16, 4), Size(400, 2000, 4, 2)
WORK = {
    "full": Work(
        Size(500_000, 5_000_000, 64, 10),
        _along(
            _BASE,
            nodes=(250_000, 500_000, 1_000_000, 2_000_000),
            edges=(2_500_000, 5_000_000, 10_000_000, 20_000_000),
            columns=(16, 32, 64, 128),
            degree=(4, 8, 16, 32),
        ),
        Budget(5, 0.0),
    ),
    "quick": Work(
        _TINY, _along(_TINY, nodes=(200, 400), edges=(1000, 2000), columns=(2, 4), degree=(2, 4)),
        Budget(3, 0.0),
    ),
}  # fmt: skip


def write_random(folder: Path, size: Size, device: torch.device, *, seed: int = 0) -> GraphStore:
    """A prepared folder with a random undirected graph, made on the device."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator(device).manual_seed(seed)
    shape = (2, size.edges)
    a, b = torch.randint(size.nodes, shape, generator=generator, device=device)
    keys = torch.cat([a * size.nodes + b, b * size.nodes + a])
    del a, b
    if device.type == "cpu":
        keys.numpy().sort()  # several times faster than torch's sort there
    else:
        keys = keys.sort().values
    keys = torch.unique_consecutive(keys)
    rows = keys // size.nodes
    offsets = torch.zeros(size.nodes + 1, dtype=torch.int64)
    offsets[1:] = torch.bincount(rows, minlength=size.nodes).cumsum(0).cpu()
    np.save(folder / FILES[0], offsets.numpy())
    np.save(folder / FILES[1], (keys - rows * size.nodes).int().cpu().numpy())
    del keys, rows
    features = np.lib.format.open_memmap(
        folder / FILES[2], "w+", np.float32, (size.nodes, size.columns), fortran_order=True
    )
    for column in range(size.columns):
        features[:, column] = torch.randn(size.nodes, generator=generator, device=device).cpu()
    features.flush()
    np.save(folder / FILES[3], np.zeros(size.nodes, dtype=np.int32))
    Manifest.of("graph", {"name": "random"}, folder, FILES).write(folder)
    return GraphStore.open(folder)


def propagation(graph: GraphStore, size: Size, device: torch.device, threads: int) -> Call:
    """A call of ``propagate`` that finds nothing computed before."""

    def call() -> None:
        with tempfile.TemporaryDirectory(dir=graph.folder) as folder:
            propagate(
                graph,
                degree=size.degree,
                dtype="float16",
                threads=threads,
                device=str(device),
                output=Path(folder) / "basis",
            )

    return call


def _pyg_data(graph: GraphStore, device: torch.device) -> Data:
    lengths = torch.from_numpy(np.diff(graph.offsets))
    row = torch.repeat_interleave(torch.arange(graph.num_nodes), lengths)
    col = torch.from_numpy(np.array(graph.neighbours)).long()
    x = torch.from_numpy(np.array(graph.features, order="C"))
    return Data(x=x, edge_index=torch.stack([row, col])).to(device)


def rival(key: str, graph: GraphStore, size: Size, device: torch.device) -> Call:
    """PyG's precomputation, of a graph that is in memory."""
    data = _pyg_data(graph, device)
    if key == "sign":
        return lambda: _quiet_sign(size.degree, data)
    assert key == "sgc"
    layer = SGConv(size.columns, 1, K=size.degree, add_self_loops=False).to(device)

    def call() -> None:
        with torch.no_grad():
            layer(data.x, data.edge_index)

    return call


def _quiet_sign(degree: int, data: Data) -> Data:
    """PyG's transform; torch warns of PyG's sparse tensors, which is not for users of this."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SIGN(degree)(data.clone())


def gather(graph: GraphStore, size: Size, device: torch.device) -> Call:
    """Copy the row of every stored entry, once per degree."""
    index = torch.from_numpy(np.array(graph.neighbours)).to(device)
    x = torch.randn(size.nodes, size.columns, device=device)
    rows = ROWS if device.type == "cpu" else len(index)
    out = torch.empty(min(rows, len(index)), size.columns, device=device)

    def call() -> None:
        for _ in range(size.degree):
            for some in index.split(rows):
                torch.index_select(x, 0, some, out=out[: len(some)])

    return call


def _disk_rate(folder: Path) -> float:
    """GB/s of a file that is written and synced."""
    data = np.random.default_rng(0).bytes(DISK // 16)
    started = time.perf_counter()
    with (folder / "disk").open("wb") as file:
        for _ in range(16):
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    rate = DISK / (time.perf_counter() - started) / 1e9
    (folder / "disk").unlink()
    return rate


def _peak(key: str, folder: Path, size: Size, threads: int) -> float | None:
    """Peak growth of resident memory in MiB, in a process of its own; data in files before."""
    root = str(Path(__file__).resolve().parents[2])
    order = json.dumps([key, str(folder), size.nodes, size.edges, size.columns, size.degree])
    search = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "longnn.bench._scale", order, str(threads)],
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=False,
    )
    return float(done.stdout) if done.returncode == 0 else None


def _child(order: str, threads: str) -> None:
    from longnn.bench._memory import _most_resident, _resident  # measured alike

    key, folder, *numbers = json.loads(order)
    graph, size, cpu = GraphStore.open(folder), Size(*numbers), torch.device("cpu")
    torch.set_num_threads(int(threads))
    before = _resident()
    if key == "propagate":
        propagation(graph, size, cpu, int(threads))()
    else:
        rival(key, graph, size, cpu)()
    print(max(_most_resident() - before, 0.0))


def measure_orders(graph: GraphStore, size: Size, budget: Budget) -> dict[str, Order]:
    """Seconds to find an order of the nodes, and of one product in it: what would it gain?"""
    lengths = np.diff(graph.offsets)
    values = np.ones(graph.num_entries, dtype=np.int8)
    shape = (graph.num_nodes, graph.num_nodes)
    matrix = scipy.sparse.csr_matrix((values, graph.neighbours, graph.offsets), shape)
    finders: dict[str, Callable[[], np.ndarray]] = {
        "as it is": lambda: np.arange(graph.num_nodes),
        "by degree": lambda: np.argsort(-lengths, kind="stable"),
        "reverse Cuthill-McKee": lambda: reverse_cuthill_mckee(matrix, symmetric_mode=True),
    }
    x = torch.randn(graph.num_nodes, size.columns)
    found = {}
    for name, find in finders.items():
        started = time.perf_counter()
        order = np.asarray(find())
        moved = matrix if name == "as it is" else matrix[order][:, order].sorted_indices()
        cost = time.perf_counter() - started
        call = _product(moved, x)
        found[name] = Order(find_s=cost, product_s=median_time(call, x.device, budget))
    return found


def _product(matrix: Any, x: Tensor) -> Call:
    indices, offsets = (
        torch.from_numpy(part.astype(np.int32)) for part in (matrix.indices, matrix.indptr)
    )
    bag = torch.nn.functional.embedding_bag
    return lambda: bag(indices, x, offsets, mode="sum", include_last_offset=True)


def run_scale(
    *,
    device: str = "cpu",
    threads: int | None = None,
    quick: bool = False,
    size: Size | None = None,
    folder: str | Path | None = None,
    commit: str | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> ScaleRecord:
    r"""Measure propagation, and return the record.

    Args:
        device: ``"cpu"`` or ``"cuda"``.
        threads: by default those of torch.
        quick: a few seconds, a check that everything works.
        size: of one graph; then nothing is swept, and rivals run only if they fit.
        folder: for temporary files; by default the system's.
        commit: to record when the code is not a git checkout.
        on_progress: called with a few words on what is being measured.
    """
    where, hands = torch.device(device), threads or torch.get_num_threads()
    work = WORK["quick" if quick else "full"]
    if size is not None:
        work = Work(size, {}, Budget(1, 0.0))
    tell = on_progress or (lambda text: None)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        return _Scale(work, where, hands, Path(scratch), tell).run(commit)


class _Scale:
    """One benchmark, its files in one folder."""

    def __init__(
        self,
        work: Work,
        device: torch.device,
        threads: int,
        folder: Path,
        tell: Callable[[str], None],
    ) -> None:
        self.work, self.device, self.threads = work, device, threads
        self.folder, self.tell = folder, tell

    def run(self, commit: str | None) -> ScaleRecord:
        created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        size, budget = self.work.main, self.work.budget
        self.tell(f"random graph: {size}")
        graph = write_random(self.folder / "main", size, self.device)
        rivals = ("sign", "sgc") if self.work.sweeps else ()
        calls = {"propagate": propagation(graph, size, self.device, self.threads)}
        calls["gather"] = gather(graph, size, self.device)
        calls |= {key: rival(key, graph, size, self.device) for key in rivals}
        self.tell("propagation and rivals, in turn")
        seconds = round_robin(calls, self.device, budget)
        ratios = {
            key: compare(times, seconds["propagate"])
            for key, times in seconds.items()
            if key != "propagate"
        }
        del calls
        memory = self._memory(("propagate", *rivals), size)
        orders = {}
        if rivals:
            self.tell("orders of the nodes")
            orders = measure_orders(graph, size, budget)
        return ScaleRecord(
            created=created,
            machine=Machine.from_dict({**environment(self.device), "threads": self.threads}),
            code=Code(**describe_code(commit)),
            size=str(size),
            entries=graph.num_entries,
            steps=size.degree,
            columns=size.columns,
            seconds={key: summarize(times) for key, times in seconds.items()},
            ratios=ratios,
            memory_mib=memory,
            disk_gb_s=_disk_rate(self.folder),
            orders=orders,
            sweeps=[self._sweep(axis, sizes) for axis, sizes in self.work.sweeps.items()],
        )

    def _memory(self, keys: Sequence[str], size: Size) -> dict[str, float | None]:
        if self.device.type != "cpu":
            return {}
        self.tell("memory")
        return {key: _peak(key, self.folder / "main", size, self.threads) for key in keys}

    def _sweep(self, axis: str, sizes: Sequence[Size]) -> Sweep:
        self.tell(f"growth with {axis}")
        x, ms = [], []
        for size in sizes:
            graph = write_random(self.folder / "sweep", size, self.device)
            call = propagation(graph, size, self.device, self.threads)
            x.append(float(getattr(size, axis)))
            ms.append(1e3 * median_time(call, self.device, Budget(3, 0.0)))
        exponent, factor, first = fit_exponent(x, ms)
        fixed = ", ".join(part for part in str(sizes[0]).split(", ") if axis not in part)
        if axis == "nodes":
            fixed = f"10 edges per node, {sizes[0].columns} columns, degree {sizes[0].degree}"
        return Sweep(
            what="propagate, files written",
            axis=axis,
            fixed=fixed,
            x=x,
            ms=ms,
            exponent=exponent,
            factor=factor,
            from_=first,
        )


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2])
