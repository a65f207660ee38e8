"""The goals, and whether they are reached: arithmetic on a record, nothing is measured here.

The worst dataset decides a goal over several datasets. The goal is *met* only when all of them are
measured as the goal asks; until then it is *partial* (or *missed*, when one dataset misses it).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lab.bench._record import BenchRecord, DatasetResult, GoalResult

#: The ten graphs of the paper.
DATASETS = (
    "cora",
    "citeseer",
    "pubmed",
    "computers",
    "photo",
    "chameleon",
    "squirrel",
    "actor",
    "texas",
    "cornell",
)
#: Datasets whose populations have the tighter limit on a GPU.
SMALL = ("cora", "citeseer", "texas", "cornell", "chameleon", "actor")
LARGE = tuple(name for name in DATASETS if name not in SMALL)

#: The number that a goal is about; None where it was not measured.
Measure = Callable[[DatasetResult], float | None]


@dataclass(frozen=True)
class Goal:
    r"""A limit on one number per dataset.

    Args:
        name: a short name.
        device: ``"cpu"`` or ``"cuda"``.
        text: the goal in words.
        datasets: the datasets it is about.
        measure: the number of one dataset; None where it was not measured.
        limit: the number to reach.
        unit: ``"x"``: at least ``limit`` times; ``"ms"``: at most ``limit`` milliseconds.
        mean: the geometric mean over the datasets decides, not the worst dataset.
        population: the number of members that the population must have, if any.
    """

    name: str
    device: str
    text: str
    datasets: tuple[str, ...]
    measure: Measure
    limit: float
    unit: str
    mean: bool = False
    population: int | None = None


def _ratio(key: str) -> Measure:
    def measure(found: DatasetResult) -> float | None:
        ratio = found.ratios.get(key)
        return None if ratio is None else ratio.median

    return measure


def _time(key: str) -> Measure:
    def measure(found: DatasetResult) -> float | None:
        contender = found.contenders.get(key)
        return None if contender is None else contender.ms.median

    return measure


GOALS = (
    Goal(
        "textbook-cora",
        "cpu",
        "at least 20x faster than the textbook LON-GNN on Cora",
        ("cora",),
        _ratio("textbook"),
        20.0,
        "x",
    ),
    Goal(
        "textbook-mean",
        "cpu",
        "at least 10x faster than the textbook LON-GNN in the geometric mean over the ten graphs",
        DATASETS,
        _ratio("textbook"),
        10.0,
        "x",
        mean=True,
    ),
    Goal(
        "gcn",
        "cpu",
        "faster than PyG's GCN (defaults) on each of the ten graphs",
        DATASETS,
        _ratio("gcn"),
        1.0,
        "x",
    ),
    Goal(
        "population-10",
        "cpu",
        "a population of 10 at least 2.5x cheaper per model than ten runs one after another",
        DATASETS,
        _ratio("population"),
        2.5,
        "x",
        population=10,
    ),
    Goal(
        "single-cora",
        "cuda",
        "one model at most 0.45 ms per epoch on Cora",
        ("cora",),
        _time("single"),
        0.45,
        "ms",
    ),
    Goal(
        "single",
        "cuda",
        "one model at most 2.5 ms per epoch on each of the ten graphs",
        DATASETS,
        _time("single"),
        2.5,
        "ms",
    ),
    Goal(
        "population-64-cora",
        "cuda",
        "64 models at most 0.02 ms per model and epoch on Cora",
        ("cora",),
        _time("population"),
        0.02,
        "ms",
        population=64,
    ),
    Goal(
        "population-64-small",
        "cuda",
        "64 models at most 0.05 ms per model and epoch on each of " + ", ".join(SMALL),
        SMALL,
        _time("population"),
        0.05,
        "ms",
        population=64,
    ),
    Goal(
        "population-64-large",
        "cuda",
        "64 models at most 0.15 ms per model and epoch on each of " + ", ".join(LARGE),
        LARGE,
        _time("population"),
        0.15,
        "ms",
        population=64,
    ),
)


def check_goals(record: BenchRecord, goals: Sequence[Goal] = GOALS) -> list[GoalResult]:
    """The goals for the device of the record, each with what was measured and its status."""
    return [_check(goal, record) for goal in goals if goal.device == record.machine.device]


def _check(goal: Goal, record: BenchRecord) -> GoalResult:
    found = record.datasets
    measured: dict[str, float] = {}
    for name in goal.datasets:
        value = goal.measure(found[name]) if name in found else None
        if value is not None and goal.population in (None, record.settings.population):
            measured[name] = value
    worst, value = _decide(goal, measured)
    factor = None
    if value is not None:
        factor = value / goal.limit if goal.unit == "x" else goal.limit / value
    return GoalResult(
        name=goal.name,
        text=goal.text,
        unit=goal.unit,
        limit=goal.limit,
        value=value,
        factor=factor,
        dataset=worst,
        measured=len(measured),
        datasets=len(goal.datasets),
        status=_status(goal, factor, whole=len(measured) == len(goal.datasets)),
    )


def _decide(goal: Goal, measured: Mapping[str, float]) -> tuple[str | None, float | None]:
    """The number that decides the goal, and the dataset it is from; None for a mean.

    >>> goal = next(goal for goal in GOALS if goal.unit == "ms")
    >>> _decide(goal, {"cora": 0.5, "texas": 0.8})
    ('texas', 0.8)
    """
    if not measured:
        return None, None
    if goal.mean:
        return None, math.exp(sum(map(math.log, measured.values())) / len(measured))
    choose = min if goal.unit == "x" else max
    worst = choose(measured, key=lambda name: measured[name])
    return worst, measured[worst]


def _status(goal: Goal, factor: float | None, *, whole: bool) -> str:
    if factor is None:
        return "not measured"
    if whole:
        return "met" if factor >= 1 else "missed"
    return "missed" if factor < 1 and not goal.mean else "partial"
