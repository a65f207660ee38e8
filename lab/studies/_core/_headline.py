"""Headline scores of own tables: of predictions on splits, and their differences in points."""

from collections.abc import Sequence

import torch

from longnn.data import NodeDataset, Split
from longnn.metrics import METRICS, headline, summarize
from longnn.training import score


def metric_words(metric: str) -> str:
    """A score in plain letters, for a table in Markdown.

    >>> metric_words("r2"), metric_words("roc_auc")
    ('R2', 'ROC AUC')
    """
    return METRICS[metric].plain or METRICS[metric].name


def headline_scores(
    dataset: NodeDataset, predicted: Sequence[torch.Tensor], splits: Sequence[Split]
) -> tuple[list[float], list[float]]:
    """The headline metric on the validation and on the test nodes of each split.

    >>> from longnn.data import csbm, make_split
    >>> data = csbm(num_nodes=40, num_features=3)
    >>> sure = torch.nn.functional.one_hot(data.data.y).float()
    >>> headline_scores(data, [sure], [make_split(data, "stratified", 0)])
    ([1.0], [1.0])
    """
    metric, _ = headline(dataset.data.y, dataset.task)
    pairs = list(zip(predicted, splits, strict=True))
    val = [score(p, dataset, split.val)[metric] for p, split in pairs]
    test = [score(p, dataset, split.test)[metric] for p, split in pairs]
    return val, test


def points(scores: Sequence[float], others: Sequence[float]) -> list[float]:
    """Scores minus others, split by split, in points.

    >>> points([0.75, 0.5], [0.5, 0.5])
    [25.0, 0.0]
    """
    return [float(100 * (a - b)) for a, b in zip(scores, others, strict=True)]


def interval_of(differences: Sequence[float]) -> str:
    """Mean and 95 % bootstrap interval, in bold if the interval excludes zero.

    >>> interval_of([1.0, 1.0, 1.0])
    '**+1.0 [+1.0, +1.0]**'
    """
    s = summarize(differences)
    text = f"{s['mean']:+.1f} [{s['low']:+.1f}, {s['high']:+.1f}]"
    return f"**{text}**" if s["low"] > 0 or s["high"] < 0 else text


def best_in_bold(means: Sequence[float], digits: int = 1) -> list[str]:
    """Numbers of a row to some digits, the highest in bold.

    >>> best_in_bold([97.25, 98.0])
    ['97.2', '**98.0**']
    """
    best = max(means)
    shown = [f"{v:.{digits}f}" for v in means]
    return [f"**{t}**" if v >= best - 1e-9 else t for t, v in zip(shown, means, strict=True)]
