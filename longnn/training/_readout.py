r"""From the outputs of a trained model to predictions one can act on.

A model computes numbers for each node. What they mean is learned on the validation nodes, after
training: a *temperature*, which makes probabilities honest, and a *threshold*, from which on the
rarer of two classes is predicted. Regression adds the mean and the spread that its labels had.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import scipy.optimize
import torch
import torch.nn.functional as F
from torch import Tensor

from longnn._base.node import Node
from longnn.training._problem import Task

#: log T is looked for between these; T = 1 leaves the probabilities as they are.
LOG_TEMPERATURES = (-3.0, 3.0)


@dataclasses.dataclass(frozen=True)
class Readout:
    r"""How the outputs of a model become predictions.

    Args:
        task: what is predicted.
        temperature: probabilities are :math:`\mathrm{softmax}(s / T)`, of labels
            :math:`\sigma(s / T)`.
        threshold: probability from which on the ``positive`` one of two classes, or a label, is
            predicted; None for the most probable class.
        positive: of two classes the one that the threshold is for.
        offset, scale: regression: values are offset + scale * output, by target.

    >>> readout = Readout("classification", temperature=2.0, threshold=0.2)
    >>> p = readout.predict(torch.tensor([[2.0, 0.0]]))
    >>> p, readout.choose(p)
    (tensor([[0.7311, 0.2689]]), tensor([1]))
    """

    task: Task
    temperature: float = 1.0
    threshold: float | None = None
    positive: int = 1
    offset: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)

    def predict(self, scores: Tensor) -> Tensor:  # (nodes, outputs)
        """Probabilities (nodes, outputs), or values (nodes,) or (nodes, targets)."""
        if self.task == "classification":
            return torch.softmax(scores / self.temperature, dim=1)
        if self.task == "multilabel":
            return torch.sigmoid(scores / self.temperature)
        values = scores.new_tensor(self.offset) + scores.new_tensor(self.scale) * scores
        return values[:, 0] if values.shape[1] == 1 else values

    def choose(self, predicted: Tensor) -> Tensor:
        """The class of each node (nodes,), its labels (nodes, labels), or the values themselves."""
        if self.task == "regression":
            return predicted
        if self.task == "multilabel":
            return (predicted >= (self.threshold or 0.5)).long()
        if self.threshold is None or predicted.shape[1] != 2:
            return predicted.argmax(1)
        chosen = predicted[:, self.positive] >= self.threshold
        return torch.where(chosen, self.positive, 1 - self.positive)

    def uncalibrated(self, predicted: Tensor) -> Tensor:
        """The probabilities that the model itself would give."""
        if self.task == "regression":
            return predicted
        if self.task == "multilabel":
            return torch.sigmoid(self.temperature * torch.logit(predicted.double())).to(predicted)
        powers = self.temperature * predicted.double().log()
        return torch.softmax(powers, dim=1).to(predicted)

    @classmethod
    def mean(cls, readouts: Sequence[Self]) -> Self:
        """The readout of averaged predictions: the mean of the thresholds."""
        thresholds = [r.threshold for r in readouts if r.threshold is not None]
        threshold = sum(thresholds) / len(thresholds) if thresholds else None
        return dataclasses.replace(readouts[0], threshold=threshold)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the task."""
        plain = dataclasses.asdict(self)
        del plain["task"]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}

    @classmethod
    def read(cls, task: Task, node: Node) -> Self:
        """From the place of a :meth:`to_dict` in a file."""
        temperature = node["temperature"].number()
        if not temperature > 0:
            node["temperature"].fail("a number > 0")
        threshold = node["threshold"].number() if node["threshold"].given else None
        if threshold is not None and not 0 <= threshold <= 1:
            node["threshold"].fail("a probability")
        positive = node["positive"].integer()
        if positive not in (0, 1):
            node["positive"].fail("0 or 1")
        offset, scale = (tuple(node[key].array(None).tolist()) for key in ("offset", "scale"))
        if not np.isfinite([*offset, *scale]).all():
            node["offset"].fail("finite, and so the scale")
        return cls(task, temperature, threshold, positive, offset, scale)


def fit_temperature(scores: Tensor, labels: Tensor, task: Task) -> float:
    r"""The temperature under which the labels are most likely.

    .. math:: \min_T \; -\sum_i \log p_T(y_i \mid s_i) + \tfrac12 (\log T)^2

    The second term counts as one more node that prefers T = 1: without it a handful of nodes, all
    predicted right, would ask for certainty.

    Args:
        scores: (nodes, outputs) of the validation nodes, raw.
        labels: (nodes,), or (nodes, labels) with NaN for unknown.
        task: classification or multilabel.

    >>> scores = torch.tensor([[4.0, 0.0]] * 10)
    >>> labels = torch.tensor([0] * 7 + [1] * 3)
    >>> fit_temperature(scores, labels, "classification") > 3  # it was too sure
    True
    """
    s = scores.detach().double().cpu()
    loss = _likelihood(s, labels.cpu(), task)

    def cost(log_temperature: float) -> float:
        return loss(math.exp(log_temperature)) + log_temperature**2 / 2

    found = scipy.optimize.minimize_scalar(cost, bounds=LOG_TEMPERATURES, method="bounded")
    return float(math.exp(found.x)) if np.isfinite(found.fun) else 1.0


def _likelihood(s: Tensor, labels: Tensor, task: Task) -> Callable[[float], float]:
    """The negative log likelihood of the labels as a function of the temperature."""
    if task == "classification":
        return lambda t: float(F.cross_entropy(s / t, labels, reduction="sum"))
    known = ~torch.isnan(labels)
    s, y = s[known], labels[known].double()
    return lambda t: float(F.binary_cross_entropy_with_logits(s / t, y, reduction="sum"))


def best_threshold(probability: Tensor, hit: Tensor) -> float:
    """The threshold with the largest F1 of the positive class; midway between two nodes.

    Args:
        probability: (nodes,) of the positive class.
        hit: (nodes,) bool, whether the node is of it.

    >>> best_threshold(torch.tensor([0.1, 0.2, 0.3]), torch.tensor([False, True, True]))
    0.15...
    """
    p, order = probability.detach().double().cpu().sort(descending=True)
    right = hit.cpu()[order].double().cumsum(0)
    taken = torch.arange(1, len(p) + 1)
    f1 = 2 * right / (taken + right[-1])
    last = torch.cat([p[1:] < p[:-1], torch.tensor([True])])  # nodes of one score go together
    best = int(torch.where(last, f1, -1.0).argmax())
    below = p[best + 1] if best + 1 < len(p) else torch.zeros(())
    return float((p[best] + below) / 2)
