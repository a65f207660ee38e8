"""The benchmark of epochs: it measures graph by graph into one record.

A measurement that fails, for example for lack of memory, is recorded with its reason; the others
continue.
"""

import dataclasses
import gc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch

from lab.bench._contenders import (
    DESCRIPTIONS,
    LABELS,
    Contender,
    Workload,
    make_contender,
    peak_memory,
)
from lab.bench._goals import DATASETS, check_goals
from lab.bench._measure import (
    Budget,
    compare,
    count_calls,
    count_kernels,
    limited_threads,
    operators,
    round_robin,
    sparse_products,
    summarize,
)
from lab.bench._record import Record, begin
from longnn import data, training
from longnn.data import NodeDataset
from longnn.matrices import nonzero_share

#: Members of the population, by device.
POPULATION = {"cpu": 10, "cuda": 64}
#: Precisions, by device: a CPU has no TF32.
PRECISIONS = {"cpu": ("float32",), "cuda": ("float32", "tf32")}
#: The budget of each contender's epochs.
BUDGETS = {"cpu": Budget(9, 0.25), "cuda": Budget(9, 0.05), "quick": Budget(3, 0.02)}

P = ParamSpec("P")
T = TypeVar("T")


def run_bench(
    datasets: Sequence[str | NodeDataset] | None = None,
    *,
    device: str = "cpu",
    threads: int | None = None,
    population: int | None = None,
    precision: str = "float32",
    quick: bool = False,
    data_dir: str | Path | None = None,
    contenders: Sequence[str] | None = None,
    commit: str | None = None,
    on_progress: Callable[[str], None] = lambda text: None,
    on_dataset: Callable[[Record], None] = lambda record: None,
) -> Record:
    """Measure, and return the record.

    Args:
        datasets: names or datasets; by default the ten graphs of the paper.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"``.
        threads: of torch on the CPU, restored afterwards; by default those it has.
        population: models trained at once; by default 10 on a CPU, 64 on a GPU.
        precision: of LON-GNN; ``"tf32"`` is for a GPU. The rivals are in float32.
        quick: a check that everything works, on bundled data and without memory, which takes
            processes of its own: the numbers mean little.
        data_dir: the folder of the datasets (default: ``$LONGNN_DATA``).
        contenders: which to time; by default all.
        commit: to record when the code is not a git checkout.
        on_progress: called with a few words on what is being measured.
        on_dataset: called after each dataset with the record until then.

    Raises:
        ValueError: for an unknown device, contender or precision, or a number below one.
    """
    where = training.choose_device(device)
    unknown = [name for name in contenders or [] if name not in LABELS]
    if unknown:
        raise ValueError(f"Expected contenders among {', '.join(LABELS)} (got {unknown[0]!r})")
    for option, value in (("population", population), ("threads", threads)):
        if value is not None and value < 1:
            raise ValueError(f"Expected `{option}` >= 1 (got {value})")
    if precision not in PRECISIONS[where.type]:
        raise ValueError(
            f"Expected `precision` on {where.type} among {', '.join(PRECISIONS[where.type])} "
            f"(got {precision!r})"
        )
    with limited_threads(threads):
        bench = Bench(
            record=begin(where, commit),
            device=where,
            members=population or POPULATION[where.type],
            workload=Workload(precision=precision),
            keys=list(contenders or LABELS),
            quick=quick,
            tell=on_progress,
        )
        bench.start()
        for name in datasets or (("digits", "csbm") if quick else DATASETS):
            dataset = name if isinstance(name, NodeDataset) else data.load(name, data_dir=data_dir)
            bench.epochs(dataset)
            on_dataset(bench.record)
    return bench.record


def guarded(measure: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | dict[str, Any]:
    """The measurement, or its error: one failure must not lose the numbers of an hour."""
    try:
        return measure(*args, **options)
    except (RuntimeError, MemoryError, OSError) as error:
        return {"error": (str(error).splitlines() or [type(error).__name__])[0]}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bench:
    """One benchmark: everything is chosen and checked; what is measured goes into the record."""

    record: Record
    device: torch.device
    members: int
    workload: Workload
    keys: Sequence[str]
    quick: bool
    tell: Callable[[str], None]

    @property
    def kind(self) -> str:
        """The device, or quick."""
        return "quick" if self.quick else self.device.type

    def start(self) -> None:
        """The settings, and no datasets."""
        budget = BUDGETS[self.kind]
        work, keys = self.workload, ("degree", "hidden", "dropout", "lr", "weight_decay")
        settings: dict[str, Any] = {key: getattr(work, key) for key in keys}
        settings.update(quick=self.quick, rounds=budget.rounds, seconds=budget.seconds)
        settings.update(population=self.members)
        settings["contenders"] = {key: DESCRIPTIONS[key] for key in LABELS if key in self.keys}
        if work.precision != "float32":
            settings["precision"] = work.precision
        self.record.update(settings=settings, datasets={})

    def epochs(self, dataset: NodeDataset) -> None:
        """Times of the contenders, their ratios and calls, and memory."""
        tell = lambda text: self.tell(f"{dataset.name}: {text}")  # noqa: E731
        ready, failed = {}, {}
        for key in self.keys:
            tell(f"building {LABELS[key]}")
            contender = guarded(self._make, key, dataset)
            if isinstance(contender, Contender):
                ready[key] = contender
            else:
                failed[key] = contender["error"]
        each = self._time_in_turn(ready, lambda text: tell(f"epochs, {text}"))
        times = {
            key: {
                "models": contender.models,
                "ms": summarize(each[key], scale=1e3),
                "calls": guarded(self._calls, contender.epoch),
            }
            for key, contender in ready.items()
        }
        ratios = {}
        if "single" in each:
            rivals = [key for key in each if key not in ("single", "population")]
            ratios = {key: compare(each[key], each["single"]) for key in rivals}
            if "population" in each:  # how many times less a model costs there
                ratios["population"] = compare(each["single"], each["population"])
        del ready
        result: dict[str, Any] = {
            "nodes": dataset.num_nodes,
            "edges": dataset.num_edges,
            "features": dataset.num_features,
            "density": nonzero_share(dataset.data.x),
            "classes": dataset.num_classes,
            "contenders": times,
            "ratios": ratios,
            "failed": failed,
        }
        if not self.quick:
            tell("memory")
            work = (dataset, self.keys, self.workload, self.device)
            result["memory_mib"] = guarded(peak_memory, *work, population=self.members)
        gc.collect()
        self.record["datasets"][dataset.name] = result
        self.record["goals"] = check_goals(self.record)

    def _make(self, key: str, dataset: NodeDataset) -> Contender:
        """A contender that has run one epoch: one that does not fit in memory fails here."""
        work = (dataset, self.workload, self.device)
        contender = make_contender(key, *work, population=self.members)
        contender.epoch()
        return contender

    def _time_in_turn(
        self, ready: Mapping[str, Contender], tell: Callable[[str], None]
    ) -> dict[str, list[float]]:
        """Seconds per model and epoch of each contender in each round."""
        budget = BUDGETS[self.kind]
        calls = {key: contender.epoch for key, contender in ready.items()}
        on_round = lambda i: tell(f"round {i + 1} of {budget.rounds}")  # noqa: E731
        times = round_robin(calls, self.device, budget, on_round=on_round)
        return {key: [t / ready[key].models for t in times[key]] for key in ready}

    def _calls(self, epoch: Callable[[], Any]) -> dict[str, float]:
        if self.device.type == "cuda":
            return count_kernels(epoch)
        counts = count_calls(epoch)
        return {"operators": operators(counts), "sparse_products": sparse_products(counts)}
