"""Which configuration of LON-GNN becomes the recipe: a selection on tuning splits of its own.

The best of many trials owes some of its validation accuracy to luck, and so does the best of a few
rows, all the more on a small graph. So every training here is stopped by one half of the validation
nodes of a tuning split and scored on the other half (its *holdout score*), and every round has
splits of its own.

The first round compares what ``accuracy`` and ``search`` chose for LON-GNN, its defaults, the
current recipe of the package, and the choices of its relatives carried over to LON-GNN, each also
with slow filter rates and with a filter that hardly moves; and random configurations of several
forms. The best are kept: in each further round they run again, together with children that differ
from one of them in one to three values. The finalists are scored on holdout splits together with
the current recipe, which can lose its place only there. The best mean wins and is reported on the
published splits. For other models the row of ``accuracy`` or ``ablation`` is the recipe, for those
with blocks the best row of ``depth`` by validation.
"""

import itertools
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lab.records import ConfigTable, config_of
from lab.studies import accuracy
from lab.studies._engine import Cell, Cells, Context, read_records
from lab.studies._printed import (
    ACCURACY,
    BEST_ANYWHERE,
    LEGACY,
    PAPER,
    QUICK_DATASETS,
    TEN,
    best_of_paper,
)
from lab.studies._training import SMALL, holdout_scores, train_splits
from lab.studies._views import ResultTable, listed, percent, word
from lab.studies.recipes._choices import (
    OTHERS,
    OWN_ROWS,
    RELATIVES,
    SLOWER,
    Choice,
    candidates,
    children_of,
    random_candidates,
    read_choices,
)
from lab.studies.recipes._files import files
from longnn.config import Config
from longnn.data import NodeDataset
from longnn.metrics import summarize
from longnn.recipes import known_recipes, load_recipe
from longnn.tuning._splits import tuning_seeds

__all__ = ["AFTER", "ORDER", "TITLE", "cells", "facts", "files", "tables"]

TITLE = "Recipes: LON-GNN at its best, against what is printed (not in the paper)"
ORDER, AFTER = 90, ("accuracy", "ablation", "search")

#: Nodes from which a graph is large.
LARGE = 5000
Plan = Mapping[str, Any]
#: Tuning splits used before, by ``accuracy``, ``search`` and earlier selections; published splits
#: that are reported; most epochs of a training.
_COMMON: Plan = {"used": 80, "splits": 10, "epochs": 1000}
#: By the size of the graph: random configurations, splits of each round, configurations that go on
#: after each round, children that each further round adds, splits of the final. A small graph's
#: scores are measured on few nodes, so luck is great; a large graph's trainings are expensive.
SIZES: dict[str, Plan] = {
    size: {**_COMMON, "random": random, "rounds": rounds, "kept": kept, "children": children,
           "holdout": holdout}
    for size, random, rounds, kept, children, holdout in (
        ("small", 100, [6, 10, 10], 10, 30, 40),
        ("medium", 70, [3, 6, 6], 8, 24, 20),
        ("large", 40, [2, 4, 4], 6, 18, 10),
    )
}  # fmt: skip
QUICK: Plan = {
    "used": 2,
    "splits": 2,
    "epochs": 40,
    "random": 4,
    "rounds": [1, 1],
    "kept": 2,
    "children": 2,
    "holdout": 1,
}


def cells(context: Context) -> Cells:
    """Rounds, the final and the report, graph by graph."""
    results = context.folder.parent
    there = accuracy.read(results / "accuracy")
    ready = [name for name in (QUICK_DATASETS if context.quick else PAPER) if name in there]
    if not ready:
        context.tell("nothing to choose from: run `accuracy` first")
        return
    for name in context.choose("datasets", ready):
        dataset = context.load(name)
        plan = QUICK if context.quick else plan_for(dataset.num_nodes)
        known = {
            key: config.replace(epochs=min(config.settings.epochs, plan["epochs"]))
            for key, config in candidates(_known_configs(results, name)).items()
        }
        running = {**known, **random_candidates(plan["random"], plan["epochs"])}
        for i in range(len(plan["rounds"])):
            compute = partial(_round, dataset, running, i, plan, context.device)
            values = yield Cell(name, plan, f"round {i + 1}", compute)
            running = {key: config_of(keys) for key, keys in values["kept"].items()}
        if "recipe" in known:
            running["recipe"] = known["recipe"]
        yield Cell(name, plan, "lon", partial(_final, dataset, running, plan, context.device))


