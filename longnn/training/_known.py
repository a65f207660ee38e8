r"""Known answers: what a model leaves unexplained at labelled nodes, carried on over the graph.

A model :math:`f(X, P)` forgets what it was told. What it leaves unexplained where answers are
known, the rest :math:`r = y - f`, lives on the graph, and often varies smoothly over it. It is
taken for a Gaussian process whose covariance is a filter, :math:`u \sim N(0, h(P))`, seen at the
known nodes M through noise of variance 1/w. The expected rest of every node is then linear in r,

.. math:: \hat u = h(P) M \, (M h(P) M + \tfrac1w I)^{-1} M r ,

a filter followed by what it owes to the number of answers nearby. Several covariances and levels of
noise give one signal each; they are joined by ridge regression on the validation nodes, whose rests
are honest. Rests of training nodes are too small, since they were fitted: they are scaled up to the
spread of the others first. A node's own answer never enters its own prediction: known nodes are cut
into folds, and a node is told nothing by its fold. With one node in each fold this is the exact
leave-one-out, :math:`r_i - (C r)_i / C_{ii}` with C the inverse above; with ten, a known node hears
of nine tenths of the others, at the cost of ten solutions, whatever the number of nodes is.

Values are corrected by :math:`\sum_j \beta_j \hat u_j`, probabilities in their logarithm. If that
does not pay on held-out folds, beyond chance, nothing is changed.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from longnn._base.schema import Node, Schema
from longnn.data import NodeDataset
from longnn.metrics import Task
from longnn.training._ensemble import combine, losses_of, votes_of
from longnn.training._process import (
    COVARIANCES,
    Covariance,
    Product,
    carry,
    product_of,
    weights_of,
)

#: Parts of the known nodes of either kind: a prediction of one rests on the answers of the others.
#: Where more than so many are known, fewer parts do as well.
FOLDS, FEW_FOLDS, MANY = 10, 3, 50_000
#: Fewer validation nodes than this teach nothing.
FEWEST = 50
#: Strengths of the ridge penalty, per node; the one with the least loss on held-out folds is taken.
STRENGTHS = (0.001, 0.01, 0.1, 1.0)
#: The mean gain on held-out folds must be that many of its standard errors above zero. Of numbers
#: the share TRIM of the largest and of the smallest gains does not count: few nodes must not
#: decide. Of classes all count, for those of a rare one are few.
CERTAIN, TRIM = 1.5, 0.02
#: Rests of training nodes are scaled up at most by the inverse of this.
LEAST_SCALE = 0.1
#: The graph is the same if predictions of most known nodes moved by less, in units of their spread.
ALIKE = 0.1
#: And by less than this share of the largest.
ROUNDING = 1e-5
#: Edges times outputs up to which answers are carried on: a minute or two on two cores.
MOST_WORK = 20_000_000
#: Cells of the signals of one block of columns.
CELLS = 1 << 24
_LEAST = 1e-12


@dataclasses.dataclass(frozen=True, eq=False)
class Rests:
    """What a model leaves unexplained at nodes whose answers are known.

    Args:
        r: (nodes, outputs), NaN where the answer is not known or not to be used.
        fold: (nodes,) int64, -1 where nothing is known.
    """

    r: Tensor
    fold: Tensor

    @classmethod
    def of_labels(cls, labels: Tensor, predicted: Tensor, task: Task) -> Self:
        """Of all nodes with a label, none of which a model was fitted to."""
        r = rests_of(labels, predicted, task)
        return cls(r, fold_numbers(predicted, r, ~r.isnan().all(1)))

    def signals(self, product: Product, covariances: Sequence[Covariance]) -> Tensor:
        """The expected rests by covariance (covariances, nodes, outputs); a known node is told
        nothing by its own fold."""
        out = self.r.new_empty(len(covariances), *self.r.shape)
        folds = int(self.fold.max()) + 1 if len(self.fold) else 0
        inside = self.fold[:, None] == torch.arange(folds)  # (nodes, folds)
        columns = max(1, CELLS // max(1, self.r.shape[0] * (folds + 1)))
        for first in range(0, self.r.shape[1], columns):
            r = self.r[:, first : first + columns]
            there = (~r.isnan()).to(r)
            rest = r.nan_to_num(0.0)
            # All that is known; then that without each fold in turn.
            known = torch.stack([there, *(there * ~inside[:, [k]] for k in range(folds))], 1)
            flat = known.flatten(1)  # (nodes, (folds + 1) * columns)
            wide = rest[:, None].expand(known.shape).reshape(flat.shape)
            for j, covariance in enumerate(covariances):
                u = carry(product, covariance, wide, flat).view(known.shape)
                own = (self.fold + 1)[:, None, None].expand(-1, 1, u.shape[2])
                out[j, :, first : first + columns] = u.gather(1, own)[:, 0]
        return out


@dataclasses.dataclass(frozen=True, eq=False)
class Around:
    """A graph, and which of its nodes are asked about.

    Args:
        product: multiplication by P.
        nodes: how many the graph has.
        places: int64 (asked,), where those that are asked about are among them.
    """

    product: Product
    nodes: int
    places: Tensor

    @classmethod
    def of(cls, dataset: NodeDataset, dtype: torch.dtype) -> Self | None:
        """The graph of a dataset; None where products with it take too long."""
        operator = dataset.backing.operator()
        if operator is None or dataset.num_edges * dataset.outputs > MOST_WORK:
            return None
        operator = operator.to(dtype)
        places = torch.from_numpy(dataset.backing.places())
        return cls(product_of(operator), operator.num_nodes, places)

    def whole(self, rests: Rests) -> Rests:
        """Rests of nodes that are asked about as those of the whole graph, or these."""
        if len(rests.fold) == self.nodes:
            return rests
        r = rests.r.new_full((self.nodes, rests.r.shape[1]), torch.nan)
        fold = rests.fold.new_full((self.nodes,), -1)
        r[self.places], fold[self.places] = rests.r, rests.fold
        return Rests(r, fold)

    def signals(self, rests: Rests) -> Tensor:
        """The expected rests of the nodes that are asked about, see :meth:`Rests.signals`."""
        return self.whole(rests).signals(self.product, COVARIANCES)[:, self.places]

    def rings(self, asked: Tensor, last: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Steps to every node of the graph from some that are asked about, (nodes, asked), up to
        ``last``, which is farther away or not reached, too; ``dtype`` is that of the graph.

        >>> path = torch.tensor([[0.0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
        >>> Around(lambda x: path @ x, 4, torch.arange(4)).rings(torch.tensor([0]), 2).T
        tensor([[0, 1, 2, 2]])
        """
        reached = F.one_hot(self.places[asked], self.nodes).T
        ring = torch.zeros_like(reached)
        for _ in range(last):
            ring += reached == 0
            reached = reached + (self.product(reached.to(dtype)) > 0)
        return ring


