r"""How far predictions may be off, and which classes are plausible: conformal prediction.

The errors on validation nodes, which no model was fitted to, say how large errors are. With the
errors :math:`r_i = |y_i - f(x_i)| / s(x_i)` of n nodes, sorted, a number lies within

.. math:: f(x) \pm s(x) \, r_{(k)}, \qquad k = \lceil (n + 1) c \rceil,

with probability c at least if the nodes are exchangeable, whatever the model and its errors are
(Vovk et al., 2005; Lei et al., 2018). The spread s makes an interval narrow where members agree and
wide where they do not; it is learned, and constant where that is no worse. Of classes
:math:`r_i = 1 - p_{y_i}(x_i)`, and those are plausible whose probability is at least
:math:`1 - r_{(k)}`: the smallest sets with this coverage (Sadinle et al., 2019).

Kept are sorted errors and a few coefficients, so that any coverage can be asked for later, and of
any graph. Knows neither graphs nor models.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from longnn._base.schema import Node, Schema
from longnn.metrics import Task
from longnn.training._ensemble import combine, votes_of
from longnn.training._known import corrected
from longnn.training._readout import Readout

#: Coverage that intervals have where none is asked for.
COVERAGE = 0.9
#: Parts of the validation nodes; what is learned on the others is judged on each.
FOLDS = 5
#: A learned spread is kept if intervals of these coverages are narrower, on average, by this.
JUDGED, NARROWER = (0.8, 0.9, 0.95), 0.98
#: Most errors that are kept: of more, quantiles.
KEPT = 1000
#: Penalty on the squared coefficients of a spread, as if so many nodes spoke for a constant one.
RIDGE = 1.0
#: A signal is cut off outside these quantiles of the validation nodes, so that no width explodes.
CUT = (0.02, 0.98)
_STEPS = 30  # of Newton's method; it takes about six
_LEAST = 1e-12


class Opinion(NamedTuple):
    """What a model predicts of some nodes, and how far its members disagree about it."""

    predicted: Tensor  # probabilities (nodes, classes), or values (nodes,) or (nodes, targets)
    disagreement: Tensor | None = None  # of values, the same shape and unit

    @classmethod
    def of(cls, readout: Readout, scores: Tensor, disagreement: Tensor | None) -> Self:
        """Of scores of the model, and the deviation of its members' scores from them."""
        predicted = readout.predict(scores)
        if disagreement is None or readout.task != "regression":
            return cls(predicted)
        unit = scores.new_tensor(readout.scale).abs()
        return cls(predicted, (unit * disagreement).reshape(predicted.shape))

    @classmethod
    def join(cls, batches: Sequence[Self]) -> Self:
        """Of some nodes after the other."""
        there = [b.disagreement for b in batches if b.disagreement is not None]
        predicted = torch.cat([b.predicted for b in batches])
        return cls(predicted, torch.cat(there) if there else None)

    def corrected(self, change: Tensor, task: Task) -> Self:
        """The same after what known answers change."""
        return type(self)(corrected(self.predicted, change, task), self.disagreement)

    def signals(self, degree: Tensor) -> dict[str, Tensor]:  # (nodes,)
        """What may say how large errors are, on a scale on which their logarithm may be linear."""
        signals = {"predicted": self.predicted.double(), "degree": degree.double().log1p()}
        if self.disagreement is not None:
            signals["disagreement"] = self.disagreement.double().clamp_min(_LEAST).log()
        return signals


@dataclasses.dataclass(frozen=True, eq=False)
class Forecast:
    """Predictions of some nodes, and how far they may be off if that was asked."""

    predicted: Tensor  # probabilities (nodes, classes), or values (nodes,) or (nodes, targets)
    low: Tensor | None = None  # of values
    high: Tensor | None = None
    plausible: Tensor | None = None  # bool (nodes, classes), or of labels (nodes, labels, 2)

    def split(self, size: int) -> Iterator[Self]:
        """The same for some nodes after the other."""
        for start in range(0, len(self.predicted), size):
            part = slice(start, start + size)
            others = [None if v is None else v[part] for v in (self.low, self.high, self.plausible)]
            yield type(self)(self.predicted[part], *others)


