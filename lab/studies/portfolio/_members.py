"""Members of a set: what they predict on one graph, and what they are worth joined.

Predictions of all candidates are kept as float16 beside the records, for the choice.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor

from lab.records import Values
from lab.studies._engine import read_records
from lab.studies._printed import PAPER
from longnn._base.files import atomic_path
from longnn.data import NodeDataset
from longnn.metrics import METRICS, Task, headline
from longnn.training import DRAWS as VOTES
from longnn.training import PRIOR, ROUNDS, Fitted, class_counts, combine, ensemble_weights, shifted

#: Scores of one model, or of several joined, over the splits: on the validation nodes (``val``),
#: which chose the epoch and the weights, and on nodes that chose nothing (``test``).
Scored = dict[str, list[float]]
#: The score of a model that diverged, where a record needs a number.
DIVERGED = -1.0


@dataclasses.dataclass(frozen=True)
class Part:
    """Some nodes of one split.

    Args:
        predicted: (candidates, nodes, classes) probabilities, or (candidates, nodes) values.
        labels: (nodes,).
    """

    predicted: Tensor
    labels: Tensor

    def take(self, chosen: Sequence[int]) -> Tensor:
        """The predictions of some candidates."""
        return self.predicted[list(chosen)]

    def sample(self, nodes: int) -> Self:
        """A fixed sample of at most so many nodes."""
        if len(self.labels) <= nodes:
            return self
        generator = torch.Generator().manual_seed(0)
        order = torch.randperm(len(self.labels), generator=generator)[:nodes]
        return dataclasses.replace(
            self, predicted=self.predicted[:, order], labels=self.labels[order]
        )


@dataclasses.dataclass(frozen=True)
class Predictions:
    """Of all candidates on one graph, by split.

    Args:
        task, metric, positive: what is predicted, and how it is scored.
        val, holdout: validation nodes and selection holdout of each split.
        train: of each split how many training nodes each class has, (classes,); none for values,
            and none where it was read from a file.
    """

    task: Task
    metric: str
    positive: int
    val: tuple[Part, ...]
    holdout: tuple[Part, ...]
    train: tuple[Tensor, ...] = ()

    @classmethod
    def collect(cls, dataset: NodeDataset, fitted: Sequence[Sequence[Fitted]]) -> Self:
        """From trained members, (candidates, splits); values around their mean, in deviations."""
        y = dataset.data.y
        mean, unit = 0.0, 1.0
        if dataset.task == "regression":
            known = y[dataset.labelled].double()
            mean, unit = float(known.mean()), float(known.std())
            y = (y.double() - mean) / unit
        metric, positive = headline(dataset.data.y, dataset.task)
        val: list[Part] = []
        holdout: list[Part] = []
        for s, first in enumerate(fitted[0]):
            for parts, mask in ((val, first.split.val), (holdout, first.split.test)):
                rows = torch.stack([runs[s].predicted[mask].double() for runs in fitted])
                parts.append(Part((rows - mean) / unit, y[mask]))
        train = [
            class_counts(y, first.split.train, dataset.outputs)
            for first in (fitted[0] if dataset.task == "classification" else ())
        ]
        return cls(dataset.task, metric, positive, tuple(val), tuple(holdout), tuple(train))

    def write(self, path: Path) -> None:
        """As compressed arrays; probabilities keep three digits."""
        arrays = {"about": np.array([self.task, self.metric, str(self.positive)])}
        for name, parts in (("val", self.val), ("holdout", self.holdout)):
            for s, part in enumerate(parts):
                arrays[f"{name} {s}"] = part.predicted.numpy().astype(np.float16)
                arrays[f"{name} {s} labels"] = part.labels.numpy()
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @classmethod
    def read(cls, path: Path) -> Self:
        """What :meth:`write` wrote."""
        with np.load(path) as file:
            arrays = {key: file[key] for key in file.files}
        task, metric, positive = arrays["about"].tolist()

        def parts(name: str) -> tuple[Part, ...]:
            count = sum(key.startswith(f"{name} ") for key in arrays) // 2
            return tuple(
                Part(
                    torch.from_numpy(arrays[f"{name} {s}"].astype(np.float64)),
                    torch.from_numpy(arrays[f"{name} {s} labels"]),
                )
                for s in range(count)
            )

        return cls(task, metric, int(positive), parts("val"), parts("holdout"))

    @functools.cached_property
    def val_scores(self) -> list[np.ndarray]:
        """The headline metric of each candidate on the validation nodes, by split."""
        return [self.scores(part.predicted, part.labels).round(12) for part in self.val]

    @functools.cached_property
    def val_losses(self) -> list[np.ndarray]:
        """The loss of each candidate on the validation nodes; infinite where one diverged."""
        found = []
        for part in self.val:
            if self.task == "regression":
                losses = (part.predicted - part.labels).square().mean(1)
            else:
                place = part.labels.expand(len(part.predicted), -1)[..., None]
                own = part.predicted.gather(2, place)[..., 0]
                losses = -own.clamp_min(1e-12).log().mean(1)
            found.append(losses.nan_to_num(torch.inf).numpy())
        return found

    def score(self, predicted: Tensor, labels: Tensor) -> float:
        """The headline metric of predictions of some nodes, for a record; higher is better.

        >>> one = Predictions("regression", "r2", 1, (), ())
        >>> one.score(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))
        1.0
        """
        found = float(self.scores(predicted[None], labels)[0])
        return found if math.isfinite(found) else DIVERGED

    def scores(self, predicted: Tensor, labels: Tensor) -> np.ndarray:
        """The same of many candidates at once; minus infinity where one diverged."""
        sound = torch.isfinite(predicted).flatten(1).all(1).numpy()
        metric, true = METRICS[self.metric], labels.expand(len(predicted), -1)
        weight, of = torch.ones(true.shape, dtype=torch.float64), metric.compute[self.task]
        if self.task == "regression":
            share = weight[..., None] / len(labels)  # these add up to one
            found = of(predicted[..., None], true[..., None], share, torch.ones(1, 1))
        else:
            said = predicted if metric.ranks else predicted.argmax(2)
            found = of(said, true, weight, predicted.shape[2], self.positive)
        return np.where(sound, found.numpy(), -math.inf)

    def sample(self, nodes: int) -> Self:
        """A fixed sample of at most so many nodes of each split's two sets."""
        val, holdout = (tuple(n.sample(nodes) for n in of) for of in (self.val, self.holdout))
        return dataclasses.replace(self, val=val, holdout=holdout)


