"""Which configuration of LON-GNN becomes the recipe: candidates judged on fresh tuning splits.

The best of many trials owes part of its validation accuracy to luck, and so does the best of a few
rows, all the more on a small graph. So every training here is stopped by one half of the validation
nodes of a tuning split and judged by the other half, and every round has splits of its own.

On small and middling graphs random configurations of several forms of LON-GNN race: all on two
splits, the best of them on four more. The best few of these, what ``accuracy`` and ``search`` chose
for LON-GNN, its defaults, and the choices of its relatives carried over to LON-GNN, each also with
slow filter rates, are then judged on splits that none of them has seen. The best mean wins, and is
reported on the published splits. For other models the row of ``accuracy`` or ``ablation`` is the
recipe.

``python -m longnn.experiments.recipes RESULTS TARGET`` writes the recipes of the package.
"""

import functools
import itertools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from longnn import data
from longnn.config import PAPER_FORM, Config
from longnn.experiments import ablation
from longnn.experiments.accuracy import DATASETS, ENTRIES
from longnn.experiments.evaluation import judge, train_splits
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
#: Tuning splits used before (by ``accuracy`` and ``search``), how many of the race join the other
#: candidates, reported splits.
COMMON: dict[str, Any] = {"used": 12, "kept": 6, "splits": 10, "epochs": 1000}
#: By the size of the graph: rounds of the race, as how many random candidates on how many splits;
#: the fresh splits that judge; whether relatives' choices are carried over. A small graph's splits
#: judge by few nodes, so luck is great; a large graph's trainings are dear, and its rows of
#: ``accuracy`` are closer to what they promise.
SIZES: dict[str, dict[str, Any]] = {
    "small": {"rounds": [[64, 2], [16, 4]], "fresh": 20, "relatives": True},
    "medium": {"rounds": [[48, 2], [12, 4]], "fresh": 8, "relatives": True},
    "large": {"rounds": [], "fresh": 3, "relatives": False},
}
QUICK: dict[str, Any] = {
    "used": 2,
    "kept": 1,
    "splits": 2,
    "epochs": 40,
    "rounds": [[4, 1], [2, 1]],
    "fresh": 1,
    "relatives": True,
}
#: Nodes up to which a graph is small, and from which it is large.
SMALL, LARGE = 500, 5000
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
#: for each, after an MLP or a linear map.
FORMS: tuple[dict[str, Any], ...] = (
    _SHARED,
    {**_SHARED, "self_loops": "add"},
    _PCD,
    {**_PCD, "transform": "linear"},
)
#: Orthonormal polynomials are large at the ends of the spectrum (at the default a and b the tenth
#: is 9 and 28 there), so a rate that suits the coefficients of monomials makes the filter jump:
#: every candidate is judged with slow filter rates too.
SLOW = {"lr_coefficients": 5e-4, "lr_factors": 5e-4, "lr_basis": 2e-3}


def candidates(rows: Mapping[str, Any], *, relatives: bool = True) -> dict[str, Config]:
    """Configurations of LON-GNN, by the row of ``accuracy`` that they come from, or ``search``;
    each as it was found and with slow filter rates."""
    found = {key: _config(rows[key]["config"]) for key in (*ROWS, "search") if key in rows}
    for key in (*RELATIVES, "jacobi") if relatives else ():
        if key in rows:
            found[key] = _carry_over(key, rows[key]["config"])
    return {**found, **{f"{key}, slow": config.replace(**SLOW) for key, config in found.items()}}


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
        configs = candidates(rows, relatives=settings["relatives"])
        compute = functools.partial(_choose, dataset, configs, settings, context.device)
        part = record.part("lon", compute, device=context.device)
        context.tell(f"{name}: {part['chosen']}, {mean(part):.2f} % on the published splits")


def settings_for(nodes: int) -> dict[str, Any]:
    """The effort for a graph of so many nodes.

    >>> settings_for(183)["fresh"], settings_for(2708)["fresh"]
    (20, 8)
    """
    size = "small" if nodes <= SMALL else "large" if nodes >= LARGE else "medium"
    return {**COMMON, **SIZES[size]}


