"""Views of scores: tables and figures of who reached what on which graph.

All studies of models on graphs and splits share one form of their numbers, a :data:`Grid`: graph ->
row -> scores over the splits. A study picks a grid out of its records (:func:`pivot`); the verbs
below make of it means with intervals, ranks, paired differences, tables and a figure.
"""

import csv
import dataclasses
import io
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from lab.records import Record
from lab.studies._printed import read_toml
from longnn.metrics import METRICS, summarize
from longnn.report._style import GREY, NAVY, ORANGE, in_style, new_figure

Scores = Sequence[float]
#: Graph -> row -> scores over the splits.
Grid = Mapping[str, Mapping[str, Scores]]


#: Study -> table -> its caption, perhaps with numbers in braces to fill in.
CAPTIONS: dict[str, dict[str, str]] = {
    study: {table: " ".join(text.split()) for table, text in texts.items()}
    for study, texts in read_toml("captions").items()
}

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
_WORDS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)


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
        head, *body = [
            " & ".join(map(_latex, line)) + r" \\" for line in [self.columns, *self.rows]
        ]
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{_latex(self.caption)}}}",
                rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
                *(r"\toprule", head, r"\midrule", *body, r"\bottomrule"),
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


def _latex(cell: str) -> str:
    text = "".join(_LATEX.get(c, c) for c in cell.strip("*"))
    return rf"\textbf{{{text}}}" if cell.startswith("**") and cell.endswith("**") else text


def pivot(
    records: Mapping[str, Record], rows: Iterable[str] | None = None
) -> dict[str, dict[str, list[float]]]:
    """The grid of test scores: of these cells in order, by default of all that have some."""
    wanted = None if rows is None else list(rows)
    return {
        graph: {
            key: record[key].scores("test")
            for key in (wanted or [key for key in record if "test" in record[key]])
            if key in record
        }
        for graph, record in records.items()
    }


def metric_words(metric: str) -> str:
    """A score in plain letters, for a table in Markdown."""
    return METRICS[metric].plain or METRICS[metric].name


def percent(scores: Scores) -> float:
    """The mean in per cent."""
    return 100 * float(np.mean(scores))


def interval(scores: Scores) -> str:
    """Mean ± half the width of the 95 % bootstrap interval, in per cent."""
    s = summarize(scores)
    return f"{100 * s['mean']:.2f} ± {50 * (s['high'] - s['low']):.2f}"


def points(scores: Scores, others: Scores) -> list[float]:
    """Scores minus others, split by split, in points."""
    return [float(100 * (a - b)) for a, b in zip(scores, others, strict=True)]


def gain(scores: Scores, others: Scores) -> float:
    """The difference of the means, in points."""
    return 100 * float(np.mean(scores) - np.mean(others))


def means(grid: Grid) -> dict[str, dict[str, float]]:
    """Graph -> row -> its mean in per cent."""
    return {
        graph: {key: percent(scores) for key, scores in row.items()} for graph, row in grid.items()
    }


def gains(grid: Grid, base: str) -> dict[str, dict[str, float]]:
    """Graph -> row -> its mean minus that of the base row, in points, where there is such a row."""
    return {
        graph: {key: gain(scores, row[base]) for key, scores in row.items()}
        for graph, row in grid.items()
        if base in row
    }


def signed_interval(differences: Scores, digits: int = 1) -> str:
    """Mean and 95 % bootstrap interval, in bold if the interval excludes zero.

    >>> signed_interval([1.0, 1.0, 1.0])
    '**+1.0 [+1.0, +1.0]**'
    """
    s = summarize(differences)
    mean, low, high = (f"{s[key]:+.{digits}f}" for key in ("mean", "low", "high"))
    text = f"{mean} [{low}, {high}]"
    return f"**{text}**" if is_clear(differences) else text


def is_clear(differences: Scores) -> bool:
    """Whether the 95 % bootstrap interval of the mean excludes zero."""
    s = summarize(differences)
    return s["low"] > 0 or s["high"] < 0


def verdict(differences: Scores) -> str:
    """Whether a difference is clear, in words.

    >>> verdict([1.0, 1.0]), verdict([-1.0, 1.0])
    ('more than chance', 'within chance')
    """
    return "more than chance" if is_clear(differences) else "within chance"


