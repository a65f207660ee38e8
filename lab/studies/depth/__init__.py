"""What depth, normalisation, the basis and direction are each worth, alone and together.

Every row has the same small random search on validation nodes; the winner is trained on all ten
splits. On Minesweeper and Tolokers by ROC AUC on their fixed masks, on Chameleon, Squirrel,
Wisconsin and Actor by accuracy on the geom-gcn masks, with the arcs as they are and without, on
Computers and Photo on a stratified 60/20/20. On the ten graphs of the paper a stack stands beside
LON-GNN's recipe, on the published split.
"""

import dataclasses
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lab.records import Values, config_of
from lab.studies._engine import Cell, Cells, Context, read_records
from lab.studies._printed import DIRECTED_MASKS, FIXED_MASKS, UNIFORM_SPLIT
from lab.studies._search import (
    Plan,
    draw_candidates,
    drawn_cell,
    search_families,
    shortened,
)
from lab.studies._training import Entry, holdout_scores, make_splits, train_rows
from lab.studies._views import (
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
    points,
    verdict,
)
from lab.studies.depth._rows import (
    ARCS,
    DEEP,
    GONE,
    KEYS,
    LABELS,
    PLANS,
    PUBLISHED,
    QUICK_KEYS,
    QUICK_PLANS,
    ROWS,
    TUNED,
    Deep,
    rows_of,
)
from lab.studies.depth._textbook import TEXTBOOK, train_textbook
from lab.studies.protocols import SEARCH, printed_rows, read_part, record_name
from lab.studies.recipes._choices import read_choices
from longnn.data import NodeDataset
from longnn.tuning._splits import tuning_seeds

TITLE = "Depth and direction: blocks of filters, and arcs as arcs"
ORDER, AFTER = 97, ("accuracy", "recipes")


#: Rows on arcs, each with the same model on edges both ways.
DIRECTED = [
    (key, key.removesuffix(way))
    for way in ("-arcs", "-magnetic")
    for key in KEYS[ARCS]
    if key.endswith(way)
]


def cells(context: Context) -> Cells:
    """Of every row on every graph the search, then its winner on all splits."""
    plans = QUICK_PLANS if context.quick else PLANS
    known = list(dict.fromkeys(name for graphs in plans.values() for name in graphs))
    asked = context.choose("models", list(LABELS))
    for name in context.choose("datasets", known):
        for part, graphs in plans.items():
            if name not in graphs:
                continue
            keys = QUICK_KEYS[part] if context.quick else rows_of(part, name)
            cell = partial(Cell, record_name(name, part), graphs[name])
            for key in [k for k in keys if k in asked and k not in GONE]:
                if key in TEXTBOOK:  # the settings are printed: nothing is searched
                    yield cell(key, partial(_run_textbook, context, name, key, graphs[name]))
                    continue
                deep = ROWS[key]
                plan = deep.plan(graphs[name])
                drawn = yield cell(SEARCH + key, partial(_search, context, name, key, plan))
                winner = config_of(drawn["configs"][drawn["chosen"]])
                entry = Entry([winner]).limited(plan["epochs"])
                yield cell(key, partial(_train, context, name, deep, entry, plan))


def load(context: Context, name: str, deep: Deep) -> NodeDataset:
    """A graph as a row sees it."""
    options: dict[str, Any] = {"directed": True} if deep.directed else {}
    if deep.raw:
        options["row_normalize"] = False
    return context.load(name, **options)


def _search(context: Context, name: str, key: str, plan: Plan) -> dict[str, Any]:
    deep = ROWS[key]
    dataset = load(context, name, deep)
    if deep.halved:
        return search_halves(dataset, deep, plan, device=context.device)
    options = {"device": context.device, "precision": deep.precision}
    return search_families(dataset, {key: deep.row}, plan, **options)[key]


def search_halves(dataset: NodeDataset, deep: Deep, plan: Plan, *, device: str) -> dict[str, Any]:
    """The winner by validation nodes that stopped no training, on tuning splits.

    The best epoch on a few dozen nodes is partly luck, and so is the best of many configurations
    by it. The scores of the cell are those of the other half of the nodes.
    """
    configs = draw_candidates(deep.row, plan, deep.precision)
    seeds = tuning_seeds(plan["draws"]["splits"])
    scores = holdout_scores(dataset, shortened(configs, plan), seeds, device=device)
    return drawn_cell(dataset, configs, scores)


