"""Saved records as figures, words and HTML pages.

Takes records and never trains: of longnn it imports :mod:`longnn.records`, and the names of models
from :mod:`longnn.registry`.

For users
    :func:`figures_of` draws one figure of a run, :func:`write_report` and :func:`write_comparison`
    write pages, :func:`text_summary` lines for a terminal.
For studies, searches and benchmarks
    The house style (:func:`new_figure`, :func:`in_style`, :func:`colours`, ...); the pieces of
    pages (:func:`document`, :func:`section`, :func:`table`, ...); the curves behind the figures
    (:func:`chebyshev_response`, :func:`jacobi_weight`).
For the command line
    Words for filters and scores (:func:`describe_filter`, :func:`interval_text`,
    :func:`metric_name`, :func:`score_text`), and the rows and cautions of a comparison.
"""

from longnn.report._comparison import cautions, comparison_rows, name_apart, write_comparison
from longnn.report._filter_figures import density_top
from longnn.report._filter_words import describe_cover_filter, describe_filter
from longnn.report._html import (
    Plate,
    alert,
    code_block,
    document,
    embed,
    heading,
    pairs,
    paragraph,
    section,
    table,
    value_text,
)
from longnn.report._numbers import interval_text, metric_name, score_text
from longnn.report._page import text_summary, write_report
from longnn.report._plates import Figures, figures_of
from longnn.report._responses import chebyshev_response, jacobi_weight, mean_response
from longnn.report._style import (
    GREY,
    LINES,
    NARROW,
    NAVY,
    ORANGE,
    PALE,
    SKY,
    WIDTH,
    colours,
    in_style,
    new_figure,
    plain,
    spectrum_axis,
    to_png,
    to_svg,
    write_atomically,
)

__all__ = [  # noqa: RUF022 - by purpose
    # Runs, their figures and their pages
    "Figures",
    "figures_of",
    "name_apart",
    "text_summary",
    "write_report",
    "write_comparison",
    # Words
    "cautions",
    "comparison_rows",
    "describe_cover_filter",
    "describe_filter",
    "interval_text",
    "metric_name",
    "score_text",
    # Curves behind the figures
    "chebyshev_response",
    "density_top",
    "jacobi_weight",
    "mean_response",
    # Style of figures
    "GREY",
    "LINES",
    "NARROW",
    "NAVY",
    "ORANGE",
    "PALE",
    "SKY",
    "WIDTH",
    "colours",
    "in_style",
    "new_figure",
    "plain",
    "spectrum_axis",
    # Files
    "to_png",
    "to_svg",
    "write_atomically",
    # Pieces of pages
    "Plate",
    "alert",
    "code_block",
    "document",
    "embed",
    "heading",
    "pairs",
    "paragraph",
    "section",
    "table",
    "value_text",
]
