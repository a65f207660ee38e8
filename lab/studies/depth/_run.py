"""Search and train what the records lack, one record per graph and part."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from lab.records import StudyRecord
from lab.studies._core._context import Context
from lab.studies._core._evaluation import holdout_scores
from lab.studies._core._scores import percent
from lab.studies.depth._plan import (
    GONE,
    LABELS,
    PLANS,
    QUICK_KEYS,
    QUICK_PLANS,
    ROWS,
    Deep,
    rows_of,
)
from lab.studies.depth._textbook import TEXTBOOK, train_textbook
from lab.studies.protocols._plan import Plan, record_name
from lab.studies.protocols._run import SEARCH
from lab.studies.protocols._search import DrawsCell, draw_candidates, search_families
from lab.studies.protocols._train import Entry, RowCell, train_rows
from longnn import data
from longnn.config import Config
from longnn.data import NodeDataset, Split, make_split
from longnn.tuning._splits import tuning_seeds


def run(context: Context) -> None:
    """Every row on every graph, as far as the records lack it."""
    plans = QUICK_PLANS if context.quick else PLANS
    known = list(dict.fromkeys(name for graphs in plans.values() for name in graphs))
    asked = context.choose("models", list(LABELS))
    for name in context.choose("datasets", known):
        for part, graphs in plans.items():
            if name not in graphs:
                continue
            record = context.record(record_name(name, part), graphs[name])
            keys = QUICK_KEYS[part] if context.quick else rows_of(part, name)
            for key in [k for k in keys if k in asked and k not in record and k not in GONE]:
                train = _run_textbook if key in TEXTBOOK else _run_row
                cell = train(context, record, name, key, graphs[name])
                context.tell(f"{name}, {part}, {LABELS[key]}: {percent(cell.test):.2f} %")


def _run_row(context: Context, record: StudyRecord, name: str, key: str, plan: Plan) -> RowCell:
    """The search of one row, then its winner on all splits."""
    deep = ROWS[key]
    dataset = load(name, deep, context)
    plan = deep.plan(plan)

    def search() -> DrawsCell:
        if deep.halved:
            return search_halves(dataset, deep, plan, device=context.device)
        found: Mapping[str, DrawsCell] = search_families(
            dataset, {key: deep.row}, plan, device=context.device, precision=deep.precision
        )
        return found[key]

    drawn = record.cell(SEARCH + key, DrawsCell, search, machine=context.machine())
    winner = Config.from_dict(drawn.configs[drawn.chosen])
    entry = Entry([winner]).limited(plan.epochs)
    splits = _splits(dataset, plan)
    train = functools.partial(
        train_rows, dataset, {key: entry}, splits, metric=plan.metric, device=context.device
    )
    return record.cell(key, RowCell, lambda: train()[key], machine=context.machine())


def search_halves(dataset: NodeDataset, deep: Deep, plan: Plan, *, device: str) -> DrawsCell:
    """The winner by validation nodes that stopped no training, on tuning splits.

    The best epoch on a few dozen nodes is partly luck, and so is the best of many configurations
    by it. The scores of the cell are those of the other half of the nodes.
    """
    assert plan.draws is not None
    configs = draw_candidates(deep.row, plan, deep.precision)
    limits = {"epochs": plan.draws.epochs, "patience": plan.draws.patience}
    shortened = [config.replace(**limits) for config in configs]
    seeds = tuning_seeds(plan.draws.splits)
    scores = holdout_scores(dataset, shortened, seeds, device=device)
    best = int(np.argmax([np.mean(each) for each in scores]))
    return DrawsCell(dataset.fingerprint(), [c.to_dict() for c in configs], scores, best)


def _run_textbook(
    context: Context, record: StudyRecord, name: str, key: str, plan: Plan
) -> RowCell:
    """A network with the settings printed for it: nothing is searched."""
    dataset = data.load(name, data_dir=context.data_dir)
    book, splits = TEXTBOOK[key][name], _splits(dataset, plan)
    train = functools.partial(train_textbook, dataset, book, splits, device=context.device)
    return record.cell(key, RowCell, train, machine=context.machine())


def _splits(dataset: NodeDataset, plan: Plan) -> list[Split]:
    return [make_split(dataset, plan.protocol, seed) for seed in range(plan.splits)]


def load(name: str, deep: Deep, context: Context) -> NodeDataset:
    """A graph as a row sees it."""
    options: dict[str, Any] = {"directed": True} if deep.directed else {}
    if deep.raw:
        options["row_normalize"] = False
    return data.load(name, data_dir=context.data_dir, **options)
