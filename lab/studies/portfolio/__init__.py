"""Which few configurations serve all kinds of graphs: portfolios, and how members are joined.

Candidates are recipes of single graphs and random configurations, trained on graphs of many kinds.
The set is chosen greedily whose members, judged by validation nodes, lose least on nodes that took
no part in training. Each kind of graph, and each graph that has a recipe, is left out in turn to
see what the choice is worth on graphs it has not seen.

Every split has its own seed from 1000 on: 60 % of the nodes train, 20 % are validation nodes, and
the scores are of the other 20 %, the selection holdout. No reported split is used.
"""

from lab.studies.portfolio._files import write_portfolio
from lab.studies.portfolio._run import run
from lab.studies.portfolio._show import draw, tables

__all__ = ["AFTER", "ORDER", "TITLE", "draw", "run", "tables", "write_portfolio"]

TITLE = "Which few configurations serve all kinds of graphs (not in the paper)"
ORDER, AFTER = 105, ("ensembles",)
