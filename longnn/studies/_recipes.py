"""Which configuration of LON-GNN becomes the recipe: a race, judged on tuning splits of its own.

The best of many trials owes part of its validation accuracy to luck, and so does the best of a few
rows, all the more on a small graph. So every training here is stopped by one half of the validation
nodes of a tuning split and judged by the other half, and every round has splits of its own.

In the first round meet: what ``accuracy`` and ``search`` chose for LON-GNN, its defaults, the
recipe that the package has so far, and the choices of its relatives carried over to LON-GNN, each
also with slow filter rates and with a filter that all but stands still; and random configurations
of several forms. The best become parents: in each further round they run again, together with
children that differ from a parent in one to three keys. The parents that are left are judged on
fresh splits together with the recipe so far, which only there can lose its place; the best mean
wins, and is reported on the published splits. For other models the row of ``accuracy`` or
``ablation`` is the recipe.

``python -m longnn.studies._recipes RESULTS TARGET`` writes the recipes of the package.
"""

import functools
import itertools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from longnn import data
from longnn.config import Config
from longnn.recipes import known_recipes, load_recipe
from longnn.studies import _ablation as ablation
from longnn.studies._accuracy import DATASETS, ENTRIES
from longnn.studies._evaluation import SMALL, judge, train_splits
from longnn.studies._paper import Context
from longnn.studies._published import ACCURACY, BEST_ANYWHERE, best_of_paper
from longnn.studies._recipe_candidates import (
    OTHERS,
    RELATIVES,
    ROWS,
    SLOWER,
    candidates,
    children_of,
    complete,
    random_candidates,
)
from longnn.studies._record import Record, read_record
from longnn.studies._scores import Study, mean
from longnn.studies._study import QUICK_DATASETS, read_study
from longnn.studies._table import Table
from longnn.training import summarize
from longnn.tuning import tuning_seeds

TITLE = "Recipes: LON-GNN at its best, against what is printed (not in the paper)"

#: Tuning splits used before (by ``accuracy``, ``search`` and the race for the recipe so far),
#: reported splits.
COMMON: dict[str, Any] = {"used": 80, "splits": 10, "epochs": 1000}
#: By the size of the graph: random configurations; splits of each round; parents, and children a
#: round; the fresh splits that judge. A small graph's splits judge by few nodes, so luck is great;
#: a large graph's trainings are dear.
SIZES: dict[str, dict[str, Any]] = {
    "small": {"random": 100, "rounds": [6, 10, 10], "parents": 10, "children": 30, "fresh": 40},
    "medium": {"random": 70, "rounds": [3, 6, 6], "parents": 8, "children": 24, "fresh": 20},
    "large": {"random": 40, "rounds": [2, 4, 4], "parents": 6, "children": 18, "fresh": 10},
}
QUICK: dict[str, Any] = {
    "used": 2,
    "splits": 2,
    "epochs": 40,
    "random": 4,
    "rounds": [1, 1],
    "parents": 2,
    "children": 2,
    "fresh": 1,
}
#: Nodes from which a graph is large.
LARGE = 5000


def run(context: Context) -> None:
    """Decide and report, graph by graph, as far as not done."""
    study = read_study(context.folder.parent / "accuracy")
    ready = [d for d in (QUICK_DATASETS if context.quick else DATASETS) if d in study]
    if not ready:
        context.tell("nothing to choose from: run `accuracy` first")
        return
    for name in context.choose("datasets", ready):
        dataset = data.load(name, data_dir=context.data_dir)
        settings = QUICK if context.quick else settings_for(dataset.num_nodes)
        record = Record(context.folder / f"{name}.json", settings, commit=context.commit)
        if "lon" in record.parts:
            continue
        rows = dict(study[name])
        path = context.folder.parent / "search" / f"{name}.json"
        if path.is_file():
            rows["search"] = read_record(path)["parts"]["search"]
        if ("lon", name) in known_recipes():
            rows["recipe"] = {"config": load_recipe("lon", name)}
        known = candidates(rows)
        racing = {**known, **random_candidates(settings["random"], settings["epochs"])}
        for i in range(len(settings["rounds"])):
            held = functools.partial(_round, dataset, racing, i, settings, context.device)
            part = record.part(f"round {i + 1}", held, device=context.device)
            context.tell(f"{name}: round {i + 1} of {len(settings['rounds'])}")
            racing = {key: Config.from_dict(keys) for key, keys in part["parents"].items()}
        if "recipe" in known:
            racing["recipe"] = known["recipe"]
        final = functools.partial(_final, dataset, racing, settings, context.device)
        part = record.part("lon", final, device=context.device)
        context.tell(f"{name}: {part['chosen']}, {mean(part):.2f} % on the published splits")


