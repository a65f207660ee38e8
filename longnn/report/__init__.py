"""Saved records as figures, words and HTML pages.

Takes records and never trains: of longnn it imports :mod:`longnn.records`, and the names of models
from :mod:`longnn.registry`.

For users
    :func:`figures_of` draws one figure of a run, :func:`save_figures` writes all of them,
    :func:`write_report` and :func:`write_comparison` write pages, :func:`text_summary` and
    :func:`text_comparison` lines for a terminal.
For studies, searches and benchmarks
    The house style (:func:`new_figure`, :func:`in_style`, :func:`colours`, ...) and functions that
    write figures; the pieces of pages (:func:`document`, :func:`section`, :func:`table`, ...); the
    curves behind the figures (:func:`chebyshev_response`, :func:`jacobi_weight`).
For the command line
    Words for filters and scores (:func:`describe_filter`, :func:`interval_text`,
    :func:`metric_name`, :func:`score_text`), and the rows and cautions of a comparison.
"""

from longnn.report._comparison import (
    cautions,
    comparison_rows,
    name_apart,
    write_comparison,
)
from longnn.report._figures import (
    Figures,
    Plate,
    amplitude_waveform,
    basis_path,
    compare_filters,
    compare_scores,
    confusion,
    density,
    figures_of,
    filter_ladder,
    filter_response,
    save_figures,
    score_distribution,
    training_curves,
)
from longnn.report._filter_figures import density_top
from longnn.report._filter_words import describe_cover_filter, describe_filter
from longnn.report._markup import (
    alert,
    code_block,
    document,
    heading,
    pairs,
    paragraph,
    section,
    table,
    value_text,
)
from longnn.report._numbers import interval_text, metric_name, score_text
from longnn.report._page import embed, write_report
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
from longnn.report._text import text_comparison, text_summary
from longnn.report._trust_figures import (
    PrecisionRecall,
    bin_by_degree,
    calibration_error,
    precision_recall,
    predicted_true,
    reliability,
    residuals_by_degree,
    what_the_graph_adds,
)

__all__ = [  # noqa: RUF022 - by purpose
    # Runs and their pages
    "name_apart",
    "write_report",
    "write_comparison",
    "text_summary",
    "text_comparison",
    # Figures of a run
    "Figures",
    "figures_of",
    "save_figures",
    "filter_ladder",
    "filter_response",
    "basis_path",
    "amplitude_waveform",
    "training_curves",
    "score_distribution",
    "confusion",
    "density",
    # Figures of trust, from plain arrays
    "PrecisionRecall",
    "bin_by_degree",
    "calibration_error",
    "precision_recall",
    "predicted_true",
    "reliability",
    "residuals_by_degree",
    "what_the_graph_adds",
    # Figures of several runs
    "compare_filters",
    "compare_scores",
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
