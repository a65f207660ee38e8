"""Figures of what was learned: responses on the spectrum, path of the basis, amplitude.

Each ``*_plate`` takes a run and gives the figure with its texts, or raises :class:`FigureError`.
The caption says how to read the figure; the alternative text says what it shows. None writes a
file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from longnn.records import FilterRecord, MemberRecord, RunRecord
from longnn.report._filters import (
    align_signs,
    density_top,
    jacobi_weight,
    mean_response,
    spectral_coordinates,
    waveform_distance,
)
from longnn.report._html import FigureError, Plate
from longnn.report._style import (
    FAINT,
    GREY,
    LINES,
    NARROW,
    NAVY,
    ORANGE,
    PALE,
    SKY,
    colours,
    in_style,
    new_figure,
    plain,
    spectrum_axis,
)
from longnn.report._words import (
    filter_names,
    filter_text,
    filter_words,
    gain_text,
    is_cover,
    is_stack,
    kind_of,
    ladder_order,
    model_name,
    outliers_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MANY = 12  # channels; more are drawn as a band
ROW = 54  # characters in a row of a legend
BAND = (0.05, 0.25, 0.75, 0.95)  # quantiles of the channels
NEEDLE = 0.13  # height of a mark at an eigenvalue outside the bulk, as a share of the axis
SPECIAL = {"Legendre": (0.0, 0.0), "Chebyshev": (-0.5, -0.5), "Chebyshev, 2nd kind": (0.5, 0.5)}
RUNGS, COLUMNS = 24, 2  # most filters of a ladder, and its columns
COLOURED = 6  # members drawn in colour, by weight; the others are thin and grey
#: What stands at the two ends of a spectrum: of a graph, and of a double cover.
ENDS = ("← low frequency (smooth)", "high frequency (rough) →")
COVER_ENDS = ("← sources and targets alike", "sources and targets opposite →")
#: How to read a response.
SPECTRUM = (
    "On the left, at 0, is what neighbours have in common; on the right, at 2, what differs from "
    "neighbour to neighbour. Where the line is far from zero, the model keeps that part of what "
    "it sees; near zero it drops it. So a line that is high on the left alone averages over "
    "neighbours."
)
AXIS, COVER_AXIS = "Laplacian eigenvalue λ", "1 − eigenvalue of the double cover, λ"


def filter_plate(run: RunRecord) -> Plate:
    """The learned filters over the spectral density of the graph; of many blocks a ladder."""
    if not run.filters:
        raise FigureError(f"Expected a model with filters (got {run.model!r}).")
    if is_stack(run):
        return _ladder_plate(run)
    first = run.filters[0]
    lines = (
        "The bands contain half and 90 % of the channels; the bold line is the mean of all."
        if first.channels > MANY
        else "Each thin line is one channel; the bold line is their mean."
        if first.channels > 1
        else "The line is the response."
    )
    turned = align_signs(first.response)[1]
    sign = (
        f" {turned} of {first.channels} channels are drawn with the opposite sign, so that all "
        "agree; the sign of a whole channel has no meaning."
        if turned
        else ""
    )
    others = " Dashed lines are the means of the other repeats." if len(run.repeats) > 1 else ""
    back = _spectrum_text(run)
    if back:
        back += " Where the graph has no eigenvalue, the response has no effect."
    return Plate(
        "filter_response",
        lambda: filter_response(run),
        "The learned filter",
        f"{_spectrum_words(run)} {lines}{others}{back}{sign}",
        f"Learned response against Laplacian eigenvalue: {filter_words(run)}.",
    )


def _ladder_plate(run: RunRecord) -> Plate:
    return Plate(
        "filter_response",
        lambda: filter_ladder(run),
        f"The learned filters, {ladder_order(run)}",
        f"Each panel is one filter of the model, one after the other. {SPECTRUM} The bands contain "
        "half and 90 % of the channels, each with the sign that agrees with the others; the bold "
        f"line is the mean. All panels have one scale.{_spectrum_text(run)}",
        f"Learned responses against Laplacian eigenvalue: {filter_words(run)}.",
    )


def _spectrum_words(run: RunRecord) -> str:
    """What stands along the axis of a response."""
    if not is_cover(run):
        return SPECTRUM
    return (
        "How strongly the filter passes each signal on the double cover of the directed graph, in "
        "which every node stands twice: as a source and as a target of arcs. On the left, at 0, "
        "sources share their signal with their targets; on the right, at 2, they have the opposite "
        "one. What both sides have in common joins nodes with common targets or sources; what they "
        "differ by goes along the arcs."
    )


def _spectrum_text(run: RunRecord) -> str:
    """What is drawn of the graph's spectrum behind a response."""
    few = run.data.outliers
    text = ""
    if run.data.density is not None:
        typed = any(record.edge_type for record in run.filters)
        whose = "the graph of all edges, of whatever type," if typed else "the graph"
        text = f" The grey area shows where the eigenvalues of {whose} are."
    if few is None or len(few) == 0:
        return text
    marks = "Needles mark" if len(few) > 1 else "A needle marks"
    return (
        f"{text} {marks} {outliers_text(few)}: too few for the grey area to show, but they are "
        "what tells the parts of the graph from each other, so the response there matters."
    )


