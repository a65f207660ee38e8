"""Train all candidates on all splits of every table; one record per table."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from lab.studies._core._baselines import predict_by_columns
from lab.studies._core._context import Context
from lab.studies._core._headline import headline_scores
from lab.studies.presets._candidates import COLUMNS, LABELS, candidates
from lab.studies.presets._data import DEVELOPMENT
from longnn.config import Config
from longnn.data import NodeDataset, Split, make_split
from longnn.metrics import headline
from longnn.training import fit

#: The key of the one cell of a record.
KEY = "candidates"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The size of the study; the splits have the seeds from ``first`` on.

    >>> FULL.splits
    3
    """

    splits: int
    epochs: int
    patience: int
    first: int = 100


FULL, QUICK = Plan(splits=3, epochs=500, patience=100), Plan(splits=2, epochs=3, patience=3)


@dataclasses.dataclass(frozen=True)
class HoldoutCell:
    """What the candidates reached on one table: each by name, a list over the splits.

    Args:
        fingerprint: of the dataset.
        metric: of the scores; higher is better.
        stop: scores on the nodes that stopped the training.
        holdout: scores on the selection holdout, which no training saw.
        best_epochs: the epoch whose weights were kept; none for models of scikit-learn.
        configs: where a configuration differs from the usual defaults.
    """

    fingerprint: str
    metric: str
    stop: dict[str, list[float]]
    holdout: dict[str, list[float]]
    best_epochs: dict[str, list[int]]
    configs: dict[str, dict[str, Any]]


def run(context: Context) -> None:
    """Compute the tables that lack a record."""
    plan = QUICK if context.quick else FULL
    for name in context.choose("datasets", ["diabetes"] if context.quick else list(DEVELOPMENT)):
        record = context.record(name, plan)
        if KEY not in record:
            compute = functools.partial(_cell, DEVELOPMENT[name](), plan)
            cell = record.cell(KEY, HoldoutCell, compute, machine=context.machine("cpu"))
            context.tell(f"{name}: {len(cell.holdout)} candidates")


def _cell(dataset: NodeDataset, plan: Plan) -> HoldoutCell:
    """All candidates on all splits of one table."""
    # A split's three parts are 60, 20 and 20 %; what it calls test is the selection holdout.
    splits = [make_split(dataset, "stratified", plan.first + i) for i in range(plan.splits)]
    given = {"device": "cpu", "epochs": plan.epochs, "patience": plan.patience}
    configs = candidates(dataset, given)
    predicted, best_epochs = _train(dataset, configs, splits)
    for name in COLUMNS:
        predicted[name] = [
            torch.from_numpy(predict_by_columns(name, dataset, split)) for split in splits
        ]
    stop, holdout = {}, {}
    for name in [name for name in LABELS if name in predicted]:
        stop[name], holdout[name] = headline_scores(dataset, predicted[name], splits)
    return HoldoutCell(
        fingerprint=dataset.fingerprint(),
        metric=headline(dataset.data.y, dataset.task)[0],
        stop=stop,
        holdout=holdout,
        best_epochs=best_epochs,
        configs={name: _changed(config, given) for name, config in configs.items()},
    )


def _train(
    dataset: NodeDataset, configs: Mapping[str, Config], splits: Sequence[Split]
) -> tuple[dict[str, list[torch.Tensor]], dict[str, list[int]]]:
    """Predictions and kept epochs by name; configurations of one shape train together."""
    members = [c.replace(seed=split.seed) for c in configs.values() for split in splits]
    fitted = fit(dataset, members, [*splits] * len(configs))
    own = {name: fitted[i * len(splits) : (i + 1) * len(splits)] for i, name in enumerate(configs)}
    return (
        {name: [one.predicted for one in runs] for name, runs in own.items()},
        {name: [one.result.best_epoch for one in runs] for name, runs in own.items()},
    )


def _changed(config: Config, given: Mapping[str, Any]) -> dict[str, Any]:
    usual = Config(model=config.model).to_dict()
    return {k: v for k, v in config.to_dict().items() if k not in given and v != usual[k]}
