"""The recipes of the package as TOML, written from the records: one file per model.

Tables that no record gives (found by ``longnn tune``) stay as they are in the file.
"""

from collections.abc import Iterator
from pathlib import Path

from lab.studies import ablation, accuracy
from lab.studies._core._evaluation import Scores
from lab.studies._core._protocol import QUICK_DATASETS, ConfigTable, read_results
from lab.studies.recipes._candidates import complete
from lab.studies.recipes._deep import deep_choices
from lab.studies.recipes._selection import read_choices
from longnn._base.files import write_text
from longnn.config._config import AFTERWARDS
from longnn.metrics import METRICS, summarize

#: Settings that a recipe leaves to whoever uses it.
LEFT_OUT = (
    *("preset", "time_limit", "seed", "repeat", "device", "scale", "split"),
    *AFTERWARDS,
)

_SELECTED = "Chosen by held-out validation nodes of tuning splits, see docs/results/recipes.md."
_SEARCHED = "Chosen by validation on tuning splits: a search, its finalists on further splits."

_DRAWN = "Chosen by validation among the rows of a small search, see docs/results/depth.md."
_ARCS = "# For the graph with its arcs: directed=true, which `longnn train --recipe` sets."


def recipe_texts(results: Path, target: Path) -> dict[str, str]:
    """The text of every file of recipes, by the name of the file.

    Args:
        results: the folder that holds one folder per study.
        target: the folder with the files of recipes as they are now.
    """
    blocks: dict[str, dict[str, str]] = {}
    for model, dataset, block in _recipes(results):
        blocks.setdefault(model, {}).setdefault(dataset, block)
    texts = {}
    for model, made in blocks.items():
        file = target / f"{model}.toml"
        before = split_tables(file.read_text(encoding="utf-8")) if file.is_file() else {}
        kept = {dataset: text for dataset, text in before.items() if dataset not in made}
        head = f"# Recipes for {model}: one table per dataset, above each where it comes from.\n"
        texts[file.name] = "\n".join([head, *({**made, **kept}.values())])
    return texts


def write_recipes(results: Path, target: Path) -> None:
    """Write the files of recipes again."""
    for name, text in recipe_texts(results, target).items():
        write_text(target / name, text)


def split_tables(text: str) -> dict[str, str]:
    """The tables of a file by name, each with the comment above it.

    >>> split_tables("# Head.\\n\\n# From here.\\n[cora]\\na = 1\\n")
    {'cora': '# From here.\\n[cora]\\na = 1\\n'}
    """
    found = {}
    for block in text.strip().split("\n\n"):
        names = [line[1:-1] for line in block.splitlines() if line.startswith("[")]
        if names:
            found[names[0]] = block + "\n"
    return found


def _recipes(results: Path) -> Iterator[tuple[str, str, str]]:
    """Model, dataset and table of every recipe that the records give."""
    choices = read_choices(results)
    for study, rows in (("accuracy", accuracy.ROWS), ("ablation", ablation.ROWS)):
        for name, cells in read_results(results / study).items():
            if name in QUICK_DATASETS:
                continue
            for key, row in rows.items():
                if key != row.model:
                    continue
                if key == "lon" and name in choices:
                    choice = choices[name]
                    how = _SELECTED if choice.holdout else _SEARCHED
                    yield key, name, _table(name, choice.config, choice.scores, how)
                elif key != "lon" and key in cells:
                    yield key, name, _table(name, cells[key].config, cells[key], _SEARCHED)
    for deep in deep_choices(results):
        plan, cell = deep.plan, deep.cell
        over = METRICS[plan.metric].name, f"{plan.protocol} splits 0 to {plan.splits - 1}"
        yield deep.model, deep.graph, _table(deep.graph, deep.config, cell, _DRAWN, over)


def _table(
    dataset: str,
    config: ConfigTable,
    scores: Scores,
    how: str,
    over: tuple[str, str] = ("accuracy", "published splits 0 to 9"),
) -> str:
    s = summarize([100 * v for v in scores.test])
    recipe = complete(config)
    lines = [
        f"# From the records in results. {how}",
        f"# Test {over[0]} {s['mean']:.2f} % ({s['low']:.2f} to {s['high']:.2f}, 95 % bootstrap "
        f"interval) over the {over[1]}.",
        *([_ARCS] if recipe.direction == "cover" else []),
        f"[{dataset}]",
        *recipe.to_toml(leave_out=LEFT_OUT),
    ]
    return "\n".join(lines) + "\n"