@in_style
def filter_response(run: RunRecord) -> Figure:
    """The learned responses over the spectral density of the graph, one panel per filter."""
    shown = run.filters
    title = f"Learned filter on {plain(run.data.name, 20)}"
    figure, grid = new_figure(title, height=0.7 + 3.4 * len(shown), width=NARROW, rows=len(shown))
    for index, (axes, record) in enumerate(zip(grid[:, 0], shown, strict=True)):
        others = [
            repeat.filters[index] for repeat in run.repeats[1:] if index < len(repeat.filters)
        ]
        called = filter_names(run)[index]
        what = f"{called}: " if called else ""
        named_after_someone = record.basis not in ("monomial", "interpolation", "unnamed")
        name = record.basis.capitalize() if named_after_someone else record.basis
        kind = f"{what}{name} basis, degree {record.degree}"
        axes.set_title(plain(kind), loc="left", color=GREY)
        _draw_density(axes, run)
        _draw_filter(axes, record, others)
        _show_inside([axes], _largest_eigenvalue(run))
        _finish_spectrum(axes, _outliers_of(run), cover=is_cover(run))
    return figure


@in_style
def filter_ladder(run: RunRecord) -> Figure:
    """The learned responses of all blocks, one small panel each, over the spectral density."""
    shown = run.filters[:RUNGS]
    many = f" (first {RUNGS} of {len(run.filters)})" if len(run.filters) > RUNGS else ""
    rows = math.ceil(len(shown) / COLUMNS)
    title = f"Learned filters on {plain(run.data.name, 20)}, {ladder_order(run)}{many}"
    height = 1.1 + 1.55 * rows
    figure, grid = new_figure(title, height=height, width=NARROW, rows=rows, columns=COLUMNS)
    names = filter_names(run)
    for index, (axes, record) in enumerate(zip(grid.flat, shown, strict=False)):
        _draw_band(axes, record)
        axes.axhline(0, color=GREY, lw=0.8)
        name = plain(names[index], 24)
        words = f"{name}, degree {record.degree}: {kind_of(filter_text(record))}"
        axes.set_title(plain(words), loc="left", color=GREY, fontsize=9)
        last = index + COLUMNS >= len(shown)
        spectrum_axis(axes, label="eigenvalue λ (0 smooth, 2 rough)" if last else "")
        axes.tick_params(labelbottom=last, labelleft=index % COLUMNS == 0)
        if index % COLUMNS == 0:
            axes.set_ylabel("g(λ)")
    low, high = _show_inside(grid.flat[: len(shown)], _largest_eigenvalue(run))
    if run.data.density is not None:
        lam, density = run.data.density  # at the foot of each panel, half as high
        share = np.clip(np.nan_to_num(density) / density_top(lam, density), 0, 1)
        top = low + 0.5 * (high - low) * share
        for axes in grid.flat[: len(shown)]:
            axes.fill_between(lam, low, top, color=PALE, lw=0, zorder=0)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    return figure


