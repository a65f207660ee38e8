r"""How time grows: sweeps over one size at a time, and the exponent of the growth.

A sweep times ``apply_filter``, forward and backward, or one epoch of a population, or a stage of a
large graph: ingest, propagate, train, predict. The stages go from Parquet files to predictions of
all nodes, as ``longnn prepare``, ``propagate``, ``train`` and ``predict`` do it; training is one
epoch on rows. Bytes are the fewest that a stage must move.
"""

import shutil
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lab.bench._contenders import Workload, make_population, make_problem
from lab.bench._graphs import Size, random_dataset, random_operator
from lab.bench._measure import Budget, Call, captured, fit_sweep, median_time
from lab.generator import generate
from longnn._base.tables import write_tables
from longnn.config import Config
from longnn.data import make_split
from longnn.graphs import GraphOperator, apply_filter
from longnn.registry import FEATURES_FORM
from longnn.runs._predictions import ROWS, prediction_tables
from longnn.store import prepare, propagate
from longnn.store._basis import add_ones
from longnn.store._disk import load_stored
from longnn.store._graph import GraphStore
from longnn.training import Job, Member, Population, Trained, make_model

STAGES = ("ingest", "propagate", "train", "predict")
#: Memory that preparing may take, and bytes of a number of the stored terms.
MEMORY, HALF = "2G", 2
#: How often a stage is timed; once, if it takes more seconds than this.
REPEATS, LONG = 3, 4.0


def _powers(low: int, high: int, step: int = 1) -> list[int]:
    return [2**k for k in range(low, high + 1, step)]


@dataclass(frozen=True)
class Sizes:
    """The points of each sweep; the edges of the graph of the others, and of the random dataset
    that populations train on, if they are not those of Cora."""

    edges: Sequence[int]
    degree: Sequence[int]
    channels: Sequence[int]
    members: Sequence[int]
    fixed_edges: int
    dataset: Sequence[int] = ()


SIZES = {
    "cpu": Sizes(_powers(10, 18), _powers(1, 6), _powers(0, 8), _powers(0, 5), 2**14),
    "cuda": Sizes(_powers(10, 22, 2), _powers(1, 6), _powers(0, 10), _powers(0, 8), 2**17),
    "quick": Sizes(_powers(8, 11), _powers(1, 4), [1, 2, 4, 8], [1, 2, 4], 2**9, (200, 50)),
}
#: The degree and the channels that stay fixed in the other sweeps.
DEGREE, CHANNELS = 10, 16


def filter_call(
    operator: GraphOperator, channels: int, degree: int, *, evaluate: bool = False
) -> Call:
    """A call of ``apply_filter``, forward and backward, on a random signal.

    To ``evaluate`` is to apply the filter once more without gradients.
    """
    generator = torch.Generator().manual_seed(0)
    make = lambda *shape: torch.randn(*shape, generator=generator).to(operator.device)  # noqa: E731
    signal = make(operator.num_nodes, channels).requires_grad_()
    beta = make(degree + 1, channels).requires_grad_()
    gradient = make(operator.num_nodes, channels)

    def call() -> None:
        out = apply_filter(operator, signal, beta)
        torch.autograd.grad(out, (signal, beta), gradient)
        if evaluate:
            with torch.no_grad():
                apply_filter(operator, signal, beta)

    return call


def measure_scaling(
    device: torch.device,
    workload: Workload,
    sizes: Sizes,
    budget: Budget,
    on_sweep: Callable[[str], None] = lambda axis: None,
) -> list[dict[str, Any]]:
    """Sweeps of a filter over edges, degree and channels, and of an epoch over members."""
    graph = random_operator(sizes.fixed_edges, device)
    dataset = random_dataset(*sizes.dataset)
    problem = make_problem(dataset, workload, device)

    def edges(point: int) -> tuple[int, Call]:
        operator = random_operator(point, device)
        return operator.num_edges, captured(filter_call(operator, CHANNELS, DEGREE), device)

    def degree(point: int) -> tuple[int, Call]:
        return point, captured(filter_call(graph, CHANNELS, point), device)

    def channels(point: int) -> tuple[int, Call]:
        return point, captured(filter_call(graph, point, DEGREE), device)

    def members(point: int) -> tuple[int, Call]:
        return point, make_population(dataset, workload, device, point, problem=problem).step

    shape = f"{dataset.num_nodes} nodes, {problem.operator.num_edges} edges"
    sweeps = (
        (edges, f"degree {DEGREE}, {CHANNELS} channels"),
        (degree, f"{graph.num_edges} edges, {CHANNELS} channels"),
        (channels, f"{graph.num_edges} edges, degree {DEGREE}"),
        (members, f"{shape}, {dataset.num_features} features"),
    )
    measured = []
    for make, fixed in sweeps:
        axis = make.__name__
        on_sweep(axis)
        x, ms = [], []
        for point in getattr(sizes, axis):
            size, call = make(point)  # the exact size, and the call to time
            x.append(size)
            ms.append(1e3 * median_time(call, device, budget))
        what = "apply_filter, forward and backward"
        what = "one epoch of a population" if make is members else what
        measured.append({"what": what, "axis": axis, "fixed": fixed, **fit_sweep(x, ms)})
    return measured


