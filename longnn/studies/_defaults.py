"""How the defaults of LON-GNN were chosen: the least regret over the ten graphs.

Candidates are drawn at random from :data:`SPACE`: one filter for all class channels, the form that
had done best on most graphs in a first look over three. All are trained on a few splits of every
graph, the best of them on more. One half of a split's validation nodes stops a training and the
other half judges it (:func:`~longnn.studies.judge`): the highest accuracy over
hundreds of epochs flatters candidates whose filter jumps. The regret of a candidate on a graph is
how far its mean accuracy falls short of the best candidate's there; the default is the candidate
whose root mean square regret over the graphs is least. The choice of an earlier, smaller experiment
of this kind takes part in the second round. Tuning splits only: no test node is looked at, and
nothing printed in the paper enters.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longnn import data
from longnn.config import Config
from longnn.studies._evaluation import SMALL, judge
from longnn.studies._paper import Context
from longnn.studies._record import Record, read_record
from longnn.studies._study import QUICK_DATASETS, TEN
from longnn.studies._table import Table
from longnn.tuning import draw_random, load_space, tuning_seeds

TITLE = "How the defaults were chosen (not in the paper)"

SPACE: dict[str, Any] = {
    "hidden_channels": 64,
    "degree": 10,
    "patience": 200,
    "placement": "output",
    "weight": "probability",
    "coefficients": "free",
    "shared": True,
    "lr_transform": {"choices": [0.01, 0.02, 0.05]},
    "monitor": {"choices": ["score", "loss"]},
    "lr_coefficients": {"choices": [5e-4, 1e-3, 2e-3, 0.005, 0.01]},
    "lr_basis": {"choices": [5e-4, 2e-3, 0.005, 0.02]},
    "wd_transform": {"choices": [2e-5, 5e-5, 1e-4, 2e-4, 5e-4]},
    "wd_coefficients": {"choices": [0.0, 5e-5, 5e-4]},
    "input_dropout": {"choices": [0.2, 0.3, 0.4, 0.5, 0.6]},
    "dropout": {"choices": [0.2, 0.3, 0.4, 0.5, 0.6]},
    "filter_dropout": {"choices": [0.0, 0.2, 0.4, 0.6]},
    "a": {"choices": [-0.5, 0.0, 0.5, 1.0]},
    "b": {"choices": [-0.5, 0.0, 0.5, 1.0, 1.5]},
    "restart": {"choices": [0.3, 0.5, 1.0]},
}
#: Chosen before from 64 candidates without slow filter rates, by the highest validation accuracy.
EARLIER: dict[str, Any] = {
    **{key: value for key, value in SPACE.items() if not isinstance(value, dict)},
    "lr_transform": 0.05,
    "monitor": "score",
    "lr_coefficients": 0.005,
    "lr_basis": 0.02,
    "wd_transform": 1e-4,
    "wd_coefficients": 0.0,
    "input_dropout": 0.3,
    "dropout": 0.2,
    "filter_dropout": 0.4,
    "a": 0.5,
    "b": 1.0,
    "restart": 1.0,
}
#: Candidates, those that stay for the second round, splits of the first and second round, and how
#: many times as many a small graph has: 18 nodes judge there.
FULL: dict[str, Any] = {
    "candidates": 96,
    "kept": 12,
    "splits": [2, 8],
    "small": 6,
    "epochs": 1000,
}
QUICK: dict[str, Any] = {"candidates": 4, "kept": 2, "splits": [1, 1], "small": 1, "epochs": 30}


def candidates(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Random configurations, in a fixed order, and last the earlier choice."""
    space = load_space({**SPACE, "epochs": settings["epochs"]}, "lon")
    drawn = draw_random([space], settings["candidates"])
    return [*drawn, {**EARLIER, "epochs": settings["epochs"]}]


def run(context: Context) -> None:
    """Two rounds, each over all graphs, as far as not done."""
    settings = QUICK if context.quick else FULL
    graphs = QUICK_DATASETS if context.quick else TEN
    drawn = candidates(settings)
    for name in context.choose("datasets", graphs):
        _round(context, settings, name, "first", dict(enumerate(drawn[:-1])))
    missing = [name for name in graphs if not (context.folder / f"{name}.json").is_file()]
    if missing:
        context.tell("the second round waits for the first on " + ", ".join(missing))
        return
    kept = best_of(_regrets(_means(context.folder, ["first"])), settings["kept"])
    for name in context.choose("datasets", graphs):
        _round(context, settings, name, "second", {i: drawn[i] for i in kept})
        _round(context, settings, name, "earlier", {len(drawn) - 1: drawn[-1]})