def _draw_band(axes: Axes, record: FilterRecord) -> None:
    """The mean over the channels, and where half and 90 % of them are."""
    lam, count = record.eigenvalues, record.channels
    response = align_signs(record.response)[0]
    low, lower, upper, high = np.quantile(response, BAND, axis=0)
    if count > 1:
        axes.fill_between(lam, low, high, color=SKY, alpha=0.35, lw=0, label="90 % of the channels")
        axes.plot(lam, np.stack([low, high], axis=1), color=SKY, lw=0.8)  # apart from the density
        axes.fill_between(lam, lower, upper, color=SKY, lw=0, label="half of the channels")
    axes.plot(lam, response.mean(axis=0), color=NAVY, lw=2.5, label=f"mean of {count} channels")


def known_plate(run: RunRecord) -> Plate:
    """How far away the known answers are that count in a prediction, and which way."""
    rings = run.repeats[0].known_rings
    if rings is None:
        raise FigureError("Expected a run that uses known answers (got none).")
    several = len(run.data.targets) > 1 or run.data.task == "multilabel"
    which = " Of several targets or labels this is the first that they change." if several else ""
    shares = 100 * (rings.alike + rings.opposed)
    return Plate(
        "known_rings",
        lambda: known_rings(run),
        "What known answers count, by distance",
        "Where an answer is known, its difference from what the models say there corrects "
        "predictions nearby. Each bar says how much all known answers at a distance count "
        "together. Above zero, an answer that is higher than the models say raises the prediction, "
        "or makes its class more probable; below zero it does the opposite, often since nearer "
        "answers said the same. All bars together are 100 %. A step goes along an edge. Means over "
        f"{rings.nodes} test nodes{' of the first repeat' * (len(run.repeats) > 1)}.{which}",
        "Share of the weights of known answers by distance: "
        + ", ".join(f"{share:.0f} % at {k}" for k, share in enumerate(shares, start=1))
        + " or more steps.",
    )


@in_style
def known_rings(run: RunRecord) -> Figure:
    """The weights of known answers by distance, up where they raise a prediction."""
    rings = run.repeats[0].known_rings
    assert rings is not None
    figure, grid = new_figure("What known answers count, by distance", height=3.4, width=NARROW)
    axes, steps = grid[0, 0], np.arange(1, len(rings.alike) + 1)
    axes.bar(steps, 100 * rings.alike, 0.7, color=NAVY, label="pull the prediction their way")
    down: dict[str, Any] = {"color": ORANGE, "hatch": "//", "edgecolor": "white"}
    axes.bar(steps, -100 * rings.opposed, 0.7, label="push it the other way", **down)
    axes.axhline(0, color=GREY, lw=0.8)
    counts = [f"{n:.1f}" if n < 10 else f"{n:,.0f}" for n in rings.answers]
    names = [f"{k}\n({n})" for k, n in zip(steps, counts, strict=True)]
    axes.set_xticks(steps, [*names[:-1], names[-1].replace("\n", "+\n")])
    axes.set_xlabel("steps from the node (how many known answers are there)")
    axes.set_ylabel("share in the correction (%)")
    axes.grid(axis="x", visible=False)
    axes.legend()
    return figure


def members_plate(run: RunRecord) -> Plate:
    """The filters of the members of an ensemble, over each other."""
    if all(member.response is None for member in run.members):
        raise FigureError("Expected an ensemble with a filter in a member (got none).")
    voting = sum(m.weight > 0 for m in run.members)
    return Plate(
        "members",
        lambda: member_filters(run),
        "The filters of the members",
        "What each model of the ensemble learned, its first filter as the mean over its channels, "
        "with the largest magnitude 1. The larger the weight, the thicker the line; models without "
        "a vote are thin and grey. Where the curves agree, all found the same; where they differ, "
        f"they complement each other.{_spectrum_text(run)}",
        f"Responses of {len(run.members)} models against Laplacian eigenvalue, {voting} of them "
        "with a vote. " + gain_text(run),
    )


