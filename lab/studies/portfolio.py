"""Which few configurations serve all kinds of graphs: portfolios, and how members are joined.

History: candidates, recipes of single graphs and random configurations, were trained on 60 % of
the nodes of graphs of many kinds; 20 % stopped the trainings and voted, and the scores are of the
other 20 %, the selection holdout. The set was chosen greedily that lost least there. Each kind of
graph, and each graph that has a recipe, was left out in turn to see what the choice is worth on
graphs it has not seen. The records stay, the code that trained and chose went.

A record is named as its graph; ``selection`` is the choice; ``test-`` stands before the name of a
graph or table on which the portfolios were tested, on splits that took no part in the choice.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab.records import Record, Values, config_of
from lab.studies._engine import read_records
from lab.studies._printed import ACCURACY, LEGACY, PAPER, TEN, printed_cells
from lab.studies._training import as_trained
from lab.studies._views import (
    CAPTIONS,
    Grid,
    ResultTable,
    gain,
    means_in_bold,
    metric_words,
    numbered,
    paired,
    pairs_table,
    percent,
    points,
    word,
)
from lab.studies.ensembles import IN_USE, ONE, SEEDS, SHIFTED, read_ensembles
from lab.studies.tables import LABELS, TABLES
from longnn.config import Config
from longnn.config._config import AFTERWARDS
from longnn.config._values import toml_value
from longnn.training import DRAWS, FREE, PRIOR

TITLE = "Which few configurations serve all kinds of graphs (history)"
ORDER, AFTER = 105, ("ensembles",)

#: Graph of the choice -> its kind; graphs of one kind were left out together.
KINDS = {
    **dict.fromkeys(("cora", "citeseer", "pubmed"), "citations"),
    **dict.fromkeys(("computers", "photo"), "purchases"),
    **dict.fromkeys(("chameleon", "squirrel"), "wiki pages"),
    "actor": "actors",
    **dict.fromkeys(("texas", "cornell", "wisconsin"), "university pages"),
    **dict.fromkeys(("minesweeper", "tolokers"), "few columns"),
    **dict.fromkeys(("house", "neighbours", "diabetes"), "regression"),
    **dict.fromkeys(("fraud", "onehot", "heterophilic"), "classes"),
    "cancer": "likeness",
    **dict.fromkeys(("friedman", "xor", "moons"), "useless edges"),
    **{f"csbm{phi:+.1f}": "blocks" for phi in (-0.9, -0.5, 0.0, 0.5, 0.9)},
    "digits": "likeness",
    **dict.fromkeys(("villages", "borders"), "useless columns"),
}
#: The same of graphs whose kinds the collection lacks; they were tested once.
UNSEEN = {
    **dict.fromkeys(("picture", "textures"), "image grid"),
    **dict.fromkeys(("levels", "followers"), "arcs"),
    **dict.fromkeys(("halves", "trust"), "weights"),
}
#: The record, and the key of its cell, of the choice.
SELECTION = "selection"
#: The keys of the cells: candidates of a graph, votes of few nodes, the test; and on graphs of
#: unseen kinds rivals, as the study ``tables`` trains them, and arcs made two-way.
CANDIDATES, FEW, TEST, TWO_WAY = "candidates", "few", "test", "two-way"
RIVALS = ("boosting", "gcn")
#: Every graph of the test: those of the paper by their names, tables with a mark; and with another
#: mark -> name graphs of kinds that are not in the collection.
TESTED = (*PAPER, *(f"table-{name}" for name in TABLES))
TESTED_UNSEEN = {f"unseen-{name}": name for name in UNSEEN}
#: The portfolios as tables name them.
NAMED = {"default": "portfolio", "best": "large portfolio"}
SMALL, LARGE = NAMED.values()
#: The title of the smaller portfolio on the same graph with every arc made two-way.
BOTH_WAYS = "portfolio, two-way"
#: The way to join members by which portfolios are compared, and the one that takes one member.
JOINED, BEST_MEMBER = "votes on draws", "best by validation"
SAYS = CAPTIONS["portfolio"]


def read_tests(folder: Path) -> dict[str, Values]:
    """Graph or table -> the test of the portfolios on it."""
    names = {f"test-{name}": name for name in (*TESTED, *TESTED_UNSEEN)}
    records = read_records(folder, list(names))
    return {names[key]: record[TEST] for key, record in records.items()}


def read_unseen(folder: Path) -> dict[str, dict[str, list[float]]]:
    """Graph of an unseen kind -> title -> test scores: rivals, one model, portfolios."""
    grid: dict[str, dict[str, list[float]]] = {}
    for key, record in read_records(folder, [f"test-{name}" for name in TESTED_UNSEEN]).items():
        row = {LABELS[rival]: record[rival].scores("test") for rival in RIVALS}
        row |= compared(record[TEST])
        if TWO_WAY in record:
            both = record[TWO_WAY]["portfolios"]["default"]["joined"][JOINED]
            row[BOTH_WAYS] = both.scores("test")
        grid[TESTED_UNSEEN[key.removeprefix("test-")]] = row
    return grid


def compared(cell: Values, recipe: Mapping[str, Any] | None = None) -> dict[str, list[float]]:
    """What is compared on a graph, by its title: test scores.

    Args:
        cell: of the test.
        recipe: what the graph's own recipe reaches, by the study ``ensembles``.
    """
    row = {"default": cell["default"]["test"]}
    for key, portfolio in cell["portfolios"].items():
        row[f"{NAMED[key]}, best member"] = portfolio["joined"][BEST_MEMBER].scores("test")
        row[NAMED[key]] = portfolio["joined"][JOINED].scores("test")
    if recipe is not None:
        row["recipe"] = recipe[ONE]["average"]["test"]
        row["recipe, average of seeds"] = recipe[SEEDS]["average"]["test"]
        row["recipe, votes on seeds"] = recipe[SEEDS][JOINED]["test"]
    return row


def in_use(cell: Values, recipe: Mapping[str, Any] | None = None) -> dict[str, list[float]]:
    """What presets are as they are in use, without and with the shift, by title: test scores."""
    row = {"default": cell["default"]["test"], "default, shifted": cell["default_shifted"]["test"]}
    ways = {NAMED[key]: portfolio["joined"] for key, portfolio in cell["portfolios"].items()}
    if recipe is not None:
        ways["recipe"] = recipe[ONE]
    for title, joined in ways.items():
        row[title] = joined[IN_USE]["test"]
        row[f"{title}, shifted"] = joined[SHIFTED]["test"]
    return row


def tables(folder: Path) -> list[ResultTable]:
    """Nothing before the choice is made."""
    records = read_records(folder, [SELECTION])
    if not records:
        return []
    selection = records[SELECTION][SELECTION]
    candidates = {n: r[CANDIDATES] for n, r in read_records(folder, list(KINDS)).items()}
    tests, recipes = read_tests(folder), read_ensembles(folder.parent / "ensembles")
    graphs = {name: cell for name, cell in tests.items() if name in PAPER}
    shown = {name: compared(cell, recipes.get(name)) for name, cell in graphs.items()}
    shifted = {
        name: in_use(cell, recipes.get(name))
        for name, cell in graphs.items()
        if "default_shifted" in cell
    }
    unseen = read_unseen(folder)
    between = [(SMALL, "default"), (LARGE, "default"), (LARGE, SMALL)]
    votes = "recipe, votes on seeds"
    of_recipes = [
        (votes, "recipe"),
        (votes, "recipe, average of seeds"),
        (LARGE, "recipe"),
        (LARGE, votes),
    ]
    rivals = [(SMALL, LABELS[rival]) for rival in RIVALS]
    every = [
        _members(selection),
        _scores(selection, candidates),
        _strategies(selection),
        _few(records[SELECTION]),
        _accuracies("test", shown),
        pairs_table("differences", SAYS["differences"], shown, [*between, *of_recipes]),
        _families(graphs),
        _accuracies("shifted", shifted),
        _in_use(shifted, [*between, (LARGE, "recipe")]),
        _own(tests, between[:2]),
        _unseen(unseen, tests),
        pairs_table(
            "unseen_differences",
            SAYS["unseen_differences"],
            unseen,
            [*between[:2], *rivals, (SMALL, BOTH_WAYS)],
        ),
    ]
    return [table for table in every if table.rows]


def differing(config: Config) -> str:
    """Where a configuration differs from the defaults of LON-GNN, as one line of text.

    >>> differing(Config.from_dict({"degree": 4, "lr_basis": 0.01}))
    'degree 4, lr_basis 0.01'
    """
    usual = {k: v for k, v in Config().to_dict().items() if k not in AFTERWARDS}
    changed = {k: v for k, v in config.to_dict().items() if k in usual and v != usual[k]}
    shown = {k: f"{v:g}" if isinstance(v, float) else str(v) for k, v in changed.items()}
    return ", ".join(f"{key} {value}" for key, value in shown.items())


def _members(selection: Values) -> ResultTable:
    """Each member, what it is, and how often it is chosen with something left out."""
    rows = []
    for key, portfolio in selection["portfolios"].items():
        left = (portfolio["without_kind"], portfolio["without_graph"])
        for name in portfolio["members"]:
            again = [f"{sum(name in of for of in c.values())} of {len(c)}" for c in left]
            config = member_config(selection, name)
            text = differing(config) or "nothing"
            rows.append([name, NAMED[key], config.model, *again, text])
    columns = ["member", "of", "model", "without a kind", "without a graph", "differs"]
    return ResultTable("members", SAYS["members"], columns, rows)


def _scores(selection: Values, candidates: Mapping[str, Values]) -> ResultTable:
    """What it costs that a graph, or its kind, took no part in the choice."""
    ways = {
        "inside": "with the graph",
        "outside_graph": "without it",
        "outside_kind": "without its kind",
    }
    rows = []
    for name, cell in candidates.items():
        shown = [f"{percent(cell['holdout'][cell['usual']]):.1f}"]
        for portfolio in selection["portfolios"].values():
            scores = [portfolio[where].get(name) for where in ways]
            shown += ["" if of is None else f"{percent(of[JOINED]):.1f}" for of in scores]
        oracle = f"{100 * selection['oracle'][name]:.1f}"
        rows.append([name, KINDS[name], metric_words(cell["metric"]), *shown, oracle])
    titles = [f"{NAMED[key]} chosen {w}" for key in selection["portfolios"] for w in ways.values()]
    columns = ["graph", "kind", "score", "default", *titles, "oracle"]
    return ResultTable("scores", SAYS["scores"], columns, rows)


def _titles(grid: Mapping[str, Iterable[str]]) -> list[str]:
    """Everything that is compared on some graph; what a recipe reaches may be missing."""
    return list(dict.fromkeys(title for row in grid.values() for title in row))


def _accuracies(name: str, grid: Grid) -> ResultTable:
    titles = _titles(grid)
    rows = [[g, *means_in_bold(row, titles), *printed_cells(g)] for g, row in grid.items()]
    columns = ["graph", *titles, "paper's LON-GNN", "best printed"]
    return ResultTable(name, SAYS[name], columns, rows)


def _in_use(grid: Grid, pairs: Sequence[tuple[str, str]]) -> ResultTable:
    """What the shift gains, and paired differences between presets as they are in use."""
    plain = [title for title in _titles(grid) if not title.endswith(", shifted")]
    rows = []
    for name, row in grid.items():
        gains = [paired(row, f"{title}, shifted", title, 1) for title in plain]
        between = [paired(row, f"{a}, shifted", f"{b}, shifted", 1) for a, b in pairs]
        rows.append([name, *gains, *between])
    columns = [f"{title}, shifted minus as trained" for title in plain]
    columns += [f"{one} minus {other}" for one, other in pairs]
    return ResultTable("in_use", SAYS["in_use"], ["graph", *columns], rows)


def _families(tests: Mapping[str, Values]) -> ResultTable:
    """Which family wins within the large portfolio."""
    best = {name: cell["portfolios"]["best"] for name, cell in tests.items()}
    models = _titles({name: portfolio["families"] for name, portfolio in best.items()})
    rows = []
    for name, portfolio in best.items():
        shown = []
        for model in models:
            of = portfolio["families"].get(model)
            both = [percent(of[key]["test"]) for key in ("equal", "whole")] if of else []
            shown.append(f"{both[0]:.2f} / {both[1]:.2f} ({of['members']})" if of else "")
        rows.append([name, *shown, f"{percent(portfolio['joined'][JOINED]['test']):.2f}"])
    return ResultTable("families", SAYS["families"], ["graph", *models, "all families"], rows)


def _own(tests: Mapping[str, Values], pairs: Sequence[tuple[str, str]]) -> ResultTable:
    """Test scores on tables that no choice has seen."""
    cells = {n.removeprefix("table-"): cell for n, cell in tests.items() if n.startswith("table-")}
    grid = {name: compared(cell) for name, cell in cells.items()}
    rows = []
    for name, row in grid.items():
        means = [f"{percent(scores):.1f}" for scores in row.values()]
        gains = [paired(row, *two, 1) for two in pairs]
        rows.append([name, metric_words(cells[name]["metric"]), *means, *gains])
    columns = [*_titles(grid), *(f"{one} minus {other}" for one, other in pairs)]
    return ResultTable("own", SAYS["own"], ["table", "score", *columns], rows)


def _strategies(selection: Values) -> ResultTable:
    """The mean difference of each way to join members to the best single one by validation."""
    rows = []
    for key, portfolio in selection["portfolios"].items():
        for strategy in next(iter(portfolio["outside_kind"].values())):
            gains = {
                name: percent(scores[strategy]) - percent(scores[BEST_MEMBER])
                for name, scores in portfolio["outside_kind"].items()
            }
            values, worst = [*gains.values()], min(gains, key=lambda name: gains[name])
            counts = [sum(value > 0.5 for value in values), sum(value < -0.5 for value in values)]
            numbers = [f"{sum(values) / len(values):+.2f}", *map(str, counts)]
            rows.append([strategy, NAMED[key], *numbers, f"{worst} {gains[worst]:+.1f}"])
    columns = ["joined by", "of", "mean", "better", "worse", "worst graph"]
    return ResultTable("strategies", SAYS["strategies"], columns, rows)


def _few(record: Record) -> ResultTable:
    """What a prior gained over none, by the number of validation nodes: history."""
    rows, priors = [], []
    for nodes, by_prior in record[FEW]["scores"].items() if FEW in record else ():
        priors = [prior for prior in by_prior if prior != "0"]
        gains = [gains_of_prior(by_prior, prior) for prior in priors]
        rows.append([nodes, str(len(gains[0])), *(f"{sum(g) / len(g):+.2f}" for g in gains)])
    columns = ["validation nodes", "graphs", *(f"counts as {prior}" for prior in priors)]
    return ResultTable("few", SAYS["few"], columns, rows)


def gains_of_prior(
    by_prior: Mapping[str, Mapping[str, float]],  # prior -> graph -> score
    prior: str,
) -> list[float]:
    """Over no prior, in points, graph by graph; where values are predicted it can be any, so a
    graph counts with at most ten.
    """
    pairs = [(by_prior[prior][graph], by_prior["0"][graph]) for graph in by_prior[prior]]
    return [100 * float(np.clip(scored - none, -0.1, 0.1)) for scored, none in pairs]


def _unseen(grid: Grid, tests: Mapping[str, Values]) -> ResultTable:
    titles = [*(LABELS[rival] for rival in RIVALS), "default", SMALL, LARGE]
    rows = []
    for name, row in grid.items():
        metric = metric_words(tests[f"unseen-{name}"]["metric"])
        rows.append([name, UNSEEN[name], metric, *means_in_bold(row, titles, 1)])
    return ResultTable("unseen", SAYS["unseen"], ["graph", "kind", "score", *titles], rows)


def facts(folder: Path) -> dict[str, Any]:
    """The numbers of the summary, of the README and of the page that helps to choose."""
    tests = read_tests(folder)
    recipes = read_ensembles(folder.parent / "ensembles")
    shown = {graph: in_use(tests[graph]) for graph in TEN}
    of_small = {graph: _gain_in_use(tests[graph]) for graph in TEN}
    rest = [value for graph, value in of_small.items() if graph != "squirrel"]
    shifts = [gain(row[f"{t}, shifted"], row[t]) for row in shown.values() for t in (SMALL, LARGE)]
    tables = {n: c for n, c in tests.items() if n.startswith("table-")}
    on_tables = [gain(row[SMALL], row["default"]) for row in map(compared, tables.values())]
    unseen = read_unseen(folder)
    versus = {
        title: [gain(row[SMALL], row[title]) for row in unseen.values()]
        for title in ("default", *(LABELS[rival] for rival in RIVALS))
    }
    every = [_gain_in_use(cell) for name, cell in tests.items() if name != LEGACY]
    seeds = [
        gain(row[SEEDS][JOINED]["test"], row[ONE]["average"]["test"]) for row in recipes.values()
    ]
    textures = tests["unseen-textures"]["portfolios"]["default"]
    alone = [percent(member["test"]) for member in textures["alone"].values()]
    average, votes = (textures["joined"][way]["test"] for way in ("average", JOINED))
    return {
        "better": sum(value > 0 for value in of_small.values()),
        "squirrel": of_small["squirrel"],
        "least": min(rest),
        "most": max(rest),
        "gain": max(of_small.values()),
        "shift": max(shifts),
        **_against_marks(folder, shown),
        "tables": sum(value >= 0.5 for value in on_tables),
        "best_table": max(on_tables),
        "worst_table": -min(on_tables),
        **_against_families(tables),
        "unseen": max(versus["default"]),
        "unseen_lost": -min(versus["default"]),
        "boosting": [min(versus[LABELS["boosting"]]), max(versus[LABELS["boosting"]])],
        "gcn": [min(versus[LABELS["gcn"]]), max(versus[LABELS["gcn"]])],
        "arcs": {
            g: np.mean(points(row[SMALL], row[BOTH_WAYS]))
            for g, row in unseen.items()
            if BOTH_WAYS in row
        },
        "alone": [min(alone), max(alone)],
        "average": gain(votes, average),
        "seeds": max(seeds),
        "everywhere": len(every),
        "gain_everywhere": max(every),
        "lost_everywhere": -min(every),
        **_of_the_choice(folder),
    }


def _gain_in_use(cell: Values) -> float:
    """The portfolio over one model, both as presets give them."""
    if "default_shifted" not in cell:  # on tables nothing was shifted
        return gain(compared(cell)[SMALL], cell["default"]["test"])
    row = in_use(cell)
    return gain(row[f"{SMALL}, shifted"], row["default, shifted"])


def _against_marks(folder: Path, shown: Grid) -> dict[str, Any]:
    """Where the portfolios are below the paper's LON-GNN, and below the best tuned model."""
    tuned = {
        graph: max(
            percent(cell["test"]) for cell in map(record.__getitem__, record) if cell.get("search")
        )
        for graph, record in read_records(folder.parent / "accuracy", TEN).items()
    }
    below: dict[str, dict[str, float]] = {}
    for name, marks in (("paper", ACCURACY["lon"]), ("tuned", tuned)):
        for title in (SMALL, LARGE):
            for end in ("", ", shifted"):
                gaps = {g: marks[g] - percent(row[title + end]) for g, row in shown.items()}
                below[f"{name}, {title}{end}"] = {g: v for g, v in gaps.items() if v > 0.005}
    return {
        "below": {key: numbered(gaps, 2) for key, gaps in below.items()},
        "below_on": {key: [*gaps] for key, gaps in below.items()},
        "reached": {key: len(shown) - len(gaps) for key, gaps in below.items()},
    }


