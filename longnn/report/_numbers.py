"""Numbers and scores as text: their digits, units, names and intervals."""

import math
from collections.abc import Mapping
from typing import Any

from longnn.metrics import metric_of
from longnn.records import Summary

# Relative difference of the two halves of an interval; above it both bounds are given.
LOPSIDED = 0.25


def number_text(value: float) -> str:
    """Two significant digits, without exponents in everyday sizes.

    >>> [number_text(value) for value in (0.8, 0.0341, 12.3, 1234.5)]
    ['0.8', '0.034', '12', '1234']
    """
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.2g}"


def score_text(value: float, metric: str = "accuracy", *, digits: int = 1) -> str:
    """One score with its unit; ``digits`` of per cent, and two more of a plain number.

    >>> score_text(0.8857), score_text(-0.0001, "r2"), score_text(float("nan"))
    ('88.6 %', '0.000', 'n/a')
    """
    if not math.isfinite(value):
        return "n/a"
    return f"{100 * value:.{digits}f} %" if metric_of(metric).share else f"{value:z.{digits + 2}f}"


def interval_text(
    summary: Summary | Mapping[str, Any],
    *,
    metric: str = "accuracy",
    unit: str = "split",
    short: bool = False,
) -> str:
    """A mean score with its 95 % interval.

    Args:
        summary: a summary, or the mapping of mean, low, high, std and count in a record.
        metric: decides between per cent and a plain number.
        unit: what was repeated.
        short: omit what the interval is.

    >>> interval_text(Summary(0.886, 0.882, 0.890, 0.006, 10))
    '88.6 % ± 0.4 (95 % interval over 10 splits)'
    >>> interval_text(Summary(0.886, 0.886, 0.886, 0.0, 1))
    '88.6 % (one split)'
    """
    if isinstance(summary, Mapping):
        summary = Summary(**summary)
    mean = score_text(summary.mean, metric)
    if summary.count == 1:
        return mean if short else f"{mean} (one {unit})"
    scale, digits = metric_of(metric).scale, metric_of(metric).digits
    below, above = scale * (summary.mean - summary.low), scale * (summary.high - summary.mean)
    over = f"over {summary.count} {unit}s"
    if not math.isfinite(below + above):
        return mean if short else f"{mean} ({over})"
    if abs(below - above) <= max(10.0**-digits, LOPSIDED * (below + above) / 2):
        text = f"{mean} ± {max(below, above):.{digits}f}"
        return text if short else f"{text} (95 % interval {over})"
    bounds = f"{scale * summary.low:.{digits}f} to {scale * summary.high:.{digits}f}"
    return f"{mean} ({bounds})" if short else f"{mean} (95 % interval {bounds}, {over})"


def difference_text(gain: Summary, metric: str) -> str:
    """A difference of scores with its interval.

    >>> difference_text(Summary(0.031, 0.010, 0.052, 0.02, 5), "accuracy")
    '3.1 points (95 % interval 1.0 to 5.2)'
    """
    scale, digits = metric_of(metric).scale, metric_of(metric).digits
    text = f"{scale * gain.mean:z.{digits}f}{metric_of(metric).points}"
    if gain.count == 1:
        return f"{text} (one split)"
    low, high = (f"{scale * value:z.{digits}f}" for value in (gain.low, gain.high))
    return f"{text} (95 % interval {low} to {high})"


def metric_name(metric: str) -> str:
    """The name of a score as readers know it."""
    return metric_of(metric).name
