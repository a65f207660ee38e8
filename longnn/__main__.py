"""The command ``longnn``, also as ``python -m longnn``."""

import os
import sys

#: Cores that others keep busy, from which on idle threads should not spin.
BUSY = 0.5


def main() -> None:
    """Settle OpenMP, then hand over to the command line.

    By default OpenMP's idle threads spin, which is right on a machine of one's own: to wake them
    takes longer than many a step of training. Where other programs want the cores too, an epoch of
    a small graph then takes several times as long. The setting is read when torch is loaded.

    What was busy a minute ago must not decide how fast a bench is: there threads always spin.
    """
    busy = hasattr(os, "getloadavg") and os.getloadavg()[0] > BUSY
    if busy and sys.argv[1:2] != ["bench"]:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from longnn import cli

    cli.main()


if __name__ == "__main__":
    main()
