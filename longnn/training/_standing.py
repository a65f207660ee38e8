"""Who is how good: the best epoch of each member, its weights, and who is still in training."""

import torch
from torch import Tensor

from longnn import kernels
from longnn.config import Settings
from longnn.training._packed import Packed

#: Tensors of a standing with one number per member.
STANDING = ("best_score", "best_loss", "best_epoch", "stop_epoch", "alive", "diverged")


class Standing:
    """The best of each member until now; a member stops when its patience is over, or diverged.

    All of it stays on the device, and is changed in place: no number is read back.

    Args:
        weights: of the members at the start.
        like: one number of each member, (members,): their type and device.
        settings: patience and monitor.
        falling: whether a smaller score is a better one.

    >>> weights = Packed({"w": torch.zeros(2, 3)})
    >>> standing = Standing(weights, torch.zeros(2), Settings(patience=1), falling=False)
    >>> row = torch.tensor([[0.5, torch.nan], [0.5, torch.nan], [0.7, 0.7]])
    >>> standing.update(torch.tensor([1, 1]), row, Packed({"w": torch.ones(2, 3)}))
    >>> standing.alive, standing.best["w"][:, 0]
    (tensor([ True, False]), tensor([1., 0.]))
    """

    def __init__(self, weights: Packed, like: Tensor, settings: Settings, *, falling: bool) -> None:
        self.patience, self.monitor, self.falling = settings.patience, settings.monitor, falling
        self.best = Packed(weights)
        self.best_score = torch.full_like(like, -torch.inf)
        self.best_loss = torch.full_like(like, torch.inf)
        self.best_epoch = torch.zeros_like(like, dtype=torch.int64)
        self.stop_epoch = torch.zeros_like(self.best_epoch)
        self.alive = torch.ones_like(like, dtype=torch.bool)
        self.diverged = torch.zeros_like(self.alive)

    @torch.no_grad()
    def update(
        self,
        epoch: Tensor,  # (members,) from 1
        row: Tensor,  # (3 or more, members): loss in training and in validation, score, ...
        weights: Packed,
    ) -> None:
        """An epoch is over: keep the best, see who is done."""
        if kernels.usable(row):
            better = kernels.stand_(
                *(row, epoch, *self.tensors.values()),
                patience=self.patience,
                falling=self.falling,
                by_loss=self.monitor == "loss",
            )
            kernels.keep_(self.best.flat, weights.flat, better, weights.blocks)
            return
        finite = row[:2].abs() < torch.inf  # a NaN is not
        self._keep_best(epoch, row[1], row[2], finite[1], weights)
        torch.where(self.alive, epoch, self.stop_epoch, out=self.stop_epoch)
        finite = finite.all(0)
        self.diverged.logical_or_(self.alive > finite)
        waiting = epoch - self.best_epoch < self.patience
        self.alive.logical_and_(finite & waiting)

    def _keep_best(
        self, epoch: Tensor, loss: Tensor, score: Tensor, finite: Tensor, weights: Packed
    ) -> None:
        score = -score if self.falling else score
        better = loss < self.best_loss
        if self.monitor != "loss":
            better = (score > self.best_score) | ((score == self.best_score) & better)
        better &= self.alive & finite
        torch.where(better, score, self.best_score, out=self.best_score)
        torch.where(better, loss, self.best_loss, out=self.best_loss)
        torch.where(better, epoch, self.best_epoch, out=self.best_epoch)
        self._keep_weights(better, weights)

    def _keep_weights(self, better: Tensor, weights: Packed) -> None:
        """Copy the weights of those that are better, (members,) bool: by the cheapest way."""
        if better.device.type == "cpu":
            rows = better.nonzero()[:, 0]
            if len(rows) == len(better):
                self.best.flat.copy_(weights.flat)
                return
            for name, p in weights.items() if len(rows) else ():
                self.best[name][rows] = p[rows]
            return
        for name, p in weights.items():
            mask = better.reshape(-1, *(1,) * (p.dim() - 1))
            torch.where(mask, p, self.best[name], out=self.best[name])

    def take(self, rows: Tensor) -> None:
        """Keep only the given members."""
        self.best = self.best.take(rows)
        for name in STANDING:
            setattr(self, name, getattr(self, name)[rows])

    @property
    def tensors(self) -> dict[str, Tensor]:
        """One number per member, by name."""
        return {name: getattr(self, name) for name in STANDING}
