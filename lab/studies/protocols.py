"""The models of Table 3 again under honest protocols, side by side with the published split.

A. The published split, which leaves whole classes out of the test set: from the records of
   ``accuracy``, not computed again.
B. A plain stratified 60/20/20, seeds 0 to 9.
C. The ten fixed geom-gcn masks, where a graph has them.

Nothing is searched for B and C: every model trains with the configuration that the equal-budget
search of ``accuracy`` chose for it on that graph. Minesweeper and Tolokers have ten fixed masks and
are scored by ROC AUC. There every model family had the same small random search on validation
nodes of the first two splits: its records decide what is trained, nothing searches
there again.

To add an ensemble, add an entry to :data:`ENSEMBLES`. The next run trains this row alone.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from lab.records import Record, Values, config_of
from lab.studies import accuracy
from lab.studies._engine import Cell, Cells, Context, read_records, record_path, together
from lab.studies._printed import FIXED_MASKS, PAPER, QUICK_DATASETS, TEN, UNIFORM_SPLIT
from lab.studies._search import Plan
from lab.studies._training import Entry, Join, make_splits, train_rows
from lab.studies._views import (
    CAPTIONS,
    Grid,
    ResultTable,
    Scores,
    average_ranks,
    dot_plot,
    gains,
    interval,
    listed,
    means,
    minus_base,
    models_table,
    numbered,
    percent,
    pivot,
    printed_rows,
)
from lab.studies.portfolio._graphs import GRAPHS as COLLECTION
from lab.studies.portfolio._select import SELECTION, member_config
from longnn.config import Config
from longnn.data import NodeDataset, Split, make_split
from longnn.recipes import known_recipes, load_recipe
from longnn.training import PATIENCE
from longnn.training import SEEDS as PRESET_SEEDS

TITLE = "Honest protocols: the models of Table 3 on stratified splits and fixed masks"
ORDER, AFTER = 95, ("accuracy", "recipes")
SAYS = CAPTIONS["protocols"]

#: The parts, by name: protocols B and C, and the graphs that are searched here.
STRATIFIED, GEOM_GCN, SEARCHED = "stratified", "geom-gcn", "searched"
_PLAN: Plan = {"metric": "accuracy", "splits": 10, "epochs": 1000, "members": 0}  # 0: all members
_DRAWS = {"candidates": 16, "splits": 2, "epochs": 500, "patience": 100}
PLANS: dict[str, Plan] = {
    STRATIFIED: {"protocol": "stratified", **_PLAN},
    GEOM_GCN: {"protocol": "geom-gcn", **_PLAN},
    SEARCHED: {"protocol": "fixed", **_PLAN, "metric": "roc_auc", "draws": _DRAWS},
}
#: Graphs of each part. Cora, Citeseer and Pubmed are read from files that have no geom-gcn masks,
#: and there are none for Computers and Photo.
GRAPHS = {
    STRATIFIED: PAPER,
    GEOM_GCN: ("chameleon", "squirrel", "actor", "texas", "cornell", "cornell-legacy"),
    SEARCHED: ("minesweeper", "tolokers"),
}
#: A look at bundled data, which come without masks.
QUICK_PLANS: dict[str, Plan] = {
    STRATIFIED: {**PLANS[STRATIFIED], "splits": 2, "epochs": 5, "members": 2}
}
#: The keys of LON-GNN's recipe as a single model, and of the cell about classes; how the keys of
#: searches begin.
RECIPE, CLASSES, SEARCH = "lon-recipe", "classes", "search "
#: Seeds of an ensemble of one configuration, and how far they are apart.
SEEDS, STRIDE = 8, 1000
#: Most epochs of a member of a portfolio.
MOST = 1000


@dataclasses.dataclass(frozen=True)
class Ensemble:
    """A row whose predictions are those of several trained members."""

    label: str
    #: The configurations on a graph, by its name and the folder that holds one folder per study;
    #: none leaves the row out. A configuration's own seed is added to that of the split.
    members: Callable[[str, Path], Sequence[Config]]
    join: Join


def recipe_of(name: str) -> dict[str, Config]:
    """LON-GNN's recipe for a graph as a row, if there is one."""
    there = ("lon", name) in known_recipes()
    return {RECIPE: config_of(load_recipe("lon", name))} if there else {}


