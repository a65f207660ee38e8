"""The command ``longnn``, also as ``python -m longnn``."""

import os
import sys

#: If other programs keep this many cores busy, idle threads should not spin.
BUSY = 0.5


def main() -> None:
    """Settle OpenMP, then hand over to the command line.

    By default OpenMP's idle threads spin, which is right if no other program runs: waking them
    takes longer than many steps of training. If other programs use the cores too, an epoch of a
    small graph then takes several times as long. The setting is read when torch is loaded.

    In a benchmark threads always spin: its times must not depend on what ran a minute ago.
    """
    busy = hasattr(os, "getloadavg") and os.getloadavg()[0] > BUSY
    if busy and sys.argv[1:2] != ["bench"]:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from longnn import cli  # only now: OpenMP is settled

    cli.main()


if __name__ == "__main__":
    main()
