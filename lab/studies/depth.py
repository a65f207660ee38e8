"""What depth, normalisation, the basis and direction are each worth, alone and together.

History: every row had a small random search on validation nodes, and its winner was trained on all
ten splits. The records stay, and these are views of them; the code that searched went.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lab.records import Record, Values
from lab.studies._engine import read_records
from lab.studies._printed import DIRECTED_MASKS, FIXED_MASKS, TEN, UNIFORM_SPLIT, read_toml
from lab.studies._views import (
    CAPTIONS,
    Grid,
    ResultTable,
    difference_table,
    dot_plot,
    gains,
    interval,
    is_clear,
    listed,
    means,
    minus_base,
    models_table,
    numbered,
    paired,
    percent,
    pivot,
    points,
    printed_rows,
    verdict,
)
from lab.studies.recipes import read_choices, recipe_files, recipe_table
from longnn.data._catalog import find_named
from longnn.metrics import METRICS

TITLE = "Depth and direction: blocks of filters, and arcs as arcs (history)"
ORDER, AFTER = 97, ("accuracy", "recipes")
SAYS = CAPTIONS["depth"]

#: Parts: stacks against single filters, with arcs and without, the graphs of the paper, and how far
#: a longer search in a space made for each kind of graph goes.
DEEP, ARCS, PUBLISHED, TUNED = "deep", "arcs", "published", "tuned"
PRINTED_NETS = ("textbook-gcn", "textbook-sage")
#: Part -> its rows; those of the published part are named by the kind of graph.
LABELS: dict[str, dict[str, str]] = read_toml("labels")["depth"]
GRAPHS = {
    DEEP: ("minesweeper", "tolokers", "computers", "photo"),
    ARCS: ("chameleon", "squirrel", "wisconsin", "actor"),
    PUBLISHED: TEN,
    TUNED: ("minesweeper", "tolokers", "computers", "photo", "chameleon", "squirrel"),
}
#: Rows that saw features as the files have them; the others have normalised rows.
RAW = {key for key in LABELS[TUNED] if key not in PRINTED_NETS} | {"bought", "linked"}
#: Rows on arcs, each with the same model on edges both ways.
DIRECTED = [(k, k.removesuffix(w)) for w in ("-arcs", "-magnetic") for k in LABELS[ARCS] if w in k]
PRINTED = {**FIXED_MASKS, **UNIFORM_SPLIT, **DIRECTED_MASKS}


def read_part(folder: Path, part: str) -> dict[str, Record]:
    """Graph -> its record in one part."""
    names = {f"{graph}-{part}": graph for graph in GRAPHS[part]}
    return {names[n]: record for n, record in read_records(folder, list(names)).items()}


def read(folder: Path, part: str) -> dict[str, dict[str, list[float]]]:
    """Graph -> row -> test scores in one part."""
    return pivot(read_part(folder, part), LABELS[part])


def tables(folder: Path) -> list[ResultTable]:
    """Scores of each part, what each part of a stack is worth, and the graphs of the paper."""
    deep, arcs = read(folder, DEEP), read(folder, ARCS)
    direction = {LABELS[ARCS][one]: (one, other) for one, other in DIRECTED}
    return [
        _scores(deep, DEEP, {**FIXED_MASKS, **UNIFORM_SPLIT}),
        minus_base("worth", SAYS["worth"], deep, LABELS[DEEP], "lon-deep"),
        _scores(arcs, ARCS, DIRECTED_MASKS),
        difference_table("direction", SAYS["direction"], arcs, direction),
        _scores(read(folder, TUNED), TUNED, PRINTED),
        _published(folder),
    ]


def _scores(grid: Grid, part: str, printed: Mapping[str, float]) -> ResultTable:
    table = models_table(part, SAYS[part], grid, LABELS[part], ranked=False)  # rows repeat a model
    rows = printed_rows(grid, table.columns[1:], printed, "best here")
    return dataclasses.replace(table, rows=[*table.rows, *rows])


def beside_recipes(folder: Path) -> dict[str, dict[str, list[float]]]:
    """Graph of the paper -> blocks, and LON-GNN's recipe -> test scores."""
    choices = read_choices(folder.parent)
    return {
        graph: {"blocks": blocks, "recipe": choices[graph].cell.scores("test")}
        for graph, row in read(folder, PUBLISHED).items()
        for blocks in row.values()
    }


def _published(folder: Path) -> ResultTable:
    """A stack beside LON-GNN's recipe, on the graphs of the paper."""
    rows = [
        [graph, interval(row["blocks"]), interval(row["recipe"]), paired(row, "blocks", "recipe")]
        for graph, row in beside_recipes(folder).items()
    ]
    columns = ["graph", "blocks", "recipe", "difference"]
    return ResultTable(PUBLISHED, SAYS[PUBLISHED], columns, rows)


def figures(folder: Path) -> dict[str, Figure]:
    """Mean and interval of every row on every graph."""
    drawn = {}
    for part, shown in ((DEEP, ["lon", "lon-deep"]), (ARCS, ["lon-arcs", "lon-deep-arcs"])):
        records = read_part(folder, part)
        metrics = {g: "ROC AUC" for g, r in records.items() if r.plan["metric"] == "roc_auc"}
        drawn[part] = dot_plot(read(folder, part), LABELS[part], shown, metrics)
    return drawn


