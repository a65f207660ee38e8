"""How faithful explanations are: the exact split against GNNExplainer, saliency and chance.

Nodes are ranked by what they give to a prediction. Then they are deleted in that order, or inserted
into a graph without features. A faithful ranking makes the probability of the predicted class fall,
or rise, at once. On a planted graph the node that decides is known.
"""

from lab.studies.explanations._measure import run
from lab.studies.explanations._show import draw, tables

__all__ = ["ORDER", "TITLE", "draw", "run", "tables"]

TITLE = "How faithful explanations are, and how fast (not in the paper)"
ORDER = 120
