"""Configurations on splits: trained as populations, scored on validation and test nodes.

The one way by which experiments get an accuracy. Who chooses by these numbers looks at ``val``.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from longnn import training
from longnn.config import Config
from longnn.data import NodeDataset, Split, make_split
from longnn.nn import Model
from longnn.training import Problem, Scaling
from longnn.tuning import architecture

#: Nodes up to which a graph is small: half its validation nodes are few to judge by.
SMALL = 500
#: Random draws of the dropout that is left on, where that is asked for.
DRAWS = 10


def judge(
    dataset: NodeDataset, configs: Sequence[Config], seeds: Sequence[int], *, device: str = "auto"
) -> list[list[float]]:
    """How well each configuration does on tuning splits, without the luck of the best epoch.

    One half of a split's validation nodes decides when to stop, the other half judges: the highest
    accuracy over hundreds of epochs is no estimate of anything on a few dozen nodes. The test nodes
    take no part.

    Returns:
        accuracies (configs, seeds) on the judging half.
    """
    splits = [_halve_validation(make_split(dataset, "published", seed)) for seed in seeds]
    return [row["test"] for row in train_splits(dataset, configs, splits, device=device)]


def _halve_validation(split: Split) -> Split:
    """A split whose test nodes are half of the validation nodes, drawn by its seed."""
    generator = torch.Generator().manual_seed(split.seed)
    nodes = split.val.nonzero()[:, 0]
    judging = nodes[torch.randperm(len(nodes), generator=generator)[: len(nodes) // 2]]
    test = torch.zeros_like(split.val)
    test[judging] = True
    return dataclasses.replace(split, val=split.val & ~test, test=test)


def train_splits(
    dataset: NodeDataset,
    configs: Sequence[Config],
    splits: Sequence[int | Split],
    *,
    device: str = "auto",
    protocol: str = "published",
    leave_dropout_on: bool = False,
) -> list[dict[str, Any]]:
    """Each configuration on each split; configurations of one shape train as one population.

    Args:
        splits: or their seeds; a split's seed is that of weights and dropout too.
        leave_dropout_on: also score the test nodes with the hidden dropout still on, as the
            published code does, under ``test_dropout_on``.

    Returns:
        for each configuration lists over the splits: accuracies ``val`` and ``test``, ``epochs``,
        ``best_epochs``, and ``a`` and ``b`` where the model learns them.
    """
    made = [s if isinstance(s, Split) else make_split(dataset, protocol, s) for s in splits]
    groups: dict[Any, list[int]] = {}
    for i, config in enumerate(configs):
        groups.setdefault((config.model, architecture(config)), []).append(i)
    found: dict[int, dict[str, Any]] = {}
    for numbers in groups.values():
        chosen = [configs[i] for i in numbers]
        problem = training.make_problem(
            dataset, chosen[0], Scaling("none"), device=training.choose_device(device)
        )
        rows = _train(dataset, problem, chosen, made, leave_dropout_on)
        found.update(zip(numbers, rows, strict=True))
    return [found[i] for i in range(len(configs))]


def _train(
    dataset: NodeDataset,
    problem: Problem,
    configs: Sequence[Config],
    splits: Sequence[Split],
    leave_dropout_on: bool,
) -> list[dict[str, Any]]:
    members = [c.replace(seed=split.seed) for c in configs for split in splits]
    results = training.run_chunked(members, problem, [*splits] * len(configs))
    sizes = (problem.features.shape[1], problem.outputs)
    rows: list[dict[str, Any]] = [{} for _ in configs]
    for i, (config, result) in enumerate(zip(members, results, strict=True)):
        row, split = rows[i // len(splits)], splits[i % len(splits)]
        model = training.trained_model(config, *sizes, result.state)
        predicted = training.predict(model, problem)
        values = {
            "val": training.score(predicted, dataset, split.val)["accuracy"],
            "test": training.score(predicted, dataset, split.test)["accuracy"],
            "epochs": result.epochs,
            "best_epochs": result.best_epoch,
            **_learned(model),
        }
        if leave_dropout_on:
            values["test_dropout_on"] = _score_with_dropout(model, dataset, problem, split)
        for key, value in values.items():
            row.setdefault(key, []).append(round(value, 6))
    return rows


def _learned(model: Model) -> dict[str, float]:
    """a and b of the first filter, where they are learned."""
    for f in model.filters():
        if f.learn_basis:
            values = f.basis_parameters()
            return {k: float(values[k].detach()) for k in ("a", "b") if k in values}
    return {}


@torch.no_grad()
def _score_with_dropout(
    model: Model, dataset: NodeDataset, problem: Problem, split: Split
) -> float:
    """Test accuracy with the dropout inside the transform left on, the mean of some draws."""
    model = model.eval().to(problem.device, problem.dtype)
    for name, module in model.named_modules():
        if name == "transform.dropout":
            module.train()
    scores = []
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for _ in range(DRAWS):
            p = torch.softmax(model.scores(problem.features, problem.operator), dim=1).cpu()
            scores.append(training.score(p, dataset, split.test)["accuracy"])
    return sum(scores) / len(scores)
