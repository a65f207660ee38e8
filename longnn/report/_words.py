"""What a run learned and how well it works, in sentences: scores, splits, filters.

Takes the words for a filter and for a score from others. Knows records, not HTML.
"""

from collections.abc import Mapping

import numpy as np

from longnn.metrics import metric_of
from longnn.records import FilterRecord, MemberRecord, RunRecord, SplitRecord
from longnn.registry import MODELS
from longnn.report._filter_words import describe_filter
from longnn.report._numbers import interval_text, metric_name, number_text
from longnn.report._responses import mean_response
from longnn.report._stack import is_stack, stack_text

FEW = 30  # test nodes; below it a count says more than a per cent
NAMED = 10  # classes or eigenvalues listed in a sentence
PARTS = {"train": "training", "val": "validation", "test": "test"}


def model_name(run: RunRecord) -> str:
    """The name of the model as papers write it, or how many were joined."""
    if run.portfolio:
        return f"Ensemble of {len(run.portfolio)} models"
    return MODELS[run.model].title if run.model in MODELS else run.model


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
    if len(run.repeats) > 1 or "classes" not in metric_of(run.metric).headline or confusion is None:
        return ""
    nodes = int(np.nan_to_num(confusion).sum())
    return f"{int(confusion.trace())} of {nodes} right" if 0 < nodes < FEW else ""


def headline(run: RunRecord) -> str:
    """The result in one sentence."""
    what, score = result_text(run)
    preposition = "on" if len(run.repeats) == 1 else "over"
    return f"{model_name(run)} on {run.data.name}: {what} {score} {preposition} {splits_text(run)}"


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


def filter_text(found: FilterRecord) -> str:
    """A filter in words: those of the record, or made from its response."""
    return found.words or describe_filter(found.eigenvalues, found.response)


def learned_text(run: RunRecord) -> list[str]:
    """What was learned, one sentence per filter of the first repeat; a stack has one for all."""
    if not run.filters:
        return [f"{model_name(run)} has no polynomial filter, so there is no shape to show."]
    lines = []
    leader = leading(run)
    whose = "" if leader is None else f" of the leading model ({leader.name})"
    if is_stack(run):
        return stack_text(run, [filter_text(found) for found in run.filters], whose)
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
    return lines


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
    notes = dict.fromkeys(note for repeat in run.repeats for note in repeat.split.notes)
    shifted = shift_text(run)
    return [*notes, *([shifted] if shifted else [])]


def shift_text(run: RunRecord) -> str:
    """A sentence on class frequencies that probabilities follow; empty if no repeat is shifted."""
    found = [repeat.shift for repeat in run.repeats if repeat.shift is not None]
    if not found:
        return ""
    first = found[0]
    most, (train, val) = first.farthest, first.shares
    name = class_names(run, len(first.shift))[most]
    few = len(found) < len(run.repeats)
    start = f"In {len(found)} of {len(run.repeats)} repeats, classes" if few else "Classes"
    return (
        f"{start} are not as frequent among the validation nodes as among the training nodes "
        f"(class {name!r}: {100 * train[most]:.0f} % in training, {100 * val[most]:.0f} % in "
        "validation); probabilities follow the validation nodes. To keep those of training, use "
        "--set frequencies=train."
    )
