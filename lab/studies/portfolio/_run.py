"""Train all candidates on all graphs, one record per graph; then choose; then test the choice.

Each step is named as its record: the name of a graph, ``selection``, ``test-`` and the name of a
graph or table. What members predict for validation nodes and holdout is kept beside the records as
float16, for the choice: it is needed to try ensembles, and too much to commit.
"""

import dataclasses
import functools
from pathlib import Path

from lab.studies._core._context import Context
from lab.studies._core._protocol import ConfigTable
from lab.studies.portfolio._candidates import candidates, tuned_on
from lab.studies.portfolio._evaluation import FULL as EVALUATION
from lab.studies.portfolio._evaluation import (
    TESTED,
    TESTED_UNSEEN,
    EvaluationPlan,
    evaluate_portfolio,
)
from lab.studies.portfolio._few import FewCell, compare_priors
from lab.studies.portfolio._graphs import GRAPHS, kind_of
from lab.studies.portfolio._join import join
from lab.studies.portfolio._predictions import Predictions
from lab.studies.portfolio._select import Candidate, Limits, Selection, choose_all
from longnn.config import Config
from longnn.data import NodeDataset, make_split
from longnn.metrics import headline
from longnn.training import PATIENCE, data_defaults, fit, shape_of

#: The keys of the cells.
CANDIDATES, SELECTION, FEW = "candidates", "selection", "few"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The training of the candidates; the splits have the seeds from ``first`` on.

    >>> FULL.splits
    2
    """

    splits: int
    epochs: int
    patience: int
    first: int = 1000


FULL = Plan(splits=2, epochs=1000, patience=PATIENCE)
QUICK = Plan(splits=1, epochs=3, patience=3)


@dataclasses.dataclass(frozen=True)
class SelectionPlan:
    """The candidates and the portfolios that are chosen of them.

    Args:
        candidates: how they were trained.
        default: a portfolio that is quick enough to be the usual one.
        best: one that may cost more.
    """

    candidates: Plan
    default: Limits
    best: Limits


#: Models that may join the smaller portfolio.
OWN = ("lon", "mlp")
SELECTED = SelectionPlan(FULL, Limits(8, 5, only_own=True), Limits(16, 10, only_own=False))
QUICK_SELECTED = SelectionPlan(QUICK, Limits(2, 2, only_own=True), Limits(3, 3, only_own=False))
QUICK_GRAPHS = ("diabetes", "xor", "cancer")
QUICK_TESTED = ("table-wine", "unseen-levels")
QUICK_EVALUATION = EvaluationPlan(splits=1, tables=1, epochs=3, patience=3)


@dataclasses.dataclass(frozen=True)
class CandidatesCell:
    """What the candidates reached on one graph: each by name, lists over the splits.

    Args:
        fingerprint: of the dataset.
        metric: of the scores; higher is better.
        usual: the candidate that is the default on this graph.
        val: scores on the validation nodes, which stopped the training.
        holdout: scores on the selection holdout.
        best_epochs: the epoch whose weights were kept.
        epochs: that were trained.
    """

    fingerprint: str
    metric: str
    usual: str
    val: dict[str, list[float]]
    holdout: dict[str, list[float]]
    best_epochs: dict[str, list[int]]
    epochs: dict[str, list[int]]


def run(context: Context) -> None:
    """Do the steps that were asked for, by default all, as far as the records lack them."""
    plan = QUICK if context.quick else FULL
    known = QUICK_GRAPHS if context.quick else tuple(GRAPHS)
    tested = QUICK_TESTED if context.quick else (*TESTED, *TESTED_UNSEEN)
    tests = {f"test-{name}": name for name in tested}
    names = context.choose("datasets", [*known, SELECTION, *tests])
    for name in [name for name in names if name in known]:
        record = context.record(name, plan)
        if CANDIDATES not in record:
            compute = functools.partial(_cell, context, plan, name)
            record.cell(CANDIDATES, CandidatesCell, compute, machine=context.machine())
            context.tell(f"{name}: all candidates")
    wanted = [tests[name] for name in names if name in tests]
    if not wanted and SELECTION not in names:
        return
    selected = QUICK_SELECTED if context.quick else SELECTED
    record = context.record(SELECTION, selected)
    missing = [name for name in known if not predictions_path(context.folder, name).is_file()]
    if SELECTION not in record and missing:
        context.tell("the choice waits for " + ", ".join(missing))
        return
    compute_all = functools.partial(_choose, context.folder, known, selected)
    chosen = record.cell(SELECTION, Selection, compute_all, machine=context.machine("cpu"))
    if SELECTION in names and not missing:
        compute_few = functools.partial(_compare, context.folder, known, chosen)
        record.cell(FEW, FewCell, compute_few, machine=context.machine("cpu"))
    evaluate_portfolio(context, chosen, wanted, QUICK_EVALUATION if context.quick else EVALUATION)


def _compare(folder: Path, names: tuple[str, ...], selection: Selection) -> FewCell:
    """Priors for few validation nodes, each graph with the portfolio chosen without its kind."""
    found = {name: Predictions.read(predictions_path(folder, name)) for name in names}
    place = {name: i for i, name in enumerate(candidates({}))}
    without = selection.portfolios["default"].without_kind
    chosen = {name: [place[m] for m in without[kind_of(name)]] for name in found}
    return compare_priors(found, chosen)


def predictions_path(folder: Path, name: str) -> Path:
    """Where what the candidates predict on a graph is kept."""
    return folder / "predictions" / f"{name}.npz"


def _cell(context: Context, plan: Plan, name: str) -> CandidatesCell:
    dataset = GRAPHS[name].make(context.data_dir)
    # A split's three parts are 60, 20 and 20 %; what it calls test is the selection holdout.
    splits = [make_split(dataset, "stratified", plan.first + i) for i in range(plan.splits)]
    configs = candidates({"epochs": plan.epochs, "patience": plan.patience})
    members = [c.replace(seed=s.seed) for c in configs.values() for s in splits]
    fitted = fit(dataset, members, [*splits] * len(configs), device=context.device)
    own = {c: fitted[i * plan.splits : (i + 1) * plan.splits] for i, c in enumerate(configs)}
    kept = Predictions.collect(dataset, list(own.values()))
    scores = {c: join(kept, [i], ["average"])["average"] for i, c in enumerate(configs)}
    kept.write(predictions_path(context.folder, name))
    return CandidatesCell(
        fingerprint=dataset.fingerprint(),
        metric=headline(dataset.data.y, dataset.task)[0],
        usual=_usual(dataset),
        val={c: scored.val for c, scored in scores.items()},
        holdout={c: scored.test for c, scored in scores.items()},
        best_epochs={c: [f.result.best_epoch for f in own[c]] for c in configs},
        epochs={c: [f.result.epochs for f in own[c]] for c in configs},
    )


def _usual(dataset: NodeDataset) -> str:
    """The candidate that is filled in for this data where nothing is set."""
    if not data_defaults(dataset):
        return "default"
    return "table, numbers" if dataset.task == "regression" else "table, classes"


def describe(name: str, config: Config) -> Candidate:
    """What the choice has to know of a candidate."""
    graph = tuned_on().get(name)
    kind = None if graph is None else kind_of(graph)
    return Candidate(shape_of(config), config.model in OWN, graph, kind)


def _choose(folder: Path, names: tuple[str, ...], plan: SelectionPlan) -> Selection:
    found = {name: Predictions.read(predictions_path(folder, name)) for name in names}
    every = candidates({})
    known = {name: describe(name, config) for name, config in every.items()}
    limits = {"default": plan.default, "best": plan.best}
    made = choose_all(known, found, {name: kind_of(name) for name in found}, limits)
    chosen = {name for portfolio in made.portfolios.values() for name in portfolio.everyone()}
    tables: dict[str, ConfigTable] = {
        name: config.to_dict() for name, config in every.items() if name in chosen
    }
    return dataclasses.replace(made, configs=tables)
