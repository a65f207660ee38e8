"""What was learned and how well it works, in words.

A filter becomes a short phrase by rules that a reader can check against the figure; a score becomes
text with its interval. Knows numbers, not HTML.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from longnn.records import FilterRecord, MemberRecord, RunRecord, SplitRecord, Summary
from longnn.registry import MODELS
from longnn.report._responses import mean_response
from longnn.report._stack import is_stack, stack_text

FLAT = 0.75  # smallest over largest magnitude; above it a filter is all-pass
MILD = 0.5  # the same ratio; above it a filter is mild
LEVELS = (0.4, 0.6)  # of the range: a band ends below the first and begins above the second
NARROW = 0.1  # a dip or bump narrower than this (in eigenvalues) is a ripple, not a band
DEAD = 0.01  # channels below this share of the strongest are ignored
INVERTED = 0.1  # share of the peak that the other sign must reach to be mentioned
LOPSIDED = (
    0.25  # relative difference of the two halves of an interval; above it both bounds are given
)
FEW = 30  # test nodes; below it a count says more than a per cent
NAMED = 10  # classes or eigenvalues listed in a sentence
AGREEMENT = 2 / 3  # share of the channels that must be of one kind to name the filter

Bands = list[tuple[bool, float, float]]  # (passes?, from, to), along the spectrum

_KINDS = {
    (True,): "all-pass",
    (True, False): "low-pass",
    (False, True): "high-pass",
    (False, True, False): "band-pass",
    (True, False, True): "band-stop",
}

METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro-F1",
    "roc_auc": "ROC AUC",
    "average_precision": "average precision",
    "r2": "R²",
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
}
PERCENT = ("accuracy", "balanced_accuracy", "macro_f1", "roc_auc", "average_precision")
#: Scores that are better when they are smaller.
LOWER_IS_BETTER = ("mae", "rmse")
PARTS = {"train": "training", "val": "validation", "test": "test"}


def describe_filter(eigenvalues: ArrayLike, response: ArrayLike) -> str:
    """A learned filter in words.

    The magnitude of each channel decides its kind. Where it is above and below the middle of its
    range decides between low-pass, high-pass, band-pass, band-stop and comb; a nearly flat channel
    is all-pass. The peak, its height and the inverted frequencies are those of the mean over the
    channels of the most frequent kind. (The amplitude of a filter is something else: its norm.)

    Args:
        eigenvalues: (points,) increasing in [0, 2].
        response: (points,) or (channels, points).

    >>> lam = np.linspace(0, 2, 101)
    >>> describe_filter(lam, 0.8 * np.exp(-10 * (lam - 0.1) ** 2))
    'low-pass, peak at 0.1, height 0.8'
    >>> describe_filter(lam, 1 - 0.7 * lam)
    'low-pass, peak at 0, height 1, inverts high frequencies (-0.4 at 2)'
    """
    grid = np.asarray(eigenvalues, dtype=np.float64)
    values = np.atleast_2d(np.asarray(response, dtype=np.float64))
    if grid.ndim != 1 or len(grid) < 2 or values.ndim != 2 or values.shape[1] != len(grid):
        raise ValueError(
            "Expected `response` of shape (points,) or (channels, points), with two points or "
            f"more (got {np.shape(response)} over {np.shape(eigenvalues)})."
        )
    if not np.isfinite(values).all():
        return "not finite: training diverged"
    strength = np.abs(values).max(axis=1)
    if strength.max(initial=0.0) < 1e-9:
        return "zero: nothing passes"
    values = values[strength >= DEAD * strength.max()]
    bands = [_bands(grid, channel) for channel in np.abs(values)]
    kinds = [_KINDS.get(tuple(passes for passes, _, _ in found), "comb") for found in bands]
    kind, count = Counter(kinds).most_common(1)[0]
    if count < AGREEMENT * len(kinds):
        return ", ".join([_mixture(kinds), *_peak(grid, values), *_signs(grid, values)])
    chosen = [index for index, found in enumerate(kinds) if found == kind]
    values = values[chosen]
    phrase = _shape(kind, values, [bands[index] for index in chosen])
    if count < len(kinds):
        phrase = f"{phrase} ({count} of {len(kinds)} channels)"
    peak = _peak(grid, values)
    if kind in ("all-pass", "band-pass", "band-stop"):  # the peak says nothing new
        peak = peak[1:]
    return ", ".join([phrase, *peak, *_signs(grid, values)])


def describe_cover_filter(eigenvalues: ArrayLike, response: ArrayLike) -> str:
    r"""A filter on the double cover of a directed graph in words.

    Its eigenvalues are 1 - s and 1 + s for the singular values s of the arcs: no signal is smooth
    or alternating there. What has a meaning are the two parts of
    :math:`g(1 \mp s) = g_{even}(s) \pm g_{odd}(s)`: the even one joins nodes with common targets,
    or with common sources, the odd one joins the two ends of an arc. Their shares are those of
    :math:`\int g^2 ds`, over all channels.

    Args:
        eigenvalues: (points,) from 0 to 2, symmetric about 1.
        response: (points,) or (channels, points).

    >>> lam = np.linspace(0, 2, 101)
    >>> describe_cover_filter(lam, 1 - lam)
    '100 % odd (along arcs), peak at singular value 1, height 1'
    >>> describe_cover_filter(lam, 2 + 0.5 * (1 - lam))
    '98 % even (common targets or sources), 2 % odd (along arcs), peak at singular value 1,
    height 2.5'
    """
    grid = np.asarray(eigenvalues, dtype=np.float64)
    values = np.atleast_2d(np.asarray(response, dtype=np.float64))
    if not np.isfinite(values).all():
        return "not finite: training diverged"
    mirrored = values[:, ::-1]
    power = {
        "even (common targets or sources)": float(((values + mirrored) ** 2).sum()),
        "odd (along arcs)": float(((values - mirrored) ** 2).sum()),
    }
    total = sum(power.values())
    if total < 1e-18:
        return "zero: nothing passes"
    shares = sorted(power.items(), key=lambda item: -item[1])
    shown = [f"{100 * p / total:.0f} % {name}" for name, p in shares if p >= 0.005 * total]
    magnitude = np.abs(values).mean(axis=0)
    place = abs(1 - grid[int(np.argmax(magnitude))])
    peak = [f"peak at singular value {round(float(place), 1):g}"]
    if magnitude.min() >= FLAT * magnitude.max():  # a plateau has no peak
        peak = []
    return ", ".join([*shown, *peak, f"height {number_text(magnitude.max())}"])


def is_cover(run: RunRecord) -> bool:
    """Whether the filters of a run act on the double cover of a directed graph."""
    return run.config.get("direction") == "cover"


def _bands(grid: np.ndarray, magnitude: np.ndarray) -> Bands:
    """The pass and stop bands of a channel, with hysteresis and without ripples."""
    low, high = magnitude.min(), magnitude.max()
    if low >= FLAT * high:
        return [(True, float(grid[0]), float(grid[-1]))]
    states = _states((magnitude - low) / (high - low))
    peak = int(np.argmax(magnitude))
    while True:
        runs = [list(run) for _, run in groupby(range(len(states)), states.__getitem__)]
        inner = [float(grid[run[0] - 1] + grid[run[0]]) / 2 for run in runs[1:]]
        edges = [float(grid[0]), *inner, float(grid[-1])]
        widths = [end - start for start, end in pairwise(edges)]
        ripples = [k for k, run in enumerate(runs) if widths[k] < NARROW and peak not in run]
        if not ripples:
            return [(states[run[0]], edges[k], edges[k + 1]) for k, run in enumerate(runs)]
        for i in runs[min(ripples, key=widths.__getitem__)]:
            states[i] = not states[i]


def _states(level: np.ndarray) -> list[bool]:
    """Pass or stop at each point; a change counts from where the level crosses one half."""
    states: list[bool] = []
    state = bool(level[0] >= 0.5)
    for i, value in enumerate(level):
        changed = value <= LEVELS[0] if state else value >= LEVELS[1]
        if changed:
            state = not state
            for j in range(i - 1, -1, -1):
                if (level[j] >= 0.5) != state:
                    break
                states[j] = state
        states.append(state)
    return states


def _shape(kind: str, values: np.ndarray, bands: list[Bands]) -> str:
    """The kind of filter and the place of its band."""
    if kind == "comb":
        count = int(np.median([sum(passes for passes, _, _ in found) for found in bands]))
        return f"comb, {count} pass bands"
    magnitude = np.abs(values).mean(axis=0)
    mild = kind != "all-pass" and magnitude.min() > MILD * magnitude.max()
    kind = f"mild {kind}" if mild else kind
    if kind.endswith(("band-pass", "band-stop")):
        # three bands: the one in the middle is the one that names the filter
        return f"{kind}, centre {np.median([sum(found[1][1:]) / 2 for found in bands]):.1f}"
    return kind


def _mixture(kinds: list[str]) -> str:
    found = Counter(kinds).most_common()
    named = [f"{count} {kind}" for kind, count in found[:3]]
    rest = sum(count for _, count in found[3:])
    named += [f"{rest} other"] if rest else []
    return f"mixed ({len(kinds)} channels: {', '.join(named)})"


def _peak(grid: np.ndarray, values: np.ndarray) -> list[str]:
    magnitude = np.abs(values).mean(axis=0)
    top = grid[magnitude >= 0.999 * magnitude.max()]  # of a plateau, the end of the spectrum
    place = top[-1] if grid[-1] in top and grid[0] not in top else top[0]
    return [f"peak at {round(float(place), 1):g}", f"height {number_text(magnitude.max())}"]


def _signs(grid: np.ndarray, values: np.ndarray) -> list[str]:
    """Which frequencies the filter inverts, if any."""
    mean = mean_response(values)
    threshold = INVERTED * np.abs(mean).max()
    if mean.min() >= -threshold:
        return []
    if mean.max() <= threshold:
        return ["negative throughout"]
    lowest = int(np.argmin(mean))
    place = float(grid[lowest])
    region = "low" if place < 2 / 3 else "high" if place > 4 / 3 else "middle"
    return [f"inverts {region} frequencies ({number_text(mean[lowest])} at {round(place, 1):g})"]


def number_text(value: float) -> str:
    """Two significant digits, without exponents in everyday sizes.

    >>> [number_text(value) for value in (0.8, 0.0341, 12.3, 1234.5)]
    ['0.8', '0.034', '12', '1234']
    """
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.2g}"


def outliers_text(outliers: np.ndarray) -> str:
    """How many eigenvalues lie outside the bulk, and what they stand for.

    >>> outliers_text(np.array([0.2, 0.25]))
    '2 eigenvalues outside the bulk (communities)'
    >>> outliers_text(np.array([1.9]))
    '1 eigenvalue outside the bulk (bipartite-like)'
    """
    low = int((outliers < 1).sum())
    meaning = {0: " (bipartite-like)", len(outliers): " (communities)"}.get(low, "")
    return f"{len(outliers)} eigenvalue{'s' * (len(outliers) != 1)} outside the bulk{meaning}"


def score_text(value: float, metric: str = "accuracy", *, digits: int = 1) -> str:
    """One score with its unit; ``digits`` of per cent, and two more of a plain number.

    >>> score_text(0.8857), score_text(-0.0001, "r2"), score_text(float("nan"))
    ('88.6 %', '0.000', 'n/a')
    """
    if not math.isfinite(value):
        return "n/a"
    return f"{100 * value:.{digits}f} %" if metric in PERCENT else f"{value:z.{digits + 2}f}"


def interval_text(
    summary: Summary | Mapping[str, Any],
    *,
    metric: str = "accuracy",
    unit: str = "split",
    short: bool = False,
) -> str:
    """A mean score with its 95 % interval.

    Args:
        summary: a summary, or the mapping of mean, low, high, std and count in a record.
        metric: decides between per cent and a plain number.
        unit: what was repeated.
        short: omit what the interval is.

    >>> interval_text(Summary(0.886, 0.882, 0.890, 0.006, 10))
    '88.6 % ± 0.4 (95 % interval over 10 splits)'
    >>> interval_text(Summary(0.886, 0.886, 0.886, 0.0, 1))
    '88.6 % (one split)'
    """
    if isinstance(summary, Mapping):
        summary = Summary(**summary)
    mean = score_text(summary.mean, metric)
    if summary.count == 1:
        return mean if short else f"{mean} (one {unit})"
    scale, digits = (100, 1) if metric in PERCENT else (1, 3)
    below, above = scale * (summary.mean - summary.low), scale * (summary.high - summary.mean)
    over = f"over {summary.count} {unit}s"
    if not math.isfinite(below + above):
        return mean if short else f"{mean} ({over})"
    if abs(below - above) <= max(10.0**-digits, LOPSIDED * (below + above) / 2):
        text = f"{mean} ± {max(below, above):.{digits}f}"
        return text if short else f"{text} (95 % interval {over})"
    bounds = f"{scale * summary.low:.{digits}f} to {scale * summary.high:.{digits}f}"
    return f"{mean} ({bounds})" if short else f"{mean} (95 % interval {bounds}, {over})"


def model_name(run: RunRecord) -> str:
    """The name of the model as papers write it, or how many were joined."""
    if run.portfolio:
        return f"Ensemble of {len(run.portfolio)} models"
    return MODELS[run.model].title if run.model in MODELS else run.model


def metric_name(metric: str) -> str:
    """The name of a score as readers know it."""
    return METRICS.get(metric, metric.replace("_", " "))


def protocol_name(run: RunRecord, split: SplitRecord) -> str:
    """How a split was made; where nodes have no single class, none is balanced over classes."""
    drawn = split.protocol in ("published", "stratified")
    return "random" if drawn and run.data.task != "classification" else split.protocol


def protocols_text(run: RunRecord) -> str:
    """The protocols of all splits: "published", "fixed and own"."""
    return " and ".join(sorted({protocol_name(run, repeat.split) for repeat in run.repeats}))


def splits_text(run: RunRecord) -> str:
    """How many splits of which protocol: "10 published splits", "one stratified split"."""
    splits = {(repeat.split.protocol, repeat.split.seed) for repeat in run.repeats}
    name, count = protocols_text(run), len(run.repeats)
    if count == 1:
        return f"one {name} split"
    if len(splits) == count:
        return f"{count} {name} splits"
    return f"{count} runs on {len(splits)} {name} split{'s' * (len(splits) > 1)}"


def result_text(run: RunRecord) -> tuple[str, str]:
    """The name of the score and its value: ("test accuracy", "88.6 % ± 0.4")."""
    few = right_text(run)
    if few:
        return "test nodes", few
    for part in ("test", "val", "train"):
        summary = run.score(part)
        if summary is not None:
            what = f"{PARTS[part]} {metric_name(run.metric)}"
            return what, interval_text(summary, metric=run.metric, short=True)
    return metric_name(run.metric), "not scored"


def right_text(run: RunRecord) -> str:
    """ "9 of 10 right" for one repeat on few test nodes, where per cents would mislead; else ""."""
    confusion = run.repeats[0].confusion
    if len(run.repeats) > 1 or run.metric != "accuracy" or confusion is None:
        return ""
    nodes = int(np.nan_to_num(confusion).sum())
    return f"{int(confusion.trace())} of {nodes} right" if 0 < nodes < FEW else ""


def headline(run: RunRecord) -> str:
    """The result in one sentence."""
    what, score = result_text(run)
    preposition = "on" if len(run.repeats) == 1 else "over"
    return f"{model_name(run)} on {run.data.name}: {what} {score} {preposition} {splits_text(run)}"


def filter_text(found: FilterRecord) -> str:
    """A filter in words: those of the record, or made from its response."""
    return found.words or describe_filter(found.eigenvalues, found.response)


def learned_text(run: RunRecord) -> list[str]:
    """What was learned, one sentence per filter of the first repeat; a stack has one for all."""
    turned = _phase_line(run)
    if not run.filters:
        none = f"{model_name(run)} has no polynomial filter, so there is no shape to show."
        return [none, *turned]
    lines = []
    leader = leading(run)
    whose = "" if leader is None else f" of the leading model ({leader.name})"
    if is_stack(run):
        return [*stack_text(run, [filter_text(found) for found in run.filters], whose), *turned]
    for index, found in enumerate(run.filters):
        words = filter_text(found)
        several = len(run.filters) > len({other.edge_type for other in run.filters})
        layer = f"filter of layer {index + 1}" if several else "filter"
        layer += f" for edges of type {found.edge_type}" if found.edge_type else ""
        lines.append(f"The {layer}{whose} is {words}.")
        if run.data.outliers is not None and len(run.data.outliers):
            lines.append(_outlier_line(found, run.data.outliers))
        if {"a", "b"} <= found.learned.keys():
            end, start = _basis_text(found.learned), ""
            if {"a", "b"} <= found.start.keys():
                start = _basis_text(found.start)
            if start == end:
                lines.append(f"Its basis stayed at {end}.")
            else:
                lines.append(f"Its basis moved {f'from {start} ' if start else ''}to {end}.")
    return [*lines, *turned]


def _phase_line(run: RunRecord) -> list[str]:
    """The learned phase of the first repeat, if there is one."""
    end = run.repeats[0].phase
    if end is None:
        return []
    start = float(run.config.get("phase", 0.25))  # a record leaves the usual one out
    moved = f"moved from {start:.2f} to {end:.3f}"
    return [f"The phase of an arc {moved} turns (0 is undirected, 0.25 a right angle)."]


def leading(run: RunRecord) -> MemberRecord | None:
    """The member of the first repeat whose filters are shown: the largest weight of those with."""
    filtering = [m for m in run.members if m.response is not None and m.weight > 0]
    return max(filtering, key=lambda m: m.weight) if filtering else None


def _outlier_line(found: FilterRecord, outliers: np.ndarray) -> str:
    """The response at the eigenvalues outside the bulk, too few for the rules to see."""
    there = np.interp(outliers, found.eigenvalues, mean_response(found.response))
    many = "eigenvalue" if len(outliers) == 1 else f"{len(outliers)} eigenvalues"
    places, heights = _range_text(outliers), _range_text(there)
    return f"At the {many} outside the bulk ({places}), its response is {heights}."


def _range_text(values: np.ndarray) -> str:
    low, high = (number_text(float(value)) for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def _basis_text(values: Mapping[str, float]) -> str:
    return f"a = {values['a']:z.2f}, b = {values['b']:z.2f}"


def class_names(run: RunRecord, count: int) -> list[str]:
    """The names of ``count`` classes; their numbers where the record does not name as many."""
    given = run.data.classes
    return [given[k] if count == len(given) else str(k) for k in range(count)]


def untested(confusion: np.ndarray) -> set[int]:
    """The classes without test nodes: empty rows of a confusion matrix."""
    return {int(k) for k in np.flatnonzero(np.nan_to_num(confusion).sum(axis=1) == 0)}


def untested_text(run: RunRecord) -> str:
    """A sentence on classes without test nodes; empty if every repeat tests every class."""
    matrices = [repeat.confusion for repeat in run.repeats if repeat.confusion is not None]
    found = [untested(confusion) for confusion in matrices]
    if not any(found):
        return ""
    count, always = len(matrices[0]), set.intersection(*found)
    chosen = sorted(always or set.union(*found))
    shown = ", ".join(class_names(run, count)[k] for k in chosen[:NAMED])
    names = f"{shown} and {len(chosen) - NAMED} more" if len(chosen) > NAMED else shown
    if not always:
        repeats = f"In {sum(map(bool, found))} of {len(found)} repeats"
        return f"{repeats}, some classes have no test node: {names}."
    has, them = ("has", "it") if len(chosen) == 1 else ("have", "them")
    return (
        f"{len(chosen)} of {count} classes {has} no test node: {names}; "
        f"the scores say nothing about {them}."
    )


def split_notes(run: RunRecord) -> list[str]:
    """The notes on the splits, each once; untested classes are :func:`untested_text`'s."""
    return list(dict.fromkeys(note for repeat in run.repeats for note in repeat.split.notes))
