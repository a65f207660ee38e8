"""The command ``longnn``, also as ``python -m longnn``."""

import os


def main() -> None:
    """Settle OpenMP, then hand over to the command line.

    By default OpenMP's idle threads spin. Where other programs want the cores too, an epoch of a
    small graph then takes twenty times as long. The setting is read when torch is loaded.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from longnn import cli

    cli.main()


if __name__ == "__main__":
    main()
