"""The content of the pages for a terminal: plain lines without colours."""

from __future__ import annotations

from collections.abc import Sequence

from longnn.records import RunRecord
from longnn.report._checks import baseline_mean, checks, graph_text
from longnn.report._comparison import cautions, comparison_rows
from longnn.report._members import gain_text
from longnn.report._numbers import interval_text, metric_name, score_text
from longnn.report._words import (
    PARTS,
    headline,
    learned_text,
    protocol_name,
    split_notes,
    untested_text,
)

#: Width of the column of names.
NAME = 28


def text_summary(run: RunRecord) -> list[str]:
    """A run in a few lines: its scores, what it learned, its splits."""
    lines = [headline(run), "", *_scores(run)]
    lines += _baselines(run)
    first = run.repeats[0]
    seeds = f"seed {first.seed}"
    if len(run.repeats) > 1:
        seeds = f"seeds {first.seed} to {run.repeats[-1].seed}; mean and 95 % interval"
    joined = [gain_text(run)] if run.members else []
    lines += ["", *(f"  {line}" for line in [*joined, *learned_text(run)]), ""]
    lines.append(f"  split {protocol_name(run, first.split)}, {seeds}")
    lines += [f"  note: {note}" for note in split_notes(run)]
    untested = untested_text(run)
    lines += [f"  note: {untested}"] if untested else []
    return [*lines, *(f"  check: {sentence}" for sentence in checks(run))]


def _scores(run: RunRecord) -> list[str]:
    """One line per score, the headline first: validation, then test."""
    parts = [part for part in ("val", "test") if run.summary.get(part)]
    metrics = dict.fromkeys([run.metric, *(m for part in parts for m in run.summary[part])])
    rows = [["", *(PARTS[part] for part in parts)]]
    for metric in metrics:
        found = [run.score(part, metric) for part in parts]
        cells = ["" if s is None else interval_text(s, metric=metric, short=True) for s in found]
        rows.append([metric_name(metric), *cells])
    widths = [max(NAME, *(len(row[0]) + 2 for row in rows))]
    widths += [max(len(row[k]) for row in rows) + 2 for k in range(1, len(rows[0]))]
    return [
        "  " + "".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _baselines(run: RunRecord) -> list[str]:
    """The same test score without the graph, and what the graph adds."""
    if not run.baselines or run.score() is None:
        return []
    rows = ["", f"  without the graph, test {metric_name(run.metric)}:"]
    for baseline in run.baselines:
        score = score_text(baseline_mean(baseline, run.metric), run.metric)
        title = baseline.title.removesuffix(" without the graph")
        rows.append(f"  {'  ' + title:<{NAME}}{score}")
    return [*rows, f"  {graph_text(run)}"]


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