@in_style
def member_filters(run: RunRecord) -> Figure:
    """The first filters of the members of the first repeat over each other."""
    members = sorted((m for m in run.members if m.response is not None), key=lambda m: -m.weight)
    voting = [m for m in members if m.weight > 0][:COLOURED]
    title = "Filters of the members, mean over channels"
    figure, grid = new_figure(title, height=4.3 + 0.15 * len(voting), width=NARROW)
    axes = grid[0, 0]
    _draw_density(axes, run)
    end = _largest_eigenvalue(run)
    rest = [m for m in members if m not in voting]
    thin: dict[str, Any] = {"color": GREY, "lw": 0.7, "alpha": 0.6}
    for index, member in enumerate(rest):
        label = "others" if index == 0 else None
        axes.plot(member.eigenvalues, _scaled(member, end), **thin, label=label)
    for index, (member, shade) in enumerate(zip(voting, colours(len(voting)), strict=True)):
        style = {"color": shade, "ls": LINES[index % len(LINES)], "lw": 1.0 + 3.0 * member.weight}
        label = f"{plain(member.name, 30)}, weight {member.weight:.2f}"
        axes.plot(member.eigenvalues, _scaled(member, end), **style, label=label)
    _show_inside([axes], end)
    _finish_spectrum(axes, _outliers_of(run), cover=is_cover(run))
    axes.set_ylabel("response, largest magnitude 1")
    return figure


def _scaled(member: MemberRecord, end: float) -> np.ndarray:
    """A response with largest magnitude 1 where the graph has eigenvalues, up to the last one.

    Members scale their signals as they like.
    """
    assert member.response is not None
    assert member.eigenvalues is not None
    inside = np.abs(member.response[member.eigenvalues <= max(end, member.eigenvalues[1])])
    return member.response / max(float(inside.max()), 1e-12)


def _largest_eigenvalue(run: RunRecord) -> float:
    """Where the spectrum of the graph ends, bulk or not; 2 where its density is not known."""
    if run.data.density is None:
        return 2.0
    lam, density = run.data.density
    present = lam[np.nan_to_num(density) > 0.02 * density_top(lam, density)]
    bulk = float(present.max()) if len(present) else 2.0
    return max(bulk, *_outliers_of(run).tolist(), 0.0)


def _outliers_of(run: RunRecord) -> np.ndarray:
    """The eigenvalues outside the bulk; none where they are not known."""
    return np.zeros(0) if run.data.outliers is None else run.data.outliers


def _draw_filter(axes: Axes, record: FilterRecord, others: Sequence[FilterRecord]) -> None:
    for index, other in enumerate(others):
        label = "mean of another repeat" if index == 0 else None
        curve = mean_response(other.response)
        axes.plot(other.eigenvalues, curve, color=ORANGE, ls="--", lw=1, alpha=0.5, label=label)
    if record.channels > MANY:
        _draw_band(axes, record)
        return
    lam, response = record.eigenvalues, align_signs(record.response)[0]
    several = record.channels > 1
    for index, channel in enumerate(response if several else ()):
        label = f"each of {record.channels} channels" if index == 0 else None
        axes.plot(lam, channel, color=SKY, lw=1.1, label=label)
    name = "their mean" if several else "response"
    axes.plot(lam, response.mean(axis=0), color=NAVY, lw=2.5, label=name)


def _show_inside(panels: Iterable[Axes], largest: float) -> tuple[float, float]:
    """One scale by the values inside the spectrum: beyond it a polynomial can take any value."""
    inside = [
        np.asarray(line.get_ydata())[np.asarray(line.get_xdata()) <= largest + 0.02]
        for axes in panels
        for line in axes.lines
    ]
    values = np.nan_to_num(np.concatenate([v.ravel() for v in inside] + [np.zeros(1)]))
    low, high = float(values.min()), float(values.max())
    margin = 0.08 * (high - low) or 1.0
    for axes in panels:
        axes.set_ylim(low - margin, high + margin)
    return low - margin, high + margin


