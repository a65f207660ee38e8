"""The paper's search, 400 trials of three repeats in the paper's space, timed; then its winner.

History: it was ``longnn tune DATASET --space paper`` without the default as its first trial, and
its winner was tested on the published splits: the paper's model, space and budget, with the dropout
off at evaluation. The records stay; the code that searched went.
"""

from pathlib import Path

from lab.studies._engine import read_records
from lab.studies._printed import ACCURACY, TEN
from lab.studies._views import CAPTIONS, ResultTable, interval

TITLE = "The search: 400 trials of 3 repeats, timed (history)"
ORDER = 40

#: Seconds that a search may take on a GPU.
LIMITS = {"cora": 180, **{name: 720 for name in TEN if name != "cora"}}


def tables(folder: Path) -> list[ResultTable]:
    """Time and winner of every search."""
    rows = []
    for name, record in read_records(folder, TEN).items():
        search, machine = record["search"], record.machine("search")
        rows.append(
            [
                name,
                f"{search['finished']} ({search['pruned']})",
                f"{search['made']['seconds']:.0f}",
                str(LIMITS[name]),
                f"{100 * search['value']:.2f}",
                interval(record["winner"].scores("test")),
                f"{ACCURACY['lon'][name]:.2f}",
                str(machine["gpu"] or machine["cpu"]),
            ]
        )
    columns = ["graph", "trials", "seconds", "limit", "validation", "test", "paper", "device"]
    return [ResultTable("search", CAPTIONS["search"]["search"], columns, rows)]
