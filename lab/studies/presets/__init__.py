"""How the defaults for own tables were chosen: candidates on development tables.

Ten tables, three splits of each: 60 % of the nodes train, 20 % stop the training, and the scores
are of the other 20 %, the selection holdout. There is no test set. The study ``tables`` tests the
choice, on other tables.
"""

from lab.studies.presets._figure import draw
from lab.studies.presets._run import run
from lab.studies.presets._show import tables

__all__ = ["ORDER", "TITLE", "draw", "run", "tables"]

TITLE = "How the defaults for own tables were chosen, on development tables (not in the paper)"
ORDER = 104
