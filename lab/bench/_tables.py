"""Tables of a record of epochs: views of its rows, which Markdown and the terminal both print."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lab.bench._contenders import LABELS
from lab.bench._record import Cells, Record, Row, cells, values


@dataclass
class Table:
    """A title, a sentence under it, heads of columns, and rows of cells as text.

    Columns but the first hold numbers, or ``words``, which are aligned left.
    """

    title: str
    note: str
    heads: list[str]
    rows: list[list[str]] = field(default_factory=list)
    words: bool = False

    def markdown(self) -> list[str]:
        """Lines of Markdown, with the title and the note if there are any."""
        marks = ["---" if i == 0 or self.words else "--:" for i in range(len(self.heads))]
        head = [f"## {self.title}", ""] if self.title else []
        head += [self.note, ""] if self.note else []
        return head + ["| " + " | ".join(row) + " |" for row in (self.heads, marks, *self.rows)]

    def lines(self) -> list[str]:
        """Lines of a terminal, in aligned columns."""
        widths = [max(map(len, column)) for column in zip(self.heads, *self.rows, strict=True)]
        aligned = [
            "  ".join(
                cell.ljust(width) if i == 0 or self.words else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (self.heads, *self.rows)
        ]
        return [text for text in (self.title.upper(), self.note) if text] + aligned


def number(value: float | None) -> str:
    r"""A number with three digits, without an exponent in everyday sizes.

    >>> number(0.04567), number(12.345), number(12345.6), number(None)
    ('0.0457', '12.3', '12346', '-')
    """
    if value is None:
        return "-"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if size >= 0.001 else f"{value:.2e}"


def spread(row: Row | None, brief: bool = False) -> str:
    """The value of a row and, unless brief, its quartiles."""
    if row is None:
        return "-"
    if brief or row["low"] is None:
        return number(row["value"])
    return f"{number(row['value'])} [{number(row['low'])}, {number(row['high'])}]"


def epoch_tables(record: Record, brief: bool) -> list[Table]:
    """Times, ratios, calls, memory, and how time grows."""
    scaling = sweeps_table("Scaling", "call", record, "scaling")
    return [*_by_contender(record, brief), scaling]


def contender_labels(record: Record) -> dict[str, str]:
    """The contenders of a record by key; a population with its number of members."""
    members = record["settings"]["population"]
    return {
        key: f"{label} of {members}" if key == "population" else label
        for key, label in LABELS.items()
        if key in record["settings"]["contenders"]
    }


_CALLS = {"operators": "operators", "sparse_products": "sparse products", "kernels": "kernels"}


def _by_contender(record: Record, brief: bool) -> list[Table]:
    """Times, ratios, calls and memory, each with one row per graph and one column per contender."""
    quartiles = "" if brief else " [quartiles]"
    rounds, labels = record["settings"]["rounds"], contender_labels(record)
    times = cells(record, "contenders")
    kinds = [kind for kind in _CALLS if any(f"calls.{kind}" in cell for cell in times.values())]
    views: dict[str, tuple[str, Cells, Callable[[dict[str, Row]], str]]] = {
        "Epoch times": (
            f"Milliseconds per model and epoch, training and evaluation: median{quartiles} over "
            f"{rounds} rounds in which the contenders take turns.",
            times,
            lambda cell: spread(cell.get("ms"), brief),
        ),
        "Ratios": (
            "How many times longer an epoch of a rival takes than one of LON-GNN. The column of "
            "the population shows how many times less a model costs in the population than alone. "
            f"Median{quartiles} of the ratios of the rounds.",
            cells(record, "ratios"),
            lambda cell: spread(cell.get("ratios"), brief),
        ),
        "Calls": (
            f"Calls per epoch of all models: {' / '.join(_CALLS[kind] for kind in kinds)}.",
            times if kinds else {},
            lambda cell: " / ".join(spread(cell.get(f"calls.{kind}")) for kind in kinds),
        ),
        "Peak memory": (
            "Peak MiB while building and training, for all models of a population together.",
            cells(record, "memory_mib"),
            lambda cell: spread(cell.get("memory_mib")),
        ),
    }
    made = []
    for title, (note, found, show) in views.items():
        shown = [key for key in labels if title != "Ratios" or key != "single"]
        table = Table(title, note, ["dataset", *(labels[key] for key in shown)])
        for graph in dict.fromkeys(graph for graph, _ in found):
            table.rows.append([graph, *(show(found.get((graph, key), {})) for key in shown)])
        made.append(table)
    return made


def sweeps_table(title: str, what: str, record: Record, section: str) -> Table:
    """How the time of each call, or stage, grows."""
    note = "Time grows like the size to the power of the exponent, fitted to the larger half."
    table = Table(title, note, ["size", what, "fixed", "range", "ms", "exponent"], words=True)
    for sweep in values(record, section):
        x, ms = sweep["x"], sweep["ms"]
        sizes, times = f"{x[0]:,.0f} to {x[-1]:,.0f}", f"{number(ms[0])} to {number(ms[-1])}"
        row = [sweep["axis"], sweep["what"], sweep["fixed"], sizes, times]
        table.rows.append([*row, f"{sweep['exponent']:.2f}"])
    return table
