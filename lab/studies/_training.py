"""Configurations on splits: trained as populations, scored on validation and test nodes.

The one way in which studies get a score. Whoever chooses by these numbers looks at ``val``.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from longnn.config import Config
from longnn.data import NodeDataset, Split, make_split
from longnn.data._scaling import Scaling
from longnn.metrics import headline
from longnn.nn import Model
from longnn.training import (
    Fitted,
    choose_device,
    combine,
    complete,
    ensemble_weights,
    fit,
    make_problem,
    score,
)

#: Random draws of the dropout, if it is left on.
DRAWS = 10
#: How the predictions of several members become one: all alike, or by votes on validation nodes.
Join = Literal["average", "votes"]


def as_trained(config: Config) -> Config:
    """The configuration without a shift towards the class frequencies of validation nodes.

    The published split differs in them between training and test nodes. No printed number was made
    with such a shift.
    """
    return config.replace(frequencies="train")


def make_splits(dataset: NodeDataset, protocol: str, count: int, first: int = 0) -> list[Split]:
    """The splits with the seeds from ``first`` on."""
    if protocol in ("geom-gcn", "fixed") and dataset.num_splits < count:
        raise ValueError(f"Expected {count} masks of {dataset.name!r} (got {dataset.num_splits})")
    return [make_split(dataset, protocol, first + i) for i in range(count)]


def fit_all(
    dataset: NodeDataset,
    configs: Sequence[Config],
    splits: Sequence[Split],
    *,
    device: str | None = None,
    **replaced: Any,
) -> list[list[Fitted]]:
    """Each configuration on each split, (configs, splits), by one call.

    The seed of a configuration is added to that of the split. Some settings are ``replaced`` in all
    configurations; the device is by default each configuration's own.
    """
    members = [c.replace(seed=c.seed + s.seed, **replaced) for c in configs for s in splits]
    fitted = fit(dataset, members, [*splits] * len(configs), device=device)
    return [fitted[i : i + len(splits)] for i in range(0, len(fitted), len(splits))]


def _learned(model: Model) -> list[tuple[float, float]]:
    """(a, b) of the first filter that learns them, if any does."""
    for f in model.filters():
        values = f.basis_parameters() if f.learn_basis else {}
        if {"a", "b"} <= {*values}:
            return [(float(values["a"].detach()), float(values["b"].detach()))]
    return []


@torch.no_grad()
def _score_with_dropout(fitted: Fitted, dataset: NodeDataset, config: Config, device: str) -> float:
    """Test accuracy with the dropout inside the transform left on, the mean of some draws."""
    problem = make_problem(dataset, config, Scaling("none"), device=choose_device(device))
    model = fitted.model.eval().to(problem.device, problem.dtype)
    for name, module in model.named_modules():
        if name == "transform.dropout":
            module.train()
    scores = []
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for _ in range(DRAWS):
            p = torch.softmax(model.scores(problem.features, problem.operator), dim=1).cpu()
            scores.append(score(p, dataset, fitted.split.test)["accuracy"])
    return round(sum(scores) / len(scores), 6)


@dataclasses.dataclass(frozen=True)
class Entry:
    """What one row trains on every split: one configuration, or the members of an ensemble."""

    configs: Sequence[Config]
    join: Join = "average"

    def limited(self, epochs: int) -> Self:
        """The same with at most so many epochs."""
        configs = [c.replace(epochs=min(c.settings.epochs, epochs)) for c in self.configs]
        return dataclasses.replace(self, configs=configs)


def train_rows(
    dataset: NodeDataset,
    rows: Mapping[str, Entry],
    splits: Sequence[Split],
    *,
    metric: str = "accuracy",
    device: str = "auto",
    leave_dropout_on: bool = False,
) -> dict[str, dict[str, Any]]:
    """Train all rows on all splits by one call; what two rows share is trained once.

    The epochs of an ensemble are the sum over its members, its best epochs those of its first. With
    ``leave_dropout_on`` single models are also scored on test nodes with the hidden dropout still
    on, as the authors' code does.

    Returns:
        of each row, lists over the splits: ``val`` and ``test`` scores, ``epochs``,
        ``best_epochs``, learned ``a`` and ``b``, ``test_dropout_on``, ``weights`` of the members of
        an ensemble; None where there is none.
    """
    wanted = {_key(c): c for entry in rows.values() for c in entry.configs}
    configs = [as_trained(config) for config in wanted.values()]
    # Features of named datasets are ready to use, whatever a configuration says of scaling.
    fitted = fit_all(dataset, configs, splits, device=device, scale="none")
    trained = dict(zip(wanted, fitted, strict=True))
    cells = {}
    for key, entry in rows.items():
        runs = [trained[_key(c)] for c in entry.configs]
        cells[key] = _row(dataset, entry, runs, splits, metric)
        if len(runs) == 1 and leave_dropout_on:
            (config,), (each,) = entry.configs, runs
            dropped = [_score_with_dropout(f, dataset, config, device) for f in each]
            cells[key]["test_dropout_on"] = dropped
    return cells


def _key(config: Config) -> str:
    return repr(sorted(config.to_dict().items()))


def _row(
    dataset: NodeDataset,
    entry: Entry,
    fitted: Sequence[Sequence[Fitted]],  # (members, splits)
    splits: Sequence[Split],
    metric: str,
) -> dict[str, Any]:
    weights = None
    learned = [pair for each in fitted[0] for pair in _learned(each.model)]
    if len(fitted) > 1:
        learned = []
    predicted = [each.predicted for each in fitted[0]]
    if len(fitted) > 1:
        stacked = [torch.stack([runs[s].predicted for runs in fitted]) for s in range(len(splits))]
        pairs = list(zip(stacked, splits, strict=True))
        votes = [join_weights(p, dataset, split.val, entry.join) for p, split in pairs]
        predicted = [combine(p, w) for p, w in zip(stacked, votes, strict=True)]
        weights = [[round(float(v), 6) for v in w] for w in votes]
    both = list(zip(predicted, splits, strict=True))
    return {
        "val": [score_of(p, dataset, s.val, metric) for p, s in both],
        "test": [score_of(p, dataset, s.test, metric) for p, s in both],
        "epochs": [sum(runs[s].result.epochs for runs in fitted) for s in range(len(splits))],
        "best_epochs": [each.result.best_epoch for each in fitted[0]],
        "a": [round(a, 6) for a, _ in learned] or None,
        "b": [round(b, 6) for _, b in learned] or None,
        "fingerprint": dataset.fingerprint(),
        "metric": metric,
        "configs": [c.to_dict() for c in entry.configs],
        "weights": weights,
    }


def score_of(predicted: Tensor, dataset: NodeDataset, mask: Tensor, metric: str) -> float:
    """The metric over some nodes; zero where a training diverged."""
    if not bool(torch.isfinite(predicted[mask]).all()):
        return 0.0
    return round(score(predicted, dataset, mask)[metric], 6)


def join_weights(
    predicted: Tensor,  # (members, nodes, classes)
    dataset: NodeDataset,
    val: Tensor,  # (nodes,) bool
    join: Join,
) -> Tensor:
    """Weights (members,) with sum 1; a member that diverged has none."""
    if join == "votes":
        return ensemble_weights(predicted[:, val], dataset.data.y[val], dataset.task)
    sound = torch.isfinite(predicted).flatten(1).all(1).double()
    return sound / sound.sum().clamp_min(1)


#: Rivals without a graph, all of scikit-learn: name -> for values, for classes.
COLUMNS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "constant": (DummyRegressor, DummyClassifier),
    "linear": (
        lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))),
        lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    ),
    "boosting": (GradientBoostingRegressor, GradientBoostingClassifier),
    "histogram-boosting": (HistGradientBoostingRegressor, HistGradientBoostingClassifier),
}


def predict_by_columns(name: str, dataset: NodeDataset, split: Split) -> Tensor:
    """Values (nodes,) or probabilities (nodes, classes) of a rival without the graph."""
    x, y = dataset.data.x.numpy(), dataset.data.y.numpy()
    train = split.train.numpy()
    for_values, for_classes = COLUMNS[name]
    if dataset.task == "regression":
        return torch.from_numpy(np.asarray(for_values().fit(x[train], y[train]).predict(x)))
    return torch.from_numpy(np.asarray(for_classes().fit(x[train], y[train]).predict_proba(x)))


def headline_scores(
    dataset: NodeDataset, predicted: Sequence[Tensor], splits: Sequence[Split]
) -> tuple[list[float], list[float]]:
    """The headline metric on the validation and on the test nodes of each split."""
    metric, _ = headline(dataset.data.y, dataset.task)
    pairs = list(zip(predicted, splits, strict=True))
    val = [score(p, dataset, split.val)[metric] for p, split in pairs]
    test = [score(p, dataset, split.test)[metric] for p, split in pairs]
    return val, test


def train_table(
    model: str, dataset: NodeDataset, splits: Sequence[Split], epochs: int = 0
) -> dict[str, Any]:
    """All splits with one model or rival, nothing set but the most epochs (0: as preset)."""
    config: dict[str, Any] = {}
    best_epochs: list[int] = []
    if model in COLUMNS:
        predicted = [predict_by_columns(model, dataset, split) for split in splits]
    else:
        given = {"model": model, "device": "cpu", **({"epochs": epochs} if epochs else {})}
        chosen = complete({"preset": "fast", **given}, dataset)
        (fitted,) = fit_all(dataset, [chosen], splits)
        predicted = [each.predicted for each in fitted]
        best_epochs = [each.result.best_epoch for each in fitted]
        config = {k: v for k, v in chosen.to_dict().items() if v is not None}
    val, test = headline_scores(dataset, predicted, splits)
    metric, _ = headline(dataset.data.y, dataset.task)
    scores = {"val": val, "test": test, "best_epochs": best_epochs}
    return {"fingerprint": dataset.fingerprint(), "metric": metric, **scores, "config": config}
