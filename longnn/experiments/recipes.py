"""Which configuration of LON-GNN becomes the recipe: candidates on fresh tuning splits.

The best of many trials owes part of its validation accuracy to luck, and so does the best of a few
rows. What ``accuracy`` chose for LON-GNN, its defaults, and the choices of its relatives carried
over to LON-GNN are trained again on twelve tuning splits that none of them has seen. The best mean
validation accuracy wins; the winner is then reported on the published splits. For other models the
row of ``accuracy`` is the recipe.

``python -m longnn.experiments.recipes RESULTS TARGET`` writes the recipes of the package.
"""

import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from longnn import data
from longnn.config import PAPER_FORM, Config
from longnn.experiments.accuracy import DATASETS, ENTRIES
from longnn.experiments.evaluation import train_splits
from longnn.experiments.paper import Context
from longnn.experiments.published import ACCURACY, BEST_ANYWHERE, best_of_paper
from longnn.experiments.record import Record, read_record
from longnn.experiments.scores import Study, mean
from longnn.experiments.study import QUICK_DATASETS, read_study
from longnn.experiments.table import Table
from longnn.nn import MODELS, model_options
from longnn.training import summarize
from longnn.tuning import confirm
from longnn.tuning.splits import tuning_seeds

TITLE = "Recipes: LON-GNN at its best, against what is printed (not in the paper)"

ROWS = ("lon", "lon-full", "lon-paper", "lon-default")
#: Relatives with one filter for all channels; LON-GNN learns its basis instead of theirs.
RELATIVES = ("gpr", "appnp", "even", "bern", "cheb2")
#: Splits that no search and no choice before has seen, and the splits of the report.
FULL = {"used": 12, "fresh": 12, "splits": 10}
QUICK = {"used": 2, "fresh": 1, "splits": 2}


def candidates(rows: Mapping[str, Any]) -> dict[str, Config]:
    """Configurations of LON-GNN, by the row of ``accuracy`` that they come from."""
    found = {key: _config(rows[key]["config"]) for key in ROWS if key in rows}
    for key in (*RELATIVES, "jacobi"):
        if key in rows:
            found[key] = _carry_over(key, rows[key]["config"])
    return found


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
    settings = QUICK if context.quick else FULL
    study = read_study(context.folder.parent / "accuracy")
    known = [d for d in (QUICK_DATASETS if context.quick else DATASETS) if d in study]
    if not known:
        context.tell("nothing to choose from: run `accuracy` first")
        return
    for name in context.choose("datasets", known):
        record = Record(context.folder / f"{name}.json", settings, commit=context.commit)
        if "lon" in record.parts:
            continue
        compute = functools.partial(_choose, name, candidates(study[name]), context, settings)
        part = record.part("lon", compute, device=context.device)
        context.tell(f"{name}: {part['chosen']}, {mean(part):.2f} % on the published splits")


def _choose(
    name: str, configs: Mapping[str, Config], context: Context, settings: Mapping[str, int]
) -> dict[str, Any]:
    dataset = data.load(name, data_dir=context.data_dir)
    seeds = tuning_seeds(settings["used"] + settings["fresh"])[settings["used"] :]
    scores = confirm(
        dataset, list(configs.values()), seeds, split="published", device=context.device
    )
    fresh = {key: [round(v, 6) for v in row] for key, row in zip(configs, scores, strict=True)}
    chosen = max(fresh, key=lambda key: float(np.mean(fresh[key])))
    config = configs[chosen]
    (row,) = train_splits(dataset, [config], range(settings["splits"]), device=context.device)
    return {
        "fingerprint": dataset.fingerprint(),
        "fresh": fresh,
        "chosen": chosen,
        "config": config.to_dict(),
        **row,
    }


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
    keys = [*ROWS, *RELATIVES, "jacobi"]
    rows = []
    for d, part in choices.items():
        fresh = part.get("fresh", {})
        cells = []
        for key in keys:
            text = f"{100 * float(np.mean(fresh[key])):.1f}" if key in fresh else ""
            cells.append(f"**{text}**" if key == part["chosen"] and text else text)
        rows.append([d, *cells, f"{mean(part, 'val'):.1f}", f"{mean(part):.1f}"])
    titles = [ENTRIES[k].label if k in ROWS else f"as {ENTRIES[k].label}" for k in keys]
    return Table(
        "candidates",
        "Mean validation accuracy in % of LON-GNN's candidates on twelve fresh tuning splits, the "
        "chosen one in bold, and its validation and test accuracy on the published splits. A row "
        "without candidates has not been decided so: its recipe is the longest search's.",
        ["graph", *titles, "published val.", "test"],
        rows,
    )


def draw(folder: Path) -> list[Path]:
    return []


def recipe_files(results: Path) -> dict[str, str]:
    """Every recipe that the records give: MODEL/DATASET.toml to its text."""
    files: dict[str, str] = {}
    study: Study = read_study(results / "accuracy")
    choices = read_choices(results)
    for name, rows in study.items():
        for key, entry in ENTRIES.items():
            part = choices.get(name) if key == "lon" else rows.get(key)
            if part is None or key != entry.model or name in QUICK_DATASETS:
                continue
            files[f"{entry.model}/{name}.toml"] = _recipe(name, entry.model, part)
    return files


def _recipe(name: str, model: str, part: Mapping[str, Any]) -> str:
    s = summarize([100 * v for v in part["test"]])
    how = (
        "Chosen by validation on twelve tuning splits between the configurations of several rows."
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
