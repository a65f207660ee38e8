"""LON-GNN's recipes against what is printed, and the recipes of the package as TOML.

History: a recipe of LON-GNN won rounds of candidates on tuning splits of its own, by validation
nodes that stopped no training; `longnn tune` is how one is found today. The records stay, and with
them the files of recipes are written again. For other models the row of ``accuracy`` or
``ablation`` is the recipe, for those with blocks the best row of ``depth`` by validation.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.records import ConfigTable, Values, config_of
from lab.studies import ablation, accuracy
from lab.studies._engine import read_records
from lab.studies._printed import ACCURACY, BEST_ANYWHERE, LEGACY, PAPER, TEN, best_of_paper
from lab.studies._views import CAPTIONS, ResultTable, listed, percent, word
from longnn.config._config import AFTERWARDS
from longnn.metrics import summarize

TITLE = "Recipes: LON-GNN at its best, against what is printed (history)"
ORDER, AFTER = 90, ("accuracy", "ablation", "search")
SAYS = CAPTIONS["recipes"]

#: Where the selection began: rows of ``accuracy`` and others, then relatives whose choices were
#: carried over to LON-GNN; and how each was slowed down.
STARTS = {
    **{key: accuracy.LABELS[key] for key in ("lon", "lon-full", "lon-paper", "lon-default")},
    "search": "paper's search",
    "recipe": "current recipe",
    **{
        key: f"as {accuracy.LABELS[key]}"
        for key in ("gpr", "appnp", "even", "bern", "cheb2", "jacobi")
    },
}
SLOWER = ("slow", "still")
#: Settings that a recipe leaves to whoever uses it.
LEFT_OUT = ("preset", "time_limit", "seed", "repeat", "device", "scale", "split", *AFTERWARDS)
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


@dataclasses.dataclass(frozen=True)
class Choice:
    """The recipe of LON-GNN on one graph; without a selection no round and no final."""

    chosen: str  # name of the winner
    cell: Values  # its configuration, and what it reached
    #: Candidate -> mean score of the first round.
    first: Mapping[str, float] = dataclasses.field(default_factory=dict)
    #: Finalist -> scores of the final.
    holdout: Mapping[str, list[float]] = dataclasses.field(default_factory=dict)


def read_choices(results: Path) -> dict[str, Choice]:
    """Graph -> the recipe of LON-GNN; without a selection, the row of the longest search."""
    selections, choices = read_records(results / "recipes", PAPER), {}
    for name, rows in accuracy.read(results / "accuracy").items():
        if name in selections:
            cell = selections[name]["lon"]
            first = selections[name]["round 1"]["means"]
            choices[name] = Choice(cell["chosen"], cell, first, cell["holdout"])
        else:
            key = "lon-full" if "lon-full" in rows else "lon"
            choices[name] = Choice(key, rows[key])
    return choices


def tables(folder: Path) -> list[ResultTable]:
    """What the recipes reach, where the selection began, and how it ended."""
    goals, candidates, finals = [], [], []
    for d, choice in read_choices(folder.parent).items():
        test = choice.cell.scores("test")
        ours, s = percent(test), summarize([100 * v for v in test])
        column = d.removesuffix("-legacy")
        wanted = (ACCURACY["lon"][column], best_of_paper(column), BEST_ANYWHERE[column])
        printed = [f"{w:.2f} ({ours - w:+.2f})" for w in wanted]
        goals.append([d, f"{ours:.2f}", f"{s['low']:.2f} to {s['high']:.2f}", *printed])

        first, shown = choice.first, []
        for key in STARTS:
            names = (key, *(f"{key}, {slower}" for slower in SLOWER))
            shown.append(" / ".join(f"{100 * first[n]:.1f}" for n in names if n in first))
        drawn = [v for name, v in first.items() if name.startswith("random")]
        candidates.append([d, *shown, f"{100 * max(drawn):.1f}" if drawn else ""])

        ranked = sorted((percent(v) for v in choice.holdout.values()), reverse=True)
        ahead = f"{ranked[0]:.2f} ({ranked[0] - ranked[-1]:.2f})" if ranked else ""
        scores = [f"{percent(choice.cell.scores(nodes)):.2f}" for nodes in ("val", "test")]
        finals.append([d, choice.chosen, ahead, *scores, _describe(choice.cell["config"])])
    against = ["paper's LON-GNN", "best of the paper", "best anywhere"]
    won = ["winner", "holdout", "published val.", "test", "configuration"]
    columns = {
        "goals": ["graph", "ours", "95 % interval", *against],
        "candidates": ["graph", *STARTS.values(), "best of random"],
        "finals": ["graph", *won],
    }
    rows = {"goals": goals, "candidates": candidates, "finals": finals}
    return [ResultTable(name, SAYS[name], columns[name], rows[name]) for name in columns]


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
    return {
        "of_paper": word(sum(ours[g] >= ACCURACY["lon"][m] for g, m in marks.items())),
        "of_best": word(len(graphs) - len(behind)),
        "of_anywhere": listed(g for g in graphs if below[g] <= 0),
        "behind": "; ".join(f"{listed([g])} by {gap:.2f} points" for g, gap in behind.items()),
        "below": below,
    }


def files(root: Path) -> dict[Path, str]:
    """The files of recipes of the package, except those of models with blocks."""
    return recipe_files(root, _recipes(root / "results"))


def _recipes(results: Path) -> Iterator[tuple[str, str, str]]:
    """Model, graph and table of every recipe that the records give."""
    choices = read_choices(results)
    for study in (accuracy, ablation):
        for name, record in accuracy.read(results / study.__name__.rpartition(".")[2]).items():
            for key, row in study.ROWS.items() if name in PAPER else ():
                if key == row.model == "lon":
                    cell = choices[name].cell
                    how = "selected" if choices[name].holdout else "searched"
                    yield key, name, recipe_table(name, cell["config"], cell, how)
                elif key == row.model and key in record:
                    cell = record[key]
                    yield key, name, recipe_table(name, cell["config"], cell, "searched")


def recipe_table(
    graph: str,
    config: ConfigTable,
    cell: Values,
    how: str,
    over: tuple[str, str] = ("accuracy", "published splits 0 to 9"),
) -> str:
    """A recipe with a comment above: how it was chosen, and what it reached over which splits."""
    s = summarize([100 * v for v in cell.scores("test")])
    recipe = config_of(config)
    arcs = "For the graph with its arcs: directed=true, which `longnn train --recipe` sets."
    lines = [
        f"# From the records in results. {SAYS[how]}",
        f"# Test {over[0]} {s['mean']:.2f} % ({s['low']:.2f} to {s['high']:.2f}, 95 % bootstrap "
        f"interval) over the {over[1]}.",
        *([f"# {arcs}"] if recipe.direction == "cover" else []),
        f"[{graph}]",
        *recipe.to_toml(leave_out=LEFT_OUT),
    ]
    return "\n".join(lines) + "\n"


def recipe_files(root: Path, recipes: Iterator[tuple[str, str, str]]) -> dict[Path, str]:
    """One file per model. Tables that no record gives stay as they are in the file."""
    blocks: dict[str, dict[str, str]] = {}
    for model, graph, block in recipes:
        blocks.setdefault(model, {}).setdefault(graph, block)
    texts = {}
    for model, new in blocks.items():
        file = root / "longnn" / "recipes" / f"{model}.toml"
        kept = split_tables(file.read_text(encoding="utf-8")) if file.is_file() else {}
        head = f"# Recipes for {model}: one table per dataset, above each where it comes from.\n"
        others = {graph: text for graph, text in kept.items() if graph not in new}
        texts[file] = "\n".join([head, *({**new, **others}.values())])
    return texts


def split_tables(text: str) -> dict[str, str]:
    """The tables of a file by name, each with the comment above it.

    >>> split_tables("# Head.\\n\\n# From here.\\n[cora]\\na = 1\\n")
    {'cora': '# From here.\\n[cora]\\na = 1\\n'}
    """
    tables = {}
    for block in text.strip().split("\n\n"):
        names = [line[1:-1] for line in block.splitlines() if line.startswith("[")]
        if names:
            tables[names[0]] = block + "\n"
    return tables
