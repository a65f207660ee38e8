r"""From the outputs of a trained model to predictions one can act on.

A model computes numbers for each node. What they mean is learned on the validation nodes, after
training: a *temperature*, which makes probabilities honest, a *shift* towards the classes that are
more frequent there than among the training nodes, and a *threshold*, from which on the rarer of two
classes is predicted. Regression adds the mean and the spread that its labels had.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longnn._base.late import Late
from longnn._base.schema import Node
from longnn.config import Config
from longnn.metrics import Task

special = Late("scipy.special")

#: log T is looked for between these; T = 1 leaves the probabilities as they are.
LOG_TEMPERATURES = (-3.0, 3.0)
#: The strength of a shift is looked for between these; 1 is what frequencies alone call for.
STRENGTHS = (0.0, 2.0)
#: Frequencies of validation nodes differ from those of training nodes if chance alone makes such a
#: difference less often than this. Test nodes have what validation nodes lack: to follow a
#: difference that is chance costs twice.
CHANCE = 0.001
#: Nodes that the frequencies of the training nodes count as.
KNOWN = 10
_LEAST = 1e-12  # of a probability, so that its logarithm is finite


@dataclasses.dataclass(frozen=True)
class Readout:
    r"""How the outputs of a model become predictions.

    Args:
        task: what is predicted.
        temperature: probabilities are :math:`\mathrm{softmax}(s / T + \delta)`, of labels
            :math:`\sigma(s / T)`.
        threshold: probability from which on the ``positive`` one of two classes, or a label, is
            predicted; None for the most probable class.
        positive: of two classes the one that the threshold is for.
        offset, scale: regression: values are offset + scale * output, by target.
        shift: :math:`\delta` of each class; empty for none.
        factors: of more than two classes, what the probability of each is multiplied by before the
            largest one is chosen; empty for the most probable class.

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
    shift: tuple[float, ...] = ()
    factors: tuple[float, ...] = ()

    def predict(self, scores: Tensor) -> Tensor:  # (nodes, outputs)
        """Probabilities (nodes, outputs), or values (nodes,) or (nodes, targets)."""
        if self.task == "classification":
            return torch.softmax(self._shifted(scores / self.temperature, 1.0), dim=1)
        if self.task == "multilabel":
            return torch.sigmoid(scores / self.temperature)
        values = scores.new_tensor(self.offset) + scores.new_tensor(self.scale) * scores
        return values[:, 0] if values.shape[1] == 1 else values

    def _shifted(self, scores: Tensor, by: float) -> Tensor:
        return scores + by * scores.new_tensor(self.shift) if self.shift else scores

    def choose(self, predicted: Tensor) -> Tensor:
        """The class of each node (nodes,), its labels (nodes, labels), or the values themselves."""
        if self.task == "regression":
            return predicted
        if self.task == "multilabel":
            return (predicted >= (self.threshold or 0.5)).long()
        if self.factors:
            return (predicted * predicted.new_tensor(self.factors)).argmax(1)
        if self.threshold is None or predicted.shape[1] != 2:
            return predicted.argmax(1)
        chosen = predicted[:, self.positive] >= self.threshold
        return torch.where(chosen, self.positive, 1 - self.positive)

    def without_shift(self, predicted: Tensor) -> Tensor:
        """The probabilities that the temperature alone would give."""
        if not self.shift:
            return predicted
        scores = self._shifted(predicted.double().log(), -1.0)
        return torch.softmax(scores, dim=1).to(predicted)

    def uncalibrated(self, predicted: Tensor) -> Tensor:
        """The probabilities that the model itself would give."""
        if self.task == "regression":
            return predicted
        if self.task == "multilabel":
            return torch.sigmoid(self.temperature * torch.logit(predicted.double())).to(predicted)
        powers = self.temperature * self._shifted(predicted.double().log(), -1.0)
        return torch.softmax(powers, dim=1).to(predicted)

    @classmethod
    def mean(cls, readouts: Sequence[Self]) -> Self:
        """The readout of averaged predictions: the mean of the thresholds, and of the factors."""
        thresholds = [r.threshold for r in readouts if r.threshold is not None]
        threshold = sum(thresholds) / len(thresholds) if thresholds else None
        given = [r.factors for r in readouts if r.factors]
        factors = tuple(np.exp(np.log(given).mean(0)).tolist()) if given else ()
        return dataclasses.replace(readouts[0], threshold=threshold, factors=factors)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the task, and without a shift where there is none."""
        plain = dataclasses.asdict(self)
        del plain["task"]
        for key in ("shift", "factors"):
            if not plain[key]:
                del plain[key]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}

    @classmethod
    def read(cls, task: Task, node: Node) -> Self:
        """From the place of a :meth:`to_dict` in a file."""
        temperature = node["temperature"].number()
        if not temperature > 0:
            node["temperature"].fail("a number > 0")
        shift = tuple(node["shift"].array(None).tolist()) if node["shift"].given else ()
        if not np.isfinite(shift).all():
            node["shift"].fail("finite numbers")
        factors = tuple(node["factors"].array(None).tolist()) if node["factors"].given else ()
        if not (np.isfinite(factors).all() and all(factor > 0 for factor in factors)):
            node["factors"].fail("numbers > 0")
        threshold = node["threshold"].number() if node["threshold"].given else None
        if threshold is not None and not 0 <= threshold <= 1:
            node["threshold"].fail("a probability")
        positive = node["positive"].integer()
        if positive not in (0, 1):
            node["positive"].fail("0 or 1")
        offset, scale = (tuple(node[key].array(None).tolist()) for key in ("offset", "scale"))
        if not np.isfinite([*offset, *scale]).all():
            node["offset"].fail("finite, and so the scale")
        return cls(task, temperature, threshold, positive, offset, scale, shift, factors)


def fit_temperature(
    scores: Tensor, labels: Tensor, task: Task, weight: Tensor | None = None
) -> float:
    r"""The temperature under which the labels are most likely.

    .. math:: \min_T \; -\sum_i \log p_T(y_i \mid s_i) + \tfrac12 (\log T)^2

    The second term counts as one more node that prefers T = 1: without it a handful of nodes, all
    predicted right, would ask for certainty.

    Args:
        scores: (nodes, outputs) of the validation nodes, raw.
        labels: (nodes,), or (nodes, labels) with NaN for unknown.
        task: classification or multilabel.
        weight: (nodes,), of about one, by which each counts in the sum.

    >>> scores = torch.tensor([[4.0, 0.0]] * 10)
    >>> labels = torch.tensor([0] * 7 + [1] * 3)
    >>> fit_temperature(scores, labels, "classification") > 3  # it was too sure
    True
    """
    s = scores.detach().double().cpu()
    loss = _likelihood(s, labels.cpu(), task, weight)

    def cost(log_temperature: float) -> float:
        return loss(math.exp(log_temperature)) + log_temperature**2 / 2

    import scipy.optimize  # slow to load, and needed after training alone

    found = scipy.optimize.minimize_scalar(cost, bounds=LOG_TEMPERATURES, method="bounded")
    return float(math.exp(found.x)) if np.isfinite(found.fun) else 1.0


def fit_shift(
    scores: Tensor,  # (nodes, classes)
    labels: Tensor,  # (nodes,)
    direction: Tensor,  # (classes,)
) -> tuple[float, tuple[float, ...]]:
    r"""Temperature and shift under which the labels of the validation nodes are most likely.

    .. math:: \min_{T,\, 0 \le \kappa \le 2} \;
        -\sum_i \log \mathrm{softmax}(s_i / T + \kappa \delta)_{y_i}
        + \tfrac12 (\log T)^2 + \tfrac12 \kappa^2

    A model that has learned the frequencies of its training nodes needs :math:`\kappa = 1`. One
    that was stopped, or tuned, by the validation nodes may know theirs already, and needs less.

    Args:
        scores: of the validation nodes, raw.
        labels: of the same nodes.
        direction: :math:`\delta`, see :func:`frequency_shift`.

    Returns:
        :math:`T` and :math:`\kappa \delta`, empty where :math:`\kappa = 0`.

    >>> scores, labels = torch.zeros(20, 2), torch.tensor([0] * 16 + [1] * 4)
    >>> _, shift = fit_shift(scores, labels, torch.tensor([0.0, -2.0]))
    >>> shift[1] < -1  # nothing but the frequencies is known, and one class is rare
    True
    """
    s, delta, y = scores.detach().double().cpu(), direction.double().cpu(), labels.cpu()

    def cost(at: np.ndarray) -> tuple[float, np.ndarray]:
        v = torch.tensor(at, requires_grad=True)
        moved = s * torch.exp(-v[0]) + v[1] * delta
        total = F.cross_entropy(moved, y, reduction="sum") + v.square().sum() / 2
        (slope,) = torch.autograd.grad(total, v)
        return float(total.detach()), slope.numpy()

    bounds = [LOG_TEMPERATURES, STRENGTHS]
    import scipy.optimize  # slow to load, and needed after training alone

    found = scipy.optimize.minimize(cost, np.zeros(2), jac=True, bounds=bounds, method="L-BFGS-B")
    if not np.isfinite(found.fun):
        return 1.0, ()
    shift = tuple((found.x[1] * delta).tolist()) if found.x[1] > 0 else ()
    return float(math.exp(found.x[0])), shift


def shifted(
    predicted: Tensor,  # (nodes, classes) probabilities
    labels: Tensor,  # (nodes,); below 0 if unknown
    train: Tensor,  # (classes,): how many training nodes each class has
    val: Tensor,  # (nodes,) bool
) -> Tensor:
    """Probabilities that follow the validation nodes; as they are if frequencies do not differ.

    For whatever predicts and has no readout: baselines, and predictions that are stored.

    >>> labels, val = torch.tensor([0] * 30), torch.ones(30, dtype=torch.bool)
    >>> shifted(torch.full((30, 2), 0.5), labels, torch.tensor([20, 20]), val)[0].argmax()
    tensor(0)
    """
    delta = frequency_shift(train, class_counts(labels, val, len(train)))
    if delta is None:
        return predicted
    known, scores = val & (labels >= 0), predicted.clamp_min(_LEAST).log()
    temperature, shift = fit_shift(scores[known], labels[known], delta)
    return Readout("classification", temperature, shift=shift).predict(scores)


def scores_of(probabilities: Tensor, task: Task) -> Tensor:
    """Scores whose probabilities are these, at temperature one.

    >>> scores_of(torch.tensor([[0.5, 0.5]]), "multilabel")
    tensor([[0., 0.]])
    """
    p = probabilities.double().clamp(_LEAST, 1 - _LEAST)
    scores = p.log() if task == "classification" else torch.logit(p)
    return scores.to(probabilities)


def class_counts(
    labels: Tensor, mask: Tensor, classes: int, weight: Tensor | None = None
) -> Tensor:
    """How many of some nodes each class has, or what these weigh, (classes,); those without a label
    do not count.

    >>> class_counts(torch.tensor([0, 2, -1, 2]), torch.tensor([False, True, True, True]), 3)
    tensor([0, 0, 2])
    """
    known = mask & (labels >= 0)
    weights = None if weight is None else weight[known]
    return torch.bincount(labels[known], weights, minlength=classes)


def frequency_shift(train: Tensor, val: Tensor) -> Tensor | None:  # (classes,) counts
    r"""How the classes of the validation nodes differ in frequency from those of training.

    .. math:: \delta_c = \log \frac{(n_c + m\, \pi_c) / (n + m)}{\pi_c}

    with the frequencies :math:`\pi` of the training nodes and the counts :math:`n_c` of the
    validation nodes, to which the former count as :math:`m = 10` nodes. By Bayes' rule this is what
    a model of the training nodes lacks where only the frequencies differ (Saerens et al., 2002). A
    class without a training node is left as it is.

    Args:
        train, val: how many nodes each class has.

    Returns:
        the shift, or None where a :math:`\chi^2` test says that it may well be chance.

    >>> frequency_shift(torch.tensor([50, 50]), torch.tensor([26, 24])) is None
    True
    >>> frequency_shift(torch.tensor([50, 50]), torch.tensor([90, 0]))
    tensor([ 0.6419, -2.3026], dtype=torch.float64)
    """
    there = train > 0
    if int(there.sum()) < 2 or int(val[there].sum()) == 0:
        return None
    counts = torch.stack([train[there], val[there]]).cpu().numpy()
    if chance_of(counts) > CHANCE:
        return None
    usual = train[there].double() / train[there].sum()
    found = val[there].double()
    delta = torch.zeros(len(train), dtype=torch.float64)
    delta[there.cpu()] = ((found + KNOWN * usual) / (found.sum() + KNOWN) / usual).log().cpu()
    return delta


def chance_of(counts: np.ndarray) -> float:  # (2, classes)
    r"""How often chance alone makes two rows of counts differ so: the :math:`\chi^2` test.

    Between two classes, Yates' correction moves each count by half towards what is expected.

    >>> round(chance_of(np.array([[10, 20], [20, 10]])), 4)
    0.0201
    """
    expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    far = np.abs(counts - expected)
    far -= np.minimum(0.5, far) if counts.shape[1] == 2 else 0.0
    freedom = counts.shape[1] - 1
    return float(special.gammaincc(freedom / 2, (far**2 / expected).sum() / 2))


def _likelihood(
    s: Tensor, labels: Tensor, task: Task, weight: Tensor | None
) -> Callable[[float], float]:
    """The negative log likelihood of the labels as a function of the temperature."""
    w = s.new_ones(len(s)) if weight is None else weight.to(s)
    if task == "classification":
        return lambda t: float((F.cross_entropy(s / t, labels, reduction="none") * w).sum())
    known = ~torch.isnan(labels)
    s, y, w = s[known], labels[known].double(), w[:, None].expand_as(s)[known]
    return lambda t: float(F.binary_cross_entropy_with_logits(s / t, y, w, reduction="sum"))


def threshold_again(
    readout: Readout,
    config: Config,
    predicted: Tensor,
    labels: Tensor,
    weight: Tensor | None = None,
) -> Readout:
    """The readout with the threshold that suits other predictions of the validation nodes."""
    if readout.threshold is None or config.threshold or readout.task != "classification":
        return readout
    known = labels >= 0
    hit = labels[known] == readout.positive
    best = best_threshold(
        predicted[known][:, readout.positive], hit, None if weight is None else weight[known]
    )
    return dataclasses.replace(readout, threshold=best)


def best_threshold(probability: Tensor, hit: Tensor, weight: Tensor | None = None) -> float:
    """The threshold with the largest F1 of the positive class; midway between two nodes.

    Args:
        probability: (nodes,) of the positive class.
        hit: (nodes,) bool, whether the node is of it.
        weight: (nodes,), by which each counts.

    >>> best_threshold(torch.tensor([0.1, 0.2, 0.3]), torch.tensor([False, True, True]))
    0.15...
    """
    p, order = probability.detach().double().cpu().sort(descending=True)
    w = torch.ones_like(p) if weight is None else weight.cpu().double()[order]
    right, taken = (hit.cpu()[order] * w).cumsum(0), w.cumsum(0)
    f1 = 2 * right / (taken + right[-1])
    last = torch.cat([p[1:] < p[:-1], torch.tensor([True])])  # nodes of one score go together
    best = int(torch.where(last, f1, -1.0).argmax())
    below = p[best + 1] if best + 1 < len(p) else torch.zeros(())
    return float((p[best] + below) / 2)


def balancing_factors(counts: Tensor) -> tuple[float, ...]:
    r"""Factors :math:`1 / \pi_c` of classes with so many nodes, (classes,): what the most probable
    class has to be weighed with for the balanced accuracy, if probabilities are honest.

    A choice by validation nodes, of a power of the frequencies, was no better.

    >>> balancing_factors(torch.tensor([16, 4]))
    (1.25, 5.0)
    """
    return tuple((counts.sum() / counts.clamp_min(1)).tolist())
