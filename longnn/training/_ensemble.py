r"""Which of several trained members to listen to, and how much: weights from validation nodes.

Greedy selection with replacement (Caruana et al., 2004, "Ensemble selection from libraries of
models"): again and again the member joins whose vote lowers the loss of the average most. It starts
from the plain average of all, which counts as some votes already: with few validation nodes the
votes cannot outweigh it, and the ensemble stays near the plain average.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from longnn.training._problem import Task

#: Votes that are cast.
ROUNDS = 25
#: Validation nodes that the plain average is worth: with as many, half of all votes are its own.
PRIOR = 100.0
_LEAST = 1e-12  # of a probability, so that its logarithm is finite


def ensemble_weights(
    predicted: Tensor,  # (members, nodes, outputs) probabilities, or (members, nodes) values
    labels: Tensor,  # (nodes,) classes, or (nodes, outputs) or (nodes,) with NaN for unknown
    task: Task,
    *,
    rounds: int = ROUNDS,
    prior: float = PRIOR,
) -> Tensor:
    r"""Weights (members,) of the members in the average, >= 0, with sum 1.

    With :math:`n` nodes, :math:`M` members and :math:`R` rounds, member m has the weight

    .. math:: w_m = \frac{u / M + v_m}{u + R}, \qquad u = R \, \mathrm{prior} / n

    where :math:`v_m` counts its votes.

    Args:
        predicted: of the validation nodes, by each member; no probability of a finite member is
            NaN. A member with a value that is not finite gets no weight.
        labels: of the same nodes.
        task: decides the loss: the log loss of the averaged probabilities, or the squared error.
        rounds: votes to cast.
        prior: validation nodes that the plain average is worth.

    >>> right = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    >>> both = torch.stack([right, 1 - right])
    >>> ensemble_weights(both, torch.tensor([0, 1]), "classification", prior=0.0)
    tensor([1., 0.], dtype=torch.float64)
    >>> ensemble_weights(both, torch.tensor([0, 1]), "classification", prior=1e9)
    tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    sound = torch.isfinite(predicted).flatten(1).all(1)  # (members,)
    if not bool(sound.any()):
        raise ValueError("Expected at least one member with finite predictions (got none)")
    weights = torch.zeros(len(predicted), dtype=torch.float64)
    terms, loss = _terms(predicted[sound].double(), labels, task)
    members, cells = terms.shape
    if cells == 0:
        weights[sound] = 1 / members
        return weights
    start = rounds * prior / cells
    total, votes = start * terms.mean(0), torch.zeros(members, dtype=torch.float64)
    for r in range(rounds):
        joined = (total + terms) / (start + r + 1)  # (members, cells): the average with each
        best = int(loss(joined).argmin())
        total, votes[best] = total + terms[best], votes[best] + 1
    weights[sound] = (start / members + votes) / (start + rounds)
    return weights


def combine(predicted: Tensor, weights: Tensor) -> Tensor:
    """The weighted average of predictions (members, ...); members of weight zero do not count.

    >>> combine(torch.tensor([[1.0, 2.0], [3.0, float("nan")]]), torch.tensor([1.0, 0.0]))
    tensor([1., 2.])
    """
    used = weights > 0
    shaped = weights[used].double().reshape(-1, *(1,) * (predicted.dim() - 1))
    return (shaped * predicted[used].double()).sum(0).to(predicted)


def _terms(
    predicted: Tensor, labels: Tensor, task: Task
) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """What a member says of each known label (members, cells), and the loss of averages of that."""
    if task == "classification":
        known = labels >= 0
        rows = predicted[:, known]
        own = labels[known].expand(len(rows), -1)[..., None]
        return rows.gather(2, own)[..., 0], _log_loss
    known = ~torch.isnan(labels)
    said, true = predicted[:, known], labels[known].double()
    if task == "multilabel":
        return torch.where(true > 0.5, said, 1 - said), _log_loss
    if labels.dim() == 2:  # targets count alike, whatever their units
        spread = torch.stack([column[~column.isnan()].std() for column in labels.double().T])
        unit = spread.nan_to_num(1.0).clamp_min(_LEAST).expand(labels.shape)[known]
        said, true = said / unit, true / unit
    return said, lambda average: (average - true).square().mean(1)


def _log_loss(probability: Tensor) -> Tensor:  # (members, cells) of what is true
    return -probability.clamp_min(_LEAST).log().mean(1)
