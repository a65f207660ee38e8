"""The whole benchmark: it measures section by section and returns one record.

A measurement that fails, for example for lack of memory, is recorded with its reason; the others
continue.
"""

import datetime
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch

from lab.bench._ceilings import measure_ceilings, measure_shares
from lab.bench._contenders import (
    DESCRIPTIONS,
    LABELS,
    Contender,
    Workload,
    check_keys,
    make_contender,
    make_problem,
)
from lab.bench._counting import count_calls, count_kernels, operators, sparse_products
from lab.bench._goals import DATASETS, check_goals
from lab.bench._memory import peak_memory
from lab.bench._record import (
    BenchRecord,
    Ceilings,
    Code,
    ContenderResult,
    DatasetResult,
    Failure,
    Machine,
    Settings,
    Share,
    ShareFailure,
    Spread,
    Sweep,
)
from lab.bench._scaling import SIZES, measure_scaling
from lab.bench._timing import Budget, compare, round_robin, summarize
from longnn import data, training
from longnn._base.provenance import describe_code, environment
from longnn.data import NodeDataset
from longnn.matrices import nonzero_share

#: Datasets of a quick benchmark: bundled, so that it needs no files.
QUICK_DATASETS = ("digits", "csbm")
#: Members of the population, by device.
POPULATION = {"cpu": 10, "cuda": 64}
#: Sections that can be measured besides the epoch times.
SECTIONS = ("memory", "scaling", "ceilings")

Tell = Callable[[str], None]
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Budgets:
    """The budget of each contender's epochs, and of every other timing."""

    epochs: Budget
    rest: Budget


BUDGETS = {
    "cpu": Budgets(Budget(9, 0.25), Budget(5, 0.05)),
    "cuda": Budgets(Budget(9, 0.05), Budget(5, 0.02)),
    "quick": Budgets(Budget(3, 0.02), Budget(3, 0.005)),
}


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
    sections: Sequence[str] | None = None,
    commit: str | None = None,
    on_progress: Tell | None = None,
    on_dataset: Callable[[BenchRecord], None] | None = None,
) -> BenchRecord:
    r"""Measure, and return the record.

    Args:
        datasets: names or datasets; by default the ten graphs of the paper.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"``.
        threads: threads of torch on the CPU, restored afterwards; by default those torch has.
        population: models trained at once; by default 10 on a CPU, 64 on a GPU.
        precision: of LON-GNN; ``"tf32"`` is for a GPU. The rivals are in float32.
        quick: take a few seconds on bundled data; a check that everything works, since the
            numbers mean little.
        data_dir: the folder of the datasets (default: ``$LONGNN_DATA``).
        contenders: which contenders to time; by default all.
        sections: what to measure besides the epoch times, of ``"memory"``, ``"scaling"`` and
            ``"ceilings"``. By default all on a GPU in float32, else all but ceilings, and only
            scaling when ``quick``.
        commit: commit to record when the code is not a git checkout.
        on_progress: called with a few words on what is being measured.
        on_dataset: called after each dataset with the record until then, so that whoever is
            interrupted keeps it.

    Raises:
        ValueError: for an unknown device, contender, section or precision, or a number below one.
    """
    where = training.choose_device(device)
    keys = list(LABELS if contenders is None else contenders)
    members = POPULATION[where.type] if population is None else population
    chosen = _choose_sections(sections, where, precision, quick=quick)
    _check(keys, members, threads)
    _check_precision(precision, where)
    names: Sequence[str | NodeDataset] = datasets or (QUICK_DATASETS if quick else DATASETS)
    tell = on_progress or (lambda text: None)
    bench = _Bench(where, members, keys, chosen, Workload(precision=precision), quick, tell)
    with limited_threads(threads):
        return bench.run(names, data_dir, commit, on_dataset)


def _choose_sections(
    sections: Sequence[str] | None, device: torch.device, precision: str, *, quick: bool
) -> tuple[str, ...]:
    if sections is None:
        if quick:
            return ("scaling",)
        # The ceiling of products is that of float32.
        known = device.type == "cuda" and precision == "float32"
        return SECTIONS if known else ("memory", "scaling")
    unknown = [section for section in sections if section not in SECTIONS]
    if unknown:
        raise ValueError(f"Expected sections among {', '.join(SECTIONS)} (got {unknown[0]!r})")
    return tuple(sections)


