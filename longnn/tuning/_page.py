"""The page of a search: one HTML file with its figures, from its record alone."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from longnn.metrics import metric_of
from longnn.registry import find_model
from longnn.report import (
    GREY,
    NARROW,
    NAVY,
    ORANGE,
    SKY,
    in_style,
    new_figure,
    plain,
    score_text,
    write_atomically,
)
from longnn.report import _html as html
from longnn.tuning._cost import counted
from longnn.tuning._record import RECORD, SearchRecord, read_record

#: The page, and the file of the winner, in the folder of a search.
PAGE, RECIPE = "tuning.html", "recipe.toml"
#: What a search starts with, in words.
NAMES = {"default": "the default", "given": "the given configuration"}
#: The most trials in the table of the best, and the most entries in the figure of importance.
LISTED, SHOWN = 15, 16

METHOD = (
    "Each trial was trained once per repeat, on splits that no reported result uses. The score of "
    "a trial is the mean over its repeats of the best validation score. No test node was used: not "
    "for training, not for stopping trials early, and not for choosing the winner. The score of "
    "the winner is the best of many, so expect a slightly worse one on new splits."
)


def write_page(folder: str | Path, record: SearchRecord | None = None) -> Path:
    """Write ``tuning.html`` and its figures.

    Args:
        folder: where to write them, and where the recipe of the search is.
        record: of the search; None to read it from the folder.
    """
    folder = Path(folder)
    if record is None:
        record = read_record(folder)
    title = f"Tuning {find_model(record.model).title} on {record.dataset.name}"
    origin = (
        f"{counted(record.finished, 'trial')} with {counted(record.repeats, 'repeat')} each, "
        f"search {record.search}, finished "
        f"{record.created.replace('T', ' ').replace('+00:00', ' UTC')}"
    )
    files = "" if record.dataset.graph else ", with the files of the graph for GRAPH"
    few = html.paragraph("There are too few trials to say which settings mattered.", kind="soft")
    space = record.space
    dropped = f"This model does not have: {', '.join(space.dropped)}."
    content = html.document(
        title=title,
        header=html.heading(title) + html.paragraph(origin, kind="soft"),
        main=[
            f'<div class="learned">{html.paragraph(_finding(record))}</div>',
            html.alert(list(record.notes)),
            html.section(
                "The winner",
                html.pairs("Its configuration", record.best.params),
                html.paragraph(f"To train it on the reporting splits{files}:"),
                html.code_block(record.train_command(folder.resolve() / RECIPE)),
            ),
            _finalists(record),
            html.section(
                "The search",
                *html.embed(plates(record), folder / "figures").values(),
                "" if record.importance else few,
                _trials(record),
            ),
            html.section("How the numbers were obtained", html.paragraph(METHOD), _method(record)),
            html.section(
                "The space",
                html.pairs(f"Searched, space {space.name}", space.search),
                html.pairs("The same in all trials", space.fixed),
                html.paragraph(dropped) if space.dropped else "",
            ),
            html.section("Versions and machine", html.pairs("Environment", record.environment)),
        ],
        footer=html.paragraph(
            f"Written by longnn {record.environment['longnn']} from {RECORD}. The page is "
            "complete: it needs no network and no other file."
        ),
    )
    return write_atomically(folder / PAGE, content)


def _finding(record: SearchRecord) -> str:
    gain = f" On the same splits: {gain_text(record)}." if record.start is not None else ""
    first = list(record.importance)[:2]
    mattered = f" What mattered most: {' and '.join(first)}." if first else ""
    splits = counted(record.repeats + len(record.finalists.seeds), "tuning split")
    return (
        f"Trial {_number(record, record.best.number)} won with a validation "
        f"{metric_of(record.metric).name} of {shown_score(record, record.value)}, "
        f"the mean over {splits}.{gain}{mattered}"
    )


def _finalists(record: SearchRecord) -> str:
    """The best trials of the search on further splits; nothing where there were none."""
    finals = record.finalists
    rows = [
        [
            _number(record, final.number),
            *(shown_score(record, v) for v in (final.searched, final.further, final.value)),
        ]
        for final in finals.trials
    ]
    caption = (
        f"The search chose these trials on {counted(record.repeats, 'split')}. They were trained "
        f"again on {counted(len(finals.seeds), 'further split')}, and the mean over all decided"
    )
    columns = ["trial", "in the search", "on further splits", "over all"]
    finalists = html.table(caption, columns, rows, words=[])
    return html.section("The finalists", finalists) if rows else ""


def _number(record: SearchRecord, number: int) -> str:
    """The number of a trial; that of the start is marked."""
    start = record.start
    return f"{number} ({start.name})" if start and start.number == number else f"{number}"


def _trials(record: SearchRecord) -> str:
    searched = list(record.space.search)
    complete = record.with_state("complete")
    complete.sort(key=lambda t: (-(t.value or 0.0), t.number))
    shown = complete[:LISTED]
    if record.start is not None:  # it has a row, however good it is
        shown += [t for t in complete[LISTED:] if t.number == record.start.number]
    rows = [
        [
            _number(record, trial.number),
            shown_score(record, trial.value),
            str(max(trial.epochs)),
            *(html.value_text(trial.params.get(key)) for key in searched),
        ]
        for trial in shown
    ]
    best = min(LISTED, len(rows))
    caption = f"The best {best} of {len(complete)} trials trained to the end"
    if len(rows) > best and record.start is not None:
        caption += f", and the {record.start.name} one"
    return html.table(caption, ["trial", "validation", "epochs", *searched], rows, words=[])


def _method(record: SearchRecord) -> str:
    halving = record.halving
    return html.pairs(
        "The search in numbers",
        {
            "trials trained to the end": len(record.with_state("complete")),
            "trials stopped early": len(record.with_state("pruned")),
            "trials lost and trained again, or returned": len(record.with_state("fail")),
            "halving": f"at epochs {html.value_text(list(halving.rungs))}" if halving else "none",
            "split protocol": record.protocol,
            "seeds of splits, weights and dropout": list(record.seeds),
            "seed of the sampler": record.seed,
            "seconds of this worker": record.seconds,
            "data fingerprint": record.dataset.fingerprint,
        },
    )


def shown_score(record: SearchRecord, value: float | None) -> str:
    """A score with as many digits as tell close trials apart; of an error, which the search counts
    as negative, its size.
    """
    if value is None:
        return "diverged"
    return score_text(metric_of(record.metric).sign * value, record.metric, digits=2)


def gain_text(record: SearchRecord) -> str:
    """How much the winner gained over the trial that the search started with."""
    assert record.start is not None, "the search started with a trial of its own"
    name = NAMES[record.start.name]
    if record.start.number == record.best.number:
        return f"{name} won"
    if record.gain is None:
        return f"{name} diverged"
    shown = shown_score(record, record.start.value)
    metric = metric_of(record.metric)
    gain = f"{metric.scale * record.gain:+.{metric.digits + 1}f}{metric.points}"
    return f"{gain} over {name} ({shown})"


def plates(record: SearchRecord) -> list[html.Plate]:
    """The figures of a search, in reading order."""
    history = html.Plate(
        "tuning_history",
        lambda: draw_history(record),
        "The search",
        "Each mark is one trial. Dots were trained to the end. Crosses were stopped early, because "
        "the better half was ahead at the same epoch. The line shows the best score until then.",
        f"Validation scores of {record.finished} trials in their order; the best is trial "
        f"{record.best.number} with {shown_score(record, record.best.value)}.",
    )
    top = [f"{key} {value:.2f}" for key, value in record.importance.items()][:3]
    importance = html.Plate(
        "tuning_importance",
        lambda: draw_importance(record),
        "What mattered",
        "How much each setting decided whether a trial was among the best fifth (PED-ANOVA; the "
        "bars sum to one). A low bar means that the values that were tried made little difference, "
        "not that every value is good.",
        f"Importance of the searched settings, highest first: {', '.join(top)}.",
    )
    return [history, importance] if record.importance else [history]


@in_style
def draw_history(record: SearchRecord) -> Figure:
    """The score of each trial in their order, and the best until then."""
    title = f"{find_model(record.model).title} on {record.dataset.name}: {record.finished} trials"
    figure, grid = new_figure(title, height=3.6, width=NARROW)
    axes = grid[0, 0]
    metric = metric_of(record.metric)
    scale = metric.sign * metric.scale  # of an error the search counts the negative
    points = [(t.state, t.number, scale * t.value) for t in record.trials if t.value is not None]
    for state, marker, colour, label in (
        ("pruned", "x", GREY, "stopped early"),
        ("complete", "o", SKY, "trained to the end"),
    ):
        xy = [(number, value) for at, number, value in points if at == state]
        if xy:
            axes.scatter(*np.transpose(xy), marker=marker, c=colour, s=22, lw=1.2, label=label)
    best = (np.maximum if metric.higher else np.minimum).accumulate([value for _, value in xy])
    axes.step([n for n, _ in xy], best, where="post", color=NAVY, label="best until then")
    winner, start = record.best, record.start
    assert winner.value is not None, "the winner was trained to the end"
    top = scale * winner.value
    axes.scatter(winner.number, top, marker="*", s=140, c=ORANGE, zorder=3, label="winner")
    xy = [(n, value) for _, n, value in points if start is not None and n == start.number]
    if start is not None and xy and start.number != winner.number:
        axes.scatter(*np.transpose(xy), marker="D", s=36, c=NAVY, zorder=3, label=start.name)
    _focus(axes, np.sort([metric.sign * value for *_, value in points]), metric.sign)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("trial")
    axes.set_ylabel(f"validation {metric.axis}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
    return figure


def _focus(axes: Axes, values: np.ndarray, sign: int) -> None:
    """Cut off the few worst trials where they would flatten all others; values rise to the best."""
    worst, low, best = values[0], values[len(values) // 10], values[-1]
    if best > low > worst:
        margin = 0.15 * (best - low)
        ends = max(worst - margin, low - 4 * (best - low)), best + margin
        axes.set_ylim(*sorted(sign * end for end in ends))


@in_style
def draw_importance(record: SearchRecord) -> Figure:
    """Bars of importance, the highest first."""
    importance = list(record.importance.items())[:SHOWN]
    title = f"{find_model(record.model).title} on {record.dataset.name}: what mattered"
    height = 1.2 + 0.26 * len(importance)
    figure, grid = new_figure(title, height=height, width=NARROW)
    axes = grid[0, 0]
    names = [plain(key) for key, _ in importance]
    axes.barh(names, [value for _, value in importance], color=NAVY, height=0.65)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0)
    axes.set_xlabel("importance")
    return figure
