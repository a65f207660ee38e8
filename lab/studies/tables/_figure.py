"""One figure: how far LON-GNN is above the best baseline and above boosting on every table."""

from pathlib import Path

from matplotlib.figure import Figure

from lab.studies._core._context import save_figure
from lab.studies.tables._run import LABELS
from lab.studies.tables._show import Results, best_baseline, differences, read
from longnn.metrics import summarize
from longnn.report import GREY, NAVY, ORANGE, in_style, new_figure


@in_style
def figure(results: Results) -> Figure:
    """Paired differences with their intervals, one line per table."""
    drawn, ((axes,),) = new_figure(
        "LON-GNN with nothing set, minus a rival on the same splits",
        height=0.9 + 0.3 * len(results),
    )
    axes.axvline(0, color=GREY, lw=0.8)
    for y, cells in enumerate(reversed(list(results.values()))):
        rivals = ((best_baseline(cells), ORANGE, 0.12), ("histogram-boosting", NAVY, -0.12))
        for rival, colour, shift in rivals:
            s = summarize(differences(cells["lon"], cells[rival]))
            axes.plot([s["low"], s["high"]], [y + shift] * 2, color=colour, lw=1.4)
            axes.plot(s["mean"], y + shift, "o", color=colour, ms=4)
    axes.plot([], [], "o-", color=ORANGE, ms=4, label="best of constant, linear, MLP")
    axes.plot([], [], "o-", color=NAVY, ms=4, label=LABELS["histogram-boosting"])
    axes.legend(fontsize=7, loc="center right")
    axes.set_yticks(range(len(results)))
    axes.set_yticklabels(list(results)[::-1], fontsize=8)
    axes.set_xlabel("test score, points: mean and 95 % interval over the splits", fontsize=8)
    return drawn


def draw(folder: Path) -> list[Path]:
    """Write the figure, if there is anything to draw."""
    results = {name: cells for name, cells in read(folder).items() if len(cells) == len(LABELS)}
    return [save_figure(folder, "differences", figure(results))] if results else []
