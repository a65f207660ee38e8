"""How the defaults for own tables were chosen: candidates on development tables.

Ten tables, three splits of each: 60 % of the nodes train, 20 % stop the training, and the scores
are of the other 20 %, the selection holdout. There is no test set. The study ``tables`` tests the
choice, on other tables.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lab.records import Record
from lab.studies._engine import Cell, Cells, Context, read_records
from lab.studies._invented import DEVELOPMENT
from lab.studies._training import fit_all, headline_scores, make_splits, predict_by_columns
from lab.studies._views import (
    ResultTable,
    means,
    means_in_bold,
    metric_words,
    numbered,
    points,
    signed_interval,
    verdict,
    word,
)
from longnn.config import Config
from longnn.data import NodeDataset
from longnn.metrics import headline
from longnn.report import GREY, NAVY, ORANGE, in_style, new_figure
from longnn.training import complete, data_defaults

TITLE = "How the defaults for own tables were chosen, on development tables (not in the paper)"
ORDER = 104

#: Splits, with the seeds from ``first`` on.
FULL = {"splits": 3, "epochs": 500, "patience": 100, "first": 100}
QUICK = {"splits": 2, "epochs": 3, "patience": 3, "first": 100}
#: The key of the one cell of a record.
KEY = "candidates"
#: A difference of fewer points is called a tie.
TIE = 0.5
#: The preset with one choice undone, by label.
CHANGES = {
    "no-penalty": "no degree penalty",
    "triple-penalty": "three times the degree penalty",
    "half-dropout": "dropout 0.5 of columns and of hidden units",
    "usual-dropout": "dropouts of the usual defaults",
    "output": "filter on the scores",
    "other-sharing": "one filter for all units (regression), one per unit (classes)",
    "slow-filter": "filter's learning rate 0.002",
    "no-dropout": "dropout 0 of hidden units",
    "some-dropout": "dropout 0.2 of hidden units",
    "other-monitor": "stopped by the score (classes)",
}
#: Models of scikit-learn, which see the columns alone.
RIVALS = {"linear": "linear", "histogram-boosting": "histogram boosting"}
LABELS = {"preset": "preset", "defaults": "usual defaults", **CHANGES, "mlp": "MLP", **RIVALS}
#: The columns of the first table.
REFERENCES = ("preset", "defaults", "mlp", "linear", "histogram-boosting")
TICKS = (-50, -20, -10, -5, -2, -1, 0, 1, 2, 5)


def candidates(dataset: NodeDataset, given: Mapping[str, Any]) -> dict[str, Config]:
    """The configurations to train on a table, by name; ``given`` keys are shared by all of them."""

    def filled(**keys: Any) -> Config:
        return complete({"preset": "fast", **given, **keys}, dataset)

    chosen, usual = filled().to_dict(), Config().to_dict()
    dropouts = ("input_dropout", "dropout", "filter_dropout")
    changes: dict[str, dict[str, Any]] = {
        "no-penalty": {"degree_penalty": 0.0},
        "triple-penalty": {"degree_penalty": 3 * chosen["degree_penalty"]},
        "half-dropout": {"input_dropout": 0.5, "dropout": 0.5},
        "usual-dropout": {key: usual[key] for key in dropouts},
        "output": {"placement": "output"},
        "other-sharing": {"shared": not chosen["shared"]},
        "slow-filter": {"lr_coefficients": 0.002},
        "no-dropout": {"dropout": 0.0},
        "some-dropout": {"dropout": 0.2},
    }
    if "monitor" in data_defaults(dataset):  # for regression, loss and score are the same choice
        changes["other-monitor"] = {"monitor": "score"}
    return {
        "preset": filled(),
        "defaults": Config.from_dict(given),
        **{name: filled(**keys) for name, keys in changes.items()},
        "mlp": filled(model="mlp"),
    }


def cells(context: Context) -> Cells:
    """All candidates on all splits of every table; one record per table."""
    plan = QUICK if context.quick else FULL
    for name in context.choose("datasets", ["diabetes"] if context.quick else list(DEVELOPMENT)):
        yield Cell(name, plan, KEY, partial(_compute, name, plan), device="cpu")


def _compute(name: str, plan: Mapping[str, int]) -> dict[str, Any]:
    """Scores of every candidate by split: on the nodes that stopped the training (``stop``), and on
    the selection holdout; and where a configuration differs from the usual defaults.
    """
    dataset = DEVELOPMENT[name]()
    # A split's three parts are 60, 20 and 20 %; what it calls test is the selection holdout.
    splits = make_splits(dataset, "stratified", plan["splits"], plan["first"])
    given = {"device": "cpu", "epochs": plan["epochs"], "patience": plan["patience"]}
    configs = candidates(dataset, given)
    fitted = dict(zip(configs, fit_all(dataset, list(configs.values()), splits), strict=True))
    predicted = {name: [each.predicted for each in runs] for name, runs in fitted.items()}
    for rival in RIVALS:
        predicted[rival] = [predict_by_columns(rival, dataset, split) for split in splits]
    both = {n: headline_scores(dataset, predicted[n], splits) for n in LABELS if n in predicted}
    return {
        "fingerprint": dataset.fingerprint(),
        "metric": headline(dataset.data.y, dataset.task)[0],
        "stop": {name: stop for name, (stop, _) in both.items()},
        "holdout": {name: holdout for name, (_, holdout) in both.items()},
        "best_epochs": {n: [each.result.best_epoch for each in of] for n, of in fitted.items()},
        "configs": {name: _changed(config, given) for name, config in configs.items()},
    }


def _changed(config: Config, given: Mapping[str, Any]) -> dict[str, Any]:
    usual = Config(model=config.model).to_dict()
    return {k: v for k, v in config.to_dict().items() if k not in given and v != usual[k]}


def read(folder: Path) -> dict[str, Record]:
    """Table -> its record."""
    return read_records(folder, list(DEVELOPMENT))


def changes_of(records: Mapping[str, Any], candidate: str) -> dict[str, float]:
    """Table -> mean difference of a candidate to the preset in points, where it was trained."""
    scores = {name: record[KEY]["holdout"] for name, record in records.items()}
    return {
        name: float(np.mean(points(of[candidate], of["preset"])))
        for name, of in scores.items()
        if candidate in of
    }


def tables(folder: Path) -> list[ResultTable]:
    """Scores of the preset and its references, and what each change of the preset costs."""
    records = read(folder)
    return [_scores(records), _changes(records)]


def _scores(records: Mapping[str, Record]) -> ResultTable:
    rows = [
        [name, metric_words(cell["metric"]), *means_in_bold(cell["holdout"], REFERENCES, 1)]
        for name, cell in ((name, record[KEY]) for name, record in records.items())
    ]
    return ResultTable(
        "scores",
        "Mean score in % on the selection holdout over three splits; the best of each row in bold. "
        "LON-GNN with the preset and with the usual defaults, our MLP with the preset, and two "
        "models of scikit-learn.",
        ["table", "score", *(LABELS[candidate] for candidate in REFERENCES)],
        rows,
    )


def _changes(records: Mapping[str, Record]) -> ResultTable:
    rows = []
    for candidate in ("defaults", *CHANGES):
        changes = changes_of(records, candidate)
        better = sum(d > TIE for d in changes.values())
        worse = sum(d < -TIE for d in changes.values())
        each = [f"{changes[name]:+.1f}" if name in changes else "–" for name in records]
        summary = signed_interval(list(changes.values())) if changes else "–"
        rows.append([LABELS[candidate], summary, str(better), str(worse), *each])
    return ResultTable(
        "changes",
        "The preset with one choice undone, minus the preset: points on the selection holdout, "
        "mean over three splits. First the mean over the tables with its 95 % bootstrap interval, "
        f"and the number of tables where the change is better or worse by over {TIE} points.",
        ["instead of the preset", "mean", "better", "worse", *records],
        rows,
    )


def figures(folder: Path) -> dict[str, Figure]:
    """What each change of the preset costs or gains on every table."""
    records = read(folder)
    return {"changes": draw_changes(records)} if records else {}


@in_style
def draw_changes(records: Mapping[str, Record]) -> Figure:
    """One line per change, one dot per table, and the mean."""
    names = ["defaults", *CHANGES][::-1]
    drawn, ((axes,),) = new_figure(
        "The preset with one choice undone, minus the preset", height=1.0 + 0.3 * len(names)
    )
    axes.axvline(0, color=GREY, lw=0.8)
    for y, name in enumerate(names):
        found = list(changes_of(records, name).values())
        axes.plot(found, [y] * len(found), "o", color=NAVY, ms=4, alpha=0.6)
        if found:
            axes.plot(float(np.mean(found)), y, "|", color=ORANGE, ms=14, mew=2)
    axes.plot([], [], "o", color=NAVY, ms=4, alpha=0.6, label="a table")
    axes.plot([], [], "|", color=ORANGE, ms=10, mew=2, label="mean of the tables")
    axes.legend(fontsize=7, loc="lower right", bbox_to_anchor=(1, 1), ncol=2)
    axes.set_xscale("symlog", linthresh=2)
    axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.set_yticks(range(len(names)))
    axes.set_yticklabels([LABELS[name] for name in names], fontsize=8)
    axes.set_xlabel("holdout score, points (logarithmic beyond two)", fontsize=8)
    return drawn


def facts(folder: Path) -> dict[str, Any]:
    """What each change of the preset gains, in points, and scores in per cent."""
    records = read(folder)
    change = {name: changes_of(records, name) for name in ("defaults", *CHANGES)}
    better = {k: {t: v for t, v in of.items() if v > TIE} for k, of in change.items()}
    smooth = [-change["usual-dropout"][table] for table in ("house", "friedman", "neighbours")]
    plan = next(iter(records.values())).plan
    return {
        "tables": len(records),
        "change": change,
        "mean": {name: float(np.mean([*of.values()])) for name, of in change.items()},
        "most": {name: max(-value for value in of.values()) for name, of in change.items()},
        "worse": {k: sum(v < -TIE for v in of.values()) for k, of in change.items()},
        "better": {name: numbered(of, plain=True) for name, of in better.items()},
        "better_most": max(map(len, better.values())),
        "smooth": [min(smooth), max(smooth)],
        "verdict": {name: verdict([*of.values()]) for name, of in change.items()},
        "score": means({name: record[KEY]["holdout"] for name, record in records.items()}),
        "splits": word(plan["splits"]).capitalize(),
        "plan": plan,
    }