def _check(keys: Sequence[str], members: int, threads: int | None) -> None:
    check_keys(keys)
    check_counts(members, threads)


def _check_precision(precision: str, device: torch.device) -> None:
    known = ("float32", "tf32") if device.type == "cuda" else ("float32",)
    if precision not in known:
        raise ValueError(
            f"Expected `precision` on {device.type} among {', '.join(known)} (got {precision!r})"
        )


def check_counts(members: int, threads: int | None) -> None:
    """Raise ValueError for a number of models or threads below one."""
    for name, value in (("population", members), ("threads", threads)):
        if value is not None and value < 1:
            raise ValueError(f"Expected `{name}` >= 1 (got {value})")


@contextmanager
def limited_threads(count: int | None) -> Iterator[None]:
    """Threads of torch for a while; None leaves them as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _guarded(measure: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | Failure:
    """The measurement, or its failure: one failure must not lose the numbers of an hour."""
    try:
        return measure(*args, **options)
    except (RuntimeError, MemoryError, OSError) as error:
        return Failure(error=(str(error).splitlines() or [type(error).__name__])[0])


class _Bench:
    """One benchmark: device, contenders and sections are chosen and checked."""

    def __init__(
        self,
        device: torch.device,
        members: int,
        keys: Sequence[str],
        sections: Sequence[str],
        workload: Workload,
        quick: bool,
        tell: Tell,
    ) -> None:
        self.device, self.members, self.keys, self.sections = device, members, keys, sections
        self.quick, self.tell = quick, tell
        self.workload = workload
        self.kind = "quick" if quick else device.type
        self.budgets = BUDGETS[self.kind]

    def run(
        self,
        names: Sequence[str | NodeDataset],
        data_dir: str | Path | None,
        commit: str | None,
        on_dataset: Callable[[BenchRecord], None] | None,
    ) -> BenchRecord:
        record = BenchRecord(
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            machine=Machine.from_dict(environment(self.device)),
            code=Code(**describe_code(commit)),
            settings=self._settings(),
            datasets={},
            ceilings=self._ceilings(),
        )
        for name in names:
            dataset = name if isinstance(name, NodeDataset) else data.load(name, data_dir=data_dir)
            found = _DatasetBench(self, dataset).run(record.ceilings)
            record = replace(record, datasets={**record.datasets, dataset.name: found})
            record = replace(record, goals=check_goals(record))
            if on_dataset is not None:
                on_dataset(record)
        return replace(record, scaling=self._scaling())

    def _settings(self) -> Settings:
        epochs, rest = self.budgets.epochs, self.budgets.rest
        precision = None if self.workload.precision == "float32" else self.workload.precision
        return Settings(
            **{**asdict(self.workload), "precision": precision},
            population=self.members,
            quick=self.quick,
            rounds=epochs.rounds,
            seconds=epochs.seconds,
            rest_rounds=rest.rounds,
            rest_seconds=rest.seconds,
            contenders={key: DESCRIPTIONS[key] for key in LABELS if key in self.keys},
        )

    def _ceilings(self) -> Ceilings | Failure | None:
        if "ceilings" not in self.sections:
            return None
        self.tell("ceilings of the machine")
        return _guarded(measure_ceilings, self.device, self.budgets.rest)

    def _scaling(self) -> list[Sweep] | Failure | None:
        if "scaling" not in self.sections:
            return None
        return _guarded(
            measure_scaling,
            self.device,
            self.workload,
            SIZES[self.kind],
            self.budgets.rest,
            lambda axis: self.tell(f"scaling: {axis}"),
        )


class _DatasetBench:
    """The measurements on one dataset."""

    def __init__(self, bench: _Bench, dataset: NodeDataset) -> None:
        self.dataset, self.keys, self.sections = dataset, bench.keys, bench.sections
        self.device, self.members, self.workload = bench.device, bench.members, bench.workload
        self.budgets = bench.budgets
        self.tell: Tell = lambda text: bench.tell(f"{dataset.name}: {text}")

    def run(self, ceilings: Ceilings | Failure | None) -> DatasetResult:
        made, failed = self._build()
        contenders, ratios = self._epochs(made)
        del made
        found = DatasetResult(
            nodes=self.dataset.num_nodes,
            edges=self.dataset.num_edges,
            features=self.dataset.num_features,
            density=nonzero_share(self.dataset.data.x),
            classes=self.dataset.num_classes,
            contenders=contenders,
            ratios=ratios,
            failed=failed,
            memory_mib=self._memory(),
            ceilings=self._shares(contenders, ceilings),
        )
        gc.collect()
        return found

    def _build(self) -> tuple[dict[str, Contender], dict[str, str]]:
        """The contenders that run, and the reasons why others do not."""
        made: dict[str, Contender] = {}
        failed: dict[str, str] = {}
        for key in self.keys:
            self.tell(f"building {LABELS[key]}")
            contender = _guarded(self._make, key)
            if isinstance(contender, Failure):
                failed[key] = contender.error
            else:
                made[key] = contender
        return made, failed

    def _make(self, key: str) -> Contender:
        """A contender that has run one epoch: one that does not fit in memory fails here."""
        contender = make_contender(
            key, self.dataset, self.workload, self.device, population=self.members
        )
        contender.epoch()
        return contender

    def _epochs(
        self, made: dict[str, Contender]
    ) -> tuple[dict[str, ContenderResult], dict[str, Spread]]:
        """Times of all contenders, measured in turn, and their ratios to one LON-GNN model."""
        budget = self.budgets.epochs
        times = round_robin(
            {key: contender.epoch for key, contender in made.items()},
            self.device,
            budget,
            on_round=lambda i: self.tell(f"epochs, round {i + 1} of {budget.rounds}"),
        )
        each = {key: [t / made[key].models for t in times[key]] for key in made}
        contenders = {
            key: ContenderResult(
                models=contender.models,
                ms=summarize(each[key], scale=1e3),
                calls=_guarded(self._calls, contender.epoch),
            )
            for key, contender in made.items()
        }
        return contenders, _ratios(each)

    def _calls(self, epoch: Callable[[], Any]) -> dict[str, float]:
        if self.device.type == "cuda":
            return count_kernels(epoch)
        counts = count_calls(epoch)
        return {"operators": operators(counts), "sparse_products": sparse_products(counts)}

    def _memory(self) -> dict[str, float | None] | Failure | None:
        if "memory" not in self.sections:
            return None
        self.tell("memory")
        return _guarded(
            peak_memory,
            self.dataset,
            self.keys,
            self.workload,
            self.device,
            population=self.members,
        )

    def _shares(
        self, contenders: dict[str, ContenderResult], ceilings: Ceilings | Failure | None
    ) -> list[Share | ShareFailure] | None:
        """The shares of the ceilings that LON-GNN reaches, alone and as a population."""
        if not isinstance(ceilings, Ceilings):
            return None
        self.tell("ceilings")
        found: list[Share | ShareFailure] = []
        for key in ("single", "population"):
            if key in contenders:
                share = _guarded(self._share, key, contenders[key], ceilings)
                if isinstance(share, Failure):
                    share = ShareFailure(contender=key, error=share.error)
                found.append(share)
        return found

    def _share(self, key: str, contender: ContenderResult, ceilings: Ceilings) -> Share:
        problem = make_problem(self.dataset, self.workload, self.device)
        members = contender.models
        epoch = members * contender.ms.median
        return measure_shares(
            key, problem, self.workload, members, epoch, ceilings, self.budgets.rest
        )


def _ratios(times: dict[str, list[float]]) -> dict[str, Spread]:
    """How many times longer rivals take than one model, and it than one of a population."""
    if "single" not in times:
        return {}
    rivals = [key for key in times if key not in ("single", "population")]
    ratios = {key: compare(times[key], times["single"]) for key in rivals}
    if "population" in times:
        ratios["population"] = compare(times["single"], times["population"])
    return ratios