def _seeds_of_recipe(name: str, results: Path) -> list[Config]:
    recipes = recipe_of(name).values()
    return [recipe.replace(seed=STRIDE * k) for recipe in recipes for k in range(SEEDS)]


def _portfolio(preset: str, name: str, results: Path) -> list[Config]:
    """The portfolio that was chosen without the graph, or without all of its kind where no recipe
    is of this graph alone; nothing where it was not left out.
    """
    records = read_records(results / "portfolio", [SELECTION])
    if not records:
        return []
    selection = records[SELECTION][SELECTION]
    portfolio = selection["portfolios"][preset]
    members = portfolio["without_graph"].get(name, [])
    if not members and name in COLLECTION:
        members = portfolio["without_kind"][COLLECTION[name].kind]
    limits = {"epochs": MOST, "patience": PATIENCE}
    configs = [member_config(selection, member, limits) for member in members]
    seeds = range(PRESET_SEEDS[preset])
    return [c.replace(seed=c.seed + STRIDE * k) for k in seeds for c in configs]


ENSEMBLES: dict[str, Ensemble] = {
    "lon-recipe-seeds": Ensemble(
        f"ensemble: LON-GNN's recipe, {SEEDS} seeds averaged", _seeds_of_recipe, "average"
    ),
    "portfolio": Ensemble(
        "ensemble: portfolio chosen without the graph", partial(_portfolio, "default"), "votes"
    ),
    "portfolio-best": Ensemble(
        "ensemble: portfolio of best, without the graph", partial(_portfolio, "best"), "votes"
    ),
}
#: Single models: the rows of Table 3, and the recipe.
SINGLE = {**accuracy.LABELS, RECIPE: "LON-GNN's recipe"}
#: Single row -> the model that it is a variant of.
MODELS = {**accuracy.MODELS, RECIPE: "lon"}
LABELS = {**SINGLE, **{key: ensemble.label for key, ensemble in ENSEMBLES.items()}}
#: What a quick run looks at.
QUICK_ROWS = ("lon", "gpr", "gcn", RECIPE, "lon-recipe-seeds")
#: One row per model: what the order of models is taken from.
EQUAL = accuracy.EQUAL
ALONE = {key: key for key in EQUAL}


def record_name(graph: str, part: str) -> str:
    """The name of the record of one graph in one part."""
    return f"{graph}-{part}"


def read_part(
    folder: Path, part: str, graphs: Sequence[str], keys: Sequence[str]
) -> dict[str, dict[str, list[float]]]:
    """The test scores of one part; without graphs that were only begun."""
    names = {record_name(graph, part): graph for graph in (*graphs, *QUICK_DATASETS)}
    records = {names[n]: record for n, record in read_records(folder, list(names)).items()}
    return {graph: row for graph, row in pivot(records, keys).items() if row}


def cells(context: Context) -> Cells:
    """Every row on every graph and part."""
    plans = QUICK_PLANS if context.quick else PLANS
    graphs = dict.fromkeys(plans, QUICK_DATASETS) if context.quick else GRAPHS
    names = list(dict.fromkeys(name for part in plans for name in graphs[part]))
    for name in context.choose("datasets", names):
        for part in [part for part in plans if name in graphs[part]]:
            yield from _part_cells(context, name, part, plans[part])


