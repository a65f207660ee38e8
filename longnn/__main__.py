"""``python -m longnn`` is the command ``longnn``."""

from longnn.cli import main

main()