def fold_numbers(predicted: Tensor, rests: Tensor, *sets: Tensor) -> Tensor:
    """A fold of every node of some sets (nodes,) bool, -1 of the others; each set has folds of its
    own. In each are all kinds of predictions, whatever the order of the nodes is; a node's answer
    has no say in its fold, unless others are predicted the same."""
    fold, first = torch.full((len(rests),), -1), 0
    for members in sets:
        order = members.nonzero()[:, 0]
        for keys in (rests, predicted.reshape(len(rests), -1)):  # the last decides first
            order = order[_mixed(keys[order]).argsort(stable=True)]
        count = min(FOLDS if len(order) <= MANY else FEW_FOLDS, len(order))
        fold[order] = first + torch.arange(len(order)) % max(count, 1)
        first += count
    return fold


def _mixed(keys: Tensor) -> Tensor:
    """One number of several, in which none cancels another."""
    factors = torch.arange(1, keys.shape[1] + 1, dtype=torch.float64).sqrt()
    return keys.nan_to_num(0.0).double() @ factors


def rests_of(labels: Tensor, predicted: Tensor, task: Task) -> Tensor:
    """Answers less predictions (nodes, outputs), NaN where there is no answer."""
    if task == "classification":
        one = F.one_hot(labels.clamp_min(0), predicted.shape[1]).to(predicted)
        return torch.where(labels[:, None] >= 0, one - predicted, torch.nan)
    shape = (len(predicted), -1)
    return labels.to(predicted).reshape(shape) - predicted.reshape(shape)