def _part_cells(context: Context, name: str, part: str, plan: Plan) -> Cells:
    """All rows of a record are trained by one call, as far as it lacks them."""
    path = record_path(context.folder, record_name(name, part))
    recorded = set(Record(path, plan)) if path.is_file() else set()
    asked = context.choose("models", list(LABELS))
    if context.quick and not context.models:
        asked = list(QUICK_ROWS)
    missing = [key for key in asked if key not in recorded]
    if not missing:
        return
    dataset = context.load(name)
    splits = make_splits(dataset, plan["protocol"], plan["splits"])
    cell = partial(Cell, record_name(name, part), plan)
    yield cell(CLASSES, partial(count_untested, dataset, splits), device="cpu")
    results = context.folder.parent
    if part == SEARCHED:
        drawn = Record(path, plan).below(SEARCH)
        configs = {key: config_of(of["configs"][of["chosen"]]) for key, of in drawn.items()}
    elif context.quick and not record_path(results / "accuracy", name).is_file():
        every_row = {k: {"model": row.model, **row.fixed} for k, row in accuracy.ROWS.items()}
        configs = {k: Config.from_dict(keys) for k, keys in every_row.items()} | recipe_of(name)
    else:
        configs = chosen_configs(results, name)
    every = entries(configs, name, results, plan)
    rows_to_train = {key: every[key] for key in missing if key in every}
    options = {"metric": plan["metric"], "device": context.device}
    train = together(partial(train_rows, dataset, rows_to_train, splits, **options))
    for key in rows_to_train:
        yield cell(key, train(key))


def count_untested(dataset: NodeDataset, splits: Sequence[Split]) -> dict[str, Any]:
    """Classes without test nodes on these splits, and on the published ones of the same seeds."""
    there = set(dataset.data.y[dataset.labelled].tolist())

    def untested(split: Split) -> int:
        return len(there - set(dataset.data.y[split.test].tolist()))

    published = [make_split(dataset, "published", split.seed) for split in splits]
    return {
        "classes": len(there),
        "untested": [*map(untested, splits)],
        "published": [*map(untested, published)],
    }


def chosen_configs(results: Path, name: str) -> dict[str, Config]:
    """Row -> what the equal-budget search of ``accuracy`` chose on a graph, and the recipe."""
    records = read_records(results / "accuracy", [name])
    if not records:
        raise ValueError(
            f"Expected the record of `accuracy` for {name!r} (there is none in {results}); run "
            f"`python -m lab study accuracy --dataset {name}` first, or choose its folder by "
            "--output"
        )
    record = records[name]
    chosen = {key: config_of(record[key]["config"]) for key in accuracy.ROWS if key in record}
    return {**chosen, **recipe_of(name)}


def entries(
    configs: Mapping[str, Config], name: str, results: Path, plan: Plan
) -> dict[str, Entry]:
    """All rows on one graph: the single models, then the ensembles."""
    made = {key: Entry([config]) for key, config in configs.items()}
    for key, ensemble in ENSEMBLES.items():
        members = list(ensemble.members(name, results))
        if members:
            made[key] = Entry(members[: plan["members"] or None], ensemble.join)
    return {key: entry.limited(plan["epochs"]) for key, entry in made.items()}


def read_grids(folder: Path) -> dict[str, Grid]:
    """Protocol -> its grid; A, the published split, is of the study ``accuracy``."""
    grids = {part: read_part(folder, part, GRAPHS[part], list(LABELS)) for part in GRAPHS}
    return {"A": pivot(accuracy.read(folder.parent / "accuracy")), **grids}


def tables(folder: Path) -> list[ResultTable]:
    """Scores of each part, the order of models, and the differences to LON-GNN under B."""
    grids = read_grids(folder)
    return [
        scores_table("stratified", grids[STRATIFIED], UNIFORM_SPLIT),
        scores_table("geom-gcn", grids[GEOM_GCN]),
        scores_table("masks", grids[SEARCHED], FIXED_MASKS),
        order_table(grids, read_classes(folder)),
        ranks_table(grids),
        minus_base("differences", SAYS["differences"], grids[STRATIFIED], LABELS, "lon"),
    ]


