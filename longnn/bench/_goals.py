"""What was aimed for, and whether it was reached: arithmetic on a record, nothing measured.

A goal over several datasets is judged by the worst of them. It is *met* only once all of them are
measured as the goal says; until then it is *partial* (or *missed*, where one already misses it).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: The ten datasets of the published tables.
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
#: Those whose populations have the tighter limit on a GPU.
SMALL = ("cora", "citeseer", "texas", "cornell", "chameleon", "actor")
LARGE = tuple(name for name in DATASETS if name not in SMALL)

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Goal:
    """A limit on a number of each dataset.

    Args:
        name: a short one.
        device: ``"cpu"`` or ``"cuda"``.
        text: the goal in words.
        datasets: which it speaks of.
        measure: the number, from a dataset's part of the record; None where not measured.
        limit: the number to reach.
        unit: ``"x"``: at least so many times; ``"ms"``: at most so many milliseconds.
        mean: judge by the geometric mean over the datasets, not by the worst.
        population: how many models the population must have, if the goal is about one.
    """

    name: str
    device: str
    text: str
    datasets: tuple[str, ...]
    measure: Callable[[Record], float | None]
    limit: float
    unit: str
    mean: bool = False
    population: int | None = None


def _ratio(key: str) -> Callable[[Record], float | None]:
    def measure(part: Record) -> float | None:
        found = part.get("ratios", {}).get(key)
        return None if found is None else found["median"]

    return measure


def _time(key: str) -> Callable[[Record], float | None]:
    def measure(part: Record) -> float | None:
        found = part.get("contenders", {}).get(key)
        return None if found is None else found["ms"]["median"]

    return measure


GOALS = (
    Goal(
        "textbook-cora",
        "cpu",
        "at least 15x faster than the textbook LON-GNN on Cora",
        ("cora",),
        _ratio("textbook"),
        15.0,
        "x",
    ),
    Goal(
        "textbook-mean",
        "cpu",
        "at least 10x faster than the textbook LON-GNN in geometric mean over the ten",
        DATASETS,
        _ratio("textbook"),
        10.0,
        "x",
        mean=True,
    ),
    Goal(
        "gcn",
        "cpu",
        "faster than PyG's GCN (defaults) on each of the ten",
        DATASETS,
        _ratio("gcn"),
        1.0,
        "x",
    ),
    Goal(
        "population-10",
        "cpu",
        "a population of 10 at least 2.5x cheaper a model than ten runs one after another",
        DATASETS,
        _ratio("population"),
        2.5,
        "x",
        population=10,
    ),
    Goal(
        "single-cora",
        "cuda",
        "one model at most 1.0 ms an epoch on Cora",
        ("cora",),
        _time("single"),
        1.0,
        "ms",
    ),
    Goal(
        "single",
        "cuda",
        "one model at most 2.5 ms an epoch on each of the ten",
        DATASETS,
        _time("single"),
        2.5,
        "ms",
    ),
    Goal(
        "population-64-small",
        "cuda",
        "64 models at most 0.05 ms a model-epoch on each of " + ", ".join(SMALL),
        SMALL,
        _time("population"),
        0.05,
        "ms",
        population=64,
    ),
    Goal(
        "population-64-large",
        "cuda",
        "64 models at most 0.15 ms a model-epoch on each of " + ", ".join(LARGE),
        LARGE,
        _time("population"),
        0.15,
        "ms",
        population=64,
    ),
)


def check_goals(record: Record, goals: Sequence[Goal] = GOALS) -> list[dict[str, Any]]:
    """The goals for the record's device, each with what was measured and how it stands.

    ``factor`` is at least 1 where the goal is reached: 1.2 is met with a fifth to spare, 0.8 is
    missed by a fifth.
    """
    return [_check(goal, record) for goal in goals if goal.device == record["machine"]["device"]]


def _check(goal: Goal, record: Record) -> dict[str, Any]:
    parts = record["datasets"]
    measured: dict[str, float] = {}
    for name in goal.datasets:
        value = goal.measure(parts[name]) if name in parts else None
        if value is not None and goal.population in (None, record["settings"]["population"]):
            measured[name] = value
    result: dict[str, Any] = {
        "name": goal.name,
        "text": goal.text,
        "unit": goal.unit,
        "limit": goal.limit,
        "value": None,
        "factor": None,
        "dataset": None,
        "measured": len(measured),
        "datasets": len(goal.datasets),
        "status": "not measured",
    }
    if not measured:
        return result
    if goal.mean:
        value = math.exp(sum(map(math.log, measured.values())) / len(measured))
    else:
        choose = min if goal.unit == "x" else max
        worst = choose(measured, key=lambda name: measured[name])
        result["dataset"], value = worst, measured[worst]
    factor = value / goal.limit if goal.unit == "x" else goal.limit / value
    whole = len(measured) == len(goal.datasets)
    if whole:
        status = "met" if factor >= 1 else "missed"
    else:
        status = "missed" if factor < 1 and not goal.mean else "partial"
    return {**result, "value": value, "factor": factor, "status": status}
