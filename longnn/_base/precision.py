"""How exact products of dense matrices are."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def dense_products(*, rounded: bool) -> Iterator[None]:
    """Products of dense matrices on a GPU, their factors rounded to TF32 or as they are.

    >>> with dense_products(rounded=True):
    ...     torch.get_float32_matmul_precision()
    'high'
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if rounded else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
