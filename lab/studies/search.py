"""The paper's search, 400 trials of three repeats in the paper's space, timed; then its winner.

This is ``longnn tune DATASET --space paper`` without the default as its first trial: batches of
trials as one population, halving, the best few again on further tuning splits. The winner
is then tested on the published splits: the paper's model, space and budget, with the dropout off at
evaluation.
"""

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path

from lab.studies._core._context import Context, load_records
from lab.studies._core._evaluation import Scores, train_splits
from lab.studies._core._printed import ACCURACY
from lab.studies._core._protocol import PAPER_SPACE, QUICK_DATASETS, TEN, ConfigTable
from lab.studies._core._scores import interval, percent
from lab.studies._core._table import ResultTable
from longnn import data
from longnn.config import Config
from longnn.tuning import load_space, tune

TITLE = "The search: 400 trials of 3 repeats, timed (budget of the paper)"
ORDER = 40


@dataclasses.dataclass(frozen=True)
class Plan:
    """The budget of the search, and the published splits that are reported."""

    trials: int
    repeats: int
    epochs: int
    splits: int


FULL = Plan(trials=400, repeats=3, epochs=1000, splits=10)
QUICK = Plan(trials=4, repeats=1, epochs=40, splits=2)
#: Seconds that a search may take on a GPU.
LIMITS = {"cora": 180, **{name: 720 for name in TEN if name != "cora"}}


@dataclasses.dataclass(frozen=True)
class SearchCell:
    """A search and its winner.

    Args:
        fingerprint: of the dataset.
        finished: trials.
        pruned: trials that were stopped early by halving.
        best: the best trial, as the record of the search has it.
        finalists: the best trials on further splits, as the record of the search has them.
        value: mean validation accuracy of the winner.
        config: of the winner, as a flat table.
    """

    fingerprint: str
    finished: int
    pruned: int
    best: Mapping[str, object]
    finalists: Mapping[str, object]
    value: float
    config: ConfigTable


def run(context: Context) -> None:
    """Search and test the winner, graph by graph, as far as the records lack it."""
    plan = QUICK if context.quick else FULL
    for name in context.choose("datasets", QUICK_DATASETS if context.quick else TEN):
        record = context.record(name, plan)
        if "winner" in record:
            continue
        dataset = data.load(name, data_dir=context.data_dir)
        compute = functools.partial(_search, dataset, plan, context.device)
        cell = record.cell("search", SearchCell, compute, machine=context.machine())
        seconds = record.made("search").seconds
        context.tell(f"{name}: {cell.finished} trials in {seconds:.0f} s")
        test = functools.partial(_test, dataset, cell.config, plan, context.device)
        found = record.cell("winner", Scores, test, machine=context.machine())
        context.tell(f"{name}: {percent(found.test):.2f} % on the published splits")


def _search(dataset: data.NodeDataset, plan: Plan, device: str) -> SearchCell:
    space = load_space({**load_space(PAPER_SPACE, "lon").source, "epochs": plan.epochs})
    result = tune(
        dataset,
        space,
        trials=plan.trials,
        repeats=plan.repeats,
        split="published",
        scale="none",
        default=False,  # the sampler alone, as in the paper
        folder=None,
        device=device,
    )
    record = result.record.to_dict()
    return SearchCell(
        fingerprint=dataset.fingerprint(),
        finished=result.record.finished,
        pruned=len(result.record.with_state("pruned")),
        best=record["best"],
        finalists=record["finalists"],
        value=result.value,
        config=result.config.to_dict(),
    )


def _test(dataset: data.NodeDataset, keys: ConfigTable, plan: Plan, device: str) -> Scores:
    config = Config.from_dict(keys)
    return train_splits(dataset, [config], range(plan.splits), device=device)[0]


def tables(folder: Path) -> list[ResultTable]:
    """Time and winner of every search."""
    rows = []
    for name, record in load_records(folder, (*TEN, *QUICK_DATASETS)).items():
        search, machine = record.get("search", SearchCell), record.machine("search")
        winner = record.get("winner", Scores) if "winner" in record else None
        rows.append(
            [
                name,
                f"{search.finished} ({search.pruned})",
                f"{record.made('search').seconds:.0f}",
                str(LIMITS.get(name, "")),
                f"{100 * search.value:.2f}",
                "" if winner is None else interval(winner.test),
                f"{ACCURACY['lon'][name]:.2f}" if name in ACCURACY["lon"] else "",
                str(machine["gpu"] or machine["cpu"]),
            ]
        )
    return [
        ResultTable(
            "search",
            "LON-GNN in the paper's form, 400 trials of 3 repeats in the paper's space: trials "
            "(in brackets those stopped early by halving), seconds for the search with its "
            "finalists, the most seconds aimed for on a GPU, validation accuracy of the winner in "
            "% over the tuning splits; its test accuracy on the published splits, mean ± half the "
            "95 % bootstrap interval, and the paper's.",
            ["graph", "trials", "seconds", "limit", "validation", "test", "paper", "device"],
            rows,
        )
    ]


def draw(folder: Path) -> list[Path]:
    """No figures."""
    return []
