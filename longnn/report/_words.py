"""What a run learned and how well it works, as text: scores and their intervals, splits, filters.

Takes the words for a filter from ``_filters``. Knows records, not HTML.
"""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from longnn.metrics import metric_of
from longnn.records import FilterRecord, MemberRecord, RunRecord, SplitRecord, Summary
from longnn.registry import MODELS
from longnn.report._filters import describe_filter, mean_response, number_text

FEW = 30  # test nodes; below it a count says more than a per cent
DRAWN = 2  # filters that are drawn and described one by one; more are a stack
COUNTING = 3  # columns that a sentence names
NAMED = 10  # classes or eigenvalues listed in a sentence
#: What a split of a kind means for intervals.
EXCHANGEABLE = {
    **dict.fromkeys(
        ("own", "fixed"),
        "The split was given, not drawn: intervals and sets hold what they state for nodes like "
        "the validation nodes. If the split is by time, group or place, others may be farther off.",
    ),
    "time": "The split is by time: intervals and sets hold what they state for nodes of the time "
    "of the validation nodes. Later ones may be farther off.",
    "group": "The split is by groups, within which errors may go together: of few groups, more or "
    "fewer nodes than stated may lie in their intervals and sets.",
}
SETS = {"train": "training", "val": "validation", "test": "test"}


def score_text(value: float, metric: str = "accuracy", *, digits: int = 1) -> str:
    """One score with its unit; ``digits`` of per cent, and two more of a plain number.

    >>> score_text(0.8857), score_text(-0.0001, "r2"), score_text(float("nan"))
    ('88.6 %', '0.000', 'n/a')
    """
    if not math.isfinite(value):
        return "n/a"
    return f"{100 * value:.{digits}f} %" if metric_of(metric).share else f"{value:z.{digits + 2}f}"


def interval_text(summary: Summary, metric: str = "accuracy") -> str:
    """A mean score with its 95 % interval in brackets, where there is one.

    >>> interval_text(Summary(0.886, 0.882, 0.890, 0.006, 10))
    '88.6 % [88.2, 89.0]'
    """
    return score_text(summary.mean, metric) + _bounds_text(summary, metric)


def difference_text(gain: Summary, metric: str) -> str:
    """A difference of scores, in the same way.

    >>> difference_text(Summary(0.031, 0.010, 0.052, 0.02, 5), "accuracy")
    '3.1 points [1.0, 5.2]'
    """
    scale, digits = metric_of(metric).scale, metric_of(metric).digits
    points = metric_of(metric).points
    return f"{scale * gain.mean:z.{digits}f}{points}{_bounds_text(gain, metric)}"


def _bounds_text(summary: Summary, metric: str) -> str:
    """One split has an interval if one over its test nodes was computed."""
    if not math.isfinite(summary.low + summary.high):
        return ""
    if summary.count == 1 and summary.low == summary.high:
        return ""
    scale, digits = metric_of(metric).scale, metric_of(metric).digits
    return f" [{scale * summary.low:z.{digits}f}, {scale * summary.high:z.{digits}f}]"


def sentence(text: str) -> str:
    """A text with a capital in front."""
    return text[:1].upper() + text[1:]


def title_of(model: str) -> str:
    """The name of a model as papers write it."""
    return MODELS[model].title if model in MODELS else model


def model_name(run: RunRecord) -> str:
    """The name of the model as papers write it, or how many were joined."""
    return f"Ensemble of {len(run.portfolio)} models" if run.portfolio else title_of(run.model)


def protocol_name(run: RunRecord, split: SplitRecord) -> str:
    """How a split was made; where nodes have no single class, none is balanced over classes."""
    if split.protocol in ("time", "group"):
        return "time-ordered" if split.protocol == "time" else "grouped"
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
    # Without test nodes nothing says that masks are the same; seldom there are several sets.
    untested = not any(repeat.split.test for repeat in run.repeats)
    if run.over_nodes or (untested and {kind for kind, _ in splits} <= {"own", "time"}):
        return f"{count} runs on one {name} split"
    if len(splits) == count:
        return f"{count} {name} splits"
    return f"{count} runs on {len(splits)} {name} split{'s' * (len(splits) > 1)}"


def result_text(run: RunRecord) -> tuple[str, str]:
    """The name of the score and its value: ("test accuracy", "88.6 % [88.2, 89.0]")."""
    few = right_text(run)
    if few:
        return "test nodes", few
    for name in ("test", "val", "train"):
        summary = run.score(name)
        if summary is not None:
            what = f"{SETS[name]} {metric_of(run.metric).name}"
            return what, interval_text(summary, run.metric)
    return metric_of(run.metric).name, "not scored"