def _known_configs(results: Path, name: str) -> dict[str, ConfigTable]:
    """What other studies chose for a graph, and the current recipe of the package."""
    rows = accuracy.read(results / "accuracy")[name]
    known: dict[str, ConfigTable] = {key: rows[key]["config"] for key in rows}
    for record in read_records(results / "search", [name]).values():
        known["search"] = record["search"]["config"]
    if ("lon", name) in known_recipes():
        known["recipe"] = load_recipe("lon", name)
    return known


def plan_for(nodes: int) -> Plan:
    """The budget for a graph of so many nodes."""
    return SIZES["small" if nodes <= SMALL else "large" if nodes >= LARGE else "medium"]


def round_seeds(plan: Plan) -> list[list[int]]:
    """The splits of each round, and last those of the final: no split twice."""
    ends = list(itertools.accumulate([plan["used"], *plan["rounds"], plan["holdout"]]))
    seeds = tuning_seeds(ends[-1])
    return [seeds[start:end] for start, end in itertools.pairwise(ends)]


def _round(
    dataset: NodeDataset, running: Mapping[str, Config], number: int, plan: Plan, device: str
) -> dict[str, Any]:
    """Score all that run, from the second round on with children; keep the best."""
    if number > 0:
        running = {**running, **children_of(running, plan["children"], number)}
    seeds = round_seeds(plan)[number]
    scores = holdout_scores(dataset, list(running.values()), seeds, device=device)
    means = {key: float(np.mean(s)) for key, s in zip(running, scores, strict=True)}
    order = sorted(running, key=lambda key: -means[key])
    return {
        "fingerprint": dataset.fingerprint(),
        "means": {key: round(means[key], 6) for key in order},
        "kept": {key: running[key].to_dict() for key in order[: plan["kept"]]},
    }


def _final(
    dataset: NodeDataset, finalists: Mapping[str, Config], plan: Plan, device: str
) -> dict[str, Any]:
    """The best on the holdout splits, and its report."""
    scores = holdout_scores(dataset, list(finalists.values()), round_seeds(plan)[-1], device=device)
    holdout = dict(zip(finalists, scores, strict=True))
    chosen = max(holdout, key=lambda key: float(np.mean(holdout[key])))
    (reached,) = train_splits(dataset, [finalists[chosen]], range(plan["splits"]), device=device)
    return {
        **reached,
        "fingerprint": dataset.fingerprint(),
        "holdout": holdout,
        "chosen": chosen,
        "config": finalists[chosen].to_dict(),
    }


def tables(folder: Path) -> list[ResultTable]:
    """What the recipes reach, where the selection began, and how it ended."""
    choices = read_choices(folder.parent)
    return [_goals(choices), _candidates(choices), _finals(choices)]


def _goals(choices: Mapping[str, Choice]) -> ResultTable:
    """LON-GNN against what is printed."""
    rows = []
    for d, choice in choices.items():
        column = d.removesuffix("-legacy")
        if column not in BEST_ANYWHERE:
            continue
        test = choice.cell.scores("test")
        ours, s = percent(test), summarize([100 * v for v in test])
        wanted = (ACCURACY["lon"][column], best_of_paper(column), BEST_ANYWHERE[column])
        shown = [f"{w:.2f} ({ours - w:+.2f})" for w in wanted]
        rows.append([d, f"{ours:.2f}", f"{s['low']:.2f} to {s['high']:.2f}", *shown])
    return ResultTable(
        "goals",
        "Test accuracy in % of LON-GNN's recipes over the ten published splits, and in brackets "
        "the difference to printed numbers: the paper's LON-GNN, the best of any model in the "
        "paper, the best result found anywhere. The paper's Cornell is the defective one.",
        ["graph", "ours", "95 % interval", "paper's LON-GNN", "best of the paper", "best anywhere"],
        rows,
    )


