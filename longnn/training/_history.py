"""What is written down at each epoch: losses, scores and the filter, of every member."""

import torch
from torch import Tensor

#: What is written down at each epoch, for each member.
FIELDS = ("train_loss", "val_loss", "val_score", "amplitude", "a", "b")


class History:
    """Numbers and filters of members, epoch by epoch.

    On a GPU the tables stay where they are: a captured epoch writes into them.

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
        shape = (epochs, len(FIELDS), len(like))
        self.table = like.new_full(shape, torch.nan)  # (epochs, fields, members)
        self.path: Tensor | None = None  # (epochs, members, degree+1, channels)
        if coefficients is not None:
            self.path = coefficients.new_zeros(epochs, *coefficients.shape)

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

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All there is, by name."""
        return {"table": self.table, **({} if self.path is None else {"path": self.path})}

    @property
    def size(self) -> int:
        """Bytes of all epochs."""
        return sum(t.numel() * t.element_size() for t in self.tensors.values())