def _round(
    context: Context,
    settings: Mapping[str, Any],
    name: str,
    key: str,
    drawn: Mapping[int, Mapping[str, Any]],
) -> None:
    record = Record(context.folder / f"{name}.json", settings, commit=context.commit)
    if key not in record.parts:
        compute = functools.partial(_train, name, context, settings, key, drawn)
        record.part(key, compute, device=context.device)
        context.tell(f"{name}: {key} round" if key != "earlier" else f"{name}: the earlier choice")


def _train(
    name: str,
    context: Context,
    settings: Mapping[str, Any],
    key: str,
    drawn: Mapping[int, Mapping[str, Any]],
) -> dict[str, Any]:
    dataset = data.load(name, data_dir=context.data_dir)
    times = settings["small"] if dataset.num_nodes <= SMALL else 1
    first, second = (times * count for count in settings["splits"])
    seeds = tuning_seeds(first + second)
    seeds = seeds[:first] if key == "first" else seeds[first:]
    configs = [Config.from_dict({"model": "lon", **keys}) for keys in drawn.values()]
    judged = judge(dataset, configs, seeds, device=context.device)
    return {
        "fingerprint": dataset.fingerprint(),
        "judged": {str(i): scores for i, scores in zip(drawn, judged, strict=True)},
    }


def _means(folder: Path, rounds: Sequence[str]) -> dict[str, dict[int, float]]:
    """Dataset -> candidate -> mean accuracy on judging nodes in per cent, of rounds it has all."""
    found = {}
    for name in (*TEN, *QUICK_DATASETS):
        path = folder / f"{name}.json"
        parts = read_record(path)["parts"] if path.is_file() else {}
        if all(key in parts for key in rounds):
            judged = [item for key in rounds for item in parts[key]["judged"].items()]
            found[name] = {int(i): 100 * float(np.mean(v)) for i, v in judged}
    return found


def _regrets(means: Mapping[str, Mapping[int, float]]) -> dict[int, dict[str, float]]:
    """Candidate -> dataset -> how far it is below the best candidate there."""
    best = {name: max(values.values()) for name, values in means.items()}
    numbers = next(iter(means.values()))
    return {i: {name: best[name] - means[name][i] for name in means} for i in numbers}


def best_of(regrets: Mapping[int, Mapping[str, float]], count: int) -> list[int]:
    """Candidates in order of their root mean square regret.

    >>> best_of({0: {"x": 3.0, "y": 0.0}, 1: {"x": 1.0, "y": 1.5}, 2: {"x": 0.0, "y": 9.0}}, 2)
    [1, 0]
    """
    return sorted(regrets, key=lambda i: (_root_mean_square(regrets[i]), i))[:count]


def _root_mean_square(regret: Mapping[str, float]) -> float:
    return float(np.sqrt(np.mean(np.square([*regret.values()]))))


def winner(folder: Path) -> dict[str, Any]:
    """The keys of the candidate that the records choose."""
    settings = read_record(next(iter(sorted(folder.glob("*.json")))))["settings"]
    means = _means(folder, ["second", "earlier"])
    return candidates(settings)[best_of(_regrets(means), 1)[0]] if means else {}


def tables(folder: Path) -> list[Table]:
    means = _means(folder, ["second", "earlier"])
    regrets = _regrets(means) if means else {}
    rows = []
    for i in best_of(regrets, len(regrets)):
        cells = [f"{means[name][i]:.1f} ({regrets[i][name]:.1f})" for name in means]
        rows.append([str(i), *cells, f"{_root_mean_square(regrets[i]):.2f}"])
    return [
        Table(
            "defaults",
            "Second round of the choice of defaults: accuracy in % on the judging half of the "
            "validation nodes, mean over tuning splits, and in brackets the regret; the first row "
            "is the default.",
            ["candidate", *means, "root mean square"],
            rows,
        )
    ]


def draw(folder: Path) -> list[Path]:
    return []
