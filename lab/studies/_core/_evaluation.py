"""Configurations on splits: trained as populations, scored on validation and test nodes.

The one way in which studies get an accuracy. Whoever chooses by these numbers looks at ``val``.
"""

import dataclasses
from collections.abc import Sequence

import torch

from longnn.config import Config
from longnn.data import NodeDataset, Split, make_split
from longnn.nn import Model
from longnn.training import Fitted, Job, Problem, score

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
    are not used.

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
    # Features of named datasets are ready to use, whatever a configuration says of scaling.
    members = [as_trained(c).replace(seed=s.seed, scale="none") for c in configs for s in made]
    job = Job(dataset, members, [*made] * len(configs), device=device)
    fitted = job.run()
    scores = []
    for first in range(0, len(fitted), len(made)):
        own = range(first, first + len(made))
        dropped = [
            _score_with_dropout(fitted[i].model, dataset, job.problem_of(i), fitted[i].split)
            for i in (own if leave_dropout_on else ())
        ]
        scores.append(_scores(dataset, [fitted[i] for i in own], dropped))
    return scores


def as_trained(config: Config) -> Config:
    """The configuration without a shift towards the class frequencies of validation nodes.

    The published split differs in them between training and test nodes. No printed number was made
    with such a shift.

    >>> as_trained(Config()).frequencies
    'train'
    """
    return config.replace(frequencies="train")


def _scores(dataset: NodeDataset, fitted: Sequence[Fitted], dropped: Sequence[float]) -> Scores:
    """Scores of one configuration, trained on each split."""
    accuracy = lambda one, mask: score(one.predicted, dataset, mask)["accuracy"]  # noqa: E731
    learned = [pair for one in fitted for pair in _learned(one.model)]
    return Scores(
        val=[round(accuracy(one, one.split.val), 6) for one in fitted],
        test=[round(accuracy(one, one.split.test), 6) for one in fitted],
        epochs=[one.result.epochs for one in fitted],
        best_epochs=[one.result.best_epoch for one in fitted],
        a=[round(a, 6) for a, _ in learned] or None,
        b=[round(b, 6) for _, b in learned] or None,
        test_dropout_on=[round(value, 6) for value in dropped] or None,
    )


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
            scores.append(score(p, dataset, split.test)["accuracy"])
    return sum(scores) / len(scores)
