"""Who works on a study, and who is dead: so that what a dead one left can be taken up.

A worker on this machine is dead when its process is gone, at once. Of one elsewhere only its
beats are seen: it is dead when they have been missing for :data:`GRACE` seconds.
"""

import contextlib
import dataclasses
import os
import platform
import sys
import time
import uuid
from pathlib import Path
from typing import Any

#: Seconds between two signs of life.
BEAT = 15.0
#: Seconds without one after which a worker on another machine counts as dead.
GRACE = 600.0


@dataclasses.dataclass(frozen=True)
class Worker:
    """One search in one process."""

    id: str
    machine: str
    pid: int
    started: str  # tells a process from a later one with the same number

    @classmethod
    def here(cls) -> "Worker":
        pid = os.getpid()
        return cls(uuid.uuid4().hex[:12], machine_id(), pid, _start_time(pid))

    def sign(self, *, done: bool = False) -> dict[str, Any]:
        """A sign of life to leave in the study, or the last one."""
        return {**dataclasses.asdict(self), "beat": time.time(), "done": done}


def is_alive(sign: dict[str, Any] | None) -> bool:
    """Whether the worker that left a sign (None: it left none) is still at work."""
    if sign is None or sign["done"]:
        return False
    if sign["machine"] == machine_id() and sys.platform != "win32":
        return _process_exists(sign["pid"]) and _start_time(sign["pid"]) == sign["started"]
    return time.time() - sign["beat"] < GRACE


def machine_id() -> str:
    """This machine since it was started; containers with processes of their own differ."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return "/".join(parts)


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _start_time(pid: int) -> str:
    """When a process started, in ticks since boot; empty where that cannot be known."""
    try:
        # The name, in brackets, may hold anything; field 22 of proc(5) is the 20th after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    if fields[0] == "Z":
        return "zombie"
    return fields[19]