def _train(context: Context, name: str, deep: Deep, entry: Entry, plan: Plan) -> dict[str, Any]:
    dataset = load(context, name, deep)
    splits = make_splits(dataset, plan["protocol"], plan["splits"])
    options = {"metric": plan["metric"], "device": context.device}
    return train_rows(dataset, {"": entry}, splits, **options)[""]


def _run_textbook(context: Context, name: str, key: str, plan: Plan) -> dict[str, Any]:
    dataset = context.load(name)
    splits = make_splits(dataset, plan["protocol"], plan["splits"])
    return train_textbook(dataset, TEXTBOOK[key][name], splits, device=context.device)


_SPLITS = (
    "mean ± half the 95 % bootstrap interval over ten splits; the best of each column in bold."
)
_MEANING = f"{_SPLITS} Every row had the same random search on validation nodes."
_DIFFERENCE = "mean and 95 % bootstrap interval over ten splits; bold if the interval excludes zero"


def read(folder: Path, part: str) -> dict[str, dict[str, list[float]]]:
    """Graph -> row -> test scores in one part; without graphs that were only begun."""
    return read_part(folder, part, list(PLANS[part]), KEYS[part])


def tables(folder: Path) -> list[ResultTable]:
    """Scores of each part, what each part of a stack is worth, and the graphs of the paper."""
    deep, arcs = read(folder, DEEP), read(folder, ARCS)
    score = "test ROC AUC (Minesweeper, Tolokers) or accuracy (Computers, Photo) in %"
    return [
        _scores(deep, DEEP, f"Depth: {score}, {_MEANING}", {**FIXED_MASKS, **UNIFORM_SPLIT}),
        minus_base(
            "worth",
            f"What it is worth: {score} minus that of blocks of LON-GNN's filters, {_DIFFERENCE}.",
            deep,
            {key: LABELS[key] for key in KEYS[DEEP]},
            "lon-deep",
        ),
        _scores(
            arcs,
            ARCS,
            f"Direction: test accuracy in % on the geom-gcn masks, {_MEANING}",
            DIRECTED_MASKS,
        ),
        difference_table(
            "direction",
            "What direction is worth: test accuracy in % on arcs minus that of the same model with "
            f"edges both ways, each with its own search, {_DIFFERENCE}.",
            arcs,
            {LABELS[one]: (one, other) for one, other in DIRECTED},
        ),
        _longer(read(folder, TUNED)),
        _published(folder, read(folder, PUBLISHED)),
    ]


def _longer(grid: Grid) -> ResultTable:
    """Longer searches, and the networks as printed where they were trained."""
    caption = (
        f"Longer searches: test ROC AUC (Minesweeper, Tolokers) or accuracy in %, {_SPLITS} "
        "Features are as the files have them; 12 or 16 configurations per row (6 of the wider "
        "filter), in a space made for the kind of graph. Printed scores of Computers and Photo are "
        "means over seeds on one split."
    )
    if any(key in row for row in grid.values() for key in TEXTBOOK):
        caption += " Networks as printed are trained on our splits, with normalised rows."
    return _scores(grid, TUNED, caption, {**FIXED_MASKS, **UNIFORM_SPLIT, **DIRECTED_MASKS})


def _scores(grid: Grid, part: str, caption: str, printed: Mapping[str, float]) -> ResultTable:
    labels = {key: LABELS[key] for key in KEYS[part]}
    table = models_table(part, caption, grid, labels, ranked=False)  # rows repeat a model
    graphs = table.columns[1:]
    if not any(graph in printed for graph in graphs):
        return table
    rows = [*table.rows, *printed_rows(grid, graphs, printed, "best here")]
    return dataclasses.replace(table, rows=rows)


def _graphs_with(property: str) -> str:
    """The graphs of the paper whose blocks have a property of :class:`Deep`, in words."""
    return listed(
        graph
        for graph in PLANS[PUBLISHED]
        if any(getattr(ROWS[key], property) for key in rows_of(PUBLISHED, graph))
    )


