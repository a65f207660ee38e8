"""Saved records as figures, words and HTML pages.

Takes records and never trains: of longnn it imports :mod:`longnn.records`, and the names of models
from :mod:`longnn.registry`. Pages are put together from the pieces in ``_html``, all figures have
the style of ``_style``.
"""

from longnn.report._answer import answer_text
from longnn.report._comparison import cautions, comparison_rows, name_apart, write_comparison
from longnn.report._filters import (
    chebyshev_response,
    density_top,
    describe_cover_filter,
    describe_filter,
    jacobi_weight,
    mean_response,
)
from longnn.report._page import Figures, text_summary, write_report
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
from longnn.report._words import interval_text, score_text

__all__ = [  # noqa: RUF022 - by purpose
    # Runs: their figures, their pages, in words and as curves
    "Figures", "name_apart", "text_summary", "answer_text", "write_report", "write_comparison",
    "cautions", "comparison_rows", "interval_text", "score_text", "describe_cover_filter",
    "describe_filter", "chebyshev_response", "density_top", "jacobi_weight", "mean_response",
    # The style of figures, and files
    "GREY", "LINES", "NARROW", "NAVY", "ORANGE", "PALE", "SKY", "WIDTH", "colours", "in_style",
    "new_figure", "plain", "spectrum_axis", "to_png", "to_svg", "write_atomically",
]  # fmt: skip