def _finish_spectrum(axes: Axes, outliers: np.ndarray, *, cover: bool = False) -> None:
    """Axes, notes, needles and legend of a figure of responses."""
    axes.axhline(0, color=GREY, lw=0.8)
    spectrum_axis(axes, label=COVER_AXIS if cover else AXIS)
    axes.set_ylabel("response g(λ)")
    texts = COVER_ENDS if cover else ENDS
    for x, text, side in zip((0.02, 1.98), texts, ("left", "right"), strict=True):
        across = axes.get_xaxis_transform()
        axes.text(x, 0.99, text, ha=side, va="top", color=GREY, fontsize=9, transform=across)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.09 * (high - low))  # room for the two notes
    _mark_outliers(axes, outliers)
    lengths = sorted(map(len, axes.get_legend_handles_labels()[1]))
    columns = 2 if sum(lengths[-2:]) <= ROW else 1  # where the names are short enough
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=columns)


def _draw_density(axes: Axes, run: RunRecord) -> None:
    """The spectral density of the graph behind the curves, on its own scale without numbers."""
    if run.data.density is None:
        return
    lam, density = run.data.density
    density = np.nan_to_num(density)
    behind = axes.twinx()
    behind.fill_between(lam, density, color=PALE, lw=0)
    behind.set_ylim(0, 1.35 * density_top(lam, density))
    behind.set_yticks([])
    behind.set_ylabel("density of the graph's eigenvalues", color=GREY, fontsize=8)
    behind.grid(False)
    behind.set_zorder(axes.get_zorder() - 1)
    axes.patch.set_visible(False)
    axes.fill_between([], [], color=PALE, label="spectrum of the graph")


def _mark_outliers(axes: Axes, outliers: np.ndarray) -> None:
    """A needle at each eigenvalue outside the bulk: a density does not show so few."""
    if len(outliers) == 0:
        return
    limits = axes.get_ylim()
    across: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "color": "black"}
    axes.vlines(outliers, 0, NEEDLE, lw=1.2, **across)
    heads = np.full(len(outliers), NEEDLE)
    label = outliers_text(outliers).partition(" (")[0]
    axes.plot(outliers, heads, "o", ms=3.5, label=label, **across)
    axes.set_ylim(limits)


@in_style
def density(run: RunRecord) -> Figure:
    """The spectral density of the graph."""
    if run.data.density is None:
        raise FigureError("Expected the spectral density of the graph in the record (got none).")
    lam, values = run.data.density
    few = _outliers_of(run)
    height = 3.2 + 0.3 * (len(few) > 0)
    figure, grid = new_figure("Spectral density of the graph", height=height, width=NARROW)
    axes = grid[0, 0]
    axes.fill_between(lam, values, color=SKY, alpha=0.5, lw=0)
    axes.plot(lam, values, color=NAVY)
    usual = "Laplacian eigenvalue λ   (0 smooth, 2 rough)"
    spectrum_axis(axes, label=COVER_AXIS if is_cover(run) else usual)
    axes.set_ylabel("share of eigenvalues per unit")
    top = density_top(lam, values)
    axes.set_ylim(0, 1.05 * top)
    if np.nan_to_num(values).max() > 1.05 * top:
        axes.text(
            0.99, 0.98, "narrow peaks are cut off", transform=axes.transAxes, ha="right", va="top",
            color=GREY, fontsize=9,
        )  # fmt: skip
    _mark_outliers(axes, few)
    if len(few):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return figure


def basis_plate(run: RunRecord) -> Plate:
    """The path of a and b over training, and the weight functions at its ends."""
    if run.history is None or not run.history.has("a", "b"):
        raise FigureError(f"Expected the history of a and b (got none for {run.model!r}).")
    learned = run.filters[0].learned if run.filters else {}
    start = run.filters[0].start if run.filters else {}
    ends = ""
    if {"a", "b"} <= learned.keys() and {"a", "b"} <= start.keys():
        ends = (
            f" It moved from ({start['a']:z.2f}, {start['b']:z.2f}) to "
            f"({learned['a']:z.2f}, {learned['b']:z.2f})."
        )
    return Plate(
        "basis_path",
        lambda: basis_path(run),
        "The path of the basis",
        "Two learned numbers, a and b, define the polynomial basis. Above: their path from the "
        "start (circle) to the epoch that was kept (square); crosses mark bases that have a name. "
        "Below: the weight function of the basis at these two points. The basis resolves the "
        f"spectrum best where the weight is large.{_first_of(run)}",
        f"Path of the basis parameters a and b over training, and their weight functions.{ends}",
    )


