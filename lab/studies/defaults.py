"""How the defaults of LON-GNN were chosen: the least regret over the ten graphs.

Candidates are drawn at random from :data:`SPACE`: one filter for all class channels, the form that
was best on most graphs in a first look at three. All are trained on a few splits of every graph,
the best of them on more. One half of a split's validation nodes stops a training and the other half
gives its holdout score: the highest accuracy over hundreds of epochs flatters candidates whose
filter jumps. The regret of a candidate on a graph is how far its mean score is below the best
candidate's there. The default is the candidate with the least root mean square regret over the
graphs. The choice of an earlier, smaller study of this kind joins the second round. Only
tuning splits are used: no test node is looked at, and nothing printed in the paper enters.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lab.studies._engine import Cell, Cells, Context, read_records, record_path
from lab.studies._printed import QUICK_DATASETS, TEN
from lab.studies._search import Space
from lab.studies._training import SMALL, holdout_scores
from lab.studies._views import ResultTable, percent
from longnn.config import Config
from longnn.tuning import load_space
from longnn.tuning._space import draw_random
from longnn.tuning._splits import tuning_seeds

TITLE = "How the defaults were chosen (not in the paper)"
ORDER = 100

SPACE: Space = {
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
EARLIER: Space = {
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

#: Candidates that are drawn, those kept for the second round, splits of both rounds, how many times
#: as many a small graph has (18 nodes give a score there), and most epochs of a training.
FULL: dict[str, Any] = {"candidates": 96, "kept": 12, "splits": [2, 8], "small": 6, "epochs": 1000}
QUICK: dict[str, Any] = {"candidates": 4, "kept": 2, "splits": [1, 1], "small": 1, "epochs": 30}


def candidates(plan: Mapping[str, Any]) -> list[Space]:
    """Random configurations, in a fixed order, and last the earlier choice."""
    space = load_space({**SPACE, "epochs": plan["epochs"]}, "lon")
    drawn = draw_random([space], plan["candidates"])
    return [*drawn, {**EARLIER, "epochs": plan["epochs"]}]


def cells(context: Context) -> Cells:
    """Two rounds, each over all graphs."""
    plan = QUICK if context.quick else FULL
    graphs = QUICK_DATASETS if context.quick else TEN
    drawn = candidates(plan)
    last = len(drawn) - 1

    def one_round(name: str, key: str, numbers: Sequence[int]) -> Cell:
        some = {i: drawn[i] for i in numbers}
        return Cell(name, plan, key, partial(_train, context, name, plan, key, some))

    for name in context.choose("datasets", graphs):
        yield one_round(name, "first", range(last))
    missing = [name for name in graphs if not record_path(context.folder, name).is_file()]
    if missing:
        context.tell("the second round waits for the first on " + ", ".join(missing))
        return
    kept = best_of(_regrets(_means(context.folder, ["first"])), plan["kept"])
    for name in context.choose("datasets", graphs):
        yield one_round(name, "second", kept)
        yield one_round(name, "earlier", [last])


def _train(
    context: Context, name: str, plan: Mapping[str, Any], key: str, drawn: Mapping[int, Space]
) -> dict[str, Any]:
    """Holdout scores over the splits of a round, by the number of the candidate."""
    dataset = context.load(name)
    times = plan["small"] if dataset.num_nodes <= SMALL else 1
    first, second = (times * count for count in plan["splits"])
    seeds = tuning_seeds(first + second)
    seeds = seeds[:first] if key == "first" else seeds[first:]
    configs = [Config.from_dict({"model": "lon", **keys}) for keys in drawn.values()]
    scores = holdout_scores(dataset, configs, seeds, device=context.device)
    holdout = {str(i): of for i, of in zip(drawn, scores, strict=True)}
    return {"fingerprint": dataset.fingerprint(), "holdout": holdout}


def _means(folder: Path, rounds: Sequence[str]) -> dict[str, dict[int, float]]:
    """Graph -> candidate -> mean holdout score in per cent, where all these rounds are done."""
    return {
        name: {
            int(i): percent(scores)
            for key in rounds
            for i, scores in record[key]["holdout"].items()
        }
        for name, record in read_records(folder, (*TEN, *QUICK_DATASETS)).items()
        if all(key in record for key in rounds)
    }


def _regrets(means: Mapping[str, Mapping[int, float]]) -> dict[int, dict[str, float]]:
    """Candidate -> graph -> how far it is below the best candidate there."""
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


def tables(folder: Path) -> list[ResultTable]:
    """The candidates of the second round, the best first."""
    means = _means(folder, ["second", "earlier"])
    regrets = _regrets(means) if means else {}
    rows = []
    for i in best_of(regrets, len(regrets)):
        shown = [f"{means[name][i]:.1f} ({regrets[i][name]:.1f})" for name in means]
        rows.append([str(i), *shown, f"{_root_mean_square(regrets[i]):.2f}"])
    return [
        ResultTable(
            "defaults",
            "Second round of the choice of defaults: accuracy in % on the held-out half of the "
            "validation nodes, mean over tuning splits, and in brackets the regret; the first row "
            "is the default.",
            ["candidate", *means, "root mean square"],
            rows,
        )
    ]
