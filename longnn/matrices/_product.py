"""A CSR matrix times a dense one on a CPU, by whichever of torch's two ways is quicker.

A row of the product is a weighted sum of rows of the dense matrix, and that is what an embedding
bag is. torch has it in vector instructions, and with many channels it takes less time than the
product by its sparse library. With few channels there is no difference.
"""

import torch
from torch import Tensor

#: Channels from which on a row is summed by vector instructions.
WIDE = 32
_SUM = 0  # of the modes of an embedding bag


def csr(crow: Tensor, col: Tensor, values: Tensor, columns: int) -> Tensor:
    """The CSR arrays as a torch tensor; no copy, no check."""
    shape = (crow.shape[0] - 1, columns)
    return torch.sparse_csr_tensor(crow, col, values, shape, check_invariants=False)


def is_wide(crow: Tensor, col: Tensor, values: Tensor, dense: Tensor) -> bool:
    """Whether the product is quicker as sums of rows."""
    return (
        dense.shape[1] >= WIDE
        and values.device.type == "cpu"
        and values.dtype == dense.dtype == torch.float32
        and crow.dtype == col.dtype
        and len(col) > 0
    )


def multiply(crow: Tensor, col: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """``matrix @ dense`` of CSR arrays, shape (rows, channels), without a derivative.

    >>> crow, col = torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1])
    >>> multiply(crow, col, torch.tensor([2.0, 1.0, 1.0]), torch.ones(2, 40))[:, 0]
    tensor([2., 2.])
    """
    if not is_wide(crow, col, values, dense):
        return csr(crow, col, values, dense.shape[0]) @ dense
    rows = dense.detach().contiguous()
    return torch.embedding_bag(rows, col, crow, False, _SUM, False, values.detach(), True)[0]