def _first_of(run: RunRecord) -> str:
    """Which filter the history follows, where there is a stack of them."""
    what = "blocks" if len({record.edge_type for record in run.filters}) == 1 else "filters"
    return f" This is the first of {len(run.filters)} {what}." if is_stack(run) else ""


@in_style
def basis_path(run: RunRecord) -> Figure:
    """The path of (a, b) over training, and the weight functions at its two ends."""
    history = run.history
    assert history is not None
    figure, grid = new_figure(
        f"How the basis was learned{', block 1' * is_stack(run)}", height=7.2, width=NARROW, rows=2
    )
    plane, weights = grid[:, 0]
    first, *others = [r for r in history.repeats if history.of(r).has("a", "b")]
    for index, repeat in enumerate(others):
        rows = history.of(repeat)
        label = "other repeats" if index == 0 else None
        plane.plot(rows["a"], rows["b"], color=ORANGE, lw=1, alpha=FAINT, label=label)
    rows = history.of(first)
    there = np.isfinite(rows["a"]) & np.isfinite(rows["b"])
    a, b = rows["a"][there], rows["b"][there]
    plane.plot(a, b, color=NAVY, lw=1.5)
    kept = run.repeats[min(first, len(run.repeats) - 1)].best_epoch
    best = int(np.argmin(np.abs(rows["epoch"][there] - kept)))
    plane.plot(a[0], b[0], "o", color=NAVY, mfc="white", ms=8, label="start")
    plane.plot(a[best], b[best], "s", color=NAVY, ms=7, label="best epoch")
    _name_special_points(plane)
    plane.set_title("Path in the plane", loc="left")
    plane.set_xlabel("a")
    plane.set_ylabel("b")
    plane.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=3, columnspacing=1)
    _draw_weights(weights, (a[0], b[0]), (a[best], b[best]))
    return figure


def _name_special_points(axes: Axes) -> None:
    for name, (a, b) in SPECIAL.items():
        axes.plot(a, b, "+", color=GREY, ms=9, mew=1.5)
        left = a < 0
        axes.annotate(
            name, (a, b), xytext=(6 if left else -6, 5), textcoords="offset points",
            color=GREY, fontsize=8, ha="left" if left else "right",
        )  # fmt: skip
    low_a, high_a = axes.get_xlim()
    low_b, high_b = axes.get_ylim()
    axes.set_xlim(min(low_a, -0.75), max(high_a, 0.75))
    axes.set_ylim(min(low_b, -0.75), max(high_b, 0.85))


def _draw_weights(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    lam = np.linspace(0.005, 1.995, 400)
    inner = (lam > 0.08) & (lam < 1.92)  # a weight with a < 0 or b < 0 is unbounded at the ends
    top = 0.0
    for (a, b), name, line, colour in ((start, "start", "--", ORANGE), (end, "best", "-", NAVY)):
        curve = jacobi_weight(lam, a, b)
        top = max(top, float(curve[inner].max()))
        axes.plot(lam, curve, line, color=colour, label=f"{name}: a={a:z.2f}, b={b:z.2f}")
    axes.set_ylim(0, 1.2 * top)
    spectrum_axis(axes, label="eigenvalue λ = 1 − x")
    axes.set_ylabel("weight (integral 1)")
    axes.set_title("Weight (1−x)ᵃ(1+x)ᵇ", loc="left")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=1)


def amplitude_plate(run: RunRecord) -> Plate:
    """The norm of the filter over training, and the change of its waveform."""
    if run.path is None:
        raise FigureError("Expected the path of the filter, filter_path.npz (got none).")
    return Plate(
        "amplitude_waveform",
        lambda: amplitude_waveform(run),
        "Amplitude and waveform",
        "Above: the amplitude, which is the norm of the filter. Below: the waveform, which is the "
        "shape of the filter whatever its amplitude, as the distance from the shape at the last "
        "epoch. If the upper curve still grows after the lower curve has reached zero, the model "
        f"is over-passing: its filter gets stronger without changing shape.{_first_of(run)}",
        "Norm of the filter against epoch, and distance of its waveform from the last one.",
    )