def right_text(run: RunRecord) -> str:
    """ "9 of 10 right" for one repeat on few test nodes, where per cents would mislead; else ""."""
    confusion = run.repeats[0].confusion
    if len(run.repeats) > 1 or "classes" not in metric_of(run.metric).headline or confusion is None:
        return ""
    nodes, right = int(np.nan_to_num(confusion).sum()), int(np.nan_to_num(confusion).trace())
    score = run.repeats[0].scores["test"].get("accuracy", math.nan)
    is_count = nodes > 0 and abs(right / nodes - score) < 1e-6  # where nodes have weights it is not
    return f"{right} of {nodes} right" if is_count and nodes < FEW else ""


def is_cover(run: RunRecord) -> bool:
    """Whether the filters of a run act on the double cover of a directed graph."""
    return run.config.get("direction") == "cover"


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


def filter_text(record: FilterRecord) -> str:
    """A filter in words: those of the record, or made from its response."""
    return record.words or describe_filter(record.eigenvalues, record.response)


#: What filters of a kind do, for readers who know no filters.
DEEDS = {
    "low-pass": "averages over neighbours",
    "high-pass": "looks at how a node differs from its neighbours",
    "band-pass": "looks at what changes over a few steps through the graph",
    "band-stop": "uses averages over neighbours and differences from them alike",
    "comb": "uses averages over neighbours and differences from them in turns",
    "all-pass": "takes a node's own columns as they are, whatever its neighbours have",
    "even": "compares nodes with common targets or common sources",
    "odd": "goes along the arcs",
}


def deed_of(words: str) -> str:
    """What a filter does in plain words; nothing where its words say no kind.

    >>> deed_of("mild low-pass (3 of 4 channels), peak at 0")
    "mostly averages over neighbours, but keeps much of a node's own"
    >>> deed_of("mixed (9 channels: 5 low-pass, 3 comb, 1 other), peak at 0")
    'averages over neighbours, among other things'
    >>> deed_of("98 % even (common targets or sources), 2 % odd (along arcs)")
    'mostly compares nodes with common targets or common sources'
    """
    kind = kind_of(words)
    first = next((name for name in DEEDS if name in kind), "")
    if kind == "mixed":
        most = re.search(r": \d+ ([\w-]+)", words)
        first = most[1] if most else ""
        known = first in DEEDS
        return f"{DEEDS[first]}, among other things" if known else "does several things at once"
    if first == "all-pass" or not first:
        return DEEDS.get(first, "")
    but = ", but keeps much of a node's own" if kind.startswith("mild") else ""
    return f"mostly {DEEDS[first]}{but}"


def plain_text(run: RunRecord) -> str:
    """What was learned, without numbers."""
    deeds = [deed_of(filter_text(record)) for record in run.filters]
    who = "The model" if leading(run) is None else "The leading model"
    if not run.filters:
        return f"{model_name(run)} has no polynomial filter, so there is no shape to show."
    if not all(deeds):
        return f"What {who[0].lower()}{who[1:]} does has no plain name; its numbers are below."
    types = dict(zip((record.edge_type for record in run.filters), deeds, strict=True))
    if len(types) > 1:  # of each the last block
        parts = (f"for edges of type {name} it {deed}" for name, deed in types.items())
        return sentence("; ".join(parts)) + "."
    groups = [deed for deed, _ in groupby(deeds)]
    if len(groups) == 1:
        times = "" if len(deeds) == 1 else f", in each of its {len(deeds)} filters"
        return f"{who} {deeds[0]}{times}."
    first, *rest = groups[:3]
    more = ", and so on" * (len(groups) > 3)
    return f"{who} first {first}; {'; '.join(f'then it {deed}' for deed in rest)}{more}."


def filter_rows(run: RunRecord) -> tuple[list[str], list[list[str]]]:
    """What was learned in numbers, one row per filter of the first repeat: columns and rows.

    Where a graph has eigenvalues outside the bulk, words are not about them: too few. So the
    response there has a column.
    """
    outliers = run.data.outliers
    few = outliers is not None and len(outliers) > 0
    rows = []
    for name, record in zip(filter_names(run), run.filters, strict=True):
        row = [name or "the filter", record.basis, str(record.degree)]
        row += [_basis_text(record.start), _basis_text(record.learned), filter_text(record)]
        if outliers is not None and few:
            there = np.interp(outliers, record.eigenvalues, mean_response(record.response))
            row.append(f"{_range_text(there)} at {_range_text(outliers)}")
        rows.append(row)
    columns = ["filter", "basis", "degree", "a, b at first", "a, b learned", "in words"]
    return columns + ["response outside the bulk"] * few, rows


