"""A table of text, written as Markdown, LaTeX and CSV. Knows nothing of studies."""

import csv
import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path

from longnn._base.files import write_text

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "±": r"$\pm$",
    "−": r"$-$",
    "λ": r"$\lambda$",
    "π": r"$\pi$",
    "|": r"\textbar{}",
    "^": r"\^{}",
}


@dataclasses.dataclass(frozen=True)
class ResultTable:
    """Rows under named columns; text between ``**`` and ``**`` is set in bold.

    Args:
        name: of its files, without ending.
        caption: what the numbers are, in which unit, over what.
        columns: their titles; the first is aligned left, the others right.
        rows: text, one item per column.

    >>> print(ResultTable("t", "Two numbers.", ["what", "value"], [["x", "**1.0**"]]).to_markdown())
    | what | value |
    |---|--:|
    | x | **1.0** |
    """

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"Expected {len(self.columns)} items per row (got {list(row)})")

    def to_markdown(self) -> str:
        """The bare table; the caption is left to the page around it."""
        lines = [self.columns, *self.rows]
        text = ["| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines]
        text.insert(1, "|---" + "|--:" * (len(self.columns) - 1) + "|")
        return "\n".join(text)

    def to_latex(self) -> str:
        """A ``table`` with booktabs rules."""
        body = [" & ".join(map(_latex, line)) + r" \\" for line in [self.columns, *self.rows]]
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{_latex(self.caption)}}}",
                rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
                r"\toprule",
                body[0],
                r"\midrule",
                *body[1:],
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
            ]
        )

    def to_csv(self) -> str:
        """Rows separated by commas, without bold."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([cell.strip("*") for cell in row] for row in self.rows)
        return text.getvalue()

    def files(self) -> dict[str, str]:
        """What is written: file name to text."""
        return {
            f"{self.name}.md": f"{self.caption}\n\n{self.to_markdown()}\n",
            f"{self.name}.tex": self.to_latex() + "\n",
            f"{self.name}.csv": self.to_csv(),
        }

    def write(self, folder: Path) -> None:
        """Write all forms into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.files().items():
            write_text(folder / name, text)


def _latex(cell: str) -> str:
    text = "".join(_LATEX.get(c, c) for c in cell.strip("*"))
    return rf"\textbf{{{text}}}" if cell.startswith("**") and cell.endswith("**") else text
