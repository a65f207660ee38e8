"""Table 3: every model on the ten graphs, one protocol and one search budget for all.

Baselines are in the form of their own papers. LON-GNN has five rows: one whose form is searched
too, the same with the forms that came later, the first with more trials, the paper's form, and the
untuned default. Both versions of Cornell are there, by name.
"""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lab.records import ConfigTable, Record
from lab.studies._engine import Cells, Context, read_records
from lab.studies._printed import ACCURACY, PAPER, QUICK_DATASETS, TEN
from lab.studies._search import read_rows, row_cells
from lab.studies._views import (
    CAPTIONS,
    ResultTable,
    average_ranks,
    dot_plot,
    gain,
    is_clear,
    listed,
    minus_base,
    models_table,
    percent,
    pivot,
    points,
    word,
)
from longnn.metrics import summarize

TITLE = "Table 3: accuracy of every model, one protocol, one search budget"
ORDER = 20
SAYS = CAPTIONS["accuracy"]

ROWS = read_rows("accuracy")
LABELS = {key: row.label for key, row in ROWS.items()}
#: The rows of LON-GNN that were searched for.
OWN = tuple(key for key, row in ROWS.items() if row.model == "lon" and row.tuned)
MODELS = {key: row.model for key, row in ROWS.items()}
#: One row per model, all with the same budget of search.
EQUAL = tuple(key for key, row in ROWS.items() if key == "lon" or row.model != "lon")


def cells(context: Context) -> Cells:
    """Search, confirm and report every model on every graph."""
    return row_cells(context, ROWS, PAPER)


def read(folder: Path) -> dict[str, Record]:
    """Graph -> its record, of any study with the protocol of this one."""
    return read_records(folder, (*PAPER, *QUICK_DATASETS))


def tables(folder: Path) -> list[ResultTable]:
    """Accuracies, paired differences, how the choices held up, and the untuned defaults."""
    records = read(folder)
    grid = pivot(records)
    return [
        models_table("accuracy", SAYS["accuracy"], grid, LABELS, MODELS),
        minus_base("differences", SAYS["differences"], grid, LABELS, "lon"),
        _selection(records),
        _untuned(records),
    ]


def _form(config: ConfigTable) -> str:
    """Where the filter acts, after what, and how many there are."""
    transform = "" if config.get("transform", "mlp") == "mlp" else f", {config['transform']}"
    shared = ", one filter" if config.get("shared") else ""
    loops = ", self loops" if config.get("self_loops") == "add" else ""
    return str(config["placement"]) + transform + shared + loops


def _selection(records: Mapping[str, Record]) -> ResultTable:
    rows = []
    for graph, record in records.items():
        for key in OWN:
            search = record[key].get("search") if key in record else None
            if search is None:
                continue
            winner = search["finalists"][search["chosen"]]
            shown = [100 * winner["search"], percent(winner.scores("confirmed"))]
            shown += [percent(record[key].scores(nodes)) for nodes in ("val", "test")]
            form, seconds = _form(record[key]["config"]), record[key]["made"]["seconds"]
            numbers = [f"{value:.2f}" for value in shown]
            rows.append([f"{graph}, {LABELS[key]}", *numbers, form, f"{seconds:.0f}"])
    columns = ["search", "confirmed", "reported val.", "test", "form", "seconds"]
    return ResultTable("selection", SAYS["selection"], ["graph, model", *columns], rows)


def _untuned(records: Mapping[str, Record]) -> ResultTable:
    rows = []
    for graph in TEN:
        if graph in records and "lon-default" in records[graph]:
            cell, printed = records[graph]["lon-default"], ACCURACY["lon"][graph]
            s = summarize([100 * v for v in cell.scores("test")])
            span = f"{s['low']:.2f} to {s['high']:.2f}"
            shown = [f"{s['mean']:.2f}", span, f"{percent(cell.scores('val')):.2f}"]
            rows.append([graph, *shown, f"{printed:.2f}", f"{s['mean'] - printed:+.2f}"])
    columns = ["graph", "test", "95 % interval", "validation", "paper's LON-GNN", "difference"]
    return ResultTable("untuned", SAYS["untuned"], columns, rows)


def figures(folder: Path) -> dict[str, Figure]:
    """Mean and interval of every model on every graph."""
    grid = pivot(read(folder))
    return {"accuracy": dot_plot(grid, LABELS, OWN)} if grid else {}


def facts(folder: Path) -> dict[str, Any]:
    """The numbers and names of the summary."""
    grid = pivot(read(folder))
    ranks = average_ranks(grid, MODELS)
    order = sorted((key for key in EQUAL if key in ranks), key=lambda key: ranks[key])
    five = order[:5]
    pairs = [
        points(row[one], row[other])
        for row in grid.values()
        for one, other in itertools.combinations(five, 2)
    ]
    first: dict[str, list[str]] = {}
    for graph in TEN:
        row = grid[graph]
        first.setdefault(max(row, key=lambda key: percent(row[key])), []).append(graph)
    others = [f"{LABELS[k]} on {listed(g)}" for k, g in first.items() if k not in OWN]
    forms = {g: points(row["lon-forms"], row["lon"]) for g, row in grid.items()}
    clear = [graph for graph, differences in forms.items() if is_clear(differences)]
    better = [graph for graph in clear if np.mean(forms[graph]) > 0]
    searched = [
        cell["search"]
        for record in read(folder).values()
        for cell in map(record.__getitem__, record)
        if cell.get("search")
    ]
    best = [search["finalists"][0] for search in searched]
    searches = pivot(read_records(folder.parent / "search", TEN))
    return {
        "plan": read(folder)["cora"].plan,
        "searches": len(searched),
        "luck": 100 * np.mean([of["search"] - np.mean(of["confirmed"]) for of in best]),
        "kept": sum(search["chosen"] == 0 for search in searched),
        "forms": {graph: np.mean(differences) for graph, differences in forms.items()},
        "gcn": percent(grid["chameleon"]["gcn"]) - ACCURACY["gcn"]["chameleon"],
        "gcn_printed": ACCURACY["gcn"]["chameleon"],
        "untuned": max(ACCURACY["lon"][g] - percent(grid[g]["lon-default"]) for g in TEN),
        "trials": {key: read(folder)["cora"][key]["search"]["trials"] for key in OWN},
        "pairs": len(pairs),
        "within": sum(not is_clear(pair) for pair in pairs),
        "five": listed((LABELS[key] for key in five), plain=True),
        "all_forms": ranks["lon-forms"],
        "rank_of_all_forms": 1 + sum(ranks[key] < ranks["lon-forms"] for key in order),
        "ahead": " and ".join(f"{LABELS[key]} ({ranks[key]:.1f})" for key in order[:2]),
        "four_forms": ranks["lon"],
        "rank_of_four_forms": 1 + order.index("lon"),
        "first_long": listed(first["lon-full"]),
        "first_forms": listed(first["lon-forms"]),
        "first_others": ", ".join(others),
        "better": listed(better),
        "worse": listed(graph for graph in clear if graph not in better),
        "unclear": word(len(forms) - len(clear)),
        "longer": np.mean([gain(searches[g]["winner"], grid[g]["lon-paper"]) for g in TEN]),
    }
