"""Own tables with nothing set: is LON-GNN below what the columns alone give?

History: two stories (house prices, frauds) and ten held-back tables, drawn from fixed seeds, on
five stratified splits each. The defaults for own data were chosen on other tables, by validation.
Rivals: a constant, ridge or logistic regression, gradient boosting, our MLP and our GCN with the
same settings. The records stay, the code that drew and trained went: the studies ``practice`` and
``strangers`` ask the same of tables that people collected.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from lab.records import Values
from lab.studies._engine import read_records
from lab.studies._views import (
    CAPTIONS,
    ResultTable,
    best_in_bold,
    gains,
    means,
    metric_words,
    numbered,
    percent,
    points,
    signed_interval,
)
from longnn.config import Config
from longnn.metrics import summarize
from longnn.report._style import GREY, NAVY, ORANGE, in_style, new_figure

TITLE = "Own tables with nothing set, against what the columns alone give (history)"
ORDER = 105
SAYS = CAPTIONS["tables"]

STORIES = ("houses", "fraud")
HELD_BACK = (
    *("wine", "digits", "heat", "shells", "circuits"),
    *("trade", "clubs", "patients", "wages", "papers"),
)
TABLES = (*STORIES, *HELD_BACK)
LABELS = {
    "lon": "LON-GNN",
    "constant": "constant",
    "linear": "linear",
    "mlp": "MLP",
    "boosting": "boosting",
    "histogram-boosting": "histogram boosting",
    "gcn": "GCN",
}
#: What a default must not be below: rivals that know the columns alone.
BASELINES = ("constant", "linear", "mlp")


def read(folder: Path) -> dict[str, dict[str, Values]]:
    """Table -> model -> its cell, of the tables that have them all."""
    records = read_records(folder, TABLES)
    return {
        name: {model: record[model] for model in LABELS}
        for name, record in records.items()
        if all(model in record for model in LABELS)
    }


def best_of(models: Mapping[str, Mapping[str, Any]], names: tuple[str, ...]) -> str:
    """The model of the highest mean test score: a choice that favours the rivals."""
    return max(names, key=lambda m: percent(models[m]["test"]))


def tables(folder: Path) -> list[ResultTable]:
    """Scores of all models, differences of LON-GNN to the rivals, and the settings."""
    usual = Config().to_dict()
    scores, differences, settings = [], [], []
    for name, models in read(folder).items():
        lon = models["lon"]
        means = best_in_bold([percent(cell.scores("test")) for cell in models.values()])
        scores.append([name, metric_words(lon["metric"]), *means])

        best = best_of(models, BASELINES)
        rivals = (best, "linear", "mlp", best_of(models, ("boosting", "histogram-boosting")))
        tests = [(lon.scores("test"), models[rival].scores("test")) for rival in rivals]
        differences.append([name, LABELS[best], *(signed_interval(points(*t)) for t in tests)])

        config = {k: v for k, v in lon["config"].items() if k != "device"}
        chosen = [f"{k} {v}" for k, v in config.items() if v != usual.get(k)]
        epochs = lon["best_epochs"]
        kept = f"{min(epochs)} to {max(epochs)}"
        settings.append([name, ", ".join(chosen) or "as elsewhere", kept])
    to = ["to it", "to linear", "to MLP", "to the better boosting"]
    return [
        ResultTable("scores", SAYS["scores"], ["table", "score", *LABELS.values()], scores),
        ResultTable(
            "differences", SAYS["differences"], ["table", "best baseline", *to], differences
        ),
        ResultTable("settings", SAYS["settings"], ["table", "filled in", "kept epochs"], settings),
    ]


def figures(folder: Path) -> dict[str, Figure]:
    """How far LON-GNN is above the best baseline and above boosting on every table."""
    results = read(folder)
    return {"differences": draw_differences(results)} if results else {}


@in_style
def draw_differences(results: Mapping[str, Mapping[str, Values]]) -> Figure:
    """Paired differences with their intervals, one line per table."""
    drawn, ((axes,),) = new_figure(
        "LON-GNN with nothing set, minus a rival on the same splits",
        height=0.9 + 0.3 * len(results),
    )
    axes.axvline(0, color=GREY, lw=0.8)
    for y, models in enumerate(reversed(list(results.values()))):
        rivals = ((best_of(models, BASELINES), ORANGE, 0.12), ("histogram-boosting", NAVY, -0.12))
        for rival, colour, shift in rivals:
            s = summarize(points(models["lon"]["test"], models[rival]["test"]))
            axes.plot([s["low"], s["high"]], [y + shift] * 2, color=colour, lw=1.4)
            axes.plot(s["mean"], y + shift, "o", color=colour, ms=4)
    axes.plot([], [], "o-", color=ORANGE, ms=4, label="best of constant, linear, MLP")
    axes.plot([], [], "o-", color=NAVY, ms=4, label=LABELS["histogram-boosting"])
    axes.legend(fontsize=7, loc="center right")
    axes.set_yticks(range(len(results)))
    axes.set_yticklabels(list(results)[::-1], fontsize=8)
    axes.set_xlabel("test score, points: mean and 95 % interval over the splits", fontsize=8)
    return drawn


def facts(folder: Path) -> dict[str, Any]:
    """The scores and differences of the summary; held-back tables are those that are no story."""
    grid = {
        name: {model: cell.scores("test") for model, cell in models.items()}
        for name, models in read(folder).items()
    }
    held_back = {name: grid[name] for name in HELD_BACK}
    scores = means(held_back)
    best = {name: max(row[model] for model in BASELINES) for name, row in scores.items()}
    below = {n: best[n] - row["lon"] for n, row in scores.items() if row["lon"] < best[n]}
    houses = grid["houses"]
    boosting = max(("boosting", "histogram-boosting"), key=lambda model: percent(houses[model]))
    (splits,) = {len(row["lon"]) for row in grid.values()}
    return {
        "splits": splits,
        "score": means(grid),
        "over": {model: gains(grid, model) for model in ("linear", "mlp")},
        "houses_boosting": percent(houses[boosting]),
        "houses_behind": sum(d > 0 for d in points(houses["lon"], houses[boosting])),
        "held_back": len(held_back),
        "at_or_above": len(held_back) - len(below),
        "below": numbered(below, plain=True),
    }
