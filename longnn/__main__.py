"""The command ``longnn``, also as ``python -m longnn``."""

import os
import time
from pathlib import Path

#: If other programs keep this many cores busy, idle threads should not spin.
BUSY = 0.5
#: How often we look, and the seconds between looks.
LOOKS, PAUSE = 7, 0.002


def main() -> None:
    """Settle OpenMP, then hand over to the command line.

    By default OpenMP's idle threads spin, which is right if no other program runs: waking them
    takes longer than many steps of training. If other programs use the cores too, an epoch of a
    small graph then takes several times as long. The setting is read when torch is loaded.
    """
    if others_running() > BUSY:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from longnn import cli  # only now: OpenMP is settled

    cli.main()


def others_running() -> float:
    """How many programs want a core now, besides this one.

    The load average would also count what ran a minute ago, such as the last command of the same
    user: it is asked only where the system does not say more.
    """
    try:
        looks = []
        for _ in range(LOOKS):
            said = dict(line.split()[:2] for line in Path("/proc/stat").read_text().splitlines())
            looks.append(int(said["procs_running"]) - 1)
            time.sleep(PAUSE)
        return sorted(looks)[LOOKS // 2]
    except (OSError, KeyError, ValueError):
        return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


if __name__ == "__main__":
    main()
