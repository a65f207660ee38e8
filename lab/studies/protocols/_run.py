"""Train what the records lack, one record per graph and part; all rows of a record by one call."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from lab.records import StudyRecord
from lab.studies._core._context import Context, record_path
from lab.studies._core._scores import percent
from lab.studies.protocols._plan import (
    GRAPHS,
    PLANS,
    QUICK_GRAPHS,
    QUICK_PLANS,
    SEARCHED,
    Plan,
    record_name,
)
from lab.studies.protocols._rows import (
    FAMILIES,
    LABELS,
    QUICK_ROWS,
    chosen_configs,
    default_configs,
    entries,
)
from lab.studies.protocols._search import DrawsCell, search_families
from lab.studies.protocols._train import RowCell, train_rows
from longnn import data
from longnn.config import Config
from longnn.data import NodeDataset, Split, make_split

T = TypeVar("T")

#: The key of the cell about classes, and how the keys of searches begin.
CLASSES, SEARCH = "classes", "search "


@dataclasses.dataclass(frozen=True)
class ClassesCell:
    """How many classes have no test node, a list over the splits.

    Args:
        classes: that have labelled nodes.
        untested: under the protocol of the record.
        published: under the published split.
    """

    classes: int
    untested: list[int]
    published: list[int]


def run(context: Context) -> None:
    """Train every row on every graph and part that the records lack."""
    plans = QUICK_PLANS if context.quick else PLANS
    graphs = QUICK_GRAPHS if context.quick else GRAPHS
    known = list(dict.fromkeys(name for part in plans for name in graphs[part]))
    for name in context.choose("datasets", known):
        for part in [part for part in plans if name in graphs[part]]:
            _run_part(context, name, part, plans[part])


def _run_part(context: Context, name: str, part: str, plan: Plan) -> None:
    record = context.record(record_name(name, part), plan)
    asked = context.choose("models", list(LABELS))
    if context.quick and not context.models:
        asked = list(QUICK_ROWS)
    missing = [key for key in asked if key not in record]
    if not missing:
        return
    dataset = data.load(name, data_dir=context.data_dir)
    splits = _splits(dataset, plan)
    count = functools.partial(count_untested, dataset, splits)
    record.cell(CLASSES, ClassesCell, count, machine=context.machine("cpu"))
    if part == SEARCHED:
        configs = _search(context, record, dataset, missing, plan)
    elif context.quick and not record_path(context.folder.parent / "accuracy", name).is_file():
        configs = default_configs(name)
    else:
        configs = chosen_configs(context.folder.parent, name)
    every = entries(configs, name, context.folder.parent, epochs=plan.epochs, members=plan.members)
    rows = {key: every[key] for key in missing if key in every}

    @functools.cache
    def train() -> dict[str, RowCell]:
        return train_rows(dataset, rows, splits, metric=plan.metric, device=context.device)

    for key in rows:
        compute = functools.partial(_pick, train, key)
        cell = record.cell(key, RowCell, compute, machine=context.machine())
        context.tell(f"{name}, {part}, {LABELS[key]}: {percent(cell.test):.2f} %")


def _pick(compute: Callable[[], Mapping[str, T]], key: str) -> T:
    """One of what is computed together, and once."""
    return compute()[key]


def _splits(dataset: NodeDataset, plan: Plan) -> list[Split]:
    if plan.protocol in ("geom-gcn", "fixed") and dataset.num_splits < plan.splits:
        raise ValueError(
            f"Expected {plan.splits} masks of {dataset.name!r} (got {dataset.num_splits})"
        )
    return [make_split(dataset, plan.protocol, seed) for seed in range(plan.splits)]


def _search(
    context: Context, record: StudyRecord, dataset: NodeDataset, asked: Sequence[str], plan: Plan
) -> dict[str, Config]:
    """The winner of each family that is asked for; recorded searches are not done again."""
    families = [key for key in FAMILIES if key in asked]
    missing = [key for key in families if SEARCH + key not in record]

    @functools.cache
    def search() -> Mapping[str, DrawsCell]:
        rows = {key: FAMILIES[key] for key in missing}
        return search_families(dataset, rows, plan, device=context.device)

    winners = {}
    for key in families:
        compute = functools.partial(_pick, search, key)
        cell = record.cell(SEARCH + key, DrawsCell, compute, machine=context.machine())
        winners[key] = Config.from_dict(cell.configs[cell.chosen])
    context.tell(f"{dataset.name}: searched {len(missing)} families")
    return winners


def count_untested(dataset: NodeDataset, splits: Sequence[Split]) -> ClassesCell:
    """Classes without test nodes on these splits, and on the published ones of the same seeds.

    >>> graph = data.load("csbm", num_nodes=60, num_features=4)
    >>> count_untested(graph, [make_split(graph, "stratified", 0)])
    ClassesCell(classes=2, untested=[0], published=[0])
    """
    there = set(dataset.data.y[dataset.labelled].tolist())

    def untested(split: Split) -> int:
        return len(there - set(dataset.data.y[split.test].tolist()))

    published = [make_split(dataset, "published", split.seed) for split in splits]
    return ClassesCell(len(there), [*map(untested, splits)], [*map(untested, published)])
