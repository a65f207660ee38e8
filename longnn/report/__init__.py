"""Saved records as figures, words and one HTML page.

Reads run folders and never trains: nothing here imports another part of longnn.
"""

from longnn.report.comparison import cautions, comparison_rows, load_runs, write_comparison
from longnn.report.figures import (
    amplitude_waveform,
    basis_path,
    compare_filters,
    compare_scores,
    confusion,
    density,
    filter_response,
    save_figures,
    score_distribution,
    training_curves,
)
from longnn.report.page import write_report
from longnn.report.record import Run, Summary, load_run
from longnn.report.text import text_comparison, text_summary
from longnn.report.words import describe_filter, interval_text, metric_name

__all__ = [
    "Run",
    "Summary",
    "amplitude_waveform",
    "basis_path",
    "cautions",
    "compare_filters",
    "compare_scores",
    "comparison_rows",
    "confusion",
    "density",
    "describe_filter",
    "filter_response",
    "interval_text",
    "load_run",
    "load_runs",
    "metric_name",
    "save_figures",
    "score_distribution",
    "text_comparison",
    "text_summary",
    "training_curves",
    "write_comparison",
    "write_report",
]
