"""Which configuration of LON-GNN becomes the recipe: a race, judged on tuning splits of its own.

The best of many trials owes part of its validation accuracy to luck, and so does the best of a few
rows, all the more on a small graph. So every training here is stopped by one half of the validation
nodes of a tuning split and judged by the other half, and every round has splits of its own.

In the first round meet: what ``accuracy`` and ``search`` chose for LON-GNN, its defaults, and the
choices of its relatives carried over to LON-GNN, each also with slow filter rates and with a filter
that all but stands still; and random configurations of several forms. The best become parents: in
each further round they run again, together with children that differ from a parent in one to three
keys. The parents that are left are judged on fresh splits, the best mean wins, and is reported on
the published splits. For other models the row of ``accuracy`` or ``ablation`` is the recipe.

``python -m longnn.experiments.recipes RESULTS TARGET`` writes the recipes of the package.
"""

import functools
import itertools
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from longnn import data
from longnn.config import PAPER_FORM, Config
from longnn.experiments import ablation
from longnn.experiments.accuracy import DATASETS, ENTRIES
from longnn.experiments.evaluation import SMALL, judge, train_splits
from longnn.experiments.paper import Context
from longnn.experiments.published import ACCURACY, BEST_ANYWHERE, best_of_paper
from longnn.experiments.record import Record, read_record
from longnn.experiments.scores import Study, mean
from longnn.experiments.study import QUICK_DATASETS, read_study
from longnn.experiments.table import Table
from longnn.nn import MODELS, model_options
from longnn.training import summarize
from longnn.tuning import load_space
from longnn.tuning.splits import tuning_seeds

TITLE = "Recipes: LON-GNN at its best, against what is printed (not in the paper)"