def facts(folder: Path) -> dict[str, Any]:
    """The numbers of the summary; differences are in points."""
    deep, arcs, tuned = (read(folder, part) for part in (DEEP, ARCS, TUNED))
    best = {
        graph: max(
            percent(scores)
            for grid in (deep, arcs, tuned)
            for key, scores in grid.get(graph, {}).items()
            if key not in PRINTED_NETS
        )
        for graph in PRINTED
    }
    away = {graph: best[graph] - mark for graph, mark in PRINTED.items()}
    behind = {g: gap for g, gap in away.items() if gap <= 0}
    stacks = {g: points(row["blocks"], row["recipe"]) for g, row in beside_recipes(folder).items()}
    reached = {g: float(np.mean(of)) for g, of in stacks.items() if np.mean(of) >= 0}
    short = {g: of for g, of in stacks.items() if g not in reached}
    worth, scores, longer = gains(deep, "lon-deep"), means(arcs), means(tuned)
    equal = [abs(worth[g]["gcn-deep"]) for g in ("minesweeper", "computers", "photo")]
    better = max(PRINTED_NETS, key=lambda key: percent(tuned["photo"][key]))
    direction = {
        one: {g: points(row[one], row[two]) for g, row in arcs.items() if {one, two} <= {*row}}
        for one, two in DIRECTED
    }
    ways = [np.mean(d["wisconsin"]) for one, d in direction.items() if one.startswith("lon")]
    (blocks,) = {_winner(folder, g, "narrow")["blocks"] for g in FIXED_MASKS}
    wide = [_winner(folder, g, "words-arcs") for g in DIRECTED_MASKS]
    ((degree, units),) = {(config["degree"], config["hidden_channels"]) for config in wide}
    return {
        "draws": _draws(folder, DEEP, ARCS),
        "long_draws": _draws(folder, TUNED),
        "deep": means(deep),
        "worth": worth,
        "printed": PRINTED,
        "tuned": longer,
        "blocks": blocks,
        "degree": degree,
        "units": units,
        "gcn_within": math.ceil(10 * max(equal)) / 10,
        "above_rest": longer["minesweeper"]["narrow"] - max(means(deep)["minesweeper"].values()),
        "direction": {one: {g: np.mean(of) for g, of in d.items()} for one, d in direction.items()},
        "verdict": {one: {g: verdict(of) for g, of in d.items()} for one, d in direction.items()},
        "wide": gains({g: tuned[g] for g in DIRECTED_MASKS}, "words-arcs"),
        "arcs": scores,
        "level": verdict(points(arcs["wisconsin"]["lon-magnetic"], arcs["wisconsin"]["lon-deep"])),
        "ways": len(ways),
        "ways_that_gain": sum(gained > 0 for gained in ways),
        "ahead_of_printed": numbered({g: gap for g, gap in away.items() if gap > 0}),
        "behind_printed": numbered({g: v for g, v in behind.items() if g not in DIRECTED_MASKS}),
        "behind_directed": numbered({g: v for g, v in behind.items() if g in DIRECTED_MASKS}),
        "above_printed_nets": {
            g: longer[g]["wide"] - max(longer[g][key] for key in PRINTED_NETS)
            for g in UNIFORM_SPLIT
        },
        "photo": verdict(points(tuned["photo"]["wide"], tuned["photo"][better])),
        "reached": len(reached),
        "reached_on": numbered(reached),
        "clear_on": listed(g for g in reached if is_clear(stacks[g])),
        "level_on": listed(g for g, of in short.items() if not is_clear(of)),
        "behind_on": listed(g for g, of in short.items() if is_clear(of)),
    }


def _winner(folder: Path, graph: str, key: str) -> Values:
    """The configuration that the longer search chose for a row."""
    config: Values = read_part(folder, TUNED)[graph][key]["configs"][0]
    return config


def _draws(folder: Path, *parts: str) -> str:
    """How many configurations each row of some parts may draw: "8 or 12"."""
    plans = [record.plan for part in parts for record in read_part(folder, part).values()]
    return " or ".join(map(str, sorted({plan["draws"]["candidates"] for plan in plans})))


def files(root: Path) -> dict[Path, str]:
    """The recipes of models with blocks: on each graph the row with the best validation scores.

    The rows of a part had equal searches; the part with longer ones comes first. Test scores stand
    beside the recipe and decide nothing.
    """
    return recipe_files(root, _recipes(root / "results" / "depth"))


def _recipes(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Model, graph and table. Scores of different splits cannot be compared: one part decides."""
    for part in (TUNED, DEEP, ARCS, PUBLISHED):
        for graph, record in read_part(folder, part).items():
            normalized = find_named(graph).row_normalize
            rows = {
                key: record[key]
                for key in LABELS[part]
                if key in record and "magnetic" not in key and not (normalized and key in RAW)
            }
            plan = record.plan
            splits = f"{plan['protocol']} splits 0 to {plan['splits'] - 1}"
            over = METRICS[plan["metric"]].name, splits
            for model in ("lon-deep", "gcn-deep", "sage-deep", "gat-deep"):
                keys = [k for k, c in rows.items() if c["configs"][0].get("model") == model]
                if keys:
                    best = max(keys, key=lambda key: percent(rows[key]["val"]))
                    config = {**rows[best]["configs"][0]}
                    if "arcs" in best:  # what "auto" was decided to be is said
                        config.setdefault("direction", "cover")
                    yield model, graph, recipe_table(graph, config, rows[best], "drawn", over)