def corrected(predicted: Tensor, change: Tensor, task: Task) -> Tensor:
    """Predictions after a change (nodes, outputs): of values, or of logarithms of probabilities."""
    if task == "regression":
        return predicted + change.to(predicted).reshape(predicted.shape)
    p = predicted.double().clamp(_LEAST, 1 - _LEAST)
    if task == "classification":
        return torch.softmax(p.log() + change, 1).to(predicted)
    return torch.sigmoid(torch.logit(p) + change).to(predicted)


@dataclasses.dataclass(frozen=True)
class KnownFilter(Schema):
    """How the rests of known nodes correct predictions.

    Args:
        coefficients: of each covariance, by group: all classes are one, each target or label is
            its own; all zero where known answers do not help.
        scale: by group, rests of training nodes in units of those of validation nodes.
        gain: by group, how much of the loss on held-out validation nodes goes, a share.
        certain: by group, the gain in its standard errors.
    """

    coefficients: tuple[tuple[float, ...], ...]
    scale: tuple[float, ...]
    gain: tuple[float, ...]
    certain: tuple[float, ...]

    @property
    def used(self) -> bool:
        """Whether anything is changed."""
        return any(any(row) for row in self.coefficients)

    def silent(self) -> "KnownFilter":
        """The same, changing nothing."""
        return dataclasses.replace(
            self, coefficients=tuple((0.0,) * len(row) for row in self.coefficients)
        )

    def change(self, signals: Tensor) -> Tensor:  # (covariances, nodes, outputs)
        """The change of every output (nodes, outputs)."""
        beta = signals.new_tensor(self.coefficients).T  # (covariances, groups)
        return (beta[:, None, :] * signals).sum(0)

    def weights(self, around: "Around", rests: Rests, asked: Tensor) -> Tensor:
        """What the rest of each node counts in the change at some, (nodes, asked, outputs).

        Args:
            around: the graph.
            rests: of the nodes that are asked about, or of all.
            asked: int64, some of those that are asked about.
        """
        rests, at = around.whole(rests), around.places[asked]
        told = (rests.fold >= 0)[:, None] & (rests.fold[:, None] != rests.fold[at])
        known = (told[:, :, None] & ~rests.r.isnan()[:, None]).to(rests.r)
        unit = F.one_hot(at, around.nodes).T[:, :, None].expand(known.shape).to(known).flatten(1)
        each = [weights_of(around.product, c, unit, known.flatten(1)) for c in COVARIANCES]
        return self.change(torch.stack(each).view(len(each), -1, known.shape[2])).view(known.shape)

    def shares(self, around: "Around", rests: Rests, asked: Tensor) -> Tensor:
        """What each node of the graph adds to the change at some, (nodes, asked, outputs); they add
        up. Arguments as in :meth:`weights`."""
        return self.weights(around, rests, asked) * around.whole(rests).r.nan_to_num(0.0)[:, None]

    def check(self, node: Node) -> None:
        """One row per group, finite, and a scale that can be divided by."""
        rows = self.coefficients
        counts = {len(self.scale), len(self.gain), len(self.certain), len(rows)}
        if len(counts) > 1 or any(len(row) != len(COVARIANCES) for row in rows):
            node["coefficients"].fail(f"{len(COVARIANCES)} numbers per group")
        if not all(math.isfinite(v) for row in rows for v in row):
            node["coefficients"].fail("finite numbers")
        if not all(0 < v <= 1 for v in self.scale):
            node["scale"].fail("numbers above 0, 1 at most")


