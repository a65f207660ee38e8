r"""The scores of a model: one table with the name, the direction and the computation of each.

Whoever trains, compares, searches or shows reads this table: a new score is one entry. A score is
computed for many members at once, ties included as scikit-learn has them, and without a number read
back from a GPU: so an epoch is judged and a result is reported by the same code. torch is imported
where it is called: the names are asked for by commands that only print.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torch import Tensor

Task = Literal["classification", "regression", "multilabel"]
TASKS: tuple[Task, ...] = ("classification", "regression", "multilabel")
#: What data asks for as its headline; a class is rare that is less than a fifth of two.
Kind = Literal["classes", "rare class", "unequal classes", "numbers", "labels"]
#: Share of the largest class above which accuracy is no headline.
UNEQUAL = 0.8
#: Cells (classes by nodes) of which the rates of classes are computed at once.
CELLS = 1 << 24
#: Resamples of the bootstrap; enough that the interval's own error is below a tenth of its width.
RESAMPLES = 10_000


@dataclasses.dataclass(frozen=True)
class Metric:
    """One score: how it is called and shown, and how it is computed.

    Each function takes what is said, what is true and a weight for every node, (members, nodes) or
    (members, nodes, columns), and gives one number per member, (members,). Of a class:
    ``f(said, label, weight, classes, positive)``, of numbers ``f(said, true, weight, unit)``, of
    labels ``f(said, true, weight)``.

    >>> METRICS["r2"].name, METRICS["mae"].higher, METRICS["accuracy"].axis
    ('R²', False, 'accuracy (%)')
    """

    name: str  # as pages, figures and the terminal have it
    compute: Mapping[Task, Callable[..., "Tensor"]] = dataclasses.field(default_factory=dict)
    headline: tuple[Kind, ...] = ()  # of which data it says most
    higher: bool = True  # whether more is better
    share: bool = True  # between 0 and 1, and shown in per cent
    ranks: bool = False  # is said: probabilities, not the predicted class
    #: Of several labels or numbers it is the mean over those whose true values differ.
    contrast: bool = False
    plain: str = ""  # the name in plain letters, where it differs

    @property
    def scale(self) -> int:
        """What a value is multiplied by to be shown."""
        return 100 if self.share else 1

    @property
    def digits(self) -> int:
        """Decimals that are shown."""
        return 1 if self.share else 3

    @property
    def points(self) -> str:
        """What follows a difference."""
        return " points" if self.share else ""

    @property
    def axis(self) -> str:
        """The name with its unit, for an axis."""
        return f"{self.name} (%)" if self.share else self.name

    @property
    def sign(self) -> int:
        """1 if more is better, else -1."""
        return 1 if self.higher else -1


def metric_of(key: str) -> Metric:
    """The entry of a score; one that is not in the table, such as R2 of one target, by its key.

    >>> metric_of("average_precision").name, metric_of("r2 price").name
    ('average precision', 'r2 price')
    """
    return METRICS.get(key) or Metric(key.replace("_", " "), share=False)


def headline(
    labels: "Tensor",  # (nodes,) classes with -1 for unknown, or numbers
    task: Task,
) -> tuple[str, int]:
    """The score that says most about a model on this data, and the rarer of two classes.

    Accuracy says nothing where nearly all nodes are of one class. There it is the average
    precision of the rarer class if there are two classes, and else the balanced accuracy.

    >>> import torch
    >>> headline(torch.tensor([0] * 19 + [1]), "classification")
    ('average_precision', 1)
    >>> headline(torch.tensor([0, 0, 1, -1]), "classification")
    ('accuracy', 1)
    """
    kind: Kind = "numbers" if task == "regression" else "labels"
    positive = 1
    if task == "classification":
        counts = labels[labels >= 0].bincount(minlength=2)
        positive = 0 if counts[0] < counts[1] else 1
        kind = "classes"
        if int(counts.max()) > UNEQUAL * int(counts.sum()):
            kind = "rare class" if int((counts > 0).sum()) <= 2 else "unequal classes"
    return next(key for key, metric in METRICS.items() if kind in metric.headline), positive


def check_monitor(monitor: str, task: Task) -> None:
    """Raise where a task has no such score.

    Raises:
        ValueError: with the scores that it has.
    """
    names = [key for key, metric in METRICS.items() if task in metric.compute]
    if monitor not in ("score", "loss", *names):
        raise ValueError(
            f"Expected `monitor` for {task} to be score, loss, {', '.join(names)} (got {monitor!r})"
        )


# Scores of predictions ---------------------------------------------------------------------------


def score_classes(
    probabilities: "Tensor",  # (nodes, classes)
    labels: "Tensor",  # (nodes,) int64, below 0 where unknown
    *,
    chosen: "Tensor | None" = None,  # (nodes,) int64
    positive: int = 1,
    weight: "Tensor | None" = None,  # (nodes,)
) -> dict[str, float]:
    """Scores of some nodes; those of probabilities where there are two classes, and nodes of both.

    Args:
        probabilities: of each class.
        labels: the true classes.
        chosen: the predicted classes; by default the most probable.
        positive: of two classes the one whose average precision is computed.
        weight: how much each node counts; by default all alike.

    >>> import torch
    >>> p, y = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), torch.tensor([0, 1, 1])
    >>> {name: round(value, 2) for name, value in score_classes(p, y).items()}["roc_auc"]
    1.0
    """
    known = labels >= 0
    if not bool(known.any()):
        return {}
    p, labels, classes = probabilities[known].double(), labels[known], probabilities.shape[1]
    said = (p.argmax(-1) if chosen is None else chosen[known])[None]
    y, weight = labels[None], _weights_of(p, weight if weight is None else weight[known])[None]
    both = classes == 2 and bool((labels != labels[0]).any())
    return {
        key: float(of(p[None] if metric.ranks else said, y, weight, classes, positive))
        for key, metric, of in _computed("classification")
        if both or not metric.ranks
    }


def score_labels(
    probabilities: "Tensor",  # (nodes, labels)
    labels: "Tensor",  # (nodes, labels) of 0, 1 and NaN
    *,
    chosen: "Tensor | None" = None,  # (nodes, labels)
    weight: "Tensor | None" = None,  # (nodes,)
) -> dict[str, float]:
    """Scores of some nodes over several labels; unknown labels do not count.

    All but accuracy are means over the labels that have both kinds of nodes.
    """
    p, is_labelled = probabilities.double(), ~labels.isnan()
    if not bool(is_labelled.any()):
        return {}
    said = p >= 0.5 if chosen is None else chosen > 0
    hit = labels > 0.5
    both = (hit & is_labelled).any(0) & (~hit & is_labelled).any(0)
    scores = {}
    for key, metric, of in _computed("multilabel"):
        columns = both if metric.contrast else is_labelled.any(0)
        if bool(columns.any()):
            counts = is_labelled * _weights_of(p, weight)[:, None]
            parts = (p if metric.ranks else said, hit.double(), counts)
            scores[key] = float(of(*(values[None][..., columns] for values in parts)))
    return scores


def score_numbers(
    predicted: "Tensor",  # (nodes,) or (nodes, targets)
    labels: "Tensor",  # the same, NaN where unknown
    *,
    targets: Sequence[str] = (),
    weight: "Tensor | None" = None,  # (nodes,)
) -> dict[str, float]:
    """Scores of some nodes, of several targets the mean; with their names, R2 of each is there too.

    >>> import torch
    >>> score_numbers(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]))["mae"]
    0.5
    """
    p, y = (v.double() if v.dim() == 2 else v.double()[:, None] for v in (predicted, labels))
    rows = []
    for said, true in zip(p.T, y.T, strict=True):
        is_labelled = ~true.isnan()
        said, true = said[is_labelled][None, :, None], true[is_labelled][None, :, None]
        share, unit = true.new_full(true.shape, 1 / max(true.numel(), 1)), true.new_ones(1, 1)
        if weight is not None:
            share = share * _weights_of(true[0], weight[is_labelled])[None, :, None]
        rows.append(
            {
                key: float(of(said, true, share, unit))
                for key, metric, of in _computed("regression")
                if true.numel() and (bool((true != true[0, 0]).any()) or not metric.contrast)
            }
        )
    names = dict.fromkeys(name for row in rows for name in row)
    means = {name: [row[name] for row in rows if name in row] for name in names}
    scores = {name: sum(values) / len(values) for name, values in means.items()}
    if len(rows) > 1:
        main, _ = headline(labels, "regression")
        pairs = zip(targets, rows, strict=False)
        scores |= {f"{main} {name}": row[main] for name, row in pairs if main in row}
    return scores


def _weights_of(values: "Tensor", weight: "Tensor | None") -> "Tensor":  # (nodes, ...) -> (nodes,)
    """Weights of nodes, one in the mean: counts of equal weights stay exact."""
    if weight is None:
        return values.new_ones(len(values))
    weight = weight.to(values)
    return weight * (len(weight) / weight.sum())


def _computed(task: Task) -> list[tuple[str, Metric, Callable[..., "Tensor"]]]:
    return [(key, m, m.compute[task]) for key, m in METRICS.items() if task in m.compute]


# How sure a mean is ------------------------------------------------------------------------------


def bootstrap_interval(
    values: Sequence[float], *, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean; a single value is its own interval.

    >>> bootstrap_interval([0.5])
    (0.5, 0.5)
    """
    import numpy as np

    x = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(seed)
    means = x[rng.integers(0, len(x), (RESAMPLES, len(x)))].mean(1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def summarize(values: Sequence[float]) -> dict[str, float]:
    """Mean, 95 % bootstrap interval, standard deviation and count of repeats."""
    import numpy as np

    low, high = bootstrap_interval(values)
    std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {
        "mean": float(np.mean(values)),
        "low": low,
        "high": high,
        "std": std,
        "count": len(values),
    }


# The computations --------------------------------------------------------------------------------


def roc_auc(score: "Tensor", hit: "Tensor", weight: "Tensor") -> "Tensor":  # (..., nodes) -> (...)
    r"""The chance that a positive is scored above a negative, ties counted half.

    .. math:: \frac{\sum_{i+} w_i \sum_{j-} w_j ([s_j < s_i] + \tfrac12 [s_j = s_i])}
                   {\sum_{i+} w_i \sum_{j-} w_j}

    NaN where there is no positive or no negative.

    >>> import torch
    >>> roc_auc(torch.tensor([0.1, 0.4, 0.4]), torch.tensor([False, True, False]), torch.ones(3))
    tensor(0.7500)
    """
    import torch

    ordered, order = score.contiguous().sort(-1)
    positive = hit * weight
    negative = weight - positive
    below = _from_zero(negative.gather(-1, order).cumsum(-1))
    less = torch.searchsorted(ordered, score.contiguous())
    most = torch.searchsorted(ordered, score.contiguous(), right=True)
    beaten = (below.gather(-1, less) + below.gather(-1, most)) / 2
    return (positive * beaten).sum(-1) / (positive.sum(-1) * negative.sum(-1))


def average_precision(score: "Tensor", hit: "Tensor", weight: "Tensor") -> "Tensor":
    r"""The mean over the positives of the precision at their score: area under the PR curve.

    NaN where there is no positive.

    >>> import torch
    >>> hit = torch.tensor([False, True, True])
    >>> average_precision(torch.tensor([0.8, 0.9, 0.1]), hit, torch.ones(3))
    tensor(0.8333)
    """
    import torch

    falling = -score.contiguous()
    ordered, order = falling.sort(-1)
    positive = hit * weight
    last = torch.searchsorted(ordered, falling, right=True)  # all that score at least as much
    right = _from_zero(positive.gather(-1, order).cumsum(-1)).gather(-1, last)
    every = _from_zero(weight.gather(-1, order).cumsum(-1)).gather(-1, last)
    precision = right / every.clamp_min(torch.finfo(every.dtype).tiny)
    return (positive * precision).sum(-1) / positive.sum(-1)


def _from_zero(sums: "Tensor") -> "Tensor":
    """Cumulative sums with the empty one in front."""
    import torch

    return torch.nn.functional.pad(sums, (1, 0))


def _mean_where(values: "Tensor", there: "Tensor") -> "Tensor":  # (members, classes) -> (members,)
    """The mean over the classes that are there."""
    return values.masked_fill(~there, 0).sum(-1) / there.sum(-1).clamp_min(1)


def _one_hot(label: "Tensor", first: int, last: int) -> "Tensor":
    """Whether a node is of each class of a range, (members, classes, nodes)."""
    import torch

    return label[:, None] == torch.arange(first, last, device=label.device)[:, None]


def _rates(
    said: "Tensor", label: "Tensor", weight: "Tensor", classes: int
) -> tuple["Tensor", "Tensor", "Tensor"]:
    """Weights of the right, of all and of the predicted nodes of each class, (members, classes)."""
    import torch

    w, step = weight[:, None], max(1, CELLS // max(label.numel(), 1))
    parts = []
    for first in range(0, classes, step):  # few classes of many nodes at a time
        span = (first, min(first + step, classes))
        true, chosen = _one_hot(label, *span), _one_hot(said, *span)
        parts.append(((true * chosen * w).sum(-1), (true * w).sum(-1), (chosen * w).sum(-1)))
    if len(parts) == 1:
        return parts[0]
    right, there, predicted = (torch.cat(of, 1) for of in zip(*parts, strict=True))
    return right, there, predicted


def class_accuracy(said: "Tensor", label: "Tensor", weight: "Tensor", *_: Any) -> "Tensor":
    """The share of nodes that are said to be of their class."""
    # Weights add up to one in training, and are ones for a result, whose counts stay exact.
    return ((said == label) * weight).sum(-1) / weight.sum(-1).round().clamp_min(1)


def _class_balanced_accuracy(
    said: "Tensor", label: "Tensor", weight: "Tensor", classes: int, _: int
) -> "Tensor":
    # Over the classes that are there: under the published protocol a small class may have all
    # its nodes in training, and one node taken for it would count as a class at zero.
    right, there, _chosen = _rates(said, label, weight, classes)
    return _mean_where(right / there, there > 0)


def _class_macro_f1(
    said: "Tensor", label: "Tensor", weight: "Tensor", classes: int, _: int
) -> "Tensor":
    right, there, of_said = _rates(said, label, weight, classes)
    return _mean_where(2 * right / (there + of_said), there > 0)


def _one_against_rest(of: Callable[..., "Tensor"]) -> Callable[..., "Tensor"]:
    """Of the rarer of two classes; the mean of one against the rest for more."""

    def compute(
        said: "Tensor", label: "Tensor", weight: "Tensor", classes: int, positive: int
    ) -> "Tensor":
        # Of two classes the other one's is the same, or of no interest.
        first, last = (positive, positive + 1) if classes == 2 else (0, classes)
        p = said.mT[:, first:last]
        values = of(p, _one_hot(label, first, last), weight[:, None].expand(p.shape))
        return _mean_where(values, values.isfinite())

    return compute


def _label_accuracy(said: "Tensor", true: "Tensor", weight: "Tensor") -> "Tensor":
    return ((said == (true > 0.5)) * weight).sum((-1, -2)) / weight.sum((-1, -2))


def _label_macro_f1(said: "Tensor", true: "Tensor", weight: "Tensor") -> "Tensor":
    there, of_said = (true > 0.5) * weight, said * weight
    right = ((true > 0.5) * of_said).sum(-2)
    return _mean_where(2 * right / (there.sum(-2) + of_said.sum(-2)), there.sum(-2) > 0)


def _each_label(of: Callable[..., "Tensor"]) -> Callable[..., "Tensor"]:
    """The mean over the labels that occur."""

    def compute(said: "Tensor", true: "Tensor", weight: "Tensor") -> "Tensor":
        values = of(said.mT, true.mT > 0.5, weight.mT)
        return _mean_where(values, values.isfinite())

    return compute


def _r2(said: "Tensor", true: "Tensor", weight: "Tensor", unit: "Tensor") -> "Tensor":
    """The mean over the targets of 1 - residual / spread; weights sum to one over all cells."""
    import torch

    share = weight * weight.shape[-1]
    mean = (true * share).sum(1, keepdim=True)
    spread = ((true - mean).square() * share).sum(1)
    error = ((said - true).square() * share).sum(1)
    return (1 - error / spread.clamp_min(torch.finfo(spread.dtype).tiny)).mean(-1)


def _mae(said: "Tensor", true: "Tensor", weight: "Tensor", unit: "Tensor") -> "Tensor":
    return ((said - true).abs() * weight * unit[:, None]).sum((-1, -2))


def _rmse(said: "Tensor", true: "Tensor", weight: "Tensor", unit: "Tensor") -> "Tensor":
    share = weight * weight.shape[-1]
    return (((said - true).square() * share).sum(1).sqrt() * unit).mean(-1)


#: Every score by its key, in the order in which scores are shown.
METRICS: dict[str, Metric] = {
    "accuracy": Metric(
        "accuracy",
        {"classification": class_accuracy, "multilabel": _label_accuracy},
        headline=("classes",),
    ),
    "balanced_accuracy": Metric(
        "balanced accuracy",
        {"classification": _class_balanced_accuracy},
        headline=("unequal classes",),
    ),
    "macro_f1": Metric(
        "macro-F1",
        {"classification": _class_macro_f1, "multilabel": _label_macro_f1},
        contrast=True,
    ),
    "roc_auc": Metric(
        "ROC AUC",
        {"classification": _one_against_rest(roc_auc), "multilabel": _each_label(roc_auc)},
        ranks=True,
        contrast=True,
    ),
    "average_precision": Metric(
        "average precision",
        {
            "classification": _one_against_rest(average_precision),
            "multilabel": _each_label(average_precision),
        },
        headline=("rare class", "labels"),
        ranks=True,
        contrast=True,
    ),
    "r2": Metric(
        "R²", {"regression": _r2}, headline=("numbers",), share=False, contrast=True, plain="R2"
    ),
    "mae": Metric("mean absolute error", {"regression": _mae}, higher=False, share=False),
    "rmse": Metric("root mean squared error", {"regression": _rmse}, higher=False, share=False),
}
