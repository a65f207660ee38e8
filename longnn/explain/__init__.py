r"""Why a prediction? Contributions of nodes, distances, terms of the filter and features.

A filter is linear in its signal: in LON-GNN's own form :math:`score[i, c] = \sum_v g_c(P)[i, v]\,
t(x_v)[c]`, so a prediction splits into contributions of source nodes **exactly**. Other models are
split by integrated gradients, with the gap shown. :func:`explain_nodes` explains nodes,
:func:`explain_model` a model over its whole graph.
"""

from longnn.explain._case import find_ids
from longnn.explain._explanation import Explanation, NodeExplanation
from longnn.explain._files import check_path
from longnn.explain._nodes import explain_nodes
from longnn.explain._overview import Overview, explain_model
from longnn.explain._rings import neighbours
from longnn.explain._shift import Shift
from longnn.explain._words import (
    feature_rows,
    ring_name,
    ring_rows,
    signed,
    source_rows,
    sums,
    way_rows,
    why,
)

__all__ = [
    "Explanation",
    "NodeExplanation",
    "Overview",
    "Shift",
    "check_path",
    "explain_model",
    "explain_nodes",
    "feature_rows",
    "find_ids",
    "neighbours",
    "ring_name",
    "ring_rows",
    "signed",
    "source_rows",
    "sums",
    "way_rows",
    "why",
]
