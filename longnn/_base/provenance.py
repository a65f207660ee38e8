"""Where a number came from: machine and versions. Every record carries it."""

import contextlib
import importlib.metadata
import os
import platform
from pathlib import Path

import torch

from longnn._base.version import __version__

_VERSIONS = ("torch", "torch_geometric", "triton", "numpy", "scipy", "scikit_learn", "optuna")


def environment(device: torch.device) -> dict[str, str | int | float | None]:
    """Hardware and versions: what a reader needs to know whether a number should repeat."""
    gpu = torch.cuda.get_device_properties(device) if device.type == "cuda" else None
    return {
        "platform": platform.platform(),
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "threads": torch.get_num_threads(),
        "device": device.type,
        "gpu": None if gpu is None else gpu.name,
        "gpu_memory_gib": None if gpu is None else round(gpu.total_memory / 2**30, 1),
        "cuda": torch.version.cuda if gpu is not None else None,
        "python": platform.python_version(),
        "longnn": __version__,
        **{name: _version(name) for name in _VERSIONS},
    }


def _version(package: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return None


def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