def _choose(
    dataset: data.NodeDataset,
    configs: Mapping[str, Config],
    settings: Mapping[str, Any],
    device: str,
) -> dict[str, Any]:
    rounds = settings["rounds"]
    count = settings["used"] + sum(n for _, n in rounds) + settings["fresh"]
    seeds = iter(tuning_seeds(count)[settings["used"] :])
    racing = _draw(rounds[0][0] if rounds else 0, settings["epochs"])
    history = []
    for count, splits in rounds:
        numbers = list(racing)[:count]
        scores = judge(
            dataset,
            [racing[i] for i in numbers],
            list(itertools.islice(seeds, splits)),
            device=device,
        )
        means = dict(zip(numbers, (float(np.mean(s)) for s in scores), strict=True))
        racing = {i: racing[i] for i in sorted(numbers, key=lambda i: -means[i])}
        history.append({str(i): round(means[i], 6) for i in racing})
    best = {f"random {i}": racing[i] for i in list(racing)[: settings["kept"]]}
    configs = {**configs, **best}
    judged = judge(dataset, list(configs.values()), list(seeds), device=device)
    found = dict(zip(configs, judged, strict=True))
    chosen = max(found, key=lambda key: float(np.mean(found[key])))
    config = configs[chosen]
    (row,) = train_splits(dataset, [config], range(settings["splits"]), device=device)
    return {
        "fingerprint": dataset.fingerprint(),
        "race": history,
        "fresh": found,
        "chosen": chosen,
        "config": config.to_dict(),
        **row,
    }


def _draw(count: int, epochs: int) -> dict[int, Config]:
    """Random configurations, the forms in turn, in a fixed order."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    spaces = [load_space({**SPACE, "epochs": epochs, **form}, "lon") for form in FORMS]
    drawn = {}
    for i in range(count):
        space = spaces[i % len(spaces)]
        drawn[i] = space.config(space.suggest(study.ask()))
    return drawn


def read_choices(results: Path) -> dict[str, dict[str, Any]]:
    """Dataset -> the recipe of LON-GNN; the longest search's row where none was chosen yet."""
    study = read_study(results / "accuracy")
    found = {}
    for name in study:
        path = results / "recipes" / f"{name}.json"
        part = read_record(path)["parts"].get("lon") if path.is_file() else None
        if part is None:
            key = next((k for k in ("lon-full", "lon") if k in study[name]), None)
            part = None if key is None else {**study[name][key], "chosen": key}
        if part is not None:
            found[name] = part
    return found


def tables(folder: Path) -> list[Table]:
    choices = read_choices(folder.parent)
    return [_goals(choices), _candidates(choices)]


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
    """What the choice was made by."""
    keys = [*ROWS, "search", *RELATIVES, "jacobi"]
    rows = []
    for d, part in choices.items():
        fresh = part.get("fresh", {})
        cells = []
        for key in keys:
            both = []
            for name in (key, f"{key}, slow"):
                text = f"{100 * float(np.mean(fresh[name])):.1f}" if name in fresh else ""
                both.append(f"**{text}**" if name == part["chosen"] and text else text)
            cells.append(" / ".join(filter(None, both)))
        drawn = [float(np.mean(v)) for key, v in fresh.items() if key.startswith("random")]
        text = f"{100 * max(drawn):.1f}" if drawn else ""
        cells.append(f"**{text}**" if part["chosen"].startswith("random") else text)
        rows.append([d, *cells, f"{mean(part, 'val'):.1f}", f"{mean(part):.1f}"])
    named = {"search": "paper's search", **{k: ENTRIES[k].label for k in ROWS}}
    titles = [named[k] if k in named else f"as {ENTRIES[k].label}" for k in keys]
    titles.append("best of random")
    return Table(
        "candidates",
        "Accuracy in % of LON-GNN's candidates on the judging half of the validation nodes, mean "
        "over fresh tuning splits, as found / with slow filter rates, the chosen one in bold; its "
        "validation and test accuracy on the published splits. A row without candidates has not "
        "been decided so: its recipe is the longest search's.",
        ["graph", *titles, "published val.", "test"],
        rows,
    )


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
        "Chosen between several candidates by held-out validation nodes of fresh tuning splits."
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
