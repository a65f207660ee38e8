"""The portfolios on splits that took no part in their choice, against one model.

The graphs of the paper on the published splits, each with the portfolios that were chosen without
it and without its recipes; and with the whole ones the tables of the study ``tables``, which no
choice has seen, and graphs of kinds that the collection lacks.
"""

import dataclasses
import functools
from collections.abc import Callable, Hashable, Mapping, Sequence

from lab.records import StudyRecord
from lab.studies._core._context import Context
from lab.studies._core._evaluation import as_trained
from lab.studies._core._joined import Scored
from lab.studies._core._protocol import PAPER
from lab.studies.portfolio._join import (
    JOINED,
    SHIFTED,
    join,
    join_in_use,
)
from lab.studies.portfolio._predictions import Predictions
from lab.studies.portfolio._select import Selection
from lab.studies.portfolio._unseen import UNSEEN
from lab.studies.tables._data import HELD_BACK, STORIES
from lab.studies.tables._run import TableCell, table_cell
from longnn import data
from longnn.config import Config
from longnn.data import NodeDataset, Split, make_split
from longnn.data._convert import undirected
from longnn.metrics import headline
from longnn.training import PATIENCE, SEED_STEP, SEEDS, Fitted, complete, fit

#: The key of the cell of a record.
TEST = "test"
_TABLES: dict[str, Callable[[], NodeDataset]] = {**STORIES, **HELD_BACK}
#: Every graph of the test: those of the paper by their names, tables with a mark.
TESTED = (*PAPER, *(f"table-{name}" for name in _TABLES))
#: The same with another mark -> name: graphs of kinds that are not in the collection.
TESTED_UNSEEN = {f"unseen-{name}": name for name in UNSEEN}
#: The keys of their other cells: rivals, as the study ``tables`` trains them; and where arcs are
#: kept, the smaller portfolio with every arc made two-way.
RIVALS = ("boosting", "gcn")
TWO_WAY = "two-way"
#: Families are compared by so many members of each, in the order of the choice.
EQUAL = 2


@dataclasses.dataclass(frozen=True)
class EvaluationPlan:
    """The size of the test.

    Args:
        splits: of the paper's graphs.
        tables: splits of tables and of graphs of unseen kinds.
        epochs, patience: of the members.
    """

    splits: int
    tables: int
    epochs: int
    patience: int


FULL = EvaluationPlan(splits=10, tables=5, epochs=1000, patience=PATIENCE)


@dataclasses.dataclass(frozen=True)
class FamilyCell:
    """Members of one family, joined by votes.

    Args:
        members: how many of the portfolio are of it.
        whole: all of them.
        equal: the first few, as many as of every other family that has them.
    """

    members: int
    whole: Scored
    equal: Scored


@dataclasses.dataclass(frozen=True)
class PortfolioCell:
    """One portfolio on one graph.

    Args:
        members: the candidates that were trained.
        alone: each with the seed of the split.
        joined: strategy -> scores of the whole, all seeds of all members; as in use, too.
        families: model -> its members.
    """

    members: list[str]
    alone: dict[str, Scored]
    joined: dict[str, Scored]
    families: dict[str, FamilyCell]


@dataclasses.dataclass(frozen=True)
class EvaluationCell:
    """Scores on one graph, lists over the splits.

    Args:
        fingerprint: of the dataset.
        metric: of the scores; higher is better.
        default: one model with nothing set.
        portfolios: by name.
        default_shifted: one model with nothing set, shifted as in use.
    """

    fingerprint: str
    metric: str
    default: Scored
    portfolios: dict[str, PortfolioCell]
    default_shifted: Scored | None = None


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
        if name in TESTED_UNSEEN:
            _compare(context, selection, name, plan, record)


def _compare(
    context: Context, selection: Selection, name: str, plan: EvaluationPlan, record: StudyRecord
) -> None:
    """Rivals on a graph of an unseen kind, and what its arcs are worth."""
    dataset, splits = _held_back(name, plan)
    for rival in RIVALS:
        compute = functools.partial(table_cell, rival, dataset, splits, plan.epochs)
        record.cell(rival, TableCell, compute, machine=context.machine("cpu"))
    if dataset.directed:
        known = _configs(selection, plan)
        chosen = {"default": selection.portfolios["default"].members}
        record.cell(
            TWO_WAY,
            EvaluationCell,
            lambda: run_test(undirected(dataset), splits, known, chosen, device=context.device),
            machine=context.machine(),
        )


