"""Benchmarks: the time and memory of an epoch, how they grow, and what limits them.

:func:`run_bench` measures and returns a :class:`BenchRecord`; :func:`write_bench` writes it as
files, :func:`read_bench` reads it back, and :func:`lines` prints it. ``textbook`` holds the
formulas of the paper written out plainly, the reference that fast code is checked against and timed
against. No package below needs this one.
"""

from longnn.bench import _textbook as textbook
from longnn.bench._contenders import Workload, make_contender
from longnn.bench._depth import DepthRecord, depth_lines, run_depth, write_depth
from longnn.bench._ensembles import (
    EnsembleRecord,
    ensemble_lines,
    run_ensembles,
    write_ensembles,
)
from longnn.bench._forecast import PAPERS, Shape, forecast_table, propagate_seconds
from longnn.bench._goals import DATASETS, check_goals
from longnn.bench._output import lines, read_bench, write_bench
from longnn.bench._record import BenchRecord
from longnn.bench._rowmodels import Contender, Sign, compare_on_rows, contenders_text
from longnn.bench._scale import SCALE_SECTIONS, run_scale
from longnn.bench._scalegraph import Size
from longnn.bench._scalerecord import ScaleRecord
from longnn.bench._scaletables import scale_lines, write_paper, write_scale
from longnn.bench._scalewords import scale_words
from longnn.bench._suite import SECTIONS, run_bench
from longnn.bench._timing import plan, time_calls

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
