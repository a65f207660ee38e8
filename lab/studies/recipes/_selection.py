"""The selection: rounds on tuning splits, a final on holdout splits, the winner reported."""

import dataclasses
import functools
import itertools
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lab.records import StudyRecord
from lab.studies._core._context import Context, record_path
from lab.studies._core._evaluation import SMALL, Scores, holdout_scores, train_splits
from lab.studies._core._protocol import QUICK_DATASETS, ConfigTable, read_results
from lab.studies._core._scores import percent
from lab.studies.accuracy import DATASETS
from lab.studies.recipes._candidates import candidates, children_of, random_candidates
from lab.studies.search import SearchCell
from longnn import data
from longnn.config import Config
from longnn.recipes import known_recipes, load_recipe
from longnn.tuning._splits import tuning_seeds

#: Nodes from which a graph is large.
LARGE = 5000


@dataclasses.dataclass(frozen=True)
class Plan:
    """The budget of a selection.

    Args:
        random: configurations that are drawn at random.
        rounds: splits of each round.
        kept: configurations that go on after each round.
        children: that each further round adds.
        holdout: splits of the final.
        used: tuning splits used before, by ``accuracy``, ``search`` and earlier selections.
        splits: published splits that are reported.
        epochs: most epochs of a training.
    """

    random: int
    rounds: list[int]
    kept: int
    children: int
    holdout: int
    used: int = 80
    splits: int = 10
    epochs: int = 1000


#: By the size of the graph. A small graph's scores are measured on few nodes, so luck is great; a
#: large graph's trainings are expensive.
SIZES = {
    "small": Plan(random=100, rounds=[6, 10, 10], kept=10, children=30, holdout=40),
    "medium": Plan(random=70, rounds=[3, 6, 6], kept=8, children=24, holdout=20),
    "large": Plan(random=40, rounds=[2, 4, 4], kept=6, children=18, holdout=10),
}
QUICK = Plan(random=4, rounds=[1, 1], kept=2, children=2, holdout=1, used=2, splits=2, epochs=40)


@dataclasses.dataclass(frozen=True)
class RoundCell:
    """One round of a selection.

    Args:
        fingerprint: of the dataset.
        means: candidate -> mean holdout score, the best first.
        kept: candidate -> its configuration, of those that go on.
    """

    fingerprint: str
    means: dict[str, float]
    kept: dict[str, ConfigTable]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecipeCell(Scores):
    """The final of a selection, and what the winner reached on the published splits.

    Args:
        fingerprint: of the dataset.
        holdout: finalist -> holdout scores.
        chosen: name of the winner.
        config: its configuration.
    """

    fingerprint: str
    holdout: dict[str, list[float]]
    chosen: str
    config: ConfigTable


@dataclasses.dataclass(frozen=True)
class Choice:
    """The recipe of LON-GNN on one graph.

    Args:
        chosen: name of the winner.
        config: its configuration.
        scores: what it reached.
        first: candidate -> mean score of the first round; empty without a selection.
        holdout: finalist -> scores of the final; empty without a selection.
    """

    chosen: str
    config: ConfigTable
    scores: Scores
    first: Mapping[str, float] = dataclasses.field(default_factory=dict)
    holdout: Mapping[str, list[float]] = dataclasses.field(default_factory=dict)


def run(context: Context) -> None:
    """Select and report, graph by graph, as far as the records lack it."""
    results = read_results(context.folder.parent / "accuracy")
    ready = [d for d in (QUICK_DATASETS if context.quick else DATASETS) if d in results]
    if not ready:
        context.tell("nothing to choose from: run `accuracy` first")
        return
    for name in context.choose("datasets", ready):
        dataset = data.load(name, data_dir=context.data_dir)
        plan = QUICK if context.quick else plan_for(dataset.num_nodes)
        record = context.record(name, plan)
        if "lon" in record:
            continue
        known = {
            key: config.replace(epochs=min(config.settings.epochs, plan.epochs))
            for key, config in candidates(_known_configs(context.folder.parent, name)).items()
        }
        running = {**known, **random_candidates(plan.random, plan.epochs)}
        for i in range(len(plan.rounds)):
            compute = functools.partial(_round, dataset, running, i, plan, context.device)
            cell = record.cell(f"round {i + 1}", RoundCell, compute, machine=context.machine())
            context.tell(f"{name}: round {i + 1} of {len(plan.rounds)}")
            running = {key: Config.from_dict(keys) for key, keys in cell.kept.items()}
        if "recipe" in known:
            running["recipe"] = known["recipe"]
        final = functools.partial(_final, dataset, running, plan, context.device)
        winner = record.cell("lon", RecipeCell, final, machine=context.machine())
        test = percent(winner.test)
        context.tell(f"{name}: {winner.chosen}, {test:.2f} % on the published splits")