def _configs(selection: Selection, plan: EvaluationPlan) -> dict[str, Config]:
    limits = {"epochs": plan.epochs, "patience": plan.patience}
    return {member: selection.config(member, limits) for member in selection.configs}


def _held_back(name: str, plan: EvaluationPlan) -> tuple[NodeDataset, list[Split]]:
    """A table, or a graph of an unseen kind, with its splits."""
    if name in TESTED_UNSEEN:
        dataset = UNSEEN[TESTED_UNSEEN[name]].make(None)
    else:
        dataset = _TABLES[name.removeprefix("table-")]()
    return dataset, [make_split(dataset, "stratified", seed) for seed in range(plan.tables)]


def _cell(
    context: Context, selection: Selection, name: str, plan: EvaluationPlan
) -> EvaluationCell:
    found = selection.portfolios
    known = _configs(selection, plan)
    if name in PAPER:
        dataset = data.load(name, data_dir=context.data_dir)
        splits = [make_split(dataset, "published", seed) for seed in range(plan.splits)]
        chosen = {key: portfolio.without_graph[name] for key, portfolio in found.items()}
        return run_test(dataset, splits, known, chosen, device=context.device)
    dataset, splits = _held_back(name, plan)
    chosen = {key: portfolio.members for key, portfolio in found.items()}
    return run_test(dataset, splits, known, chosen, device=context.device)


def run_test(
    dataset: NodeDataset,
    splits: Sequence[Split],
    known: Mapping[str, Config],
    chosen: Mapping[str, Sequence[str]],
    *,
    device: str = "auto",
) -> EvaluationCell:
    """Train everything in one call, so that models of one shape train together; then join.

    Args:
        dataset, splits: to train and test on.
        known: the configurations of members.
        chosen: the members of each portfolio.
        device: to train on.
    """
    wanted: dict[Hashable, tuple[Config, int]] = {
        "default": (complete({"preset": "fast"}, dataset), 0)
    }
    for key, members in chosen.items():
        wanted |= {(m, k): (known[m], k) for k in range(SEEDS[key]) for m in members}
    place = {key: i for i, key in enumerate(wanted)}
    p = _train(dataset, list(wanted.values()), splits, device)

    def alone(key: Hashable) -> Scored:
        return join(p, [place[key]], ["average"])["average"]

    def every(keys: Sequence[Hashable]) -> dict[str, Scored]:
        return join_every_way(p, [place[key] for key in keys])

    def votes(members: Sequence[str], times: int) -> Scored:
        return join(p, [place[m, k] for k in range(times) for m in members], [JOINED])[JOINED]

    portfolios = {}
    for key, members in chosen.items():
        times = SEEDS[key]
        families: dict[str, list[str]] = {}
        for member in members:
            families.setdefault(known[member].model, []).append(member)
        portfolios[key] = PortfolioCell(
            members=list(members),
            alone={m: alone((m, 0)) for m in members},
            joined=every([(m, k) for k in range(times) for m in members]),
            families={
                model: FamilyCell(len(own), votes(own, times), votes(own[:EQUAL], times))
                for model, own in families.items()
            },
        )
    return EvaluationCell(
        fingerprint=dataset.fingerprint(),
        metric=headline(dataset.data.y, dataset.task)[0],
        default=alone("default"),
        portfolios=portfolios,
        default_shifted=every(["default"])[SHIFTED],
    )


def join_every_way(p: Predictions, chosen: Sequence[int]) -> dict[str, Scored]:
    """The scores of the members by each strategy, and as in use."""
    return {**join(p, chosen), **join_in_use(p, chosen)}


def _train(
    dataset: NodeDataset,
    wanted: Sequence[tuple[Config, int]],
    splits: Sequence[Split],
    device: str,
) -> Predictions:
    """What each configuration, with the seed of the split or a later one, predicts."""
    return Predictions.collect(dataset, fit_seeds(dataset, wanted, splits, device))


def fit_seeds(
    dataset: NodeDataset,
    wanted: Sequence[tuple[Config, int]],
    splits: Sequence[Split],
    device: str,
) -> list[list[Fitted]]:
    """Each configuration on each split, (configurations, splits); shifts come when joined."""
    configs = [
        as_trained(config).replace(seed=s.seed + SEED_STEP * k)
        for config, k in wanted
        for s in splits
    ]
    fitted = fit(dataset, configs, [*splits] * len(wanted), device=device)
    n = len(splits)
    return [fitted[i * n : (i + 1) * n] for i in range(len(wanted))]
