"""``python -m longnn.studies RESULTS PAGES RECIPES PORTFOLIO``: all that records give, again.

Tables, figures, pages, recipes and portfolios come from the records under ``RESULTS``; nothing is
trained. ``make results`` calls it.
"""

import sys
from pathlib import Path

from longnn.studies._core._pages import rebuild_all
from longnn.studies.portfolio import write_portfolio
from longnn.studies.recipes._files import write_recipes


def main() -> None:
    """Make everything again from the committed records."""
    results, pages, recipes, portfolio = map(Path, sys.argv[1:5])
    print("made again:", *rebuild_all(results, sorted(pages.glob("*.md"))))
    write_recipes(results, recipes)
    write_portfolio(results, portfolio)


if __name__ == "__main__":
    main()
