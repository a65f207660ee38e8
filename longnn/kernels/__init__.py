"""Triton kernels, where CUDA and Triton are; nothing here is needed for a right answer.

Each file holds one kernel and the function that launches it. The torch operators above call them
for CUDA tensors and have a plain form for everything else. Under ``TRITON_INTERPRET=1`` the same
kernels run on the CPU, which is how they are tested where there is no GPU. A kernel's file, and
Triton with it, is loaded when the kernel is first used.
"""

import functools
import importlib
import importlib.util
import os
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from longnn.kernels._adam import adam_, cut, keep_
    from longnn.kernels._basis import jacobi_coefficients, jacobi_gradient
    from longnn.kernels._chebyshev import chebyshev_filter
    from longnn.kernels._dense import product as dense_product
    from longnn.kernels._dropout import activation_gradient, dropout
    from longnn.kernels._entropy import cross_entropy, cross_entropy_gradient
    from longnn.kernels._features import product as feature_product
    from longnn.kernels._narrow import gradient as narrow_gradient
    from longnn.kernels._narrow import product as narrow_product
    from longnn.kernels._rows import add_bias, normalize, normalize_gradient, sum_rows
    from longnn.kernels._standing import stand_
    from longnn.kernels._summary import summary

__all__ = [
    "activation_gradient",
    "adam_",
    "add_bias",
    "chebyshev_filter",
    "cross_entropy",
    "cross_entropy_gradient",
    "cut",
    "dense_product",
    "dropout",
    "feature_product",
    "jacobi_coefficients",
    "jacobi_gradient",
    "keep_",
    "narrow_gradient",
    "narrow_product",
    "normalize",
    "normalize_gradient",
    "stand_",
    "sum_rows",
    "summary",
    "usable",
]

#: The file and the function behind each name.
_HOMES = {
    "activation_gradient": ("_dropout", "activation_gradient"),
    "adam_": ("_adam", "adam_"),
    "add_bias": ("_rows", "add_bias"),
    "chebyshev_filter": ("_chebyshev", "chebyshev_filter"),
    "cross_entropy": ("_entropy", "cross_entropy"),
    "cross_entropy_gradient": ("_entropy", "cross_entropy_gradient"),
    "cut": ("_adam", "cut"),
    "dense_product": ("_dense", "product"),
    "dropout": ("_dropout", "dropout"),
    "feature_product": ("_features", "product"),
    "jacobi_coefficients": ("_basis", "jacobi_coefficients"),
    "jacobi_gradient": ("_basis", "jacobi_gradient"),
    "keep_": ("_adam", "keep_"),
    "narrow_gradient": ("_narrow", "gradient"),
    "narrow_product": ("_narrow", "product"),
    "normalize": ("_rows", "normalize"),
    "normalize_gradient": ("_rows", "normalize_gradient"),
    "stand_": ("_standing", "stand_"),
    "sum_rows": ("_rows", "sum_rows"),
    "summary": ("_summary", "summary"),
}
#: Compute capability from which Triton compiles for a GPU.
_CAPABILITY = (8, 0)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, function = _HOMES[name]
    return globals().setdefault(
        name, getattr(importlib.import_module(f"{__name__}.{module}"), function)
    )


@functools.cache
def _available() -> bool:
    """Whether Triton can be imported."""
    return importlib.util.find_spec("triton") is not None


@functools.cache
def _capable(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device) >= _CAPABILITY


def usable(tensor: Tensor) -> bool:
    """Whether the kernels run on this tensor's device."""
    # The device first: looking up the environment costs a microsecond, and this is asked often.
    if not tensor.is_cuda or os.environ.get("LONGNN_KERNELS") == "0":
        return False
    return _available() and _capable(tensor.device)
