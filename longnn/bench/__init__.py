"""Benchmarks: how long an epoch takes, what it needs, how that grows, what bounds it.

:func:`run_bench` measures and returns a record of plain numbers; :func:`write_bench` turns a
record into files and :func:`lines` into text. Nothing here is imported by the library itself.
"""

from longnn.bench.goals import DATASETS, check_goals
from longnn.bench.output import lines, read_bench, write_bench
from longnn.bench.suite import run_bench

__all__ = ["DATASETS", "check_goals", "lines", "read_bench", "run_bench", "write_bench"]