def paired(row: Mapping[str, Scores], one: str, other: str, digits: int = 2) -> str:
    """One row minus the other, split by split; nothing where one is missing."""
    if one not in row or other not in row:
        return ""
    return signed_interval(points(row[one], row[other]), digits)


def best_in_bold(means: Sequence[float], digits: int = 1) -> list[str]:
    """Numbers to some digits, the highest in bold."""
    best = max(means, default=0.0)
    shown = [f"{v:.{digits}f}" for v in means]
    return [f"**{t}**" if v >= best - 1e-9 else t for t, v in zip(shown, means, strict=True)]


def means_in_bold(row: Mapping[str, Scores], titles: Iterable[str], digits: int = 2) -> list[str]:
    """The means of a row in %, the highest in bold; nothing where a title is missing."""
    there = [title for title in titles if title in row]
    shown = dict(zip(there, best_in_bold([percent(row[t]) for t in there], digits), strict=True))
    return [shown.get(title, "") for title in titles]


def models_table(
    name: str,
    caption: str,
    grid: Grid,
    labels: Mapping[str, str],
    models: Mapping[str, str] | None = None,
    *,
    ranked: bool = True,
) -> ResultTable:
    """One row per label and one column per graph; the best of each column in bold.

    The last column is the average rank, if ``ranked``: see :func:`average_ranks` for ``models``; by
    default all rows are models.
    """
    graphs = [g for g, row in grid.items() if any(key in row for key in labels)]
    best = {g: max(percent(v) for k, v in grid[g].items() if k in labels) for g in graphs}
    ranks = average_ranks(grid, models or {key: key for key in labels}) if ranked else {}
    rows = []
    for key, label in labels.items():
        if not any(key in grid[g] for g in graphs):
            continue
        shown = []
        for g in graphs:
            scores = grid[g].get(key)
            text = "" if scores is None else interval(scores)
            bold = scores is not None and percent(scores) >= best[g] - 1e-9
            shown.append(f"**{text}**" if bold else text)
        rank = [f"{ranks[key]:.1f}" if key in ranks else ""] if ranked else []
        rows.append([label, *shown, *rank])
    last = ["average rank"] if ranked else []
    return ResultTable(name, caption, ["model", *graphs, *last], rows)


def average_ranks(grid: Grid, models: Mapping[str, str]) -> dict[str, float]:
    """Mean rank of each row (1 = best, ties share) over the graphs that have it.

    A row is ranked among the other models, each by its own row, the one that is named as the model:
    one model in three variants would take three ranks otherwise, and push the others down.

    Args:
        grid: the scores.
        models: row -> the model that it is a variant of. A model without a row of its name takes
            part with all its rows.
    """
    ranks: dict[str, list[float]] = {}
    for row in grid.values():
        here = {key: percent(row[key]) for key in models if key in row}
        for key, value in here.items():
            others = [
                v
                for k, v in here.items()
                if models[k] != models[key] and (k == models[k] or models[k] not in here)
            ]
            above = sum(v > value + 1e-9 for v in others)
            equal = sum(abs(v - value) <= 1e-9 for v in others)
            ranks.setdefault(key, []).append(1 + above + equal / 2)
    return {key: float(np.mean(of)) for key, of in ranks.items()}


def difference_table(
    name: str,
    caption: str,
    grid: Grid,
    pairs: Mapping[str, tuple[str, str]],  # by label
    column: str = "model",  # title of the labels
) -> ResultTable:
    """One row per pair of rows and one column per graph: the first minus the second, in points.

    A pair is left out where no graph has both.
    """
    rows = [[label, *(paired(row, *two) for row in grid.values())] for label, two in pairs.items()]
    return ResultTable(name, caption, [column, *grid], [row for row in rows if any(row[1:])])


def minus_base(
    name: str, caption: str, grid: Grid, labels: Mapping[str, str], base: str
) -> ResultTable:
    """Every row minus the base row, on the graphs that have it."""
    pairs = {label: (key, base) for key, label in labels.items() if key != base}
    there = {graph: row for graph, row in grid.items() if base in row}
    return difference_table(name, caption, there, pairs)


