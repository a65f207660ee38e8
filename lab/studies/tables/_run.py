"""Train every model on every split of every table; one record per table, one cell per model."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import torch

from lab.studies._core._baselines import predict_by_columns
from lab.studies._core._context import Context
from lab.studies._core._headline import headline_scores
from lab.studies.tables._data import HELD_BACK, STORIES
from longnn.data import NodeDataset, Split, make_split
from longnn.metrics import headline
from longnn.training import complete, fit

TABLES = {**STORIES, **HELD_BACK}
#: Models of ours, each with what the data fill in and nothing set.
OURS = ("lon", "mlp", "gcn")
LABELS = {
    "lon": "LON-GNN",
    "constant": "constant",
    "linear": "linear",
    "mlp": "MLP",
    "boosting": "boosting",
    "histogram-boosting": "histogram boosting",
    "gcn": "GCN",
}


@dataclasses.dataclass(frozen=True)
class Plan:
    """The size of the study: how many splits, and the most epochs of a training (0: as preset).

    >>> FULL.splits
    5
    """

    splits: int
    epochs: int


FULL, QUICK = Plan(splits=5, epochs=0), Plan(splits=2, epochs=20)


@dataclasses.dataclass(frozen=True)
class TableCell:
    """What one model reached on one table, lists over the splits.

    Args:
        fingerprint: of the dataset.
        metric: of the scores; higher is better.
        val: scores on validation nodes.
        test: scores on test nodes.
        best_epochs: the epoch whose weights were kept; empty for models of scikit-learn.
        config: what it was trained with, as a flat table; empty for models of scikit-learn.
    """

    fingerprint: str
    metric: str
    val: list[float]
    test: list[float]
    best_epochs: list[int]
    config: dict[str, Any]


def run(context: Context) -> None:
    """Compute the cells that the records lack."""
    plan = QUICK if context.quick else FULL
    for name in context.choose("datasets", ["wine"] if context.quick else list(TABLES)):
        dataset = TABLES[name]()
        splits = [make_split(dataset, "stratified", seed) for seed in range(plan.splits)]
        record = context.record(name, plan)
        for model in context.choose("models", list(LABELS)):
            if model not in record:
                compute = functools.partial(table_cell, model, dataset, splits, plan.epochs)
                record.cell(model, TableCell, compute, machine=context.machine("cpu"))
                context.tell(f"{name}: {LABELS[model]}")


def table_cell(
    model: str, dataset: NodeDataset, splits: Sequence[Split], epochs: int = 0
) -> TableCell:
    """All splits with one model, nothing set but the most epochs (0: as preset)."""
    config: dict[str, Any] = {}
    best_epochs: list[int] = []
    if model in OURS:
        given = {"model": model, "device": "cpu", **({"epochs": epochs} if epochs else {})}
        chosen = complete({"preset": "fast", **given}, dataset)
        fitted = fit(dataset, [chosen.replace(seed=split.seed) for split in splits], splits)
        predicted = [one.predicted for one in fitted]
        best_epochs = [one.result.best_epoch for one in fitted]
        config = {k: v for k, v in chosen.to_dict().items() if v is not None}
    else:
        predicted = [
            torch.from_numpy(predict_by_columns(model, dataset, split)) for split in splits
        ]
    metric, _ = headline(dataset.data.y, dataset.task)
    val, test = headline_scores(dataset, predicted, splits)
    return TableCell(dataset.fingerprint(), metric, val, test, best_epochs, config)
