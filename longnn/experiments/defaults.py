"""How the defaults of LON-GNN were chosen: the least worst regret over the ten graphs.

Candidates are drawn at random from the space ``compact``, in three forms by turns: one filter for
all class channels, one for each, one for each hidden channel. All are trained on the six smaller
graphs, the best of them on all ten. The regret of a candidate on a graph is how far its mean
validation accuracy falls short of the best candidate's there; the default is the candidate whose
worst regret is least. Tuning splits only: no test node is looked at, and nothing printed in the
paper enters.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from longnn import data
from longnn.config import Config
from longnn.experiments.evaluation import train_splits
from longnn.experiments.paper import Context
from longnn.experiments.record import Record, read_record
from longnn.experiments.study import QUICK_DATASETS, TEN
from longnn.experiments.table import Table
from longnn.tuning import load_space
from longnn.tuning.splits import tuning_seeds

TITLE = "How the defaults were chosen (not in the paper)"

SMALL = ("cora", "citeseer", "chameleon", "actor", "texas", "cornell")
FORMS: tuple[dict[str, Any], ...] = (
    {"placement": "output", "coefficients": "free", "shared": True},
    {"placement": "output"},
    {"placement": "hidden"},
)
#: Candidates, those that stay for the second round, and splits of the first and second round.
FULL: dict[str, Any] = {"candidates": 90, "kept": 12, "splits": [2, 6], "epochs": 1000}
QUICK: dict[str, Any] = {"candidates": 4, "kept": 2, "splits": [1, 1], "epochs": 30}


def candidates(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Random configurations of the three forms, in a fixed order."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = []
    for i in range(settings["candidates"]):
        fixed = {
            **FORMS[i % len(FORMS)],
            "weight": "probability",
            "epochs": settings["epochs"],
        }
        drawn.append(load_space("compact", "lon").fix(fixed).suggest(study.ask()))
    return drawn


def run(context: Context) -> None:
    """The first round on the six smaller graphs, then the second on all: as far as not done."""
    settings = QUICK if context.quick else FULL
    graphs = QUICK_DATASETS if context.quick else TEN
    first = QUICK_DATASETS if context.quick else SMALL
    drawn = candidates(settings)
    everyone = list(range(len(drawn)))
    seeds = tuning_seeds(sum(settings["splits"]))
    cut = settings["splits"][0]
    for name in context.choose("datasets", graphs):
        if name in first:
            _round(context, settings, name, "first", drawn, everyone, seeds[:cut])
    if not all((context.folder / f"{name}.json").is_file() for name in first):
        context.tell("the second round waits for the first on " + ", ".join(first))
        return
    kept = best_of(_regrets(_means(context.folder, "first")), settings["kept"])
    for name in context.choose("datasets", graphs):
        _round(context, settings, name, "second", drawn, kept, seeds[cut:])


def _round(
    context: Context,
    settings: Mapping[str, Any],
    name: str,
    key: str,
    drawn: Sequence[Mapping[str, Any]],
    numbers: Sequence[int],
    seeds: Sequence[int],
) -> None:
    record = Record(context.folder / f"{name}.json", settings, commit=context.commit)
    if key not in record.parts:
        compute = functools.partial(_train, name, context, drawn, numbers, seeds)
        record.part(key, compute, device=context.device)
        context.tell(f"{name}: {key} round, {len(numbers)} candidates on {len(seeds)} splits")


def _train(
    name: str,
    context: Context,
    drawn: Sequence[Mapping[str, Any]],
    numbers: Sequence[int],
    seeds: Sequence[int],
) -> dict[str, Any]:
    configs = [Config.from_dict({"model": "lon", **drawn[i]}) for i in numbers]
    dataset = data.load(name, data_dir=context.data_dir)
    rows = train_splits(dataset, configs, seeds, device=context.device)
    return {
        "fingerprint": dataset.fingerprint(),
        "val": {str(i): row["val"] for i, row in zip(numbers, rows, strict=True)},
    }


def _means(folder: Path, key: str) -> dict[str, dict[int, float]]:
    """Dataset -> candidate -> mean validation accuracy in per cent, of one round."""
    found = {}
    for name in (*TEN, *QUICK_DATASETS):
        path = folder / f"{name}.json"
        part = read_record(path)["parts"].get(key) if path.is_file() else None
        if part is not None:
            found[name] = {int(i): 100 * float(np.mean(v)) for i, v in part["val"].items()}
    return found


def _regrets(means: Mapping[str, Mapping[int, float]]) -> dict[int, dict[str, float]]:
    """Candidate -> dataset -> how far it is below the best candidate there."""
    best = {name: max(values.values()) for name, values in means.items()}
    numbers = next(iter(means.values()))
    return {i: {name: best[name] - means[name][i] for name in means} for i in numbers}


def best_of(regrets: Mapping[int, Mapping[str, float]], count: int) -> list[int]:
    """Candidates in order of their worst regret, then of their mean one.

    >>> best_of({0: {"x": 3.0, "y": 0.0}, 1: {"x": 1.0, "y": 1.5}, 2: {"x": 0.0, "y": 9.0}}, 2)
    [1, 0]
    """
    worst = lambda i: (max(regrets[i].values()), float(np.mean([*regrets[i].values()])), i)  # noqa: E731
    return sorted(regrets, key=worst)[:count]


def winner(folder: Path) -> dict[str, Any]:
    """The keys of the candidate that the records choose."""
    settings = read_record(next(iter(sorted(folder.glob("*.json")))))["settings"]
    means = _means(folder, "second")
    return candidates(settings)[best_of(_regrets(means), 1)[0]] if means else {}


def tables(folder: Path) -> list[Table]:
    means = _means(folder, "second")
    regrets = _regrets(means) if means else {}
    rows = []
    for i in best_of(regrets, len(regrets)):
        cells = [f"{means[name][i]:.1f} ({regrets[i][name]:.1f})" for name in means]
        rows.append([str(i), *cells, f"{max(regrets[i].values()):.1f}"])
    return [
        Table(
            "defaults",
            "Second round of the choice of defaults: mean validation accuracy in % on tuning "
            "splits, and in brackets the regret; the first row is the default.",
            ["candidate", *means, "worst regret"],
            rows,
        )
    ]


def draw(folder: Path) -> list[Path]:
    return []
