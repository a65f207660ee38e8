"""Benchmarks: the time and memory of an epoch.

:func:`run_bench` measures and returns a record; :func:`write_bench` writes it as files,
:func:`read_bench` reads it back, :func:`lines` prints it, :func:`rows` is the long table of what it
measured.
"""

from lab.bench._contenders import Workload, make_contender
from lab.bench._epochs import run_bench
from lab.bench._goals import DATASETS, check_goals
from lab.bench._measure import plan, time_calls
from lab.bench._output import compare_records, lines, rebuild_bench, write_bench
from lab.bench._record import facts, read_bench, rows
from lab.bench._tables import Table

__all__ = [
    "DATASETS",
    "Table",
    "Workload",
    "check_goals",
    "compare_records",
    "facts",
    "lines",
    "make_contender",
    "plan",
    "read_bench",
    "rebuild_bench",
    "rows",
    "run_bench",
    "time_calls",
    "write_bench",
]
