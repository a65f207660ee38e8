"""The engine of all studies: one loop that computes cells, and the files that records give.

The folder of a study holds ``records`` (JSON, computed), ``tables`` and ``figures`` (made of the
records, at any time again). Pages show tables and sentences between marks:

.. code-block:: text

    <!-- table STUDY/TABLE -->
    <!-- end -->

    <!-- text STUDY
    Blocks are {gain:.1f} points better.
    -->
    <!-- end -->

A sentence is filled with the ``facts`` of the study (``bench``: of the benchmarks), and wrapped.
Beside Python's formats it knows ``!n``, a number negated ("2.0 points behind"), ``!w``, a count in
letters, and ``!l``, names of graphs as a list. A number that no record holds follows
``<!-- no record: REASON -->``.
"""

import dataclasses
import functools
import importlib
import pkgutil
import re
import string
import textwrap
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure

from lab import bench
from lab.records import Machine, Record, Values
from lab.studies._views import ResultTable, listed, word
from longnn import data
from longnn._base.provenance import environment
from longnn.data import NodeDataset
from longnn.report._style import to_png, write_atomically
from longnn.training import choose_device

PACKAGE = "lab.studies"
#: The place of a study that does not say its own: after those that do.
_LAST = 1000
#: In the description of a machine, what may differ from one cell to the next.
_PASSING = ("load", "threads")
#: A study: a module, see :mod:`lab.studies`.
Study = Any


@dataclasses.dataclass(frozen=True)
class Cell:
    """Values of a record to compute once."""

    record: str
    plan: Mapping[str, Any]  # what all cells of the record share
    key: str
    compute: Callable[[], Mapping[str, Any]]
    #: That it runs on, if not that of the context.
    device: str | None = None
    #: A study beside this one whose cell, if made by the same plan, is copied instead.
    borrow: str = ""


#: The cells of a study. What is sent back is the values of each.
Cells = Generator[Cell, Values, None]


@dataclasses.dataclass(frozen=True)
class Context:
    """How a study is run."""

    folder: Path  # for its records, tables and figures
    data_dir: str | None = None
    device: str = "auto"
    quick: bool = False  # a small version of everything, for a look
    datasets: Sequence[str] | None = None  # only these, if the study has several
    models: Sequence[str] | None = None
    commit: str | None = None  # to record when the code is not a git checkout
    tell: Callable[[str], None] = print  # takes a line of progress

    def choose(self, kind: Literal["datasets", "models"], known: Sequence[str]) -> list[str]:
        """The datasets or models to compute: those asked for, or all that are known."""
        asked = self.datasets if kind == "datasets" else self.models
        for name in asked or ():
            if name not in known:
                raise ValueError(f"Expected {kind} among {', '.join(known)} (got {name!r})")
        return list(asked or known)

    def load(self, name: str, **options: Any) -> NodeDataset:
        """A named graph."""
        return data.load(name, data_dir=self.data_dir, **options)

    def machine(self, device: str | None = None) -> Machine:
        """This machine with its device, by default the one of the context."""
        described = environment(choose_device(device or self.device))
        return {key: value for key, value in described.items() if key not in _PASSING}


def compute_cells(study: Study, context: Context) -> None:
    """The loop: every cell that is missing is computed and written down at once."""
    steps, values = study.cells(context), None
    while True:
        try:
            cell = steps.send(values)
        except StopIteration:
            return
        record = _record(record_path(context.folder, cell.record), cell, context)
        values = record[cell.key]


def _record(path: Path, cell: Cell, context: Context) -> Record:
    """The record of a cell, with the cell in it."""
    record = Record(path, cell.plan)
    if cell.key in record:
        return record
    if cell.borrow:
        beside = record_path(context.folder.parent / cell.borrow, cell.record)
        other = Record(beside) if beside.is_file() else None
        if other is not None and other.plan == cell.plan and cell.key in other:
            record.take(cell.key, other)
            return record
    machine = context.machine(cell.device)
    record.add(cell.key, cell.compute, machine=machine, commit=context.commit)
    test = record[cell.key].get("test")
    score = f": {100 * sum(test) / len(test):.2f} %" if isinstance(test, list) else ""
    context.tell(f"{cell.record}, {cell.key}{score}")
    return record