def _against_families(tables: Mapping[str, Values]) -> dict[str, Any]:
    """The large portfolio on tables: against one model, and against its best family."""
    best = {
        name.removeprefix("table-"): cell["portfolios"]["best"] for name, cell in tables.items()
    }
    joined = {name: of["joined"][JOINED]["test"] for name, of in best.items()}
    short = {
        name: max(percent(family["whole"]["test"]) for family in of["families"].values())
        - percent(joined[name])
        for name, of in best.items()
    }
    far = {name: gap for name, gap in short.items() if gap > 0.3}
    return {
        "near_family": len(short) - len(far),
        "families": len(short),
        "below_family": far,
        "wine": gain(tables["table-wine"]["default"]["test"], joined["wine"]),
    }


def _of_the_choice(folder: Path) -> dict[str, Any]:
    """What the choice itself cost and gained, on the selection holdout."""
    selection = read_records(folder, [SELECTION])[SELECTION][SELECTION]
    few = read_records(folder, [SELECTION])[SELECTION][FEW]["scores"]
    small = selection["portfolios"]["default"]
    plan = read_records(folder, [SELECTION])[SELECTION].plan
    unseen = small["outside_kind"]
    graphs = read_records(folder, list(KINDS))
    over = {
        way: [gain(of[way], of[BEST_MEMBER]) for of in unseen.values()]
        for way in ("average", JOINED)
    }
    cost = {
        where: np.mean(
            [gain(small["inside"][g][JOINED], of[JOINED]) for g, of in small[where].items()]
        )
        for where in ("outside_graph", "outside_kind")
    }
    return {
        "cost": cost,
        "joined": {way: np.mean(of) for way, of in over.items()},
        "joined_better": sum(value > 0.5 for value in over[JOINED]),
        "graphs": len(unseen),
        "kinds": len({*KINDS.values()}),
        "candidates": max(len(record[CANDIDATES]["holdout"]) for record in graphs.values()),
        "splits": word(plan["candidates"]["splits"]).capitalize(),
        "epochs": plan["candidates"]["epochs"],
        "small": len(small["members"]),
        "draws": DRAWS,
        "prior": PRIOR,
        "few": {int(n): float(np.mean(gains_of_prior(of, str(PRIOR)))) for n, of in few.items()},
    }


_HEAD = """\
# Portfolios: configurations that are trained side by side. One table per member, in the order of
# the choice. From the records in results, see docs/results/portfolio.md.
"""


def files(root: Path) -> dict[Path, str]:
    """The portfolios of the package: one table per member; nothing before the choice is made."""
    records = read_records(root / "results" / "portfolio", [SELECTION])
    if not records:
        return {}
    selection = records[SELECTION][SELECTION]
    blocks = [_HEAD]
    for key, portfolio in selection["portfolios"].items():
        for member in portfolio["members"]:
            lines = member_config(selection, member).to_toml(leave_out=FREE)
            blocks.append("\n".join([f"[{key}.{toml_value(member)}]", *lines]) + "\n")
    return {root / "longnn" / "training" / "portfolio.toml": "\n".join(blocks)}


def member_config(selection: Mapping[str, Any], name: str) -> Config:
    """The configuration of a member, of the record of the choice: recipes may change after it."""
    return as_trained(config_of(selection["configs"][name]))