def filter_words(run: RunRecord) -> str:
    """The filters of the first repeat in words: of few each, of a stack what its blocks do."""
    texts = [filter_text(record) for record in run.filters]
    if not is_stack(run):
        named = zip(filter_names(run), texts, strict=True)
        return "; ".join(f"{name}: {text}" if name else text for name, text in named) or "none"
    by_type: dict[str, list[str]] = {}
    for record, text in zip(run.filters, texts, strict=True):
        by_type.setdefault(record.edge_type, []).append(text)
    blocks = f"blocks{' and scores' * ends_on_scores(run)}"
    each = [
        f"{blocks}{f' for {name}' if name else ''}: {stack_words(words)}"
        for name, words in by_type.items()
    ]
    return ". ".join(each)


def is_stack(run: RunRecord) -> bool:
    """Whether a run has so many filters that they are shown as a ladder."""
    return len(run.filters) > DRAWN


def ends_on_scores(run: RunRecord) -> bool:
    """Whether the last filter of a stack acts on the scores, behind all blocks."""
    return bool(run.config.get("output_degree"))


def filter_names(run: RunRecord) -> list[str]:
    """What to call each filter: its layer or block where there are several, and its type of edges;
    the last one of a stack may act on the scores."""
    filters, layer = run.filters, "block" if is_stack(run) else "layer"
    types = len({record.edge_type for record in filters})
    layers = [f"{layer} {i + 1}" for i in range(len(filters) // max(types, 1))]
    if is_stack(run) and ends_on_scores(run):
        layers[-1] = "scores"
    elif len(layers) == 1:
        layers = [""]
    return [
        ", ".join(part for part in (layers[i // types], record.edge_type) if part)
        for i, record in enumerate(filters)
    ]


def ladder_order(run: RunRecord) -> str:
    """In which order the filters of a run come: by blocks, or by types of edges alone."""
    types = len(dict.fromkeys(record.edge_type for record in run.filters))
    return "block by block" if len(run.filters) > types else "type by type"


def kind_of(words: str) -> str:
    """The kind of a filter alone: the first of its words, without counts.

    >>> kind_of("mild low-pass (3 of 4 channels), peak at 0, height 1")
    'mild low-pass'
    """
    return re.split(r"[,:]| \(", words, maxsplit=1)[0]


def stack_words(words: Sequence[str]) -> str:
    """What the blocks keep, from the first to the last, from the words of each.

    >>> stack_words(["mixed (8 channels: 4 comb)", "low-pass, peak at 0", "low-pass, peak at 0.1"])
    '1 mixed; 2 to 3 low-pass'
    """
    parts, first = [], 1
    for kind, group in groupby(map(kind_of, words)):
        last = first + len(list(group)) - 1
        parts.append(f"{first if first == last else f'{first} to {last}'} {kind}")
        first = last + 1
    return "; ".join(parts)


def leading(run: RunRecord) -> MemberRecord | None:
    """The member of the first repeat whose filters are shown: the largest weight of those with."""
    filtering = [m for m in run.members if m.response is not None and m.weight > 0]
    return max(filtering, key=lambda m: m.weight) if filtering else None


def _range_text(values: np.ndarray) -> str:
    low, high = (number_text(float(value)) for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def _basis_text(values: Mapping[str, float]) -> str:
    return ", ".join(f"{values[key]:z.2f}" for key in ("a", "b") if key in values) or "fixed"


def mean_weights(run: RunRecord) -> dict[str, float]:
    """The mean weight of each member over the repeats, the largest first."""
    weights: dict[str, float] = {}
    for member in (m for repeat in run.repeats for m in repeat.members):
        weights[member.name] = weights.get(member.name, 0.0) + member.weight
    return {n: w / len(run.repeats) for n, w in sorted(weights.items(), key=lambda i: -i[1])}


def gain_text(run: RunRecord) -> str:
    """What joining gained over the best member, chosen by validation; empty for single models."""
    metric = metric_of(run.metric)
    pairs = []  # test scores of the best member and of all together
    for repeat in run.repeats:
        scored = [m for m in repeat.members if m.val is not None and m.test is not None]
        whole = repeat.scores.get("test", {}).get(run.metric)
        if scored and whole is not None:
            best = max(scored, key=lambda m: metric.sign * (m.val or 0.0))
            pairs.append((best.test or 0.0, whole))
    if not pairs:
        return ""
    gain = metric.sign * metric.scale * np.mean([whole - best for best, whole in pairs])
    alone, joined = (score_text(float(np.mean(s)), run.metric) for s in zip(*pairs, strict=True))
    voting = np.mean([sum(m.weight > 0 for m in r.members) for r in run.repeats])
    over = "" if len(pairs) == 1 else f", on average over {len(pairs)} repeats"
    return (
        f"{len(mean_weights(run))} models were trained, and {voting:.0f} of them vote. The best "
        f"one by validation has a test {metric.name} of {alone} alone; together they "
        f"have {joined} ({gain:+z.{metric.digits}f}{metric.points}){over}."
    )


def importance_text(run: RunRecord) -> str:
    """Which columns count most: those that do so beyond the chance of the draws."""
    most = [name for name, lost in run.importance.items() if lost.low > 0][:COUNTING]
    if not most:
        return "No column counts beyond chance alone." if run.importance else ""
    *others, last = most
    names = f"{', '.join(others)} and {last}" if others else last
    cost = difference_text(run.importance[most[0]], run.metric)
    return f"What counts most: {names}. Where {most[0]} is shuffled, the score loses {cost}."


def class_names(run: RunRecord, count: int) -> list[str]:
    """The names of ``count`` classes; their numbers where the record does not name as many."""
    given = run.data.classes
    return [given[k] if count == len(given) else str(k) for k in range(count)]


def covered_text(run: RunRecord) -> str:
    """How many test nodes have their answer in their interval or set, in one sentence."""
    each = [repeat.covered for repeat in run.repeats if repeat.covered is not None]
    if not each:
        return ""
    share, size = (float(np.mean([getattr(c, name) for c in each])) for name in ("share", "size"))
    what = f"interval (mean width {number_text(size)})"
    if run.data.task != "regression":
        what = f"set of plausible classes (mean size {size:.2f})"
    stated = f"{100 * each[0].stated:g} %"
    return f"{100 * share:.1f} % of the test nodes have their answer in their {stated} {what}."


def untested(confusion: np.ndarray) -> set[int]:
    """The classes without test nodes: empty rows of a confusion matrix."""
    return {int(k) for k in np.flatnonzero(np.nan_to_num(confusion).sum(axis=1) == 0)}


def untested_text(run: RunRecord) -> str:
    """A sentence on classes without test nodes; empty if every repeat tests every class."""
    matrices = [repeat.confusion for repeat in run.repeats if repeat.confusion is not None]
    empty = [untested(confusion) for confusion in matrices]
    if not any(empty):
        return ""
    count, always = len(matrices[0]), set.intersection(*empty)
    chosen = sorted(always or set.union(*empty))
    shown = ", ".join(class_names(run, count)[k] for k in chosen[:NAMED])
    names = f"{shown} and {len(chosen) - NAMED} more" if len(chosen) > NAMED else shown
    if not always:
        repeats = f"In {sum(map(bool, empty))} of {len(empty)} repeats"
        return f"{repeats}, some classes have no test node: {names}."
    has, them = ("has", "it") if len(chosen) == 1 else ("have", "them")
    return (
        f"{len(chosen)} of {count} classes {has} no test node: {names}; "
        f"the scores say nothing about {them}."
    )


def split_notes(run: RunRecord) -> list[str]:
    """The notes on the splits, each once; untested classes are :func:`untested_text`'s."""
    notes = dict.fromkeys(note for repeat in run.repeats for note in repeat.split.notes)
    shifted = shift_text(run)
    whose = {repeat.split.protocol for repeat in run.repeats if repeat.covered is not None}
    alike = dict.fromkeys(text for kind, text in EXCHANGEABLE.items() if kind in whose)
    return [*notes, *([shifted] if shifted else []), *alike]


def shift_text(run: RunRecord) -> str:
    """A sentence on class frequencies that probabilities follow; empty if no repeat is shifted."""
    shifts = [repeat.shift for repeat in run.repeats if repeat.shift is not None]
    if not shifts:
        return ""
    first = shifts[0]
    most, (train, val) = first.farthest, first.shares
    name = class_names(run, len(first.shift))[most]
    few = len(shifts) < len(run.repeats)
    start = f"In {len(shifts)} of {len(run.repeats)} repeats, classes" if few else "Classes"
    return (
        f"{start} are not as frequent among the validation nodes as among the training nodes "
        f"(class {name!r}: {100 * train[most]:.0f} % in training, {100 * val[most]:.0f} % in "
        "validation); probabilities follow the validation nodes. To keep those of training, use "
        "--set frequencies=train."
    )
