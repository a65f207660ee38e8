"""Where a number came from: machine, versions, commit. Every record carries it."""

import contextlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import TypedDict

import torch

from longnn._base.version import __version__

_PACKAGE = Path(__file__).resolve().parents[1]
_VERSIONS = ("torch", "torch_geometric", "triton", "numpy", "scipy", "scikit_learn", "optuna")


class Code(TypedDict):
    """A commit and whether files differ from it; None where that is not known."""

    commit: str | None
    dirty: bool | None


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


def describe_code(commit: str | None = None) -> Code:
    """The commit of this checkout and whether files differ from it; None outside a checkout.

    ``commit`` names the commit of a copy that is not a checkout.
    """
    if commit is not None:
        return {"commit": commit, "dirty": None}
    top = _git("rev-parse", "--show-toplevel")
    # An installed copy may lie inside somebody else's repository.
    if top is None or Path(top).resolve() / "longnn" != _PACKAGE:
        return {"commit": None, "dirty": None}
    status = _git("status", "--porcelain")
    return {"commit": _git("rev-parse", "HEAD"), "dirty": None if status is None else status != ""}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(_PACKAGE), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