def _candidates(choices: Mapping[str, Choice]) -> ResultTable:
    """Where the selection began."""
    keys = [*OWN_ROWS, *OTHERS, *RELATIVES, "jacobi"]
    rows = []
    for d, choice in choices.items():
        first, shown = choice.first, []
        for key in keys:
            names = (key, *(f"{key}, {word}" for word in SLOWER))
            shown.append(" / ".join(f"{100 * first[n]:.1f}" for n in names if n in first))
        drawn = [v for name, v in first.items() if name.startswith("random")]
        shown.append(f"{100 * max(drawn):.1f}" if drawn else "")
        rows.append([d, *shown])
    named = {k: accuracy.ROWS[k].label for k in OWN_ROWS}
    named |= {"search": "paper's search", "recipe": "current recipe"}
    titles = [named[k] if k in named else f"as {accuracy.ROWS[k].label}" for k in keys]
    return ResultTable(
        "candidates",
        "The first round: accuracy in % of LON-GNN's candidates on the held-out half of the "
        "validation nodes, mean over tuning splits: as found / with slow filter rates / with a "
        "filter that hardly moves (where that took part). Rows without candidates use the winner "
        "of the longest search.",
        ["graph", *titles, "best of random"],
        rows,
    )


def _finals(choices: Mapping[str, Choice]) -> ResultTable:
    """What the choice was made by, how it held up, and what won."""
    rows = []
    for d, choice in choices.items():
        ranked = sorted((100 * float(np.mean(v)) for v in choice.holdout.values()), reverse=True)
        rows.append(
            [
                d,
                choice.chosen,
                f"{ranked[0]:.2f} ({ranked[0] - ranked[-1]:.2f})" if ranked else "",
                f"{percent(choice.cell.scores('val')):.2f}",
                f"{percent(choice.cell.scores('test')):.2f}",
                _describe(choice.cell["config"]),
            ]
        )
    return ResultTable(
        "finals",
        "The winner (`x > round.number` is a child of candidate x); its accuracy in % on the "
        "holdout splits, in brackets how far ahead of the last finalist; its validation and test "
        "accuracy on the published splits; its configuration.",
        ["graph", "winner", "holdout", "published val.", "test", "configuration"],
        rows,
    )


#: Settings that describe the form of a configuration and rates, and how the table shortens them.
_SHOWN = {
    "hidden_channels": "hidden",
    "degree": "degree",
    "coefficients": "coefficients",
    "shared": "shared",
    "placement": "filter at",
    "transform": "after",
    "normalize": "normalised",
    "monitor": "stopped by",
    "lr_coefficients": "rate",
    "lr_basis": "of basis",
    "wd_transform": "decay",
}


def _describe(config: ConfigTable) -> str:
    """Form and rates in a fixed order; ``normalised`` only if it is."""
    return ", ".join(
        label if key == "normalize" else f"{label} {config[key]}"
        for key, label in _SHOWN.items()
        if key in config and (key != "normalize" or config[key])
    )


def facts(folder: Path) -> dict[str, Any]:
    """The numbers and names of the summary; the paper's Cornell is the defective one."""
    choices = read_choices(folder.parent)
    graphs = [LEGACY if graph == "cornell" else graph for graph in TEN]
    ours = {g: percent(choices[g].cell.scores("test")) for g in graphs}
    marks = {g: g.removesuffix("-legacy") for g in graphs}
    behind = {g: best_of_paper(m) - ours[g] for g, m in marks.items() if ours[g] < best_of_paper(m)}
    below = {g: BEST_ANYWHERE[m] - ours[g] for g, m in marks.items()}
    reached = [g for g in graphs if below[g] <= 0]
    return {
        "of_paper": word(sum(ours[g] >= ACCURACY["lon"][m] for g, m in marks.items())),
        "of_best": word(len(graphs) - len(behind)),
        "of_anywhere": listed(reached),
        "behind": "; ".join(f"{listed([g])} by {gap:.2f} points" for g, gap in behind.items()),
        "below": below,
    }
