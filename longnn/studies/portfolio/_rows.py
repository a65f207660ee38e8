"""What is compared on one graph of the test, by its title, and paired differences of it."""

from collections.abc import Mapping, Sequence

from longnn.studies._core._headline import interval_of, points
from longnn.studies.portfolio._evaluation import EvaluationCell
from longnn.studies.portfolio._join import JOINED, Scored

#: The portfolios as tables name them.
NAMED = {"default": "portfolio", "best": "large portfolio"}
#: The way to join members that takes one of them.
ONE = "best by validation"


def compared(cell: EvaluationCell) -> dict[str, Scored]:
    """What is compared on a graph, by its title."""
    found = {"default": cell.default}
    for key, portfolio in cell.portfolios.items():
        found[f"{NAMED[key]}, best member"] = portfolio.joined[ONE]
        found[NAMED[key]] = portfolio.joined[JOINED]
    if cell.recipe:
        found["recipe"] = cell.recipe["single"]
        found["recipe, average of seeds"] = cell.recipe["average"]
        found["recipe, votes on seeds"] = cell.recipe[JOINED]
    return found


def paired(found: Mapping[str, Scored], pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Differences of test scores, split by split: mean and interval of each pair of titles."""
    return [interval_of(points(found[a].test, found[b].test)) for a, b in pairs]
