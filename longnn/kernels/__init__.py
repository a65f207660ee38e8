"""Triton kernels, where CUDA and Triton are; nothing here is needed for a right answer.

Each file holds the kernels of one step and the functions that launch them. The torch operators
above call them for CUDA tensors and have a plain form for everything else. Under
``TRITON_INTERPRET=1`` the same kernels run on the CPU, which is how they are tested where there is
no GPU. A kernel's file, and Triton with it, is loaded when the kernel is first used.
"""

import functools
import importlib
import importlib.util
import os
from typing import Any

import torch
from torch import Tensor

#: The functions of each file.
_FUNCTIONS = {
    "_basis": ("jacobi_coefficients", "jacobi_gradient", "summary"),
    "_chebyshev": ("chebyshev_filter",),
    "_dense": ("dense_product",),
    "_entropy": ("cross_entropy", "cross_entropy_gradient"),
    "_features": ("feature_product",),
    "_narrow": ("narrow_gradient", "narrow_product"),
    "_rows": (
        *("activation_gradient", "add_bias", "dropout", "normalize", "normalize_gradient"),
        "sum_rows",
    ),
    "_step": ("adam_", "cut", "keep_", "stand_"),
}
_HOMES = {name: file for file, names in _FUNCTIONS.items() for name in names}
__all__ = [*sorted(_HOMES), "usable"]
#: Compute capability from which Triton compiles for a GPU.
_CAPABILITY = (8, 0)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_HOMES[name]}")
    return globals().setdefault(name, getattr(module, name))


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