def settings_for(nodes: int) -> dict[str, Any]:
    """The effort for a graph of so many nodes.

    >>> settings_for(183)["fresh"], settings_for(2708)["fresh"]
    (40, 20)
    """
    size = "small" if nodes <= SMALL else "large" if nodes >= LARGE else "medium"
    return {**COMMON, **SIZES[size]}


def _seeds(settings: Mapping[str, Any]) -> list[list[int]]:
    """The splits of each round, and last the fresh ones: no split twice."""
    counts = [settings["used"], *settings["rounds"], settings["fresh"]]
    ends = list(itertools.accumulate(counts))
    seeds = tuning_seeds(ends[-1])
    return [seeds[start:end] for start, end in itertools.pairwise(ends)]


def _round(
    dataset: data.NodeDataset,
    racing: Mapping[str, Config],
    number: int,
    settings: Mapping[str, Any],
    device: str,
) -> dict[str, Any]:
    """Judge who races, from the second round on with children; the best are parents."""
    if number > 0:
        racing = {**racing, **children_of(racing, settings["children"], number)}
    judged = judge(dataset, list(racing.values()), _seeds(settings)[number], device=device)
    means = {key: float(np.mean(s)) for key, s in zip(racing, judged, strict=True)}
    order = sorted(racing, key=lambda key: -means[key])
    return {
        "fingerprint": dataset.fingerprint(),
        "means": {key: round(means[key], 6) for key in order},
        "parents": {key: racing[key].to_dict() for key in order[: settings["parents"]]},
    }


def _final(
    dataset: data.NodeDataset,
    racing: Mapping[str, Config],
    settings: Mapping[str, Any],
    device: str,
) -> dict[str, Any]:
    """The best on fresh splits, and its report."""
    judged = judge(dataset, list(racing.values()), _seeds(settings)[-1], device=device)
    found = dict(zip(racing, judged, strict=True))
    chosen = max(found, key=lambda key: float(np.mean(found[key])))
    (row,) = train_splits(dataset, [racing[chosen]], range(settings["splits"]), device=device)
    return {
        "fingerprint": dataset.fingerprint(),
        "fresh": found,
        "chosen": chosen,
        "config": racing[chosen].to_dict(),
        **row,
    }


def read_choices(results: Path) -> dict[str, dict[str, Any]]:
    """Dataset -> the recipe of LON-GNN; the longest search's row where none was chosen yet."""
    study = read_study(results / "accuracy")
    found = {}
    for name in study:
        path = results / "recipes" / f"{name}.json"
        parts = read_record(path)["parts"] if path.is_file() else {}
        part = parts.get("lon")
        if part is not None:
            part = {**part, "race": parts["round 1"]["means"]}
        else:
            key = next((k for k in ("lon-full", "lon") if k in study[name]), None)
            part = None if key is None else {**study[name][key], "chosen": key}
        if part is not None:
            found[name] = part
    return found


def tables(folder: Path) -> list[Table]:
    choices = read_choices(folder.parent)
    return [_goals(choices), _candidates(choices), _finals(choices)]


def _goals(choices: Mapping[str, Mapping[str, Any]]) -> Table:
    """LON-GNN against what is printed."""
    rows = []
    for d, part in choices.items():
        column = d.removesuffix("-legacy")
        if column not in BEST_ANYWHERE:
            continue
        ours, s = mean(part), summarize([100 * v for v in part["test"]])
        wanted = (ACCURACY["lon"][column], best_of_paper(column), BEST_ANYWHERE[column])
        cells = [f"{w:.2f} ({ours - w:+.2f})" for w in wanted]
        rows.append([d, f"{ours:.2f}", f"{s['low']:.2f} to {s['high']:.2f}", *cells])
    return Table(
        "goals",
        "Test accuracy in % of LON-GNN's recipes over the ten published splits, and in brackets "
        "the distance to what is printed: the paper's LON-GNN, the best of any model in the "
        "paper, the best spectral result found anywhere. The paper's Cornell is the defective one.",
        ["graph", "ours", "95 % interval", "paper's LON-GNN", "best of the paper", "best anywhere"],
        rows,
    )


