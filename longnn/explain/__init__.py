r"""Why a prediction? Contributions of nodes, distances, terms of the filter and features.

A filter is linear in its signal: in LON-GNN's own form :math:`score[i, c] = \sum_v g_c(P)[i, v]\,
t(x_v)[c]`, so a prediction splits into contributions of source nodes **exactly**. Other models are
split by integrated gradients, with the gap shown. :func:`explain_nodes` explains nodes,
:func:`explain_model` a model over its whole graph.
"""

from longnn.explain._nodes import Explanation, NodeExplanation, check_path, explain_nodes
from longnn.explain._overview import Overview, explain_model
from longnn.explain._presentation import (
    feature_rows,
    ring_name,
    ring_rows,
    signed,
    source_rows,
    sums,
    way_rows,
    why,
)
from longnn.explain._subject import Subject, find_ids, neighbours

__all__ = [
    "Explanation",
    "NodeExplanation",
    "Overview",
    "Subject",
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