@dataclasses.dataclass(frozen=True, eq=False)
class Told:
    """What a run keeps of the answers that it knew.

    Args:
        ids: of the known nodes, as text.
        rests: theirs.
        said: what the model predicted of them (nodes, outputs), before any change.
    """

    ids: tuple[str, ...]
    rests: Rests
    said: Tensor

    @classmethod
    def collect(cls, ids: Sequence[Any], rests: Rests, said: Tensor) -> Self:
        """Of all nodes that are known."""
        where = (rests.fold >= 0).nonzero()[:, 0]
        names = tuple(str(ids[place]) for place in where.tolist())
        kept = Rests(rests.r[where], rests.fold[where])
        return cls(names, kept, said.reshape(len(said), -1)[where])

    def places(self, ids: Sequence[Any]) -> Tensor:
        """Where the known nodes are among others, int64 (known,); -1 where they are not."""
        import pyarrow.compute  # half a second, and only needed here

        there = pyarrow.array(map(str, ids), type=pyarrow.string())
        found = pyarrow.compute.index_in(pyarrow.array(self.ids, pyarrow.string()), there)
        return torch.from_numpy(found.fill_null(-1).to_numpy().astype("int64"))

    def spread_out(self, places: Tensor, nodes: int) -> Rests:
        """The rests at their places among some nodes."""
        r = self.rests.r.new_full((nodes, self.rests.r.shape[1]), torch.nan)
        fold = torch.full((nodes,), -1)
        r[places[places >= 0]] = self.rests.r[places >= 0]
        fold[places[places >= 0]] = self.rests.fold[places >= 0]
        return Rests(r, fold)

    def agrees(self, places: Tensor, predicted: Tensor) -> bool:
        """Whether the model says of most known nodes what it said: then the graph is the same, but
        for what was added.

        Args:
            places: of the known nodes.
            predicted: of the first nodes, before any change.
        """
        there = (places >= 0) & (places < len(predicted))
        if not bool(there.any()):
            return False
        now = predicted.reshape(len(predicted), -1)[places[there]].to(self.said)
        # Where all is said to be alike, its deviation is rounding, and so is a difference.
        spread = ALIKE * self.said.std(0, correction=0) + ROUNDING * self.said.abs().amax(0)
        return float(((now - self.said[there]).abs() <= spread).all(1).double().mean()) > 0.5


@dataclasses.dataclass(frozen=True, eq=False)
class Known:
    """What known answers change on a graph.

    Args:
        text: whose answers these are.
        around: the graph; None where nothing is changed.
        filters, rests: of each repeat, of the whole graph; no rests where it uses none.
    """

    text: str
    around: Around | None = None
    filters: tuple[KnownFilter, ...] = ()
    rests: tuple[Rests | None, ...] = ()

    @functools.cached_property
    def changes(self) -> tuple[Tensor, ...]:
        """The change of the predictions of each repeat (asked, outputs)."""
        if self.around is None:
            return ()
        outputs = next(rests.r.shape[1] for rests in self.rests if rests is not None)
        return tuple(
            torch.zeros(len(self.around.places), outputs)
            if rests is None
            else learned.change(self.around.signals(rests))
            for learned, rests in zip(self.filters, self.rests, strict=True)
        )

    def shares(self, asked: Tensor, repeats: Sequence[int]) -> Tensor:
        """What each node of the graph adds to the mean change at some, (nodes, asked, outputs)."""
        assert self.around is not None
        shares = torch.zeros(self.around.nodes, len(asked), self.changes[0].shape[1])
        for repeat in repeats:
            rests = self.rests[repeat]
            if rests is not None:
                shares = shares + self.filters[repeat].shares(self.around, rests, asked)
        return shares / len(repeats)

    def part(self, nodes: Tensor) -> Self:  # int64 (some,)
        """The same for some of the nodes that are asked about."""
        near = self.around and dataclasses.replace(self.around, places=self.around.places[nodes])
        return dataclasses.replace(self, around=near)


class Learned(NamedTuple):
    """What known answers say of the graph that was trained on."""

    filter: KnownFilter
    rests: Rests  # of all nodes that are known, comparable with each other
    change: Tensor  # (nodes, outputs)
    honest: Tensor  # the change of the validation nodes by filters that they had no part in


