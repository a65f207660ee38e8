"""Goals: a limit on the numbers of a record, and whether they keep it.

The worst dataset decides a goal over several datasets. The goal is *met* only when all of them are
measured as the goal asks; until then it is *partial* (or *missed*, when one dataset misses it).
"""

import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.bench._record import Record, cells, hardware
from lab.bench._tables import Table, number

#: The ten graphs of the paper.
DATASETS = (
    *("cora", "citeseer", "pubmed", "computers", "photo"),
    *("chameleon", "squirrel", "actor", "texas", "cornell"),
)
#: Datasets whose populations have the tighter limit on a GPU.
SMALL = ("cora", "citeseer", "texas", "cornell", "chameleon", "actor")
LARGE = tuple(name for name in DATASETS if name not in SMALL)


@dataclass(frozen=True)
class Goal:
    """A limit on one number per dataset, of one contender on one kind of device.

    In ``"x"``, the ratio to one LON-GNN model is at least the limit; in ``"ms"``, the time is at
    most the limit. Where the ``mean`` decides, it is the geometric one over the datasets. Where a
    goal names a ``population``, it must have so many members.
    """

    name: str
    device: str
    datasets: tuple[str, ...]
    contender: str
    limit: float
    unit: str
    mean: bool = False
    population: int | None = None


def _read_goals() -> dict[str, Goal]:
    """Every goal by its text, from ``goals.toml``."""
    groups = {"ten": DATASETS, "small": SMALL, "large": LARGE}
    goals = {}
    path = Path(__file__).with_name("goals.toml")
    for name, entries in tomllib.loads(path.read_text(encoding="utf-8")).items():
        text, datasets = entries.pop("text"), entries.pop("datasets")
        goals[text] = Goal(name, datasets=groups.get(datasets, (datasets,)), **entries)
    return goals


GOALS = _read_goals()


def check_goals(record: Record) -> list[dict[str, Any]]:
    """The goals for the device of the record, each with the number that decides it and its status.

    ``factor`` is at least 1 where the goal is reached: 1.2 is met with a fifth to spare, 0.8 is
    missed by a fifth.
    """
    device = record["machine"]["device"]
    return [_check(text, goal, record) for text, goal in GOALS.items() if goal.device == device]


def _check(text: str, goal: Goal, record: Record) -> dict[str, Any]:
    what, metric = ("ratios", "ratios") if goal.unit == "x" else ("contenders", "ms")
    measurements = cells(record, what)
    measured = {}
    if goal.population in (None, record["settings"]["population"]):
        for name in goal.datasets:
            if (name, goal.contender) in measurements:
                measured[name] = measurements[name, goal.contender][metric]["value"]
    worst = value = factor = None
    if goal.mean and measured:
        value = math.exp(sum(map(math.log, measured.values())) / len(measured))
    elif measured:
        worst = (min if goal.unit == "x" else max)(measured, key=lambda name: measured[name])
        value = measured[worst]
    status = "not measured"
    if value is not None:
        factor = value / goal.limit if goal.unit == "x" else goal.limit / value
        status = "met" if factor >= 1 else "missed"
        if len(measured) < len(goal.datasets) and (factor >= 1 or goal.mean):
            status = "partial"
    return {
        "name": goal.name,
        "text": text,
        "unit": goal.unit,
        "limit": goal.limit,
        "value": value,
        "factor": factor,
        "dataset": worst,
        "measured": len(measured),
        "datasets": len(goal.datasets),
        "status": status,
    }


def goals_table(record: Record) -> Table:
    settings = record["settings"]
    quick = " A quick benchmark: these numbers mean little." if settings["quick"] else ""
    note = (
        f"On {hardware(record)}; degree {settings['degree']}, hidden {settings['hidden']}, dropout "
        f"{settings['dropout']:g}. The worst dataset decides a goal over several datasets.{quick}"
    )
    goals = record.get("goals", [])
    told = [[goal["text"], goal_value(goal), goal_status(goal)] for goal in goals]
    return Table("Goals", note, ["goal", "measured", "status"], told, words=True)


def goal_value(goal: dict[str, Any]) -> str:
    """What was measured, with its unit and dataset."""
    if goal["value"] is None:
        return "-"
    unit = "x" if goal["unit"] == "x" else " ms"
    at = f" ({goal['dataset']})" if goal["dataset"] and goal["datasets"] > 1 else ""
    return f"{number(goal['value'])}{unit}{at}"


def goal_status(goal: dict[str, Any]) -> str:
    """Met or missed, and by what factor."""
    factor, measured, datasets = goal["factor"], goal["measured"], goal["datasets"]
    if factor is None:
        return "not measured"
    some = "" if measured == datasets else f" on {measured} of {datasets}"
    word = goal["status"]
    if word == "partial":
        word = "met until now" if factor >= 1 else "missed until now"
    return f"{word}{some}, by a factor of {factor if factor >= 1 else 1 / factor:.2f}"
