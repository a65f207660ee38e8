"""The benchmark as a whole: it measures part by part and returns one record of plain numbers.

A part that fails (too little memory, say) is written down with its reason; the rest goes on.
"""

import datetime
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch

from longnn import data, training
from longnn._base.provenance import describe_code, environment
from longnn.bench._ceilings import measure_ceilings, measure_shares
from longnn.bench._contenders import (
    DESCRIPTIONS,
    LABELS,
    Setup,
    check_keys,
    make_contender,
    make_problem,
)
from longnn.bench._counting import count_calls, count_kernels, operators, sparse_products
from longnn.bench._goals import DATASETS, check_goals
from longnn.bench._memory import peak_memory
from longnn.bench._scaling import SIZES, measure_scaling
from longnn.bench._timing import compare, round_robin, summarize
from longnn.data import NodeDataset

FORMAT = "longnn.bench/1"
#: What --quick runs on: bundled, so that it needs no files.
QUICK_DATASETS = ("digits", "csbm")
#: Models of the population, by device.
POPULATION = {"cpu": 10, "cuda": 64}
PARTS = ("memory", "scaling", "ceilings")

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """Rounds of timing, and seconds of each contender's turn: for contenders, and for the rest."""

    rounds: int
    seconds: float
    rest_rounds: int
    rest_seconds: float

    @property
    def rest(self) -> dict[str, Any]:
        return {"rounds": self.rest_rounds, "seconds": self.rest_seconds}


EFFORTS = {
    "cpu": Effort(9, 0.25, 5, 0.05),
    "cuda": Effort(9, 0.05, 5, 0.02),
    "quick": Effort(3, 0.02, 3, 0.005),
}


def run_bench(
    datasets: Sequence[str | NodeDataset] | None = None,
    *,
    device: str = "cpu",
    threads: int | None = None,
    population: int | None = None,
    quick: bool = False,
    data_dir: Any = None,
    contenders: Sequence[str] | None = None,
    parts: Sequence[str] | None = None,
    commit: str | None = None,
    on_progress: Tell | None = None,
) -> dict[str, Any]:
    """Measure, and return the record.

    Args:
        datasets: names, or datasets; by default the ten of the published tables.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"``.
        threads: of torch on the CPU; by default as torch has it. Set back afterwards.
        population: models trained at once; by default 10 on a CPU, 64 on a GPU.
        quick: a few seconds on bundled data, to see that all works; the numbers mean little.
        data_dir: where published datasets lie (default: ``$LONGNN_DATA``).
        contenders: which (see ``contenders.LABELS``); by default all.
        parts: which besides the epoch times, of ``memory``, ``scaling`` and ``ceilings``; by
            default all, or only ``scaling`` when quick. Ceilings are for GPUs unless asked for.
        commit: for a copy of the code that is no checkout.
        on_progress: is told in a few words what is being measured.

    Raises:
        ValueError: for an unknown device, contender or part, or a number below one.
    """
    where = training.choose_device(device)
    keys = list(LABELS if contenders is None else contenders)
    members = POPULATION[where.type] if population is None else population
    chosen = _choose_parts(parts, where, quick=quick)
    _check(keys, members, threads)
    names: Sequence[str | NodeDataset] = datasets or (QUICK_DATASETS if quick else DATASETS)
    effort = EFFORTS["quick" if quick else where.type]
    setup, tell = Setup(), on_progress or (lambda text: None)
    with _threads(threads):
        record: dict[str, Any] = {
            "format": FORMAT,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "machine": environment(where),
            "code": describe_code(commit),
            "settings": {
                **asdict(setup),
                "population": members,
                "quick": quick,
                **asdict(effort),
                "contenders": {key: DESCRIPTIONS[key] for key in LABELS if key in keys},
            },
            "datasets": {},
        }
        if "ceilings" in chosen:
            tell("ceilings of the machine")
            record["ceilings"] = _guarded(measure_ceilings, where, effort.rest)
        for name in names:
            dataset = name if isinstance(name, NodeDataset) else data.load(name, data_dir=data_dir)
            measured = _Dataset(dataset, setup, where, members, effort, tell)
            record["datasets"][dataset.name] = measured.run(keys, chosen, record.get("ceilings"))
        if "scaling" in chosen:
            sizes = SIZES["quick" if quick else where.type]
            record["scaling"] = _guarded(
                measure_scaling,
                where,
                setup,
                sizes,
                effort.rest,
                lambda axis: tell(f"scaling: {axis}"),
            )
    record["goals"] = check_goals(record)
    return record


