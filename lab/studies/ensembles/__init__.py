"""LON-GNN's recipes as ensembles: several seeds, with one filter and with blocks, together.

On the graphs of the paper and the published splits, beside single models. Each ensemble also with
its probabilities shifted towards the class frequencies of the validation nodes: under the published
split these differ from those of the training nodes.
"""

from lab.studies.ensembles._run import run
from lab.studies.ensembles._show import draw, tables

__all__ = ["AFTER", "ORDER", "TITLE", "draw", "run", "tables"]

TITLE = "LON-GNN's recipes as ensembles (not in the paper)"
ORDER, AFTER = 107, ("recipes", "depth")
