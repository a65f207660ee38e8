"""Benchmarks: the time and memory of an epoch, how they grow, and what limits them.

:func:`run_bench` measures and returns a :class:`BenchRecord`; :func:`write_bench` writes it as
files, :func:`read_bench` reads it back, and :func:`lines` prints it. ``textbook`` holds the
formulas of the paper written out plainly, the reference that fast code is checked against and timed
against. No package below needs this one.
"""

from lab.bench import _textbook as textbook
from lab.bench._contenders import Workload, make_contender
from lab.bench._depth import DepthRecord, depth_lines, run_depth, write_depth
from lab.bench._ensembles import (
    EnsembleRecord,
    ensemble_lines,
    run_ensembles,
    write_ensembles,
)
from lab.bench._forecast import PAPERS, Shape, forecast_table, propagate_seconds
from lab.bench._goals import DATASETS, check_goals
from lab.bench._output import lines, read_bench, write_bench
from lab.bench._record import BenchRecord
from lab.bench._rowmodels import Contender, Sign, compare_on_rows, contenders_text
from lab.bench._scale import SCALE_SECTIONS, run_scale
from lab.bench._scalegraph import Size
from lab.bench._scalerecord import ScaleRecord
from lab.bench._scaletables import scale_lines, write_paper, write_scale
from lab.bench._scalewords import scale_words
from lab.bench._suite import SECTIONS, run_bench
from lab.bench._timing import plan, time_calls

__all__ = [
    "DATASETS",
    "PAPERS",
    "SCALE_SECTIONS",
    "SECTIONS",
    "BenchRecord",
    "Contender",
    "DepthRecord",
    "EnsembleRecord",
    "ScaleRecord",
    "Shape",
    "Sign",
    "Size",
    "Workload",
    "check_goals",
    "compare_on_rows",
    "contenders_text",
    "depth_lines",
    "ensemble_lines",
    "forecast_table",
    "lines",
    "make_contender",
    "plan",
    "propagate_seconds",
    "read_bench",
    "run_bench",
    "run_depth",
    "run_ensembles",
    "run_scale",
    "scale_lines",
    "scale_words",
    "textbook",
    "time_calls",
    "write_bench",
    "write_depth",
    "write_ensembles",
    "write_paper",
    "write_scale",
]
