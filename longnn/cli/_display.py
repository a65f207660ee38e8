"""What the terminal shows: one calm progress display, and tables."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

import longnn
from longnn.metrics import metric_of

if TYPE_CHECKING:
    from longnn.training import Population

#: Terminal width, in characters, from which a table shows all its columns.
WIDE = 120
#: Seconds between refreshes of the progress display.
REFRESH = 0.2
Progressing = AbstractContextManager[Any]


def progress_text(population: "Population") -> str:
    """The state of training in one line: means over the members still in training."""
    mean = lambda field: float(population.rows[field][-1].mean())  # noqa: E731
    parts = [
        f"epoch {population.epoch}",
        f"loss {mean('train_loss'):.3f}",
        f"validation {mean('val_score'):.3f}",
    ]
    if mean("a") == mean("a"):  # not NaN: the model has a learned basis
        parts.append(f"a {mean('a'):+.2f}  b {mean('b'):+.2f}")
    if mean("amplitude") == mean("amplitude"):
        parts.append(f"amplitude {mean('amplitude'):.2f}")
    if population.total > population.count:
        first, last = population.before + 1, population.before + population.count
        which = f"model {first}" if first == last else f"models {first} to {last}"
        parts.insert(0, f"{which} of {population.total}")
    elif population.count > 1:
        parts.append(f"{len(population.index)} of {population.count} in training")
    return "  ".join(parts)


def training_progress(console: Console, *, quiet: bool) -> Progressing:
    """A callback for the training loop."""

    def describe(population: "Population") -> tuple[str, float, float]:
        share = population.count * population.epoch / population.limits.epochs
        return progress_text(population), population.before + share, population.total

    return _progress(console, quiet, describe)


def tuning_progress(console: Console, *, quiet: bool) -> Progressing:
    """A callback for the search: trials done, the best so far, time left."""

    def describe(state: Any) -> tuple[str, float, float]:
        parts = [f"{state.done} of {state.total} trials"]
        if state.training:
            parts.append(f"{state.training} in training, epoch {state.epoch}")
        if state.best_value is not None:
            value = metric_of(state.metric).sign * state.best_value  # of an error the negative
            best = longnn.report.score_text(value, state.metric, digits=2)
            parts.append(f"best validation {best}")
        if state.eta is not None:
            parts.append(f"about {state.eta / 60:.0f} min left")
        return "  ".join(parts), state.done, state.total

    return _progress(console, quiet, describe, estimate=False)


def work_progress(console: Console, *, quiet: bool) -> Progressing:
    """A callback for one long piece of work: the name of a step, the share of all that is done."""
    return _progress(console, quiet, lambda name, share: (name, share, 1.0), refresh=0)


@contextmanager
def _progress(
    console: Console,
    quiet: bool,
    describe: Callable[..., tuple[str, float, float]],
    *,
    estimate: bool = True,
    refresh: float = REFRESH,
) -> Iterator[Any]:
    """A callback that keeps one line up to date; None when quiet.

    Args:
        console: where the line is.
        quiet: show nothing.
        describe: from what the callback is given to a text, how much is done, and of how much.
        estimate: whether the time left is estimated here.
        refresh: seconds between two looks.
    """
    if quiet or not console.is_terminal:
        yield None
        return
    columns: list[ProgressColumn] = [BarColumn(bar_width=20), TextColumn("{task.description}")]
    columns += [TimeRemainingColumn()] if estimate else []
    with Progress(*columns, console=console, transient=True, refresh_per_second=5) as progress:
        task = progress.add_task("starting", total=None)
        shown = 0.0

        def on_progress(*state: Any) -> None:
            nonlocal shown
            now = time.perf_counter()
            if now - shown >= refresh:
                shown = now
                text, done, total = describe(*state)
                progress.update(task, description=text, completed=done, total=total)

        yield on_progress


def time_text(seconds: float) -> str:
    """A time as people say it.

    >>> time_text(0.24), time_text(75), time_text(600)
    ('0.2 s', '75 s', '10 min')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[int] = (),
    whole: Collection[int] = (),
    most: Mapping[int, int] | None = None,
) -> Table:
    """A plain table.

    Args:
        columns: their headings.
        rows: their cells, as plain text.
        right: indices of columns that are aligned right.
        whole: indices of columns whose cells are never broken into lines.
        most: the greatest widths, in characters, by the indices of columns.
    """
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for i, name in enumerate(columns):
        justify: JustifyMethod = "right" if i in right else "left"
        limit = (most or {}).get(i)
        shown.add_column(name, justify=justify, no_wrap=i in whole, max_width=limit)
    for row in rows:
        shown.add_row(*map(Text, row))
    return shown


def plain(value: Any) -> str:
    """A default as it is written after ``--set key=``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def seconds_text(seconds: Mapping[str, float]) -> str:
    """Where the time went: the whole, and the steps that took more than a tenth of it.

    >>> seconds_text({"loading": 0.01, "training": 8.0, "report": 2.0})
    '10.0 s: training 8.0, report 2.0'
    """
    total = sum(seconds.values())
    steps = [f"{step} {took:.1f}" for step, took in seconds.items() if took >= 0.1 * total]
    return f"{total:.1f} s: {', '.join(steps)}"


_BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII_BLOCKS = " .:-=+*#@"


def sparkline(values: list[float], encoding: str = "utf-8") -> str:
    """A row of blocks as high as the values, of signs that the terminal can show.

    >>> sparkline([0.0, 0.5, 1.0]), sparkline([0.0, 0.5, 1.0], "ascii")
    (' ▄█', ' =@')
    """
    blocks = _BLOCKS if encoding.lower().startswith("utf") else _ASCII_BLOCKS
    top = max(values) if values else 0.0
    if top <= 0:
        return " " * len(values)
    return "".join(blocks[round(max(v, 0.0) / top * (len(blocks) - 1))] for v in values)
