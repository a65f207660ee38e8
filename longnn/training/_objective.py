r"""What the members of a population are trained for and compared by: losses and scores.

Each member has nodes of its own to learn from and to be validated on. They are picked by index,
so that nothing is computed for the others.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from longnn import kernels
from longnn._base.autograd import differentiable, first_alone, plainly, save_inputs
from longnn.metrics import METRICS, check_monitor
from longnn.training._problem import Problem


@dataclasses.dataclass(frozen=True)
class Picked:
    """Some nodes of each member, filled up to one count with nodes of weight zero."""

    members: Tensor  # (members, 1): 0, 1, 2, ...
    rows: Tensor  # (members, count)
    weight: Tensor  # (members, count): averages over a member's nodes

    @classmethod
    def from_masks(
        cls,
        masks: Sequence[Tensor],
        device: torch.device,
        dtype: torch.dtype,
        weights: Tensor | None = None,
    ) -> Self:
        """From masks (nodes,), one per member, and perhaps weights of all nodes (nodes,)."""
        counts = [int(mask.sum()) for mask in masks]
        # Those to be picked first, in their order, and then, to fill up, the first of the others.
        orders = [torch.sort(~mask.cpu(), stable=True).indices for mask in masks]
        place = torch.arange(max(counts))
        rows = [
            order[place.clamp_max(min(n, len(order) - 1))]
            for order, n in zip(orders, counts, strict=True)
        ]
        inside = place < torch.tensor(counts)[:, None]
        weight = inside.to(dtype) / torch.tensor(counts).clamp_min(1).to(dtype)[:, None]
        if weights is not None:
            weight = weight * weights.cpu()[torch.stack(rows)]
            weight = weight / weight.sum(1, keepdim=True).clamp_min(torch.finfo(dtype).tiny)
        members = torch.arange(len(masks))[:, None]
        return cls(members.to(device), torch.stack(rows).to(device), weight.to(device))

    def of(self, values: Tensor) -> Tensor:
        """The values (members, nodes, ...) of the picked nodes, shape (members, count, ...)."""
        return values[self.members, self.rows]

    def weighed(self, by: Tensor) -> Self:
        """The same nodes, their weights multiplied by a number (nodes,) for each node."""
        return dataclasses.replace(self, weight=self.weight * by[self.rows])

    def renumbered(self) -> Self:
        """The same nodes as 0, 1, 2, ... in their order."""
        count = torch.arange(self.rows.shape[1], device=self.rows.device)
        return dataclasses.replace(self, rows=count.expand_as(self.rows).contiguous())

    def first(self, count: int) -> Self:
        """The first nodes of each member."""
        return type(self)(self.members, self.rows[:, :count], self.weight[:, :count])

    def take(self, kept: Tensor) -> Self:
        """Those of some members."""
        return type(self)(self.members[: len(kept)], self.rows[kept], self.weight[kept])


def _cross_entropy(
    scores: Tensor,  # (members, nodes, classes)
    members: Tensor,  # Picked, and the labels of the picked nodes (members, count)
    rows: Tensor,
    weight: Tensor,
    labels: Tensor,
) -> tuple[Tensor, Tensor]:
    """The loss of each member, and the logarithms of the probabilities, classes first."""
    return _entropy_of(scores[members, rows], weight, labels)


def _entropy_of(mine: Tensor, weight: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The same from the scores of the picked nodes, (members, count, classes)."""
    # With classes first a vector of nodes is handled at once: log_softmax is 20 times faster so.
    log_p = torch.log_softmax(mine.movedim(-1, 0).contiguous(), 0)
    return -(log_p.gather(0, labels[None])[0] * weight).sum(-1), log_p


def _cross_entropy_gradient(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor | None, ...]:
    r"""For a picked node of weight w and class c: :math:`w\,(p - e_c)`."""
    members, rows, weight, labels, log_p = ctx.saved_tensors
    p = log_p.exp()
    p = p.scatter_add(0, labels[None], p.new_full((), -1.0).expand_as(p[:1]))
    each = (p * (weight * grad[:, None])).movedim(0, -1)  # (members, count, classes)
    zeros = each.new_zeros(()).expand(ctx.shape)
    return zeros.index_put((members, rows), each), None, None, None, None


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.shape = inputs[0].shape
    first_alone(ctx, output)
    ctx.save_for_backward(*inputs[1:], output[1])


_entropy = differentiable(_cross_entropy, _cross_entropy_gradient, _save, vmap="torch")


