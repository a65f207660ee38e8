"""What the epochs leave: losses, scores and filters of every member, and its best weights."""

import torch
from torch import Tensor

from longnn import kernels
from longnn.config import Settings
from longnn.training._stack import Packed

#: What is written down at each epoch, for each member.
FIELDS = ("train_loss", "val_loss", "val_score", "amplitude", "a", "b")
#: Epochs that there is room for at first; when they are over, for twice as many, and so on.
ROOM = 1024


class History:
    """Numbers and filters of members, epoch by epoch.

    Room grows as epochs are trained: most trainings end long before the last epoch they may have.
    In between the tables stay where they are, since a captured CUDA graph writes into them.

    Args:
        epochs: at most.
        like: one number of each member, (members,): their type and device.
        coefficients: of the filters, (members, degree+1, channels), or None to keep none.

    >>> history = History(3, torch.zeros(2), None)
    >>> history.write(torch.tensor([0]), torch.ones(len(FIELDS), 2), None)
    >>> history.rows(1)["val_loss"]
    tensor([[1., 1.]])
    """

    def __init__(self, epochs: int, like: Tensor, coefficients: Tensor | None) -> None:
        self.epochs, self.room = epochs, min(ROOM, epochs)
        shape = (self.room, len(FIELDS), len(like))
        self.table = like.new_full(shape, torch.nan)  # (room, fields, members)
        self.path: Tensor | None = None  # (room, members, degree+1, channels)
        if coefficients is not None:
            self.path = coefficients.new_zeros(self.room, *coefficients.shape)

    def make_room(self, epochs: int) -> bool:
        """Have room for so many epochs; True if that took new tables."""
        if epochs <= self.room:
            return False
        assert epochs <= self.epochs
        self.room = min(max(2 * self.room, epochs), self.epochs)
        self.table = _longer(self.table, self.room, torch.nan)
        self.path = None if self.path is None else _longer(self.path, self.room, 0.0)
        return True

    def write(self, at: Tensor, row: Tensor, coefficients: Tensor | None) -> None:
        """Write an epoch down, ``at`` its number from 0, (1,), on the device."""
        self.table.index_copy_(0, at, row[None])
        if self.path is not None and coefficients is not None:
            self.path.index_copy_(0, at, coefficients[None])

    def rows(self, epochs: int) -> dict[str, Tensor]:
        """The first epochs: field -> (epochs, members)."""
        return {field: self.table[:epochs, i] for i, field in enumerate(FIELDS)}

    def take(self, rows: Tensor) -> None:
        """Keep only the given members."""
        self.table = self.table[:, :, rows]
        self.path = None if self.path is None else self.path[:, rows]

    def tensors(self, epochs: int) -> dict[str, Tensor]:
        """The first epochs of each table, by its name."""
        path = {} if self.path is None else {"path": self.path[:epochs]}
        return {"table": self.table[:epochs], **path}

    @property
    def size(self) -> int:
        """Bytes that all epochs will take, if they are trained."""
        now = sum(t.numel() * t.element_size() for t in self.tensors(self.room).values())
        return self.epochs * (now // self.room) if self.room else 0


def _longer(table: Tensor, length: int, value: float) -> Tensor:
    """A table with more rows, of one value."""
    longer = table.new_full((length, *table.shape[1:]), value)
    longer[: len(table)] = table
    return longer


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
