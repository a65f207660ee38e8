"""What is compared on one graph of the test, by its title, and paired differences of it."""

from collections.abc import Mapping, Sequence

from lab.studies._core._headline import interval_of, points
from lab.studies._core._joined import ONE as SINGLE
from lab.studies._core._joined import SEEDS, EnsemblesCell, Scored
from lab.studies.portfolio._evaluation import EvaluationCell
from lab.studies.portfolio._join import JOINED

#: The portfolios as tables name them.
NAMED = {"default": "portfolio", "best": "large portfolio"}
#: The way to join members that takes one of them.
ONE = "best by validation"


def compared(cell: EvaluationCell, own: EnsemblesCell | None = None) -> dict[str, Scored]:
    """What is compared on a graph, by its title.

    Args:
        cell: of the test.
        own: what the graph's own recipe reaches, by the study ``ensembles``.
    """
    found = {"default": cell.default}
    for key, portfolio in cell.portfolios.items():
        found[f"{NAMED[key]}, best member"] = portfolio.joined[ONE]
        found[NAMED[key]] = portfolio.joined[JOINED]
    if own is not None:
        found["recipe"] = own.rows[SINGLE]["average"]
        found["recipe, average of seeds"] = own.rows[SEEDS]["average"]
        found["recipe, votes on seeds"] = own.rows[SEEDS][JOINED]
    return found


def paired(found: Mapping[str, Scored], pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Differences of test scores, split by split: mean and interval of each pair of titles; nothing
    where one is missing."""
    return [
        interval_of(points(found[a].test, found[b].test)) if {a, b} <= {*found} else ""
        for a, b in pairs
    ]
