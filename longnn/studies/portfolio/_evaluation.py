"""The portfolio on graphs and splits that took no part in its choice, against the default.

The ten graphs of the paper on the published splits, each with the portfolio that was chosen without
its kind; and the tables of the study ``tables``, which no choice has seen, with the whole one.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence

from longnn import data
from longnn.bench import DATASETS
from longnn.config import Config
from longnn.data import NodeDataset, Split, make_split
from longnn.studies._core._context import Context
from longnn.studies._core._headline import headline_scores
from longnn.studies.portfolio._candidates import candidates
from longnn.studies.portfolio._graphs import GRAPHS
from longnn.studies.portfolio._predictions import Predictions
from longnn.studies.portfolio._select import Selection, evaluate
from longnn.studies.tables._data import HELD_BACK, STORIES
from longnn.training import Fitted, complete, fit, headline

#: The key of the cell of a record.
TEST = "test"
_TABLES: dict[str, Callable[[], NodeDataset]] = {**STORIES, **HELD_BACK}
#: Every graph of the test: those of the paper by their names, tables with a mark.
TESTED = (*DATASETS, *(f"table-{name}" for name in _TABLES))


@dataclasses.dataclass(frozen=True)
class EvaluationPlan:
    """The size of the test: splits of the paper's graphs and of tables, epochs of the members.

    >>> FULL.splits
    10
    """

    splits: int
    tables: int
    epochs: int
    patience: int


FULL = EvaluationPlan(splits=10, tables=5, epochs=500, patience=100)


@dataclasses.dataclass(frozen=True)
class EvaluationCell:
    """Test scores on one graph, lists over the splits.

    Args:
        fingerprint: of the dataset.
        metric: of the scores; higher is better.
        portfolio: the candidates that were trained.
        members: test scores of each.
        joined: strategy -> test scores of the whole.
        default: test scores with nothing set.
    """

    fingerprint: str
    metric: str
    portfolio: list[str]
    members: dict[str, list[float]]
    joined: dict[str, list[float]]
    default: list[float]


def evaluate_portfolio(
    context: Context,
    selection: Selection,
    names: Sequence[str],
    plan: EvaluationPlan = FULL,
) -> None:
    """Compute the cells that the records lack."""
    for name in names:
        record = context.record(f"test-{name}", plan)
        if TEST not in record:
            compute = functools.partial(_cell, context, selection, name, plan)
            record.cell(TEST, EvaluationCell, compute, machine=context.machine())
            context.tell(f"{name}: tested")


def _cell(
    context: Context, selection: Selection, name: str, plan: EvaluationPlan
) -> EvaluationCell:
    table = name.removeprefix("table-")
    if name in DATASETS:
        dataset = data.load(name, data_dir=context.data_dir)
        splits = [make_split(dataset, "published", seed) for seed in range(plan.splits)]
        chosen = selection.left_out[GRAPHS[name].kind]
    else:
        dataset = _TABLES[table]()
        splits = [make_split(dataset, "stratified", seed) for seed in range(plan.tables)]
        chosen = selection.portfolio
    limits = {"epochs": plan.epochs, "patience": plan.patience}
    configs = [candidates(limits)[c] for c in chosen]
    usual = complete({"preset": "fast"}, dataset)
    *members, default = _train(context, dataset, [*configs, usual], splits)
    found = Predictions.collect(dataset, members)

    def tested(fitted: Sequence[Fitted]) -> list[float]:
        return headline_scores(dataset, [f.predicted for f in fitted], splits)[1]

    return EvaluationCell(
        fingerprint=dataset.fingerprint(),
        metric=headline(dataset.data.y, dataset.task)[0],
        portfolio=list(chosen),
        members={c: tested(fitted) for c, fitted in zip(chosen, members, strict=True)},
        joined=evaluate(found, range(len(chosen))),
        default=tested(default),
    )


def _train(
    context: Context, dataset: NodeDataset, configs: Sequence[Config], splits: Sequence[Split]
) -> list[list[Fitted]]:
    members = [c.replace(seed=s.seed) for c in configs for s in splits]
    fitted = fit(dataset, members, [*splits] * len(configs), device=context.device)
    n = len(splits)
    return [fitted[i * n : (i + 1) * n] for i in range(len(configs))]