@dataclasses.dataclass(frozen=True)
class Spread(Schema):
    r"""How large errors are at a node: :math:`\log s = \sum_j w_j \, z_j`, z the signals in
    units of their deviation.

    Args:
        low, high, mean, deviation, weight: of each signal, by its name.
    """

    low: Mapping[str, float]
    high: Mapping[str, float]
    mean: Mapping[str, float]
    deviation: Mapping[str, float]
    weight: Mapping[str, float]

    def at(self, signals: Mapping[str, Tensor]) -> Tensor:
        """The spread of each node, of the shape of the signals; one that is not there is taken to
        be at its mean."""
        log = torch.zeros((), dtype=torch.float64)
        for name, weight in self.weight.items():
            if name in signals:
                log = log + weight * self._units(name, signals[name])
        return log.exp()

    def _units(self, name: str, signal: Tensor) -> Tensor:
        inside = signal.double().clamp(self.low[name], self.high[name])
        return (inside - self.mean[name]) / self.deviation[name]

    @classmethod
    def fit(cls, errors: Tensor, signals: Mapping[str, Tensor]) -> Self:  # (nodes,) each
        r"""The spread under which errors are most likely, if they are Laplacian.

        .. math:: \min_{w, w_0} \; \sum_i \big( |e_i| \, e^{-w_0 - w^T z_i} + w_0 + w^T z_i \big)
            + \tfrac12 \|w\|^2

        It is convex, and errors of zero do no harm, as they would to a fit of their logarithm.
        """
        table: dict[str, dict[str, float]] = {field.name: {} for field in dataclasses.fields(cls)}
        for name, signal in signals.items():
            low, high = signal.double().quantile(torch.tensor(CUT, dtype=torch.float64)).tolist()
            inside = signal.double().clamp(low, high)
            if high - low > _LEAST * max(1.0, abs(high)):  # else it says nothing
                numbers = (low, high, float(inside.mean()), float(inside.std(correction=0)), 0.0)
                for values, number in zip(table.values(), numbers, strict=True):
                    values[name] = number
        flat = cls(**table)
        if not flat.weight or not bool(errors.any()):
            return dataclasses.replace(flat, weight={})
        z = torch.stack([flat._units(name, signals[name]) for name in flat.weight], 1)
        w = _most_likely(errors.double() / errors.double().mean(), z)
        return dataclasses.replace(flat, weight=dict(zip(flat.weight, w.tolist(), strict=True)))

    def check(self, node: Node) -> None:
        """Every signal has its numbers, all finite."""
        table = [self.low, self.high, self.mean, self.deviation, self.weight]
        if any(not self.weight.keys() <= values.keys() for values in table):
            node.fail("numbers of every signal")
        if not all(math.isfinite(v) for values in table for v in values.values()):
            node.fail("finite numbers")
        if any(not self.deviation[name] > 0 for name in self.weight):
            node["deviation"].fail("numbers > 0")


def _most_likely(errors: Tensor, z: Tensor) -> Tensor:  # (nodes,), (nodes, signals) -> (signals,)
    """The minimum that :meth:`Spread.fit` states, by Newton's method; without the constant."""
    x = torch.cat([torch.ones(len(z), 1, dtype=torch.float64), z], 1)
    penalty = torch.full((x.shape[1],), RIDGE, dtype=torch.float64)
    penalty[0] = 0

    def cost(w: Tensor) -> float:
        log = x @ w
        return float((errors * (-log).exp() + log).sum() + (penalty * w * w).sum() / 2)

    w = torch.zeros(x.shape[1], dtype=torch.float64)
    for _ in range(_STEPS):
        share = errors * (-(x @ w)).exp()
        slope = ((1 - share)[:, None] * x).sum(0) + penalty * w
        curve = (x * share[:, None]).T @ x + torch.diag(penalty + _LEAST)
        step, size, now = torch.linalg.solve(curve, slope), 1.0, cost(w)
        while size > _LEAST and not cost(w - size * step) <= now:
            size /= 2
        w = w - size * step
        if now - cost(w) <= 1e-9 * abs(now):
            break
    return w[1:]