def learn(
    around: "Around",
    predicted: Tensor,  # probabilities (nodes, classes), or values (nodes,) or (nodes, targets)
    labels: Tensor,
    train: Tensor,  # (nodes,) bool
    val: Tensor,
    task: Task,
    *,
    only_train: bool = False,
    group: Tensor | None = None,  # (nodes,) int64
    weight: Tensor | None = None,  # (nodes,)
) -> Learned:
    """Learn the filter on the validation nodes.

    Args:
        around: the graph.
        predicted, labels: of the nodes that are asked about.
        train, val: which nodes were fitted, and which were not.
        task: what is predicted.
        only_train: whether answers of validation nodes are not to be known at prediction.
        group: of each node: what is learned of some groups is judged on others.
        weight: of each node in what is lost and gained; None where all count alike.
    """
    r = rests_of(labels, predicted, task)
    groups = [slice(None)] if task == "classification" else _singles(r.shape[1])
    scale = [_scale(r[:, g], train, val) for g in groups]
    divisor = torch.tensor(scale).to(r).expand(1, len(scale))
    r = torch.where(train[:, None], r / divisor, r)
    told = train if only_train else train | val
    fold = fold_numbers(predicted, r, train, val & told)
    rests = Rests(torch.where(told[:, None], r, torch.nan), fold)
    signals = around.signals(rests)  # (covariances, nodes, outputs)
    # Folds of the validation nodes, to judge by.
    judged = fold_numbers(predicted, r, val)[val]
    if group is not None:
        judged = torch.unique(group[val], return_inverse=True)[1] % FOLDS
    said, truth = predicted[val], labels[val]
    weighs = torch.ones(len(said)) if weight is None else weight[val]
    honest, found = torch.zeros_like(r[val]), []
    for g in groups:
        there = ~r[val][:, g].isnan().any(1)
        alone = _group(said, truth, g, task)
        fitted = _fit(signals[:, val][:, :, g], *alone, weighs, there, judged, task)
        found.append(fitted[:3])
        honest[:, g] = fitted[3].to(honest)
    learned = KnownFilter(
        tuple(tuple(beta) for beta, _, _ in found),
        tuple(scale),
        tuple(gain for _, gain, _ in found),
        tuple(certain for _, _, certain in found),
    )
    return Learned(learned, rests, learned.change(signals), honest)


def views_of(
    around: Around | None,
    predicted: Sequence[Tensor],
    labels: Tensor,
    train: Tensor,
    val: Tensor,
    task: Task,
    **how: Any,
) -> list[Tensor]:  # (members, validation nodes) or (members, validation nodes, outputs)
    """What votes on members are cast by: what each says of the validation nodes; and of numbers
    what it says with known answers, if votes by both leave less unexplained.

    Known answers make up for what varies smoothly, so a member that knows the rest deserves more
    votes than it gets alone. Of classes that gained nothing, and of many nodes it takes long.

    Args:
        around: the graph; None where known answers are not to be used.
        predicted: by each member, of all nodes that are asked about.
        labels, train, val, task, how: see :func:`learn`.
    """
    alone = torch.stack([p[val] for p in predicted])
    if around is None or task != "regression" or int((train | val).sum()) > MANY:
        return [alone]
    kept = around

    def told(p: Tensor) -> Tensor:
        learned = learn(kept, p, labels, train, val, task, **how)
        return corrected(p[val], learned.honest, task)

    views = [alone, torch.stack([told(p) for p in predicted])]
    weight = how.get("weight")
    heard = (labels[val], task, None if weight is None else weight[val])
    either = [votes_of(views[:count], *heard) for count in (1, 2)]
    after = torch.stack([told(combine(torch.stack([*predicted]), votes)) for votes in either])
    left = losses_of(after, *heard)
    return views if left[1] < left[0] else views[:1]


def _singles(count: int) -> list[slice]:
    return [slice(k, k + 1) for k in range(count)]


def _scale(r: Tensor, train: Tensor, val: Tensor) -> float:
    """How much smaller rests of training nodes are, between LEAST_SCALE and 1."""
    spread = [float(r[rows].double().square().nanmean().sqrt()) for rows in (train, val)]
    if not all(math.isfinite(s) and s > 0 for s in spread):
        return 1.0
    return min(1.0, max(LEAST_SCALE, spread[0] / spread[1]))


def _group(said: Tensor, truth: Tensor, g: slice, task: Task) -> tuple[Tensor, Tensor]:
    """Predictions and answers of one group."""
    if task == "classification":
        return said, truth
    return said.reshape(len(said), -1)[:, g], truth.reshape(len(truth), -1)[:, g]