def record_path(folder: Path, name: str = "record") -> Path:
    """Where a study keeps a record."""
    return folder / "records" / f"{name}.json"


def rounded(values: Any, digits: int = 4) -> Any:
    """A number with so many digits, or nested lists of such numbers.

    >>> rounded([[1 / 3]])
    [[0.3333]]
    """
    if np.ndim(values) == 0:
        return float(f"{float(values):.{digits}g}")
    return [rounded(v, digits) for v in values]


def read_records(folder: Path, names: Sequence[str]) -> dict[str, Record]:
    """The records of a study that exist, by name, in the given order; each is parsed once."""
    paths = {name: record_path(folder, name) for name in names}
    return {n: _parsed(p, p.stat().st_mtime_ns) for n, p in paths.items() if p.is_file()}


@functools.lru_cache(maxsize=512)
def _parsed(path: Path, changed: int) -> Record:
    return Record(path)


def read_record(folder: Path) -> Record:
    """The only record of a study."""
    records = read_records(folder, ["record"])
    if not records:
        raise ValueError(f"Expected records in {folder} (there are none)")
    return records["record"]


def study_names() -> list[str]:
    """The public modules and folders of :mod:`lab.studies`; nothing is imported."""
    path = importlib.import_module(PACKAGE).__path__
    return sorted(m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_"))


def get_study(name: str) -> Study:
    """A study by its name.

    Raises:
        ValueError: if there is none of that name, or if it cannot be imported.

    >>> get_study("regularization").TITLE
    'What penalising coefficients does to the filter (Figure 2)'
    """
    names = study_names()
    if name not in names:
        raise ValueError(f"Expected a study of {', '.join(names)} (got {name!r})")
    try:
        return importlib.import_module(f"{PACKAGE}.{name}")
    except ImportError as error:
        raise ValueError(f"Expected the study {name!r} to be importable ({error})") from error


def sorted_studies(names: Sequence[str] | None = None) -> list[str]:
    """Studies (by default all) in order: each after those whose records it reads (``AFTER``).

    >>> sorted_studies(["recipes", "accuracy"])
    ['accuracy', 'recipes']
    """
    chosen = study_names() if names is None else list(dict.fromkeys(names))
    studies = {name: get_study(name) for name in chosen}
    waiting = sorted(chosen, key=lambda name: (getattr(studies[name], "ORDER", _LAST), name))
    done: list[str] = []
    while waiting:
        ready = [n for n in waiting if not {*getattr(studies[n], "AFTER", ())} & {*waiting}]
        if not ready:
            raise ValueError(f"Expected studies that do not wait for each other (got {waiting})")
        done.append(ready[0])
        waiting.remove(ready[0])
    return done


def is_history(study: Study) -> bool:
    """Whether a study has no cells: its records are views only, nothing computes them again."""
    return not hasattr(study, "cells")


def run_study(name: str, context: Context) -> list[ResultTable]:
    """Compute what is missing, then write tables and figures; returns the tables."""
    study = get_study(name)
    if not is_history(study):
        context.folder.mkdir(parents=True, exist_ok=True)
        compute_cells(study, context)
    elif not (context.folder / "records").is_dir():
        raise ValueError(
            f"Expected a study that can be computed (got {name!r}, which is history: its records "
            "stay, its code went); use --output results"
        )
    tables: list[ResultTable] = study.tables(context.folder)
    write_files(_study_files(study, context.folder, tables))
    return tables


def write_files(files: Mapping[Path, bytes]) -> None:
    """Write what a build gave."""
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)


