"""Figures of a fitted estimator, drawn on axes of matplotlib."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The colours of the report; its style lies in a layer above.
NAVY, ORANGE, GREY = "#12305f", "#d1600a", "#5c5c5c"
FAINT = 0.3  # opacity of the single channels behind their mean


def new_axes(axes: Any) -> "Axes":
    """The axes given, or those of a new figure."""
    if axes is not None:
        found: Axes = axes
        return found
    import matplotlib.pyplot as plt  # slow to load, and needed for figures alone

    return plt.subplots(layout="constrained")[1]


def draw_filter(
    axes: "Axes",
    eigenvalues: np.ndarray,  # (points,)
    responses: np.ndarray,  # (channels, points)
    title: str,
    *,
    cover: bool = False,
) -> "Axes":
    """The response over the spectrum, or that of a double cover: of each channel, and the mean."""
    if len(responses) > 1:
        axes.plot(eigenvalues, responses.T, color=NAVY, alpha=FAINT, linewidth=0.8)
    label = "mean of the channels" if len(responses) > 1 else "filter"
    axes.plot(eigenvalues, responses.mean(0), color=NAVY, linewidth=2, label=label)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_xlim(0, 2)
    axes.set_title(title, loc="left")
    if cover:
        axes.set_xlabel("1 − eigenvalue of the double cover, λ (0: sources like targets)")
    else:
        axes.set_xlabel("Laplacian eigenvalue λ (0: smooth signals, 2: alternating ones)")
    axes.set_ylabel("response g(λ) (factor)")
    if len(responses) > 1:
        axes.legend(frameon=False)
    return axes


def draw_training(
    axes: "Axes",
    history: dict[str, np.ndarray],  # field -> (epochs,)
    best_epoch: int,
    loss: str,
    title: str,
) -> "Axes":
    """Training and validation loss over the epochs, and the epoch that was kept."""
    epochs = np.arange(1, len(history["train_loss"]) + 1)
    axes.plot(epochs, history["train_loss"], color=NAVY, label="training nodes")
    axes.plot(epochs, history["val_loss"], color=ORANGE, linestyle="--", label="validation nodes")
    axes.axvline(best_epoch, color=GREY, linestyle=":", label=f"kept: epoch {best_epoch}")
    axes.set_title(title, loc="left")
    axes.set_xlabel("epoch")
    axes.set_ylabel(f"loss ({loss})")
    axes.legend(frameon=False)
    return axes
