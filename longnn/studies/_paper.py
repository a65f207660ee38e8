"""The paper's tables and figures by name: run one, or make its tables and figures again.

An experiment is a module with a ``TITLE`` and three functions: ``run(context)`` computes what its
records lack, ``tables(folder)`` and ``draw(folder)`` turn the records into tables and figures and
never train. A page such as ``docs/results.md`` shows tables between two marks, ``<!-- table
NAME/TABLE -->`` and ``<!-- end -->``; :func:`fill_page` renews them.
"""

import dataclasses
import importlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from longnn._base.files import write_text
from longnn.studies._table import Table

#: Name on the command line and the module that has it.
EXPERIMENTS = {
    "filters": "longnn.studies._fitting",
    "accuracy": "longnn.studies._accuracy",
    "ablation": "longnn.studies._ablation",
    "search": "longnn.studies._search",
    "time": "longnn.studies._timing",
    "overpassing": "longnn.studies._overpassing",
    "regularization": "longnn.studies._regularization",
    "basis": "longnn.studies._basis",
    "recipes": "longnn.studies._recipes",
    "defaults": "longnn.studies._defaults",
}

_MARKED = re.compile(r"(<!-- table (\S+)/(\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Context:
    """How an experiment is run.

    Args:
        folder: for its records, tables and figures.
        data_dir: where the datasets are.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        quick: a small version of everything, for a look.
        datasets, models: only these, where the experiment has such parts.
        commit: of the code, where it runs outside a checkout.
        tell: takes a line of progress.
    """

    folder: Path
    data_dir: str | None = None
    device: str = "auto"
    quick: bool = False
    datasets: Sequence[str] | None = None
    models: Sequence[str] | None = None
    commit: str | None = None
    tell: Callable[[str], None] = print

    def choose(self, kind: str, known: Sequence[str]) -> list[str]:
        """The datasets or models to do: those asked for, or all that are known."""
        asked = self.datasets if kind == "datasets" else self.models
        for name in asked or ():
            if name not in known:
                raise ValueError(f"Expected {kind} among {', '.join(known)} (got {name!r})")
        return list(asked or known)


class Experiment(Protocol):
    """What a module of :data:`EXPERIMENTS` offers."""

    TITLE: str

    def run(self, context: Context) -> None: ...

    def tables(self, folder: Path) -> list[Table]: ...

    def draw(self, folder: Path) -> list[Path]: ...


def get_experiment(name: str) -> Experiment:
    """An experiment by its name."""
    if name not in EXPERIMENTS:
        raise ValueError(f"Expected an experiment of {', '.join(EXPERIMENTS)} (got {name!r})")
    return cast(Experiment, importlib.import_module(EXPERIMENTS[name]))


def run_experiment(name: str, context: Context) -> list[Table]:
    """Compute what is missing, then write tables and figures; returns the tables."""
    context.folder.mkdir(parents=True, exist_ok=True)
    get_experiment(name).run(context)
    return rebuild(name, context.folder)


def rebuild(name: str, folder: Path) -> list[Table]:
    """Tables and figures again from the records of a folder, without training."""
    experiment = get_experiment(name)
    tables = experiment.tables(folder)
    for table in tables:
        table.write(folder)
    experiment.draw(folder)
    return tables


def fill_page(text: str, results: Path) -> str:
    """The text of a page with every marked table made again from the records under a folder."""
    made: dict[str, dict[str, Any]] = {}

    def renew(match: re.Match[str]) -> str:
        head, name, table, end = match.groups()
        if name not in made:
            made[name] = {t.name: t for t in get_experiment(name).tables(results / name)}
        if table not in made[name]:
            raise ValueError(f"Expected a table of {', '.join(made[name])} (got {table!r})")
        chosen = made[name][table]
        return f"{head}\n{chosen.to_markdown()}\n\n*{chosen.caption}*\n\n{end}"

    return _MARKED.sub(renew, text)


def rebuild_all(results: Path, page: Path | None = None) -> list[str]:
    """Make the tables and figures of every experiment under a folder, and the page, again."""
    names = [name for name in EXPERIMENTS if (results / name).is_dir()]
    for name in names:
        rebuild(name, results / name)
    if page is not None:
        write_text(page, fill_page(page.read_text(encoding="utf-8"), results))
    return names
