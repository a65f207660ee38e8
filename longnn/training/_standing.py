"""Who is how good: the best epoch of each member, its weights, and who is still in training."""

from collections.abc import Mapping

import torch
from torch import Tensor

from longnn import kernels
from longnn._base.torch_private import copy_each_
from longnn.config import Settings

#: Tensors of a standing with one number per member.
STANDING = ("best_score", "best_loss", "best_epoch", "stop_epoch", "alive", "diverged")


class Standing:
    """The best of each member until now; a member stops when its patience is over, or diverged.

    All of it stays on the device, and is changed in place: no number is read back.

    Args:
        weights: name -> (members, ...), at the start.
        like: one number of each member, (members,): their type and device.
        settings: patience and monitor.
        falling: whether a smaller score is a better one.

    >>> weights = {"w": torch.zeros(2, 3)}
    >>> standing = Standing(weights, torch.zeros(2), Settings(patience=1), falling=False)
    >>> loss, score = torch.tensor([0.5, torch.nan]), torch.tensor([0.7, 0.7])
    >>> standing.update(torch.tensor([1, 1]), loss, loss, score, {"w": torch.ones(2, 3)})
    >>> standing.alive, standing.best["w"][:, 0]
    (tensor([ True, False]), tensor([1., 0.]))
    """

    def __init__(
        self, weights: Mapping[str, Tensor], like: Tensor, settings: Settings, *, falling: bool
    ) -> None:
        self.patience, self.monitor, self.falling = settings.patience, settings.monitor, falling
        self.best = {name: p.detach().clone() for name, p in weights.items()}
        self.best_score = torch.full_like(like, -torch.inf)
        self.best_loss = torch.full_like(like, torch.inf)
        self.best_epoch = torch.zeros_like(like, dtype=torch.int64)
        self.stop_epoch = torch.zeros_like(self.best_epoch)
        self.alive = torch.ones_like(like, dtype=torch.bool)
        self.diverged = torch.zeros_like(self.alive)

    def update(
        self,
        epoch: Tensor,  # (members,) from 1
        train_loss: Tensor,  # (members,)
        loss: Tensor,  # (members,) on validation nodes
        score: Tensor,  # (members,)
        weights: Mapping[str, Tensor],
    ) -> None:
        """An epoch is over: keep the best, see who is done."""
        self._keep_best(epoch, loss, score, weights)
        finite = torch.isfinite(train_loss) & torch.isfinite(loss)
        self.stop_epoch.copy_(torch.where(self.alive, epoch, self.stop_epoch))
        self.diverged.logical_or_(self.alive & ~finite)
        waiting = epoch - self.best_epoch < self.patience
        self.alive.logical_and_(finite & waiting)

    @torch.no_grad()
    def _keep_best(
        self, epoch: Tensor, loss: Tensor, score: Tensor, weights: Mapping[str, Tensor]
    ) -> None:
        score = -score if self.falling else score
        if self.monitor != "loss":
            better = (score > self.best_score) | (
                (score == self.best_score) & (loss < self.best_loss)
            )
        else:
            better = loss < self.best_loss
        better &= self.alive & torch.isfinite(loss)
        self.best_score.copy_(torch.where(better, score, self.best_score))
        self.best_loss.copy_(torch.where(better, loss, self.best_loss))
        self.best_epoch.copy_(torch.where(better, epoch, self.best_epoch))
        self._keep_weights(better, weights)

    def _keep_weights(self, better: Tensor, weights: Mapping[str, Tensor]) -> None:
        """Copy the weights of those that are better, (members,) bool: by the cheapest way."""
        if kernels.usable(better):
            for name, p in weights.items():
                kernels.keep_(self.best[name], p, better)
            return
        if better.device.type == "cpu":
            rows = better.nonzero()[:, 0]
            if len(rows) == len(better):
                copy_each_([*self.best.values()], [*weights.values()])
                return
            for name, p in weights.items() if len(rows) else ():
                self.best[name][rows] = p[rows]
            return
        for name, p in weights.items():
            mask = better.reshape(-1, *(1,) * (p.dim() - 1))
            self.best[name].copy_(torch.where(mask, p, self.best[name]))

    def take(self, rows: Tensor) -> None:
        """Keep only the given members."""
        self.best = {name: p[rows] for name, p in self.best.items()}
        for name in STANDING:
            setattr(self, name, getattr(self, name)[rows])

    @property
    def tensors(self) -> dict[str, Tensor]:
        """One number per member, by name."""
        return {name: getattr(self, name) for name in STANDING}