def _study_files(study: Study, folder: Path, tables: list[ResultTable]) -> dict[Path, bytes]:
    texts = {name: text for table in tables for name, text in table.files().items()}
    drawn: Mapping[str, Figure | bytes] = getattr(study, "figures", lambda folder: {})(folder)
    figures = {k: v if isinstance(v, bytes) else to_png(v) for k, v in drawn.items()}
    return {
        **{folder / "tables" / name: text.encode() for name, text in texts.items()},
        **{folder / "figures" / f"{name}.png": image for name, image in figures.items()},
    }


def build(root: Path) -> dict[Path, bytes]:
    """Every file that the committed records give: tables, figures, pages, recipes, portfolios.

    Args:
        root: of the checkout.
    """
    results = root / "results"
    names = sorted_studies([n for n in study_names() if (results / n / "records").is_dir()])
    studies = {name: get_study(name) for name in names}
    tables = {name: studies[name].tables(results / name) for name in names}
    files: dict[Path, bytes] = {}
    for name, study in studies.items():
        files |= _study_files(study, results / name, tables[name])
        texts: dict[Path, str] = getattr(study, "files", lambda root: {})(root)
        files |= {path: text.encode() for path, text in texts.items()}
    facts = functools.cache(
        lambda name: (bench if name == "bench" else studies[name]).facts(results / name)
    )
    for page in pages(root):
        files[page] = fill_page(page.read_text(encoding="utf-8"), tables, facts).encode()
    return files


def pages(root: Path) -> Iterator[Path]:
    """The pages with tables and sentences of studies."""
    for path in [root / "README.md", *sorted((root / "docs").glob("**/*.md"))]:
        if re.search(r"<!-- (table|text) ", path.read_text(encoding="utf-8")):
            yield path


_TABLE = re.compile(r"(<!-- table (\S+)/(\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
_TEXT = re.compile(r"(<!-- text (\S+)\n(.*?)\n-->\n).*?(<!-- end -->)", re.DOTALL)


def fill_page(
    text: str,
    tables: Mapping[str, Sequence[ResultTable]],
    facts: Callable[[str], Mapping[str, Any]],
) -> str:
    """The text of a page with every marked table and sentence made again.

    Args:
        text: of the page.
        tables: of every study.
        facts: the numbers for sentences, by the name of a study.

    >>> page = "<!-- text toy\\nIt is {x:.1f}.\\n-->\\n<!-- end -->"
    >>> print(fill_page(page, {}, lambda study: {"x": 0.25}).splitlines()[4])
    It is 0.2.
    """

    def table(match: re.Match[str]) -> str:
        head, study, name, end = match.groups()
        named = {t.name: t for t in tables.get(study, ())}
        if name not in named:
            raise ValueError(f"Expected a table of {', '.join(named)} (got {study}/{name})")
        return f"{head}\n{named[name].to_markdown()}\n\n*{named[name].caption}*\n\n{end}"

    def sentence(match: re.Match[str]) -> str:
        head, study, template, end = match.groups()
        try:
            filled = _Formatter().vformat(template, (), facts(study))
        except KeyError as error:
            raise ValueError(f"Expected a fact of {study} (got {error.args[0]!r})") from error
        return f"{head}\n{_wrap(filled)}\n\n{end}"

    return _TEXT.sub(sentence, _TABLE.sub(table, text))


class _Formatter(string.Formatter):
    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion == "n":
            return -value
        if conversion in ("w", "l"):
            return word(value) if conversion == "w" else listed(value)
        return super().convert_field(value, conversion)


def _wrap(text: str) -> str:
    """Paragraphs and items of a list, each filled to a line's width."""
    parts = re.split(r"\n\n|\n(?=- )", text)
    ends = [m.group() for m in re.finditer(r"\n\n|\n(?=- )", text)] + [""]
    indents = ["  " if part.startswith("- ") else "" for part in parts]
    wrapped = [
        textwrap.fill(
            " ".join(part.split()),
            width=100,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for part, indent in zip(parts, indents, strict=True)
    ]
    return "".join(a + b for a, b in zip(wrapped, ends, strict=True))
