r"""Why a prediction? Contributions of nodes, distances, terms of the filter and features.

A filter is linear in its signal: in LON-GNN's own form :math:`score[i, c] = \sum_v g_c(P)[i, v]\,
t(x_v)[c]`, so a prediction splits into contributions of source nodes **exactly**. Other models are
split by integrated gradients, with the gap shown. :func:`explain_nodes` explains nodes,
:func:`explain_model` a model over its whole graph.
"""

from longnn.explain._nodes import Explanation, explain_nodes
from longnn.explain._overview import explain_model

__all__ = [
    "Explanation",
    "explain_model",
    "explain_nodes",
]
