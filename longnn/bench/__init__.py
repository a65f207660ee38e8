"""Benchmarks: how long an epoch takes, what it needs, how that grows, what bounds it.

:func:`run_bench` measures and returns a record of plain numbers; :func:`write_bench` turns a
record into files and :func:`lines` into text. Nothing here is imported by the library itself.
"""

from longnn.bench._contenders import Setup, make_contender
from longnn.bench._goals import DATASETS, check_goals
from longnn.bench._output import lines, read_bench, write_bench
from longnn.bench._suite import run_bench
from longnn.bench._timing import plan, time_calls

__all__ = [
    "DATASETS",
    "Setup",
    "check_goals",
    "lines",
    "make_contender",
    "plan",
    "read_bench",
    "run_bench",
    "time_calls",
    "write_bench",
]
