"""What depth, normalisation, the basis and direction are each worth, alone and together.

Every row has the same small random search on validation nodes; the winner is trained on all ten
splits. On Minesweeper and Tolokers by ROC AUC on their fixed masks, on Chameleon, Squirrel,
Wisconsin and Actor by accuracy on the geom-gcn masks, with the arcs as they are and without, on
Computers and Photo on a stratified 60/20/20. On the ten graphs of the paper a stack stands beside
LON-GNN's recipe, on the published split.
"""

from lab.studies.depth._run import run
from lab.studies.depth._tables import draw, tables

__all__ = ["AFTER", "ORDER", "TITLE", "draw", "run", "tables"]

TITLE = "Depth and direction: blocks of filters, and arcs as arcs"
ORDER, AFTER = 97, ("accuracy", "recipes")