def measure_stages(folder: Path, size: Size, device: torch.device) -> dict[str, dict[str, float]]:
    """Seconds of each stage of one size, and the bytes that it reads, writes and moves in memory.

    Args:
        folder: for files; what it holds goes.
        size: of the graph.
        device: that computes.
    """
    shutil.rmtree(folder, ignore_errors=True)
    files, output, predicted = folder / "files", folder / "graph", folder / "predicted.parquet"
    shape: dict[str, Any] = {"nodes": size.nodes, "edges": size.edges, "features": size.columns}
    generate(files, **shape, classes=4, format="parquet", memory=MEMORY)
    ingest = _median(
        lambda: prepare(files, output=output, memory=MEMORY),
        lambda: shutil.rmtree(output, ignore_errors=True),
    )
    read, written = _bytes(files), _bytes(output)
    stages = {"ingest": _stage(ingest, read, written, read + written)}

    def forget() -> None:
        for terms in output.glob("basis-*"):
            shutil.rmtree(terms)

    graph = GraphStore.open(output)
    options: dict[str, Any] = {"degree": size.degree, "dtype": "float16", "device": str(device)}
    call = lambda: propagate(graph, threads=torch.get_num_threads(), **options)  # noqa: E731
    seconds = _median(call, forget)
    written = sum(map(_bytes, output.glob("basis-*")))
    read = sum(file.bytes for file in graph.manifest.files.values())
    # A step gathers a row for every entry, reads U_{j-1} and writes U_{j+1}; float32.
    steps = size.degree * (graph.num_entries + 2 * graph.num_nodes)
    stages["propagate"] = _stage(seconds, read, written, 4 * size.columns * steps + written)
    add_ones(call(), graph)  # as training wants it; not timed

    rows = load_stored(output, rows=True)
    settings = {"epochs": 1, "hidden_channels": 64, "batch_rows": 4096, "degree": size.degree}
    config = Config.from_dict({**FEATURES_FORM, **settings})
    longer = Config.from_dict({**FEATURES_FORM, **settings, "epochs": 1000, "patience": 1000})
    job = Job(rows, [config], [make_split(rows, None, 0)], device=str(device))
    (split,) = job.splits
    problem = job.problem_of(0)
    model = make_model(longer, size.columns, problem.outputs)
    member = Member(model, longer.settings, longer.seed, split.train, split.val)
    seconds = _median(Population([member], problem).step)
    read, moved = _row_bytes(int(split.train.sum() + split.val.sum()), size)
    stages["train"] = _stage(seconds, read, 0, moved)

    trained = Trained.collect(job.dataset, job.scaling_of(0), job.run())

    def predict() -> int:
        batches = trained.predict_batches(trained.problem(rows), size=ROWS)
        return write_tables(prediction_tables(trained, rows, batches), [predicted])

    seconds = _median(predict)
    read, moved = _row_bytes(size.nodes, size)
    stages["predict"] = _stage(seconds, read, predicted.stat().st_size, moved)
    return stages


def _stage(seconds: float, read: int, written: int, moved: int) -> dict[str, float]:
    return {"seconds": seconds, "read": read, "written": written, "moved": moved}


def _row_bytes(rows: int, size: Size) -> tuple[int, int]:
    """Read and moved for rows of terms: read in float16, written and read once in float32."""
    numbers = rows * (size.degree + 1) * size.columns
    return HALF * numbers, (HALF + 4 + 4) * numbers


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _median(call: Call, clear: Call = lambda: None) -> float:
    """Seconds of a call that finds a clear place: the median, or one time of a long one."""
    times: list[float] = []
    while len(times) < REPEATS and not (times and times[0] > LONG):
        clear()
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def stage_sweeps(
    axis: str, sizes: Sequence[Size], stages: Mapping[Size, Mapping[str, Mapping[str, float]]]
) -> list[dict[str, Any]]:
    """How the seconds of each stage grow along an axis; ingest does not know the degree."""
    x, first = [float(getattr(size, axis)) for size in sizes], sizes[0]
    fixed = ", ".join(part for part in str(first).split(", ") if axis not in part)
    if axis == "nodes":
        per = first.edges // first.nodes
        fixed = f"{per} edges per node, {first.columns} columns, degree {first.degree}"
    sweeps = []
    for name in STAGES[1:] if axis == "degree" else STAGES:
        ms = [1e3 * stages[size][name]["seconds"] for size in sizes]
        sweeps.append({"what": name, "axis": axis, "fixed": fixed, **fit_sweep(x, ms)})
    return sweeps
