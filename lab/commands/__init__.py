"""The commands of ``python -m lab``."""
