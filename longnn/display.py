"""What the terminal shows: one calm progress display, tables, one line for an error."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from longnn.training import Population

#: Seconds between refreshes of the progress display.
REFRESH = 0.2


def progress_text(population: Population) -> str:
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
    if population.count > 1:
        parts.append(f"{len(population.index)} of {population.count} in training")
    return "  ".join(parts)


@contextmanager
def training_progress(console: Console, *, quiet: bool) -> Iterator[Any]:
    """A callback for the training loop that keeps one line up to date; silent when quiet."""
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (BarColumn(bar_width=20), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, refresh_per_second=5) as progress:
        task = progress.add_task("starting", total=None)
        shown = 0.0

        def on_epoch(population: Population) -> None:
            nonlocal shown
            now = time.perf_counter()
            if now - shown < REFRESH:
                return
            shown = now
            progress.update(
                task,
                total=population.limits.epochs,
                completed=population.epoch,
                description=progress_text(population),
            )

        yield on_epoch


@contextmanager
def tuning_progress(console: Console, *, quiet: bool) -> Iterator[Any]:
    """A callback for the search: trials done, the best so far, time left; silent when quiet."""
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (BarColumn(bar_width=20), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, refresh_per_second=5) as progress:
        task = progress.add_task("starting", total=None)
        shown = 0.0

        def on_progress(state: Any) -> None:
            nonlocal shown
            now = time.perf_counter()
            if now - shown < REFRESH:
                return
            shown = now
            parts = [f"{state.done} of {state.total} trials"]
            if state.training:
                parts.append(f"{state.training} in training, epoch {state.epoch}")
            if state.best_value is not None:
                parts.append(f"best validation {state.best_value:.4f}")
            if state.eta is not None:
                parts.append(f"about {state.eta / 60:.0f} min left")
            text = "  ".join(parts)
            progress.update(task, total=state.total, completed=state.done, description=text)

        yield on_progress


def table(columns: list[str], rows: list[list[str]], *, right: set[int] | None = None) -> Table:
    """A plain table; columns whose index is in ``right`` are aligned right."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for i, name in enumerate(columns):
        made.add_column(name, justify="right" if i in (right or set()) else "left")
    for row in rows:
        made.add_row(*row)
    return made


_BLOCKS = " ▁▂▃▄▅▆▇█"


def sparkline(values: list[float]) -> str:
    """A row of blocks as high as the values.

    >>> sparkline([0.0, 0.5, 1.0])
    ' ▄█'
    """
    top = max(values) if values else 0.0
    if top <= 0:
        return " " * len(values)
    return "".join(_BLOCKS[round(max(v, 0.0) / top * (len(_BLOCKS) - 1))] for v in values)
