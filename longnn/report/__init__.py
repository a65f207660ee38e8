"""Saved records as figures, words and HTML pages.

Takes records and never trains: of longnn it imports :mod:`longnn.records`, and the names of models
from :mod:`longnn.registry`. Pages are put together from the pieces in ``_html``, all figures have
the style of ``_style``.
"""

from longnn.report._answer import answer_text
from longnn.report._comparison import cautions, compare_words, name_apart, write_comparison
from longnn.report._page import Figures, short_page, text_summary, write_report
from longnn.report._words import difference_text, interval_text, score_text

__all__ = [
    "Figures", "answer_text", "cautions", "compare_words", "difference_text", "interval_text",
    "name_apart", "score_text", "short_page", "text_summary", "write_comparison", "write_report",
]  # fmt: skip
