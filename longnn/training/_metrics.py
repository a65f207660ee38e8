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
    *,
    chosen: Tensor | None = None,  # (nodes,) int64
    positive: int = 1,
) -> dict[str, float]:
    """Scores of the masked nodes; ROC AUC and average precision where there are two classes.

    Args:
        probabilities: of each class.
        labels: the true classes.
        mask: the nodes to score.
        chosen: the predicted classes; by default the most probable.
        positive: of two classes the one whose average precision is computed.
    """
    import sklearn.metrics  # takes longer to load than the rest of training

    p, y = probabilities[mask].cpu().numpy(), labels[mask].cpu().numpy()
    if len(y) == 0:
        return {}
    predicted = p.argmax(1) if chosen is None else chosen[mask].cpu().numpy()
    # Over the classes that are there: under the published protocol a small class may have all
    # its nodes in training, and one node taken for it would count as a class at zero.
    there = np.unique(y)
    scores = {
        "accuracy": float((predicted == y).mean()),
        "balanced_accuracy": float(np.mean([(predicted[y == c] == c).mean() for c in there])),
        "macro_f1": float(sklearn.metrics.f1_score(y, predicted, labels=there, average="macro")),
    }
    if p.shape[1] == 2 and len(there) == 2:
        hit = y == positive
        scores["roc_auc"] = float(sklearn.metrics.roc_auc_score(hit, p[:, positive]))
        scores["average_precision"] = float(
            sklearn.metrics.average_precision_score(hit, p[:, positive])
        )
    return scores


def multilabel_scores(
    probabilities: Tensor,  # (nodes, labels)
    labels: Tensor,  # (nodes, labels) of 0, 1 and NaN
    mask: Tensor,  # (nodes,) bool
    *,
    chosen: Tensor | None = None,  # (nodes, labels)
) -> dict[str, float]:
    """Accuracy, F1, ROC AUC and average precision of the masked nodes, the last three as means over
    the labels that have both kinds of nodes; unknown labels do not count.
    """
    import sklearn.metrics  # takes longer to load than the rest of training

    p, y = probabilities[mask].double().cpu().numpy(), labels[mask].cpu().numpy()
    known = ~np.isnan(y)
    if not known.any():
        return {}
    predicted = p >= 0.5 if chosen is None else chosen[mask].cpu().numpy() > 0
    found: dict[str, list[float]] = {"macro_f1": [], "roc_auc": [], "average_precision": []}
    for k in range(y.shape[1]):
        rows = known[:, k]
        hit, score = y[rows, k] > 0.5, p[rows, k]
        if hit.any() and not hit.all():
            found["macro_f1"].append(float(sklearn.metrics.f1_score(hit, predicted[rows, k])))
            found["roc_auc"].append(float(sklearn.metrics.roc_auc_score(hit, score)))
            average = sklearn.metrics.average_precision_score(hit, score)
            found["average_precision"].append(float(average))
    means = {name: float(np.mean(values)) for name, values in found.items() if values}
    return {"accuracy": float(((predicted == (y > 0.5)) & known).sum() / known.sum()), **means}


def regression_scores(
    predicted: Tensor,  # (nodes,) or (nodes, targets)
    labels: Tensor,  # the same, NaN where unknown
    mask: Tensor,  # (nodes,) bool
    *,
    targets: Sequence[str] = (),
) -> dict[str, float]:
    """R2, root mean squared error and mean absolute error over the masked nodes.

    Of several targets each is the mean; with their names, R2 of each is there too.
    """
    p, y = (values[mask].double().cpu().numpy() for values in (predicted, labels))
    p, y = (values[:, None] if values.ndim == 1 else values for values in (p, y))
    rows = [_errors(p[:, k], y[:, k]) for k in range(y.shape[1])]
    names = dict.fromkeys(name for row in rows for name in row)
    scores = {name: float(np.mean([row[name] for row in rows if name in row])) for name in names}
    if len(rows) > 1:
        pairs = zip(targets, rows, strict=False)
        scores |= {f"r2 {name}": row["r2"] for name, row in pairs if "r2" in row}
    return scores


def _errors(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """The errors of one target over the nodes where it is known."""
    p, y = p[~np.isnan(y)], y[~np.isnan(y)]
    if len(y) == 0:
        return {}
    spread, squares = float(((y - y.mean()) ** 2).sum()), float(((y - p) ** 2).sum())
    scores = {"mae": float(np.abs(y - p).mean()), "rmse": float(np.sqrt(squares / len(y)))}
    if spread > 0:
        scores["r2"] = 1 - squares / spread
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