@dataclasses.dataclass(frozen=True)
class Errors(Schema):
    """The sorted errors of validation nodes, and the spread they are in units of.

    >>> errors = Errors.of(torch.arange(1, 20).double())
    >>> errors.quantile(0.9), errors.quantile(0.99), errors.promised
    (18.0, 19.0, 0.95)
    """

    count: int
    ranks: tuple[int, ...]  # of the errors that are kept, from 1 to count
    values: tuple[float, ...]
    spread: Spread | None = None

    @classmethod
    def of(
        cls, errors: Tensor, spread: Spread | None = None, weight: Tensor | None = None
    ) -> Self:  # (nodes,) each
        """All errors, or where they are many, evenly many of their quantiles. By weight an error
        has all ranks up to the weight of those that are no larger."""
        count = len(errors)
        ranks = np.unique(np.ceil(np.linspace(min(count, 1), count, min(count, KEPT))).astype(int))
        values, order = errors.double().sort()
        weight = torch.ones(count) if weight is None else weight.cpu()
        reached = weight.double()[order].cumsum(0).numpy()
        reached = reached * (count / reached[-1:])
        values = values[np.searchsorted(reached, ranks - 1e-6).clip(max=count - 1)]
        return cls(count, tuple(ranks.tolist()), tuple(values.tolist()), spread)

    def quantile(self, coverage: float) -> float:
        """The error that a new node's exceeds with probability 1 - coverage at most.

        Where there are too few for this coverage it is the largest; without any it is not finite.
        """
        if not self.count:
            return math.inf
        rank = min(math.ceil((self.count + 1) * coverage - 1e-9), self.count)
        return self.values[int(np.searchsorted(self.ranks, rank))]

    @property
    def promised(self) -> float:
        """The largest coverage that so many errors can promise."""
        return self.count / (self.count + 1)

    def check(self, node: Node) -> None:
        """Ranks rise up to the count, and errors do not fall."""
        ranks, values = np.array(self.ranks), np.array(self.values)
        if (np.diff(ranks, prepend=0) <= 0).any() or ranks[-1:].sum() != self.count:
            node["ranks"].fail("increasing numbers up to the count")
        if (
            len(values) != len(ranks)
            or not np.isfinite(values).all()
            or (np.diff(values) < 0).any()
        ):
            node["values"].fail("a finite number for each rank, none below the one before")


@dataclasses.dataclass(frozen=True)
class Intervals:
    """What is known of the errors of one model, or of one ensemble.

    Args:
        task: what is predicted.
        errors: of classes one, else one per target or label.
    """

    task: Task
    errors: tuple[Errors, ...]

    @classmethod
    def fit(
        cls,
        task: Task,
        honest: Tensor,  # (nodes, classes), (nodes, labels), (nodes,) or (nodes, targets)
        labels: Tensor,  # (nodes,) below 0 if unknown, or as many as values, NaN if unknown
        signals: Mapping[str, Tensor],  # (nodes,) or (nodes, targets) each
        weight: Tensor | None = None,  # (nodes,)
    ) -> Self:
        """Learn from nodes that the predictions owe nothing to.

        >>> errors = torch.linspace(-1, 1, 99)
        >>> one = Intervals.fit("regression", torch.zeros(99), errors, {})
        >>> one.margin(torch.zeros(1), {}, 0.8)
        tensor([0.8163])
        """

        def weighs(known: Tensor) -> Tensor | None:
            return None if weight is None else weight[known]

        p = honest.double()
        if task == "classification":
            known = labels >= 0
            wrong = 1 - p[known].gather(1, labels[known][:, None])[:, 0]
            return cls(task, (Errors.of(wrong, weight=weighs(known)),))
        p, y = p.reshape(len(p), -1), labels.double().reshape(len(labels), -1)
        errors = []
        for k in range(y.shape[1]):
            known = ~y[:, k].isnan()
            off = (p[known, k] - y[known, k]).abs()
            if task == "multilabel":
                errors.append(Errors.of(off, weight=weighs(known)))
            else:
                there = {name: _column(v, k)[known] for name, v in signals.items()}
                errors.append(_normalised(off, p[known, k], there, weighs(known)))
        return cls(task, tuple(errors))

    def margin(self, predicted: Tensor, signals: Mapping[str, Tensor], coverage: float) -> Tensor:
        """How far each value may be off on either side, of the shape of the values."""
        columns = []
        for k, errors in enumerate(self.errors):
            spread: Tensor | float = 1.0
            if errors.spread is not None:
                spread = errors.spread.at({name: _column(v, k) for name, v in signals.items()})
            values = _column(predicted, k).double()
            columns.append(torch.zeros_like(values) + spread * errors.quantile(coverage))
        return torch.stack(columns, 1).reshape(predicted.shape).to(predicted)

    def least(self, coverage: float) -> Tensor:  # (1,) or (labels,)
        """The least probability of what is plausible."""
        return torch.tensor([1 - errors.quantile(coverage) for errors in self.errors])

    def plausible(self, predicted: Tensor, chosen: Tensor, coverage: float) -> Tensor:
        """Which classes are plausible, bool (nodes, classes); of labels no and yes, bool
        (nodes, labels, 2). What is predicted always is."""
        return plausible(self.task, predicted, chosen, self.least(coverage))

    @property
    def promised(self) -> float:
        """The largest coverage that there are nodes enough for."""
        return min(errors.promised for errors in self.errors)