#: The rows of a record of ``ensembles``: one model of the graph's recipe, several seeds of it, the
#: same of the recipe with blocks, and all together.
ONE, SEEDS, BLOCK, BLOCKS, TOGETHER = "one", "seeds", "block", "blocks", "together"
#: The key of its cell.
ENSEMBLES = "ensembles"


def read_ensembles(folder: Path) -> dict[str, Values]:
    """Graph -> row -> way to join -> scores, of the study ``ensembles``."""
    records = read_records(folder, PAPER)
    return {n: record[ENSEMBLES]["rows"] for n, record in records.items() if ENSEMBLES in record}


#: Weights of the members of a set from the validation nodes of one split.
Strategy = Callable[[Predictions, int, Sequence[int]], Tensor]


def _best(p: Predictions, split: int, chosen: Sequence[int]) -> Tensor:
    """The member with the best validation score; among equals the one of the least loss."""
    scores, losses = p.val_scores[split][chosen], p.val_losses[split][chosen]
    weights = torch.zeros(len(chosen), dtype=torch.float64)
    weights[np.lexsort((losses, -scores))[0]] = 1.0
    return weights


def _average(p: Predictions, split: int, chosen: Sequence[int]) -> Tensor:
    return torch.full((len(chosen),), 1 / len(chosen), dtype=torch.float64)


def _half(p: Predictions, split: int, chosen: Sequence[int]) -> Tensor:
    """The plain average of the half with the least validation losses."""
    order = p.val_losses[split][chosen].argsort(kind="stable")[: (len(chosen) + 1) // 2]
    weights = torch.zeros(len(chosen), dtype=torch.float64)
    weights[torch.from_numpy(order)] = 1 / len(order)
    return weights


def _voting(draws: int, rounds: int = ROUNDS, prior: float = 0) -> Strategy:
    def votes(p: Predictions, split: int, chosen: Sequence[int]) -> Tensor:
        val = p.val[split]
        return ensemble_weights(
            val.take(chosen), val.labels, p.task, draws=draws, rounds=rounds, prior=prior
        )

    return votes


#: The way to join members by which ways and portfolios are compared.
JOINED = "votes on draws"
STRATEGIES: dict[str, Strategy] = {
    "best by validation": _best,
    "average": _average,
    "average of the better half": _half,
    "votes on all nodes": _voting(0),
    "25 votes on all nodes": _voting(0, 25),
    "votes on draws": _voting(VOTES),
    "25 votes on draws": _voting(VOTES, 25),
}


#: As presets do it: votes that few nodes do not decide alone; and then a shift of the whole towards
#: the class frequencies of the validation nodes, where these differ from those of training.
IN_USE, SHIFTED = "votes in use", "votes in use, shifted"
WAYS = {**STRATEGIES, **dict.fromkeys((IN_USE, SHIFTED), _voting(VOTES, prior=PRIOR))}


def join(
    p: Predictions, chosen: Sequence[int], ways: Collection[str] = tuple(WAYS)
) -> dict[str, Scored]:
    """Way -> scores of the members joined in it."""
    joined: dict[str, Scored] = {way: {"val": [], "test": []} for way in ways}
    for split, parts in enumerate(zip(p.val, p.holdout, strict=True)):
        for way, scored in joined.items():
            weights = WAYS[way](p, split, list(chosen))
            said = [combine(part.take(chosen), weights) for part in parts]
            if way == SHIFTED:
                said = _shift(p, split, said)
            for scores, predicted, part in zip(scored.values(), said, parts, strict=True):
                scores.append(p.score(predicted, part.labels))
    return joined


def _shift(p: Predictions, split: int, said: list[Tensor]) -> list[Tensor]:
    """Probabilities of the validation nodes and of the holdout, shifted as a run shifts them."""
    if not p.train or p.metric == "balanced_accuracy":
        return said
    labels = [p.val[split].labels, p.holdout[split].labels]
    sizes = [len(part) for part in labels]
    val = torch.arange(sum(sizes)) < sizes[0]
    moved = shifted(torch.cat(said), torch.cat(labels), p.train[split], val)
    return list(moved.split(sizes))


def evaluate(p: Predictions, chosen: Sequence[int]) -> dict[str, list[float]]:
    """Strategy -> holdout scores over the splits."""
    return {name: scored["test"] for name, scored in join(p, chosen, tuple(STRATEGIES)).items()}
