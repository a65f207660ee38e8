"""``python -m longnn.studies RESULTS PAGES RECIPES``: tables, figures, pages and recipes again.

Everything comes from the records under ``RESULTS``; nothing is trained. ``make results`` calls it.
"""

import sys
from pathlib import Path

from longnn.studies._core._pages import rebuild_all
from longnn.studies.recipes import write_recipes


def main() -> None:
    """Make everything again from the committed records."""
    results, pages, recipes = map(Path, sys.argv[1:4])
    print("made again:", *rebuild_all(results, sorted(pages.glob("*.md"))))
    write_recipes(results, recipes)


if __name__ == "__main__":
    main()
