r"""Scores of many members at once, on the device: what an epoch is judged by.

Each takes, for every member, some nodes with a weight each (zero for one that only fills up), and
gives one number per member. They are the usual scores of scikit-learn, ties included, without its
walk over single members and without a number read back from a GPU.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def roc_auc(score: Tensor, hit: Tensor, weight: Tensor) -> Tensor:  # each (..., nodes) -> (...)
    r"""The chance that a positive is scored above a negative, ties counted half.

    .. math:: \frac{\sum_{i+} w_i \sum_{j-} w_j ([s_j < s_i] + \tfrac12 [s_j = s_i])}
                   {\sum_{i+} w_i \sum_{j-} w_j}

    NaN where there is no positive or no negative.

    >>> roc_auc(torch.tensor([0.1, 0.4, 0.4]), torch.tensor([False, True, False]), torch.ones(3))
    tensor(0.7500)
    """
    ordered, order = score.contiguous().sort(-1)
    positive = hit * weight
    negative = weight - positive
    below = _from_zero(negative.gather(-1, order).cumsum(-1))
    less = torch.searchsorted(ordered, score.contiguous())
    most = torch.searchsorted(ordered, score.contiguous(), right=True)
    beaten = (below.gather(-1, less) + below.gather(-1, most)) / 2
    return (positive * beaten).sum(-1) / (positive.sum(-1) * negative.sum(-1))


def average_precision(score: Tensor, hit: Tensor, weight: Tensor) -> Tensor:
    r"""The mean over the positives of the precision at their score: area under the PR curve.

    NaN where there is no positive.

    >>> hit = torch.tensor([False, True, True])
    >>> average_precision(torch.tensor([0.8, 0.9, 0.1]), hit, torch.ones(3))
    tensor(0.8333)
    """
    falling = -score.contiguous()
    ordered, order = falling.sort(-1)
    positive = hit * weight
    last = torch.searchsorted(ordered, falling, right=True)  # all that score at least as much
    right = _from_zero(positive.gather(-1, order).cumsum(-1)).gather(-1, last)
    every = _from_zero(weight.gather(-1, order).cumsum(-1)).gather(-1, last)
    precision = right / every.clamp_min(torch.finfo(every.dtype).tiny)
    return (positive * precision).sum(-1) / positive.sum(-1)


def _from_zero(sums: Tensor) -> Tensor:
    """Cumulative sums with the empty one in front."""
    return torch.nn.functional.pad(sums, (1, 0))


def _mean_where(values: Tensor, there: Tensor) -> Tensor:  # (members, classes) -> (members,)
    """The mean over the classes that are there."""
    kept = torch.where(there, values, torch.zeros_like(values)).sum(-1)
    return kept / there.sum(-1).clamp_min(1)


def _each_class(scores: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """Scores and hits of each class against the rest, (members, classes, nodes)."""
    classes = torch.arange(scores.shape[-1], device=scores.device)
    return scores.mT, label[:, None] == classes[:, None]


def _rates(scores: Tensor, label: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights of the right, of all and of the predicted nodes of each class."""
    _, true = _each_class(scores, label)
    _, chosen = _each_class(scores, scores.argmax(-1))
    w = weight[:, None]
    return (true * chosen * w).sum(-1), (true * w).sum(-1), (chosen * w).sum(-1)


def class_accuracy(scores: Tensor, label: Tensor, weight: Tensor, positive: int) -> Tensor:
    """The share of nodes whose largest score is that of their class."""
    return ((scores.argmax(-1) == label) * weight).sum(-1)


def class_balanced_accuracy(scores: Tensor, label: Tensor, weight: Tensor, positive: int) -> Tensor:
    """The mean recall of the classes that are there."""
    right, there, _ = _rates(scores, label, weight)
    return _mean_where(right / there, there > 0)


def class_macro_f1(scores: Tensor, label: Tensor, weight: Tensor, positive: int) -> Tensor:
    """The mean F1 of the classes that are there."""
    right, there, chosen = _rates(scores, label, weight)
    return _mean_where(2 * right / (there + chosen), there > 0)


def class_roc_auc(scores: Tensor, label: Tensor, weight: Tensor, positive: int) -> Tensor:
    """ROC AUC of the rarer of two classes; the mean of one against the rest for more."""
    return _one_against_rest(roc_auc, scores, label, weight, positive)


def class_average_precision(scores: Tensor, label: Tensor, weight: Tensor, positive: int) -> Tensor:
    """Average precision of the rarer of two classes; the mean over the classes for more."""
    return _one_against_rest(average_precision, scores, label, weight, positive)


def _one_against_rest(
    score: Callable[..., Tensor], scores: Tensor, label: Tensor, weight: Tensor, positive: int
) -> Tensor:
    p, hit = _each_class(scores.softmax(-1), label)
    if scores.shape[-1] == 2:  # the other one's is the same, or of no interest
        p, hit = p[:, positive : positive + 1], hit[:, positive : positive + 1]
    found = score(p, hit, weight[:, None].expand(p.shape))
    return _mean_where(found, torch.isfinite(found))


#: (scores (members, nodes, classes), labels and weights (members, nodes), the rarer class).
CLASS_SCORES: dict[str, Callable[[Tensor, Tensor, Tensor, int], Tensor]] = {
    "accuracy": class_accuracy,
    "balanced_accuracy": class_balanced_accuracy,
    "macro_f1": class_macro_f1,
    "roc_auc": class_roc_auc,
    "average_precision": class_average_precision,
}


def label_accuracy(scores: Tensor, label: Tensor, weight: Tensor) -> Tensor:
    """The share of labels, over nodes and labels, that are predicted right at one half."""
    return (((scores > 0) == (label > 0.5)) * weight).sum((-1, -2)) / weight.sum((-1, -2))


def label_macro_f1(scores: Tensor, label: Tensor, weight: Tensor) -> Tensor:
    """The mean F1 of the labels that occur."""
    true, chosen = (label > 0.5) * weight, (scores > 0) * weight
    right = ((label > 0.5) * chosen).sum(-2)
    return _mean_where(2 * right / (true.sum(-2) + chosen.sum(-2)), true.sum(-2) > 0)


def label_roc_auc(scores: Tensor, label: Tensor, weight: Tensor) -> Tensor:
    """The mean ROC AUC of the labels."""
    found = roc_auc(scores.mT, label.mT > 0.5, weight.mT)
    return _mean_where(found, torch.isfinite(found))


def label_average_precision(scores: Tensor, label: Tensor, weight: Tensor) -> Tensor:
    """The mean average precision of the labels that occur."""
    found = average_precision(scores.mT, label.mT > 0.5, weight.mT)
    return _mean_where(found, torch.isfinite(found))


#: (scores, labels and weights, each (members, nodes, labels)).
LABEL_SCORES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "accuracy": label_accuracy,
    "macro_f1": label_macro_f1,
    "roc_auc": label_roc_auc,
    "average_precision": label_average_precision,
}
