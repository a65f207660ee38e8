"""A figure with the texts around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plate:
    """A figure with the texts around it.

    Args:
        name: of its files, and its anchor on the page.
        draw: makes the figure.
        title: of the caption.
        caption: how to read the figure.
        alt: what the figure shows, for readers who cannot see it.

    >>> Plate("empty", Figure, "Nothing", "There is nothing to read.", "Nothing.").title
    'Nothing'
    """

    name: str
    draw: Callable[[], Figure]
    title: str
    caption: str
    alt: str
