"""The paper's search, 400 trials of three repeats in the published space, timed; then its winner.

This is what ``longnn tune DATASET`` does by default: batches of trials as one population, halving,
the best few again on further tuning splits. The winner is then tested on the published splits: the
published model, space and budget, in code whose evaluation is right.
"""

import functools
from pathlib import Path
from typing import Any

from longnn import data
from longnn.config import Config
from longnn.studies._evaluation import train_splits
from longnn.studies._paper import Context
from longnn.studies._published import ACCURACY
from longnn.studies._record import Record, read_record
from longnn.studies._scores import interval, mean
from longnn.studies._study import QUICK_DATASETS, TEN
from longnn.studies._table import Table
from longnn.tuning import load_space, tune

TITLE = "The search: 400 trials of 3 repeats, timed (budget of the paper)"

FULL: dict[str, Any] = {"trials": 400, "repeats": 3, "epochs": 1000, "splits": 10}
QUICK: dict[str, Any] = {"trials": 4, "repeats": 1, "epochs": 40, "splits": 2}
#: Seconds that a search may take on a GPU.
LIMITS = {"cora": 180, **{name: 720 for name in TEN if name != "cora"}}


def run(context: Context) -> None:
    """Search and test the winner, graph by graph, as far as not done."""
    settings = QUICK if context.quick else FULL
    for name in context.choose("datasets", QUICK_DATASETS if context.quick else TEN):
        record = Record(context.folder / f"{name}.json", settings, commit=context.commit)
        if "winner" in record.parts:
            continue
        dataset = data.load(name, data_dir=context.data_dir)
        compute = functools.partial(_search, dataset, settings, context.device)
        part = record.part("search", compute, device=context.device)
        context.tell(f"{name}: {part['finished']} trials in {part['made']['seconds']:.0f} s")
        test = functools.partial(_test, dataset, part["config"], settings, context.device)
        found = record.part("winner", test, device=context.device)
        context.tell(f"{name}: {mean(found):.2f} % on the published splits")


def _search(dataset: data.NodeDataset, settings: dict[str, Any], device: str) -> dict[str, Any]:
    space = load_space({**load_space("published", "lon").source, "epochs": settings["epochs"]})
    result = tune(
        dataset,
        space,
        trials=settings["trials"],
        repeats=settings["repeats"],
        split="published",
        scale="none",
        folder=None,
        device=device,
    )
    states = [trial["state"] for trial in result.record["trials"]]
    return {
        "fingerprint": dataset.fingerprint(),
        "finished": result.record["finished"],
        "pruned": states.count("pruned"),
        "best": result.record["best"],
        "finalists": result.record["finalists"],
        "value": result.value,
        "config": result.config.to_dict(),
    }


def _test(
    dataset: data.NodeDataset, keys: dict[str, Any], settings: dict[str, Any], device: str
) -> dict[str, Any]:
    config = Config.from_dict(keys)
    return train_splits(dataset, [config], range(settings["splits"]), device=device)[0]


def tables(folder: Path) -> list[Table]:
    rows = []
    for name in (*TEN, *QUICK_DATASETS):
        path = folder / f"{name}.json"
        if not path.is_file():
            continue
        record = read_record(path)
        parts = record["parts"]
        search, winner = parts["search"], parts.get("winner")
        machine = record["machines"][search["made"]["machine"]]
        rows.append(
            [
                name,
                f"{search['finished']} ({search['pruned']})",
                f"{search['made']['seconds']:.0f}",
                str(LIMITS.get(name, "")),
                f"{100 * search['value']:.2f}",
                "" if winner is None else interval(winner["test"]),
                f"{ACCURACY['lon'][name]:.2f}" if name in ACCURACY["lon"] else "",
                str(machine["gpu"] or machine["cpu"]),
            ]
        )
    return [
        Table(
            "search",
            "LON-GNN in the paper's form, 400 trials of 3 repeats in the published space: trials "
            "(stopped early by halving), seconds for the search with its finalists, the most "
            "seconds aimed for on a GPU, validation accuracy of the winner in % over the tuning "
            "splits; its test accuracy on the published splits, mean ± half the 95 % bootstrap "
            "interval, and the paper's.",
            ["graph", "trials", "seconds", "limit", "validation", "test", "paper", "device"],
            rows,
        )
    ]


def draw(folder: Path) -> list[Path]:
    return []
