"""The recipes of the package as TOML, written from the records: one file per model.

The recipe of a model with blocks is, on each graph, the row of ``depth`` with the best validation
scores. The rows of a part of that study had equal random searches; the part with longer searches
comes first. Test scores are reported beside the recipe and decide nothing. Tables that no record
gives (found by ``longnn tune``) stay as they are in the file.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lab.records import ConfigTable, Values, config_of
from lab.studies import ablation, accuracy
from lab.studies._engine import read_records
from lab.studies._printed import PAPER
from lab.studies.depth._rows import ARCS, DEEP, KEYS, PLANS, PUBLISHED, ROWS, TUNED
from lab.studies.protocols import record_name
from lab.studies.recipes._choices import read_choices
from longnn.config._config import AFTERWARDS
from longnn.data._catalog import find_named
from longnn.metrics import METRICS, summarize

#: Parts of ``depth``, the first that has a graph gives its recipe: scores of different splits
#: cannot be compared.
PARTS = (TUNED, DEEP, ARCS, PUBLISHED)
#: Settings that a recipe leaves to whoever uses it.
LEFT_OUT = (
    *("preset", "time_limit", "seed", "repeat", "device", "scale", "split"),
    *AFTERWARDS,
)

_SELECTED = "Chosen by held-out validation nodes of tuning splits, see docs/results/recipes.md."
_SEARCHED = "Chosen by validation on tuning splits: a search, its finalists on further splits."

_DRAWN = "Chosen by validation among the rows of a small search, see docs/results/depth.md."
_ARCS = "# For the graph with its arcs: directed=true, which `longnn train --recipe` sets."


def files(root: Path) -> dict[Path, str]:
    """The files of recipes of the package."""
    target = root / "longnn" / "recipes"
    texts = recipe_texts(root / "results", target)
    return {target / name: text for name, text in texts.items()}


def recipe_texts(results: Path, target: Path) -> dict[str, str]:
    """The text of every file of recipes by its name; ``target`` has the files as they are now."""
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
    """Model, graph and table of every recipe that the records give."""
    choices = read_choices(results)
    for study in (accuracy, ablation):
        folder = results / study.__name__.rpartition(".")[2]
        for name, record in accuracy.read(folder).items():
            for key, row in study.ROWS.items() if name in PAPER else ():
                if key == row.model == "lon" and name in choices:
                    choice = choices[name]
                    how = _SELECTED if choice.holdout else _SEARCHED
                    yield key, name, _table(name, choice.cell["config"], choice.cell, how)
                elif key == row.model != "lon" and key in record:
                    yield key, name, _table(name, record[key]["config"], record[key], _SEARCHED)
    for deep in deep_choices(results):
        plan = deep.plan
        over = METRICS[plan["metric"]].name, f"{plan['protocol']} splits 0 to {plan['splits'] - 1}"
        yield deep.model, deep.graph, _table(deep.graph, deep.config, deep.cell, _DRAWN, over)


def _table(
    dataset: str,
    config: ConfigTable,
    cell: Values,
    how: str,
    over: tuple[str, str] = ("accuracy", "published splits 0 to 9"),
) -> str:
    s = summarize([100 * v for v in cell.scores("test")])
    recipe = config_of(config)
    lines = [
        f"# From the records in results. {how}",
        f"# Test {over[0]} {s['mean']:.2f} % ({s['low']:.2f} to {s['high']:.2f}, 95 % bootstrap "
        f"interval) over the {over[1]}.",
        *([_ARCS] if recipe.direction == "cover" else []),
        f"[{dataset}]",
        *recipe.to_toml(leave_out=LEFT_OUT),
    ]
    return "\n".join(lines) + "\n"


@dataclasses.dataclass(frozen=True)
class DeepChoice:
    """The recipe of a model on a graph, its scores, and on what splits they were measured."""

    model: str  # as users type it
    graph: str
    config: ConfigTable
    cell: Values
    plan: Mapping[str, Any]


def deep_choices(results: Path) -> Iterator[DeepChoice]:
    """The choices that the records of ``depth`` give, for every model with blocks."""
    done: set[tuple[str, str]] = set()
    for part in PARTS:
        for graph, plan in PLANS[part].items():
            for record in read_records(results / "depth", [record_name(graph, part)]).values():
                known = [key for key in KEYS[part] if key in ROWS and key in record]
                keys = [key for key in known if _as_loaded(key, graph)]
                rows = {key: record[key] for key in keys}
                for model, key in _winners(rows).items():
                    if (model, graph) not in done:
                        done.add((model, graph))
                        cell = rows[key]
                        yield DeepChoice(model, graph, _config(key, cell), cell, plan)


def _as_loaded(key: str, graph: str) -> bool:
    """Whether a row saw the features that a graph has when it is loaded by its name."""
    return not (ROWS[key].raw and find_named(graph).row_normalize)


def _config(key: str, cell: Values) -> ConfigTable:
    """The configuration of a row. What "auto" was decided to be on arcs is said."""
    config = dict(cell["configs"][0])
    if ROWS[key].directed:
        config.setdefault("direction", "cover")
    return config


def _winners(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The row with the best mean validation score of each model with blocks."""
    found: dict[str, str] = {}
    for key, cell in rows.items():
        model = ROWS[key].row.model
        if not model.endswith("-deep"):
            continue
        if model not in found or np.mean(cell["val"]) > np.mean(rows[found[model]]["val"]):
            found[model] = key
    return found
