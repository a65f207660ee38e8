"""The words of an explanation, and the rows of its tables as text."""

from typing import TYPE_CHECKING

import numpy as np

from longnn.explain._part import WAYS

if TYPE_CHECKING:
    from longnn.explain._explanation import Explanation, NodeExplanation

#: Sources that a sentence names.
NAMED = 3
#: Contributions below this share of the constant hardly matter.
SMALL = 0.25


def ring_name(distance: int) -> str:
    """A distance in words.

    >>> [ring_name(d) for d in (0, 1, 3, -1)]
    ['the node itself', '1 hop', '3 hops', 'elsewhere']
    """
    if distance < 0:
        return "elsewhere"
    return "the node itself" if distance == 0 else f"{distance} hop{'s' if distance > 1 else ''}"


def signed(value: float) -> str:
    """A number with its sign; what rounds to nothing has none.

    >>> signed(0.1234), signed(-2.0), signed(1e-9)
    ('+0.123', '-2.000', '0.000')
    """
    text = f"{value:+.3f}"
    return "0.000" if text in ("+0.000", "-0.000") else text


def why(explanation: "Explanation", e: "NodeExplanation") -> list[str]:
    """Why a node has its score, in sentences."""
    sure = "" if e.probability is None else f", with probability {e.probability:.2f} for {e.output}"
    told = [f"Node {e.node} is predicted {e.predicted}{sure}."]
    if e.without:
        told.append(
            f"The scores alone would say {e.without}: the shift towards the class frequencies of "
            f"the validation nodes adds {e.shift:.2f} to the log-odds of {e.predicted} against "
            f"{e.without}."
        )
    told.append(f"What is explained: {explanation.what}, {e.score:.3f} here.")
    own = float(e.contribution[e.distance == 0].sum())
    others = e.contribution[e.distance != 0]
    told.append(
        f"The node itself gives {signed(own)}, {len(others)} other node"
        f"{'' if len(others) == 1 else 's'} {signed(float(others.sum()))}"
        + (f", and {signed(e.constant)} is constant." if e.constant else ".")
    )
    largest = [k for k in e.order if e.distance[k] != 0 and abs(e.contribution[k]) > 0]
    if largest:
        named = [
            f"{e.sources[k]} ({ring_name(int(e.distance[k]))}, {signed(float(e.contribution[k]))})"
            for k in largest[:NAMED]
        ]
        told.append(f"The largest of these: {', '.join(named)}.")
    if np.abs(e.contribution).sum() < SMALL * abs(e.constant):
        told.append(
            "So this is nearly the score where all features are zero: no node stands out for it."
        )
    return told


def sums(e: "NodeExplanation") -> str:
    """The sum that adds up, in one line."""
    return (
        f"constant {signed(e.constant)}, contributions {signed(float(e.contribution.sum()))}, "
        f"gap {e.gap:.1e}: score {e.score:.4f}"
    )


def source_rows(e: "NodeExplanation", limit: int) -> tuple[list[str], list[list[str]]]:
    """The table of sources: columns and rows, the largest first, the others in one row."""
    known = e.weight is not None and e.says is not None
    columns = ["node", "distance", *(["weight", "says"] if known else []), "contribution"]
    rows = []
    for k in e.order[:limit]:
        cells = [str(e.sources[k]), str(e.distance[k]) if e.distance[k] >= 0 else "far"]
        if e.weight is not None and e.says is not None:
            cells += [f"{e.weight[k]:.4f}", signed(float(e.says[k]))]
        rows.append([*cells, signed(float(e.contribution[k]))])
    rest = e.order[limit:]
    if len(rest):
        blank = [""] * (3 if known else 1)
        rows.append([_others(len(rest)), *blank, signed(float(e.contribution[rest].sum()))])
    return columns, rows


def way_rows(e: "NodeExplanation") -> list[list[str]]:
    """The table by way of the arcs: names and sums; empty where there are none."""
    if e.ways is None:
        return []
    return [[way, signed(float(value))] for way, value in zip(WAYS, e.ways, strict=True)]


def ring_rows(e: "NodeExplanation") -> list[list[str]]:
    """The table of distances; the last of them, if they give nothing, share a row.

    >>> from types import SimpleNamespace
    >>> found = SimpleNamespace(rings={0: (1, 2.0), 1: (3, -0.5), 2: (4, 0.0), 3: (9, 1e-6)})
    >>> ring_rows(found)[1:]
    [['1 hop', '3', '-0.500'], ['2 to 3 hops', '13', '0.000']]
    """
    found = [(d, n, signed(total)) for d, (n, total) in e.rings.items()]
    near = [*found]
    while near[-1][0] > 1 and near[-1][2] == "0.000":
        near.pop()
    rest = found[len(near) :]
    if len(rest) < 2:
        near, rest = found, []
    rows = [[ring_name(d), f"{n}", total] for d, n, total in near]
    if rest:
        nodes = sum(n for _, n, _ in rest)
        total = signed(sum(e.rings[d][1] for d, _, _ in rest))
        rows.append([f"{rest[0][0]} to {rest[-1][0]} hops", f"{nodes}", total])
    return rows


def _others(count: int) -> str:
    return f"{count} other{'s' if count > 1 else ''}"


def feature_rows(explanation: "Explanation", e: "NodeExplanation", limit: int) -> list[list[str]]:
    """The table of features, the largest first; the rest and what has no feature below."""
    assert e.features is not None
    order = [int(f) for f in abs(e.features).argsort()[::-1] if e.features[f]]
    rows = [[explanation.feature_names[f], signed(float(e.features[f]))] for f in order[:limit]]
    if order[limit:]:
        rest = float(e.features[order[limit:]].sum())
        rows.append([_others(len(order) - limit), signed(rest)])
    return [*rows, ["(no feature: biases)", signed(e.base + e.constant)]]