def scores_table(name: str, grid: Grid, printed: Mapping[str, float] | None = None) -> ResultTable:
    """Single models, then ensembles, then what others printed and how far the best single is."""
    table = models_table(name, SAYS[name], grid, SINGLE, MODELS)
    graphs = table.columns[1:-1]
    rows = [*table.rows]
    for key, ensemble in ENSEMBLES.items():
        if any(key in grid[g] for g in graphs):
            shown = [interval(grid[g][key]) if key in grid[g] else "" for g in graphs]
            rows.append([ensemble.label, *shown, ""])
    if printed:
        best = "best single model"
        rows += [[*row, ""] for row in printed_rows(grid, graphs, printed, best, ENSEMBLES)]
    return dataclasses.replace(table, rows=rows)


def read_classes(folder: Path) -> dict[str, list[Values]]:
    """Graph -> its counts of classes without test nodes, under B and then under C."""
    counts: dict[str, list[Values]] = {}
    for part in (STRATIFIED, GEOM_GCN):
        for graph in (*GRAPHS[part], *QUICK_DATASETS):
            for record in read_records(folder, [record_name(graph, part)]).values():
                counts.setdefault(graph, []).append(record[CLASSES])
    return counts


def rank_correlation(one: Mapping[str, Scores], other: Mapping[str, Scores]) -> float | None:
    """Spearman's correlation of the mean scores of the models that both have."""
    shared = [key for key in EQUAL if key in one and key in other]
    means = [[percent(row[key]) for key in shared] for row in (one, other)]
    if len(shared) < 2 or any(np.ptp(values) == 0 for values in means):
        return None
    return round(float(spearmanr(*means).statistic), 12)


def winner(row: Mapping[str, Scores]) -> str:
    """The model with the best mean test score, the first of equals; empty where there is none."""
    means = {key: percent(row[key]) for key in EQUAL if key in row}
    return max(means, key=lambda key: means[key], default="")


def order_table(grids: Mapping[str, Grid], classes: Mapping[str, Sequence[Values]]) -> ResultTable:
    """One line per graph of protocol B: how the order of the models depends on the protocol."""
    rows = []
    for graph in grids[STRATIFIED]:
        a, b, c = (grids[part].get(graph, {}) for part in ("A", STRATIFIED, GEOM_GCN))
        ranks = [average_ranks({"": row}, ALONE).get("lon") for row in (a, b, c)]
        correlations = [rank_correlation(*two) for two in ((a, b), (a, c), (b, c))]
        rows.append(
            [
                graph,
                _untested(classes.get(graph, ())),
                *(SINGLE.get(winner(row), "") for row in (a, b, c)),
                *("" if value is None else f"{value:.2f}" for value in correlations),
                " / ".join("-" if rank is None else f"{rank:g}" for rank in ranks),
            ]
        )
    best, pairs = [f"best, {p}" for p in "ABC"], ["A and B", "A and C", "B and C"]
    columns = ["graph", "untested classes", *best, *pairs, "rank of LON-GNN"]
    return ResultTable("order", SAYS["order"].format(models=len(EQUAL)), columns, rows)


def ranks_table(grids: Mapping[str, Grid]) -> ResultTable:
    """Average ranks of the models under each protocol, on the same graphs."""

    def some(of: str, graphs: Grid) -> Grid:
        return {g: grids[of][g] for g in graphs if g in grids[of]}

    stratified, masks = grids[STRATIFIED], grids[GEOM_GCN]
    columns: dict[str, Grid] = {
        "A": some("A", stratified),
        "B": stratified,
        "A, graphs with masks": some("A", masks),
        "B, graphs with masks": some(STRATIFIED, masks),
        "C": masks,
    }
    ranks = [average_ranks(grid, ALONE) for grid in columns.values()]
    rows = [
        [SINGLE[k], *(f"{of[k]:.1f}" if k in of else "" for of in ranks)]
        for k in EQUAL
        if any(k in of for of in ranks)
    ]
    return ResultTable("ranks", SAYS["ranks"], ["model", *columns], rows)


