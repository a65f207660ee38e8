"""The members of an ensemble: a table, the gain over the best of them, filters over each other."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from longnn.metrics import metric_of
from longnn.records import MemberRecord, RunRecord
from longnn.registry import MODELS
from longnn.report._filter_figures import (
    draw_density,
    finish_spectrum,
    largest_eigenvalue,
    outliers_of,
    show_inside,
)
from longnn.report._numbers import metric_name, score_text
from longnn.report._style import GREY, LINES, NARROW, colours, in_style, new_figure, plain
from longnn.report._words import is_cover

#: Members drawn in colour, by weight; the others are thin and grey.
DRAWN = 6


def member_rows(run: RunRecord) -> list[list[str]]:
    """Each member: name, model, mean weight, validation and test score, epochs, largest first."""
    rows = []
    for name in _names(run):
        own = [m for repeat in run.repeats for m in repeat.members if m.name == name]
        val, test = (_mean([getattr(m, part) for m in own]) for part in ("val", "test"))
        rows.append(
            [
                name,
                MODELS[own[0].model].title if own[0].model in MODELS else own[0].model,
                f"{_weight(run, name):.2f}",
                score_text(val, run.metric),
                score_text(test, run.metric),
                f"{np.mean([m.best_epoch for m in own]):.0f}",
                own[0].words,
            ]
        )
    return rows


def _names(run: RunRecord) -> list[str]:
    """The members of all repeats, the largest mean weight first."""
    found = dict.fromkeys(m.name for repeat in run.repeats for m in repeat.members)
    return sorted(found, key=lambda name: -_weight(run, name))


def _weight(run: RunRecord, name: str) -> float:
    """The mean weight of a member over the repeats."""
    own = [m.weight for repeat in run.repeats for m in repeat.members if m.name == name]
    return sum(own) / len(run.repeats)


def _mean(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def gain_text(run: RunRecord) -> str:
    """What joining gained over the best member, chosen by validation; empty for single models."""
    pairs = []
    for repeat in run.repeats:
        scored = [m for m in repeat.members if m.val is not None and m.test is not None]
        whole = repeat.scores.get("test", {}).get(run.metric)
        if scored and whole is not None:
            best = _best(scored, run.metric)
            pairs.append((best, whole))
    if not pairs:
        return ""
    metric = metric_of(run.metric)
    gain = metric.sign * metric.scale * float(np.mean([w - (b.test or 0.0) for b, w in pairs]))
    joined = score_text(_mean([w for _, w in pairs]), run.metric)
    voting = np.mean([sum(m.weight > 0 for m in r.members) for r in run.repeats])
    over = "" if len(pairs) == 1 else f", on average over {len(pairs)} repeats"
    alone = score_text(_mean([b.test for b, _ in pairs]), run.metric)
    return (
        f"{len(_names(run))} models were trained, and {voting:.0f} of them vote. The best one "
        f"by validation has a test {metric_name(run.metric)} of {alone} alone; together they have "
        f"{joined} ({gain:+z.{metric.digits}f}{metric.points}){over}."
    )


def _best(members: list[MemberRecord], metric: str) -> MemberRecord:
    return max(members, key=lambda m: metric_of(metric).sign * (m.val or 0.0))


@in_style
def member_filters(run: RunRecord) -> Figure:
    """The first filters of the members of the first repeat over each other.

    Raises:
        ValueError: if no member has a filter.
    """
    found = sorted((m for m in run.members if m.response is not None), key=lambda m: -m.weight)
    if not found:
        raise ValueError("Expected an ensemble with a filter in a member (got none).")
    voting = [m for m in found if m.weight > 0][:DRAWN]
    title = "Filters of the members, mean over channels"
    figure, grid = new_figure(title, height=4.3 + 0.15 * len(voting), width=NARROW)
    axes = grid[0, 0]
    draw_density(axes, run)
    end = largest_eigenvalue(run)
    rest = [m for m in found if m not in voting]
    for index, member in enumerate(rest):
        label = "others" if index == 0 else None
        axes.plot(
            member.eigenvalues, _unit(member, end), color=GREY, lw=0.7, alpha=0.6, label=label
        )
    for index, (member, shade) in enumerate(zip(voting, colours(len(voting)), strict=True)):
        label = f"{plain(member.name, 30)}, weight {member.weight:.2f}"
        line, width = LINES[index % len(LINES)], 1.0 + 3.0 * member.weight
        axes.plot(
            member.eigenvalues, _unit(member, end), color=shade, ls=line, lw=width, label=label
        )
    show_inside(axes, end)
    finish_spectrum(axes, outliers_of(run), cover=is_cover(run))
    axes.set_ylabel("response, largest magnitude 1")
    return figure


def _unit(member: MemberRecord, end: float) -> np.ndarray:
    """A response with largest magnitude 1 where the graph has eigenvalues, up to the last one.

    Members scale their signals as they like.
    """
    assert member.response is not None
    assert member.eigenvalues is not None
    inside = np.abs(member.response[member.eigenvalues <= max(end, member.eigenvalues[1])])
    return member.response / max(float(inside.max()), 1e-12)
