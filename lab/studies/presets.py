"""How the defaults for own tables were chosen: candidates on development tables.

History: ten tables, three splits of each: 60 % of the nodes trained, 20 % stopped the training, and
the scores are of the other 20 %, the selection holdout. There was no test set: the study ``tables``
tests the choice, on other tables. The records stay; the code that trained went.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lab.records import Record
from lab.studies._engine import read_records
from lab.studies._printed import read_toml
from lab.studies._views import (
    CAPTIONS,
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
from longnn.report._style import GREY, NAVY, ORANGE, in_style, new_figure

TITLE = "How the defaults for own tables were chosen, on development tables (history)"
ORDER = 104

DEVELOPMENT = (
    *("house", "friedman", "neighbours", "diabetes", "fraud"),
    *("xor", "moons", "onehot", "heterophilic", "cancer"),
)
#: The key of the one cell of a record.
KEY = "candidates"
#: A difference of fewer points is called a tie.
TIE = 0.5
#: Labels: the preset with one choice undone, and the columns of the first table.
CHANGES, REFERENCES = read_toml("labels")["presets"].values()
TICKS = (-50, -20, -10, -5, -2, -1, 0, 1, 2, 5)


def changes_of(records: Mapping[str, Record], candidate: str) -> dict[str, float]:
    """Table -> mean difference of a candidate to the preset in points, where it was trained."""
    scores = {name: record[KEY]["holdout"] for name, record in records.items()}
    return {
        name: float(np.mean(points(of[candidate], of["preset"])))
        for name, of in scores.items()
        if candidate in of
    }


def tables(folder: Path) -> list[ResultTable]:
    """Scores of the preset and its references, and what each change of the preset costs."""
    records = read_records(folder, DEVELOPMENT)
    cells = {name: record[KEY] for name, record in records.items()}
    scores = [
        [name, metric_words(cell["metric"]), *means_in_bold(cell["holdout"], REFERENCES, 1)]
        for name, cell in cells.items()
    ]
    rows = []
    for candidate, label in CHANGES.items():
        changes = changes_of(records, candidate)
        better = sum(d > TIE for d in changes.values())
        worse = sum(d < -TIE for d in changes.values())
        each = [f"{changes[name]:+.1f}" if name in changes else "–" for name in records]
        rows.append([label, signed_interval([*changes.values()]), str(better), str(worse), *each])
    says, of = CAPTIONS["presets"], ["instead of the preset", "mean", "better", "worse", *records]
    return [
        ResultTable("scores", says["scores"], ["table", "score", *REFERENCES.values()], scores),
        ResultTable("changes", says["changes"], of, rows),
    ]


@in_style
def draw_changes(records: Mapping[str, Record]) -> Figure:
    """One line per change, one dot per table, and the mean."""
    drawn, ((axes,),) = new_figure(
        "The preset with one choice undone, minus the preset", height=1.0 + 0.3 * len(CHANGES)
    )
    axes.axvline(0, color=GREY, lw=0.8)
    for y, name in enumerate(reversed(CHANGES)):
        values = [*changes_of(records, name).values()]
        axes.plot(values, [y] * len(values), "o", color=NAVY, ms=4, alpha=0.6)
        axes.plot(float(np.mean(values)), y, "|", color=ORANGE, ms=14, mew=2)
    axes.plot([], [], "o", color=NAVY, ms=4, alpha=0.6, label="a table")
    axes.plot([], [], "|", color=ORANGE, ms=10, mew=2, label="mean of the tables")
    axes.legend(fontsize=7, loc="lower right", bbox_to_anchor=(1, 1), ncol=2)
    axes.set_xscale("symlog", linthresh=2)
    axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.set_yticks(range(len(CHANGES)))
    axes.set_yticklabels([*CHANGES.values()][::-1], fontsize=8)
    axes.set_xlabel("holdout score, points (logarithmic beyond two)", fontsize=8)
    return drawn


def figures(folder: Path) -> dict[str, Figure]:
    """What each change of the preset costs or gains on every table."""
    return {"changes": draw_changes(read_records(folder, DEVELOPMENT))}


def facts(folder: Path) -> dict[str, Any]:
    """What each change of the preset gains, in points, and scores in per cent."""
    records = read_records(folder, DEVELOPMENT)
    change = {name: changes_of(records, name) for name in CHANGES}
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