def _known_configs(results: Path, name: str) -> dict[str, ConfigTable]:
    """What other studies chose for a graph, and the current recipe of the package."""
    known = {key: cell.config for key, cell in read_results(results / "accuracy")[name].items()}
    path = record_path(results / "search", name)
    if path.is_file():
        known["search"] = StudyRecord.load(path).get("search", SearchCell).config
    if ("lon", name) in known_recipes():
        known["recipe"] = load_recipe("lon", name)
    return known


def plan_for(nodes: int) -> Plan:
    """The budget for a graph of so many nodes.

    >>> plan_for(183).holdout, plan_for(2708).holdout
    (40, 20)
    """
    return SIZES["small" if nodes <= SMALL else "large" if nodes >= LARGE else "medium"]


def round_seeds(plan: Plan) -> list[list[int]]:
    """The splits of each round, and last those of the final: no split twice."""
    ends = list(itertools.accumulate([plan.used, *plan.rounds, plan.holdout]))
    seeds = tuning_seeds(ends[-1])
    return [seeds[start:end] for start, end in itertools.pairwise(ends)]


def _round(
    dataset: data.NodeDataset, running: Mapping[str, Config], number: int, plan: Plan, device: str
) -> RoundCell:
    """Score all that run, from the second round on with children; keep the best."""
    if number > 0:
        running = {**running, **children_of(running, plan.children, number)}
    seeds = round_seeds(plan)[number]
    scores = holdout_scores(dataset, list(running.values()), seeds, device=device)
    means = {key: float(np.mean(s)) for key, s in zip(running, scores, strict=True)}
    order = sorted(running, key=lambda key: -means[key])
    return RoundCell(
        dataset.fingerprint(),
        {key: round(means[key], 6) for key in order},
        {key: running[key].to_dict() for key in order[: plan.kept]},
    )


def _final(
    dataset: data.NodeDataset, finalists: Mapping[str, Config], plan: Plan, device: str
) -> RecipeCell:
    """The best on the holdout splits, and its report."""
    seeds = round_seeds(plan)[-1]
    scores = holdout_scores(dataset, list(finalists.values()), seeds, device=device)
    found = dict(zip(finalists, scores, strict=True))
    chosen = max(found, key=lambda key: float(np.mean(found[key])))
    (reached,) = train_splits(dataset, [finalists[chosen]], range(plan.splits), device=device)
    return RecipeCell(
        fingerprint=dataset.fingerprint(),
        holdout=found,
        chosen=chosen,
        config=finalists[chosen].to_dict(),
        **vars(reached),
    )


def read_choices(results: Path) -> dict[str, Choice]:
    """Dataset -> the recipe of LON-GNN; without a selection, the row of the longest search.

    Args:
        results: the folder that holds one folder per study.
    """
    found = {}
    for name, rows in read_results(results / "accuracy").items():
        path = record_path(results / "recipes", name)
        record = StudyRecord.load(path) if path.is_file() else None
        if record is not None and "lon" in record:
            cell = record.get("lon", RecipeCell)
            first = record.get("round 1", RoundCell).means
            found[name] = Choice(cell.chosen, cell.config, cell, first, cell.holdout)
        else:
            key = next((k for k in ("lon-full", "lon") if k in rows), None)
            if key is not None:
                found[name] = Choice(key, rows[key].config, rows[key])
    return found