def _candidates(choices: Mapping[str, Mapping[str, Any]]) -> Table:
    """Where the race began."""
    keys = [*ROWS, *OTHERS, *RELATIVES, "jacobi"]
    rows = []
    for d, part in choices.items():
        first = part.get("race", {})
        cells = []
        for key in keys:
            names = (key, *(f"{key}, {word}" for word in SLOWER))
            cells.append(" / ".join(f"{100 * first[n]:.1f}" for n in names if n in first))
        drawn = [v for name, v in first.items() if name.startswith("random")]
        cells.append(f"{100 * max(drawn):.1f}" if drawn else "")
        rows.append([d, *cells])
    named = {k: ENTRIES[k].label for k in ROWS}
    named |= {"search": "paper's search", "recipe": "recipe so far"}
    titles = [named[k] if k in named else f"as {ENTRIES[k].label}" for k in keys]
    return Table(
        "candidates",
        "The first round: accuracy in % of LON-GNN's candidates on the judging half of the "
        "validation nodes, mean over tuning splits, as found / with slow filter rates / with a "
        "filter that all but stands still (where that took part). A row without candidates has "
        "not been decided so: its recipe is the longest search's.",
        ["graph", *titles, "best of random"],
        rows,
    )


def _finals(choices: Mapping[str, Mapping[str, Any]]) -> Table:
    """What the choice was made by, how it held, and what won."""
    rows = []
    for d, part in choices.items():
        fresh = {name: 100 * float(np.mean(v)) for name, v in part.get("fresh", {}).items()}
        ranked = sorted(fresh.values(), reverse=True)
        spread = f"{ranked[0]:.2f} ({ranked[0] - ranked[-1]:.2f})" if ranked else ""
        kept = {k: v for k, v in part["config"].items() if k in _SHOWN}
        rows.append(
            [
                d,
                part["chosen"],
                spread,
                f"{mean(part, 'val'):.2f}",
                f"{mean(part):.2f}",
                ", ".join(f"{_SHOWN[k]} {v}" for k, v in kept.items()),
            ]
        )
    return Table(
        "finals",
        "The winner (parent > round.number is a child of that candidate); its accuracy in % on the "
        "judging nodes of fresh splits, in brackets how far ahead of the last finalist; its "
        "validation and test accuracy on the published splits; what it is.",
        ["graph", "winner", "fresh", "published val.", "test", "configuration"],
        rows,
    )


#: Keys of a configuration that tell its form and rates, and how the table shortens them.
_SHOWN = {
    "placement": "filter at",
    "transform": "after",
    "normalize": "normalised",
    "hidden_channels": "hidden",
    "coefficients": "coefficients",
    "shared": "shared",
    "degree": "degree",
    "lr_coefficients": "rate",
    "lr_basis": "of basis",
    "wd_transform": "decay",
    "monitor": "stopped by",
}


def draw(folder: Path) -> list[Path]:
    return []


def recipe_files(results: Path) -> dict[str, str]:
    """Every recipe that the records give: MODEL/DATASET.toml to its text."""
    files: dict[str, str] = {}
    choices = read_choices(results)
    for experiment, entries in (("accuracy", ENTRIES), ("ablation", ablation.ENTRIES)):
        study: Study = read_study(results / experiment)
        for name, rows in study.items():
            for key, entry in entries.items():
                part = choices.get(name) if key == "lon" else rows.get(key)
                if part is None or key != entry.model or name in QUICK_DATASETS:
                    continue
                files.setdefault(f"{key}/{name}.toml", _recipe(name, key, part))
    return files


def _recipe(name: str, model: str, part: Mapping[str, Any]) -> str:
    s = summarize([100 * v for v in part["test"]])
    how = (
        "Chosen in a race by held-out validation nodes of tuning splits, see docs/results.md."
        if "fresh" in part
        else "Chosen by validation on tuning splits: a search, its finalists on further splits."
    )
    header = [
        f"Recipe for {model} on {name}, from the records in results/paper.",
        how,
        f"Test accuracy {s['mean']:.2f} % ({s['low']:.2f} to {s['high']:.2f}, 95 % bootstrap "
        "interval) over the published splits 0 to 9.",
    ]
    lines = [f"# {line}" for line in header] + [""]
    lines += complete(part["config"]).to_toml(leave_out=("seed", "repeat", "device", "scale"))
    return "\n".join(lines) + "\n"


def main() -> None:
    results, target = (Path(argument) for argument in sys.argv[1:3])
    for name, text in recipe_files(results).items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
