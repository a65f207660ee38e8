"""The chosen portfolios as TOML, written from the record: one table per member."""

from pathlib import Path

from lab.studies._core._context import load_records
from lab.studies.portfolio._run import SELECTION
from lab.studies.portfolio._select import Selection
from longnn._base.files import write_text
from longnn.config._values import toml_value
from longnn.training import FREE

_HEAD = """\
# Portfolios: configurations that are trained side by side. One table per member, in the order of
# the choice. From the records in results, see docs/results/portfolio.md.
"""


def portfolio_text(folder: Path) -> str | None:
    """The text of the file, or nothing before the choice is made.

    >>> portfolio_text(Path("no such folder")) is None
    True

    Args:
        folder: of the study.
    """
    record = load_records(folder, [SELECTION]).get(SELECTION)
    if record is None or SELECTION not in record:
        return None
    selection = record.get(SELECTION, Selection)
    blocks = [_HEAD]
    for key, portfolio in selection.portfolios.items():
        for member in portfolio.members:
            lines = selection.config(member).to_toml(leave_out=FREE)
            blocks.append("\n".join([f"[{key}.{toml_value(member)}]", *lines]) + "\n")
    return "\n".join(blocks)


def write_portfolio(results: Path, target: Path) -> None:
    """Write the file again, if the choice is made.

    Args:
        results: the folder that holds one folder per study.
        target: the file.
    """
    text = portfolio_text(results / "portfolio")
    if text is not None:
        write_text(target, text)