def beside_recipes(folder: Path) -> dict[str, dict[str, list[float]]]:
    """Graph of the paper -> blocks, and LON-GNN's recipe -> test scores."""
    choices = read_choices(folder.parent)
    return {
        graph: {
            "blocks": next(iter(row.values())),
            **({"recipe": choices[graph].cell.scores("test")} if graph in choices else {}),
        }
        for graph, row in read(folder, PUBLISHED).items()
    }


def _published(folder: Path, grid: Grid) -> ResultTable:
    """A stack beside LON-GNN's recipe, on the graphs of the paper."""
    rows = [
        [
            graph,
            interval(row["blocks"]),
            interval(row["recipe"]) if "recipe" in row else "",
            paired(row, "blocks", "recipe"),
        ]
        for graph, row in beside_recipes(folder).items()
    ]
    return ResultTable(
        PUBLISHED,
        "Blocks of LON-GNN's filters after a random search in a space for the kind of graph, and "
        "LON-GNN's recipe, which has one filter and a longer selection: test accuracy in % on the "
        f"published split, {_SPLITS} On {_graphs_with('raw')} blocks see features as the files "
        f"have them, recipes normalised rows. On {_graphs_with('halved')} the winner of the search "
        "was chosen on tuning splits, by validation nodes that stopped no training.",
        ["graph", "blocks", "recipe", "difference"],
        rows,
    )


def figures(folder: Path) -> dict[str, Figure]:
    """Mean and interval of every row on every graph."""
    drawn = {}
    for part, shown in ((DEEP, ["lon", "lon-deep"]), (ARCS, ["lon-arcs", "lon-deep-arcs"])):
        grid = read(folder, part)
        if grid:
            labels = {key: LABELS[key] for key in KEYS[part]}
            plans = PLANS[part].items()
            metrics = {g: "ROC AUC" for g, plan in plans if plan["metric"] == "roc_auc"}
            drawn[part] = dot_plot(grid, labels, shown, metrics)
    return drawn


def facts(folder: Path) -> dict[str, Any]:
    """The numbers of the summary; differences are in points."""
    deep, arcs, tuned = (read(folder, part) for part in (DEEP, ARCS, TUNED))
    marks = {**FIXED_MASKS, **UNIFORM_SPLIT, **DIRECTED_MASKS}
    away = {
        graph: max(
            percent(scores)
            for grid in (deep, arcs, tuned)
            for key, scores in grid.get(graph, {}).items()
            if key not in TEXTBOOK
        )
        - mark
        for graph, mark in marks.items()
    }
    behind = {g: gap for g, gap in away.items() if gap <= 0}
    beside = beside_recipes(folder)
    stacks = {g: points(row["blocks"], row["recipe"]) for g, row in beside.items()}
    reached = {g: float(np.mean(of)) for g, of in stacks.items() if np.mean(of) >= 0}
    short = {g: of for g, of in stacks.items() if g not in reached}
    worth, scores, longer = gains(deep, "lon-deep"), means(arcs), means(tuned)
    equal = [abs(worth[g]["gcn-deep"]) for g in ("minesweeper", "computers", "photo")]
    better = max(TEXTBOOK, key=lambda key: percent(tuned["photo"][key]))
    direction = {
        one: {g: points(row[one], row[two]) for g, row in arcs.items() if {one, two} <= {*row}}
        for one, two in DIRECTED
    }
    ways = [np.mean(d["wisconsin"]) for one, d in direction.items() if one.startswith("lon")]
    (blocks,) = {_winner(folder, g, "narrow")["blocks"] for g in FIXED_MASKS}
    wide = [_winner(folder, g, "words-arcs") for g in DIRECTED_MASKS]
    ((degree, units),) = {(config["degree"], config["hidden_channels"]) for config in wide}
    return {
        "draws": _draws(DEEP, ARCS),
        "long_draws": _draws(TUNED),
        "deep": means(deep),
        "worth": worth,
        "printed": marks,
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
            g: longer[g]["wide"] - max(longer[g][key] for key in TEXTBOOK) for g in UNIFORM_SPLIT
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
    name = record_name(graph, TUNED)
    config: Values = read_records(folder, [name])[name][key]["configs"][0]
    return config


def _draws(*parts: str) -> str:
    """How many configurations each row of some parts may draw: "8 or 12"."""
    counts = {plan["draws"]["candidates"] for part in parts for plan in PLANS[part].values()}
    return " or ".join(map(str, sorted(counts)))
