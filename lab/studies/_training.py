"""Configurations on splits: trained as populations, scored on validation and test nodes.

The one way in which studies get a score. Whoever chooses by these numbers looks at ``val``.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from longnn.config import Config
from longnn.data import NodeDataset, Split, make_split
from longnn.data._scaling import Scaling
from longnn.metrics import headline
from longnn.nn import Model
from longnn.training import Fitted, choose_device, fit, make_problem, score

#: Random draws of the dropout, if it is left on.
DRAWS = 10


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


def train_config(
    dataset: NodeDataset,
    config: Config,
    splits: Sequence[Split],
    *,
    device: str = "auto",
    leave_dropout_on: bool = False,
) -> dict[str, Any]:
    """Accuracies of one configuration on every split; zero where a training diverged.

    Returns:
        lists over the splits: ``val`` and ``test`` scores, ``epochs``, ``best_epochs``, learned
        ``a`` and ``b``; with ``leave_dropout_on`` also ``test_dropout_on``, the score on test nodes
        with the hidden dropout still on, as the authors' code has it. None where there is none.
    """
    # Features of named datasets are ready to use, whatever a configuration says of scaling.
    options: dict[str, Any] = {"device": device, "scale": "none"}
    (fitted,) = fit_all(dataset, [as_trained(config)], splits, **options)
    learned = [pair for each in fitted for pair in _learned(each.model)]
    dropped = [_score_with_dropout(f, dataset, config, device) for f in fitted if leave_dropout_on]
    return {
        "val": [_accuracy(f.predicted, dataset, f.split.val) for f in fitted],
        "test": [_accuracy(f.predicted, dataset, f.split.test) for f in fitted],
        "epochs": [f.result.epochs for f in fitted],
        "best_epochs": [f.result.best_epoch for f in fitted],
        "a": [round(a, 6) for a, _ in learned] or None,
        "b": [round(b, 6) for _, b in learned] or None,
        "fingerprint": dataset.fingerprint(),
        "metric": "accuracy",
        "test_dropout_on": dropped or None,
    }


def _accuracy(predicted: Tensor, dataset: NodeDataset, mask: Tensor) -> float:
    if not bool(torch.isfinite(predicted[mask]).all()):
        return 0.0
    return round(score(predicted, dataset, mask)["accuracy"], 6)


def headline_scores(
    dataset: NodeDataset, predicted: Sequence[Tensor], splits: Sequence[Split]
) -> tuple[list[float], list[float]]:
    """The headline metric on the validation and on the test nodes of each split."""
    metric, _ = headline(dataset.data.y, dataset.task)
    pairs = list(zip(predicted, splits, strict=True))
    val = [score(p, dataset, split.val)[metric] for p, split in pairs]
    test = [score(p, dataset, split.test)[metric] for p, split in pairs]
    return val, test
