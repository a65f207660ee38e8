"""Tables of the selection: against printed numbers, the first round, and the final."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lab.studies._core._printed import ACCURACY, BEST_ANYWHERE, best_of_paper
from lab.studies._core._protocol import ConfigTable
from lab.studies._core._scores import percent
from lab.studies._core._table import ResultTable
from lab.studies.accuracy import ROWS
from lab.studies.recipes._candidates import OTHERS, OWN_ROWS, RELATIVES, SLOWER
from lab.studies.recipes._selection import Choice, read_choices
from longnn.metrics import summarize


def tables(folder: Path) -> list[ResultTable]:
    """What the recipes reach, where the selection began, and how it ended."""
    choices = read_choices(folder.parent)
    return [_goals(choices), _candidates(choices), _finals(choices)]


def _goals(choices: Mapping[str, Choice]) -> ResultTable:
    """LON-GNN against what is printed."""
    rows = []
    for d, choice in choices.items():
        column = d.removesuffix("-legacy")
        if column not in BEST_ANYWHERE:
            continue
        test = choice.scores.test
        ours, s = percent(test), summarize([100 * v for v in test])
        wanted = (ACCURACY["lon"][column], best_of_paper(column), BEST_ANYWHERE[column])
        shown = [f"{w:.2f} ({ours - w:+.2f})" for w in wanted]
        rows.append([d, f"{ours:.2f}", f"{s['low']:.2f} to {s['high']:.2f}", *shown])
    return ResultTable(
        "goals",
        "Test accuracy in % of LON-GNN's recipes over the ten published splits, and in brackets "
        "the difference to printed numbers: the paper's LON-GNN, the best of any model in the "
        "paper, the best result found anywhere. The paper's Cornell is the defective one.",
        ["graph", "ours", "95 % interval", "paper's LON-GNN", "best of the paper", "best anywhere"],
        rows,
    )


def _candidates(choices: Mapping[str, Choice]) -> ResultTable:
    """Where the selection began."""
    keys = [*OWN_ROWS, *OTHERS, *RELATIVES, "jacobi"]
    rows = []
    for d, choice in choices.items():
        first, shown = choice.first, []
        for key in keys:
            names = (key, *(f"{key}, {word}" for word in SLOWER))
            shown.append(" / ".join(f"{100 * first[n]:.1f}" for n in names if n in first))
        drawn = [v for name, v in first.items() if name.startswith("random")]
        shown.append(f"{100 * max(drawn):.1f}" if drawn else "")
        rows.append([d, *shown])
    named = {k: ROWS[k].label for k in OWN_ROWS}
    named |= {"search": "paper's search", "recipe": "current recipe"}
    titles = [named[k] if k in named else f"as {ROWS[k].label}" for k in keys]
    return ResultTable(
        "candidates",
        "The first round: accuracy in % of LON-GNN's candidates on the held-out half of the "
        "validation nodes, mean over tuning splits: as found / with slow filter rates / with a "
        "filter that hardly moves (where that took part). Rows without candidates use the winner "
        "of the longest search.",
        ["graph", *titles, "best of random"],
        rows,
    )


def _finals(choices: Mapping[str, Choice]) -> ResultTable:
    """What the choice was made by, how it held up, and what won."""
    rows = []
    for d, choice in choices.items():
        ranked = sorted((100 * float(np.mean(v)) for v in choice.holdout.values()), reverse=True)
        rows.append(
            [
                d,
                choice.chosen,
                f"{ranked[0]:.2f} ({ranked[0] - ranked[-1]:.2f})" if ranked else "",
                f"{percent(choice.scores.val):.2f}",
                f"{percent(choice.scores.test):.2f}",
                _describe(choice.config),
            ]
        )
    return ResultTable(
        "finals",
        "The winner (`x > round.number` is a child of candidate x); its accuracy in % on the "
        "holdout splits, in brackets how far ahead of the last finalist; its validation and test "
        "accuracy on the published splits; its configuration.",
        ["graph", "winner", "holdout", "published val.", "test", "configuration"],
        rows,
    )


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


def _describe(config: ConfigTable) -> str:
    """Form and rates in a fixed order; ``normalised`` only if it is.

    >>> _describe({"degree": 5, "hidden_channels": 64, "normalize": False})
    'hidden 64, degree 5'
    """
    return ", ".join(
        label if key == "normalize" else f"{label} {config[key]}"
        for key, label in _SHOWN.items()
        if key in config and (key != "normalize" or config[key])
    )