def _choose_parts(
    parts: Sequence[str] | None, device: torch.device, *, quick: bool
) -> tuple[str, ...]:
    if parts is None:
        if quick:
            return ("scaling",)
        return PARTS if device.type == "cuda" else ("memory", "scaling")
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ValueError(f"Expected parts among {', '.join(PARTS)} (got {unknown[0]!r})")
    return tuple(parts)


def _check(keys: Sequence[str], members: int, threads: int | None) -> None:
    check_keys(keys)
    for name, value in (("population", members), ("threads", threads)):
        if value is not None and value < 1:
            raise ValueError(f"Expected `{name}` >= 1 (got {value})")


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _guarded(measure: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What it measures, or ``{"error": reason}``: an hour's other numbers are not lost."""
    try:
        return measure(*arguments, **options)
    except (RuntimeError, MemoryError, OSError) as error:
        return {"error": (str(error).splitlines() or [type(error).__name__])[0]}


class _Dataset:
    """The measurements on one dataset."""

    def __init__(
        self,
        dataset: NodeDataset,
        setup: Setup,
        device: torch.device,
        members: int,
        effort: Effort,
        tell: Tell,
    ) -> None:
        self.dataset, self.setup, self.device = dataset, setup, device
        self.members, self.effort, self.tell = members, effort, tell

    def run(
        self, keys: Sequence[str], parts: Sequence[str], ceilings: dict[str, float] | None
    ) -> dict[str, Any]:
        name = self.dataset.name
        found = {**self._describe(), **self._epochs(keys)}
        if "memory" in parts:
            self.tell(f"{name}: memory")
            sizes = {"population": self.members}
            peak = _guarded(peak_memory, self.dataset, keys, self.setup, self.device, **sizes)
            found["memory_mib"] = peak
        if ceilings is not None and "error" not in ceilings:
            self.tell(f"{name}: ceilings")
            found["ceilings"] = [
                self._shares(key, found["contenders"][key], ceilings)
                for key in ("single", "population")
                if key in found["contenders"]
            ]
        gc.collect()
        return found

    def _describe(self) -> dict[str, Any]:
        x = self.dataset.data.x
        return {
            "nodes": self.dataset.num_nodes,
            "edges": self.dataset.num_edges,
            "features": self.dataset.num_features,
            "density": float((x != 0).float().mean()),
            "classes": self.dataset.num_classes,
        }

    def _epochs(self, keys: Sequence[str]) -> dict[str, Any]:
        """Times of all contenders, taken in turn, and their ratios to one model of LON-GNN."""
        made: dict[str, Any] = {}
        failed: dict[str, str] = {}
        for key in keys:
            self.tell(f"{self.dataset.name}: building {LABELS[key]}")
            contender = _guarded(self._make, key)
            if isinstance(contender, dict):
                failed[key] = contender["error"]
            else:
                made[key] = contender
        times = round_robin(
            {key: contender.epoch for key, contender in made.items()},
            self.device,
            rounds=self.effort.rounds,
            seconds=self.effort.seconds,
            on_round=lambda i: self.tell(
                f"{self.dataset.name}: epochs, round {i + 1} of {self.effort.rounds}"
            ),
        )
        each = {key: [t / made[key].models for t in times[key]] for key in made}
        contenders: dict[str, Any] = {}
        for key in made:
            contenders[key] = {"models": made[key].models, "ms": summarize(each[key], scale=1e3)}
            contenders[key]["calls"] = _guarded(self._calls, made[key].epoch)
        ratios: dict[str, Any] = {}
        if "single" in each:
            rivals = [key for key in each if key not in ("single", "population")]
            ratios = {key: compare(each[key], each["single"]) for key in rivals}
            if "population" in each:
                ratios["population"] = compare(each["single"], each["population"])
        return {"contenders": contenders, "ratios": ratios, "failed": failed}

    def _make(self, key: str) -> Any:
        """A contender that has run once: what does not fit fails here."""
        contender = make_contender(
            key, self.dataset, self.setup, self.device, population=self.members
        )
        contender.epoch()
        return contender

    def _calls(self, epoch: Callable[[], Any]) -> dict[str, float]:
        if self.device.type == "cuda":
            return count_kernels(epoch)
        counts = count_calls(epoch)
        return {"operators": operators(counts), "sparse_products": sparse_products(counts)}

    def _shares(
        self, key: str, contender: dict[str, Any], ceilings: dict[str, float]
    ) -> dict[str, Any]:
        members = contender["models"]
        problem = make_problem(self.dataset, self.setup, self.device)
        epoch = members * contender["ms"]["median"]
        found = _guarded(
            measure_shares, problem, self.setup, members, epoch, ceilings, self.effort.rest
        )
        return {"contender": key, **found}
