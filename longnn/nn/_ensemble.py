r"""Several trained models that answer as one: the weighted average of what they predict."""

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longnn.filters import PolynomialFilter
from longnn.graphs import Operator
from longnn.nn._model import Model
from longnn.nn._transform import Features

#: What is averaged: probabilities of classes, of labels, or values.
Averaged = Literal["classification", "multilabel", "regression"]


class Ensemble(Model):
    r"""The weighted average of models, as one model.

    With scores :math:`s_m`, weights :math:`w_m` and temperatures :math:`T_m` of the members, the
    score of a class is the logarithm of its averaged probability,

    .. math:: s = \log \sum_m w_m \, \mathrm{softmax}(s_m / T_m),

    so that the softmax of the score is the averaged probability itself. For several labels it is
    the logit of the averaged probability, for values :math:`s = \sum_m w_m s_m`.

    Args:
        members: trained models of equal inputs and outputs that treat self loops alike.
        weights: (members,), >= 0 with sum 1. Members of weight zero are not asked.
        temperatures: (members,), > 0; values have none.
        averaged: what the members predict.

    >>> from longnn.nn import MLP
    >>> from longnn.graphs import GraphOperator
    >>> P = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
    >>> members = [MLP(3, 4, 2).eval() for _ in range(2)]
    >>> both = Ensemble(members, torch.tensor([0.5, 0.5]), torch.ones(2), "classification")
    >>> x = torch.rand(2, 3)
    >>> each = torch.stack([m(x, P).softmax(1) for m in members])
    >>> torch.allclose(both(x, P).softmax(1), each.mean(0))
    True
    """

    def __init__(
        self,
        members: Sequence[Model],
        weights: Tensor,
        temperatures: Tensor,
        averaged: Averaged,
    ) -> None:
        first = members[0]
        super().__init__(first.in_channels, first.hidden_channels, first.out_channels)
        loops = sorted({m.self_loops for m in members})
        if len(loops) > 1:
            raise ValueError(f"Expected members that treat self loops alike (got {loops})")
        self.self_loops = first.self_loops
        self.averaged = averaged
        self.members = nn.ModuleList(members)
        # Parameters, so that they are saved and loaded with the weights of the members.
        self.weights = nn.Parameter(weights.float(), requires_grad=False)
        self.temperatures = nn.Parameter(temperatures.float(), requires_grad=False)

    @property
    def lead(self) -> int:
        """The member of the largest weight among those with a filter, or among all."""
        weights = self.weights.tolist()
        places = [i for i, m in enumerate(self.members) if m.filters() and weights[i] > 0]  # type: ignore[operator]
        return max(places or range(len(weights)), key=lambda i: (weights[i], -i))

    def filters(self) -> list[PolynomialFilter]:
        """Those of the leading member."""
        found: list[PolynomialFilter] = self.members[self.lead].filters()  # type: ignore[operator]
        return found

    def scores(self, x: Features, operator: Operator) -> Tensor:
        weights = self.weights.tolist()
        asked = [i for i, w in enumerate(weights) if w > 0]
        each = [self.members[i].scores(x, operator) for i in asked]  # type: ignore[operator]
        s = torch.stack(each)  # (asked, nodes, outputs)
        w = self.weights[asked].to(s)[:, None, None]
        if self.averaged == "regression":
            return (w * s).sum(0)
        s = s / self.temperatures[asked].to(s)[:, None, None]
        if self.averaged == "classification":
            return torch.logsumexp(F.log_softmax(s, dim=2) + w.log(), dim=0)
        yes, no = (torch.logsumexp(F.logsigmoid(v) + w.log(), dim=0) for v in (s, -s))
        return yes - no