def _entropy_by_kernel(scores: Tensor, rows: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    return kernels.cross_entropy(scores, rows, weight, labels)[0]


def _gradient_by_kernel(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    scores, rows, weight, labels = ctx.saved_tensors
    found = kernels.cross_entropy_gradient(scores, rows, weight, labels, grad.contiguous())
    return found, None, None, None


_fused_entropy = differentiable(_entropy_by_kernel, _gradient_by_kernel, save_inputs)


def cross_entropy(scores: Tensor, picked: Picked, labels: Tensor) -> Tensor:
    """Mean cross entropy of each member over its picked nodes, shape (members,).

    >>> mask, cpu = torch.tensor([True, False]), torch.device("cpu")
    >>> picked = Picked.from_masks([mask], cpu, torch.float32)
    >>> cross_entropy(torch.zeros(1, 2, 4), picked, torch.tensor([[0]]))
    tensor([1.3863])
    """
    if kernels.usable(scores) and plainly((scores,)):
        numbers = (t.contiguous() for t in (picked.rows, picked.weight, labels))
        return _fused_entropy(scores, *numbers)
    return _entropy(scores, picked.members, picked.rows, picked.weight, labels)[0]


class Objective:
    """Losses and scores of all members.

    Args:
        problem: what they learn.
        train, val: masks (nodes,), one per member.
        weights: of each member's nodes in the losses, (nodes,) or (nodes, outputs), beside those of
            the problem; None for equal weights. Scores do not know them.
        monitor: the score to compute (see :class:`~longnn.config.Settings`); ``"score"`` and
            ``"loss"`` mean the headline score of the problem.

    Raises:
        ValueError: for a score that the task does not have.
    """

    def __init__(
        self,
        problem: Problem,
        train: Sequence[Tensor],
        val: Sequence[Tensor],
        *,
        weights: Sequence[Tensor | None] | None = None,
        monitor: str = "score",
    ) -> None:
        self.task, self.positive = problem.task, problem.positive
        check_monitor(monitor, self.task)
        self.metric = problem.watched(monitor)
        #: Whether a smaller score is a better one.
        self.falling = not METRICS[self.metric].higher
        dtype, device = problem.dtype, problem.device
        self.train = Picked.from_masks(train, device, dtype, problem.weight)
        self.val = Picked.from_masks(val, device, dtype, problem.weight)
        shape = (len(train), problem.outputs if self.task == "regression" else 1)
        self.scale = torch.ones(shape, dtype=dtype, device=device)
        self.offset = torch.zeros_like(self.scale)
        if self.task == "classification":
            self._aim_at_classes(problem, weights)
        else:
            self._aim_at_cells(problem, weights)

    def _aim_at_classes(self, problem: Problem, weights: Sequence[Tensor | None] | None) -> None:
        y, known = problem.labels.clamp_min(0), problem.labels >= 0
        self.train, self.val = self.train.weighed(known), self.val.weighed(known)
        self.train_target, self.val_target = y[self.train.rows], y[self.val.rows]
        self.train_weight = self._weigh(self.train, self.train.weight, weights)
        self.val_weight = self._weigh(self.val, self.val.weight, weights)
        self.score_weight = self.val.weight

    def _aim_at_cells(self, problem: Problem, weights: Sequence[Tensor | None] | None) -> None:
        """Several numbers or labels per node, some of them unknown: each is a cell."""
        labels = problem.labels if problem.labels.dim() == 2 else problem.labels[:, None]
        y, known = torch.nan_to_num(labels), ~torch.isnan(labels)
        plain = [
            _per_column(picked.weight[..., None] * known[picked.rows])
            for picked in (self.train, self.val)
        ]
        if self.task == "regression":
            mine, share = y[self.train.rows], plain[0] * problem.outputs
            self.offset = (mine * share).sum(1)  # (members, targets)
            spread = ((mine - self.offset[:, None]).square() * share).sum(1).sqrt()
            _check_spread(mine, share > 0)
            self.scale = torch.where(spread > 0, spread, self.scale)
        self.train_target = self._standard(y[self.train.rows])
        self.val_target = self._standard(y[self.val.rows])
        self.train_weight = self._weigh(self.train, plain[0], weights)
        self.val_weight = self._weigh(self.val, plain[1], weights)
        self.score_weight = plain[1]

    def _standard(self, y: Tensor) -> Tensor:
        """Regression learns labels of mean zero and deviation one over the training nodes."""
        if self.task != "regression":
            return y
        return (y - self.offset[:, None]) / self.scale[:, None]

    @staticmethod
    def _weigh(picked: Picked, weight: Tensor, weights: Sequence[Tensor | None] | None) -> Tensor:
        """The weights of a member's picked nodes or cells; they add up to what they did."""
        if weights is None or all(w is None for w in weights):
            return weight
        rows = []
        for member, own in enumerate(weights):
            row = weight[member]
            if own is not None:
                w = own.to(row)[picked.rows[member]]
                w = w[:, None] if w.dim() < row.dim() else w
                total = (row * w).sum()
                row = row * w * (row.sum() / total.clamp_min(torch.finfo(row.dtype).tiny))
            rows.append(row)
        return torch.stack(rows)

    def number_by_rows(self) -> None:
        """Take scores of the picked nodes alone, in their order, from now on."""
        self.train, self.val = self.train.renumbered(), self.val.renumbered()

    def train_loss(self, scores: Tensor, place: Tensor | None = None, *, parts: int = 1) -> Tensor:
        """The loss of each member on its training nodes, shape (members,).

        Args:
            scores: (members, nodes, outputs).
            place: which of the training nodes the scores are of, where they are some of them.
            parts: how many such parts there are: the loss of a part counts so often.
        """
        if place is None:
            return self._loss(scores, self.train, self.train_weight, self.train_target)
        weight, target = self.train_weight[:, place] * parts, self.train_target[:, place]
        return self._loss(scores, self.train.first(len(place)), weight, target)

    def _loss(self, scores: Tensor, picked: Picked, weight: Tensor, target: Tensor) -> Tensor:
        """Cross entropy, squared error, or binary cross entropy over the labels."""
        if self.task == "classification":
            return cross_entropy(scores, dataclasses.replace(picked, weight=weight), target)
        return self._cell_loss(picked.of(scores), weight, target)

    def _cell_loss(self, mine: Tensor, weight: Tensor, target: Tensor) -> Tensor:
        """The last two, from the scores of the picked nodes, (members, count, outputs)."""
        if self.task == "regression":
            return ((mine - target).square() * weight).sum((-1, -2))
        each = F.binary_cross_entropy_with_logits(mine, target, reduction="none")
        return (each * weight).sum((-1, -2))

    def validate(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Loss and score of each member on its validation nodes."""
        target, weight = self.val_target, self.score_weight
        if self.task == "classification" and self.metric == "accuracy" and kernels.usable(scores):
            return kernels.cross_entropy(scores, self.val.rows, self.val_weight, target, weight)
        mine = self.val.of(scores)  # (members, count, outputs)
        metric = METRICS[self.metric]
        compute = metric.compute[self.task]
        if self.task == "classification":
            loss, _ = _entropy_of(mine, self.val_weight, target)
            said = mine.softmax(-1) if metric.ranks else mine.argmax(-1)
            return loss, compute(said, target, weight, mine.shape[-1], self.positive)
        loss = self._cell_loss(mine, self.val_weight, target)
        if self.task == "multilabel":
            return loss, compute(mine if metric.ranks else mine > 0, target, weight)
        return loss, compute(mine, target, weight, self.scale)

    def take(self, kept: Tensor) -> None:
        """Keep only the given members."""
        self.train, self.val = self.train.take(kept), self.val.take(kept)
        names = ("scale", "offset", "train_target", "val_target")
        for name in (*names, "train_weight", "val_weight", "score_weight"):
            setattr(self, name, getattr(self, name)[kept])


def _per_column(weight: Tensor) -> Tensor:  # (members, count, columns)
    """Weights of cells that give every column that has some the same share of one."""
    total = weight.sum(1, keepdim=True)
    tiny = torch.finfo(weight.dtype).tiny
    return weight / total.clamp_min(tiny) / (total > 0).sum(-1, keepdim=True).clamp_min(1)


#: Of the values that are learned: their squares are still numbers of 32 bits.
SPREAD = (1e-15, 1e15)


def _check_spread(values: Tensor, known: Tensor) -> None:  # (members, count, targets) both
    """Raise where the values of a target are too large, or differ by too little, to be learned."""
    low = torch.where(known, values, torch.inf).amin(1).double()
    high = torch.where(known, values, -torch.inf).amax(1).double()
    some = low <= high
    largest, spread = torch.maximum(low.abs(), high.abs()), high - low
    least, most = SPREAD
    for found in spread[some & ((largest > most) | ((spread > 0) & (spread < least)))].tolist():
        raise ValueError(
            f"Expected values to predict below {most:g} that spread over more than {least:g} (got "
            f"a spread of {found:g}); use another unit"
        )
