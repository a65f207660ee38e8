"""Several runs side by side: what they share decides what can be compared.

Runs on the same splits of the same data are compared split by split, which shows far smaller
differences than a comparison of two intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longnn.metrics import metric_of
from longnn.records import RunRecord
from longnn.report import _html as html
from longnn.report._filter_figures import compared_filters_plate
from longnn.report._page import INTERVAL, METHOD
from longnn.report._score_figures import compared_scores_plate
from longnn.report._style import write_atomically
from longnn.report._words import (
    filter_words,
    model_name,
    result_text,
    splits_text,
)


def name_apart(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Runs with the same name get the name of their parent folder in front."""
    if not runs:
        raise ValueError("Expected at least one run to compare (got none).")
    names = [run.name for run in runs]
    return [
        replace(run, label=f"{run.folder.parent.name}/{run.name}")
        if names.count(run.name) > 1 and run.folder is not None
        else run
        for run in runs
    ]


def write_comparison(runs: Sequence[RunRecord], out: str | Path) -> Path:
    """Write one page that compares runs, and its figures into ``NAME_figures/`` beside it.

    Args:
        runs: their records; the others are compared with the first.
        out: the HTML file.

    Returns:
        The HTML file.
    """
    runs = name_apart(runs)
    out, words = Path(out), compare_words(runs)
    pictures = html.embed(comparison_plates(runs), out.with_name(f"{out.stem}_figures"))
    title = "Comparison of " + ", ".join(run.name for run in runs)
    commands = {run.name: run.command for run in runs if run.command}
    repeated = any(len(run.repeats) > 1 for run in runs)
    content = html.document(
        title=title,
        header=html.heading(title) + html.paragraph(_leader(runs), kind="soft"),
        main=[
            html.alert(cautions(runs)),
            html.section(
                "Results",
                html.pairs("All runs", words.shared),
                html.table("Runs", words.columns, words.rows, words=range(len(words.columns))),
                *pictures.values(),
                html.pairs("Learned filters", words.filters),
            ),
            html.section(
                "How the numbers were obtained",
                html.paragraph(METHOD),
                html.paragraph(INTERVAL) if repeated else "",
            ),
            html.section(
                "How the runs differ",
                html.pairs("Settings and options that differ", differences(runs)),
            ),
            html.section("Reproduce the runs", html.pairs("Command of each run", commands)),
        ],
        footer=html.paragraph("Written by longnn. This page needs no network and no other file."),
    )
    return write_atomically(out, content)


def comparison_plates(runs: Sequence[RunRecord]) -> list[html.Plate]:
    """The figures of a comparison."""
    filtering = any(run.filters for run in runs)
    return [compared_scores_plate(runs), *([compared_filters_plate(runs)] if filtering else [])]


class Comparison(NamedTuple):
    """Runs side by side in words: what all share, a table of the rest, the filter of each."""

    shared: dict[str, str]
    columns: list[str]
    rows: list[list[str]]
    filters: dict[str, str]


def compare_words(runs: Sequence[RunRecord]) -> Comparison:
    """What the terminal and the page say of several runs."""
    each = [
        {
            "run": run.name,
            "model": model_name(run),
            "data": run.data.name,
            "splits": splits_text(run),
            "score [95 % interval]": " ".join(result_text(run)),
            "against the first": paired_text(runs[0], run) if index else "the first",
        }
        for index, run in enumerate(runs)
    ]
    same = [key for key in each[0] if len(runs) > 1 and len({row[key] for row in each}) == 1]
    columns = [key for key in each[0] if key == "run" or key not in same]
    shared = {key: each[0][key] for key in same if key not in columns}
    rows = [[row[key] for key in columns] for row in each]
    return Comparison(shared, columns, rows, {run.name: filter_words(run) for run in runs})


def paired_text(first: RunRecord, other: RunRecord) -> str:
    """The difference of ``other`` from ``first`` on the splits that both were tested on."""
    if first.data.fingerprint != other.data.fingerprint:
        return "not comparable: other data"
    if first.metric != other.metric:
        return "not comparable: another score"
    ours, theirs = _by_split(other), _by_split(first)
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return "no split in common"
    gain = np.array([ours[split] - theirs[split] for split in common])
    splits = "common split" if len(common) == 1 else "common splits"
    if not gain.any():
        return f"no difference on {len(common)} {splits}"
    metric = metric_of(other.metric)
    size = f"{metric.scale * gain.mean():+z.{metric.digits}f}{metric.points}"
    better = metric.sign * gain > 0
    equal = f", equal on {(gain == 0).sum()}" if (gain == 0).any() else ""
    return f"{size}, better on {better.sum()} of {len(common)} {splits}{equal}"


def _by_split(run: RunRecord) -> dict[tuple[str, int], float]:
    """The test score on each split; the mean where a split was used more than once."""
    scores: dict[tuple[str, int], list[float]] = {}
    for repeat in run.repeats:
        value = repeat.scores.get("test", {}).get(run.metric, float("nan"))
        if np.isfinite(value):
            scores.setdefault((repeat.split.protocol, repeat.split.seed), []).append(value)
    return {split: float(np.mean(values)) for split, values in scores.items()}


def cautions(runs: Sequence[RunRecord]) -> list[str]:
    """What a reader must know before comparing these runs."""
    notes = []
    if len({run.data.fingerprint for run in runs}) > 1:
        notes.append("The runs are not all on the same data: their scores cannot be compared.")
    if len({run.metric for run in runs}) > 1:
        names = ", ".join(dict.fromkeys(metric_of(run.metric).name for run in runs))
        notes.append(f"The runs were not all scored by the same number: {names}.")
    if len({frozenset(_by_split(run)) for run in runs}) > 1:
        notes.append("The runs were not all tested on the same splits.")
    single = [run.name for run in runs if len(run.repeats) == 1 and not run.over_nodes]
    if single:
        notes.append(f"Only one repeat, so no interval: {', '.join(single)}.")
    return notes


def differences(runs: Sequence[RunRecord]) -> dict[str, str]:
    """The settings and options in which the runs differ, with the value of each run."""
    keys = dict.fromkeys(key for run in runs for key in run.config)
    differing = {}
    for key in keys:
        values = [run.config.get(key, "does not have it") for run in runs]
        if any(value != values[0] for value in values):
            differing[key] = "; ".join(
                f"{run.name}: {html.value_text(value)}"
                for run, value in zip(runs, values, strict=True)
            )
    return differing


def _leader(runs: Sequence[RunRecord]) -> str:
    """How many runs there are, and which has the best score if they can be compared."""
    count = "One run" if len(runs) == 1 else f"{len(runs)} runs"
    same = len({(run.data.fingerprint, run.metric) for run in runs}) == 1
    scored = [(summary.mean, run) for run in runs if (summary := run.score()) is not None]
    scored = [(mean, run) for mean, run in scored if np.isfinite(mean)]
    if not same or len(scored) < 2:
        return f"{count}."
    _, best = max(scored, key=lambda pair: metric_of(runs[0].metric).sign * pair[0])
    result = " ".join(result_text(best))
    return f"{count} on {best.data.name}. The best score is that of {best.name}: {result}."