def plausible(task: Task, predicted: Tensor, chosen: Tensor, least: Tensor) -> Tensor:
    """See :meth:`Intervals.plausible`; ``least`` is the least probability, (1,) or (labels,).

    >>> p, chosen = torch.tensor([[0.6, 0.3, 0.1], [0.4, 0.3, 0.3]]), torch.tensor([0, 0])
    >>> plausible("classification", p, chosen, torch.tensor([0.5]))
    tensor([[ True, False, False],
            [ True, False, False]])
    """
    p = predicted.double()
    if task == "classification":
        own = torch.nn.functional.one_hot(chosen, p.shape[1]).bool()
        return (p >= least) | own
    yes = chosen > 0
    return torch.stack([(1 - p >= least) | ~yes, (p >= least) | yes], 2)


def _column(values: Tensor, k: int) -> Tensor:
    return values if values.dim() == 1 else values[:, min(k, values.shape[1] - 1)]


def _normalised(
    errors: Tensor, predicted: Tensor, signals: Mapping[str, Tensor], weight: Tensor | None
) -> Errors:
    """Errors in units of a spread that other nodes taught, if that makes intervals narrower."""
    if len(errors) < 2 * FOLDS or not signals:
        return Errors.of(errors, weight=weight)
    fold = folds_of(predicted, errors)
    spread = torch.ones_like(errors)
    for k in range(FOLDS):
        own = fold == k
        rest = {name: signal[~own] for name, signal in signals.items()}
        learned = Spread.fit(errors[~own], rest)
        spread[own] = learned.at({name: signal[own] for name, signal in signals.items()})
    apart = Errors.of(errors / spread, weight=weight)
    alike = Errors.of(errors, weight=weight)
    ratios = [
        float(spread.mean()) * apart.quantile(c) / max(alike.quantile(c), _LEAST) for c in JUDGED
    ]
    if not sum(ratios) / len(ratios) < NARROWER:
        return alike
    return Errors.of(errors / spread, Spread.fit(errors, signals), weight)


def folds_of(*keys: Tensor) -> Tensor:  # (nodes,) each
    """The fold of each node, alike in what they are sorted by, whatever their order is.

    >>> folds_of(torch.tensor([3.0, 1.0, 2.0, 9.0, 8.0, 7.0]))
    tensor([2, 0, 1, 0, 4, 3])
    """
    order = np.lexsort([key.numpy() for key in reversed(keys)])
    fold = torch.empty(len(order), dtype=torch.int64)
    fold[torch.from_numpy(order)] = torch.arange(len(order)) % FOLDS
    return fold


def honest_votes(
    views: Sequence[Tensor], labels: Tensor, task: Task, weight: Tensor | None = None
) -> Tensor:
    """What the members together say of each node by votes of the others, in which it has no part.

    Args:
        views: what each member says of the validation nodes, (members, nodes, outputs)
            probabilities or (members, nodes) values; and what else votes are cast by.
        labels, weight: of the same nodes, see :func:`votes_of`.
        task: decides the loss.
    """
    said = views[0]
    if len(said) < 2 or said.shape[1] < 2 * FOLDS:
        return combine(said, votes_of(views, labels, task, weight))
    fold = folds_of(*said.double().mean(0).reshape(said.shape[1], -1).T)
    joined = torch.empty_like(said[0])
    for k in range(FOLDS):
        own = fold == k
        others = (labels[~own], task, None if weight is None else weight[~own])
        votes = votes_of([view[:, ~own] for view in views], *others)
        joined[own] = combine(said[:, own], votes)
    return joined
