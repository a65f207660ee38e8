"""Benchmarks: the time and memory of an epoch, how they grow, and what limits them.

:func:`run_bench` measures and returns a :class:`BenchRecord`; :func:`write_bench` writes it as
files, :func:`read_bench` reads it back, and :func:`lines` prints it. ``textbook`` holds the
formulas of the paper written out plainly, the reference that fast code is checked against and timed
against. No package below needs this one.
"""

from longnn.bench import _textbook as textbook
from longnn.bench._contenders import Workload, make_contender
from longnn.bench._ensembles import (
    EnsembleRecord,
    ensemble_lines,
    run_ensembles,
    write_ensembles,
)
from longnn.bench._goals import DATASETS, check_goals
from longnn.bench._output import lines, read_bench, write_bench
from longnn.bench._record import BenchRecord
from longnn.bench._rowmodels import Contender, Sign, compare_on_rows, contenders_text
from longnn.bench._scale import Size, run_scale
from longnn.bench._scalerecord import ScaleRecord, scale_lines, write_scale
from longnn.bench._suite import SECTIONS, run_bench
from longnn.bench._timing import plan, time_calls

__all__ = [
    "DATASETS",
    "SECTIONS",
    "BenchRecord",
    "Contender",
    "EnsembleRecord",
    "ScaleRecord",
    "Sign",
    "Size",
    "Workload",
    "check_goals",
    "compare_on_rows",
    "contenders_text",
    "ensemble_lines",
    "lines",
    "make_contender",
    "plan",
    "read_bench",
    "run_bench",
    "run_ensembles",
    "run_scale",
    "scale_lines",
    "textbook",
    "time_calls",
    "write_bench",
    "write_ensembles",
    "write_scale",
]
