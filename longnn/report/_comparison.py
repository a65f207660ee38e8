"""Several runs side by side: what they have in common decides what may be compared.

Runs on the same splits of the same data are compared split by split, which is far sharper than
comparing two intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from longnn.records import Run, load_run
from longnn.report._figures import comparison_plates
from longnn.report._markup import alert, document, heading, pairs, paragraph, section, table
from longnn.report._page import INTERVAL, METHOD, embed
from longnn.report._style import write_atomically
from longnn.report._words import (
    PERCENT,
    describe_filter,
    metric_name,
    model_name,
    result_text,
    splits_text,
)

COLUMNS = ("run", "model", "data", "splits", "score", "against the first", "learned filter")


def load_runs(folders: Sequence[str | Path]) -> list[Run]:
    """Read several run folders; runs of one name get their parent folder's put before it."""
    if not folders:
        raise ValueError("Expected at least one run folder (got none).")
    return name_apart([load_run(folder) for folder in folders])


def name_apart(runs: Sequence[Run]) -> list[Run]:
    """Runs of one name get their parent folder's put before it."""
    names = [run.name for run in runs]
    return [
        replace(run, label=f"{run.folder.parent.name}/{run.name}")
        if names.count(run.name) > 1
        else run
        for run in runs
    ]


def write_comparison(folders: Sequence[str | Path], out: str | Path) -> Path:
    """Write one page that compares runs, and its figures into `NAME_figures/` beside it.

    Args:
        folders: Run folders; the first is the one the others are held against.
        out: The HTML file.
    """
    runs = list(folders) if isinstance(folders[0], Run) else load_runs(folders)
    out = Path(out)
    pictures = embed(comparison_plates(runs), out.with_name(f"{out.stem}_figures"))
    title = "Comparison of " + ", ".join(run.name for run in runs)
    commands = {run.name: run.command for run in runs if run.command}
    content = document(
        title=title,
        header=heading(title) + paragraph(_leader(runs), kind="soft"),
        main=[
            alert(cautions(runs)),
            section(
                "Results",
                table("Runs", COLUMNS, comparison_rows(runs)[1:], words=range(len(COLUMNS))),
                *pictures.values(),
            ),
            section("How the numbers were obtained", paragraph(METHOD), paragraph(INTERVAL)),
            section("Where they differ", pairs("Settings that differ", differences(runs))),
            section("To do it again", pairs("Command of each run", commands)),
        ],
        footer=paragraph("Written by longnn. The page stands alone: it needs no other file."),
    )
    return write_atomically(out, content)


def comparison_rows(runs: Sequence[Run]) -> list[list[str]]:
    """A table of words: the names of the columns, then a row for each run."""
    rows = [
        [
            run.name,
            model_name(run),
            run.data.name,
            splits_text(run),
            " ".join(result_text(run)),
            paired_text(runs[0], run) if index else "",
            filter_words(run),
        ]
        for index, run in enumerate(runs)
    ]
    return [list(COLUMNS), *rows]


def filter_words(run: Run) -> str:
    """The filters of the first repeat in words."""
    found = [item.words or describe_filter(item.eigenvalues, item.response) for item in run.filters]
    if len(found) < 2:
        return found[0] if found else "none"
    return "; ".join(f"layer {index}: {words}" for index, words in enumerate(found, 1))


def paired_text(first: Run, other: Run) -> str:
    """How `other` does against `first` on the splits both were tested on."""
    if first.data.fingerprint != other.data.fingerprint or first.metric != other.metric:
        return "not comparable"
    ours, theirs = _by_split(other), _by_split(first)
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return "no split in common"
    gain = np.array([ours[split] - theirs[split] for split in common])
    if other.metric in PERCENT:
        size = f"{100 * gain.mean():+.1f} points"
    else:
        size = f"{gain.mean():+.3f}"
    return f"{size}, better on {int((gain > 0).sum())} of {len(common)}"


def _by_split(run: Run) -> dict[tuple[str, int], float]:
    """The test score on each split, a mean where it was used more than once."""
    scores: dict[tuple[str, int], list[float]] = {}
    for repeat in run.repeats:
        value = repeat.scores.get("test", {}).get(run.metric, float("nan"))
        if np.isfinite(value):
            scores.setdefault((repeat.split.protocol, repeat.split.seed), []).append(value)
    return {split: float(np.mean(values)) for split, values in scores.items()}


def cautions(runs: Sequence[Run]) -> list[str]:
    """Why these runs should not be compared without thought."""
    found = []
    if len({run.data.fingerprint for run in runs}) > 1:
        found.append("The runs are not all on the same data: their scores do not compare.")
    if len({run.metric for run in runs}) > 1:
        names = ", ".join(dict.fromkeys(metric_name(run.metric) for run in runs))
        found.append(f"The runs were scored differently: {names}.")
    if len({frozenset(_by_split(run)) for run in runs}) > 1:
        found.append("The runs were not all tested on the same splits.")
    single = [run.name for run in runs if len(run.repeats) == 1]
    if single:
        found.append(f"One repeat only, so no interval: {', '.join(single)}.")
    return found


def differences(runs: Sequence[Run]) -> dict[str, str]:
    """The settings in which the runs differ, with each run's value."""
    keys = dict.fromkeys(key for run in runs for key in run.config)
    found = {}
    for key in keys:
        values = [run.config.get(key, "not set") for run in runs]
        if any(value != values[0] for value in values):
            found[key] = "; ".join(
                f"{run.name}: {value}" for run, value in zip(runs, values, strict=True)
            )
    return found


def _leader(runs: Sequence[Run]) -> str:
    same = len({(run.data.fingerprint, run.metric) for run in runs}) == 1
    scored = [(summary.mean, run) for run in runs if (summary := run.score()) is not None]
    scored = [(mean, run) for mean, run in scored if np.isfinite(mean)]
    if not same or len(scored) < 2:
        return f"{len(runs)} runs."
    _, best = max(scored, key=lambda pair: pair[0])
    return f"{len(runs)} runs on {best.data.name}. Best mean: {best.name}, " + " ".join(
        result_text(best)
    )
