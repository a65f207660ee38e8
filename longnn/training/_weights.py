"""How much each node counts in the losses: weights of classes, and of single nodes."""

from collections.abc import Sequence

import torch
from torch import Tensor

from longnn._base.suggestions import did_you_mean
from longnn.config import parse_class_weight
from longnn.training._problem import Problem


def loss_weights(
    problem: Problem,
    train: Tensor,  # (nodes,) bool
    class_weight: str,
    classes: Sequence[str],
    sample_weight: Tensor | None = None,  # (nodes,)
) -> Tensor | None:
    """The weight of each node (nodes,), or of each label (nodes, labels); None if all alike.

    Args:
        problem: what is learned.
        train: the training nodes, which ``"balanced"`` counts.
        class_weight: as in :class:`~longnn.config.Settings`.
        classes: names of the classes or labels.
        sample_weight: a weight of each node.

    Raises:
        ValueError: for a class that is not there, for classes in a regression, or a bad weight.

    >>> from longnn.graphs import GraphOperator
    >>> P = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]), num_nodes=3)
    >>> problem = Problem.make(torch.eye(3), P, torch.tensor([0, 0, 1]))
    >>> loss_weights(problem, torch.ones(3, dtype=torch.bool), "b=4", ("a", "b"))
    tensor([1., 1., 4.])
    """
    by_class = _class_weights(problem, train.to(problem.device), class_weight, classes)
    if sample_weight is None:
        return by_class
    w = sample_weight.to(problem.device, problem.dtype)
    if w.shape != (problem.num_nodes,) or not bool((torch.isfinite(w) & (w >= 0)).all()):
        raise ValueError(
            f"Expected weights >= 0 of {problem.num_nodes} nodes (got {tuple(w.shape)}, "
            f"smallest {float(w.min()):g})"
        )
    if not bool((w[train.to(w.device)] > 0).any()):
        raise ValueError("Expected a training node with weight > 0 (got none)")
    if by_class is None:
        return w
    return by_class * (w if by_class.dim() == 1 else w[:, None])


def _class_weights(
    problem: Problem, train: Tensor, text: str, classes: Sequence[str]
) -> Tensor | None:
    asked = parse_class_weight(text)
    if asked == "none":
        return None
    if problem.task == "regression":
        raise ValueError(f"Expected no `class_weight` for regression (got {text!r})")
    y = problem.labels
    if isinstance(asked, str):
        if problem.task == "multilabel":
            held, free = ((y[train] == value).sum(0).clamp_min(1) for value in (1, 0))
            return torch.where(y == 1, (free / held).to(problem.dtype), 1.0)
        count = torch.bincount(y[train].clamp_min(0), minlength=problem.outputs)
        table = train.sum() / (problem.outputs * count.clamp_min(1)).to(problem.dtype)
    else:
        for name in asked:
            if name not in classes:
                raise ValueError(
                    f"Expected `class_weight` to name classes among {', '.join(classes)} "
                    f"(got {name!r}){did_you_mean(name, classes)}"
                )
        table = torch.tensor(
            [asked.get(name, 1.0) for name in classes], dtype=problem.dtype, device=y.device
        )
        if problem.task == "multilabel":
            return torch.where(y == 1, table, 1.0)
    return table[y.clamp_min(0)]
