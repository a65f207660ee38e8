r"""Which of several trained members to listen to, and how much: weights from validation nodes.

Greedy selection with replacement, bagged (Caruana et al., 2004, "Ensemble selection from libraries
of models"): again and again the member gets a vote that lowers the loss of the average most. This
is done for many draws of the validation nodes, and the votes are averaged. Where nodes are few,
votes are partly chance: the weights are drawn towards the plain average of the better half, as if
some more nodes had voted so. docs/results/portfolio.md compares ways to do it.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from longnn.metrics import Task

#: Votes of one selection, and draws of the validation nodes.
ROUNDS, DRAWS = 8, 20
#: Nodes that the average of the better half counts as.
PRIOR = 10
_LEAST = 1e-12  # of a probability, so that its logarithm is finite

#: The loss of averages (members, cells) over some cells, (members,).
_Loss = Callable[[Tensor, Tensor], Tensor]


def ensemble_weights(
    predicted: Tensor,  # (members, nodes, outputs) probabilities, or (members, nodes) values
    labels: Tensor,  # (nodes,) classes, or (nodes, outputs) or (nodes,) with NaN for unknown
    task: Task,
    weight: Tensor | None = None,  # (nodes,)
    *,
    rounds: int = ROUNDS,
    draws: int = DRAWS,
    prior: float = PRIOR,
) -> Tensor:
    r"""Weights (members,) of the members in the average, >= 0, with sum 1.

    Args:
        predicted: of the validation nodes, by each member. A member with a value that is not
            finite gets no weight.
        labels: of the same nodes.
        task: decides the loss: the log loss of the averaged probabilities, or the squared error.
        weight: of the nodes in the loss.
        rounds: votes of one selection.
        draws: bootstrap samples of the nodes, with a fixed seed; 0 selects once, on all nodes.
        prior: nodes that the plain average of the half with the least losses counts as; with n
            nodes the weights are :math:`(n\,w + p\,\bar w) / (n + p)`.

    >>> right = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    >>> ensemble_weights(torch.stack([right, 1 - right]), torch.tensor([0, 1]), "classification")
    tensor([1., 0.], dtype=torch.float64)
    """
    sound = torch.isfinite(predicted).flatten(1).all(1)  # (members,)
    if not bool(sound.any()):
        raise ValueError("Expected at least one member with finite predictions (got none)")
    weights = torch.zeros(len(predicted), dtype=torch.float64)
    terms, loss = _terms(predicted[sound].double(), labels, task, weight)
    cells = terms.shape[1]
    if cells == 0:
        weights[sound] = 1 / len(terms)
        return weights
    generator = torch.Generator().manual_seed(0)
    places = [torch.randint(cells, (cells,), generator=generator) for _ in range(draws)]
    votes = [_vote(terms, loss, place, rounds) for place in places or [torch.arange(cells)]]
    count = int((labels >= 0).sum()) if task == "classification" else len(labels)
    chosen = count * torch.stack(votes).mean(0) + prior * _better_half(terms, loss)
    weights[sound] = chosen / (count + prior)
    return weights


def votes_of(
    views: Sequence[Tensor], labels: Tensor, task: Task, weight: Tensor | None = None
) -> Tensor:
    """The mean of the weights by several views of what the same members say."""
    return torch.stack([ensemble_weights(view, labels, task, weight) for view in views]).mean(0)


def losses_of(
    predicted: Tensor, labels: Tensor, task: Task, weight: Tensor | None = None
) -> Tensor:
    """The loss of each member (members,), see :func:`ensemble_weights`."""
    terms, loss = _terms(predicted.double(), labels, task, weight)
    return loss(terms, torch.arange(terms.shape[1]))


def _better_half(terms: Tensor, loss: _Loss) -> Tensor:
    """Equal weights of the members with the least losses, half of them, (members,)."""
    losses = loss(terms, torch.arange(terms.shape[1]))
    half = (len(losses) + 1) // 2
    weights = torch.zeros(len(losses), dtype=torch.float64)
    weights[losses.argsort(stable=True)[:half]] = 1 / half
    return weights


def combine(predicted: Tensor, weights: Tensor) -> Tensor:
    """The weighted average of predictions (members, ...); members of weight zero do not count.

    >>> combine(torch.tensor([[1.0, 2.0], [3.0, float("nan")]]), torch.tensor([1.0, 0.0]))
    tensor([1., 2.])
    """
    used = weights > 0
    shaped = weights[used].double().reshape(-1, *(1,) * (predicted.dim() - 1))
    return (shaped * predicted[used].double()).sum(0).to(predicted)


def _vote(terms: Tensor, loss: _Loss, place: Tensor, rounds: int) -> Tensor:
    """The share of votes of each member on some cells, (members,)."""
    drawn = terms[:, place]
    total, votes = torch.zeros_like(drawn[0]), torch.zeros(len(terms), dtype=torch.float64)
    for r in range(1, rounds + 1):
        best = int(loss((total + drawn) / r, place).argmin())
        total, votes[best] = total + drawn[best], votes[best] + 1
    return votes / rounds


def _terms(
    predicted: Tensor, labels: Tensor, task: Task, weight: Tensor | None
) -> tuple[Tensor, _Loss]:
    """What a member says of each known label (members, cells), and the loss of averages of that."""
    w = torch.ones(len(labels), dtype=torch.float64) if weight is None else weight.double().cpu()

    def mean(each: Tensor, place: Tensor) -> Tensor:  # (members, cells) -> (members,)
        return (each * cells[place]).sum(1) / cells[place].sum()

    def log_loss(probability: Tensor, place: Tensor) -> Tensor:  # of what is true
        return mean(-probability.clamp_min(_LEAST).log(), place)

    if task == "classification":
        known = labels >= 0
        rows, cells = predicted[:, known], w[known]
        own = labels[known].expand(len(rows), -1)[..., None]
        return rows.gather(2, own)[..., 0], log_loss
    known = ~torch.isnan(labels)
    cells = w.reshape(-1, *[1] * (labels.dim() - 1)).expand(labels.shape)[known]
    said, true = predicted[:, known], labels[known].double()
    if task == "multilabel":
        return torch.where(true > 0.5, said, 1 - said), log_loss
    if labels.dim() == 2:  # targets count alike, whatever their units
        spread = torch.stack([column[~column.isnan()].std() for column in labels.double().T])
        unit = spread.nan_to_num(1.0).clamp_min(_LEAST).expand(labels.shape)[known]
        said, true = said / unit, true / unit
    return said, lambda average, place: mean((average - true[place]).square(), place)
