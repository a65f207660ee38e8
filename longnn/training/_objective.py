r"""What the members of a population are trained for and compared by: losses and scores.

Each member has nodes of its own to learn from and to be validated on. They are picked by index,
so that nothing is computed for the others.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from longnn._base.autograd import differentiable
from longnn.training._problem import Problem


@dataclasses.dataclass(frozen=True)
class Picked:
    """Some nodes of each member, filled up to one count with nodes of weight zero."""

    members: Tensor  # (members, 1): 0, 1, 2, ...
    rows: Tensor  # (members, count)
    weight: Tensor  # (members, count): averages over a member's nodes

    @classmethod
    def from_masks(cls, masks: Sequence[Tensor], device: torch.device, dtype: torch.dtype) -> Self:
        """From masks (nodes,), one per member."""
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
        members = torch.arange(len(masks))[:, None]
        return cls(members.to(device), torch.stack(rows).to(device), weight.to(device))

    def of(self, values: Tensor) -> Tensor:
        """The values (members, nodes, ...) of the picked nodes, shape (members, count, ...)."""
        return values[self.members, self.rows]

    def weighed(self, by: Tensor) -> Self:
        """The same nodes, their weights multiplied by a number (nodes,) for each node."""
        return dataclasses.replace(self, weight=self.weight * by[self.rows])

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
    # With classes first a vector of nodes is handled at once: log_softmax is 20 times faster so.
    log_p = torch.log_softmax(scores[members, rows].movedim(-1, 0).contiguous(), 0)
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
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*inputs[1:], output[1])


_entropy = differentiable(_cross_entropy, _cross_entropy_gradient, _save, vmap="torch")


def cross_entropy(scores: Tensor, picked: Picked, labels: Tensor) -> Tensor:
    """Mean cross entropy of each member over its picked nodes, shape (members,).

    >>> mask, cpu = torch.tensor([True, False]), torch.device("cpu")
    >>> picked = Picked.from_masks([mask], cpu, torch.float32)
    >>> cross_entropy(torch.zeros(1, 2, 4), picked, torch.tensor([[0]]))
    tensor([1.3863])
    """
    return _entropy(scores, picked.members, picked.rows, picked.weight, labels)[0]


class Objective:
    """Losses and scores of all members.

    Args:
        problem: what they learn.
        train, val: masks (nodes,), one per member.
    """

    def __init__(self, problem: Problem, train: Sequence[Tensor], val: Sequence[Tensor]) -> None:
        self.classify = problem.task == "classification"
        dtype, device = problem.dtype, problem.device
        self.train = Picked.from_masks(train, device, dtype)
        self.val = Picked.from_masks(val, device, dtype)
        self.scale = torch.ones(len(train), dtype=dtype, device=device)
        self.offset = torch.zeros_like(self.scale)
        if self.classify:
            y = problem.labels.clamp_min(0)
            known = problem.labels >= 0
            self.train, self.val = self.train.weighed(known), self.val.weighed(known)
        else:
            y = torch.nan_to_num(problem.labels)
            mine = y[self.train.rows]
            self.offset = (mine * self.train.weight).sum(1)
            spread = ((mine - self.offset[:, None]).square() * self.train.weight).sum(1).sqrt()
            self.scale = torch.where(spread > 0, spread, self.scale)
        targets = [self._standard(y[picked.rows]) for picked in (self.train, self.val)]
        self.train_target, self.val_target = targets  # each (members, count)

    def _standard(self, y: Tensor) -> Tensor:
        """Regression learns labels of mean zero and deviation one over the training nodes."""
        return y if self.classify else (y - self.offset[:, None]) / self.scale[:, None]

    def train_loss(self, scores: Tensor) -> Tensor:
        """Cross entropy or squared error of each member, shape (members,)."""
        return self._loss(scores, self.train, self.train_target)

    def _loss(self, scores: Tensor, picked: Picked, target: Tensor) -> Tensor:
        if self.classify:
            return cross_entropy(scores, picked, target)
        return ((picked.of(scores[..., 0]) - target).square() * picked.weight).sum(-1)

    def validate(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Loss, and accuracy or R2, of each member on its validation nodes."""
        loss = self._loss(scores, self.val, self.val_target)
        weight, target = self.val.weight, self.val_target
        if self.classify:
            hit = self.val.of(scores).argmax(-1) == target
            return loss, (hit * weight).sum(-1)
        mean = (target * weight).sum(-1, keepdim=True)
        spread = ((target - mean).square() * weight).sum(-1)
        return loss, 1 - loss / spread.clamp_min(torch.finfo(loss.dtype).tiny)

    def take(self, kept: Tensor) -> None:
        """Keep only the given members."""
        self.train, self.val = self.train.take(kept), self.val.take(kept)
        for name in ("scale", "offset", "train_target", "val_target"):
            setattr(self, name, getattr(self, name)[kept])
