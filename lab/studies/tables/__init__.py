"""Own tables with nothing set: is LON-GNN below what the columns alone give?

Two stories (house prices, frauds) and ten held-back tables, on five stratified splits each. The
defaults for own data (:func:`longnn.training.preset`) were chosen on other tables, by validation.
Rivals: a constant, ridge or logistic regression, gradient boosting, our MLP and our GCN with the
same settings.
"""

from lab.studies.tables._figure import draw
from lab.studies.tables._run import run
from lab.studies.tables._show import tables

__all__ = ["ORDER", "TITLE", "draw", "run", "tables"]

TITLE = "Own tables with nothing set, against what the columns alone give (not in the paper)"
ORDER = 105
