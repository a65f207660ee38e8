"""The paper's search, 400 trials of three repeats in the paper's space, timed; then its winner.

This is ``longnn tune DATASET --space paper`` without the default as its first trial: batches of
trials as one population, halving, the best few again on further tuning splits. The winner
is then tested on the published splits: the paper's model, space and budget, with the dropout off at
evaluation.
"""

from functools import partial
from pathlib import Path
from typing import Any

from lab.records import ConfigTable, config_of
from lab.studies._engine import Cell, Cells, Context, read_records
from lab.studies._printed import ACCURACY, QUICK_DATASETS, TEN
from lab.studies._training import make_splits, train_config
from lab.studies._views import CAPTIONS, ResultTable, interval
from longnn.tuning import load_space, tune

TITLE = "The search: 400 trials of 3 repeats, timed (budget of the paper)"
ORDER = 40

#: Name of the paper's search space in :func:`longnn.tuning.load_space`.
PAPER_SPACE = "paper"
#: The budget of the search, and the published splits that are reported.
FULL = {"trials": 400, "repeats": 3, "epochs": 1000, "splits": 10}
QUICK = {"trials": 4, "repeats": 1, "epochs": 40, "splits": 2}
#: Seconds that a search may take on a GPU.
LIMITS = {"cora": 180, **{name: 720 for name in TEN if name != "cora"}}


def cells(context: Context) -> Cells:
    """Search and test the winner, graph by graph."""
    plan = QUICK if context.quick else FULL
    for name in context.choose("datasets", QUICK_DATASETS if context.quick else TEN):
        found = yield Cell(name, plan, "search", partial(_search, context, name, plan))
        yield Cell(name, plan, "winner", partial(_test, context, name, found["config"], plan))


def _search(context: Context, name: str, plan: dict[str, int]) -> dict[str, Any]:
    """The search, what it spent, and its winner."""
    dataset = context.load(name)
    result = tune(
        dataset,
        load_space({**load_space(PAPER_SPACE, "lon").source, "epochs": plan["epochs"]}),
        trials=plan["trials"],
        repeats=plan["repeats"],
        split="published",
        scale="none",
        default=False,  # the sampler alone, as in the paper
        folder=None,
        device=context.device,
    )
    record = result.record.to_dict()
    return {
        "fingerprint": dataset.fingerprint(),
        "finished": result.record.finished,
        "pruned": len(result.record.with_state("pruned")),  # stopped early by halving
        "best": record["best"],
        "finalists": record["finalists"],
        "value": result.value,
        "config": {k: v for k, v in result.config.to_dict().items() if v is not None},
    }


def _test(context: Context, name: str, keys: ConfigTable, plan: dict[str, int]) -> dict[str, Any]:
    dataset = context.load(name)
    splits = make_splits(dataset, "published", plan["splits"])
    return train_config(dataset, config_of(keys), splits, device=context.device)


def tables(folder: Path) -> list[ResultTable]:
    """Time and winner of every search."""
    rows = []
    for name, record in read_records(folder, (*TEN, *QUICK_DATASETS)).items():
        search, machine = record["search"], record.machine("search")
        rows.append(
            [
                name,
                f"{search['finished']} ({search['pruned']})",
                f"{search['made']['seconds']:.0f}",
                str(LIMITS.get(name, "")),
                f"{100 * search['value']:.2f}",
                interval(record["winner"].scores("test")) if "winner" in record else "",
                f"{ACCURACY['lon'][name]:.2f}" if name in ACCURACY["lon"] else "",
                str(machine["gpu"] or machine["cpu"]),
            ]
        )
    columns = ["graph", "trials", "seconds", "limit", "validation", "test", "paper", "device"]
    return [ResultTable("search", CAPTIONS["search"]["search"], columns, rows)]
