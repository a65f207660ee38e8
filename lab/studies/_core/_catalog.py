"""The studies of the package by name: found by looking, run, or made again from their records."""

import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from lab.studies._core._context import Context, Study
from lab.studies._core._table import ResultTable

PACKAGE = "lab.studies"
#: The place of a study that does not say its own: after those that do.
_LAST = 1000


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
    known = study_names()
    if name not in known:
        raise ValueError(f"Expected a study of {', '.join(known)} (got {name!r})")
    try:
        return cast(Study, importlib.import_module(f"{PACKAGE}.{name}"))
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


def run_study(name: str, context: Context) -> list[ResultTable]:
    """Compute what is missing, then write tables and figures; returns the tables."""
    context.folder.mkdir(parents=True, exist_ok=True)
    get_study(name).run(context)
    return rebuild_study(name, context.folder)


def rebuild_study(name: str, folder: Path) -> list[ResultTable]:
    """Make tables and figures again from the records of a folder, without training."""
    study = get_study(name)
    tables = study.tables(folder)
    for table in tables:
        table.write(folder / "tables")
    study.draw(folder)
    return tables
