"""The content of the pages for a terminal: plain lines without colours."""

from __future__ import annotations

from collections.abc import Sequence

from longnn.records import RunRecord
from longnn.report._comparison import cautions, comparison_rows
from longnn.report._words import (
    PARTS,
    headline,
    interval_text,
    learned_text,
    metric_name,
    split_notes,
    untested_text,
)


def text_summary(run: RunRecord) -> list[str]:
    """A run in a few lines: its scores, what it learned, its splits."""
    lines = [headline(run), ""]
    for part in ("val", "test"):
        for metric, summary in run.summary.get(part, {}).items():
            name = f"{PARTS[part]} {metric_name(metric)}"
            lines.append(f"  {name:<24} {interval_text(summary, metric=metric, short=True)}")
    first = run.repeats[0]
    seeds = f"seed {first.seed}"
    if len(run.repeats) > 1:
        seeds = f"seeds {first.seed} to {run.repeats[-1].seed}; mean and 95 % interval"
    lines += ["", *(f"  {line}" for line in learned_text(run)), ""]
    lines.append(f"  split {first.split.protocol}, {seeds}")
    lines += [f"  note: {note}" for note in split_notes(run)]
    untested = untested_text(run)
    return [*lines, f"  note: {untested}"] if untested else lines


def text_comparison(runs: Sequence[RunRecord]) -> list[str]:
    """A table of runs, with what a reader must know before comparing them."""
    rows = comparison_rows(runs)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return [*lines, *(f"note: {caution}" for caution in cautions(runs))]
