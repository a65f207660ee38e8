r"""The four stages of a large graph, each timed alone: ingest, propagate, train, predict.

From Parquet files to predictions of all nodes, as ``longnn prepare``, ``propagate``, ``train`` and
``predict`` do it; training is one epoch on rows. Bytes are the fewest that a stage must move.
"""

import shutil
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from lab.bench._record import Sweep
from lab.bench._scalegraph import Size
from lab.bench._scalerecord import Stage
from lab.bench._scaling import fit_exponent
from lab.generator import generate
from longnn.config import Config
from longnn.data import make_split
from longnn.registry import FEATURES_FORM
from longnn.runs import stream_predictions, write_stream
from longnn.store import GraphStore, add_ones, load_stored, prepare, propagate
from longnn.training import Job, Member, Population, Trained, make_model

STAGES = ("ingest", "propagate", "train", "predict")
#: Memory that preparing may take, and bytes of a number of the stored terms.
MEMORY, HALF = "2G", 2
#: A stage that takes more seconds than this is timed once.
LONG = 4.0
REPEATS = 3
SETTINGS = {
    **FEATURES_FORM,
    "epochs": 1000,
    "patience": 1000,
    "hidden_channels": 64,
    "batch_rows": 4096,
}


class StageBench:
    """Graphs of some sizes, one after the other, in one folder.

    Args:
        folder: for files.
        device: that computes.
        threads: of the CPU.
    """

    def __init__(self, folder: Path, device: torch.device, threads: int) -> None:
        self.folder, self.device, self.threads = folder, device, threads
        self._graph: tuple[Size, GraphStore, Stage] | None = None
        self._known: dict[Size, dict[str, Stage]] = {}

    def measure(self, size: Size) -> dict[str, Stage]:
        """All stages of one size."""
        if size not in self._known:
            graph, ingest = self._ingest(replace(size, degree=0))
            self._known[size] = {"ingest": ingest, **self._rest(graph, size)}
        return self._known[size]

    def _ingest(self, size: Size) -> tuple[GraphStore, Stage]:
        """The prepared graph; sizes that differ in degree alone share it."""
        if self._graph is not None and self._graph[0] == size:
            return self._graph[1:]
        shutil.rmtree(self.folder, ignore_errors=True)
        files, output = self.folder / "files", self.folder / "graph"
        shape = {"nodes": size.nodes, "edges": size.edges, "features": size.columns, "classes": 4}
        generate(files, **shape, format="parquet", memory=MEMORY)  # type: ignore[arg-type]
        call = lambda: prepare(files, output=output, memory=MEMORY)  # noqa: E731
        seconds = _median(call, lambda: shutil.rmtree(output, ignore_errors=True))
        read, written = _bytes(files), _bytes(output)
        stage = Stage(seconds=seconds, read=read, written=written, moved=read + written)
        self._graph = size, GraphStore.open(output), stage
        return self._graph[1:]

    def _rest(self, graph: GraphStore, size: Size) -> dict[str, Stage]:
        return {
            "propagate": self._propagate(graph, size),
            "train": self._train(graph, size),
            "predict": self._predict(graph, size),
        }

    def _propagate(self, graph: GraphStore, size: Size) -> Stage:
        options = {"degree": size.degree, "dtype": "float16", "threads": self.threads}
        call = lambda: propagate(graph, **options, device=str(self.device))  # type: ignore[arg-type]  # noqa: E731
        seconds = _median(call, lambda: _forget_terms(graph))
        (folder,) = graph.folder.glob("basis-*")
        read, written = sum(f.bytes for f in graph.manifest.files.values()), _bytes(folder)
        # A step gathers a row for every entry, reads U_{j-1} and writes U_{j+1}; float32.
        rows = graph.num_entries + 2 * graph.num_nodes
        moved = 4 * size.columns * size.degree * rows + written
        add_ones(call(), graph)  # as training wants it; not timed
        return Stage(seconds=seconds, read=read, written=written, moved=moved)

    def _job(self, graph: GraphStore, size: Size, **settings: int) -> Job:
        rows = load_stored(graph.folder, rows=True)
        config = Config.from_dict({**SETTINGS, "degree": size.degree, **settings})
        return Job(rows, [config], [make_split(rows, None, 0)], device=str(self.device))

    def _train(self, graph: GraphStore, size: Size) -> Stage:
        """One epoch: all training rows, then all validation rows."""
        job = self._job(graph, size)
        problem, config, split = job.problem_of(0), job.configs[0], job.splits[0]
        model = make_model(config, size.columns, problem.outputs)
        member = Member(model, config.settings, config.seed, split.train, split.val)
        population = Population([member], problem)
        seconds = _median(population.step, lambda: None)
        rows = int(split.train.sum() + split.val.sum())
        return Stage(seconds=seconds, written=0, **_row_bytes(rows, size))

    def _predict(self, graph: GraphStore, size: Size) -> Stage:
        """All nodes, to a Parquet file."""
        job = self._job(graph, size, epochs=1)
        trained = Trained.collect(job.dataset, job.scaling_of(0), job.run())
        path = self.folder / "predicted.parquet"
        call = lambda: write_stream(stream_predictions(trained, graph), path)  # noqa: E731
        seconds = _median(call, lambda: None)
        written = path.stat().st_size
        return Stage(seconds=seconds, written=written, **_row_bytes(size.nodes, size))


def _row_bytes(rows: int, size: Size) -> dict[str, int]:
    """Rows of terms: read in float16, written and read once in float32."""
    numbers = rows * (size.degree + 1) * size.columns
    return {"read": HALF * numbers, "moved": (HALF + 4 + 4) * numbers}


def _forget_terms(graph: GraphStore) -> None:
    for folder in graph.folder.glob("basis-*"):
        shutil.rmtree(folder)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _median(call: Callable[[], object], clear: Callable[[], object]) -> float:
    """Seconds of a call that finds a clear place: the median, or one time of a long one."""
    times: list[float] = []
    while len(times) < REPEATS and not (times and times[0] > LONG):
        clear()
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def growth(axis: str, sizes: Sequence[Size], found: Mapping[Size, dict[str, Stage]]) -> list[Sweep]:
    """How the seconds of each stage grow along an axis; ingest does not know the degree."""
    sweeps = []
    x = [float(getattr(size, axis)) for size in sizes]
    for name in STAGES[1:] if axis == "degree" else STAGES:
        ms = [1e3 * found[size][name].seconds for size in sizes]
        exponent, factor, first = fit_exponent(x, ms)
        sweeps.append(
            Sweep(
                what=name,
                axis=axis,
                fixed=_fixed(axis, sizes[0]),
                x=x,
                ms=ms,
                exponent=exponent,
                factor=factor,
                from_=first,
            )
        )
    return sweeps


def _fixed(axis: str, size: Size) -> str:
    if axis == "nodes":
        per = size.edges // size.nodes
        return f"{per} edges per node, {size.columns} columns, degree {size.degree}"
    return ", ".join(part for part in str(size).split(", ") if axis not in part)
