"""Which workers of a search are alive: the trials of a dead worker can be trained by another.

A worker on this machine is dead as soon as its process is gone. Of a worker elsewhere only its
signs of life are seen: it is dead when they have been missing for :data:`GRACE` seconds.
"""

import contextlib
import dataclasses
import os
import platform
import sys
import time
import uuid
from pathlib import Path
from typing import TypedDict, TypeGuard

#: Seconds between two signs of life.
BEAT = 15.0
#: Seconds without one after which a worker on another machine counts as dead.
GRACE = 600.0


#: Workers of this process that have ended. Their last sign of life may not have been written.
ENDED: set[str] = set()


class Sign(TypedDict):
    """A sign of life of a worker, as the storage has it."""

    id: str
    machine: str
    pid: int
    started: str
    beat: float  # seconds since 1970
    done: bool


@dataclasses.dataclass(frozen=True)
class Worker:
    """One process that works on a search.

    Args:
        id: random.
        machine: see :func:`machine_id`.
        pid: the number of the process.
        started: when the process started. A later process may have the same number.
    """

    id: str
    machine: str
    pid: int
    started: str

    @classmethod
    def here(cls) -> "Worker":
        """This process."""
        pid = os.getpid()
        return cls(uuid.uuid4().hex[:12], machine_id(), pid, _start_time(pid))

    def sign(self, *, done: bool = False) -> Sign:
        """A sign of life for the storage; ``done`` makes it the last one."""
        if done:
            ENDED.add(self.id)
        return Sign(
            id=self.id,
            machine=self.machine,
            pid=self.pid,
            started=self.started,
            beat=time.time(),
            done=done,
        )


def is_sign(value: object) -> TypeGuard[Sign]:
    """Whether a value of a storage is a sign of life."""
    kinds = {"id": str, "machine": str, "pid": int, "started": str, "beat": float, "done": bool}
    return isinstance(value, dict) and all(isinstance(value.get(k), t) for k, t in kinds.items())


def is_alive(sign: Sign | None) -> bool:
    """Whether the worker with this sign of life is at work; without a sign it is not.

    >>> is_alive(Worker.here().sign()), is_alive(Worker.here().sign(done=True)), is_alive(None)
    (True, False, False)
    """
    if sign is None or sign["done"] or sign["id"] in ENDED:
        return False
    if sign["machine"] == machine_id() and sys.platform != "win32":
        return _process_exists(sign["pid"]) and _start_time(sign["pid"]) == sign["started"]
    return time.time() - sign["beat"] < GRACE


def machine_id() -> str:
    """This machine since it was started. Containers with their own processes have their own ids."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return "/".join(parts)


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _start_time(pid: int) -> str:
    """When a process started, in ticks since boot; empty where that is not known."""
    try:
        # The name, in brackets, may hold anything; field 22 of proc(5) is the 20th after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    if fields[0] == "Z":
        return "zombie"
    return fields[19]
