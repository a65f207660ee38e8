"""Scores of predictions, and how sure a mean over repeats is."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

#: Resamples of the bootstrap; enough that the interval's own error is below a tenth of its width.
RESAMPLES = 10_000


def classification_scores(
    probabilities: Tensor,  # (nodes, classes)
    labels: Tensor,  # (nodes,) int64
    mask: Tensor,  # (nodes,) bool
) -> dict[str, float]:
    """Accuracy and macro-F1 over the masked nodes; ROC-AUC where there are two classes."""
    import sklearn.metrics  # takes longer to load than the rest of training

    p, y = probabilities[mask].cpu().numpy(), labels[mask].cpu().numpy()
    if len(y) == 0:
        return {}
    predicted = p.argmax(1)
    scores = {
        "accuracy": float((predicted == y).mean()),
        # Over the classes that are there: under the published protocol a small class may have
        # all its nodes in training, and one node taken for it would count as a class at zero.
        "macro_f1": float(
            sklearn.metrics.f1_score(y, predicted, labels=np.unique(y), average="macro")
        ),
    }
    if p.shape[1] == 2 and len(np.unique(y)) == 2:
        scores["roc_auc"] = float(sklearn.metrics.roc_auc_score(y, p[:, 1]))
    return scores


def regression_scores(predicted: Tensor, labels: Tensor, mask: Tensor) -> dict[str, float]:
    """R2 and mean absolute error over the masked nodes."""
    p, y = predicted[mask].double().cpu().numpy(), labels[mask].double().cpu().numpy()
    if len(y) == 0:
        return {}
    spread = float(((y - y.mean()) ** 2).sum())
    error = float(((y - p) ** 2).sum())
    scores = {"mae": float(np.abs(y - p).mean())}
    if spread > 0:
        scores["r2"] = 1 - error / spread
    return scores


def bootstrap_interval(
    values: Sequence[float], *, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean; a single value is its own interval.

    >>> bootstrap_interval([0.5])
    (0.5, 0.5)
    """
    x = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(seed)
    means = x[rng.integers(0, len(x), (RESAMPLES, len(x)))].mean(1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def summarize(values: Sequence[float]) -> dict[str, float]:
    """Mean, 95 % bootstrap interval, standard deviation and count of repeats."""
    low, high = bootstrap_interval(values)
    std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {
        "mean": float(np.mean(values)),
        "low": low,
        "high": high,
        "std": std,
        "count": len(values),
    }