def _untested(cells: Sequence[Mapping[str, Any]]) -> str:
    """Classes without test nodes under A, B and C, and how many classes there are."""
    if not cells:
        return ""
    counts = [cells[0]["published"], *(cell["untested"] for cell in cells)]
    spans = [sorted({min(numbers), max(numbers)}) for numbers in counts]
    shown = [" to ".join(map(str, span)) for span in spans] + ["-"] * (3 - len(counts))
    return f"{' / '.join(shown)} of {cells[0]['classes']}"


def figures(folder: Path) -> dict[str, Figure]:
    """Mean and interval of every row on every graph under protocol B."""
    grid = read_part(folder, STRATIFIED, GRAPHS[STRATIFIED], list(LABELS))
    return {"stratified": dot_plot(grid, LABELS, [*accuracy.OWN, RECIPE])} if grid else {}


def facts(folder: Path) -> dict[str, Any]:
    """The numbers of the summary."""
    records, grids = accuracy.read(folder.parent / "accuracy"), read_grids(folder)
    published, stratified, masks, searched = grids.values()
    both = {"A": {g: published[g] for g in stratified}, "B": stratified}
    ranks = {protocol: average_ranks(grid, ALONE) for protocol, grid in both.items()}
    forms = {
        p: average_ranks(grid, accuracy.MODELS) for p, grid in (("B", stratified), ("C", masks))
    }
    first = {p: min(EQUAL, key=of.__getitem__) for p, of in forms.items()}
    single = {
        g: max(percent(scores) for key, scores in row.items() if key not in ENSEMBLES)
        for g, row in {**stratified, **searched}.items()
    }
    short = {g: single[g] - percent(row["portfolio"]) for g, row in stratified.items()}
    printed = UNIFORM_SPLIT | FIXED_MASKS
    best = {
        part: {g: of["portfolio-best"] for g, of in gains(grid, "portfolio").items()}
        for part, grid in (("B", stratified), ("C", {g: masks[g] for g in TEN if g in masks}))
    }
    above = {part: {g: v for g, v in of.items() if v > 0.05} for part, of in best.items()}
    beyond = {
        key
        for row in searched.values()
        for key, scores in row.items()
        if key in EQUAL and percent(scores) > percent(row["portfolio-best"])
    }
    return {
        "trials": {key: records["cora"][key]["search"]["trials"] for key in accuracy.OWN},
        "models": len(EQUAL),
        "order": {g: rank_correlation(published[g], row) for g, row in stratified.items()},
        "other_best": sum(winner(published[g]) != winner(row) for g, row in stratified.items()),
        "ranks": ranks,
        "place": {p: 1 + sum(v < of["lon"] for v in of.values()) for p, of in ranks.items()},
        "first": SINGLE[min(ranks["B"], key=lambda key: ranks["B"][key])],
        "best_rank": min(ranks["B"].values()),
        "forms": forms,
        "next": {p: f"{SINGLE[key]} {forms[p][key]:.1f}" for p, key in first.items()},
        "A": means(published),
        "B": means(stratified),
        "untuned": [g for g, of in gains(stratified, "lon").items() if of["lon-default"] > 0],
        "ahead": [g for g, gap in short.items() if gap < 0],
        "near": [g for g, gap in short.items() if 0 <= gap <= 0.2],
        "behind": numbered({g: gap for g, gap in short.items() if gap > 0.2}),
        "least": {part: min(of.values()) for part, of in above.items()},
        "most": {part: max(of.values()) for part, of in above.items()},
        "above": above,
        "above_b": len(above["B"]),
        "level": [g for g, gap in best["B"].items() if abs(gap) < 0.05],
        "below": numbered({g: gap for g, gap in best["C"].items() if g not in above["C"]}),
        "searched": means(searched),
        "beyond": listed((SINGLE[key] for key in beyond), plain=True),
        "first_searched": listed({SINGLE[winner(row)] for row in searched.values()}, plain=True),
        "printed": {g: printed[g] - single[g] for g in printed},
        "draws": PLANS[SEARCHED]["draws"],
        "epochs": PLANS[SEARCHED]["epochs"],
    }