ROWS = ("lon", "lon-full", "lon-paper", "lon-default")
#: Relatives with one filter for all channels; LON-GNN learns its basis instead of theirs.
RELATIVES = ("gpr", "appnp", "even", "bern", "cheb2")
#: Tuning splits used before (by ``accuracy`` and ``search``), reported splits.
COMMON: dict[str, Any] = {"used": 12, "splits": 10, "epochs": 1000}
#: By the size of the graph: random configurations; splits of each round; parents, and children a
#: round; the fresh splits that judge. A small graph's splits judge by few nodes, so luck is great;
#: a large graph's trainings are dear.
SIZES: dict[str, dict[str, Any]] = {
    "small": {"random": 80, "rounds": [6, 10, 10], "parents": 10, "children": 30, "fresh": 40},
    "medium": {"random": 60, "rounds": [3, 6, 6], "parents": 8, "children": 24, "fresh": 20},
    "large": {"random": 20, "rounds": [2, 4, 4], "parents": 6, "children": 14, "fresh": 10},
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
#: What is drawn for every form.
SPACE: dict[str, Any] = {
    **PAPER_FORM,
    "weight": "probability",
    "monitor": {"choices": ["score", "loss"]},
    "lr_transform": {"choices": [0.01, 0.02, 0.05]},
    "lr_coefficients": {"choices": [1e-4, 5e-4, 2e-3, 0.01]},
    "lr_factors": {"choices": [5e-4, 5e-3, 0.05]},
    "lr_basis": {"choices": [5e-4, 2e-3, 0.01]},
    "wd_transform": {"choices": [0.0, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3]},
    "wd_coefficients": {"choices": [0.0, 5e-5, 5e-4]},
    "input_dropout": {"low": 0.0, "high": 0.8, "step": 0.1},
    "dropout": {"low": 0.0, "high": 0.8, "step": 0.1},
    "filter_dropout": {"choices": [0.0, 0.2, 0.4, 0.6]},
    "a": {"choices": [-0.5, 0.0, 0.5, 1.0, 1.5]},
    "b": {"choices": [-0.5, 0.0, 0.5, 1.0, 1.5]},
}
_SHARED = {"coefficients": "free", "shared": True, "restart": {"choices": [0.1, 0.3, 0.6, 1.0]}}
_PCD = {"gamma": {"choices": [0.5, 0.75, 1.0, 1.25, 1.5]}}
#: The forms, in equal shares: one filter for all class channels, without and with self loops; one
#: for each, after an MLP or a linear map; one for each hidden channel.
FORMS: tuple[dict[str, Any], ...] = (
    _SHARED,
    {**_SHARED, "self_loops": "add"},
    _PCD,
    {**_PCD, "transform": "linear"},
    {**_PCD, "placement": "hidden"},
)
#: What a child may change, by steps along these values, ...
STEPS: dict[str, tuple[float, ...]] = {
    "lr_transform": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1),
    "lr_coefficients": (1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05),
    "lr_factors": (5e-4, 5e-3, 0.01, 0.02, 0.05),
    "lr_basis": (1e-6, 1e-5, 1e-4, 5e-4, 2e-3, 5e-3, 0.01, 0.02, 0.05),
    "wd_transform": (0.0, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3),
    "wd_coefficients": (0.0, 5e-5, 5e-4, 5e-3),
    "penalty": (0.0, 1e-5, 1e-4, 1e-3),
    "input_dropout": tuple(i / 10 for i in range(10)),
    "dropout": tuple(i / 10 for i in range(10)),
    "filter_dropout": tuple(i / 10 for i in range(10)),
    "a": (-0.75, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0),
    "b": (-0.75, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0),
    "gamma": (0.5, 0.75, 1.0, 1.25, 1.5),
    "restart": (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
    "hidden_channels": (32, 64, 128, 256),
    "degree": (5, 10, 15),
}
#: ... or to another of these.
SWITCHES: dict[str, tuple[str, ...]] = {
    "monitor": ("score", "loss"),
    "weight": ("probability", "paper"),
    "self_loops": ("keep", "add"),
    "transform": ("mlp", "linear", "residual"),
    "placement": ("output", "hidden"),
}
#: Keys that only one way of making coefficients has.
_ONLY = {"gamma": "pcd", "lr_factors": "pcd", "restart": "free"}
#: Orthonormal polynomials are large at the ends of the spectrum (at the default a and b the tenth
#: is 9 and 28 there), so a rate that suits the coefficients of monomials makes the filter jump:
#: every candidate is judged at slower filter rates too. The last all but hold a filter where it
#: starts, as APPNP does.
SLOWER: dict[str, dict[str, float]] = {
    "slow": {"lr_coefficients": 5e-4, "lr_factors": 5e-4, "lr_basis": 2e-3},
    "still": {"lr_coefficients": 1e-6, "lr_factors": 1e-6, "lr_basis": 1e-6},
}


def candidates(rows: Mapping[str, Any]) -> dict[str, Config]:
    """Configurations of LON-GNN, by the row of ``accuracy`` that they come from, or ``search``;
    each as it was found and with slower filter rates."""
    found = {key: _config(rows[key]["config"]) for key in (*ROWS, "search") if key in rows}
    for key in (*RELATIVES, "jacobi"):
        if key in rows:
            found[key] = _carry_over(key, rows[key]["config"])
    slower = {
        f"{key}, {word}": config.replace(**rates)
        for word, rates in SLOWER.items()
        for key, config in found.items()
    }
    return {**found, **slower}


def _config(keys: Mapping[str, Any]) -> Config:
    """A recorded configuration; what it does not say was the model's own default."""
    return Config.from_dict({**model_options(keys["model"]), **keys})


def _carry_over(key: str, keys: Mapping[str, Any]) -> Config:
    """The rates, decays and dropouts of a relative, in the form of LON-GNN nearest to it."""
    form: dict[str, Any] = {**PAPER_FORM, "weight": "probability"}
    if key == "jacobi":
        form["transform"] = "linear"
    else:
        form |= {"coefficients": "free", "shared": True, "restart": keys.get("restart", 1.0)}
        form["self_loops"] = MODELS[key].self_loops
    known = model_options("lon")
    own = {k: v for k, v in keys.items() if k not in model_options(key) or k in known}
    return Config.from_dict({**own, **form, "model": "lon"})


def run(context: Context) -> None:
    """Decide and report, graph by graph, as far as not done."""
    study = read_study(context.folder.parent / "accuracy")
    known = [d for d in (QUICK_DATASETS if context.quick else DATASETS) if d in study]
    if not known:
        context.tell("nothing to choose from: run `accuracy` first")
        return
    for name in context.choose("datasets", known):
        dataset = data.load(name, data_dir=context.data_dir)
        settings = QUICK if context.quick else settings_for(dataset.num_nodes)
        record = Record(context.folder / f"{name}.json", settings, commit=context.commit)
        if "lon" in record.parts:
            continue
        rows = dict(study[name])
        path = context.folder.parent / "search" / f"{name}.json"
        if path.is_file():
            rows["search"] = read_record(path)["parts"]["search"]
        racing = {**candidates(rows), **_draw(settings["random"], settings["epochs"])}
        for i in range(len(settings["rounds"])):
            held = functools.partial(_round, dataset, racing, i, settings, context.device)
            part = record.part(f"round {i + 1}", held, device=context.device)
            context.tell(f"{name}: round {i + 1} of {len(settings['rounds'])}")
            racing = {key: Config.from_dict(keys) for key, keys in part["parents"].items()}
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
        racing = {**racing, **_children(racing, settings["children"], number)}
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


def _draw(count: int, epochs: int) -> dict[str, Config]:
    """Random configurations, the forms in turn, in a fixed order."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    spaces = [load_space({**SPACE, "epochs": epochs, **form}, "lon") for form in FORMS]
    drawn = {}
    for i in range(count):
        space = spaces[i % len(spaces)]
        drawn[f"random {i}"] = space.config(space.suggest(study.ask()))
    return drawn


def _children(parents: Mapping[str, Config], count: int, generation: int) -> dict[str, Config]:
    """Each parent in turn has a child that differs in one to three keys."""
    generator, names = random.Random(generation), list(parents)
    children = {}
    for i in range(count):
        parent = names[i % len(names)]
        child = vary(parents[parent], generator)
        children[f"{parent.split(' > ')[0]} > {generation}.{i}"] = child
    return children


def vary(config: Config, generator: random.Random) -> Config:
    """A configuration that differs in one to three keys that matter to it."""
    keys = config.to_dict()
    known = [
        key
        for key in (*STEPS, *SWITCHES)
        if _ONLY.get(key, keys["coefficients"]) == keys["coefficients"]
    ]
    changed: dict[str, Any] = {}
    for key in generator.sample(known, generator.choice((1, 2, 3))):
        if key in SWITCHES:
            changed[key] = generator.choice([v for v in SWITCHES[key] if v != keys[key]])
        else:
            changed[key] = _step(STEPS[key], keys[key], generator)
    return config.replace(**changed)


def _step(values: Sequence[float], now: float, generator: random.Random) -> float:
    """One or two places along the values from the nearest to where it stands, never the same."""
    at = min(range(len(values)), key=lambda i: abs(values[i] - now))
    near = [i for i in range(len(values)) if i != at and abs(i - at) <= 2]
    return values[generator.choice(near)]


def read_choices(results: Path) -> dict[str, dict[str, Any]]:
    """Dataset -> the recipe of LON-GNN; the longest search's row where none was chosen yet."""
    study = read_study(results / "accuracy")
    found = {}
    for name in study:
        path = results / "recipes" / f"{name}.json"
        parts = read_record(path)["parts"] if path.is_file() else {}
        part = parts.get("lon")
        if part is not None:
            part = {**part, "race": parts.get("round 1", {}).get("means", {})}
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
    """Where the race began and how it went."""
    keys = [*ROWS, "search", *RELATIVES, "jacobi"]
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
    named = {"search": "paper's search", **{k: ENTRIES[k].label for k in ROWS}}
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
    lines += _config(part["config"]).to_toml(leave_out=("seed", "repeat", "device", "scale"))
    return "\n".join(lines) + "\n"


def main() -> None:
    results, target = (Path(argument) for argument in sys.argv[1:3])
    for name, text in recipe_files(results).items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
