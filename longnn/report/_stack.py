"""Words for the filters of a deep model: a few sentences, however many blocks there are."""

import re
from collections.abc import Sequence
from itertools import groupby

from longnn.records import FilterRecord, RunRecord

FEW = 2  # filters that are drawn and described one by one


def is_stack(run: RunRecord) -> bool:
    """Whether a run has so many filters that they are shown as a ladder."""
    return len(run.filters) > FEW


def ends_on_scores(run: RunRecord) -> bool:
    """Whether the last filter of a stack acts on the scores, behind all blocks."""
    return bool(run.config.get("output_degree"))


def filter_names(
    filters: Sequence[FilterRecord], layer: str, *, on_scores: bool = False
) -> list[str]:
    """What to call each filter: its layer where there are several, and its type of edges.

    Args:
        filters: of a model.
        layer: the word for a layer.
        on_scores: whether the last layer is none, but a filter on the scores.

    >>> import numpy as np
    >>> none = np.zeros(1)
    >>> one, two = (FilterRecord("jacobi", 1, {}, {}, none, none[None], none, "", t) for t in "ab")
    >>> filter_names([one, two], "block"), filter_names([one, two, one, two], "block")[2]
    (['a', 'b'], 'block 2, a')
    >>> filter_names([one, one, one], "block", on_scores=True)
    ['block 1, a', 'block 2, a', 'scores, a']
    """
    types = len(dict.fromkeys(found.edge_type for found in filters))
    layers = [f"{layer} {i + 1}" for i in range(len(filters) // types)] if filters else []
    if on_scores:
        layers[-1] = "scores"
    elif len(layers) == 1:
        layers = [""]
    return [
        ", ".join(part for part in (layers[i // types], found.edge_type) if part)
        for i, found in enumerate(filters)
    ]


def ladder_order(run: RunRecord) -> str:
    """In which order the filters of a run come: by blocks, or by types of edges alone."""
    types = len(dict.fromkeys(found.edge_type for found in run.filters))
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


def stack_text(run: RunRecord, words: Sequence[str], whose: str = "") -> list[str]:
    """What a stack of filters learned, in sentences that hold for all of them."""
    degrees = [found.degree for found in run.filters]
    lines = [*_each_kind(run, words, whose)]
    lines.append(f"One pass takes {sum(degrees)} products with the graph.")
    if all({"a", "b"} <= found.learned.keys() for found in run.filters):
        line = f"Their bases are at {_bases(run, 'learned')}"
        if all({"a", "b"} <= found.start.keys() for found in run.filters):
            line += f"; they started at {_bases(run, 'start')}"
        lines.append(f"{line}.")
    return lines


def _each_kind(run: RunRecord, words: Sequence[str], whose: str) -> list[str]:
    """What the filters are, from the first block to the last; of each type of edges apart."""
    by_type: dict[str, list[str]] = {}
    for found, text in zip(run.filters, words, strict=True):
        by_type.setdefault(found.edge_type, []).append(text)
    lines = []
    for name, texts in by_type.items():
        edges = f" for edges of type {name}" if name else ""
        if len(texts) == 1:
            lines.append(f"The filter{edges}{whose} is {texts[0]}.")
        else:
            last = "the scores" if ends_on_scores(run) else "the last"
            lines.append(
                f"The {len(texts)} filters{edges}{whose}, from the first block to {last}, are: "
                f"{stack_words(texts)}."
            )
    return lines


def _bases(run: RunRecord, where: str) -> str:
    """The range of a and b over the blocks."""
    texts = []
    for name in ("a", "b"):
        values = [getattr(found, where)[name] for found in run.filters]
        low, high = f"{min(values):z.2f}", f"{max(values):z.2f}"
        texts.append(f"{name} = {low}" if low == high else f"{name} = {low} to {high}")
    return ", ".join(texts)
