"""One figure: what each change of the preset costs or gains on every development table."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from lab.studies._core._context import save_figure
from lab.studies.presets._candidates import CHANGES, LABELS
from lab.studies.presets._show import Results, changes_of, read
from longnn.report import GREY, NAVY, ORANGE, in_style, new_figure

TICKS = (-50, -20, -10, -5, -2, -1, 0, 1, 2, 5)


@in_style
def figure(results: Results) -> Figure:
    """One line per change, one dot per table, and the mean."""
    names = ["defaults", *CHANGES][::-1]
    drawn, ((axes,),) = new_figure(
        "The preset with one choice undone, minus the preset", height=1.0 + 0.3 * len(names)
    )
    axes.axvline(0, color=GREY, lw=0.8)
    for y, name in enumerate(names):
        found = list(changes_of(results, name).values())
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


def draw(folder: Path) -> list[Path]:
    """Write the figure, if there is anything to draw."""
    results = read(folder)
    return [save_figure(folder, "changes", figure(results))] if results else []