@in_style
def amplitude_waveform(run: RunRecord) -> Figure:
    """The norm of the filter over training, and the distance of its waveform from the last one."""
    assert run.path is not None
    title = f"Amplitude and waveform of the filter{', block 1' * is_stack(run)}"
    figure, grid = new_figure(title, height=5.6, width=NARROW, rows=2)
    upper, lower = grid[:, 0]
    filters = spectral_coordinates(run.path.beta, np.linspace(0, 2, 101))
    if run.history is not None and run.history.has("amplitude"):
        first, *others = run.history.repeats
        for index, repeat in enumerate(others):
            rows = run.history.of(repeat)
            label = "other repeats" if index == 0 else None
            upper.plot(rows["epoch"], rows["amplitude"], color=SKY, lw=1, alpha=0.6, label=label)
        rows, label = run.history.of(first), "first repeat" if others else None
        upper.plot(rows["epoch"], rows["amplitude"], color=NAVY, label=label)
        upper.set_ylabel("norm ‖g‖")
    else:  # not the norm, which depends on the basis
        upper.plot(run.path.epochs, np.sqrt((filters**2).sum(axis=2).mean(axis=1)), color=NAVY)
        upper.set_ylabel("root mean square of g(λ)")
    upper.set_title("Amplitude", loc="left")
    lower.plot(run.path.epochs, waveform_distance(filters), color=NAVY)
    lower.set_title("Waveform", loc="left")
    lower.set_ylabel("distance from the last")
    for axes in (upper, lower):
        axes.set_ylim(bottom=0)
        axes.set_xlabel("epoch")
        axes.axvline(run.repeats[0].best_epoch, color=ORANGE, ls=":", lw=1.5, label="best epoch")
    handles, labels = upper.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    return figure


def compared_filters_plate(runs: Sequence[RunRecord]) -> Plate:
    """The mean responses of several runs in one figure; runs without a filter are left out."""
    drawn = [run for run in runs if run.filters]
    if not drawn:
        raise FigureError("Expected at least one run with a filter (got none).")
    absent = ", ".join(run.name for run in runs if not run.filters)
    notes = [
        " Of models with several layers, the first layer is shown."
        if any(len(run.filters) > 1 for run in drawn)
        else "",
        _spectrum_text(drawn[0]) if share_graph(drawn) else "",
        f" Without a filter: {absent}." if absent else "",
    ]
    names = ", ".join(f"{run.name} ({model_name(run)})" for run in drawn)
    return Plate(
        "compare_filters",
        lambda: compare_filters(runs),
        "Learned filters",
        "The response of the first repeat of each run, mean over its channels, from signals that "
        f"neighbours share (0) to signals that alternate between neighbours (2).{''.join(notes)}",
        f"Learned responses against Laplacian eigenvalue of {names}.",
    )


def share_graph(runs: Sequence[RunRecord]) -> bool:
    """Whether all runs are on the same graph, so that its spectrum belongs to all."""
    return len({run.data.fingerprint for run in runs}) == 1


@in_style
def compare_filters(runs: Sequence[RunRecord]) -> Figure:
    """The mean responses of several runs in one figure; runs without a filter are left out.

    A run has the same colour as in the figure of the scores of the same runs.
    """
    shades = colours(len(runs))
    drawn = [(run, shade) for run, shade in zip(runs, shades, strict=True) if run.filters]
    title = "Learned filters, mean over channels"
    figure, grid = new_figure(title, height=3.9 + 0.15 * len(drawn), width=NARROW)
    axes = grid[0, 0]
    outliers = np.zeros(0)
    if share_graph([run for run, _ in drawn]):
        _draw_density(axes, drawn[0][0])
        outliers = _outliers_of(drawn[0][0])
    for index, (run, colour) in enumerate(drawn):
        record = run.filters[0]
        called = filter_names(run)[0]
        label = plain(run.name, 34) + (f" ({plain(called, 24)})" if called else "")
        line = LINES[index % len(LINES)]
        axes.plot(
            record.eigenvalues, mean_response(record.response), color=colour, ls=line, label=label
        )
    _finish_spectrum(axes, outliers, cover=all(is_cover(run) for run, _ in drawn))
    return figure
