"""Triton kernels, where CUDA and Triton are; nothing here is needed for a right answer.

Each file holds one kernel and the function that launches it. The torch operators above call them
for CUDA tensors and have a plain form for everything else. Under ``TRITON_INTERPRET=1`` the same
kernels run on the CPU, which is how they are tested where there is no GPU.
"""

import functools
import importlib.util
import os

import torch
from torch import Tensor

#: Compute capability from which Triton compiles for a GPU.
_CAPABILITY = (8, 0)


@functools.cache
def available() -> bool:
    """Whether Triton can be imported."""
    return importlib.util.find_spec("triton") is not None


@functools.cache
def _capable(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device) >= _CAPABILITY


def usable(tensor: Tensor) -> bool:
    """Whether the kernels run on this tensor's device."""
    if os.environ.get("LONGNN_KERNELS") == "0":
        return False
    return tensor.is_cuda and available() and _capable(tensor.device)
