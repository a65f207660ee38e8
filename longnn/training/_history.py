"""What is written down at each epoch: losses, scores and the filter, of every member."""

import torch
from torch import Tensor

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
