r"""Features on two copies of every node: :math:`\mathrm{diag}(X, X)`, without its zeros.

With weights :math:`W = (W_1; W_2)`, of shape (2 features, channels), the product is
:math:`(X W_1; X W_2)`: each copy has weights of its own. X is multiplied once, by both side by
side, and dropout takes a feature from both copies of a node.
"""

import dataclasses
from typing import Self

import torch
from torch import Tensor

from longnn.matrices._sparse import DenseMatrix, SparseMatrix


@dataclasses.dataclass(frozen=True, eq=False)
class LiftedMatrix:
    """The block diagonal of a matrix and itself, with the interface of :class:`SparseMatrix`.

    >>> lifted = LiftedMatrix(DenseMatrix(torch.tensor([[1.0, 2.0]])))
    >>> lifted.shape
    torch.Size([2, 4])
    >>> lifted @ torch.tensor([[1.0], [1.0], [10.0], [0.0]])
    tensor([[ 3.], [10.]])
    """

    matrix: SparseMatrix | DenseMatrix  # (rows, columns)

    @property
    def shape(self) -> torch.Size:
        """Rows and columns: twice those of the matrix."""
        rows, columns = self.matrix.shape
        return torch.Size((2 * rows, 2 * columns))

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        return self.matrix.dtype

    @property
    def device(self) -> torch.device:
        """Where the values are."""
        return self.matrix.device

    @property
    def values(self) -> Tensor:
        """The values of the matrix, stored once."""
        return self.matrix.values

    def with_values(self, values: Tensor) -> Self:
        """The same with other values of the matrix."""
        return type(self)(self.matrix.with_values(values))

    def dropped(self, stream: Tensor, p: Tensor, site: int) -> Self:
        """The same with dropout, applied when it is multiplied."""
        return type(self)(self.matrix.dropped(stream, p, site))

    def __matmul__(self, dense: Tensor) -> Tensor:
        first, second = dense.chunk(2, dim=0)  # each (columns, channels)
        side_by_side = self.matrix @ torch.cat([first, second], dim=1)
        return torch.cat(side_by_side.chunk(2, dim=1), dim=0)
