"""Recipes of deep models: on each graph the row of ``depth`` with the best validation scores.

The rows of a part of that study had equal random searches on validation nodes; the part with longer
searches comes first. Test scores are reported beside the recipe and decide nothing.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lab.studies._core._context import load_records
from lab.studies._core._protocol import ConfigTable
from lab.studies.depth._plan import ARCS, DEEP, KEYS, PLANS, PUBLISHED, ROWS, TUNED
from lab.studies.protocols._plan import Plan, record_name
from lab.studies.protocols._train import RowCell
from longnn.data._catalog import find_named

#: Parts of the study, the first that has a graph gives its recipe: scores of different splits
#: cannot be compared.
PARTS = (TUNED, DEEP, ARCS, PUBLISHED)


@dataclasses.dataclass(frozen=True)
class DeepChoice:
    """The recipe of a model on a graph.

    Args:
        model: as users type it.
        graph: its name.
        config: the recipe.
        cell: its scores on all splits.
        plan: what splits these are, and what score.
    """

    model: str
    graph: str
    config: ConfigTable
    cell: RowCell
    plan: Plan


def deep_choices(results: Path) -> Iterator[DeepChoice]:
    """The choices that the records of ``depth`` give, for every model with blocks.

    Args:
        results: the folder that holds one folder per study.
    """
    done: set[tuple[str, str]] = set()
    for part in PARTS:
        for graph, plan in PLANS[part].items():
            for record in load_records(results / "depth", [record_name(graph, part)]).values():
                known = [key for key in KEYS[part] if key in ROWS and key in record]
                keys = [key for key in known if _as_loaded(key, graph)]
                rows = {key: record.get(key, RowCell) for key in keys}
                for model, key in _winners(rows).items():
                    if (model, graph) not in done:
                        done.add((model, graph))
                        cell = rows[key]
                        yield DeepChoice(model, graph, _config(key, cell), cell, plan)


def _as_loaded(key: str, graph: str) -> bool:
    """Whether a row saw the features that a graph has when it is loaded by its name.

    >>> _as_loaded("narrow", "minesweeper"), _as_loaded("wide", "photo")
    (True, False)
    """
    return not (ROWS[key].raw and find_named(graph).row_normalize)


def _config(key: str, cell: RowCell) -> ConfigTable:
    """The configuration of a row. What "auto" was decided to be on arcs is said."""
    config = dict(cell.configs[0])
    if ROWS[key].directed:
        config.setdefault("direction", "cover")
    return config


def _winners(rows: dict[str, RowCell]) -> dict[str, str]:
    """Of each model with blocks the row with the best mean validation score; the first of equals.

    >>> lists = {"epochs": [], "best_epochs": [], "fingerprint": "", "metric": "", "configs": []}
    >>> one, two = (RowCell(val=[v], test=[0.0], **lists) for v in (0.5, 0.6))
    >>> _winners({"lon-deep": one, "no-norm": two, "lon": two})
    {'lon-deep': 'no-norm'}
    """
    found: dict[str, str] = {}
    for key, cell in rows.items():
        model = ROWS[key].row.model
        if not model.endswith("-deep"):
            continue
        if model not in found or np.mean(cell.val) > np.mean(rows[found[model]].val):
            found[model] = key
    return found