def _fit(
    signals: Tensor,  # (covariances, nodes, outputs of the group)
    said: Tensor,
    truth: Tensor,
    weight: Tensor,  # (nodes,)
    there: Tensor,  # (nodes,) bool
    fold: Tensor,  # (nodes,)
    task: Task,
) -> tuple[list[float], float, float, Tensor]:
    """Coefficients, gain, its certainty, and the changes that others' coefficients make."""
    none = [0.0] * len(signals)
    silent = torch.zeros(signals.shape[1:])
    if int(there.sum()) < FEWEST or len(fold[there].unique()) < 2:
        return none, 0.0, 0.0, silent
    x, p, y, fold = signals[:, there].double(), said[there].double(), truth[there], fold[there]
    w = weight[there].double() / weight[there].double().mean()
    unit = x.square().mean((1, 2)).sqrt().clamp_min(_LEAST)
    x = x / unit[:, None, None]
    before = w * _losses(p, torch.zeros_like(x[0]), y, task)
    best: tuple[float, float, Tensor] | None = None
    for strength in STRENGTHS:
        held = torch.zeros_like(x[0])
        for k in range(int(fold.max()) + 1):
            mine = fold == k
            beta = _ridge(x[:, ~mine], p[~mine], y[~mine], w[~mine], strength, task)
            held[mine] = torch.tensordot(beta, x[:, mine], 1)
        loss = float((w * _losses(p, held, y, task)).mean())
        if best is None or loss < best[0]:
            best = (loss, strength, held)
    assert best is not None
    gains = before - w * _losses(p, best[2], y, task)
    cut = int(TRIM * len(gains)) if task == "regression" else 0
    usual = gains.sort().values[cut : len(gains) - cut]
    error = float(usual.std()) / math.sqrt(len(usual))
    certain = float(usual.mean()) / max(error, _LEAST)
    gain = float(gains.mean() / before.mean().clamp_min(_LEAST))
    if not (certain > CERTAIN and gain > 0):
        return none, 0.0, certain, silent
    beta = _ridge(x, p, y, w, best[1], task) / unit
    changes = silent.double()
    changes[there] = best[2]
    return beta.tolist(), gain, certain, changes


def _losses(p: Tensor, change: Tensor, y: Tensor, task: Task) -> Tensor:  # (nodes,)
    """The squared error of each node, or the negative logarithm of what is true."""
    if task == "regression":
        return (y.double() - p - change).square().sum(1)
    after = corrected(p, change, task).clamp_min(_LEAST)
    if task == "classification":
        return -after.gather(1, y[:, None])[:, 0].log()
    return -torch.where(y > 0.5, after, 1 - after).clamp_min(_LEAST).log().sum(1)


def _ridge(x: Tensor, p: Tensor, y: Tensor, w: Tensor, strength: float, task: Task) -> Tensor:
    r"""The coefficients of :math:`\min_\beta L(f + \sum_j \beta_j x_j) + \tfrac12 s n \|\beta\|^2`,
    nodes weighed by w.

    The loss is quadratic for values, and one step of Newton's method is the minimum; for
    probabilities it is the likelihood, and five are enough. Values are in units of their rests.
    """
    count, weighed = x.shape[1], x * w[:, None]
    penalty = strength * count * torch.eye(len(x), dtype=torch.float64)
    if task == "regression":
        rest, unit = y.double() - p, (y.double() - p).square().mean().sqrt().clamp_min(_LEAST)
        gram = torch.einsum("jno,kno->jk", weighed, x)
        beta = torch.linalg.solve(gram + penalty, torch.einsum("jno,no->j", weighed, rest / unit))
        return beta * unit
    target = F.one_hot(y, p.shape[1]).double() if task == "classification" else y.double()
    beta = torch.zeros(len(x), dtype=torch.float64)
    for _ in range(5):
        now = corrected(p, torch.tensordot(beta, x, 1), task)
        slope = torch.einsum("jno,no->j", weighed, now - target) + penalty @ beta
        if task == "classification":
            mean = torch.einsum("jno,no->jn", x, now)
            curve = torch.einsum("jno,kno,no->jk", weighed, x, now) - (mean * w) @ mean.T
        else:
            curve = torch.einsum("jno,kno,no->jk", weighed, x, now * (1 - now))
        beta = beta - torch.linalg.solve(curve + penalty, slope)
    return beta
