"""Pages that show the tables of studies, filled from the records.

A page shows a table between two marks, ``<!-- table STUDY/TABLE -->`` and ``<!-- end -->``.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from lab.studies._core._catalog import get_study, rebuild_study, sorted_studies, study_names
from lab.studies._core._table import ResultTable
from longnn._base.files import write_text

_MARKED = re.compile(r"(<!-- table (\S+)/(\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill_page(text: str, results: Path) -> str:
    """The text of a page with every marked table made again.

    Args:
        text: of the page.
        results: the folder that holds one folder per study.

    >>> fill_page("No table here.", Path("results"))
    'No table here.'
    """
    made: dict[str, dict[str, ResultTable]] = {}

    def renew(match: re.Match[str]) -> str:
        head, name, table, end = match.groups()
        if name not in made:
            made[name] = {t.name: t for t in get_study(name).tables(results / name)}
        if table not in made[name]:
            raise ValueError(f"Expected a table of {', '.join(made[name])} (got {table!r})")
        chosen = made[name][table]
        return f"{head}\n{chosen.to_markdown()}\n\n*{chosen.caption}*\n\n{end}"

    return _MARKED.sub(renew, text)


def rebuild_all(results: Path, pages: Sequence[Path] = ()) -> list[str]:
    """Make the tables and figures of every study under a folder, and pages, again.

    Returns:
        the names of the studies.
    """
    names = sorted_studies([n for n in study_names() if (results / n / "records").is_dir()])
    for name in names:
        rebuild_study(name, results / name)
    for page in pages:
        write_text(page, fill_page(page.read_text(encoding="utf-8"), results))
    return names
