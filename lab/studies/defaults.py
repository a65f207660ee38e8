"""How the defaults of LON-GNN were chosen: the least regret over the ten graphs.

History: 96 candidates drawn at random were trained on a few tuning splits of every graph, the best
twelve and the earlier default (number 96) on more. One half of a split's validation nodes stopped a
training and the other half scored it: the highest accuracy over hundreds of epochs flatters
candidates whose filter jumps. The regret of a candidate on a graph is how far its mean score is
below the best candidate's there. The records stay; the code that drew and trained went.
"""

from pathlib import Path

import numpy as np

from lab.studies._engine import read_records
from lab.studies._printed import TEN
from lab.studies._views import CAPTIONS, ResultTable, percent

TITLE = "How the defaults were chosen (history)"
ORDER = 100


def tables(folder: Path) -> list[ResultTable]:
    """The candidates of the second round, those of the least root mean square regret first."""
    means = {
        name: {
            number: percent(scores)
            for key in ("second", "earlier")
            for number, scores in record[key]["holdout"].items()
        }
        for name, record in read_records(folder, TEN).items()
    }
    scores = np.array([[*of.values()] for of in means.values()])  # (graphs, candidates)
    regrets = scores.max(1, keepdims=True) - scores
    whole = np.sqrt((regrets**2).mean(0))
    numbers = list(next(iter(means.values())))
    rows = []
    for i in np.argsort(whole, kind="stable"):
        shown = [f"{a:.1f} ({b:.1f})" for a, b in zip(scores[:, i], regrets[:, i], strict=True)]
        rows.append([numbers[i], *shown, f"{whole[i]:.2f}"])
    columns = ["candidate", *means, "root mean square"]
    return [ResultTable("defaults", CAPTIONS["defaults"]["defaults"], columns, rows)]
