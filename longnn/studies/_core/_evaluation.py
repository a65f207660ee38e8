"""Configurations on splits: trained as populations, scored on validation and test nodes.

The one way in which studies get an accuracy. Whoever chooses by these numbers looks at ``val``.
"""

import dataclasses
from collections.abc import Sequence

import torch

from longnn import training
from longnn.config import Config
from longnn.data import NodeDataset, Split, make_split
from longnn.nn import Model
from longnn.training import Problem, Scaling
from longnn.tuning import architecture

#: Most nodes of a small graph: half of its validation nodes are too few for a reliable score.
SMALL = 500
#: Random draws of the dropout, if it is left on.
DRAWS = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scores:
    """What one configuration reached, each a list over the splits.

    Args:
        val: accuracy on the validation nodes, which stopped the training.
        test: accuracy on the test nodes.
        epochs: that were trained.
        best_epochs: the epoch whose weights were kept.
        a: learned parameter of the basis; None if it is not learned.
        b: likewise.
        test_dropout_on: test accuracy with the hidden dropout left on, if asked for.
    """

    val: list[float]
    test: list[float]
    epochs: list[int]
    best_epochs: list[int]
    a: list[float] | None = None
    b: list[float] | None = None
    test_dropout_on: list[float] | None = None


def holdout_scores(
    dataset: NodeDataset, configs: Sequence[Config], seeds: Sequence[int], *, device: str = "auto"
) -> list[list[float]]:
    """Accuracy of each configuration on tuning splits, without the luck of the best epoch.

    One half of a split's validation nodes decides when to stop; the score is measured on the other
    half. The highest accuracy over hundreds of epochs says little on a few dozen nodes. Test nodes
    play no part.

    Returns:
        accuracies on the held-out half, shape (configs, seeds).
    """
    splits = [_halve_validation(make_split(dataset, "published", seed)) for seed in seeds]
    return [scores.test for scores in train_splits(dataset, configs, splits, device=device)]


def _halve_validation(split: Split) -> Split:
    """A split whose test nodes are half of the validation nodes, drawn by its seed."""
    generator = torch.Generator().manual_seed(split.seed)
    nodes = split.val.nonzero()[:, 0]
    held_out = nodes[torch.randperm(len(nodes), generator=generator)[: len(nodes) // 2]]
    test = torch.zeros_like(split.val)
    test[held_out] = True
    return dataclasses.replace(split, val=split.val & ~test, test=test)


def train_splits(
    dataset: NodeDataset,
    configs: Sequence[Config],
    splits: Sequence[int | Split],
    *,
    device: str = "auto",
    protocol: str = "published",
    leave_dropout_on: bool = False,
) -> list[Scores]:
    """Train each configuration on each split; those of one shape train as one population.

    Args:
        dataset: to train on.
        configs: what to train.
        splits: splits or their seeds; a split's seed also seeds weights and dropout.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        protocol: of the splits that are given by seeds.
        leave_dropout_on: also score the test nodes with the hidden dropout still on, as the
            authors' code does.

    Returns:
        scores of each configuration.

    >>> from longnn.data import csbm
    >>> config = Config(model="mlp").replace(epochs=2)
    >>> (found,) = train_splits(csbm(num_nodes=60, num_features=4), [config], [0, 1], device="cpu")
    >>> found.epochs
    [2, 2]
    """
    made = [s if isinstance(s, Split) else make_split(dataset, protocol, s) for s in splits]
    groups: dict[object, list[int]] = {}
    for i, config in enumerate(configs):
        groups.setdefault((config.model, architecture(config)), []).append(i)
    found: dict[int, Scores] = {}
    for numbers in groups.values():
        chosen = [configs[i] for i in numbers]
        problem = training.make_problem(
            dataset, chosen[0], Scaling("none"), device=training.choose_device(device)
        )
        scores = _train(dataset, problem, chosen, made, leave_dropout_on)
        found.update(zip(numbers, scores, strict=True))
    return [found[i] for i in range(len(configs))]


def _train(
    dataset: NodeDataset,
    problem: Problem,
    configs: Sequence[Config],
    splits: Sequence[Split],
    leave_dropout_on: bool,
) -> list[Scores]:
    """Scores of configurations of one shape."""
    members = [c.replace(seed=split.seed) for c in configs for split in splits]
    results = training.run_chunked(members, problem, [*splits] * len(configs))
    sizes = (problem.features.shape[1], problem.outputs)
    scores = [Scores(val=[], test=[], epochs=[], best_epochs=[]) for _ in configs]
    learned: list[list[tuple[float, float]]] = [[] for _ in configs]
    dropped: list[list[float]] = [[] for _ in configs]
    for i, (config, result) in enumerate(zip(members, results, strict=True)):
        number, split = i // len(splits), splits[i % len(splits)]
        model = training.trained_model(config, *sizes, result.state)
        predicted = training.predict(model, problem)
        for values, mask in ((scores[number].val, split.val), (scores[number].test, split.test)):
            values.append(round(training.score(predicted, dataset, mask)["accuracy"], 6))
        scores[number].epochs.append(result.epochs)
        scores[number].best_epochs.append(result.best_epoch)
        learned[number] += _learned(model)
        if leave_dropout_on:
            accuracy = _score_with_dropout(model, dataset, problem, split)
            dropped[number].append(round(accuracy, 6))
    return [
        dataclasses.replace(
            s,
            a=[round(a, 6) for a, _ in of] or None,
            b=[round(b, 6) for _, b in of] or None,
            test_dropout_on=on or None,
        )
        for s, of, on in zip(scores, learned, dropped, strict=True)
    ]


def _learned(model: Model) -> list[tuple[float, float]]:
    """(a, b) of the first filter that learns them, if any does."""
    for f in model.filters():
        values = f.basis_parameters() if f.learn_basis else {}
        if {"a", "b"} <= {*values}:
            return [(float(values["a"].detach()), float(values["b"].detach()))]
    return []


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
