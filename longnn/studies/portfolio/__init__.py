"""Which few configurations serve all kinds of graphs: a portfolio, and how its members are joined.

Candidates are drawn at random, trained on graphs of many kinds, and the set is chosen greedily
whose members, judged by validation nodes, lose least on nodes that took no part in training. Each
kind of graph is left out in turn to see what the choice is worth on a kind it has not seen.

Every split has its own seed from 1000 on: 60 % of the nodes train, 20 % are validation nodes, and
the scores are of the other 20 %, the selection holdout. No reported split is used.
"""

from longnn.studies.portfolio._run import run
from longnn.studies.portfolio._show import draw, tables

__all__ = ["ORDER", "TITLE", "draw", "run", "tables"]

TITLE = "Which few configurations serve all kinds of graphs (not in the paper)"
ORDER = 105