def pairs_table(
    name: str, caption: str, grid: Grid, pairs: Sequence[tuple[str, str]]
) -> ResultTable:
    """One row per graph and one column per pair: the first minus the second, in points."""
    columns = ["graph", *(f"{one} minus {other}" for one, other in pairs)]
    rows = [[graph, *(paired(row, *two, 1) for two in pairs)] for graph, row in grid.items()]
    return ResultTable(name, caption, columns, rows)


def printed_rows(
    grid: Grid,
    graphs: Sequence[str],
    printed: Mapping[str, float],
    best: str,
    leave_out: Iterable[str] = (),
) -> list[list[str]]:
    """Two rows of a table: what others printed, and the best here minus that; or none."""
    if not any(g in printed for g in graphs):
        return []
    single = {g: [percent(v) for k, v in grid[g].items() if k not in leave_out] for g in graphs}
    numbers = [f"{printed[g]:.1f}" if g in printed else "" for g in graphs]
    away = [f"{max(single[g]) - printed[g]:+.1f}" if g in printed else "" for g in graphs]
    return [["printed by others", *numbers], [f"{best} minus printed", *away]]


@in_style
def dot_plot(
    grid: Grid,
    labels: Mapping[str, str],
    highlight: Sequence[str],
    metrics: Mapping[str, str] | None = None,
) -> Figure:
    """Each model's mean and interval on each graph, side by side; some rows are highlighted.

    ``metrics`` says what the scores of a graph are, where it is not the accuracy.
    """
    graphs = list(grid)
    named = {g: (metrics or {}).get(g, "accuracy") for g in graphs}
    what = "score" if len({*named.values()}) > 1 else next(iter(named.values()), "score")
    columns = 4 if len(graphs) > 2 else max(len(graphs), 1)
    lines = -(-len(graphs) // columns)
    present = [k for k in labels if any(k in grid[g] for g in graphs)]
    figure, axes_grid = new_figure(
        f"Test {what}: mean and 95 % interval over the splits",
        height=0.6 + lines * (0.5 + 0.16 * len(present)),
        rows=lines,
        columns=columns,
    )
    for axes in axes_grid.flat[len(graphs) :]:
        axes.set_visible(False)
    for i, (axes, g) in enumerate(zip(axes_grid.flat, graphs, strict=False)):
        for y, key in enumerate(reversed(present)):
            if key not in grid[g]:
                continue
            s = summarize([100 * v for v in grid[g][key]])
            marked = key in highlight
            axes.plot([s["low"], s["high"]], [y, y], color=NAVY if marked else GREY, lw=1.4)
            axes.plot(
                s["mean"],
                y,
                "D" if marked else "o",
                color=ORANGE if marked else GREY,
                markeredgecolor=NAVY if marked else GREY,
                ms=4.5 if marked else 3.5,
            )
        axes.set_title(g, fontsize=9)
        axes.set_yticks(range(len(present)))
        axes.set_yticklabels([labels[k] for k in reversed(present)] if i % columns == 0 else [])
        axes.tick_params(labelsize=7)
        axes.set_ylim(-0.6, len(present) - 0.4)
        if i + columns >= len(graphs) or what == "score":  # the last of its column, or its own
            axes.set_xlabel(f"{named[g]}, %", fontsize=8)
    return figure


def listed(names: Iterable[str], *, plain: bool = False) -> str:
    """Names of graphs in a sentence.

    >>> listed(["cora", "texas", "cornell-legacy"])
    'Cora, Texas and the defective Cornell'
    """
    words = [
        n if plain else n.capitalize().replace("Cornell-legacy", "the defective Cornell")
        for n in names
    ]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def numbered(values: Mapping[str, float], digits: int = 1, *, plain: bool = False) -> str:
    """Names of graphs in a sentence, each with the size of its number.

    >>> numbered({"cora": 1.04, "texas": -0.2})
    'Cora (1.0) and Texas (0.2)'
    """
    shown = (f"{listed([n], plain=plain)} ({abs(v):.{digits}f})" for n, v in values.items())
    return listed(shown, plain=True)


def word(count: int) -> str:
    """A small number as a word."""
    return _WORDS[count] if count < len(_WORDS) else str(count)
