"""How much memory a program can still take, and how a size in bytes is written."""

import contextlib
import re
from pathlib import Path

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

#: Less memory than this is no plan: the program itself takes half of it.
LEAST = 1_000_000_000
#: Limits of a container, as (limit, use): cgroups of both versions.
_CGROUP = Path("/sys/fs/cgroup")
_CGROUPS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def available_memory() -> int | None:
    """Bytes that this program can still take: of the machine, of its container and of the limit
    that its user set (``ulimit -v``); None: unknown."""
    sizes = []
    with contextlib.suppress(OSError, TypeError):
        text = Path("/proc/meminfo").read_text()
        sizes.append(int(re.search(r"MemAvailable:\s+(\d+)", text)[1]) * 1024)  # type: ignore[index]
    for limit, use in _CGROUPS:
        with contextlib.suppress(OSError, ValueError):  # ValueError: the limit is "max"
            most, now = (int((_CGROUP / name).read_text()) for name in (limit, use))
            sizes.append(max(most - now, 0))
    if resource is not None:
        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            with contextlib.suppress(OSError, TypeError):
                status = Path("/proc/self/status").read_text()
                now = int(re.search(r"VmSize:\s+(\d+)", status)[1]) * 1024  # type: ignore[index]
                sizes.append(max(most - now, 0))
    return min(sizes, default=None)


def usable_memory(given: int | None = None) -> int:
    """Bytes that a program may take: those given, else half of what is free; of a system that does
    not say how much is free, 4 TB."""
    free = available_memory()
    return given if given is not None else 1 << 42 if free is None else free // 2


def in_words(size: float) -> str:
    """A number of bytes as people write it.

    >>> in_words(512), in_words(3_200_000), in_words(8e9)
    ('512 bytes', '3.2 MB', '8 GB')
    """
    if size >= 10**30:  # more than a number of this kind can hold, perhaps
        return "over a million EB"
    for unit, name in ((1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{int(size)} bytes"


_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def parse_size(text: str | float) -> int:
    """A number of bytes from what a user writes: ``4G``, ``500 MB``, ``1e9``.

    Raises:
        ValueError: for anything else.

    >>> parse_size("4G"), parse_size("1.5 GB"), parse_size(2_000_000)
    (4000000000, 1500000000, 2000000)
    """
    match = re.fullmatch(r"\s*([\d_.]+(?:e\d+)?)\s*([KMGT]?)(?:i?B)?\s*", str(text), re.IGNORECASE)
    with contextlib.suppress(ValueError):
        if match is not None and (size := int(float(match[1]) * _UNITS[match[2].upper()])) > 0:
            return size
    raise ValueError(f"Expected an amount of memory such as 4G or 500M (got {text!r})")
